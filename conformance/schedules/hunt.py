"""A hunt: draw schedules for a target in this process until one fails, see it fail again, and make it short."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from fencepost.adapters.target import Target
from fencepost.adapters.virtual import run_virtual
from fencepost.conformance.blame import broken, violations
from fencepost.conformance.execution import Played, play
from fencepost.conformance.scenario import Scenario
from fencepost.conformance.schedules.generation import Ground, draw
from fencepost.conformance.schedules.player import Playing
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.simpler import assembled, items, simpler
from fencepost.traces.events import Kind
from fencepost.traces.shrinking import shrink

CHUNK = 20
"""How many schedules are drawn at a time."""
MakeTarget = Callable[[], Target]


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
        return sum(event.kind is Kind.REQUEST and event.sequence <= last for event in self.played.events)


@dataclass(frozen=True, slots=True)
class Blank:
    """A hunt that found nothing, and how long it took."""

    schedules: int
    seconds: float


def hunt(
    make_target: MakeTarget, ground: Ground, seed: int, seconds: float, shrink_seconds: float = 10.0
) -> Quarry | Blank:
    """Look for a violation as long as `seconds`; a failure that does not come again is none."""
    begun = time.monotonic()
    played = 0
    for chunk in count():
        for drawn in draw(ground, seed, chunk, CHUNK):
            if time.monotonic() - begun > seconds:
                return Blank(played, time.monotonic() - begun)
            played += 1
            found = broken(perform(make_target, drawn.schedule))
            again = broken(perform(make_target, drawn.schedule)) if found else found
            if found & again:
                taken = time.monotonic() - begun
                return shortened(make_target, drawn.schedule, played, taken, shrink_seconds)
    raise AssertionError("chunks never end")


def shortened(make_target: MakeTarget, schedule: Schedule, played: int, taken: float, seconds: float) -> Quarry:
    """What was found, with its schedule made short."""
    requirement = violations(perform(make_target, schedule).verdict)[0].requirement
    deadline = time.monotonic() + seconds
    kept = shrink(
        items(schedule),
        lambda candidate: requirement in broken(perform(make_target, assembled(schedule, candidate))),
        simpler,
        lambda: time.monotonic() < deadline,
    )
    shortest = assembled(schedule, kept)
    return Quarry(requirement, played, taken, schedule, shortest, perform(make_target, shortest))


def perform(make_target: MakeTarget, schedule: Schedule) -> Played:
    """Play a schedule on a target of its own, on virtual time."""

    async def performance() -> Played:
        target = make_target()
        description = await target.open()
        try:
            scenario = Scenario(schedule.name, (), Playing(schedule))
            return await play(scenario, target, description, schedule.name, grace=0, restart=target.restart)
        finally:
            await target.close()

    return run_virtual(performance())
