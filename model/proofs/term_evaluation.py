"""Plain values for symbolic ones, and keys for them."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import z3

from fencepost.model.logic import Token
from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicClaims, SymbolicNumber, SymbolicToken
from fencepost.model.proofs.terms import Term

# --- Plain values, read from a model of the solver's or from any other value of each term.

TermReader = Callable[[Term], int]
"""The value of a term."""


def to_plain(
    value: Any,
    read: TermReader,
    token: Callable[[int], Token] = lambda number: number or None,
    clean: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """The value with plain values in place of symbols. `token` gives the token for a number, `clean` is applied to
    every dataclass inside."""
    if isinstance(value, SymbolicBool):
        return bool(read(value.term))
    if isinstance(value, SymbolicNumber):
        number = read(value.term)
        return number if value.kind is None else value.kind(number)
    if isinstance(value, SymbolicToken):
        return token(read(value.term))
    if isinstance(value, SymbolicClaims):
        present = to_plain(value.present, read, token, clean)
        return to_plain(value.flags, read, token, clean) if present else None
    if isinstance(value, tuple):
        return tuple(to_plain(item, read, token, clean) for item in value)
    if isinstance(value, Mapping):
        return {key: to_plain(item, read, token, clean) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return clean(type(value)(*(to_plain(getattr(value, f.name), read, token, clean) for f in fields(value))))
    return value


def model_reader(model: z3.ModelRef) -> TermReader:
    """The reader of a model's terms."""

    def read(term: Term) -> int:
        value = model.eval(term, model_completion=True)
        return int(z3.is_true(value)) if z3.is_bool(value) else int(value.as_long())

    return read


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


_SYMBOLS = frozenset((SymbolicBool, SymbolicNumber, SymbolicToken))


@cache
def field_names(kind: type) -> tuple[str, ...] | None:
    """The names of a dataclass's fields; None for other types."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None
