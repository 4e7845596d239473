"""Rows in words, for counterexamples and for the nodes of exported graphs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO, TextIO

import networkx as nx

from fencepost.model.explore.search import Exploration, Row
from fencepost.model.explore.transition_system import TransitionSystem


def render_row(system: TransitionSystem, row: Row, only: frozenset[int] | None = None) -> str:
    """The columns of a row that hold something, by default all of them, each with its name."""
    told = [
        f"{column.name}: {system.render_value(value)}"
        for index, (column, value) in enumerate(zip(system.columns, row, strict=True))
        if (only is None and value is not None) or (only is not None and index in only)
    ]
    return "; ".join(told)


def changed_columns(before: Row, after: Row) -> frozenset[int]:
    """The columns that differ."""
    return frozenset(index for index, (one, other) in enumerate(zip(before, after, strict=True)) if one != other)


# --- The explored graph for other tools: a networkx graph, DOT and GraphML.

MAX_EXPORTED_STATES = 20_000
"""How many states are exported at most: beyond that no tool shows a graph."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Something that can happen in a state, what rule applied if one did, and the state that it leads to."""

    before: int
    after: int
    label: str
    rule: str


def explored_graph(exploration: Exploration, max_states: int = MAX_EXPORTED_STATES) -> "nx.MultiDiGraph[int]":
    """The first states that were found, numbered in that order from 0 on, and all that leads from one to another.

    The attributes of the graph say how many states there were, and whether all of them are in it.
    """
    numbers = {state: number for number, state in enumerate(islice(exploration.reached_states(), max_states))}
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(
        states=exploration.states, complete=is_complete(exploration, max_states)
    )
    tables = exploration.tables
    for state, number in numbers.items():
        graph.add_node(number, label=render_row(tables.system, tables.values(state)))
    for state, number in numbers.items():
        for edge in edges_from(exploration, state):
            after = numbers.get(edge.after)
            if after is not None:
                graph.add_edge(number, after, label=edge.label, rule=edge.rule)
    return graph


def is_complete(exploration: Exploration, max_states: int = MAX_EXPORTED_STATES) -> bool:
    """The graph has every state that there is within the bounds."""
    return exploration.finished and exploration.states <= max_states


def edges_from(exploration: Exploration, state: int) -> Iterator[Edge]:
    """What can happen in a state within the bounds; nothing if the search was cut short before it got there."""
    tables = exploration.tables
    for table in tables.actions:
        local = state & table.mask
        key = tuple(tables.layout.field(state, column) for column in table.action.columns)
        moves = [move for move, _ in table.transitions.get(key, ()) if not move.cut]
        for move, (keep, put) in zip(moves, table.effects.get(local, ()), strict=True):
            yield Edge(state, tables.canonical(state & keep | put), move.label, move.rule)


def write_graphml(graph: "nx.MultiDiGraph[int]", stream: BinaryIO) -> None:
    """The graph as GraphML, for Gephi, yEd, Cytoscape or networkx."""
    nx.write_graphml_xml(graph, stream)


def write_dot(graph: "nx.MultiDiGraph[int]", stream: TextIO) -> None:
    """The graph as DOT, for Graphviz."""
    stream.write("digraph explored {\n  node [shape=box]\n")
    for number, label in graph.nodes(data="label"):
        stream.write(f"  {number} [label={quote_dot(str(label).replace('; ', chr(10)))}]\n")
    for before, after, label in graph.edges(data="label"):
        stream.write(f"  {before} -> {after} [label={quote_dot(label)}]\n")
    stream.write("}\n")


def quote_dot(text: str) -> str:
    """A string of DOT."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
