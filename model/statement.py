"""Statements: predicates with a sentence, which people read, proofs prove and searches check.

The annotations of a predicate say what it is about: `def t(a: Answer, b: Answer)` means "for any two answers".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_type_hints

from fencepost.model.logic import Truth, not_, or_


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
