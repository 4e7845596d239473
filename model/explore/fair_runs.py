"""Runs without end: a graph of states, and the sets of states among which a run can stay for ever.

A run is fair if an action that is enabled all the time is taken at last. Patient actions wait until no other is
enabled.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import networkx as nx

from fencepost.model.explore.search import Row
from fencepost.model.explore.transition_system import Action, TransitionSystem, Value

State: TypeAlias = tuple[int, ...]
"""A row by the numbers of its values."""


Move: TypeAlias = tuple[str, tuple[tuple[int, int], ...]]
"""A label, and the numbers to write, by column."""


@dataclass(frozen=True, slots=True)
class Moves:
    """What an action can do, and how many of its transitions are cut."""

    moves: tuple[Move, ...]
    cut: int


class RowNumbers:
    """The numbers of values, the canonical states and the moves of actions. Graphs of one system's rows share them."""

    def __init__(self, rename: Callable[[Row], Row]) -> None:
        self._rename = rename
        self._values: list[Value] = []
        self._numbers: dict[Value, int] = {}
        self._canonical: dict[State, State] = {}
        self._moves: dict[Action, dict[State, Moves]] = {}

    def row(self, state: State) -> Row:
        """The row of a state."""
        return tuple(self._values[number] for number in state)

    def state(self, row: Row) -> State:
        """The state of a row."""
        return tuple(self._number(value) for value in row)

    def canonical_state(self, state: State) -> State:
        """The state that stands for this one and all that differ from it by names."""
        known = self._canonical.get(state)
        if known is None:
            known = self._canonical[state] = self.state(self._rename(self.row(state)))
        return known

    def find_moves(self, action: Action, read: State) -> Moves:
        """What the action can do where it reads these numbers."""
        known = self._moves.setdefault(action, {})
        if read not in known:
            found = action.transitions(*self.row(read))
            moves = tuple(
                (move.label, tuple((column, self._number(value)) for column, value in move.writes)) for move in found
            )
            known[read] = Moves(moves, sum(move.cut for move in found))
        return known[read]

    def _number(self, value: Value) -> int:
        number = self._numbers.setdefault(value, len(self._values))
        if number == len(self._values):
            self._values.append(value)
        return number


class RunGraph:
    """All that follows on some rows: states up to names, and what leads from one to the other, by site."""

    def __init__(self, system: TransitionSystem, numbers: RowNumbers) -> None:
        self.graph: nx.MultiDiGraph[State] = nx.MultiDiGraph()
        self.parents: dict[State, State | None] = {}
        self.cut = 0
        self._sites = system.actions
        self._numbers = numbers
        self._moves: list[dict[State, Moves]] = [{} for _ in self._sites]

    def explore(self, rows: Iterable[Row]) -> None:
        """Follow every run from these rows."""
        level = [self._numbers.canonical_state(self._numbers.state(row)) for row in rows]
        self.parents = dict.fromkeys(level)
        level = list(self.parents)
        while level:
            found: list[State] = []
            for state in level:
                for which, label, successor in self._edges(state):
                    self.graph.add_edge(state, successor, site=which, label=label)
                    if successor not in self.parents:
                        self.parents[successor] = state
                        found.append(successor)
            level = found

    def row(self, state: State) -> Row:
        """The row of a state."""
        return self._numbers.row(state)

    def enabled_actions(self, state: State) -> set[int]:
        """The sites at which something can happen, or could if the others were done: a timer runs while it waits."""
        return {which for which in range(len(self._sites)) if self._moves_at(which, state)}

    def path_to(self, state: State) -> list[str]:
        """What happened from some start to this state."""
        labels: list[str] = []
        before = self.parents[state]
        while before is not None:
            labels.append(next(iter(self.graph[before][state].values()))["label"])
            state, before = before, self.parents[before]
        return labels[::-1]

    def _edges(self, state: State) -> list[tuple[int, str, State]]:
        """The moves from a state, as site, label and next state; patient sites move only where no other site can."""
        self.graph.add_node(state)
        for patient in (False, True):
            edges: list[tuple[int, str, State]] = []
            for which, site in enumerate(self._sites):
                for label, writes in self._moves_at(which, state) if site.patient == patient else ():
                    columns = list(state)
                    for column, number in writes:
                        columns[column] = number
                    edges.append((which, label, self._numbers.canonical_state(tuple(columns))))
            if edges:
                return edges
        return []

    def _moves_at(self, which: int, state: State) -> tuple[Move, ...]:
        site, mine = self._sites[which], self._moves[which]
        read = tuple([state[column] for column in site.columns])
        found = mine.get(read)
        if found is None:
            found = mine[read] = self._numbers.find_moves(site, read)
            self.cut += found.cut
        return found.moves


def end_components(runs: RunGraph) -> Iterator[tuple[frozenset[State], bool]]:
    """The sets of states that a run can stay among for ever, final states included, and whether it is fair to.

    It is if whatever can happen in all of them happens among them. A larger set is never less fair, so the strongly
    connected components are enough.
    """
    graph = runs.graph
    for component in nx.strongly_connected_components(graph):
        inside = {data["site"] for _, to, data in graph.out_edges(component, data=True) if to in component}
        if not inside and any(True for _ in graph.out_edges(component)):
            continue
        always = set.intersection(*(runs.enabled_actions(state) for state in component))
        yield frozenset(component), always <= inside
