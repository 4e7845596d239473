"""How faults of coordinators are played: on the bundled coordinator, in this process and on virtual time.

The runs of the shipped coordinator are cached with their verdicts, and what cannot differ from them is not played
again. A hunt counts the seconds of one core that it would have taken without caches.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from hashlib import blake2b
from typing import TypeAlias

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.analysis.root_cause import RootCauses
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.scenarios.tours import tour_scenarios, with_target_timeouts
from fencepost.conformance.classic.schedules.protocol import ClassicSchedules
from fencepost.conformance.classic.zoo.baselines import plain_hypothesis, random_walks
from fencepost.conformance.classic.zoo.bugs.environments import PLAIN, CrashingTarget, Environment
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.run.play import (
    Bench,
    Counterexample,
    JudgeFunction,
    NewTarget,
    ScheduleSource,
    schedule_source,
    target_bench,
)
from fencepost.conformance.run.schedule import BATCH_SIZE, Schedule, ScheduleProtocol, ScheduleScope
from fencepost.conformance.subject import Scenario, ScenarioRun, required_capabilities
from fencepost.conformance.zoo.fault import Fault
from fencepost.conformance.zoo.hunt import MAX_CACHED_BATCHES, BenchWithFault, Stand
from fencepost.conformance.zoo.measuring import (
    CpuClock,
    CpuLimitExceeded,
    Line,
    cpu_limit,
    lines_changed_by,
    trace_lines,
)
from fencepost.conformance.zoo.strategies import HYPOTHESIS, REMARKS, SCENARIOS, SCHEDULES, TOURS, WALK
from fencepost.model.classic.explore.coordinator_inputs import Universe, joinings
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict, violations_in

CoordinatorFault: TypeAlias = Fault[Environment]
BUNDLED_SCHEDULES = ClassicSchedules(ScheduleScope(BUNDLED_SETTINGS))
"""The kit's own schedules for the bundled coordinator, whole or faulty."""
SCHEDULE_SOURCES: Mapping[str, Callable[[int], ScheduleSource]] = {
    SCHEDULES: partial(schedule_source, BUNDLED_SCHEDULES),
    HYPOTHESIS: plain_hypothesis,
    WALK: random_walks,
}
"""Sources of schedules for a seed, by strategy."""
TOUR_UNIVERSES = (Universe(1, 2, joinings(2)), Universe(2, 1, joinings(1)))
"""The universes of the tours: one member with two subscriptions in two generations, and two members."""
UNAVAILABLE = frozenset({"second-node", "graceful-move"})
"""Capabilities of scenarios that are about nodes, not about a coordinator and its bugs."""
MAX_PLAY_SECONDS = 20.0
"""The seconds of one core in which a schedule must be played and judged."""
MAX_SECONDS_IN_ENVIRONMENT = 5.0
"""The seconds of one core in which a schedule in an environment is judged: some traces of clients take too long."""
MAX_NAMING_SECONDS = 20.0
HANGS = "the coordinator hangs"


# -- scenarios and tours ---------------------------------------------------------------------------------------------


def scenarios_for(strategy: str) -> Iterable[Scenario]:
    """The scenarios that an in-process target supports, or the tours."""
    if strategy != TOURS:
        yield from (one for one in ALL if not required_capabilities(one) & UNAVAILABLE)
        return
    for universe in TOUR_UNIVERSES:
        yield from tours_of(universe)


@cache
def tours_of(universe: Universe) -> tuple[Scenario, ...]:
    """The tours over a universe."""
    return tuple(tour_scenarios(with_target_timeouts(BUNDLED_SETTINGS, universe)))


def make_run_in(environment: Environment) -> BundledRun:
    """A run on coordinators in an environment that is active in this process."""
    bundled = BundledRun(Plan(BUNDLED), Profile(grace=environment.grace))
    bundled.make_target = environment.make_target
    return bundled


def play_scenario_in(environment: Environment, scenario: Scenario, attempt: str = "run") -> ScenarioRun:
    """The run of a scenario on a coordinator in an environment that is active in this process."""
    return run_virtual(make_run_in(environment).play(scenario, attempt))


def can_start(fault: CoordinatorFault) -> bool:
    """Whether the faulty coordinator can be loaded and started."""

    async def start() -> None:
        target = fault.setting.make_target(BUNDLED_SETTINGS)
        await target.open()
        await target.close()

    try:
        with fault.activate():
            run_virtual(start())
    except Exception:  # a mutant may raise anything
        return False
    return True


def name_violation(fault: CoordinatorFault, found: Counterexample) -> str:
    """The requirement that a scenario violates with the same fault and that says most of what was found."""
    violation = next(each for each in violations_in(found.run.verdict) if each.requirement == found.requirement)
    try:
        with cpu_limit(MAX_NAMING_SECONDS):
            return RootCauses([*runs_of_scenarios(fault), found.run]).name_cause(violation, found.run)
    except CpuLimitExceeded:
        return found.requirement


@lru_cache(maxsize=2)
def runs_of_scenarios(fault: CoordinatorFault) -> tuple[ScenarioRun, ...]:
    """The runs of all scenarios with a fault."""
    with fault.activate():
        return tuple(play_scenario_in(fault.setting, each, "naming") for each in scenarios_for(SCENARIOS))


