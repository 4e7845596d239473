"""One hunt: one fault by one strategy, until a violation is found or time is up.

A hunt plays schedules, scenarios or tours with the fault and without it. What is played, and how, a `Stand` says; a
hunt knows no protocol. All seconds are those of one core, so that other load on the machine makes no difference.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from fencepost.conformance.run.play import (
    Bench,
    Counterexample,
    JudgeFunction,
    ScheduleSource,
    count_requests,
    find_counterexample,
)
from fencepost.conformance.run.schedule import Schedule
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.conformance.zoo.fault import Fault
from fencepost.conformance.zoo.measuring import CpuClock, CpuLimitExceeded, cpu_limit
from fencepost.conformance.zoo.strategies import REMARKS
from fencepost.traces.verdict import CheckStatus, violations_in

SHRINK_SECONDS = 6.0
HANG_SECONDS = 30.0
"""The seconds beyond its limit after which a hunt ends because what it plays hangs."""
MAX_CACHED_BATCHES = 200
"""The number of batches in the caches: about as many as two hunts without a result take."""
DOES_NOT_START = "the coordinator does not start"


@dataclass(frozen=True, slots=True)
class HuntTask:
    """A hunt to run: the name of the fault, the strategy, the seed, and limits in seconds for finding and for
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


Setting = TypeVar("Setting")


class UnusualCount(NamedTuple):
    """A requirement that is kept in an unusual way, and the number of requests that show it."""

    requirement: str
    requests: int


def remarks_in(run: ScenarioRun) -> frozenset[UnusualCount]:
    """The requirements that a run keeps in an unusual way."""
    marks = (mark for mark in run.verdict.check_results if mark.status is CheckStatus.UNUSUAL)
    return frozenset(UnusualCount(mark.requirement, count_requests(run, mark.sequence)) for mark in marks)


