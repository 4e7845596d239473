"""The shipped machine and a mutant of it side by side: every state that both can reach, under every input.

The core is pure. If a mutant of a function gives what the function gave, of every call that a transition makes, the
transition is the same. So the mutant is tried on each different call, and then only the transitions that make one
which it answers differently need to be taken again. A function that is given an iterator, or names that it does not
know beforehand, cannot be called again: its mutants take all transitions that run it.
"""

import inspect
import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from types import CodeType, FrameType
from typing import Any

from fencepost.model.explore.tours import Machine, TourStep, are_alike, cover_transitions, transition_graph
from tests.model.mutants.core import CORE

# -- different calls of the core's functions ---------------------------------------------------------------------------


VARIADIC, KEYWORDS = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS
Arguments = tuple[Any, ...]


@dataclass(slots=True, eq=False)
class Calls:
    """The different calls of a function, with their results, and the numbers of the transitions that make each."""

    repeatable: bool = True
    results: list[tuple[Arguments, Any]] = field(default_factory=list)
    makers: list["array[int]"] = field(default_factory=list)
    _numbers: dict[Any, int] = field(default_factory=dict)

    def add_call(self, given: Arguments, result: Any, transition: int) -> None:
        """The transition makes this call."""
        if not self.repeatable:
            return
        if any(isinstance(one, Iterator) for one in given):
            self.give_up()
            return
        try:
            number = self._numbers.setdefault((given, tuple(map(type, given))), len(self.results))
        except TypeError:  # A list, or a symbolic value.
            self.give_up()
            return
        if number == len(self.results):
            self.results.append((given, result))
            self.makers.append(array("I"))
        makers = self.makers[number]
        if not makers or makers[-1] != transition:
            makers.append(transition)

    def give_up(self) -> None:
        """There is a call that cannot be repeated."""
        self.repeatable = False
        for kept in (self.results, self.makers, self._numbers):
            kept.clear()

    def changed_transitions(self, mutant: Callable[..., Any]) -> frozenset[int]:
        """The numbers of the transitions that make a call to which the mutant gives something else."""
        changed = (
            makers for call, makers in zip(self.results, self.makers, strict=True) if not returns_same(mutant, *call)
        )
        return frozenset().union(*changed)


@dataclass(slots=True, eq=False)
class ObservedCode:
    """A piece of code of the core: the function that it stands in, and its calls if it is the function itself."""

    name: str
    arguments: Callable[[FrameType], Arguments] | None = None
    calls: Calls = field(default_factory=Calls)


@dataclass(slots=True, eq=False)
class Observer:
    """Notes what runs of the core while transitions are taken."""

    _codes: dict[CodeType, ObservedCode | None] = field(default_factory=dict)
    _sets: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)

    def functions_run(self, transition: int, take: Callable[[], object]) -> frozenset[str]:
        """The functions of the core that a transition runs, as `module.function`; their calls are noted."""
        names, unfinished, codes = set[str](), list[Arguments](), self._codes

        def note(frame: FrameType, event: str, result: Any) -> None:
            if event == "call":
                code = frame.f_code
                known = codes[code] if code in codes else self.observe_code(frame)
                if known is not None:
                    names.add(known.name)
                    if known.arguments is not None:
                        unfinished.append(known.arguments(frame))
            elif event == "return":
                known = codes.get(frame.f_code)
                if known is not None and known.arguments is not None:
                    known.calls.add_call(unfinished.pop(), result, transition)

        sys.setprofile(note)
        try:
            take()
        finally:
            sys.setprofile(None)
        found = frozenset(names)
        return self._sets.setdefault(found, found)

    def observe_code(self, frame: FrameType) -> ObservedCode | None:
        """What there is to note of a piece of code that is run for the first time; nothing outside the core."""
        code, found = frame.f_code, None
        if frame.f_globals.get("__name__") in CORE:
            name = name_of(code)
            inner = code.co_qualname != name.partition(".")[2]
            found = ObservedCode(name, None if inner or code.co_flags & KEYWORDS else argument_reader(code))
        self._codes[code] = found
        return found

    def calls(self) -> dict[str, Calls]:
        """The calls of each function that can be called again."""
        seen = [one for one in self._codes.values() if one is not None and one.arguments is not None]
        return {one.name: one.calls for one in seen if one.calls.repeatable}


def name_of(code: CodeType) -> str:
    """`module.function` of a piece of code; what stands inside a function is the function's."""
    module = code.co_filename.rpartition("/")[2].removesuffix(".py")
    return f"{module}.{code.co_qualname.partition('.<locals>')[0]}"


def argument_reader(code: CodeType) -> Callable[[FrameType], Arguments]:
    """What a function was called with, in the order of its parameters."""
    names = code.co_varnames[: code.co_argcount]
    rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & VARIADIC else None

    def arguments(frame: FrameType) -> Arguments:
        values = frame.f_locals
        return (*[values[name] for name in names], *(values[rest] if rest else ()))

    return arguments


def returns_same(mutant: Callable[..., Any], given: Arguments, expected: Any) -> bool:
    """The mutant gives this of the arguments, of the same kind: 1 is not true."""
    try:
        return strictly_equal(mutant(*given), expected)
    except Exception:
        return False


def strictly_equal(one: Any, other: Any) -> bool:
    """Equal, and of equal kinds, or copies of one, all the way down."""
    if one is other:
        return True
    if type(one) is not type(other) and type(one).__qualname__ != type(other).__qualname__:
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(strictly_equal, one, other))
    if is_dataclass(one):
        return all(strictly_equal(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    return bool(one == other)


# -- every state of both -----------------------------------------------------------------------------------------------


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


# -- tours that go on: the shortest way to a transition, the transition, and then any few inputs -----------------------


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
