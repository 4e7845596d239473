"""Plain values for symbolic ones, and keys for them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import z3

from fencepost.model.logic import Token
from fencepost.model.proofs.symbolic_values import (
    SymbolicBool,
    SymbolicClaims,
    SymbolicElement,
    SymbolicFunction,
    SymbolicMap,
    SymbolicNumber,
    SymbolicSet,
    SymbolicToken,
)
from fencepost.model.proofs.terms import Term

# --- Plain values, read from a model of the solver's or from any other value of each term.

TermReader = Callable[[Term], Any]
"""The value of a term, a number or the name of an element."""


def to_plain(
    value: Any,
    read: TermReader,
    token: Callable[[int], Token] = lambda number: number or None,
    clean: Callable[[Any], Any] = lambda value: value,
    elements: Callable[[Any], Sequence[Term]] = lambda sort: (),
) -> Any:
    """The value with plain values in place of symbols. `token` gives the token for a number, `clean` is applied to
    every dataclass inside, `elements` gives all that there are of a sort."""

    def plain(part: Any) -> Any:
        return to_plain(part, read, token, clean, elements)

    if isinstance(value, SymbolicBool):
        return bool(read(value.term))
    if isinstance(value, SymbolicNumber):
        number = read(value.term)
        return number if value.kind is None else value.kind(number)
    if isinstance(value, SymbolicToken):
        return token(read(value.term))
    if isinstance(value, SymbolicSet):
        within = frozenset(read(one) for one in elements(value.sort) if read(z3.Select(value.term, one)))
        return within if plain(value.present) else None
    if isinstance(value, SymbolicMap):
        keys = value.elements
        entries = [SymbolicElement(one) for one in elements(keys.sort) if read(z3.Select(keys.term, one))]
        return {plain(one): plain(value[one]) for one in entries}
    if isinstance(value, SymbolicElement):
        return read(value.term)
    if isinstance(value, SymbolicClaims):
        return plain(value.flags) if plain(value.present) else None
    if isinstance(value, SymbolicFunction):
        return value.as_plain(plain)
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return clean(type(value)(*(plain(getattr(value, f.name)) for f in fields(value))))
    return value


def model_reader(model: z3.ModelRef) -> TermReader:
    """The reader of a model's terms."""

    def read(term: Term) -> Any:
        value = model.eval(term, model_completion=True)
        if value.num_args() > 0:
            value = compare_sets(value, model.get_universe)
        if z3.is_bool(value):
            return int(z3.is_true(value))
        return int(value.as_long()) if z3.is_int(value) else str(value)

    return read


def compare_sets(term: Term, elements: Callable[[Any], Sequence[Term] | None]) -> Term:
    """The value of a term without symbols: its sets, which a model does not compare, compared by element."""
    waiting, comparisons = [term], list[tuple[Term, Term]]()
    while waiting:
        one = waiting.pop()
        waiting += one.children()
        if one.decl().kind() == z3.Z3_OP_EQ and z3.is_array(one.arg(0)):
            there = elements(one.arg(0).sort().domain()) or ()
            comparisons.append(
                (one, z3.And(*(z3.Select(one.arg(0), each) == z3.Select(one.arg(1), each) for each in there)))
            )
    return z3.simplify(z3.substitute(term, *comparisons))


# --- Keys for symbolic values: two values have one key if and only if they are made of the same terms.


class TermKeys:
    """Gives out keys. It keeps each value that has one, so that the addresses of its terms stay its own."""

    def __init__(self) -> None:
        self._keys: dict[Hashable, int] = {}
        self._kept: list[Any] = []
        self._parts: dict[int, tuple[Any, Hashable]] = {}

    def key(self, value: Any) -> int:
        """The key of a value."""
        structure = self._structure(value)
        key = self._keys.get(structure)
        if key is None:
            key = self._keys[structure] = len(self._kept)
            self._kept.append(value)
        return key

    def _structure(self, value: Any) -> Hashable:
        """The type of a value and of its parts, with the addresses of terms in place of symbols."""
        kind: Any = type(value)
        if kind in _SYMBOLS:
            return (kind, value.term.ast.value)
        if kind is tuple:
            return tuple([self._structure(item) for item in value])
        if kind is dict:
            return (dict, tuple([(key, self._structure(item)) for key, item in value.items()]))
        if kind is SymbolicClaims:
            return (SymbolicClaims, self._structure(value.present), self._structure(value.flags))
        if kind is SymbolicSet:
            return (SymbolicSet, self._structure(value.present), value.term.ast.value)
        if kind is SymbolicMap:
            return (SymbolicMap, self._structure(value.elements), value.term.ast.value)
        if isinstance(value, z3.AstRef):
            return (z3.AstRef, value.ast.value)
        names = field_names(kind)
        return (kind, value) if names is None else self._part(value, names)

    def _part(self, value: Any, names: tuple[str, ...]) -> Hashable:
        """A number for the structure of a dataclass value; the same object is looked at once."""
        known = self._parts.get(id(value))
        if known is None:
            structure = (type(value), *[self._structure(getattr(value, name)) for name in names])
            known = self._parts[id(value)] = (value, self._keys.setdefault(structure, len(self._kept)))
            if known[1] == len(self._kept):
                self._kept.append(value)
        return (type(value), known[1])


_SYMBOLS = frozenset((SymbolicBool, SymbolicElement, SymbolicNumber, SymbolicToken))


@cache
def field_names(kind: type) -> tuple[str, ...] | None:
    """The names of a dataclass's fields; None for other types."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None