@dataclass(frozen=True, slots=True, eq=False)
class Stand(Generic[Setting]):
    """How faults of one kind of subject are played.

    `plays` gives what a strategy plays, and `play` plays it in a setting with whatever is active in this process;
    `remarks` are those of the run. `shipped` is a setting without a fault. `bench` plays schedules
    with a fault, of `sources` by strategy and seed. `can_start` says whether what has the fault starts at all, `name`
    by which requirement a counterexample is named, and `describe_hang` what an exceeded limit shows, "" if nothing.
    `stuck` is what is found of a scenario that cannot go on with a fault, "" if that shows nothing.
    """

    strategies: tuple[str, ...]
    plays: Callable[[str], Iterable[Scenario]]
    play: Callable[[Setting, Scenario, str], ScenarioRun]
    shipped: Callable[[Setting], AbstractContextManager[object]]
    bench: Callable[[Fault[Setting], CpuClock], Bench]
    sources: Mapping[str, Callable[[int], ScheduleSource]]
    describe_hang: Callable[[CpuLimitExceeded], str]
    can_start: Callable[[Fault[Setting]], bool] = field(default=lambda fault: True)
    name: Callable[[Fault[Setting], Counterexample], str] = field(default=lambda fault, found: found.requirement)
    remarks: Callable[[ScenarioRun], frozenset[UnusualCount]] = remarks_in
    stuck: str = ""

    def run_with(self, fault: Fault[Setting], play: Scenario, attempt: str = "run") -> ScenarioRun:
        """The run of a scenario with the fault, which is out again when the run is looked at."""
        with fault.activate():
            return self.play(fault.setting, play, attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchWithFault(Bench):
    """A bench whose subject has a fault while it is played with. What it violates without the fault does not count;
    `shipped` prepares its setting for that."""

    fault: Fault[Any]
    shipped: Callable[[Any], AbstractContextManager[object]] = nullcontext

    def play(self, schedule: Schedule, judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """As `Bench.play`, with the fault."""
        with self.fault.activate():
            return Bench.play(self, schedule, judge_trace)

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """As `Bench.violated_by`, without what is violated without the fault as well."""
        found = Bench.violated_by(self, schedule)
        if found:
            with self.shipped(self.fault.setting):
                found -= Bench(self.protocol, self.make_player, self.judge).violated_by(schedule)
        return found


def hunt_fault(stand: Stand[Any], task: HuntTask, fault: Fault[Any]) -> HuntResult:
    """Run a hunt. What does not start or hangs is found by that."""
    begun = time.process_time()
    try:
        with cpu_limit(task.seconds + task.shrink + HANG_SECONDS):
            if not stand.can_start(fault):
                return HuntResult(task, DOES_NOT_START, 1, time.process_time() - begun)
            if task.strategy in stand.sources:
                return hunt_by_schedules(task, fault, stand)
            if task.strategy == REMARKS:
                return hunt_by_remarks(task, fault, stand)
            return hunt_by_playing(task, fault, stand)
    except CpuLimitExceeded as exceeded:
        return HuntResult(task, stand.describe_hang(exceeded), 1, time.process_time() - begun)


def hunt_by_schedules(task: HuntTask, fault: Fault[Any], stand: Stand[Any]) -> HuntResult:
    """Play schedules until one shows a violation twice."""
    clock, batch = CpuClock(), task.chunk

    def source(number: int) -> Iterable[Schedule]:
        nonlocal batch
        batch = task.chunk + number
        schedules, seconds = clock.run_uncounted(cached_schedules, stand.sources[task.strategy], task.seed, batch)
        clock.add_saved(seconds)
        return schedules

    found = find_counterexample(stand.bench(fault, clock), source, task.seconds, task.shrink, clock)
    if not isinstance(found, Counterexample):
        return HuntResult(task, "", found.schedules, found.seconds)
    moves = tuple(str(move) for move in found.shrunk.moves)
    requirement = stand.name(fault, found) if task.shrink and fault.mutant is None else found.requirement
    return HuntResult(task, requirement, found.schedules, found.seconds, found.requests, moves, batch)


@lru_cache(maxsize=MAX_CACHED_BATCHES)
def cached_schedules(
    source: Callable[[int], ScheduleSource], seed: int, batch: int
) -> tuple[tuple[Schedule, ...], float]:
    """The schedules of a batch, and the seconds it took to generate them."""
    begun = time.process_time()
    schedules = tuple(source(seed)(batch))
    return schedules, time.process_time() - begun


def hunt_by_playing(task: HuntTask, fault: Fault[Any], stand: Stand[Any]) -> HuntResult:
    """Play the scenarios or the tours until one shows a violation twice, or else one that gets stuck twice."""
    begun, tried, stuck = time.process_time(), 0, ""
    for tried, play in plays_of(task, stand):
        run = stand.run_with(fault, play)
        if found := run.verdict.violated:
            found &= stand.run_with(fault, play, "replay").verdict.violated
            if found and (found := found - usual_run(stand, fault.setting, play).verdict.violated):
                named = [each for each in violations_in(run.verdict) if each.requirement in found]
                first = min(named, key=lambda each: (each.requirement not in fault.breaks, each.sequence))
                requests = count_requests(run, first.sequence)
                seconds = time.process_time() - begun
                return HuntResult(task, first.requirement, tried, seconds, requests, (play.name,))
        if stand.stuck and not stuck and run.blocked and not usual_run(stand, fault.setting, play).blocked:
            # a report calls it inconclusive, and never conformant
            stuck = play.name if stand.run_with(fault, play, "replay").blocked else ""
        if time.process_time() - begun > task.seconds:
            break
    seconds = time.process_time() - begun
    return HuntResult(task, stand.stuck if stuck else "", tried, seconds, 0, (stuck,) if stuck else ())


def plays_of(task: HuntTask, stand: Stand[Any]) -> Iterator[tuple[int, Scenario]]:
    """What a hunt plays, numbered from 1 on."""
    return enumerate((each for each in stand.plays(task.strategy) if task.only in ("", each.name)), 1)


@lru_cache(maxsize=2_000)
def usual_run(stand: Stand[Setting], setting: Setting, play: Scenario) -> ScenarioRun:
    """The run of a scenario without a fault."""
    with stand.shipped(setting):
        return stand.play(setting, play, "run")


def hunt_by_remarks(task: HuntTask, fault: Fault[Any], stand: Stand[Any]) -> HuntResult:
    """Play the scenarios until time is up, and find the first remark that comes twice and is not made without the
    fault: one that forbids the fault if there is one, else the one after the fewest requests."""
    begun, tried = time.process_time(), 0
    for tried, play in plays_of(task, stand):
        remarks = stand.remarks(stand.run_with(fault, play))
        again = stand.remarks(stand.run_with(fault, play)) if remarks else remarks
        news = remarks & again
        if news and (news := news - stand.remarks(usual_run(stand, fault.setting, play))):
            first = min(news, key=lambda each: (each.requirement not in fault.breaks, each.requests, each))
            seconds = time.process_time() - begun
            return HuntResult(task, first.requirement, tried, seconds, first.requests, (play.name,))
        if time.process_time() - begun > task.seconds:
            break
    return HuntResult(task, "", tried, time.process_time() - begun)
