"""The logic of kernels on sets of any size: elements are of an uninterpreted sort."""

from collections.abc import Callable
from typing import Any

import z3

from fencepost.model.kernel_logic import KernelLogic


class SymbolicLogic(KernelLogic):
    """Formulas of the solver's about elements of a sort, and partitions of another."""

    def __init__(self, element: Any, partition: Any = None) -> None:
        self._element, self._partition = element, partition

    def choose(self, condition: Any, one: Any, other: Any) -> Any:
        """A term that depends on the condition."""
        return z3.If(condition, one, other)

    def all_of(self, *terms: Any) -> Any:
        """Their conjunction."""
        return z3.And(*terms) if terms else z3.BoolVal(True)

    def any_of(self, *terms: Any) -> Any:
        """Their disjunction."""
        return z3.Or(*terms) if terms else z3.BoolVal(False)

    def no(self, term: Any) -> Any:
        """The negation."""
        return z3.Not(term)

    def same(self, one: Any, other: Any) -> Any:
        """Equality."""
        return one == other

    def every(self, claim: Callable[[Any], Any]) -> Any:
        """For all elements."""
        one = z3.FreshConst(self._element)
        return z3.ForAll([one], claim(one))

    def every_partition(self, claim: Callable[[Any], Any]) -> Any:
        """For all partitions."""
        partition = z3.FreshConst(self._partition)
        return z3.ForAll([partition], claim(partition))
