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
    record,
    runs,
)
from tests.model.mutants.machines import CONNECTIVES, NAMES, machine, module_of
from tests.model.mutants.proving import asked
from tests.model.mutants.reach import reaches, readers
from tests.model.mutants.verdicts import EQUIVALENT, REFUTED, TOUR, UNEXPLAINED, UNREACHED, Verdict

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
    "leader gone",
    "changed protocols",
    "brief newcomers",
    "brief newcomers, older",
    "brief static",
    "crowded",
    "crowded, at once",
    "static, changed vote",
    "static, later",
    "no partitions",
    "newcomers, long",
)
"""The machines, more or less the quick ones first."""
assert set(ORDER) == set(NAMES)
EVERYWHERE = "logic."
"""The functions that nearly every transition runs."""


@cache
def recording(name: str) -> Recording:
    """The shipped machine of this name."""
    return record(machine(name, importlib.import_module(module_of(name))))


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
    """The transitions of a machine that the mutant can change; of those that run its function all, unless it runs
    nearly everywhere: looking at the calls of a function takes as long as a few mutants of it."""
    function, reading = function_of(mutant), readers(mutant)
    if reading is not None:
        return lambda move: not move.runs.isdisjoint(reading)
    if function is None or name == CONNECTIVES or not function.startswith(EVERYWHERE):
        return relevant(function)
    known = calls_of(name, function)
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
        compared += count(name, function_of(mutant))
        if comparison.shortest is not None:
            found = found_by_tour(shipped, mine, may_differ)
            if found is not None:
                return Verdict(TOUR, name, *found, shortest=len(comparison.shortest))
            weak = f"{name}: only {len(comparison.shortest)} inputs show it: {comparison.shortest}"
        elif not comparison.complete:
            weak = f"{name}: too many states that differ"
    if weak or compared == 0:
        return Verdict(UNEXPLAINED, compared=compared, note=weak or "no transition runs it")
    return Verdict(EQUIVALENT, compared=compared, note="" if is_reached(mutant, machines) else UNREACHED)


def is_reached(mutant: Mutant, machines: Sequence[str]) -> bool:
    """Some transition runs the mutant's line, or it is in no function."""
    function = function_of(mutant)
    return function is None or any(reaches(recording(name), mutant, runs(function)) for name in machines)


def proved(mutant: Mutant, verdict: Verdict) -> Verdict:
    """What becomes of a mutant that no tour finds once the proof is asked as well."""
    proof = asked(mutant, Loaded(mutant))
    name = REFUTED if proof.broken else verdict.verdict
    return replace(verdict, verdict=name, proof=proof.broken, asked=True, note=verdict.note or proof.stops)
