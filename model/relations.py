"""Relations and events, of which kernels are made: finite ones where tests run a kernel, and in a proof any.

A kernel is a few relations and truth values. Its guards and invariants are written with `model/logic.py`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from fencepost.model.logic import Token, Truth
from fencepost.model.statement import implies

Kernel = TypeVar("Kernel")


class Relation(Protocol):
    """A set of tuples."""

    def has(self, *elements: Token) -> Truth:
        """The tuple is in the relation."""
        ...

    def every(self, claim: Callable[..., Truth]) -> Truth:
        """The claim holds of each tuple."""
        ...

    def suffixes(self, *prefix: Token) -> "Relation":
        """The rest of each tuple that begins so."""
        ...

    def plus(self, *elements: Token) -> "Relation":
        """With this tuple."""
        ...

    def put(self, *elements: Token, there: Truth) -> "Relation":
        """With this tuple where it is to be there, else without it."""
        ...

    def without(self, *prefix: Token) -> "Relation":
        """Less the tuples that begin so."""
        ...

    def plus_all(self, prefix: tuple[Token, ...], rest: "Relation") -> "Relation":
        """With each tuple of `rest` behind the prefix."""
        ...

    def minus(self, other: "Relation") -> "Relation":
        """Without the tuples of the other relation."""
        ...

    def common(self, other: "Relation") -> "Relation":
        """The tuples of both."""
        ...

    def empty(self) -> "Relation":
        """The empty relation of the same kind."""
        ...


@dataclass(frozen=True, slots=True)
class FiniteRelation:
    """A relation as a set of tuples."""

    tuples: frozenset[tuple[Token, ...]] = frozenset()

    def has(self, *elements: Token) -> Truth:
        """The tuple is in the relation."""
        return elements in self.tuples

    def every(self, claim: Callable[..., Truth]) -> Truth:
        """The claim holds of each tuple."""
        return all(claim(*each) for each in self.tuples)

    def suffixes(self, *prefix: Token) -> "FiniteRelation":
        """The rest of each tuple that begins so."""
        length = len(prefix)
        return FiniteRelation(frozenset(each[length:] for each in self.tuples if each[:length] == prefix))

    def plus(self, *elements: Token) -> "FiniteRelation":
        """With this tuple."""
        return self if elements in self.tuples else FiniteRelation(self.tuples | {elements})

    def put(self, *elements: Token, there: Truth) -> "FiniteRelation":
        """With this tuple where it is to be there, else without it."""
        return self.plus(*elements) if there else self.without(*elements)

    def without(self, *prefix: Token) -> "FiniteRelation":
        """Less the tuples that begin so."""
        length = len(prefix)
        return FiniteRelation(frozenset(each for each in self.tuples if each[:length] != prefix))

    def plus_all(self, prefix: tuple[Token, ...], rest: Any) -> "FiniteRelation":
        """With each tuple of `rest` behind the prefix."""
        return FiniteRelation(self.tuples.union(prefix + each for each in rest.tuples))

    def minus(self, other: Any) -> "FiniteRelation":
        """Without the tuples of the other relation."""
        return FiniteRelation(self.tuples - other.tuples)

    def common(self, other: Any) -> "FiniteRelation":
        """The tuples of both."""
        return FiniteRelation(self.tuples & other.tuples)

    def empty(self) -> "FiniteRelation":
        """The empty relation."""
        return FiniteRelation()

    def __iter__(self) -> Iterator[tuple[Token, ...]]:
        return iter(self.tuples)


def finite_relation(*tuples: tuple[Token, ...]) -> FiniteRelation:
    """The relation of these tuples."""
    return FiniteRelation(frozenset(tuples))


def is_exclusive(assignment: Relation) -> Truth:
    """No partition is given to two members."""
    return assignment.every(lambda m, p: assignment.every(lambda x, q: implies(q == p, x == m)))


@dataclass(frozen=True, slots=True)
class KernelEvent(Generic[Kernel]):
    """Something that happens: when it may, and the kernel after it. `repair` names what the design lacks, and `drafted`
    is the condition without it."""

    name: str
    guard: Truth
    after: Kernel
    repair: str = ""
    drafted: Truth = True
