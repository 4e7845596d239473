"""Statements: predicates with a sentence, which people read, proofs prove and searches check.

The annotations of a predicate say what it is about: `def t(a: Answer, b: Answer)` means "for any two answers".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, get_type_hints

from fencepost.model.logic import Truth, absent, and_, not_, or_


@dataclass(frozen=True, slots=True)
class Statement:
    """A predicate, its sentence, and the types of its arguments in order."""

    id: str
    sentence: str
    holds: Callable[..., Truth]
    subjects: tuple[type, ...]


def statement(name: str, sentence: str) -> Callable[[Callable[..., Truth]], Statement]:
    """Make a statement of an annotated predicate."""

    def make(predicate: Callable[..., Truth]) -> Statement:
        hints = get_type_hints(predicate)
        return Statement(name, sentence, predicate, tuple(kind for key, kind in hints.items() if key != "return"))

    return make


def implies(premise: Truth, conclusion: Truth) -> Truth:
    """The conclusion holds wherever the premise does."""
    return or_(not_(premise), conclusion)


def are_equal(one: Any, other: Any) -> Truth:
    """Whether two values are equal, part by part, in plain and in symbolic values."""
    if one is other:
        return True
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and and_(*(are_equal(a, b) for a, b in zip(one, other, strict=True)))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and and_(*(are_equal(one[key], other[key]) for key in one))
    if is_dataclass(one) and not isinstance(one, type) and type(one) is type(other):
        return and_(*(are_equal(getattr(one, name.name), getattr(other, name.name)) for name in fields(one)))
    if one is None or other is None:
        return and_(absent(one), absent(other))
    equal: Truth = one == other
    return equal
