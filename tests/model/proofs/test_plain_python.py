"""Plain Python and its twin in a proof: on every path the twin means what Python means."""

import sys
from collections.abc import Callable
from itertools import product
from types import FrameType
from typing import Any

import pytest
import z3

from fencepost.model.classic.core import member_table
from fencepost.model.classic.core.state import FREE, Slot
from fencepost.model.classic.member import member as members
from fencepost.model.classic.proofs.induction import STATEMENTS, ProofSize, prepare_query
from fencepost.model.classic.proofs.proof_events import coordinator_events, member_events, symbolic
from fencepost.model.classic.theorems.step_statements import protocol_is_common
from fencepost.model.logic import not_, or_
from fencepost.model.proofs.plain_python import ModuleTwins, collection
from fencepost.model.proofs.solver import LimitedSolver
from fencepost.model.proofs.symbolic_execution import execute_paths
from fencepost.model.proofs.symbolic_values import (
    SymbolicBool,
    SymbolicElement,
    SymbolicNumber,
    SymbolicSet,
    SymbolicToken,
    formula,
)


def both(a: bool, b: bool, m: int, n: int, t: Any) -> Any:
    return a and b


def either(a: bool, b: bool, m: int, n: int, t: Any) -> Any:
    return a or not b or m == n


def nested(a: bool, b: bool, m: int, n: int, t: Any) -> Any:
    return not (a and (b or m < n)) and t is not None


def chain(a: bool, b: bool, m: int, n: int, t: Any) -> Any:
    return 0 <= m < n


def chosen(a: bool, b: bool, m: int, n: int, t: Any) -> Any:
    return m + 1 if a and m < n else n if b else 0


def quantified(a: bool, b: bool, m: int, n: int, t: Any) -> Any:
    values = (m, n, 1)
    return any(one > 1 for one in values) and all(one != 2 or a for one in values)


def counted(a: bool, b: bool, m: int, n: int, t: Any) -> Any:
    return sum(one for one in (a, b, m == n)) + max(0, m, n) - min(m, 1)


def inside(a: bool, b: bool, m: int, n: int, t: Any) -> Any:
    return m in (n, 2) or t not in ("text", None)


def forking(a: bool, b: bool, m: int, n: int, t: Any) -> Any:
    rule = "equal" if m == n else "other"
    if a and m != n:
        return rule, m
    for one in (m, n):
        if one == 2 and t is None:
            return rule, one
    return "none" if b else rule, n


