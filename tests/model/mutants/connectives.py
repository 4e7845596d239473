"""The connectives as a machine without states: each on every combination of plain and symbolic values."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from itertools import product
from types import ModuleType
from typing import Any

import z3

from fencepost.model.classic.core.state import NoResponse, Output
from fencepost.model.explore.tours import Machine, Reaction
from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicNumber, SymbolicToken
from tests.support.plain_values import build

_FIRST, _SECOND = z3.Bool("first"), z3.Bool("second")
_WORLDS = ((False, False), (False, True), (True, False), (True, True))
TRUTHS = ("true", "false", "first", "second")
TOKENS = ("none", "text", "nobody", "somebody", "any")
NUMBERS = ("0", "2", "any")


@dataclass(frozen=True, slots=True)
class Application:
    """A function and the names of its arguments."""

    function: str
    arguments: tuple[str, ...]


def value_named(name: str) -> Any:
    """What a name stands for."""
    symbols = {
        "first": SymbolicBool(_FIRST),
        "second": SymbolicBool(_SECOND),
        "nobody": SymbolicToken(z3.IntVal(0)),
        "somebody": SymbolicToken(z3.IntVal(1)),
        "any": SymbolicToken(z3.If(_FIRST, z3.IntVal(1), z3.IntVal(0))),
        "3 or 1": SymbolicNumber(z3.If(_FIRST, z3.IntVal(3), z3.IntVal(1))),
    }
    plain = {"true": True, "false": False, "none": None, "text": "text", "0": 0, "2": 2}
    return plain[name] if name in plain else symbols[name]


def applications() -> Iterator[Application]:
    """Every function under every combination."""
    for count in range(4):
        for terms in product(TRUTHS, repeat=count):
            for function in ("and_", "or_", "all_", "any_", "count"):
                yield Application(function, terms)
    for term in TRUTHS:
        yield Application("not_", (term,))
        for then, otherwise in product(TRUTHS, repeat=2):
            yield Application("ite", (term, then, otherwise))
        for guard in TRUTHS:
            yield Application("emit", (term, guard))
    for count in range(4):
        yield from (Application("largest", numbers) for numbers in product(("0", "2", "3 or 1"), repeat=count))
    yield from (Application("absent", (token,)) for token in TOKENS)
    for claims in product(TRUTHS, repeat=2):
        yield from (Application("holds", (place, *claims)) for place in ("0", "1"))
    yield Application("holds", ("0", "none"))


def connectives_machine(logic: ModuleType) -> Machine[None, Application]:
    """The machine whose inputs are applications of the module's connectives, and whose responses are truth tables."""

    def follow(_: None, what: Application, __: int = 0) -> Reaction[None]:
        return Reaction(None, what.function, responses=tuple(truth_table(result_of(logic, what))))

    return Machine(None, tuple(applications()), follow, follow)


def result_of(logic: ModuleType, what: Application) -> Any:
    """What the function gives."""
    function: Callable[..., Any] = getattr(logic, what.function)
    match what.function:
        case "emit":
            output = build(Output, 1, NoResponse(), value_named(what.arguments[1]))
            return function(value_named(what.arguments[0]), output)
        case "holds":
            place, *claims = what.arguments
            return function(None if claims == ["none"] else tuple(value_named(one) for one in claims), int(place))
        case "all_" | "any_" | "count" | "largest":
            return function(value_named(one) for one in what.arguments)
        case _:
            return function(*(value_named(one) for one in what.arguments))


def truth_table(result: Any) -> Iterator[Hashable]:
    """The result in each world: that of two truth values."""
    for world in _WORLDS:
        if isinstance(result, tuple):
            yield tuple((output.handle, output.response) for output in result if evaluate_in(output.when, world))
        else:
            yield evaluate_in(result, world)


def evaluate_in(result: Any, world: tuple[bool, bool]) -> Hashable:
    """A plain or symbolic value, where the two truth values are known."""
    term = getattr(result, "term", None)
    if term is None:
        assert isinstance(result, int | str | None)
        return result
    known = [(symbol, z3.BoolVal(one)) for symbol, one in zip((_FIRST, _SECOND), world, strict=True)]
    plain = z3.simplify(z3.substitute(term, *known))
    return bool(z3.is_true(plain)) if z3.is_bool(plain) else int(plain.as_long())
