"""A hunt: draw schedules for a target in this process until one fails, see it fail again, and make it short."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count

from fencepost.adapters.target import Target
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.analysis.root_cause import broken, violations
from fencepost.conformance.execution.play import Judging, Played, play
from fencepost.conformance.schedules.classic.generation import Ground, draw
from fencepost.conformance.schedules.classic.interpreter import scenario_of
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.simplify import assembled, items, simpler
from fencepost.traces.events import Kind
from fencepost.traces.shrinker import shrink

CHUNK = 20
"""How many schedules are drawn at a time."""
MakeTarget = Callable[[], Target]
Source = Callable[[int], Iterable[Schedule]]
"""Gives schedules by the number of their chunk, for ever."""


@dataclass(frozen=True, slots=True)
class Quarry:
    """What a hunt found: the requirement that is broken, after how many schedules and seconds, and the schedule as
    it was drawn and made short, each as played."""

    requirement: str
    schedules: int
    seconds: float
    drawn: Schedule
    shortest: Schedule
    played: Played

    @property
    def requests(self) -> int:
        """How many requests it takes, up to the wrong answer."""
        last = min(each.sequence for each in violations(self.played.verdict) if each.requirement == self.requirement)
        return requests_until(self.played, last)


def requests_until(played: Played, sequence: int) -> int:
    """How many requests there are up to one of them."""
    return sum(event.kind is Kind.REQUEST and event.sequence <= sequence for event in played.events)


@dataclass(frozen=True, slots=True)
class Blank:
    """A hunt that found nothing, and how long it took."""

    schedules: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Field:
    """Where a hunt takes place: a target for every schedule, whose timers may be `grace` milliseconds late."""

    make_target: MakeTarget
    grace: int = 0

    def perform(self, schedule: Schedule, judging: Judging | None = None) -> Played:
        """See `perform`."""
        return perform(self.make_target, schedule, self.grace, judging)

    def broken(self, schedule: Schedule) -> frozenset[str]:
        """The requirements that a schedule shows broken."""
        return broken(self.perform(schedule))

    def first_look(self, schedule: Schedule) -> frozenset[str]:
        """As `broken`, of a schedule that was just drawn."""
        return self.broken(schedule)


def drawn_from(ground: Ground, seed: int) -> Source:
    """The kit's own schedules."""
    return lambda chunk: (each.schedule for each in draw(ground, seed, chunk, CHUNK))


def hunt(
    make_target: MakeTarget, ground: Ground, seed: int, seconds: float, shrink_seconds: float = 10.0
) -> Quarry | Blank:
    """Look for a violation by the kit's own schedules, on a target without grace."""
    return search(Field(make_target), drawn_from(ground, seed), seconds, shrink_seconds)


def search(
    field: Field,
    source: Source,
    seconds: float,
    shrink_seconds: float = 10.0,
    clock: Callable[[], float] = time.monotonic,
) -> Quarry | Blank:
    """Look for a violation as long as `seconds` on this clock; a failure that does not come again is none."""
    begun = clock()
    played = 0
    for chunk in count():
        for schedule in source(chunk):
            if clock() - begun > seconds:
                return Blank(played, clock() - begun)
            played += 1
            found = field.first_look(schedule)
            again = field.broken(schedule) if found else found
            if found & again:
                return shortened(field, schedule, played, clock() - begun, shrink_seconds, clock)
    raise AssertionError("chunks never end")


def shortened(
    field: Field, schedule: Schedule, played: int, taken: float, seconds: float, clock: Callable[[], float]
) -> Quarry:
    """What was found, with its schedule made short."""
    deadline = clock() + seconds
    found = field.broken(schedule)
    named = (each.requirement for each in violations(field.perform(schedule).verdict))
    requirement = next(each for each in named if each in found)
    kept = shrink(
        items(schedule),
        lambda candidate: requirement in field.broken(assembled(schedule, candidate)),
        simpler,
        lambda: clock() < deadline,
    )
    shortest = assembled(schedule, kept)
    return Quarry(requirement, played, taken, schedule, shortest, field.perform(shortest))


def perform(make_target: MakeTarget, schedule: Schedule, grace: int = 0, judging: Judging | None = None) -> Played:
    """Play a schedule on a target of its own, on virtual time, and judge it: here, unless `judging` does."""

    async def performance() -> Played:
        target = make_target()
        description = await target.open()
        try:
            return await play(
                scenario_of(schedule),
                target,
                description,
                schedule.name,
                grace=grace,
                restart=target.restart,
                judging=judging,
            )
        finally:
            await target.close()

    return run_virtual(performance())
