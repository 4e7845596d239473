"""What came of the random schedules of a run: counted, and what fails kept for another look."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fencepost.conformance.analysis.root_cause import violated_requirements
from fencepost.conformance.execution.play import ScenarioRun
from fencepost.conformance.schedules.classic.generation import GeneratedSchedule
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.traces.model_transitions import Transition

MAX_CANDIDATES = 3
"""How many schedules that break one requirement are kept."""


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """What came of one schedule. `undecided` says what was missing if it could not be judged; `run` is there if
    something is broken."""

    generated: GeneratedSchedule
    events: int
    rules: Mapping[str, int]
    transitions: Mapping[Transition, int]
    violated: frozenset[str] = frozenset()
    undecided: str = ""
    run: ScenarioRun | None = None

    @classmethod
    def from_run(cls, generated: GeneratedSchedule, run: ScenarioRun) -> "ScheduleResult":
        """What a schedule showed."""
        verdict = run.verdict
        found = violated_requirements(run)
        missing = verdict.inconclusive[0] if verdict.inconclusive else run.blocked
        kept = run if found else None
        return cls(generated, len(run.events), verdict.rules, verdict.transitions, found, missing, kept)


@dataclass(frozen=True, slots=True)
class CandidateFailure:
    """A schedule that broke a requirement once, as it was played."""

    schedule: Schedule
    run: ScenarioRun

    def run_named_after(self, requirement: str) -> ScenarioRun:
        """What was played, under a name that tells what it shows."""
        scenario = self.run.scenario
        return replace(self.run, scenario=replace(scenario, name=f"{scenario.name}-{requirement}"))


@dataclass(slots=True)
class RunStatistics:
    """Everything that came of the schedules so far."""

    schedules: int = 0
    events: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    transitions: Counter[Transition] = field(default_factory=Counter)
    predicted: Counter[Transition] = field(default_factory=Counter)
    undecided: dict[str, str] = field(default_factory=dict)
    """What was missing, by schedule."""
    candidate_failures: dict[str, list[CandidateFailure]] = field(default_factory=dict)
    """By requirement, the shortest first."""

    def add_result(self, result: ScheduleResult) -> None:
        """Count what came of a schedule."""
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
