"""Transition tours: schedules that take every transition of a small machine, each state under each of its inputs.

A machine is input-complete: every input of its universe is tried in every state, also those that no well-meaning
client sends there. A tour begins in the initial state; it is plain data, for whoever can play it.
"""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import networkx as nx

State = TypeVar("State", bound=Hashable)
Input = TypeVar("Input", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Reaction(Generic[State]):
    """What a machine makes of an input: the state after it, the rule that applied, and how long it took (ms)."""

    state: State
    rule: str = ""
    milliseconds: int = 0


@dataclass(frozen=True, slots=True)
class Machine(Generic[State, Input]):
    """A machine: `react` is None where an input makes no sense or leads beyond the bounds."""

    initial: State
    inputs: tuple[Input, ...]
    react: Callable[[State, Input], Reaction[State] | None]


@dataclass(frozen=True, slots=True)
class TourStep(Generic[Input]):
    """One input of a tour, and what the model makes of it."""

    input: Input
    rule: str
    milliseconds: int = 0


@dataclass(frozen=True, slots=True)
class Tours(Generic[Input]):
    """Tours that together take every transition: of so many states, so many transitions; and what was beyond."""

    tours: tuple[tuple[TourStep[Input], ...], ...]
    states: int
    transitions: int
    beyond: int

    @property
    def steps(self) -> int:
        """How long all tours are together."""
        return sum(len(tour) for tour in self.tours)


def transition_graph(machine: Machine[State, Input]) -> tuple["nx.MultiDiGraph[State]", int]:
    """Every state that can be reached and every transition, and how many inputs were left out."""
    graph: nx.MultiDiGraph[State] = nx.MultiDiGraph()
    graph.add_node(machine.initial)
    waiting = deque([machine.initial])
    beyond = 0
    while waiting:
        state = waiting.popleft()
        for given in machine.inputs:
            reaction = machine.react(state, given)
            if reaction is None:
                beyond += 1
                continue
            if reaction.state not in graph:
                waiting.append(reaction.state)
            step = TourStep(given, reaction.rule, reaction.milliseconds)
            graph.add_edge(state, reaction.state, step=step)
    return graph, beyond


def cover(machine: Machine[State, Input], longest: int = 200) -> Tours[Input]:
    """Tours over the whole machine, none much longer than `longest`: first what stays in a state, then what leaves it.

    Where nothing is left to take, the tour goes on to the nearest state where there is.
    """
    graph, beyond = transition_graph(machine)
    left: dict[State, list[tuple[State, TourStep[Input]]]] = {}
    for state in graph:
        steps = [(to, data["step"]) for _, to, data in graph.out_edges(state, data=True)]
        left[state] = sorted(steps, key=lambda one, here=state: one[0] == here)  # type: ignore[misc]
    tours: list[tuple[TourStep[Input], ...]] = []
    while any(left.values()):
        tour: list[TourStep[Input]] = []
        state = machine.initial
        while len(tour) < longest:
            if not left[state]:
                way = nearest(graph, state, left)
                if way is None:
                    break
                for to in way:
                    tour.append(next(iter(graph[state][to].values()))["step"])
                    state = to
            after, step = left[state].pop()
            tour.append(step)
            state = after
        tours.append(tuple(tour))
    return Tours(tuple(tours), graph.number_of_nodes(), graph.number_of_edges(), beyond)


def nearest(
    graph: "nx.MultiDiGraph[State]", start: State, left: dict[State, list[tuple[State, TourStep[Input]]]]
) -> Sequence[State] | None:
    """The states on a shortest way to one where something is left to take."""
    before: dict[State, State | None] = {start: None}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        if left[state]:
            way: list[State] = []
            while before[state] is not None:
                way.append(state)
                state = before[state]  # type: ignore[assignment]
            return way[::-1]
        for to in graph.successors(state):
            if to not in before:
                before[to] = state
                waiting.append(to)
    return None
