"""Arbitrary values of the types that handlers work on: a symbol for each field, chosen by the field's annotation."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from enum import IntEnum
from typing import Any, TypeAlias, get_type_hints

import z3

from fencepost.model.logic import Time, Token
from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicNumber, SymbolicToken
from fencepost.model.proofs.terms import Term, numeral

Sort: TypeAlias = Any
"""An annotation: a class, a NewType, or a union or tuple of such."""


@dataclass(slots=True)
class SymbolFactory:
    """Makes symbols and notes in `domain` which values they can have. A protocol adds its own sorts to `makers`."""

    domain: list[Term] = field(default_factory=list)
    made: int = 0
    makers: dict[Sort, Callable[[str], Any]] = field(init=False)
    """The function that makes a symbol of each sort, given a label."""

    def __post_init__(self) -> None:
        self.makers = {bool: self.truth, int: self.number, Time: self.number, Token: self.token}

    def arbitrary(self, sort: Sort, label: str) -> Any:
        """Any value of this sort. Raises TypeError if it is neither in `makers` nor an enumeration or a dataclass."""
        make = self.makers.get(sort)
        if make is not None:
            return make(label)
        if isinstance(sort, type) and issubclass(sort, IntEnum):
            return self.enumeration(sort, label)
        if isinstance(sort, type) and is_dataclass(sort):
            hints = get_type_hints(sort, include_extras=True)
            return sort(**{f.name: self.arbitrary(hints[f.name], f"{label}.{f.name}") for f in fields(sort)})
        raise TypeError(f"{label}: no symbol stands for any {sort}")

    def truth(self, label: str) -> SymbolicBool:
        """Any truth value."""
        return SymbolicBool(z3.Bool(self.new_name(label)))

    def number(self, label: str) -> SymbolicNumber:
        """Any number."""
        return SymbolicNumber(z3.Int(self.new_name(label)))

    def enumeration(self, kind: type[IntEnum], label: str) -> SymbolicNumber:
        """Any member of an enumeration."""
        number = z3.Int(self.new_name(label))
        self.domain.append(z3.Or(*(number == numeral(value) for value in kind)))
        return SymbolicNumber(number, kind)

    def token(self, label: str) -> SymbolicToken:
        """Any token, or none."""
        term = z3.Int(self.new_name(label))
        self.domain.append(term >= 0)
        return SymbolicToken(term)

    def many(self, sort: Sort, count: int, label: str) -> tuple[Any, ...]:
        """Several values of a sort."""
        return tuple(self.arbitrary(sort, f"{label}.{index}") for index in range(count))

    def new_name(self, label: str) -> str:
        """The label with a number that no other symbol has."""
        self.made += 1
        return f"{label}#{self.made}"
