"""The logic of kernels on plain values: what a kernel says of a state that a search has reached."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fencepost.model.kernel_logic import KernelLogic


@dataclass(frozen=True, slots=True)
class FiniteLogic(KernelLogic):
    """Plain truth values about so many elements and partitions."""

    elements: tuple[Any, ...]
    partitions: tuple[Any, ...]

    def all_of(self, *terms: Any) -> Any:
        """Every term is true."""
        return all(terms)

    def any_of(self, *terms: Any) -> Any:
        """Some term is true."""
        return any(terms)

    def no(self, term: Any) -> Any:
        """The term is false."""
        return not term

    def same(self, one: Any, other: Any) -> Any:
        """Both are equal."""
        return one == other

    def choose(self, condition: Any, one: Any, other: Any) -> Any:
        """Plain choice."""
        return one if condition else other

    def every(self, claim: Callable[[Any], Any]) -> Any:
        """The claim is true of each element."""
        return all(map(claim, self.elements))

    def every_partition(self, claim: Callable[[Any], Any]) -> Any:
        """The claim is true of each partition."""
        return all(map(claim, self.partitions))
