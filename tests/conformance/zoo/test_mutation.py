"""Mutants of modules, and copies of modules that carry one."""

import ast
import sys

import pytest

from fencepost.conformance.zoo.mutants import Mutant, all_mutants, apply_mutant, load_changed, source_of
from fencepost.conformance.zoo.operators import OPERATORS
from fencepost.model.classic.core import membership
from fencepost.model.classic.core.state import Context, Group, LeaveRequest
from fencepost.model.classic.explore import coordinator_tour
from tests.support.plain_values import build

# --- Mutants: the result of each operator, and names that do not depend on line numbers.

SHAPES = """
class Phase(IntEnum):
    EMPTY = 0
    STABLE = 1

class Slot:
    id: str
    armed: bool = False

def rearm(slot: Slot, now: int) -> Slot: ...

def reset(slot: Slot, /, **fields: int) -> Slot: ...
"""


def mutants_by_operator(line: str, operator: str) -> set[str]:
    """What the operator makes of the line, as the body of a function with a parameter x."""
    source = f"from core import and_, not_\n\ndef f(x):\n    {line}\n"
    chosen = [one for one in OPERATORS if one.name == operator]
    found = all_mutants({"shapes": SHAPES, "module": source}, chosen)
    return {body_of(apply_mutant(source, mutant)) for mutant in found if mutant.module == "module"}


def body_of(tree: ast.Module) -> str:
    """The body of the last function."""
    function = tree.body[-1]
    assert isinstance(function, ast.FunctionDef)
    return "; ".join(ast.unparse(one) for one in function.body)


@pytest.mark.parametrize(
    ("line", "operator", "results"),
    [
        ("return ite(x, 1, 2)", "always", {"return ite(True, 1, 2)"}),
        ("return 1 if x.armed else 2", "never", {"return 1 if False else 2"}),
        ("return and_(x, x == 1)", "never", {"return False"}),
        ("return and_(x, x == 1)", "negated", {"return not and_(x, x == 1)"}),
        ("return not_(x)", "negated", {"return x"}),
        ("return x < 1", "comparison", {"return x <= 1", "return x >= 1"}),
        ("return x is None", "comparison", {"return x is not None"}),
        (
            "return 0 <= x < 1",
            "comparison",
            {"return 0 < x < 1", "return 0 > x < 1", "return 0 <= x <= 1", "return 0 <= x >= 1"},
        ),
        ("return and_(x, y)", "term", {"return x", "return y"}),
        ("return x or y or z", "term", {"return y or z", "return x or z", "return x or y"}),
        ("return and_(x, y)", "connective", {"return or_(x, y)"}),
        ("return evolve(x, armed=y)", "field", {"return evolve(x)"}),
        ("return Slot(id=x, armed=y)", "field", {"return Slot(id=x)"}),
        ("return Slot(id=x, armed=y)", "value", {"return Slot(id=None, armed=y)"}),
        ("return Slot(x, True)", "constant", {"return Slot(x, False)"}),
        ("return Phase.STABLE", "constant", {"return Phase.EMPTY"}),
        ("return x + y", "sum", {"return x", "return y"}),
        ("return rearm(x, now)", "call", {"return x"}),
        ("return reset(x, on=1)", "call", {"return x"}),
        ("x.armed = True", "statement", {"pass"}),
        ("x.cancel()", "statement", {"pass"}),
        ("x += 1", "statement", {"pass"}),
        ("x = x.next", "statement", {"pass"}),
        ("y = x.next", "statement", set()),
    ],
)
def test_operators(line: str, operator: str, results: set[str]) -> None:
    assert mutants_by_operator(line, operator) == results


def test_a_connective_is_imported_with_the_one_that_it_replaces() -> None:
    source = "from core import and_\n\ndef f(x, y):\n    return and_(x, y)\n"
    (mutant,) = all_mutants({"module": source}, [one for one in OPERATORS if one.name == "connective"])
    assert "from core import and_, or_" in ast.unparse(apply_mutant(source, mutant))


def test_a_name_that_the_module_has_is_not_imported_again() -> None:
    source = "from core import not_\nfrom members import old\n\ndef new(x):\n    return not_(x)\n\ndef f(x):\n    "
    for name in ("old", "new"):
        (mutant,) = [
            one
            for one in all_mutants({"module": f"{source}return not_({name}(x))\n"})
            if (one.function, one.operator) == ("f", "negated")
        ]
        assert ast.unparse(apply_mutant(source + f"return not_({name}(x))\n", mutant)).startswith(
            "from core import not_\n"
        )


def test_what_is_no_code_is_left_alone() -> None:
    source = '''"""1 < 2"""
from x import y

Pair = tuple[1, 2]

@cache(1)
def f(x: "1" = None) -> "2":
    """1 < 2"""
'''
    assert all_mutants({"module": source}) == ()


def core_mutants() -> tuple[Mutant, ...]:
    """The mutants of a real module."""
    name = "fencepost.model.classic.core.sync"
    return all_mutants({name: source_of(name)})


def test_every_mutant_has_a_name_of_its_own_and_differs_from_the_original() -> None:
    name = "fencepost.model.classic.core.sync"
    source = source_of(name)
    found = core_mutants()
    assert len({mutant.name for mutant in found}) == len(found) > 100
    results = {ast.unparse(apply_mutant(source, mutant)) for mutant in found}
    assert ast.unparse(ast.parse(source)) not in results
    assert len(results) == len(found)


def test_names_do_not_depend_on_lines() -> None:
    name = "fencepost.model.classic.core.sync"
    moved = source_of(name).replace("\n\n\ndef", "\n\n\n# moved\n\ndef")
    assert [one.name for one in all_mutants({name: moved})] == [one.name for one in core_mutants()]


# --- Changed modules beside the shipped ones: modules that depend on them see the change, all others do not.

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
    changed = change_module("fencepost.model.logic", "result: Any = False", "result: Any = True")
    statement = "fencepost.model.statement"
    copies = load_changed(changed, (statement, VALUES), (VALUES,))
    assert copies[VALUES] is sys.modules[VALUES]
    assert copies[statement].implies(True, False) is True
