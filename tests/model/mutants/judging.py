"""Judging a mutant of the core: by comparison and tour, and by proof where neither finds anything."""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from fencepost.conformance.zoo.mutation import Mutant
from tests.model.mutants.core import Loaded, function_of
from tests.model.mutants.lockstep import (
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


@cache
def recording(name: str) -> Recording:
    """The shipped machine of this name."""
    return record(machine(name, importlib.import_module(module_of(name))))


@cache
def functions_of_machines() -> frozenset[str]:
    """The functions of the core that some transition of some machine runs."""
    return functions(recording(name) for name in ORDER)


def relevant(mutant: Mutant) -> Relevant:
    """The transitions that run the mutant's function; all of them if it is in none, or in one that runs beforehand."""
    function = function_of(mutant)
    return everything if function is None or function not in functions_of_machines() else runs(function)


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
        comparison = compare(shipped, mine, relevant(mutant))
        compared += comparison.taken
        if comparison.shortest is not None:
            found = found_by_tour(shipped, mine, relevant(mutant))
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
