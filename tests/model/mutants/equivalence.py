"""The shipped machine and a mutant of it side by side: every state that both can reach, under every input.

A transition that runs no code of the mutated function is the same in both, and so need not be taken again.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fencepost.model.explore.tours import Machine, TourStep, are_alike, cover_transitions, transition_graph
from tests.model.mutants.call_sites import Calls, Observer

MAX_DIFFERING_PAIRS = 20_000
"""How many pairs of states that differ are looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedTransition:
    """A transition of the shipped machine: where it leads, and which functions of the core it runs."""

    number: int
    step: TourStep[Any]
    to: int
    runs: frozenset[str]


@dataclass(slots=True)
class MachineRecording:
    """The shipped machine, every transition taken once. An input that leads beyond the bounds is left out."""

    machine: Machine[Any, Any]
    states: list[Any]
    moves: list[list[RecordedTransition]]
    calls: Mapping[str, Calls]
    """Of the functions of the core that can be called again."""
    tours: list[list[RecordedTransition]] = field(default_factory=list)

    @property
    def transitions(self) -> int:
        """How many there are."""
        return sum(len(moves) for moves in self.moves)


def record_machine(machine: Machine[Any, Any]) -> MachineRecording:
    """Take every transition of the shipped machine once."""
    graph, _ = transition_graph(machine)
    states = [graph.nodes[number]["state"] for number in range(len(graph))]
    observer, count, moves = Observer(), 0, list[list[RecordedTransition]]()
    for here, state in enumerate(states):
        moves.append([])
        for _, to, data in graph.out_edges(here, data=True):
            step = data["step"]
            take = partial(machine.follow, state, step.input, step.milliseconds)
            moves[here].append(RecordedTransition(count, step, to, observer.functions_run(count, take)))
            count += 1
    return MachineRecording(machine, states, moves, observer.calls())


def recorded_tours(recording: MachineRecording) -> list[list[RecordedTransition]]:
    """The tours of the machine; after them those that try its inputs in the opposite order."""
    if not recording.tours:
        machine = recording.machine
        ways = [{move.step.input: move for move in moves} for moves in recording.moves]
        for one in (machine, replace(machine, inputs=machine.inputs[::-1])):
            recording.tours += [tour_transitions(ways, tour) for tour in cover_transitions(one).tours]
    return recording.tours


def tour_transitions(
    ways: Sequence[Mapping[Any, RecordedTransition]], tour: Sequence[TourStep[Any]]
) -> list[RecordedTransition]:
    """The recorded transitions that the tour takes from state 0 on; `ways` holds those of each state by input."""
    here, steps = 0, list[RecordedTransition]()
    for step in tour:
        move = ways[here][step.input]
        steps.append(move)
        here = move.to
    return steps


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of it: how many transitions were taken, whether all there are, and the inputs up to a difference."""

    taken: int
    complete: bool
    shortest: tuple[Any, ...] | None = None

    @property
    def differs(self) -> bool:
        """A different answer was found."""
        return self.shortest is not None


Relevant = Callable[[RecordedTransition], bool]
"""Whether a transition may be another one in the mutant."""


def compare(recording: MachineRecording, mutant: Machine[Any, Any], relevant: Relevant) -> Comparison:
    """Look for the shortest sequence of inputs from the start to which the two answer differently."""
    search = PairSearch(recording, mutant, relevant)
    return search.run()


@dataclass(slots=True)
class Pair:
    """A state of the shipped machine and the mutant's beside it, and how the two came about."""

    shipped: int
    mutant: Any
    same: bool
    before: "Pair | None" = None
    by: Any = None

    def way(self, last: Any) -> tuple[Any, ...]:
        """The inputs from the start to here, and one more."""
        found, pair = [last], self
        while pair.before is not None:
            found.append(pair.by)
            pair = pair.before
        return tuple(reversed(found))


@dataclass(slots=True)
class PairSearch:
    """A breadth-first search over pairs."""

    recording: MachineRecording
    mutant: Machine[Any, Any]
    relevant: Relevant
    seen: set[Any] = field(default_factory=set)
    differing_pairs: int = 0
    taken: int = 0

    def run(self) -> Comparison:
        """Until a difference is found, or nothing is left."""
        start = self.mutant.initial
        waiting = deque([Pair(0, start, are_alike(start, self.recording.machine.initial))])
        self.seen.add(0)
        while waiting:
            pair = waiting.popleft()
            for move in self.recording.moves[pair.shipped]:
                if pair.same and move.to in self.seen and not self.relevant(move):
                    continue
                after = self.after(pair, move)
                if after is None:
                    return Comparison(self.taken, False, pair.way(move.step.input))
                key = after.shipped if after.same else (after.shipped, after.mutant)
                if key not in self.seen:
                    self.seen.add(key)
                    self.differing_pairs += not after.same
                    waiting.append(after)
            if self.differing_pairs > MAX_DIFFERING_PAIRS:
                return Comparison(self.taken, False)
        return Comparison(self.taken, True)

    def after(self, pair: Pair, move: RecordedTransition) -> Pair | None:
        """The pair after a move; None if the mutant answers differently, or not at all."""
        if pair.same and not self.relevant(move):
            return Pair(move.to, self.recording.states[move.to], True, pair, move.step.input)
        self.taken += 1
        try:
            reaction = self.mutant.follow(pair.mutant, move.step.input, move.step.milliseconds)
        except Exception:
            return None
        if not are_alike((reaction.rule, reaction.responses), (move.step.rule, move.step.responses)):
            return None
        same = reaction.state == self.recording.states[move.to]
        return Pair(move.to, reaction.state, same, pair, move.step.input)


def find_by_tour(recording: MachineRecording, mutant: Machine[Any, Any], relevant: Relevant) -> tuple[int, int] | None:
    """The number of the first tour in which the mutant answers differently, and of the step; both from 1."""
    for number, tour in enumerate(recorded_tours(recording), 1):
        step = first_differing_step(recording, tour, mutant, relevant)
        if step is not None:
            return number, step
    return None


def first_differing_step(
    recording: MachineRecording, tour: list[RecordedTransition], mutant: Machine[Any, Any], relevant: Relevant
) -> int | None:
    """The number of the step of one tour at which the mutant answers differently."""
    search = PairSearch(recording, mutant, relevant)
    pair = Pair(0, mutant.initial, are_alike(mutant.initial, recording.machine.initial))
    for number, move in enumerate(tour, 1):
        after = search.after(pair, move)
        if after is None:
            return number
        pair = after
        pair.before = None
    return None


def runs_function(function: str) -> Relevant:
    """The transition runs the function."""
    return lambda move: function in move.runs


def any_transition(_: RecordedTransition) -> bool:
    """True: every transition is relevant to the mutant."""
    return True
