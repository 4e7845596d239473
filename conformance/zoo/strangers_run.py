"""Runs on many strangers, each in a process of its own that ends, whatever the kit does in it."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from fencepost.conformance.events import Progress
from fencepost.conformance.run.workers import MAX_MEMORY_BYTES, WorkerPool
from fencepost.conformance.zoo.fault import Side
from fencepost.conformance.zoo.registry import stranger_kind
from fencepost.conformance.zoo.strangers import (
    Judged,
    KitMistake,
    Stranger,
    StrangerKind,
    StrangerOutcome,
    count_kit_mistakes,
    draw_stranger,
    hold_against,
    kit_mistakes,
    shrink_stranger,
)

LOOK_SECONDS = 0.5
"""How often a process is looked at whose time may be up."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a run may take before it counts as one that does not end: seconds of one core, and seconds at all."""

    cpu: int = 300
    wall: float = 3_600.0


def play_within(stranger: Stranger, cpu: int) -> StrangerOutcome:
    """Play a run on a stranger; the system ends this process once it has taken so many seconds of one core."""
    import resource  # Windows has none

    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + cpu + 1, hard))
    return stranger_kind(stranger.side).play(stranger)


@dataclass(slots=True)
class Slot:
    """A process that plays one run after the other, and is replaced when it dies or takes too long."""

    pool: WorkerPool = field(default_factory=lambda: WorkerPool(1, MAX_MEMORY_BYTES))
    stranger: Stranger | None = None
    future: Future[StrangerOutcome] | None = None
    begun: float = 0.0

    def begin(self, stranger: Stranger, bounds: Bounds) -> None:
        """Begin a run."""
        self.stranger, self.begun = stranger, time.monotonic()
        self.future = self.pool.executor.submit(play_within, stranger, bounds.cpu)

    def take(self, bounds: Bounds) -> StrangerOutcome | None:
        """The outcome, if there is one by now."""
        assert self.stranger is not None and self.future is not None
        seconds = time.monotonic() - self.begun
        if not self.future.done() and seconds < bounds.wall:
            return None
        try:
            outcome = self.future.result(timeout=0)
        except BrokenProcessPool:
            outcome = self.replace_process(f"no end within {bounds.cpu} s of one core")
        except TimeoutError:
            outcome = self.replace_process(f"no end within {bounds.wall:g} s")
        except Exception as error:  # of the kit, which is what is measured
            outcome = StrangerOutcome(self.stranger, f"{type(error).__name__}: {error}")
        self.stranger = self.future = None
        return outcome

    def replace_process(self, reason: str) -> StrangerOutcome:
        """Begin with a new process, as the run did not end for this reason."""
        assert self.stranger is not None
        self.pool.end()
        self.pool = WorkerPool(1, MAX_MEMORY_BYTES)
        return StrangerOutcome(self.stranger, reason, seconds=time.monotonic() - self.begun)


def play_strangers(strangers: Sequence[Stranger], workers: int, bounds: Bounds) -> Iterator[StrangerOutcome]:
    """Play a run on each stranger, so many at a time, and yield the outcomes as they come."""
    slots = [Slot() for _ in range(max(min(workers, len(strangers)), 1))]
    left = iter(strangers)
    try:
        while True:
            for slot in slots:
                if slot.future is None and (stranger := next(left, None)) is not None:
                    slot.begin(stranger, bounds)
            busy = [slot for slot in slots if slot.future is not None]
            if not busy:
                return
            wait([slot.future for slot in busy if slot.future], LOOK_SECONDS, FIRST_COMPLETED)
            for slot in busy:
                outcome = slot.take(bounds)
                if outcome is not None:
                    yield outcome
    finally:
        for slot in slots:
            slot.pool.end()


@dataclass(slots=True)
class Measurement:
    """A measurement of so many strangers of a seed; `numbers` choose some of them."""

    seed: int
    strangers: int
    schedules: int
    workers: int
    numbers: tuple[int, ...] = ()
    is_remote: bool = False
    side: Side = Side.COORDINATOR
    bounds: Bounds = Bounds()
    judged: list[Judged] = field(default_factory=list)
    smallest: dict[KitMistake, Stranger] = field(default_factory=dict)
    is_cut_short: bool = False

    def run(self, show: Callable[[Progress], None], shrink: int = 0) -> None:
        """Measure, and shrink the strangers of so many kinds of failures of the kit, the most frequent ones first.
        Ctrl-C ends it early, with what was measured so far."""
        kind = stranger_kind(self.side)
        numbers = self.numbers or range(self.strangers)
        drawn = [draw_stranger(kind, self.seed, each, self.schedules, self.is_remote) for each in numbers]
        begun = time.monotonic()
        try:
            for outcome in play_strangers(drawn, self.workers, self.bounds):
                self.judged.append(hold_against(outcome))
                wrong = sum(bool(each.outside or each.outcome.ended) for each in self.judged)
                done, seconds = len(self.judged), time.monotonic() - begun
                show(Progress(done, len(drawn), seconds, wrong, str(outcome.stranger.number), unit="strangers"))
            self.judged.sort(key=lambda each: each.outcome.stranger.number)
            self.shrink(kind, show, shrink)
        except KeyboardInterrupt:
            self.is_cut_short = True

    def shrink(self, kind: StrangerKind, show: Callable[[Progress], None], kinds: int) -> None:
        """Shrink the strangers of the most frequent kinds of failures."""
        begun = time.monotonic()
        found = count_kit_mistakes(self.judged).most_common(kinds)
        for done, (failure, _) in enumerate(found, 1):
            show(Progress(done - 1, len(found), time.monotonic() - begun, current=str(failure), unit="kinds"))
            showing = [each.outcome.stranger for each in self.judged if failure in kit_mistakes(each)]
            simplest = min(showing, key=lambda each: len(each.faults) + len(each.differences))

            def shows(stranger: Stranger, failure: KitMistake = failure) -> bool:
                outcomes = play_strangers([stranger], 1, self.bounds)
                return any(failure in kit_mistakes(hold_against(outcome)) for outcome in outcomes)

            self.smallest[failure] = shrink_stranger(kind, simplest, failure.about, shows)
