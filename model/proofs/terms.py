"""Terms of z3, each made once: a repeated call returns the same term without calling the solver's library.

A proof asks for the same few thousand terms hundreds of thousands of times; making them took most of its time.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import z3

Term: TypeAlias = Any
"""A z3 expression."""

_CONTEXT = z3.main_ctx()
_REFERENCE = _CONTEXT.ref()
TRUE, FALSE = z3.BoolVal(True), z3.BoolVal(False)
_TRUE_ADDRESS, _FALSE_ADDRESS = TRUE.ast.value, FALSE.ast.value
_numerals: dict[int, Term] = {}
_made: dict[tuple[Any, ...], tuple[Term, ...]] = {}
"""Each term by its connective and the addresses of its parts, with the parts: while they are kept, so are addresses."""


def clear_terms() -> None:
    """Let go of the terms that nobody holds any more."""
    _made.clear()


def is_true(term: Term) -> bool:
    """The term is the constant true, of which the solver has one."""
    return bool(term.ast.value == _TRUE_ADDRESS)


def is_false(term: Term) -> bool:
    """The term is the constant false."""
    return bool(term.ast.value == _FALSE_ADDRESS)


def numeral(number: int) -> Term:
    """The term of a number."""
    if number not in _numerals:
        _numerals[number] = z3.IntVal(int(number))
    return _numerals[number]


def conjunction(a: Term, b: Term) -> Term:
    """Both."""
    key = ("and", a.ast.value, b.ast.value)
    made = _made.get(key)
    if made is None:
        term = z3.BoolRef(z3.Z3_mk_and(_REFERENCE, 2, (z3.Ast * 2)(a.ast, b.ast)), _CONTEXT)
        made = _made[key] = (term, a, b)
    return made[0]


def disjunction(a: Term, b: Term) -> Term:
    """One of the two."""
    key = ("or", a.ast.value, b.ast.value)
    made = _made.get(key)
    if made is None:
        term = z3.BoolRef(z3.Z3_mk_or(_REFERENCE, 2, (z3.Ast * 2)(a.ast, b.ast)), _CONTEXT)
        made = _made[key] = (term, a, b)
    return made[0]


def negation(term: Term) -> Term:
    """The opposite."""
    key = ("not", term.ast.value)
    made = _made.get(key)
    if made is None:
        made = _made[key] = (z3.BoolRef(z3.Z3_mk_not(_REFERENCE, term.ast), _CONTEXT), term)
    return made[0]


def conjunction_of(terms: Sequence[Term]) -> Term:
    """All of the terms; the term is not kept."""
    count = len(terms)
    return z3.BoolRef(z3.Z3_mk_and(_REFERENCE, count, (z3.Ast * count)(*[term.ast for term in terms])), _CONTEXT)


def disjunction_of(terms: Sequence[Term]) -> Term:
    """One of the terms; the term is not kept."""
    count = len(terms)
    return z3.BoolRef(z3.Z3_mk_or(_REFERENCE, count, (z3.Ast * count)(*[term.ast for term in terms])), _CONTEXT)


def some_fails(terms: Sequence[Term]) -> Term:
    """One of the terms does not hold; the term is not kept."""
    return disjunction_of([negation(term) for term in terms])


def equation(a: Term, b: Term) -> Term:
    """The two are the same."""
    key = ("is", a.ast.value, b.ast.value)
    made = _made.get(key)
    if made is None:
        made = _made[key] = (z3.BoolRef(z3.Z3_mk_eq(_REFERENCE, a.ast, b.ast), _CONTEXT), a, b)
    return made[0]


def calculation(operator: Callable[[Term, Term], Term], a: Term, b: Term) -> Term:
    """An operator of two numbers."""
    key = (operator, a.ast.value, b.ast.value)
    made = _made.get(key)
    if made is None:
        made = _made[key] = (operator(a, b), a, b)
    return made[0]


def comparison(operator: Callable[[Term, Term], Term], a: Term, b: Term) -> Term:
    """A comparison of two numbers, simplified: a constant where it is plain to see."""
    key = ("simple", operator, a.ast.value, b.ast.value)
    made = _made.get(key)
    if made is None:
        made = _made[key] = (z3.simplify(operator(a, b)), a, b)
    return made[0]


def alternative(condition: Term, then: Term, otherwise: Term) -> Term:
    """One term where the condition holds, the other elsewhere."""
    key = ("if", condition.ast.value, then.ast.value, otherwise.ast.value)
    made = _made.get(key)
    if made is None:
        kind = z3.BoolRef if isinstance(then, z3.BoolRef) else z3.ArithRef
        term = kind(z3.Z3_mk_ite(_REFERENCE, condition.ast, then.ast, otherwise.ast), _CONTEXT)
        made = _made[key] = (term, condition, then, otherwise)
    return made[0]


def application(function: Any, *arguments: Term) -> Term:
    """An uninterpreted function of these arguments."""
    key = (function.ast.value, *(argument.ast.value for argument in arguments))
    made = _made.get(key)
    if made is None:
        made = _made[key] = (function(*arguments), function, *arguments)
    return made[0]


def address(term: Term) -> int:
    """The address of the term's node in the solver, unique among the terms that are alive."""
    where: int = term.ast.value
    return where


def identical(a: Term, b: Term) -> bool:
    """Whether both are one term, not only equal ones."""
    return a is b or bool(a.ast.value == b.ast.value)
