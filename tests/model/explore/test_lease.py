"""The search runs on the toy protocol as it is: properties, witnesses, counterexamples, graphs."""

from collections.abc import Callable

import pytest

from fencepost.model.explore.engine import Engine, explore_system, has_numpy, replay_path
from fencepost.model.explore.rendering import explored_graph
from fencepost.model.frozen import evolve
from tests.support.lease.checks import lease_system
from tests.support.lease.protocol import HANDLERS, Lease, LeaseError, LeaseStep, Request

ENGINES = (Engine.PLAIN, Engine.NUMPY) if has_numpy() else (Engine.PLAIN,)


def accept_any_write(lease: Lease, request: Request, now: int) -> LeaseStep:
    return LeaseStep(evolve(lease, fence=request.token), LeaseError.NONE, request.token, "write.current")


def grant_held_lease(lease: Lease, request: Request, now: int) -> LeaseStep:
    granted = evolve(lease, holder=request.client, token=lease.token + 1)
    return LeaseStep(granted, LeaseError.NONE, granted.token, "acquire.free")


@pytest.mark.parametrize("engine", ENGINES)
def test_every_state_keeps_the_properties(engine: Engine) -> None:
    found, _ = explore_system(lease_system(), engine)
    assert (found.states, found.transitions, found.cut, found.finished) == (81, 478, 48, True)
    assert found.violations == () and found.deadlocks == 0
    assert [one.name for one in found.discoveries] == ["fenced"]
    assert len(found.rule_counts()) == 7


@pytest.mark.parametrize(
    ("name", "handler", "statement", "labels"),
    [
        ("write", accept_any_write, "fence-grows", ["B acquire", "B write", "A write"]),
        ("acquire", grant_held_lease, "one-holder", ["B acquire", "A acquire"]),
    ],
)
def test_a_handler_that_breaks_a_property_is_found_with_a_shortest_path(
    monkeypatch: pytest.MonkeyPatch, name: str, handler: Callable[..., LeaseStep], statement: str, labels: list[str]
) -> None:
    monkeypatch.setitem(HANDLERS, name, handler)
    found, _ = explore_system(lease_system(), Engine.PLAIN)
    (violation,) = found.violations
    assert violation.name == statement
    assert [step.label for step in replay_path(found.tables, violation)] == labels


def test_the_graph_shows_every_state() -> None:
    graph = explored_graph(explore_system(lease_system("A"))[0])
    assert graph.nodes[0]["label"].startswith("lease: Lease(holder=None, token=0")
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (19, 62)
