"""The state of a run: its plan, the scenarios and schedules played so far, and the results derived from them; and the
last stage, random schedules and the shrinking of those with violations that no scenario shows."""

import asyncio
import random
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter

from fencepost.conformance.analysis.failures import Origin, failure_in
from fencepost.conformance.analysis.report_builder import ReportBuilder, confirmed_requirements
from fencepost.conformance.analysis.root_cause import (
    RootCauses,
    ViolationOnPath,
    chargeable_requirements,
    family_of,
    find_root_causes,
    is_crash,
    is_specific,
    neighbouring_families,
)
from fencepost.conformance.events import (
    Progress,
    RunFinished,
    RunStarted,
    ScenarioFinished,
    ScheduleFinished,
    ScheduleShrunk,
    ViolationConfirmed,
)
from fencepost.conformance.plan import Plan
from fencepost.conformance.results import Ending, Failure, Provenance, Report, Scope, TargetFacts
from fencepost.conformance.run.engine import (
    Confirmation,
    RunStatistics,
    ScheduleEngine,
    ScheduleResult,
    measure_coverage,
)
from fencepost.conformance.run.play import TOO_BUSY
from fencepost.conformance.run.protocol import ProtocolDescription
from fencepost.conformance.run.registry import DEFAULT_PROTOCOL
from fencepost.conformance.run.schedule import CoverageGoals
from fencepost.conformance.run.stream import CurrentWork, Emit, RunLimits, trace_file, with_decisions
from fencepost.conformance.subject import NO_DECISIONS, Scenario, ScenarioRun, Selection, Subject, required_capabilities
from fencepost.model.settings import Settings
from fencepost.traces.verdict import UNCLASSIFIED, violations_in

# -- the state of a run -----------------------------------------------------------------------------------------------

CONFIRMING_FACTOR = 3
"""How many times as long as shrinking the replays of random schedules may take."""
MAX_REPLAYS = 3
"""How many scenarios are replayed at most to confirm one violation."""


CALM_S, RESTART_S, SCHEDULES_S, CLEAN_UP_S, SLOW_S = (5.0, 0.05), (10.0, 0.8), 65.0, 80.0, 310.0
"""About how many seconds the parts of a run over the network take: played side by side, schedules take as long as what
waits longest, and the more there are the longer that waits. Measured on Apache Kafka 4.4 and the kit's own server."""


def waits_of(scenarios: Sequence[Scenario], schedules: int) -> tuple[float, ...]:
    """How long the parts of a run take: the scenarios without a restart, those with one, and random schedules."""
    needs = [required_capabilities(each) for each in scenarios]
    calm = [each for each in needs if "restart" not in each]
    timers = {"slow": SLOW_S, "retention": CLEAN_UP_S}
    longest = max((seconds for need, seconds in timers.items() if any(need in each for each in calm)), default=0.0)
    restarted = len(needs) - len(calm)
    parts = (
        (len(calm), max(CALM_S[0] + CALM_S[1] * len(calm), longest)),
        (restarted, RESTART_S[0] + RESTART_S[1] * restarted),
        (schedules, SCHEDULES_S),
    )
    return tuple(seconds for count, seconds in parts if count)


