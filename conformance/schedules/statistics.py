"""Statistics of the random schedules of a run, and the failures to confirm."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.conformance.schedules.schedule import GeneratedSchedule, Schedule
from fencepost.traces.model_transitions import Transition

MAX_CANDIDATES = 3
"""How many schedules that violate one requirement are kept."""


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """The result of one schedule. `undecided` is the reason if it could not be judged; `run` is kept if it violates
    a requirement."""

    generated: GeneratedSchedule
    events: int
    rules: Mapping[str, int]
    transitions: Mapping[Transition, int]
    violated: frozenset[str] = frozenset()
    undecided: str = ""
    run: ScenarioRun | None = None

    @classmethod
    def from_run(cls, generated: GeneratedSchedule, run: ScenarioRun) -> "ScheduleResult":
        """The result of a schedule by its run."""
        verdict = run.verdict
        violated = run.verdict.violated
        undecided = next(iter(verdict.inconclusive), "") or run.misconduct or run.blocked
        kept = run if violated else None
        return cls(generated, len(run.events), verdict.rules, verdict.transitions, violated, undecided, kept)


@dataclass(frozen=True, slots=True)
class CandidateFailure:
    """A schedule that violated a requirement once, and that run."""

    schedule: Schedule
    run: ScenarioRun

    def run_named_after(self, requirement: str) -> ScenarioRun:
        """The run under a name that ends in the requirement."""
        scenario = self.run.scenario
        return replace(self.run, scenario=replace(scenario, name=f"{scenario.name}-{requirement}"))


@dataclass(slots=True)
class RunStatistics:
    """Counts over all schedules so far."""

    schedules: int = 0
    events: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    transitions: Counter[Transition] = field(default_factory=Counter)
    predicted: Counter[Transition] = field(default_factory=Counter)
    undecided: dict[str, str] = field(default_factory=dict)
    """The reason, by name of the schedule that could not be judged."""
    candidate_failures: dict[str, list[CandidateFailure]] = field(default_factory=dict)
    """By violated requirement, the shortest first."""

    def add_result(self, result: ScheduleResult) -> None:
        """Count a result, and keep its run if it is among the shortest that violate a requirement."""
        self.schedules += 1
        self.events += result.events
        self.rules.update(result.rules)
        self.transitions.update(result.transitions)
        self.predicted.update(result.generated.transitions)
        if result.undecided and not result.violated:
            self.undecided[result.generated.schedule.name] = result.undecided
        if result.run is None:
            return
        for requirement in sorted(result.violated):
            known = self.candidate_failures.setdefault(requirement, [])
            known.append(CandidateFailure(result.generated.schedule, result.run))
            known.sort(key=lambda each: len(each.run.events))
            del known[MAX_CANDIDATES:]
