"""Transition tours: schedules that take every transition of a small machine, each state under each of its inputs.

A machine is input-complete: every input of its universe is tried in every state, also those that no well-meaning
client sends there. A tour begins in the initial state; it is plain data, for whoever can play it.
"""

import math
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import networkx as nx

State = TypeVar("State", bound=Hashable)
Input = TypeVar("Input", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Reaction(Generic[State]):
    """The reaction of a machine to an input: the state after it, the rule that applied, its duration in ms, and
    the responses seen from outside."""

    state: State
    rule: str = ""
    milliseconds: int = 0
    responses: tuple[Hashable, ...] = ()


@dataclass(frozen=True, slots=True)
class Machine(Generic[State, Input]):
    """A machine. `react` is None where an input makes no sense or leads beyond the bounds; `follow` takes any input in
    any state, as it stands in a tour: what takes time takes that many milliseconds."""

    initial: State
    inputs: tuple[Input, ...]
    react: Callable[[State, Input], Reaction[State] | None]
    follow: Callable[[State, Input, int], Reaction[State]]


@dataclass(frozen=True, slots=True)
class TourStep(Generic[Input]):
    """One input of a tour, and what the model makes of it."""

    input: Input
    rule: str
    milliseconds: int = 0
    responses: tuple[Hashable, ...] = ()


@dataclass(frozen=True, slots=True)
class Tours(Generic[Input]):
    """Tours that together take every transition: of so many states, so many transitions; and what was beyond."""

    tours: tuple[tuple[TourStep[Input], ...], ...]
    states: int
    transitions: int
    out_of_bounds: int

    @property
    def steps(self) -> int:
        """How long all tours are together."""
        return sum(len(tour) for tour in self.tours)


def transition_graph(machine: Machine[State, Input]) -> tuple["nx.MultiDiGraph[int]", int]:
    """Every state that can be reached and every transition, and how many inputs were left out.

    States are numbered, 0 is the initial one; nodes have a `state` and edges a `step`.
    """
    import networkx as nx  # proofs use the machines, and need no graphs

    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    graph.add_node(0, state=machine.initial)
    numbers = {machine.initial: 0}
    waiting = deque([machine.initial])
    beyond = 0
    while waiting:
        state = waiting.popleft()
        here = numbers[state]
        for given in machine.inputs:
            reaction = machine.react(state, given)
            if reaction is None:
                beyond += 1
                continue
            there = here if reaction.state is state else numbers.setdefault(reaction.state, len(numbers))
            if there not in graph:
                graph.add_node(there, state=reaction.state)
                waiting.append(reaction.state)
            step = TourStep(given, reaction.rule, reaction.milliseconds, reaction.responses)
            graph.add_edge(here, there, step=step)
    return graph, beyond


def cover_transitions(
    machine: Machine[State, Input], max_steps: int = 200, max_milliseconds: float = math.inf
) -> Tours[Input]:
    """Tours over the whole machine, none much longer than `max_steps` steps or `max_milliseconds` milliseconds:
    first what stays in a state, then what leaves it.

    Where nothing is left to take, the tour goes on to the nearest state where there is.
    """
    graph, beyond = transition_graph(machine)
    left: dict[int, list[tuple[int, TourStep[Input]]]] = {}
    for node in graph:
        steps = [(to, data["step"]) for _, to, data in graph.out_edges(node, data=True)]
        left[node] = sorted(steps, key=lambda one, here=node: one[0] == here)  # type: ignore[misc]
    tours: list[tuple[TourStep[Input], ...]] = []
    while any(left.values()):
        tour: list[TourStep[Input]] = []
        node = passed = 0
        while len(tour) < max_steps and passed < max_milliseconds:
            if not left[node]:
                way = path_to_untaken(graph, node, left)
                if way is None:
                    break
                for to in way:
                    tour.append(next(iter(graph[node][to].values()))["step"])
                    node = to
            after, step = left[node].pop()
            tour.append(step)
            node = after
            passed += step.milliseconds
        tours.append(tuple(tour))
    return Tours(tuple(tours), graph.number_of_nodes(), graph.number_of_edges(), beyond)


def path_to_untaken(
    graph: "nx.MultiDiGraph[int]", start: int, left: Mapping[int, Sequence[tuple[int, TourStep[Input]]]]
) -> Sequence[int] | None:
    """The states on a shortest way to one where something is left to take."""
    before: dict[int, int] = {start: start}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        if left[node]:
            way: list[int] = []
            while node != start:
                way.append(node)
                node = before[node]
            return way[::-1]
        for to in graph.successors(node):
            if to not in before:
                before[to] = node
                waiting.append(to)
    return None


def first_difference(machine: Machine[State, Input], tour: Sequence[TourStep[Input]]) -> int | None:
    """The first step of a tour at which this machine answers, or goes by a rule, otherwise than the tour says."""
    state = machine.initial
    for number, step in enumerate(tour):
        reaction = machine.follow(state, step.input, step.milliseconds)
        if not are_alike((reaction.rule, reaction.responses), (step.rule, step.responses)):
            return number
        state = reaction.state
    return None


def are_alike(one: object, other: object) -> bool:
    """Equal, or at least written alike: values of two copies of a class are never equal."""
    return one == other or repr(one) == repr(other)
