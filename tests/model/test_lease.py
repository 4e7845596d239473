"""The lease, a toy protocol, is explored and proved by the engines."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fencepost.model.explore.engine import Engine, explore_system, has_numpy, replay_path
from fencepost.model.explore.rendering import explored_graph
from fencepost.model.frozen import evolve
from fencepost.model.proofs.arbitrary_values import SymbolFactory
from fencepost.model.proofs.induction import HandlerEvent, HandlerProof, initially_false, prove_handler
from tests.support.lease.protocol import (
    ACQUIRE,
    EXPIRE,
    HANDLERS,
    RENEW,
    STATEMENTS,
    WRITE,
    Lease,
    LeaseError,
    LeaseStep,
    Request,
    lease_system,
)

# --- The search runs on the toy protocol as it is: properties, witnesses, counterexamples, graphs.

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


# --- The induction runs on the toy protocol as it is: proofs, vacuity, counterexamples in plain values.


def prove_lease(event: HandlerEvent) -> HandlerProof:
    return prove_handler(event, Lease, lambda step: step.lease, STATEMENTS)


def test_every_statement_holds_at_the_beginning() -> None:
    assert initially_false(STATEMENTS, Lease()) == ()
    assert initially_false(STATEMENTS, Lease(fence=1)) == ("fence-granted",)


@pytest.mark.parametrize(("event", "paths"), [(ACQUIRE, 2), (RENEW, 2), (WRITE, 2), (EXPIRE, 1)])
def test_every_event_keeps_every_statement(event: HandlerEvent, paths: int) -> None:
    verdict = prove_lease(event)
    assert verdict.is_proved
    assert (verdict.result.paths, verdict.result.goals) == (paths, 4 * paths)


@pytest.mark.parametrize(
    ("event", "handler", "broken"),
    [(WRITE, accept_any_write, "fence-grows"), (ACQUIRE, grant_held_lease, "one-holder")],
)
def test_a_broken_handler_is_refuted_and_the_counterexample_replays(
    event: HandlerEvent, handler: Callable[..., LeaseStep], broken: str
) -> None:
    verdict = prove_lease(replace(event, handler=handler))
    assert not verdict.is_proved
    (example,) = verdict.counterexamples
    assert example.statement == broken
    assert handler(example.state, *example.arguments) == example.result


def test_a_write_with_a_token_that_was_never_granted_breaks_the_fence() -> None:
    anything = replace(WRITE, assumed=lambda *_: True)
    assert {one.statement for one in prove_lease(anything).counterexamples} == {"fence-granted"}


def test_an_event_that_cannot_happen_is_not_proved() -> None:
    never: HandlerEvent = replace(WRITE, assumed=lambda *_: False)
    verdict = prove_lease(never)
    assert not verdict.result.possible and not verdict.is_proved


def test_a_field_of_an_unknown_sort_is_an_error() -> None:
    with pytest.raises(TypeError, match="state: no symbol stands for any <class 'object'>"):
        SymbolFactory().arbitrary(object, "state")
