"""Changed modules beside the shipped ones: modules that depend on them see the change, all others do not."""

import ast
import sys

import pytest

from fencepost.conformance.zoo.mutants import load_changed, source_of
from fencepost.model.classic.core import membership
from fencepost.model.classic.core.state import Context, Group, LeaveRequest
from fencepost.model.classic.explore import coordinator_tour
from tests.support.plain_values import build

SESSION, TOUR, MEMBERS, VALUES = (
    "fencepost.model.classic.core.membership",
    "fencepost.model.classic.explore.coordinator_tour",
    "fencepost.model.classic.core.member_table",
    "fencepost.model.classic.core.state",
)


def change_module(module: str, before: str, after: str) -> dict[str, ast.Module]:
    """A module with something else in one place."""
    source = source_of(module)
    assert source.count(before) == 1
    return {module: ast.parse(source.replace(before, after))}


def test_what_depends_on_a_changed_module_sees_the_change_and_nobody_else_does() -> None:
    modules = {name: module for name, module in sys.modules.items() if name.startswith("fencepost")}
    handler = membership.leave
    copies = load_changed(change_module(SESSION, '"leave.nobody"', '"leave.somebody"'), (TOUR, SESSION, MEMBERS))
    request = build(LeaveRequest, 1, ((1, None),))
    (mutant, shipped) = (copies[TOUR].leave(Group(), request, Context(0)), handler(Group(), request, Context(0)))
    assert (mutant.rule, shipped.rule) == ("leave.somebody", "leave.nobody")
    assert mutant.outputs == shipped.outputs
    assert vars(coordinator_tour)["leave"] is membership.leave is handler
    assert copies[MEMBERS] is sys.modules[MEMBERS]
    assert {name: sys.modules[name] for name in modules} == modules


def test_a_changed_module_at_the_bottom_is_seen_at_the_top() -> None:
    copies = load_changed(change_module(VALUES, "generation: int = 0\n", "generation: int = 7\n"), (TOUR,))
    machine = copies[TOUR].coordinator_machine(copies[TOUR].Universe())
    assert machine.initial.group.generation == 7
    assert type(machine.initial.group) is not Group


def test_several_modules_change_together() -> None:
    both = change_module(SESSION, '"leave.nobody"', '"leave.somebody"') | change_module(
        VALUES, "EMPTY = 0", "EMPTY = -1"
    )
    copies = load_changed(both, (SESSION,))
    assert int(copies[SESSION].Phase.EMPTY) == -1


def test_a_module_that_cannot_be_loaded_says_why() -> None:
    with pytest.raises(ZeroDivisionError):
        load_changed(change_module(VALUES, "EMPTY = 0", "EMPTY = 1 // 0"), (TOUR,))
    with pytest.raises(ModuleNotFoundError, match=r"fencepost\.model\.classic\.core\.nothing"):
        load_changed({}, ("fencepost.model.classic.core.nothing",))


def test_what_is_shared_is_not_copied() -> None:
    copies = load_changed(
        change_module("fencepost.model.logic", "total = 0", "total = 1"), (MEMBERS, VALUES), (VALUES,)
    )
    assert copies[VALUES] is sys.modules[VALUES]
    assert copies[MEMBERS].joined_count(Group()) == 1
