"""The mutants of the core: every one that the operators make of its modules."""

import ast
from functools import cache

from fencepost.conformance.zoo.loading import load, source_of
from fencepost.conformance.zoo.mutation import Mutant, mutants, mutated
from fencepost.conformance.zoo.syntax import Vocabulary
from fencepost.model.explore.tours import Machine
from tests.model.mutants.machines import MODULES, machine, module_of

CORE = "fencepost.model.core"
NAMES = (
    "logic",
    "change",
    "values",
    "members",
    "vote",
    "rounds",
    "join",
    "replacement",
    "sync",
    "session",
    "timers",
    "member",
)
"""The modules of the core, from the bottom up."""
FUNCTIONS = (f"{CORE}.logic", f"{CORE}.change")
"""Modules below the values, which take no more than names of types from them."""
OF_TYPES = (f"{CORE}.values", "fencepost.model.explore.coordinator_inputs")
"""Modules of values: shared, so that they can be compared with the shipped ones."""


@cache
def core_mutants() -> tuple[Mutant, ...]:
    """Every mutant of the core as it is now."""
    sources = {f"{CORE}.{name}": source_of(f"{CORE}.{name}") for name in NAMES}
    vocabulary = Vocabulary.of((*sources.values(), source_of("fencepost.model.errors")))
    return tuple(one for name, source in sources.items() for one in mutants(name, source, vocabulary))


def function_of(mutant: Mutant) -> str | None:
    """The function that the mutant is in, as `module.function`; None if it is in none."""
    short = mutant.module.rpartition(".")[2]
    return f"{short}.{mutant.function}" if mutant.function in functions_of(mutant.module) else None


@cache
def functions_of(module: str) -> frozenset[str]:
    """The functions that a module defines."""
    body = ast.parse(source_of(module)).body
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef))


class Loaded:
    """A mutant of the core, and the machines that are made of it. Making one may fail with any exception."""

    def __init__(self, mutant: Mutant) -> None:
        self.changed = {mutant.module: mutated(source_of(mutant.module), mutant)}
        self.shared = OF_TYPES if mutant.module in FUNCTIONS else ()
        self._modules = load(self.changed, MODULES, self.shared)

    def machine(self, name: str) -> "Machine[object, object]":
        """The machine of this name."""
        return machine(name, self._modules[module_of(name)])
