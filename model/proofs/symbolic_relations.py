"""Relations of any size, on which kernels run in a proof."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import z3

from fencepost.model.logic import Truth
from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicElement, formula

Kernel = TypeVar("Kernel", bound=Any)


@dataclass(frozen=True, slots=True)
class SymbolicRelation:
    """A relation of any size: what it is between, and which tuples of terms are in it."""

    sorts: tuple[Any, ...]
    body: Callable[..., Any]

    def has(self, *elements: SymbolicElement) -> SymbolicBool:
        """The tuple is in the relation."""
        return SymbolicBool(self.body(*(each.term for each in elements)))

    def every(self, claim: Callable[..., Any]) -> SymbolicBool:
        """The claim holds of each tuple."""
        bound = [z3.FreshConst(sort) for sort in self.sorts]
        return SymbolicBool(
            z3.ForAll(bound, z3.Implies(self.body(*bound), formula(claim(*map(SymbolicElement, bound)))))
        )

    def suffixes(self, *prefix: SymbolicElement) -> "SymbolicRelation":
        """The rest of each tuple that begins so."""
        terms = [each.term for each in prefix]
        return SymbolicRelation(self.sorts[len(prefix) :], lambda *rest: self.body(*terms, *rest))

    def plus(self, *elements: SymbolicElement) -> "SymbolicRelation":
        """With this tuple."""
        return self.plus_all(elements, SymbolicRelation((), z3.And))

    def put(self, *elements: SymbolicElement, there: Truth) -> "SymbolicRelation":
        """With this tuple where it is to be there, else without it."""
        terms = [each.term for each in elements]
        return SymbolicRelation(
            self.sorts, lambda *each: z3.If(starts_with(each, terms), formula(there), self.body(*each))
        )

    def without(self, *prefix: SymbolicElement) -> "SymbolicRelation":
        """Less the tuples that begin so."""
        terms = [each.term for each in prefix]
        return SymbolicRelation(self.sorts, lambda *each: z3.And(self.body(*each), z3.Not(starts_with(each, terms))))

    def plus_all(self, prefix: tuple[SymbolicElement, ...], rest: "SymbolicRelation") -> "SymbolicRelation":
        """With each tuple of `rest` behind the prefix."""
        terms = [each.term for each in prefix]
        count = len(terms)
        return SymbolicRelation(
            self.sorts,
            lambda *each: z3.Or(self.body(*each), z3.And(starts_with(each, terms), rest.body(*each[count:]))),
        )

    def minus(self, other: "SymbolicRelation") -> "SymbolicRelation":
        """Without the tuples of the other relation."""
        return SymbolicRelation(self.sorts, lambda *each: z3.And(self.body(*each), z3.Not(other.body(*each))))

    def common(self, other: "SymbolicRelation") -> "SymbolicRelation":
        """The tuples of both."""
        return SymbolicRelation(self.sorts, lambda *each: z3.And(self.body(*each), other.body(*each)))

    def empty(self) -> "SymbolicRelation":
        """The empty relation of the same kind."""
        return SymbolicRelation(self.sorts, lambda *each: z3.BoolVal(False))


def starts_with(each: tuple[Any, ...], prefix: list[Any]) -> Any:
    """A tuple begins so."""
    return z3.And(*(one == other for one, other in zip(each, prefix, strict=False)))


def any_relation(name: str, sorts: tuple[Any, ...]) -> Any:
    """Any relation between these sorts."""
    return SymbolicRelation(sorts, z3.Function(name, *sorts, z3.BoolSort()))


def without_past(kernel: Kernel) -> Kernel:
    """The kernel with each of its relations empty."""
    values = {one.name: getattr(kernel, one.name) for one in fields(kernel)}
    return replace(kernel, **{name: one.empty() for name, one in values.items() if isinstance(one, SymbolicRelation)})
