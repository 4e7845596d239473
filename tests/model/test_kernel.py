"""The kernel in executable form: every action is reached from the beginning, and the invariants hold on the way."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from fencepost.model.classic.coordinator import dispatch, group_protocol, internal_actions
from fencepost.model.classic.coordinator.dispatch import takes_slot
from fencepost.model.classic.core import join, membership, sync, timers
from fencepost.model.classic.core.state import HeartbeatRequest, JoinRequest, LeaveRequest, Step, SyncRequest
from fencepost.model.classic.explore import coordinator_steps, coordinator_tour
from fencepost.model.classic.kernel.actions import ACTIONS, Kernel, KernelStep, adopt
from fencepost.model.classic.proofs import proof_events
from fencepost.model.classic.proofs.proof_events import coordinator_events
from fencepost.model.classic.theorems import dispatch_statements, scripted_run
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.relations import FiniteRelation, finite_relation
from tests.support.plain_values import build
from tests.support.refinement import violated_invariants

Script = list[tuple[str, tuple[object, ...]]]

EAGER: Script = [
    ("register", (finite_relation(("a",)),)),
    ("complete", (1, "a", finite_relation(("a",)), FiniteRelation())),
    ("join-answered", ("a", 1)),
    ("publish", ("a", finite_relation(("a", 0), ("a", 1)))),
    ("sync-answered", ("a", 1)),
    ("commit", ("a", 1, 0)),
    ("accept", ("a", 1, 0)),
    ("register", (finite_relation(("b",)),)),
    ("prepare", ()),
    ("shrink", ("a", finite_relation((0,), (1,)))),
    ("complete", (2, "a", finite_relation(("a",), ("b",)), finite_relation(("a", 0), ("a", 1)))),
    ("join-answered", ("a", 2)),
    ("join-answered", ("b", 2)),
    ("publish", ("a", finite_relation(("a", 0)))),
    ("sync-answered", ("a", 2)),
    ("accept", ("a", 2, 1)),
    ("lose", ("b",)),
    ("unregister", (finite_relation(("a",), ("b",)),)),
    ("complete-empty", (3,)),
]
"""Two members, cooperative: a gives partition 1 up and commits it in the new generation."""


def take_action(kernel: Kernel, name: str, arguments: tuple[object, ...]) -> KernelStep:
    """Take an action, whatever its guards say."""
    return ACTIONS[name](kernel, *arguments)


def test_every_action_is_reached_from_an_empty_group() -> None:
    kernel = Kernel()
    for name, arguments in EAGER:
        taken = take_action(kernel, name, arguments)
        assert all(taken.guards.values()), (name, taken.guards)
        kernel = taken.after
        assert violated_invariants(kernel) == []
    assert {name for name, _ in EAGER} == set(ACTIONS)


def test_a_group_that_was_loaded_keeps_its_assignment() -> None:
    given = finite_relation(("a", 0), ("b", 1))
    taken = adopt(Kernel(), 7, "a", finite_relation(("a",), ("b",)), given)
    assert all(taken.guards.values()) and violated_invariants(taken.after) == []
    assert adopt(Kernel(), 7, "a", finite_relation(("a",)), finite_relation(("a", 0), ("b", 0))).guards == {
        "no partition goes to two": False,
        "members get them": False,
    }


@pytest.mark.parametrize(
    ("length", "name", "arguments", "guard"),
    [
        (2, "complete", (1, "a", finite_relation(("a",)), FiniteRelation()), "the generation is new"),
        (2, "complete", (2, "b", finite_relation(("a",)), FiniteRelation()), "the leader is a member"),
        (2, "publish", ("b", FiniteRelation()), "the leader hands it in"),
        (4, "publish", ("a", FiniteRelation()), "the assignment is awaited"),
        (11, "publish", ("a", finite_relation(("b", 0))), "claims are respected"),
        (11, "publish", ("a", finite_relation(("a", 0), ("b", 0))), "no partition goes to two"),
        (11, "publish", ("a", finite_relation(("c", 2))), "members get them"),
        (2, "join-answered", ("b", 1), "the member joined"),
        (5, "join-answered", ("a", 1), "it claimed what it owns"),
        (3, "sync-answered", ("a", 1), "the assignment is known"),
        (5, "commit", ("a", 1, 2), "the member owns the partition"),
        (6, "accept", ("a", 1, 1), "it was sent"),
        (11, "accept", ("a", 1, 0), "its generation is current"),
        (11, "accept", ("a", 1, 0), "no assignment is awaited"),
    ],
)
def test_guards_forbid(length: int, name: str, arguments: tuple[object, ...], guard: str) -> None:
    kernel = Kernel()
    for each in EAGER[:length]:
        kernel = take_action(kernel, *each).after
    assert not take_action(kernel, name, arguments).guards[guard]


def test_what_breaks_an_invariant_is_seen() -> None:
    twice = Kernel(
        current=1,
        published=finite_relation((1,)),
        assigned=finite_relation((1, "a", 0), (1, "b", 0)),
        led=finite_relation((1, "a"), (1, "b")),
    )
    assert violated_invariants(twice) == ["one_leader", "one_owner"]


# --- Prover, explorer, scripted runs and judge have one table of events: the same handlers, and the same room for
# each.

CORE = (join, sync, membership, timers)
USERS = {
    "prover": (proof_events,),
    "explorer": (coordinator_steps, coordinator_tour),
    "judge": (dispatch, group_protocol, internal_actions),
    "proof of the dispatcher": (dispatch_statements, internal_actions),
}
HANDLERS = {"join", "sync", "heartbeat", "leave", "commit", "expire_member", "expire_join", "expire_sync"}
NOT_SCRIPTED = {"expire_member", "expire_sync"}
"""Timers that a script hands in by itself, if it has a use for them."""


def handlers_in(module: ModuleType) -> Iterator[str]:
    """The handlers of the core that a module imports: what makes a step of a group and its context."""
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            for source in CORE:
                if node.module == source.__name__:
                    yield from (each.name for each in node.names if is_handler(getattr(source, each.name)))


def is_handler(value: object) -> bool:
    """Whether the value makes a step of a group, of what happens to it, and of the context."""
    if not inspect.isfunction(value):
        return False
    names = list(inspect.signature(value).parameters)
    return value.__annotations__.get("return") is Step and (names[0], names[-1]) == ("group", "context")


@pytest.mark.parametrize("user", USERS)
def test_everybody_uses_the_same_handlers(user: str) -> None:
    assert {name for module in USERS[user] for name in handlers_in(module)} == HANDLERS


def test_scripted_runs_use_them_too() -> None:
    assert set(handlers_in(scripted_run)) == HANDLERS - NOT_SCRIPTED


def test_each_handler_is_an_event_of_the_proof() -> None:
    assert {event.handler.__name__ for event in coordinator_events(2)} >= HANDLERS
    found = (getattr(module, name, None) for module in CORE for name in HANDLERS)
    assert set(found) - {None} <= {event.handler for event in coordinator_events(2)}


def test_a_user_that_lacks_a_handler_is_noticed() -> None:
    assert HANDLERS - set(handlers_in(dispatch)) == {"commit", "expire_member", "expire_join", "expire_sync"}


@pytest.mark.parametrize("module", [coordinator_steps, scripted_run, dispatch_statements])
def test_room_is_made_by_the_dispatchers_rule(module: ModuleType) -> None:
    assert module.__dict__["takes_slot"] is takes_slot


def test_only_a_join_without_an_id_takes_a_slot() -> None:
    nobody = build(JoinRequest, 1, None, None, "consumer", (), 1, 1, True, True)
    somebody = build(JoinRequest, 1, "a", None, "consumer", (), 1, 1, True, True)
    others = [
        build(SyncRequest, 1, "a", None, 1, None, None, ()),
        build(HeartbeatRequest, 1, "a", None, 1),
        build(LeaveRequest, 1, (("a", None),)),
        build(CommitRequest, 1, "a", None, 1),
    ]
    assert takes_slot(nobody)
    assert not any(map(takes_slot, [somebody, *others]))
