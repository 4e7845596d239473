"""A series: as many schedules as were asked for, round after round; then what failed is seen again and made short."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fencepost.conformance.analysis.root_cause import broken
from fencepost.conformance.execution.play import Played
from fencepost.conformance.execution.saving import decided
from fencepost.conformance.schedules.classic.generation import Ground
from fencepost.conformance.schedules.guidance import Order
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.simplify import Item, assembled, items, simpler
from fencepost.conformance.schedules.statistics import Outcome, Suspect, Tally
from fencepost.traces.shrinker import shrinking

CHUNK = 20
"""How many schedules are drawn at a time."""


class Series(ABC):
    """The random schedules of a run. What is specific to a target is left to subclasses."""

    chunks = 2
    """How many chunks make a round; what they show steers the next one."""
    shrink_seconds = 10.0
    """How long the schedule of one violation is made shorter."""

    def __init__(self, ground: Ground, seed: int, count: int, decisions: dict[str, bool]) -> None:
        self.ground = ground
        self.seed = seed
        self.count = count
        self.decisions = tuple(sorted(decisions.items()))
        self.tally = Tally()

    async def run(self, kept: Callable[[Outcome], None]) -> None:
        """Draw and play them all; `kept` is told of each that was judged."""

        def keep(outcome: Outcome) -> None:
            self.tally.keep(outcome)
            kept(outcome)

        await self.play(self.rounds(), keep)

    def rounds(self) -> Iterator[list[Order]]:
        """What to draw in each round, as far as is known by then."""
        sizes = [min(CHUNK, self.count - begin) for begin in range(0, self.count, CHUNK)]
        numbered = list(enumerate(sizes))
        for begin in range(0, len(numbered), self.chunks):
            yield [self.order(chunk, size) for chunk, size in numbered[begin : begin + self.chunks]]

    def order(self, chunk: int, size: int) -> Order:
        """What to draw next, as far as is known by now."""
        return Order(self.ground, self.seed, chunk, size, frozenset(self.tally.transitions), self.decisions)

    async def confirm(self, requirement: str) -> tuple[Played, frozenset[str]]:
        """What shows this requirement broken, as short as it gets, and what broke when it was replayed.

        A schedule that does not fail again is not made short, and then nothing broke.
        """
        suspects = self.tally.suspects[requirement]
        for suspect in suspects:
            again = broken((await self.replay([suspect.schedule]))[0])
            if requirement not in again:
                continue
            short = await self.shortened(suspect.schedule, requirement)
            first, second = [(await self.replay([short]))[0] for _ in range(2)]
            if requirement in broken(first) & broken(second):
                return self.saying(Suspect(short, first).under(requirement)), broken(second)
            return self.saying(suspect.under(requirement)), again
        return self.saying(suspects[0].under(requirement)), frozenset()

    def saying(self, played: Played) -> Played:
        """What was played, with the reference differences it was judged by told in its trace."""
        return replace(played, events=tuple(decided(played.events, dict(self.decisions))))

    async def shortened(self, schedule: Schedule, requirement: str) -> Schedule:
        """The schedule as short as it gets in the time allowed, with the same requirement broken."""
        deadline = time.monotonic() + self.shrink_seconds
        steps = shrinking(items(schedule), simpler)
        best: Sequence[Item] = items(schedule)
        try:
            batch = next(steps)
            while time.monotonic() < deadline:
                found = await self.failing([assembled(schedule, each) for each in batch], requirement, deadline)
                if found:
                    best = batch[found[0]]
                batch = steps.send(found)
        except StopIteration as done:
            best = done.value
        return assembled(schedule, best)

    async def failing(self, candidates: Sequence[Schedule], requirement: str, deadline: float) -> list[int]:
        """The places of those that break the requirement; the first is enough."""
        for place, candidate in enumerate(candidates):
            if time.monotonic() > deadline:
                break
            if requirement in broken((await self.replay([candidate]))[0]):
                return [place]
        return []

    @abstractmethod
    async def play(self, rounds: Iterator[list[Order]], keep: Callable[[Outcome], None]) -> None:
        """Draw and play them, round after round."""

    @abstractmethod
    async def replay(self, schedules: Sequence[Schedule]) -> list[Played]:
        """Play some schedules once more."""
