"""Keys for symbolic values: two values have one key if and only if they are made of the same terms."""

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import z3

from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicClaims, SymbolicNumber, SymbolicToken


class TermKeys:
    """Gives out keys. It keeps each value that has one, so that the addresses of its terms stay its own."""

    def __init__(self) -> None:
        self._keys: dict[Hashable, int] = {}
        self._kept: list[Any] = []

    def key(self, value: Any) -> int:
        """The key of a value."""
        structure = term_structure(value)
        key = self._keys.get(structure)
        if key is None:
            key = self._keys[structure] = len(self._kept)
            self._kept.append(value)
        return key


def term_structure(value: Any) -> Hashable:
    """The type of a value and of its parts, with the addresses of terms in place of symbols."""
    if isinstance(value, SymbolicBool | SymbolicNumber | SymbolicToken):
        return (type(value), value.term.ast.value)
    if isinstance(value, tuple):
        return tuple([term_structure(item) for item in value])
    if isinstance(value, SymbolicClaims):
        return (SymbolicClaims, term_structure(value.present), term_structure(value.flags))
    if isinstance(value, z3.AstRef):
        return (z3.AstRef, value.ast.value)
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value), *[term_structure(getattr(value, name)) for name in field_names(type(value))])
    return (type(value), value)


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """The names of a dataclass's fields."""
    return tuple(field.name for field in fields(kind))
