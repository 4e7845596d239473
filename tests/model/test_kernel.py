"""The kernel in executable form: every action is reached from the beginning, and the invariants hold on the way."""

import pytest

from fencepost.model.classic.kernel.actions import ACTIONS, FiniteRelation, Kernel, KernelStep, adopt, finite_relation
from fencepost.model.classic.kernel.invariants import violated_invariants

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
