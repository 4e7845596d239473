"""Caches shared by hunts: generated schedules, and the runs of the shipped coordinator with their verdicts.

A hunt counts the seconds of one core that it would have taken without caches.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import blake2b
from typing import ParamSpec, TypeVar

from fencepost.conformance.execution.play import JudgeFunction
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.conformance.schedules.batches import BATCH_SIZE
from fencepost.conformance.schedules.bench import Bench
from fencepost.conformance.schedules.falsify import ScheduleSource
from fencepost.conformance.schedules.protocol import TargetScheduleProtocol
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.zoo.classic.crashing_target import CrashingTarget
from fencepost.conformance.zoo.line_coverage import Line, trace_lines
from fencepost.conformance.zoo.timeouts import CpuLimitExceeded, cpu_limit
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

MAX_CACHED_BATCHES = 200
"""The number of batches in the caches: about as many as two hunts without a result take."""
MAX_PLAY_SECONDS = 20.0
"""The seconds of one core in which a schedule must be played and judged."""
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class CpuClock:
    """A clock of the seconds of one core that this process would have used without caches."""

    def __init__(self) -> None:
        self._saved = 0.0

    def __call__(self) -> float:
        return time.process_time() + self._saved

    def add_saved(self, seconds: float) -> None:
        """Add seconds that a cache saved."""
        self._saved += seconds

    def run_uncounted(
        self, work: Callable[Parameters, Result], *given: Parameters.args, **named: Parameters.kwargs
    ) -> Result:
        """Call `work`, and do not count the seconds it takes."""
        begun = time.process_time()
        result = work(*given, **named)
        self._saved -= time.process_time() - begun
        return result


@lru_cache(maxsize=MAX_CACHED_BATCHES)
def cached_schedules(
    source: Callable[[int], ScheduleSource], seed: int, batch: int
) -> tuple[tuple[Schedule, ...], float]:
    """The schedules of a batch, and the seconds it took to generate them."""
    begun = time.process_time()
    schedules = tuple(source(seed)(batch))
    return schedules, time.process_time() - begun


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
def reference_run(protocol: TargetScheduleProtocol, schedule: Schedule, settings: Settings) -> ReferenceRun:
    """Play a schedule on the shipped coordinator."""
    seconds = 0.0

    async def judge_timed(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
        nonlocal seconds
        begun = time.process_time()
        verdict = judge(header, events)
        seconds = time.process_time() - begun
        return verdict

    begun = time.process_time()
    played = Bench(protocol, partial(CrashingTarget, settings)).play(schedule, judge_timed)
    playing = time.process_time() - begun - seconds
    return ReferenceRun(
        trace_digest(played.header, played.events), played.verdict, played.verdict.violated, playing, seconds
    )


@lru_cache(maxsize=MAX_CACHED_BATCHES * BATCH_SIZE)
def reached_lines(protocol: TargetScheduleProtocol, schedule: Schedule, settings: Settings) -> frozenset[Line]:
    """The lines of the shipped coordinator that a schedule runs."""
    with trace_lines() as lines:
        Bench(protocol, partial(CrashingTarget, settings)).play(schedule, skip_judging)
    return frozenset(lines)


async def skip_judging(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
    """An empty verdict."""
    return TraceVerdict((), (), {}, events=len(events))


def trace_digest(header: Header, events: tuple[Event, ...]) -> bytes:
    """A digest of a trace; equal for equal traces."""
    return blake2b(repr((header, events)).encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedBench(Bench):
    """A bench for a coordinator that behaves mostly as the shipped one. It is faulty while `activate` is entered, in
    the lines `changed_lines` (None: unknown)."""

    settings: Settings
    activate: Callable[[], AbstractContextManager[object]]
    clock: CpuClock
    changed_lines: frozenset[Line] | None = None

    def play(self, schedule: Schedule, judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """As `Bench.play`, with the fault. Raises `CpuLimitExceeded` if that takes too long."""
        with self.activate(), cpu_limit(MAX_PLAY_SECONDS):
            return Bench.play(self, schedule, judge_trace)

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """As `Bench.violated_by`; empty if the judge takes too long."""
        return tolerate_timeout(lambda: Bench.violated_by(self, schedule))

    def violated_by_new(self, schedule: Schedule) -> frozenset[str]:
        """As `violated_by`, with the cached verdict if the trace equals that of the shipped coordinator.

        A schedule that does not run the changed lines is not played: its trace must be equal.
        """
        shipped = self.clock.run_uncounted(reference_run, self.protocol, schedule, self.settings)
        if self.changed_lines is not None and self.changed_lines.isdisjoint(
            self.clock.run_uncounted(reached_lines, self.protocol, schedule, self.settings)
        ):
            self.clock.add_saved(shipped.play_seconds + shipped.judge_seconds)
            return shipped.violated

        async def judging(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            if trace_digest(header, events) != shipped.digest:
                return judge(header, events)
            self.clock.add_saved(shipped.judge_seconds)
            return shipped.verdict

        return tolerate_timeout(lambda: self.play(schedule, judging).verdict.violated)


def tolerate_timeout(look: Callable[[], frozenset[str]]) -> frozenset[str]:
    """The result of `look`, empty if it takes too long. Raises `CpuLimitExceeded` if the coordinator hangs."""
    try:
        return look()
    except CpuLimitExceeded as exceeded:
        if exceeded.in_coordinator:
            raise
        return frozenset()
