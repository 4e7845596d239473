"""One hunt: one faulty coordinator by one strategy, until a violation is found or time is up.

All seconds are those of one core, so that other load on the machine makes no difference.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import NamedTuple

from fencepost.adapters.target import Target
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.analysis.root_cause import RootCauses
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.scenario.scenario import Scenario, ScenarioRun
from fencepost.conformance.scenario.selection import required_capabilities
from fencepost.conformance.scenarios.classic import ALL
from fencepost.conformance.scenarios.classic.tours import tour_scenarios, with_target_timeouts
from fencepost.conformance.schedules.falsify import (
    Counterexample,
    ScheduleSource,
    count_requests,
    find_counterexample,
    schedule_source,
)
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.zoo.cache import CpuClock, cached_schedules
from fencepost.conformance.zoo.classic.baselines import plain_hypothesis, random_walks
from fencepost.conformance.zoo.classic.crashing_target import CrashingTarget
from fencepost.conformance.zoo.faulty import BUNDLED_SCHEDULES, FaultyCoordinator, MakeTarget, faulty_coordinator
from fencepost.conformance.zoo.strategies import HYPOTHESIS, REMARKS, SCENARIOS, SCHEDULES, WALK
from fencepost.conformance.zoo.timeouts import CpuLimitExceeded, cpu_limit
from fencepost.model.explore.classic.coordinator_inputs import Universe, joinings
from fencepost.traces.verdict import CheckStatus, violations_in

SCHEDULE_SOURCES: Mapping[str, Callable[[int], ScheduleSource]] = {
    SCHEDULES: partial(schedule_source, BUNDLED_SCHEDULES),
    HYPOTHESIS: plain_hypothesis,
    WALK: random_walks,
}
"""Sources of schedules for a seed, by strategy."""
TOUR_UNIVERSES = (Universe(1, 2, joinings(2)), Universe(2, 1, joinings(1)))
"""The universes of the tours: one member with two subscriptions in two generations, and two members."""
SHRINK_SECONDS = 6.0
MAX_NAMING_SECONDS = 20.0
HANG_SECONDS = 30.0
"""The seconds beyond its limit after which a hunt ends because the coordinator hangs."""
UNAVAILABLE = frozenset({"second-node", "graceful-move"})
"""Capabilities of scenarios that are about nodes, not about a coordinator and its bugs."""
HANGS, DOES_NOT_START = "the coordinator hangs", "the coordinator does not start"


@dataclass(frozen=True, slots=True)
class HuntTask:
    """A hunt to run: the faulty coordinator's name, the strategy, the seed, and limits in seconds for finding and for
    shrinking.

    To repeat a recorded hunt quickly, it starts at the batch `chunk`, or plays the scenario `only`.
    """

    name: str
    strategy: str
    seed: int = 0
    seconds: float = 60.0
    shrink: float = SHRINK_SECONDS
    chunk: int = 0
    only: str = ""


@dataclass(frozen=True, slots=True)
class HuntResult:
    """The result of a hunt: the violated requirement ("" if none was found), the schedules and seconds it took, the
    fewest requests that show it, the shortest schedule (its moves) or the name of the scenario in `found_with`, and the
    batch (`chunk`) of the schedule."""

    task: HuntTask
    requirement: str
    schedules: int
    seconds: float
    requests: int = 0
    found_with: tuple[str, ...] = ()
    chunk: int = 0

    @property
    def is_found(self) -> bool:
        """A violation was found."""
        return bool(self.requirement)


def run_hunt(task: HuntTask) -> HuntResult:
    """Run a hunt. A coordinator that does not start or hangs is found by that."""
    begun, coordinator = time.process_time(), faulty_coordinator(task.name)

    try:
        with cpu_limit(task.seconds + task.shrink + HANG_SECONDS):
            if not can_start(coordinator):
                return HuntResult(task, DOES_NOT_START, 1, time.process_time() - begun)
            if task.strategy in SCHEDULE_SOURCES:
                return hunt_by_schedules(task, coordinator)
            return (
                hunt_by_remarks(task, coordinator) if task.strategy == REMARKS else hunt_by_playing(task, coordinator)
            )
    except CpuLimitExceeded as exceeded:
        return HuntResult(task, HANGS if exceeded.in_coordinator else "", 1, time.process_time() - begun)


def can_start(coordinator: FaultyCoordinator) -> bool:
    """The faulty coordinator can be loaded and started."""

    async def start(make_target: MakeTarget) -> None:
        target = make_target(BUNDLED_SETTINGS)
        await target.open()
        await target.close()

    try:
        with coordinator.activate() as make_target:
            run_virtual(start(make_target))
    except Exception:  # a mutant may raise anything
        return False
    return True


def hunt_by_schedules(task: HuntTask, coordinator: FaultyCoordinator) -> HuntResult:
    """Play schedules until one shows a violation twice."""
    clock, batch = CpuClock(), task.chunk

    def source(number: int) -> Iterable[Schedule]:
        nonlocal batch
        batch = task.chunk + number
        schedules, seconds = clock.run_uncounted(cached_schedules, SCHEDULE_SOURCES[task.strategy], task.seed, batch)
        clock.add_saved(seconds)
        return schedules

    with coordinator.bench(clock) as bench:
        found = find_counterexample(bench, source, task.seconds, task.shrink, clock)
    if not isinstance(found, Counterexample):
        return HuntResult(task, "", found.schedules, found.seconds)
    moves = tuple(str(move) for move in found.shrunk.moves)
    requirement = name_violation(task, found) if task.shrink and coordinator.bug is not None else found.requirement
    return HuntResult(task, requirement, found.schedules, found.seconds, found.requests, moves, batch)


def name_violation(task: HuntTask, found: Counterexample) -> str:
    """The requirement that a scenario violates on the same coordinator and that says most of what was found."""
    violation = next(each for each in violations_in(found.run.verdict) if each.requirement == found.requirement)
    try:
        with cpu_limit(MAX_NAMING_SECONDS):
            return RootCauses([*runs_of_scenarios(task.name), found.run]).name_cause(violation, found.run)
    except CpuLimitExceeded:
        return found.requirement


@lru_cache(maxsize=2)
def runs_of_scenarios(name: str) -> tuple[ScenarioRun, ...]:
    """The runs of all scenarios on a faulty coordinator."""
    coordinator = faulty_coordinator(name)
    with coordinator.activate() as make_target:
        bundled = bundled_run_on(make_target, coordinator.grace)
        return tuple(run_virtual(bundled.play(play, "naming")) for play in scenarios_for(SCENARIOS))


def hunt_by_playing(task: HuntTask, coordinator: FaultyCoordinator) -> HuntResult:
    """Play the scenarios or the tours until one shows a violation twice."""
    begun, tried = time.process_time(), 0
    with coordinator.activate() as make_target:
        bundled = bundled_run_on(make_target, coordinator.grace)
        for play in (each for each in scenarios_for(task.strategy) if task.only in ("", each.name)):
            tried += 1
            first = run_virtual(bundled.play(play, "run"))
            found = first.verdict.violated
            if found and (again := found & run_virtual(bundled.play(play, "replay")).verdict.violated):
                return result_of_run(task, coordinator, play, first, again, tried, time.process_time() - begun)
            if time.process_time() - begun > task.seconds:
                break
    return HuntResult(task, "", tried, time.process_time() - begun)


def hunt_by_remarks(task: HuntTask, coordinator: FaultyCoordinator) -> HuntResult:
    """Play the scenarios until time is up, and find the first remark that comes twice and is not made about the shipped
    coordinator."""
    begun, tried = time.process_time(), 0
    seen: list[tuple[int, Scenario, frozenset[UnusualCount]]] = []
    with coordinator.activate() as make_target:
        for play in (each for each in scenarios_for(SCENARIOS) if task.only in ("", each.name)):
            tried += 1
            remarks = unusual_remarks(make_target, coordinator.grace, play)
            if remarks and (remarks := remarks & unusual_remarks(make_target, coordinator.grace, play)):
                seen.append((tried, play, remarks))
            if time.process_time() - begun > task.seconds:
                break
    for number, play, remarks in seen:
        if news := remarks - unusual_remarks(CrashingTarget, coordinator.grace, play):
            first = min(news, key=lambda each: each.requests)
            return HuntResult(
                task, first.requirement, number, time.process_time() - begun, first.requests, (play.name,)
            )
    return HuntResult(task, "", tried, time.process_time() - begun)


class UnusualCount(NamedTuple):
    """A requirement that is kept in an unusual way, and the number of requests that show it."""

    requirement: str
    requests: int


def unusual_remarks(make_target: MakeTarget, grace: int, play: Scenario) -> frozenset[UnusualCount]:
    """The requirements that a run of a scenario keeps in an unusual way."""
    played = run_virtual(bundled_run_on(make_target, grace).play(play, "run"))
    marks = (mark for mark in played.verdict.check_results if mark.status is CheckStatus.UNUSUAL)
    return frozenset(UnusualCount(mark.requirement, count_requests(played, mark.sequence)) for mark in marks)


def bundled_run_on(make_target: MakeTarget, grace: int) -> BundledRun:
    """A bundled run that plays scenarios on targets of this function."""
    bundled = BundledRun(Plan(BUNDLED), Profile(grace=grace))
    target: Callable[..., Target] = make_target
    bundled.make_target = target
    return bundled


def scenarios_for(strategy: str) -> Iterable[Scenario]:
    """The scenarios that an in-process target supports, or the tours."""
    if strategy == SCENARIOS:
        yield from (one for one in ALL if not required_capabilities(one) & UNAVAILABLE)
        return
    for universe in TOUR_UNIVERSES:
        yield from tours_of(universe)


@cache
def tours_of(universe: Universe) -> tuple[Scenario, ...]:
    """The tours over a universe."""
    return tuple(tour_scenarios(with_target_timeouts(BUNDLED_SETTINGS, universe)))


def result_of_run(
    task: HuntTask,
    coordinator: FaultyCoordinator,
    play: Scenario,
    run: ScenarioRun,
    again: frozenset[str],
    tried: int,
    seconds: float,
) -> HuntResult:
    """The result of a hunt that a run ends, with a violated requirement that forbids the bug if there is one, else the
    first violated one."""
    named = [each for each in violations_in(run.verdict) if each.requirement in again]
    first = min(named, key=lambda each: (each.requirement not in coordinator.breaks, each.sequence))
    return HuntResult(task, first.requirement, tried, seconds, count_requests(run, first.sequence), (play.name,))
