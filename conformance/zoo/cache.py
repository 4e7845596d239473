"""What hunts have in common is done once: drawing schedules, and judging what the shipped coordinator answers to them.

A hunt counts the seconds of one core that it would have taken alone.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import blake2b
from typing import ParamSpec, TypeVar

from fencepost.conformance.analysis.root_cause import broken
from fencepost.conformance.execution.play import Judging, Played
from fencepost.conformance.schedules.falsify import CHUNK, Field, Source
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.zoo.crashing_target import MortalTarget
from fencepost.conformance.zoo.line_coverage import Line, traced
from fencepost.conformance.zoo.timeouts import Stuck, at_most
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

CHUNKS = 200
"""How many chunks are at hand: about what two hunts in vain take."""
PLAY_SECONDS = 20.0
"""How long a schedule may take to be played and judged."""
Given = ParamSpec("Given")
Result = TypeVar("Result")


class Watch:
    """Tells the seconds of one core that this process would have worked with nothing at hand."""

    def __init__(self) -> None:
        self._spared = 0.0

    def __call__(self) -> float:
        return time.process_time() + self._spared

    def pay(self, seconds: float) -> None:
        """Count what did not have to be done."""
        self._spared += seconds

    def free(self, work: Callable[Given, Result], *given: Given.args, **named: Given.kwargs) -> Result:
        """Do work that does not count."""
        begun = time.process_time()
        result = work(*given, **named)
        self._spared -= time.process_time() - begun
        return result


@lru_cache(maxsize=CHUNKS)
def drawn(source: Callable[[int], Source], seed: int, chunk: int) -> tuple[tuple[Schedule, ...], float]:
    """The schedules of a chunk, and how long it takes to draw them."""
    begun = time.process_time()
    schedules = tuple(source(seed)(chunk))
    return schedules, time.process_time() - begun


@dataclass(frozen=True, slots=True)
class Known:
    """What the shipped coordinator shows in a schedule: a digest of all that is seen, the verdict, what is broken, and
    how many seconds playing and judging take."""

    digest: bytes
    verdict: TraceVerdict
    broken: frozenset[str]
    playing: float
    judging: float


@lru_cache(maxsize=CHUNKS * CHUNK)
def known(schedule: Schedule, settings: Settings) -> Known:
    """Play a schedule on the shipped coordinator."""
    seconds = 0.0

    async def timed(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
        nonlocal seconds
        begun = time.process_time()
        verdict = judge(header, events)
        seconds = time.process_time() - begun
        return verdict

    begun = time.process_time()
    played = Field(partial(MortalTarget, settings)).perform(schedule, timed)
    playing = time.process_time() - begun - seconds
    return Known(digest(played.header, played.events), played.verdict, broken(played), playing, seconds)


@lru_cache(maxsize=CHUNKS * CHUNK)
def reached(schedule: Schedule, settings: Settings) -> frozenset[Line]:
    """The lines of the shipped coordinator that a schedule gets to."""
    with traced() as lines:
        Field(partial(MortalTarget, settings)).perform(schedule, unjudged)
    return frozenset(lines)


async def unjudged(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
    """No verdict at all."""
    return TraceVerdict((), (), {}, events=len(events))


def digest(header: Header, events: tuple[Event, ...]) -> bytes:
    """The same for traces that show the same."""
    return blake2b(repr((header, events)).encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Familiar(Field):
    """A field for coordinators that mostly do what the shipped one does. While `applied` lasts they are wrong, in lines
    that are `changed` (None: that cannot be told)."""

    settings: Settings
    applied: Callable[[], AbstractContextManager[object]]
    watch: Watch
    changed: frozenset[Line] | None = None

    def perform(self, schedule: Schedule, judging: Judging | None = None) -> Played:
        """As `Field.perform`, with what is wrong. Raises `Stuck` if that takes too long."""
        with self.applied(), at_most(PLAY_SECONDS):
            return Field.perform(self, schedule, judging)

    def broken(self, schedule: Schedule) -> frozenset[str]:
        """As `Field.broken`; nothing if what is seen has too many explanations to go through."""
        return patiently(lambda: Field.broken(self, schedule))

    def first_look(self, schedule: Schedule) -> frozenset[str]:
        """As `broken`; what is just as the shipped coordinator's is judged already, and what does not get to the
        changed lines is just that."""
        shipped = self.watch.free(known, schedule, self.settings)
        if self.changed is not None and self.changed.isdisjoint(self.watch.free(reached, schedule, self.settings)):
            self.watch.pay(shipped.playing + shipped.judging)
            return shipped.broken

        async def judging(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            if digest(header, events) != shipped.digest:
                return judge(header, events)
            self.watch.pay(shipped.judging)
            return shipped.verdict

        return patiently(lambda: broken(self.perform(schedule, judging)))


def patiently(look: Callable[[], frozenset[str]]) -> frozenset[str]:
    """What is seen; nothing if it takes too long, unless it is the coordinator that hangs: then `Stuck` is raised."""
    try:
        return look()
    except Stuck as stuck:
        if stuck.inside:
            raise
        return frozenset()