@dataclass(slots=True)
class RunState:
    """A run under way: what was played so far. Every change is emitted as an event."""

    plan: Plan
    selection: Selection
    emit: Emit
    deviations: Mapping[str, str] = field(default_factory=dict)
    """The declared ones, by requirement."""
    limits: RunLimits = field(default_factory=RunLimits)
    work: CurrentWork = field(default_factory=CurrentWork)
    failed: set[str] = field(default_factory=set)
    """The requirements with a confirmed violation that is not declared."""
    runs: list[ScenarioRun] = field(default_factory=list)
    schedule_failures: list[ScenarioRun] = field(default_factory=list)
    """The shortest schedules that violated something, each named after the requirement."""
    statistics: RunStatistics | None = None
    """Of the random schedules, once they are played."""
    violated: set[str] = field(default_factory=set)
    confirmed: dict[str, frozenset[str]] = field(default_factory=dict)
    decisions: dict[str, bool] = field(default_factory=dict)
    subject: Subject = DEFAULT_PROTOCOL.subject
    find_origin: Callable[[ScenarioRun, str], Origin] | None = None
    """Where the trace of a run that violates a requirement is, and how it is played again; None for a target."""
    facts: TargetFacts | None = None
    """What was known about the target beforehand."""
    idle_findings: tuple[str, ...] = ()
    """What the target did while the kit was idle that it should not."""
    harm: tuple[Failure, ...] = ()
    """What brought the target down."""
    undecided: tuple[str, ...] = ()
    """What the run leaves open besides its scenarios and schedules."""
    provenance: Provenance | None = None
    pace_from: tuple[float, int] = (0.0, 0)
    """The seconds after which the present kind of work began, and how many schedules were done then."""
    waits: tuple[float, ...] = ()
    """How long the parts of the run that are left take, from the beginning of the present one."""
    is_remote: bool = False
    """Whether all scenarios are played side by side, and those that need a restart after the others."""
    scope: Scope | None = None
    """How much of the catalogue the run sets out to exercise; None for what the plan says."""
    kafka_release: str = ""
    """The release of Apache Kafka that the target's versions are those of, if it is known."""

    def start(self, target: Mapping[str, str]) -> None:
        """Emit the start of the run on a target with this description, which may have taken its time to start."""
        self.pace_from = (self.limits.elapsed_seconds(), 0)
        self.emit(
            RunStarted(
                target,
                self.plan.seed,
                tuple(requirement.id for requirement in self.selection.requirements),
                len(self.selection.scenarios),
                self.plan.schedules,
            )
        )

    def finish(self, target: Mapping[str, str], ended: Ending | None) -> Report:
        """Emit the end of the run and return its report; `ended` says how it ended early."""
        report = self.build_report(target, ended=ended)
        report = replace(
            report,
            facts=self.facts,
            idle_findings=self.idle_findings,
            provenance=self.provenance,
            unclassified=(*self.harm, *report.unclassified),
        )
        for requirement, run in self.failures_not_replayed():
            self.emit(ScheduleShrunk(run.scenario.name, requirement, run.header, run.events, confirmed=False))
        self.emit(RunFinished(report))
        return report

    def add_remarks(self, *remarks: str) -> None:
        """Add lines to what the report says of the target."""
        if self.facts is not None and remarks:
            self.facts = replace(self.facts, remarks=(*self.facts.remarks, *remarks))

    def tell_delays(self, worst: int) -> None:
        """Say of how many scenarios and schedules nothing is known because the kit itself was late, by at most `worst`
        milliseconds."""
        undecided = self.statistics.undecided.values() if self.statistics is not None else ()
        given_up = sum(TOO_BUSY in reason for reason in (*(run.blocked for run in self.runs), *undecided))
        if given_up:
            many = f"{given_up} plays were given up, for the kit itself was up to {worst} ms late"
            self.add_remarks(f"{TOO_BUSY}: {many}")

    def add_run(self, run: ScenarioRun) -> None:
        """Add a scenario that was played. How it decides the reference differences binds all later ones: a run that
        contradicts an earlier one is judged again with the earlier decisions."""
        sides = run.verdict.decisions.items()
        contrary = {name: self.decisions[name] for name, side in sides if self.contradicts(name, side)}
        if contrary:
            events = tuple(with_decisions(run.events, contrary))
            run = replace(run, events=events, verdict=self.subject.judge(run.header, events, NO_DECISIONS))
        self.decisions.update(run.verdict.decisions)
        self.runs.append(run)
        violated = run.verdict.violated
        self.emit(
            ScenarioFinished(
                run.scenario.name,
                run.scenario.requirements,
                run.header,
                run.events,
                run.verdict,
                violated,
                run.unsupported,
                run.blocked,
            )
        )
        self.report_progress(violated, run.scenario.name)

    def confirm_run(self, run: ScenarioRun) -> None:
        """Add the replay of a scenario: what it violates again is confirmed."""
        left = run.verdict.violated - confirmed_requirements(self.confirmed)
        self.confirmed[run.scenario.name] = run.verdict.violated
        for first in self.runs:
            if first.scenario.name == run.scenario.name:
                left -= self.emit_confirmed(first, left)

    def emit_confirmed(self, run: ScenarioRun, requirements: frozenset[str]) -> frozenset[str]:
        """Emit that the violations of these requirements in a run are confirmed, and return the requirements emitted:
        those that were asked for and that the run violates by itself."""
        asked = self.reportable_ids()
        causes = self.causes_among([*self.runs, *self.schedule_failures])
        shown = {
            each.requirement: each.result
            for each in reversed(causes.attributions_in(run))
            if each.requirement in requirements & asked and each.is_independent
        }
        for requirement, violation in sorted(shown.items()):
            origin = self.origin_of(run, requirement)
            failure = failure_in(run, violation, self.subject, origin, replayed=True)
            self.emit(ViolationConfirmed(requirement, run.scenario.name, failure))
        self.failed |= shown.keys() - self.deviations.keys()
        limit = self.plan.max_failures
        if limit is not None and len(self.failed) >= limit:
            self.limits.stop(f"{', '.join(sorted(self.failed))} failed: --max-failures {limit}")
        return frozenset(shown)

    def report_progress(self, violated: frozenset[str], name: str) -> None:
        """Emit the progress of the run after the scenario or schedule `name` violated the requirements `violated`."""
        self.violated |= violated
        played = {run.scenario.name for run in self.runs}
        schedules = self.statistics.schedules if self.statistics is not None else 0
        rest = [each for each in self.selection.scenarios if each.name not in played]
        self.emit(
            Progress(
                done := len(played) + schedules,
                len(self.selection.scenarios) + self.plan.schedules,
                seconds := self.limits.elapsed_seconds(),
                len(self.violated),
                name,
                waits=self.waits_left(rest, self.plan.schedules - schedules, seconds, done) if self.is_remote else None,
                pace_from=self.pace_from,
                heavy=self.plan.schedules if rest else 0,
            )
        )

    def waits_left(self, rest: Sequence[Scenario], schedules: int, seconds: float, done: int) -> float:
        """About how many seconds a run over the network still takes, for scenarios and schedules that are left."""
        waits = waits_of(rest, schedules)
        if len(waits) < len(self.waits):  # the next part begins
            self.pace_from = (seconds, done)
        if len(waits) != len(self.waits):
            self.waits = waits
        first, *others = self.waits or (0.0,)
        return max(first - (seconds - self.pace_from[0]), first / 8) + sum(others)

    def add_shrunk(self, requirement: str, run: ScenarioRun, again: frozenset[str]) -> None:
        """Add the schedule to report for a requirement, and what its replay violates.

        It may end early: what it is about it shows before.
        """
        run = replace(run, blocked="", not_shown="", misconduct="")
        self.confirmed[run.scenario.name] = again
        self.schedule_failures.append(run)
        confirmed = requirement in again
        self.emit(ScheduleShrunk(run.scenario.name, requirement, run.header, run.events, confirmed))
        self.emit_confirmed(run, again & {requirement})

    def requirements_to_shrink(self) -> tuple[list[str], list[str]]:
        """The unconfirmed requirements whose violations follow from no scenario's, and those where some may not.

        Those come first that the judge has more to say of. What a scenario shows by the same wrong answer, and a replay
        of it confirmed, is left out: its trace says no more.
        """
        runs = [run for _, run in self.failures_not_replayed()]
        causes = self.causes_among([*self.runs, *runs])
        confirmed, rules = confirmed_requirements(self.confirmed), self.subject.specification.rules
        places: dict[str, tuple[bool, bool, str]] = {}
        for run in runs:
            for each in causes.attributions_in(run):
                fault = each.result.violation
                if each.causes and each.causes <= confirmed and causes.is_shown_by_scenario(each.result):
                    continue
                is_vague = fault is not None and not is_specific(fault, rules)
                place = not each.is_independent, is_vague, each.requirement
                places[each.requirement] = min(place, places.get(each.requirement, place))
        wanted = sorted(places[each] for each in self.unconfirmed_requirements() if each in places)
        return [id for depends, _, id in wanted if not depends], [id for depends, _, id in wanted if depends]

    def neighbouring_scenarios(self) -> list[Scenario]:
        """The scenarios that were left out and may say more of what random schedules violate."""
        asked, families = self.reportable_ids(), set[str]()
        for requirement, candidates in self.statistics.candidate_failures.items() if self.statistics else ():
            for violation in violations_in(candidates[0].run.verdict) if requirement in asked else ():
                if violation.violation is not None:
                    rules = candidates[0].run.verdict.rules
                    evidence = ViolationOnPath(violation.requirement, violation.violation, rules)
                    families |= neighbouring_families(evidence, self.subject.specification.rules)
        left = self.selection.left_scenarios
        return [each for each in left if not families.isdisjoint(map(family_of, each.requirements))]

    def add_schedule(self, result: ScheduleResult) -> None:
        """Emit the result of a random schedule; the engine has counted it."""
        name = result.generated.schedule.name
        self.emit(ScheduleFinished(name, result.events, result.violated, result.undecided))
        self.report_progress(result.violated, name)

    def unconfirmed_requirements(self) -> list[str]:
        """The requirements asked for that random schedules violate and no replay has confirmed."""
        asked = self.reportable_ids()
        failing = self.statistics.candidate_failures.keys() if self.statistics is not None else set[str]()
        return sorted((failing & asked) - confirmed_requirements(self.confirmed))

    def reportable_ids(self) -> set[str]:
        """The requirements asked for, without those that depend on a setting that is not known; and `UNCLASSIFIED`."""
        asked = {requirement.id for requirement in self.selection.requirements}
        return asked - self.selection.not_told | {UNCLASSIFIED}

    def failures_not_replayed(self) -> list[tuple[str, ScenarioRun]]:
        """The requirements whose failing schedules a run was cut short before replaying, each with its shortest one."""
        if self.statistics is None:
            return []
        tried = {run.scenario.name for run in self.schedule_failures}
        left = [
            (requirement, self.statistics.candidate_failures[requirement][0].run_named_after(requirement))
            for requirement in self.unconfirmed_requirements()
        ]
        return [(requirement, run) for requirement, run in left if run.scenario.name not in tried]

    def contradicts(self, name: str, side: bool) -> bool:
        """An earlier run decided the reference difference `name` otherwise."""
        return name in self.decisions and self.decisions[name] != side

    def failures_to_replay(self) -> list[Scenario]:
        """The scenarios to replay next: the shortest that shows each violation not confirmed so far.

        Nothing is called a failure before it was seen twice; what a few scenarios do not show again is not. A crash
        is replayed even if its requirement is violated without one.
        """
        confirmed = confirmed_requirements(self.confirmed)
        causes = self.causes_among(self.runs)
        asked = self.reportable_ids() if self.subject.is_watched else None
        chosen: dict[str, Scenario] = {}
        candidates: list[tuple[str, bool, ScenarioRun]] = []
        for run in sorted(self.runs, key=lambda run: len(run.events)):
            independent = [each.result for each in causes.attributions_in(run) if each.is_independent]
            checked = {each.requirement for each in independent if each.is_checked}
            violated = {each.requirement for each in independent} - self.selection.not_told
            violated &= violated if asked is None else asked  # what was not asked for may be the cause of something
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

    def build_report(self, target: Mapping[str, str], *, ended: Ending | None = None) -> Report:
        """The report on everything played so far; `ended` says how the run ended early."""
        requirements = (each.id for each in self.selection.requirements)
        builder = ReportBuilder(
            requirements,
            self.selection.left_out,
            self.deviations,
            self.subject.specification,
            not_told=self.selection.not_told,
            kafka_release=self.kafka_release,
            are_scenarios_replayed=self.statistics is not None,
        )
        runs = [*self.runs, *self.schedule_failures, *(run for _, run in self.failures_not_replayed())]
        builder.add_runs(self.subject, runs, self.confirmed, self.origin_of)
        if ended is not None:
            played = {run.scenario.name for run in self.runs}
            unplayed = [each for each in self.selection.scenarios if each.name not in played]
            builder.note_unplayed((id for each in unplayed for id in each.requirements), ended)
        builder.undecided += self.undecided
        builder.totals.add_decisions(self.decisions)
        schedules, events = len(self.runs), sum(len(run.events) for run in self.runs)
        coverage, statistics = None, self.statistics if self.statistics is not None else RunStatistics()
        if self.plan.schedules:
            schedules += statistics.schedules
            events += statistics.events
        if self.subject.known_transitions is None:
            builder.add_watched_schedules(statistics.kept, statistics.undecided)
        else:
            verdicts = [run.verdict for run in self.runs]
            builder.rules += (verdict.rules for verdict in verdicts)
            if self.plan.schedules:
                builder.rules.append(statistics.rules)
                coverage = measure_coverage(statistics, self.coverage_goals(), verdicts)
        return builder.build(
            target=target,
            seed=self.plan.seed,
            schedules=schedules,
            events=events,
            seconds=self.limits.elapsed_seconds(),
            ended=ended,
            coverage=coverage,
            scope=self.plan.scope if self.scope is None else self.scope,
        )

    def coverage_goals(self) -> CoverageGoals:
        """What the coverage by random schedules is measured against."""
        guards = {name: rule.guard for name, rule in self.subject.specification.rules.items()}
        known = self.subject.known_transitions
        return CoverageGoals(known() if known is not None else frozenset(), guards)

    def causes_among(self, runs: Sequence[ScenarioRun]) -> RootCauses:
        """The causes of the violations of some runs."""
        chosen = self.selection
        requirements = {each.id: each for each in chosen.requirements}
        chargeable = chargeable_requirements(requirements, chosen.left_out, chosen.not_told)
        return find_root_causes(self.subject, runs, chargeable)

    def origin_of(self, run: ScenarioRun, requirement: str) -> Origin:
        """Where the trace of a run that violates a requirement is saved, and the command that runs it again."""
        if self.find_origin is not None:
            return self.find_origin(run, requirement)
        plan, name = self.plan, run.scenario.name
        target = [plan.target] if plan.target else []  # else the profile starts it
        profile = ["--profile", str(plan.profile)] if plan.profile is not None else []
        if plan.save is not None:
            path = str(trace_file(plan.save, name))
            return Origin(path, shlex.join([*plan.program, "replay", path, *target, *profile]))
        test = [*plan.program, "test", *target]
        ids = run.scenario.requirements
        if not ids:
            on_tour = run.scenario in self.selection.scenarios
            again = ["--tours", str(plan.tours)] if on_tour else ["--schedules", str(plan.schedules)]
            return Origin(name, shlex.join([*test, *again, "--seed", str(plan.seed), *profile]))
        asked = [requirement] if requirement in ids else [requirement, *ids]
        return Origin(name, shlex.join([*test, "--only", *asked, *profile]))


