"""A run under way: what was planned, what was played, and what follows from it so far."""

import random
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fencepost.conformance.analysis import aggregation
from fencepost.conformance.analysis.aggregation import Origin
from fencepost.conformance.analysis.reference_differences import note_ambiguities
from fencepost.conformance.analysis.root_cause import RootCauses, is_crash, violated_requirements, violations_in
from fencepost.conformance.execution.play import ScenarioRun
from fencepost.conformance.execution.saving import save_failure, trace_path, with_decisions
from fencepost.conformance.plan import Plan
from fencepost.conformance.reports.progress import Progress
from fencepost.conformance.results import Report
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.selection import Selection
from fencepost.conformance.scenarios.classic.tours import TourRunner
from fencepost.conformance.schedules.classic.protocol import coverage_goals
from fencepost.conformance.schedules.coverage import measure_coverage
from fencepost.conformance.schedules.engine import ScheduleEngine
from fencepost.conformance.schedules.protocol import CoverageGoals
from fencepost.conformance.schedules.statistics import RunStatistics
from fencepost.traces.judge.judge import judge

MAX_REPLAYS = 3
"""How many scenarios are replayed at most to confirm one violation."""


def trace_length(run: ScenarioRun) -> int:
    """How long a trace is."""
    return len(run.events)