# -- schedules -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """A run of a schedule on the shipped coordinator: the digest of its trace, the verdict, the violated requirements,
    and the seconds that playing and judging take."""

    digest: bytes
    verdict: TraceVerdict
    violated: frozenset[str]
    play_seconds: float
    judge_seconds: float


@lru_cache(maxsize=MAX_CACHED_BATCHES * BATCH_SIZE)
def reference_run(protocol: ScheduleProtocol, schedule: Schedule, settings: Settings) -> ReferenceRun:
    """Play a schedule on the shipped coordinator."""
    seconds = 0.0

    async def judge_timed(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
        nonlocal seconds
        begun = time.process_time()
        verdict = judge(header, events)
        seconds = time.process_time() - begun
        return verdict

    begun = time.process_time()
    played = target_bench(protocol, partial(CrashingTarget, settings)).play(schedule, judge_timed)
    playing = time.process_time() - begun - seconds
    return ReferenceRun(
        trace_digest(played.header, played.events), played.verdict, played.verdict.violated, playing, seconds
    )


@lru_cache(maxsize=MAX_CACHED_BATCHES * BATCH_SIZE)
def reached_lines(protocol: ScheduleProtocol, schedule: Schedule, settings: Settings) -> frozenset[Line]:
    """The lines of the shipped coordinator that a schedule runs."""
    with trace_lines() as lines:
        target_bench(protocol, partial(CrashingTarget, settings)).play(schedule, skip_judging)
    return frozenset(lines)


async def skip_judging(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
    """An empty verdict."""
    return TraceVerdict((), (), {}, events=len(events))


def trace_digest(header: Header, events: tuple[Event, ...]) -> bytes:
    """A digest of a trace; equal for equal traces."""
    return blake2b(repr((header, events)).encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedCoordinator(BenchWithFault):
    """A bench for a coordinator that behaves mostly as the shipped one: it has a fault, which is in the lines
    `changed_lines` (None: unknown)."""

    settings: Settings
    clock: CpuClock
    changed_lines: frozenset[Line] | None = None

    def play(self, schedule: Schedule, judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """As `BenchWithFault.play`. Raises `CpuLimitExceeded` if that takes too long."""
        with cpu_limit(MAX_PLAY_SECONDS):
            return BenchWithFault.play(self, schedule, judge_trace)

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """As `Bench.violated_by`, without what the shipped coordinator violates; empty if the judge takes too long."""
        found = tolerate_timeout(lambda: Bench.violated_by(self, schedule))
        return found - self.shipped_run(schedule).violated if found else found

    def violated_by_new(self, schedule: Schedule) -> frozenset[str]:
        """As `violated_by`, without judging a trace that equals that of the shipped coordinator.

        A schedule that does not run the changed lines is not played: its trace must be equal.
        """
        shipped = self.shipped_run(schedule)
        if self.changed_lines is not None and self.changed_lines.isdisjoint(
            self.clock.run_uncounted(reached_lines, self.protocol, schedule, self.settings)
        ):
            self.clock.add_saved(shipped.play_seconds + shipped.judge_seconds)
            return frozenset()

        async def judging(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            if trace_digest(header, events) != shipped.digest:
                return judge(header, events)
            self.clock.add_saved(shipped.judge_seconds)
            return shipped.verdict

        return tolerate_timeout(lambda: self.play(schedule, judging).verdict.violated - shipped.violated)

    def shipped_run(self, schedule: Schedule) -> ReferenceRun:
        """The run of the schedule without the fault."""
        return self.clock.run_uncounted(reference_run, self.protocol, schedule, self.settings)


def tolerate_timeout(look: Callable[[], frozenset[str]]) -> frozenset[str]:
    """The result of `look`, empty if it takes too long. Raises `CpuLimitExceeded` if the coordinator hangs."""
    try:
        return look()
    except CpuLimitExceeded as exceeded:
        if exceeded.in_coordinator:
            raise
        return frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCoordinator(BenchWithFault):
    """A bench for a fault that needs an environment, in which the judge may take too long."""

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """As `BenchWithFault.violated_by`; empty if it takes too long."""
        try:
            with cpu_limit(MAX_SECONDS_IN_ENVIRONMENT):
                return BenchWithFault.violated_by(self, schedule)
        except CpuLimitExceeded:
            return frozenset()


def make_bench(fault: CoordinatorFault, clock: CpuClock, settings: Settings = BUNDLED_SETTINGS) -> Bench:
    """A bench on which a coordinator with a fault is hunted."""
    make_player = partial(NewTarget, partial(fault.setting.make_target, settings), fault.setting.grace)
    if fault.setting is not PLAIN:
        return ComparedCoordinator(BUNDLED_SCHEDULES, make_player, fault=fault, shipped=Environment.activate)
    lines = lines_changed_by(fault.mutant) if fault.mutant is not None else None
    return CachedCoordinator(
        BUNDLED_SCHEDULES, make_player, settings=settings, fault=fault, clock=clock, changed_lines=lines
    )


COORDINATORS: Stand[Environment] = Stand(
    strategies=(SCHEDULES, SCENARIOS, TOURS, REMARKS),
    plays=scenarios_for,
    play=play_scenario_in,
    shipped=Environment.activate,
    bench=make_bench,
    sources=SCHEDULE_SOURCES,
    describe_hang=lambda exceeded: HANGS if exceeded.in_coordinator else "",
    can_start=can_start,
    name=name_violation,
)
"""How faults of coordinators are hunted."""