def add_tours(selection: Selection, settings: Settings, plan: Plan, protocol: ProtocolDescription) -> Selection:
    """The selection with the transition tours that the plan asks for, for a target with these settings."""
    if not plan.tours:
        return selection
    return selection.with_scenarios(protocol.make_tours(settings, plan.tours, plan.seed))


def order_scenarios(scenarios: Sequence[Scenario], seed: int) -> list[Scenario]:
    """The scenarios in the order of this seed; 0 keeps the order they are written in."""
    ordered = list(scenarios)
    if seed:
        random.Random(seed).shuffle(ordered)
    return ordered


# -- scenarios and their replays --------------------------------------------------------------------------------------

PlayAll = Callable[[Sequence[Scenario], str, Callable[[ScenarioRun], None]], Awaitable[None]]
"""Plays scenarios, an attempt of this name at each, and hands over each run."""


async def play_and_confirm(state: RunState, play: PlayAll, scenarios: Sequence[Scenario]) -> None:
    """Play scenarios, then replay what failed."""
    await play(scenarios, "run", state.add_run)
    await replay_failures(state, play)


async def replay_failures(state: RunState, play: PlayAll) -> None:
    """Replay the scenarios that failed until nothing is left to confirm."""
    while failed := state.failures_to_replay():
        await play(failed, "replay", state.confirm_run)