@dataclass(slots=True)
class RunState:
    """A run under way: what was played so far, and who is told."""

    plan: Plan
    selection: Selection
    progress: Callable[[Progress], None]
    started_at: float = field(default_factory=time.monotonic)
    runs: list[ScenarioRun] = field(default_factory=list)
    schedule_failures: list[ScenarioRun] = field(default_factory=list)
    """What random schedules showed broken, under names of their own."""
    statistics: RunStatistics = field(default_factory=RunStatistics)
    violated: set[str] = field(default_factory=set)
    confirmed: dict[str, frozenset[str]] = field(default_factory=dict)
    decisions: dict[str, bool] = field(default_factory=dict)
    goals: CoverageGoals = field(default_factory=coverage_goals)
    """What the coverage by random schedules is measured against."""

    def add_run(self, run: ScenarioRun) -> None:
        """A scenario was played. What it decides about the reference differences binds all later ones."""
        sides = run.verdict.decisions.items()
        contrary = {name: self.decisions[name] for name, side in sides if self.contradicts(name, side)}
        if contrary:
            events = tuple(with_decisions(run.events, contrary))
            run = replace(run, events=events, verdict=judge(run.header, events))
        self.decisions.update(run.verdict.decisions)
        self.runs.append(run)
        self.report_progress(violated_requirements(run), run.scenario.name)

    def report_progress(self, violated: frozenset[str], name: str) -> None:
        """Say how far the run has come."""
        self.violated |= violated
        done = len({one.scenario.name for one in self.runs}) + self.statistics.schedules
        total = len(self.selection.scenarios) + self.plan.schedules
        self.progress(Progress(done, total, time.monotonic() - self.started_at, len(self.violated), name))

    async def run_schedules(self, engine: ScheduleEngine) -> None:
        """Play random schedules, then see again and make short what they show broken and no scenario does."""
        self.statistics = engine.statistics
        await engine.run(lambda outcome: self.report_progress(outcome.violated, outcome.generated.schedule.name))
        for requirement in self.unconfirmed_requirements():
            if requirement in self.unconfirmed_requirements():
                played, again = await engine.confirm_violation(requirement)
                self.confirmed[played.scenario.name] = again
                self.schedule_failures.append(played)
                save_failure(self.plan, played)

    def unconfirmed_requirements(self) -> list[str]:
        """What random schedules broke, was asked for, and is not confirmed."""
        settled = frozenset[str]().union(*self.confirmed.values())
        asked = {requirement.id for requirement in self.selection.requirements}
        return sorted((self.statistics.candidate_failures.keys() & asked) - settled)

    def runs_not_replayed(self) -> list[ScenarioRun]:
        """What random schedules broke in a run that was cut short before they could be seen to fail again."""
        tried = {each.scenario.name for each in self.schedule_failures}
        left = [
            self.statistics.candidate_failures[requirement][0].run_named_after(requirement)
            for requirement in self.unconfirmed_requirements()
        ]
        return [played for played in left if played.scenario.name not in tried]

    def contradicts(self, name: str, side: bool) -> bool:
        """A reference difference was decided otherwise before."""
        return name in self.decisions and self.decisions[name] != side

    def failures_to_replay(self) -> list[Scenario]:
        """The scenarios to replay next: the shortest that shows each violation not confirmed so far.

        Nothing is called a failure before it was seen twice; what a few scenarios do not show again is not. A crash
        is replayed even if its requirement is violated without one.
        """
        settled = frozenset[str]().union(*self.confirmed.values())
        blame = RootCauses(self.runs)
        looked_for: dict[str, list[ScenarioRun]] = {}
        in_passing: dict[str, list[ScenarioRun]] = {}
        chosen: dict[str, Scenario] = {}
        for one in sorted(self.runs, key=trace_length):
            alone = [each for each in violations_in(one.verdict) if not blame.cause_of(each, one)]
            marked = {each.requirement for each in alone if each.is_checked}
            for requirement in {each.requirement for each in alone} - settled:
                (looked_for if requirement in marked else in_passing).setdefault(requirement, []).append(one)
            if one.scenario.name not in self.confirmed and any(is_crash(each.violation, one) for each in alone):
                chosen[one.scenario.name] = one.scenario
        for requirement in sorted(looked_for.keys() | in_passing.keys()):
            shows = looked_for.get(requirement, []) + in_passing.get(requirement, [])
            untried = [one for one in shows if one.scenario.name not in self.confirmed]
            if untried and len(shows) - len(untried) < MAX_REPLAYS:
                chosen[untried[0].scenario.name] = untried[0].scenario
        return list(chosen.values())

    def build_report(self, target: Mapping[str, str], deviations: Mapping[str, str], *, cut_short: bool) -> Report:
        """Everything that is known so far."""
        runs = [*self.runs, *self.schedule_failures, *self.runs_not_replayed()]
        results = aggregation.requirement_results(self.selection, runs, self.confirmed, deviations, self.origin_of)
        return Report(
            target=target,
            seed=self.plan.seed,
            results=tuple(note_ambiguities(results, self.decisions)),
            rules=aggregation.rule_coverage([*(one.verdict.rules for one in self.runs), self.statistics.rules]),
            schedules=len(self.runs) + self.statistics.schedules,
            events=sum(len(one.events) for one in self.runs) + self.statistics.events,
            coverage=measure_coverage(self.statistics, self.goals, [one.verdict for one in self.runs])
            if self.plan.schedules
            else None,
            seconds=round(time.monotonic() - self.started_at, 3),
            cut_short=cut_short,
        )

    def origin_of(self, run: ScenarioRun) -> Origin:
        """Where the trace of a failure is found, and the command that runs it again."""
        plan, name = self.plan, run.scenario.name
        profile = ["--profile", str(plan.profile)] if plan.profile is not None else []
        if plan.save is not None:
            path = str(trace_path(plan.save, run))
            return Origin(path, shlex.join(["fencepost", "replay", path, plan.target, *profile]))
        ids = run.scenario.requirements
        if not ids:
            on_tour = isinstance(run.scenario.play, TourRunner)
            again = ["--tours", str(plan.tours)] if on_tour else ["--schedules", str(plan.schedules)]
            return Origin(
                name, shlex.join(["fencepost", "test", plan.target, *again, "--seed", str(plan.seed), *profile])
            )
        return Origin(name, shlex.join(["fencepost", "test", plan.target, "--only", *ids, *profile]))


def order_scenarios(scenarios: Sequence[Scenario], seed: int) -> list[Scenario]:
    """The scenarios in the order of this seed; 0 keeps the order they are written in."""
    ordered = list(scenarios)
    if seed:
        random.Random(seed).shuffle(ordered)
    return ordered
