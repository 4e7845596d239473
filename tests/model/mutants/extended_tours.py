"""Tours that go on: the shortest way to a transition, the transition, and then any few inputs.

A mutant may leave a state behind that only some inputs later shows what is wrong with it, when an ordinary tour is
elsewhere already. These tours depend on the shipped machine and on the function that is mutated, not on the mutant.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.explore.tours import Machine, are_alike
from tests.model.mutants.equivalence import MachineRecording, Pair, PairSearch, RecordedTransition, Relevant

MAX_FURTHER_INPUTS = 6
"""How many inputs at most."""


@dataclass(frozen=True, slots=True)
class ExtendedTourResult:
    """Where a mutant answers differently: after so many further inputs at most, in a tour over the transition of this
    number among those that run its function, at this step of the tour; numbers from 1."""

    further: int
    tour: int
    step: int


def find_by_extended_tour(
    recording: MachineRecording, mutant: Machine[Any, Any], relevant: Relevant, runs: Relevant
) -> ExtendedTourResult | None:
    """The fewest further inputs that show the mutant, and the first transition after which they do."""
    going_on = ExtendedTours(PairSearch(recording, mutant, relevant), paths_to_states(recording))
    chosen = [(here, move) for here, moves in enumerate(recording.moves) for move in moves if runs(move)]
    for further in range(1, MAX_FURTHER_INPUTS + 1):
        for number, (here, move) in enumerate(chosen, 1):
            step = going_on.step_of_difference(here, move, further)
            if step is not None:
                return ExtendedTourResult(further, number, step)
    return None


def paths_to_states(recording: MachineRecording) -> dict[int, list[RecordedTransition]]:
    """A shortest way to each state."""
    found, waiting = {0: list[RecordedTransition]()}, deque([0])
    while waiting:
        here = waiting.popleft()
        for move in recording.moves[here]:
            if move.to not in found:
                found[move.to] = [*found[here], move]
                waiting.append(move.to)
    return found


@dataclass(slots=True)
class ExtendedTours:
    """The mutant, taken to transitions and further."""

    search: PairSearch
    ways: dict[int, list[RecordedTransition]]
    arrived: dict[int, tuple[Pair | None, int]] = field(default_factory=dict)
    exhausted: dict[Any, int] = field(default_factory=dict)
    """How many inputs show nothing in two states that differ."""

    def step_of_difference(self, here: int, move: RecordedTransition, further: int) -> int | None:
        """The step at which some tour over the transition shows the mutant."""
        pair, steps = self.pair_at(here)
        if pair is not None:
            pair, steps = self.search.after(pair, move), steps + 1
        if pair is None:
            return steps
        more = None if pair.same else self.inputs_to_difference(pair, further)
        return None if more is None else steps + more

    def pair_at(self, here: int) -> tuple[Pair | None, int]:
        """The mutant beside the shipped state after the way to it, and the length of the way; of none, how far."""
        if here not in self.arrived:
            self.arrived[here] = self.take_path(self.ways[here])
        return self.arrived[here]

    def take_path(self, way: Sequence[RecordedTransition]) -> tuple[Pair | None, int]:
        """What comes of a way from the start."""
        machine = self.search.mutant
        pair = Pair(0, machine.initial, are_alike(machine.initial, self.search.recording.states[0]))
        for number, move in enumerate(way, 1):
            after = self.search.after(pair, move)
            if after is None:
                return None, number
            pair = after
        return pair, len(way)

    def inputs_to_difference(self, pair: Pair, inputs: int) -> int | None:
        """How many of so many inputs show that the two differ; None if none do."""
        key = (pair.shipped, pair.mutant)
        if inputs <= self.exhausted.get(key, 0):
            return None
        for after in self.successors(pair):
            if after is None:
                return 1
            more = None if after.same or inputs == 1 else self.inputs_to_difference(after, inputs - 1)
            if more is not None:
                return more + 1
        self.exhausted[key] = inputs
        return None

    def successors(self, pair: Pair) -> Iterator[Pair | None]:
        """What comes after any input."""
        for move in self.search.recording.moves[pair.shipped]:
            yield self.search.after(pair, move)