# -- random schedules -------------------------------------------------------------------------------------------------

PlayScenarios = Callable[[Sequence[Scenario]], Awaitable[None]]
"""Plays scenarios, adds their runs, and replays those that fail."""
WatchIdle = Callable[[str], Awaitable[None]]
"""Looks at a target that is idle, as the phrase says, such as "after the scenarios"."""
FinishScenarios = Callable[[], Awaitable[None]]
"""Waits for the scenarios that are played beside the random schedules, and replays those that fail."""


async def run_schedules(
    state: RunState,
    engine: ScheduleEngine,
    play: PlayScenarios,
    watch: WatchIdle | None = None,
    finish: FinishScenarios | None = None,
) -> None:
    """Play random schedules, then shrink and replay those that violate what no scenario violates.

    Before that, scenarios that were left out are asked what they say of it: `play` plays and replays them, once
    `finish` has waited for those under way. Whenever nothing is in flight, `watch` looks at the target.
    """
    state.statistics = engine.statistics
    state.work.stage = "random schedules"
    state.pace_from = (state.limits.elapsed_seconds(), len({run.scenario.name for run in state.runs}))
    await engine.run(state.add_schedule)
    if finish is not None:
        await finish()
    if watch is not None:
        await watch(f"after {state.plan.schedules} random schedules")
    neighbours = state.neighbouring_scenarios()
    if neighbours:
        state.work.stage = "scenarios beside what random schedules have found"
        state.selection = state.selection.with_scenarios(neighbours)
        await play(neighbours)
    has_shrunk = await shrink_failures(state, engine)
    if watch is not None and has_shrunk:
        await watch("after the random schedules were shrunk")


