"""Tours that go on: the shortest way to a transition, the transition, and then any few inputs.

A mutant may leave a state behind that only some inputs later shows what is wrong with it, when an ordinary tour is
elsewhere already. These tours depend on the shipped machine and on the function that is mutated, not on the mutant.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.explore.tours import Machine, alike
from tests.model.mutants.equivalence import Pair, Recording, Relevant, Search, Transition

FURTHEST = 6
"""How many inputs at most."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where a mutant answers differently: after so many further inputs at most, in a tour over the transition of this
    number among those that run its function, at this step of the tour; numbers from 1."""

    further: int
    tour: int
    step: int


def found_further(recording: Recording, mutant: Machine[Any, Any], relevant: Relevant, runs: Relevant) -> Found | None:
    """The fewest further inputs that show the mutant, and the first transition after which they do."""
    going_on = GoingOn(Search(recording, mutant, relevant), ways(recording))
    chosen = [(here, move) for here, moves in enumerate(recording.moves) for move in moves if runs(move)]
    for further in range(1, FURTHEST + 1):
        for number, (here, move) in enumerate(chosen, 1):
            step = going_on.shown(here, move, further)
            if step is not None:
                return Found(further, number, step)
    return None


def ways(recording: Recording) -> dict[int, list[Transition]]:
    """A shortest way to each state."""
    found, waiting = {0: list[Transition]()}, deque([0])
    while waiting:
        here = waiting.popleft()
        for move in recording.moves[here]:
            if move.to not in found:
                found[move.to] = [*found[here], move]
                waiting.append(move.to)
    return found


@dataclass(slots=True)
class GoingOn:
    """The mutant, taken to transitions and further."""

    search: Search
    ways: dict[int, list[Transition]]
    arrived: dict[int, tuple[Pair | None, int]] = field(default_factory=dict)
    in_vain: dict[Any, int] = field(default_factory=dict)
    """How many inputs show nothing in two states that differ."""

    def shown(self, here: int, move: Transition, further: int) -> int | None:
        """The step at which some tour over the transition shows the mutant."""
        pair, steps = self.arrival(here)
        if pair is not None:
            pair, steps = self.search.after(pair, move), steps + 1
        if pair is None:
            return steps
        more = None if pair.same else self.more(pair, further)
        return None if more is None else steps + more

    def arrival(self, here: int) -> tuple[Pair | None, int]:
        """The mutant beside the shipped state after the way to it, and the length of the way; of none, how far."""
        if here not in self.arrived:
            self.arrived[here] = self.gone(self.ways[here])
        return self.arrived[here]

    def gone(self, way: Sequence[Transition]) -> tuple[Pair | None, int]:
        """What comes of a way from the start."""
        machine = self.search.mutant
        pair = Pair(0, machine.initial, alike(machine.initial, self.search.recording.states[0]))
        for number, move in enumerate(way, 1):
            after = self.search.after(pair, move)
            if after is None:
                return None, number
            pair = after
        return pair, len(way)

    def more(self, pair: Pair, inputs: int) -> int | None:
        """How many of so many inputs show that the two differ; None if none do."""
        key = (pair.shipped, pair.mutant)
        if inputs <= self.in_vain.get(key, 0):
            return None
        for after in self.following(pair):
            if after is None:
                return 1
            more = None if after.same or inputs == 1 else self.more(after, inputs - 1)
            if more is not None:
                return more + 1
        self.in_vain[key] = inputs
        return None

    def following(self, pair: Pair) -> Iterator[Pair | None]:
        """What comes after any input."""
        for move in self.search.recording.moves[pair.shipped]:
            yield self.search.after(pair, move)