def guarded(a: bool, b: bool, m: int, n: int, t: Any) -> Any:
    return m == 1 and (0 if t is None else len("four") // m) == 4 - 0 * n


FUNCTIONS = (both, either, nested, chain, chosen, quantified, counted, inside, forking)
TRUTHS, NUMBERS, TOKENS = (False, True), (0, 1, 2), (None, "text")
TWINS = ModuleTwins(__name__)


def plain_value(value: Any, model: z3.ModelRef) -> Any:
    """What a value of the twin is in an instance."""
    if isinstance(value, tuple):
        return tuple(plain_value(one, model) for one in value)
    if isinstance(value, SymbolicBool):
        return z3.is_true(model.eval(value.term, model_completion=True))
    if isinstance(value, SymbolicNumber):
        return model.eval(value.term, model_completion=True).as_long()
    return value


def on_symbols(function: Callable[..., Any], given: tuple[Any, ...]) -> list[Any]:
    """What the twin makes, on every path, of symbols that have these values."""
    symbols: Any = (
        *(SymbolicBool(z3.Bool(name)) for name in "ab"),
        *(SymbolicNumber(z3.Int(name)) for name in "mn"),
        SymbolicToken(z3.Int("t")),
    )
    solver = LimitedSolver(0, simple=True)
    for symbol, value in zip(symbols[:4], given[:4], strict=True):
        solver.add(symbol.term == value)
    solver.add((symbols[4] == given[4]).term)
    results = []
    for result, _ in execute_paths(lambda: TWINS.twin(function)(*symbols), solver):
        assert solver.check() == z3.sat
        results.append(plain_value(result, solver.model()))
    return results


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_twin_means_what_python_means(function: Callable[..., Any]) -> None:
    twin = TWINS.twin(function)
    for given in product(TRUTHS, TRUTHS, NUMBERS, NUMBERS, TOKENS):
        assert twin(*given) == function(*given)
        assert on_symbols(function, given) == [function(*given)]


def about_sets(one: Any, other: Any, element: Any) -> Any:
    emptiness = not one, not (one and other), 1 if one else 2
    members = element in one, element not in other, one.isdisjoint(other), one | {element}, dict.fromkeys(one, 1)
    return emptiness, members, all(each == element for each in one), any(each == element for each in other)


def test_a_twin_means_what_python_means_of_sets() -> None:
    sets = [frozenset(names) for names in ("", "a", "b", "ab")]
    for given in product(sets, sets, "ab"):
        assert TWINS.twin(about_sets)(*given) == about_sets(*given)


def symbolic_set(name: str, sort: Any) -> SymbolicSet:
    return SymbolicSet(z3.Const(name, z3.SetSort(sort)))


def test_a_twin_means_of_symbolic_sets_what_python_means() -> None:
    """A symbolic set that has some of two elements, and no other, is to the twin what the plain set is to Python."""
    sort = z3.DeclareSort("Letter")
    one, other = symbolic_set("one", sort), symbolic_set("other", sort)
    letters = {name: SymbolicElement(z3.Const(name, sort)) for name in "ab"}
    _, members, every, some = TWINS.twin(about_sets)(one, other, letters["a"])
    claims = [*members[:3], every, some, not_(one.is_inhabited())]
    for names, others in product(("", "a", "b", "ab"), repeat=2):
        plain = about_sets(frozenset(names), frozenset(others), "a")
        solver = LimitedSolver(0, simple=True)
        solver.add(formula(letters["a"] != letters["b"]))
        solver.add(formula(one == collection(*map(letters.get, names))))
        solver.add(formula(other == collection(*map(letters.get, others))))
        expected = [*plain[1][:3], plain[2], plain[3], plain[0][0]]
        differs = or_(*(claim != wanted for claim, wanted in zip(claims, expected, strict=True)))
        assert solver.check() == z3.sat and solver.check(formula(differs)) == z3.unsat


def path_count(function: Callable[..., Any]) -> int:
    """How many paths the twin has."""
    symbols: Any = (SymbolicBool(z3.Bool("a")), SymbolicBool(z3.Bool("b")), 1, SymbolicNumber(z3.Int("n")), None)
    return len(list(execute_paths(lambda: TWINS.twin(function)(*symbols), LimitedSolver(0))))


def test_the_solver_holds_the_conditions_of_the_path_at_hand_and_then_none() -> None:
    symbols: Any = (SymbolicBool(z3.Bool("a")), SymbolicBool(z3.Bool("b")), 1, SymbolicNumber(z3.Int("n")), None)
    solver, decisions = LimitedSolver(0), set()
    for _, conditions in execute_paths(lambda: TWINS.twin(forking)(*symbols), solver):
        assert [term.sexpr() for term in solver.assertions()] == [term.sexpr() for term in conditions]
        decisions.add(tuple(term.sexpr() for term in conditions))
    assert len(decisions) == path_count(forking) and solver.assertions() == []


def test_connectives_fork_no_path() -> None:
    assert {path_count(one) for one in (both, either, nested, chain, chosen, quantified, counted, inside)} == {1}
    assert path_count(forking) > 1


def test_plain_operands_are_left_out_as_python_leaves_them_out() -> None:
    assert TWINS.twin(guarded)(True, True, 0, 0, "text") is guarded(True, True, 0, 0, "text") is False


def test_an_operand_that_is_not_total_stops_the_proof() -> None:
    number: Any = SymbolicNumber(z3.Int("m"))
    with pytest.raises(TypeError):
        list(execute_paths(lambda: TWINS.twin(guarded)(True, True, number, 0, "text"), LimitedSolver(0)))


def test_a_module_has_one_twin_and_shares_its_values() -> None:
    twin = symbolic(member_table.offered_by_all)
    assert twin is symbolic(member_table.offered_by_all) is not member_table.offered_by_all
    assert symbolic(protocol_is_common.holds).__globals__["offered_by_all"] is twin
    assert twin.__globals__["Slot"] is Slot


def shipped_calls(run: Callable[[], Any]) -> set[str]:
    """The functions of the shipped core that run meanwhile, and not their twins."""
    found: set[str] = set()

    def note(frame: FrameType, kind: str, _: object) -> None:
        module = sys.modules.get(frame.f_globals.get("__name__", ""))
        is_core = module is not None and module.__name__.startswith(("fencepost.model.classic.core", members.__name__))
        if (
            kind == "call"
            and is_core
            and frame.f_globals is vars(module)
            and not frame.f_code.co_name.startswith(("<", "__"))
        ):
            found.add(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("event", [*coordinator_events(1), *member_events()], ids=lambda event: event.name)
def test_no_shipped_function_runs_on_symbols(event: Any) -> None:
    query = prepare_query(event, STATEMENTS, ProofSize(1, 1))
    assert shipped_calls(lambda: [None for _ in query.paths()]) == set()


def test_a_shipped_function_that_runs_is_seen() -> None:
    def run() -> None:
        member_table.is_member(FREE)

    assert shipped_calls(run) == {"is_member"}
