"""Connectives and guarded values that work on plain booleans and on symbolic ones alike.

Statements, kernels and designs are written with them. The core and the member are plain Python, which a proof rewrites
(`model/proofs/plain_python.py`); of this module they use types, `emit` and `holds`.
A symbolic truth value offers `&`, `|`, `negated()` and `choose(a, b)`; a symbolic token or number offers
`is_absent()`. Anything else is taken as it is.
"""

from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias, TypeVar

from fencepost.model.frozen import evolve

Truth: TypeAlias = bool
"""A truth value; in a proof a symbolic one."""
Token: TypeAlias = Annotated[Any, "token"]
"""An id, a name or bytes, which the core compares and passes on; None where there is none."""
Time: TypeAlias = Annotated[Any, "time"]
"""A moment in milliseconds; only added to and compared."""
Value = TypeVar("Value")


def and_(*terms: Truth) -> Truth:
    """All of the terms hold."""
    result: Any = True
    for term in terms:
        if term is False:
            return False
        if term is not True:
            result = term if result is True else result & term
    truth: Truth = result
    return truth


def or_(*terms: Truth) -> Truth:
    """At least one of the terms holds."""
    result: Any = False
    for term in terms:
        if term is True:
            return True
        if term is not False:
            result = term if result is False else result | term
    truth: Truth = result
    return truth


def not_(term: Truth) -> Truth:
    """The term does not hold."""
    if term is True or term is False:
        return not term
    symbolic: Any = term
    negated: Truth = symbolic.negated()
    return negated


def all_(terms: Iterable[Truth]) -> Truth:
    """Every term holds; true of none."""
    return and_(*terms)


def any_(terms: Iterable[Truth]) -> Truth:
    """Some term holds; false of none."""
    return or_(*terms)


def ite(condition: Truth, then: Value, otherwise: Value) -> Value:
    """`then` where the condition holds, else `otherwise`."""
    if condition is True:
        return then
    if condition is False:
        return otherwise
    symbolic: Any = condition
    chosen: Value = symbolic.choose(then, otherwise)
    return chosen


def emit(when: Truth, output: Value) -> tuple[Value, ...]:
    """The output where the condition holds; nothing where it does not. The output has a field `when`."""
    if when is False:
        return ()
    guarded: Any = output
    return (output,) if when is True else (evolve(guarded, when=and_(guarded.when, when)),)


def count(terms: Iterable[Truth]) -> int:
    """How many of the terms hold."""
    total = 0
    for term in terms:
        total = total + ite(term, 1, 0)
    return total


def largest(numbers: Iterable[int]) -> int:
    """The largest of the numbers, 0 of none."""
    top = 0
    for number in numbers:
        top = ite(number > top, number, top)
    return top


def absent(token: Token) -> Truth:
    """There is no such id, name or type."""
    if token is None:
        return True
    symbolic = getattr(token, "is_absent", None)
    return False if symbolic is None else symbolic()


def holds(claims: Token, partition: int) -> Truth:
    """The claims or the assignment name this partition; those that are absent name none."""
    if claims is None:
        return False
    named: Truth = claims[partition]
    return named
