"""Symbolic numbers and truths that the functions of the model run on, merging branches and never forking."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import z3


def term(value: Any) -> Any:
    """The z3 term of a proxy or of a plain value."""
    return value.term if isinstance(value, Condition | Number | Cells) else value


class Condition:
    """A symbolic truth value for the connectives of `model.core.logic`."""

    __slots__ = ("term",)

    def __init__(self, value: Any) -> None:
        self.term = value

    def __and__(self, other: Any) -> "Condition":
        return Condition(z3.And(self.term, term(other)))

    def __or__(self, other: Any) -> "Condition":
        return Condition(z3.Or(self.term, term(other)))

    def negated(self) -> "Condition":
        """The condition does not hold."""
        return Condition(z3.Not(self.term))

    def choose(self, then: Any, otherwise: Any) -> Any:
        """The one value where the condition holds, the other where it does not; frozen values field by field."""
        if then is otherwise:
            return then
        if is_dataclass(then) and not isinstance(then, type):
            pairs = {each.name: (getattr(then, each.name), getattr(otherwise, each.name)) for each in fields(then)}
            return replace(then, **{name: self.choose(one, other) for name, (one, other) in pairs.items()})
        if isinstance(then, Cells):
            return Cells(z3.If(self.term, then.term, term(otherwise)))
        if isinstance(then, int) and isinstance(otherwise, int) and then == otherwise:
            return then
        return Number(z3.If(self.term, term(then), term(otherwise)))

    def __bool__(self) -> bool:
        raise TypeError("a symbolic condition is neither true nor false")


class Number:
    """A symbolic integer."""

    __slots__ = ("term",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self.term = value

    def __add__(self, other: Any) -> "Number":
        return Number(self.term + term(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Number":
        return Number(self.term - term(other))

    def __mul__(self, other: Any) -> "Number":
        return Number(self.term * term(other))

    def __floordiv__(self, other: Any) -> "Number":
        """Division by a positive number."""
        return Number(self.term / term(other))

    def __lt__(self, other: Any) -> Condition:
        return Condition(self.term < term(other))

    def __le__(self, other: Any) -> Condition:
        return Condition(self.term <= term(other))

    def __gt__(self, other: Any) -> Condition:
        return Condition(self.term > term(other))

    def __ge__(self, other: Any) -> Condition:
        return Condition(self.term >= term(other))

    def __eq__(self, other: object) -> Any:
        return Condition(self.term == term(other))

    def __ne__(self, other: object) -> Any:
        return Condition(self.term != term(other))


class Cells:
    """A symbolic array of numbers, of any length."""

    __slots__ = ("term",)

    def __init__(self, array: Any) -> None:
        self.term = array

    def __getitem__(self, position: Any) -> Number:
        return Number(self.term[term(position)])

    def put(self, position: Any, value: Any) -> "Cells":
        """The array with one number exchanged."""
        return Cells(z3.Store(self.term, term(position), term(value)))
