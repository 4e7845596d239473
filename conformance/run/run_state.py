"""A run under way: what was planned, what was played, and what follows from it so far."""

import random
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter

from fencepost.conformance.analysis.aggregation import confirmed_requirements
from fencepost.conformance.analysis.failures import Origin
from fencepost.conformance.analysis.report_builder import ReportBuilder
from fencepost.conformance.analysis.root_cause import RootCauses, is_crash, violated_requirements, violations_in
from fencepost.conformance.events import Progress
from fencepost.conformance.execution.saving import save_failure, trace_path, with_decisions
from fencepost.conformance.plan import Plan
from fencepost.conformance.results import Report
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.scenario_run import ScenarioRun
from fencepost.conformance.scenario.selection import Selection
from fencepost.conformance.scenarios.classic.tours import TourRunner
from fencepost.conformance.schedules.coverage import measure_coverage
from fencepost.conformance.schedules.engine import ScheduleEngine
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
        settled = confirmed_requirements(self.confirmed)
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
        confirmed, causes = confirmed_requirements(self.confirmed), RootCauses(self.runs)
        chosen: dict[str, Scenario] = {}
        candidates: list[tuple[str, bool, ScenarioRun]] = []
        for run in sorted(self.runs, key=trace_length):
            independent = [each for each in violations_in(run.verdict) if not causes.cause_of(each, run)]
            checked = {each.requirement for each in independent if each.is_checked}
            violated = {each.requirement for each in independent}
            candidates += ((requirement, requirement not in checked, run) for requirement in violated - confirmed)
            if run.scenario.name not in self.confirmed and any(is_crash(each.violation, run) for each in independent):
                chosen[run.scenario.name] = run.scenario
        candidates.sort(key=itemgetter(0, 1))
        for _, group in groupby(candidates, key=itemgetter(0)):
            scenarios = [run.scenario for _, _, run in group]
            untried = [scenario for scenario in scenarios if scenario.name not in self.confirmed]
            if untried and len(scenarios) - len(untried) < MAX_REPLAYS:
                chosen[untried[0].name] = untried[0]
        return list(chosen.values())

    def build_report(self, target: Mapping[str, str], deviations: Mapping[str, str], *, cut_short: bool) -> Report:
        """Everything that is known so far."""
        builder = ReportBuilder((each.id for each in self.selection.requirements), self.selection.left_out, deviations)
        runs = [*self.runs, *self.schedule_failures, *self.runs_not_replayed()]
        builder.add_runs(runs, self.confirmed, self.origin_of)
        builder.decisions.append(self.decisions)
        builder.rules += [*(run.verdict.rules for run in self.runs), self.statistics.rules]
        verdicts = [run.verdict for run in self.runs]
        return builder.build(
            target=target,
            seed=self.plan.seed,
            schedules=len(self.runs) + self.statistics.schedules,
            events=sum(len(run.events) for run in self.runs) + self.statistics.events,
            seconds=time.monotonic() - self.started_at,
            cut_short=cut_short,
            coverage=measure_coverage(self.statistics, verdicts) if self.plan.schedules else None,
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
