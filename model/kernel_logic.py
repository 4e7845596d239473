"""Connectives and quantifiers for kernels: the same state and events on finite sets, and in a proof on any.

Elements are what a kernel is about, registrations or operators.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Set = Callable[[Any], Any]
"""A set of elements, by the condition of being in it."""
Kernel = TypeVar("Kernel")


class KernelLogic(ABC):
    """Connectives and quantifiers, on plain truth values or on formulas."""

    @abstractmethod
    def all_of(self, *terms: Any) -> Any:
        """Every term holds."""

    @abstractmethod
    def any_of(self, *terms: Any) -> Any:
        """Some term holds."""

    @abstractmethod
    def no(self, term: Any) -> Any:
        """The term does not hold."""

    @abstractmethod
    def same(self, one: Any, other: Any) -> Any:
        """The two are equal: elements, numbers or truth values."""

    @abstractmethod
    def every(self, claim: Callable[[Any], Any]) -> Any:
        """The claim holds of every element."""

    @abstractmethod
    def every_partition(self, claim: Callable[[Any], Any]) -> Any:
        """The claim holds of every partition."""

    @abstractmethod
    def choose(self, condition: Any, one: Any, other: Any) -> Any:
        """One value where the condition holds, the other elsewhere."""

    def implies(self, premise: Any, conclusion: Any) -> Any:
        """The conclusion holds if the premise does."""
        return self.any_of(self.no(premise), conclusion)

    def nobody(self, element: Any) -> Any:
        """The empty set."""
        return self.any_of()

    def with_one(self, members: Set, one: Any) -> Set:
        """The set with an element."""
        return lambda r: self.any_of(self.same(r, one), members(r))

    def without_one(self, members: Set, one: Any) -> Set:
        """The set without an element."""
        return lambda r: self.all_of(self.no(self.same(r, one)), members(r))

    def union(self, one: Set, other: Set) -> Set:
        """What is in either."""
        return lambda r: self.any_of(one(r), other(r))

    def intersection(self, one: Set, other: Set) -> Set:
        """What is in both."""
        return lambda r: self.all_of(one(r), other(r))


@dataclass(frozen=True, slots=True)
class KernelEvent(Generic[Kernel]):
    """Something that happens: when it may, and the kernel after it. `repair` names what the design lacks, and `drafted`
    is the condition without it."""

    name: str
    guard: Any
    after: Kernel
    repair: str = ""
    drafted: Any = None
