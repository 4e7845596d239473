"""Plain values for symbolic ones, read from a model of the solver's or from any other value of each term."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import z3

from fencepost.model.logic import Token
from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicClaims, SymbolicNumber, SymbolicToken
from fencepost.model.proofs.terms import Term

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
    if is_dataclass(value) and not isinstance(value, type):
        return clean(type(value)(*(to_plain(getattr(value, f.name), read, token, clean) for f in fields(value))))
    return value


def model_reader(model: z3.ModelRef) -> TermReader:
    """The reader of a model's terms."""

    def read(term: Term) -> int:
        value = model.eval(term, model_completion=True)
        return int(z3.is_true(value)) if z3.is_bool(value) else int(value.as_long())

    return read
