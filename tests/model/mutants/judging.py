"""Judging a mutant of the core: by comparison and tour, and by proof where neither finds anything."""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from types import CodeType

from fencepost.conformance.zoo.mutation import Mutant
from tests.model.mutants.calls import Calls, calls
from tests.model.mutants.core import Loaded, function_of
from tests.model.mutants.lockstep import (
    CORE,
    Recording,
    Relevant,
    compare,
    everything,
    found_by_tour,
    functions,
    record,
    runs,
)
from tests.model.mutants.machines import NAMES, machine, module_of
from tests.model.mutants.proving import refuted
from tests.model.mutants.verdicts import EQUIVALENT, REFUTED, TOUR, UNEXPLAINED, Verdict

ORDER = (
    "connectives",
    "one member",
    "odd joins",
    "odd static",
    "newcomers",
    "newcomers, older",
    "patient static",
    "leader chosen",
    "full, older",
    "static member",
    "votes",
    "full",
    "protocol chosen",
    "two members",
    "static, loose",
    "static, full",
    "old static client",
    "two rounds",
    "older",
    "two partitions",
    "eager member",
    "cooperative member",
    "timeouts",
    "static",
    "old clients",
    "static, votes",
    "two static",
    "static follower",
)
"""The machines, the quick ones first."""
assert set(ORDER) == set(NAMES)
FEW = 1_500
"""Transitions that are taken again sooner than the calls in them are looked at."""


@cache
def recording(name: str) -> Recording:
    """The shipped machine of this name."""
    return record(machine(name, importlib.import_module(module_of(name))))


@cache
def functions_of_machines() -> frozenset[str]:
    """The functions of the core that some transition of some machine runs."""
    return functions(recording(name) for name in ORDER)


def watched(mutant: Mutant) -> str | None:
    """The function of which a transition that the mutant changes runs some code.

    None if it may be any transition: the mutant is in no function, or in one that runs beforehand.
    """
    function = function_of(mutant)
    return function if function in functions_of_machines() else None


@lru_cache(maxsize=len(ORDER))
def count(name: str, function: str | None) -> int:
    """How many transitions of a machine run a function; all of them for None."""
    shipped, is_meant = recording(name), relevant(function)
    return sum(is_meant(move) for moves in shipped.moves for move in moves)


def relevant(function: str | None) -> Relevant:
    """The transitions that run a function; all of them for None."""
    return everything if function is None else runs(function)


@cache
def shipped_code(function: str) -> CodeType:
    """The code of a function of the core."""
    module, _, name = function.partition(".")
    code: CodeType = getattr(importlib.import_module(f"{CORE}{module}"), name).__code__
    return code


@lru_cache(maxsize=len(ORDER))
def calls_of(name: str, function: str) -> Calls | None:
    """The calls of a function in a machine; those of one function are kept, for its mutants are judged together."""
    return calls(recording(name), function, shipped_code(function))


def affected(mutant: Mutant, loaded: Loaded, name: str) -> Relevant:
    """The transitions of a machine that the mutant can change; of few that run it, all."""
    function = watched(mutant)
    known = calls_of(name, function) if function and count(name, function) > FEW else None
    return relevant(function) if known is None else known.affected(loaded.function)


def judged(mutant: Mutant, machines: Sequence[str] = ORDER) -> Verdict:
    """What becomes of the mutant by comparison and tour."""
    try:
        loaded = Loaded(mutant)
    except Exception as error:
        return Verdict(TOUR, machines[0], 1, 1, note=f"cannot be loaded: {type(error).__name__}")
    compared, weak = 0, ""
    for name in machines:
        shipped = recording(name)
        try:
            mine = loaded.machine(name)
        except Exception as error:
            return Verdict(TOUR, name, 1, 1, note=f"cannot start: {type(error).__name__}")
        may_differ = affected(mutant, loaded, name)
        comparison = compare(shipped, mine, may_differ)
        compared += count(name, watched(mutant))
        if comparison.shortest is not None:
            found = found_by_tour(shipped, mine, may_differ)
            if found is not None:
                return Verdict(TOUR, name, *found, shortest=len(comparison.shortest))
            weak = f"{name}: only {len(comparison.shortest)} inputs show it: {comparison.shortest}"
        elif not comparison.complete:
            weak = f"{name}: too many states that differ"
    if weak or compared == 0:
        return Verdict(UNEXPLAINED, compared=compared, note=weak or "no transition runs it")
    return Verdict(EQUIVALENT, compared=compared)


def proved(mutant: Mutant, verdict: Verdict) -> Verdict:
    """What becomes of a mutant that no tour finds once the proof is asked as well."""
    proof = refuted(mutant, Loaded(mutant))
    return replace(verdict, verdict=REFUTED if proof else verdict.verdict, proof=proof, asked=True)