async def shrink_failures(state: RunState, engine: ScheduleEngine) -> bool:
    """Replay the schedules that violate what is not confirmed, and shrink them in the seconds that the plan gives;
    what was not shrunk to the end is noted in the report. Returns whether there were any.

    Violations that may follow from those of scenarios come last, and have half of the seconds that are left: most of
    them say nothing new.
    """
    independent, dependent = state.requirements_to_shrink()
    state.work.stage = "replays of random schedules"
    shrinking = state.plan.shrink_seconds
    confirming = None if shrinking is None else CONFIRMING_FACTOR * shrinking
    found = await engine.confirm_violations(independent, confirming)
    limits = RunLimits(state.plan.shrink_seconds)
    cut_short = await shrink_confirmed(state, engine, found, limits)
    left = [each for each in dependent if each in state.unconfirmed_requirements()]
    state.work.stage = "replays of random schedules"
    limits = RunLimits(limits.share(2))
    found = await engine.confirm_violations(left, limits.share(1))
    cut_short += await shrink_confirmed(state, engine, found, limits)
    cut_short = [each for each in cut_short if each in state.failed]
    if cut_short:
        state.add_remarks(
            f"no time to shrink the schedules further that violate {', '.join(cut_short)} (--shrink-seconds)"
        )
    return bool(independent or dependent)


async def shrink_confirmed(
    state: RunState, engine: ScheduleEngine, found: Mapping[str, Confirmation], limits: RunLimits
) -> list[str]:
    """Shrink the schedules of some requirements within the limits; returns those that were not shrunk to the end."""
    done, cut_short = 0, list[str]()
    groups = engine.group_for_shrinking(found)
    for number, group in enumerate(groups):
        left = [each for each in group if each in state.unconfirmed_requirements()]
        if left:
            doing, seconds = f"shrinking {', '.join(left)}", limits.elapsed_seconds()
            state.work.stage = f"shrinking schedules that violate {', '.join(left)}"
            state.emit(Progress(done, len(found), seconds, len(state.violated), doing, "violated requirements"))
            share = limits.share(len(groups) - number)
            shrunk = await asyncio.gather(*(engine.shrink_violation(each, found[each], share) for each in left))
            for requirement, one in zip(left, shrunk, strict=True):
                if requirement in state.unconfirmed_requirements():
                    state.add_shrunk(requirement, one.run, one.again)
                    cut_short += [] if one.is_minimal else [requirement]
        done += len(group)
    return cut_short
