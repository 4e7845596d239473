"""The mutants of the core: every one that the operators make of its modules, connectives and values, the coordinator's
core, and the member."""

import ast
import importlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import ModuleType
from typing import Any, TypeVar

from fencepost.conformance.zoo.mutants import (
    Mutant,
    apply_mutant,
    dependencies_of,
    load_changed,
    mutants_of,
    source_of,
)
from fencepost.conformance.zoo.operators import Vocabulary
from fencepost.model.explore.tours import Machine
from tests.model.mutants.machines import MODULES, machine, module_of

CORE = (
    "fencepost.model.logic",
    "fencepost.model.frozen",
    "fencepost.model.classic.core.state",
    "fencepost.model.classic.core.member_table",
    "fencepost.model.classic.core.protocol_selection",
    "fencepost.model.classic.core.join_phase",
    "fencepost.model.classic.core.join",
    "fencepost.model.classic.core.static_replacement",
    "fencepost.model.classic.core.sync",
    "fencepost.model.classic.core.membership",
    "fencepost.model.classic.core.timers",
    "fencepost.model.classic.member.member",
)
"""The modules of the core, from the bottom up. Their last names are unique: mutants are named by them."""
BY_NAME = {module.rpartition(".")[2]: module for module in CORE}


Result = TypeVar("Result")
FUNCTIONS = (BY_NAME["logic"],)
"""Modules below the values, which take no more than names of types from them."""
IMPORT_TIME_MODULE = BY_NAME["frozen"]
"""The module that makes the values' classes."""
SHARED_MODULES = (
    BY_NAME["state"],
    "fencepost.model.sorts",
    "fencepost.model.groups.messages",
    "fencepost.model.classic.explore.coordinator_inputs",
)
"""Modules of values: shared, so that they can be compared with the shipped ones."""
MACHINE_MODULES = tuple(sorted(dependencies_of(MODULES)))
"""All that the machines are made of."""


@cache
def core_mutants() -> tuple[Mutant, ...]:
    """Every mutant of the core as it is now."""
    sources = {name: source_of(name) for name in CORE}
    vocabulary = Vocabulary.of((*sources.values(), source_of("fencepost.model.errors")))
    return tuple(one for name, source in sources.items() for one in mutants_of(name, source, vocabulary))


def function_of(mutant: Mutant) -> str | None:
    """The function that the mutant is in, as `module.function`; None if it is in none, or in one that runs before all
    others and makes them what they are."""
    if mutant.module == IMPORT_TIME_MODULE:
        return None
    short = mutant.module.rpartition(".")[2]
    return f"{short}.{mutant.function}" if mutant.function in functions_of(mutant.module) else None


@cache
def functions_of(module: str) -> frozenset[str]:
    """The functions that a module defines."""
    body = ast.parse(source_of(module)).body
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef))


class LoadedMutant:
    """A mutant of the core, and the machines that are made of it. Making one may fail with any exception."""

    def __init__(self, mutant: Mutant) -> None:
        self.changed = {mutant.module: apply_mutant(source_of(mutant.module), mutant)}
        self.shared = SHARED_MODULES if mutant.module in FUNCTIONS else ()
        self._modules = load_changed(self.changed, MACHINE_MODULES, self.shared)
        for name, module in self._modules.items():
            if module is not importlib.import_module(name):
                equal_to_shipped(module)
        self.function: Callable[..., Any] = getattr(self._modules[mutant.module], mutant.function, type(None))
        """The mutated function; nothing of use if the mutant is in none."""

    def is_shipped(self, name: str) -> bool:
        """The machine of this name has nothing of the mutant."""
        module = module_of(name)
        return self._modules[module] is importlib.import_module(module)

    def machine(self, name: str) -> "Machine[object, object]":
        """The machine of this name."""
        return machine(name, self._modules[module_of(name)])


def equal_to_shipped(module: ModuleType) -> None:
    """Let the values of a copied module equal those of the shipped one that have the same fields."""
    for kind in vars(module).values():
        if isinstance(kind, type) and kind.__module__ == module.__name__ and is_dataclass(kind):
            kind.__eq__ = equality(kind)  # type: ignore[method-assign]
            kind.__hash__ = unless_incomplete(kind.__hash__, object.__hash__)  # type: ignore[method-assign,assignment]
            kind.__repr__ = unless_incomplete(kind.__repr__, object.__repr__)  # type: ignore[method-assign]


def equality(kind: type) -> Callable[[object, object], bool]:
    """Of the same name, with equal fields."""
    names = [one.name for one in fields(kind)]
    read = attrgetter(*names) if names else lambda _: None

    def equal(one: object, other: object) -> bool:
        if type(one).__qualname__ != type(other).__qualname__:
            return False
        try:
            return bool(read(one) == read(other))
        except AttributeError:  # a mutated constructor may leave fields out
            return False

    return equal


def unless_incomplete(
    method: Callable[[object], Result], fallback: Callable[[object], Result]
) -> Callable[[object], Result]:
    """The method, or the fallback for values whose fields a mutated constructor left out."""

    def call(value: object) -> Result:
        try:
            return method(value)
        except AttributeError:
            return fallback(value)

    return call
