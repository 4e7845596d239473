"""The explored graph for other tools: all of it, or as much as it says."""

import io

import networkx as nx
import pytest

from fencepost.model.classic.explore.group_system import group_system
from fencepost.model.classic.explore.state_layout import Bounds, ModelConfig, untimed_member
from fencepost.model.explore.engine import Engine, explore_system, has_numpy
from fencepost.model.explore.rendering import explored_graph, is_complete, quote_dot, write_dot, write_graphml

ONE = group_system(ModelConfig((untimed_member(),)), Bounds(1, 1, 3, 1))
TWO = group_system(ModelConfig((untimed_member(), untimed_member()), heartbeats=False), Bounds(1, 1, 3, 1))
ENGINES = [Engine.PLAIN, Engine.NUMPY] if has_numpy() else [Engine.PLAIN]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_state_and_every_move_is_in_the_graph(engine: Engine) -> None:
    found, _ = explore_system(TWO, engine)
    graph = explored_graph(found)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (1059, 5283) == (found.states, found.transitions)
    assert graph.graph == {"states": 1059, "complete": True}
    assert graph.nodes[0]["label"] == "coordinator: Empty, generation 0; A process: unjoined; B process: unjoined"
    assert set(nx.single_source_shortest_path_length(graph, 0)) == set(graph)
    assert ("A gets join.pending", "join.pending") in {(e["label"], e["rule"]) for *_, e in graph.edges(data=True)}


def test_a_part_of_the_graph_says_so() -> None:
    found, _ = explore_system(ONE)
    graph = explored_graph(found, max_states=50)
    assert len(graph) == 50 and not is_complete(found, 50) and not graph.graph["complete"]
    short, _ = explore_system(ONE, limit=60)
    assert not is_complete(short) and 60 < len(explored_graph(short)) < 172


def test_dot_and_graphml_hold_the_same_graph() -> None:
    graph = explored_graph(explore_system(ONE)[0])
    dot, graphml = io.StringIO(), io.BytesIO()
    write_dot(graph, dot)
    write_graphml(graph, graphml)
    graphml.seek(0)
    read = nx.read_graphml(graphml, node_type=int)
    assert list(read.nodes(data="label")) == list(graph.nodes(data="label"))
    assert sorted(read.edges(data="label")) == sorted(graph.edges(data="label"))
    assert dot.getvalue().count("\n") == 3 + len(graph) + graph.number_of_edges()


def test_labels_are_quoted() -> None:
    assert quote_dot('a "b"\\\nc') == '"a \\"b\\"\\\\\\nc"'
