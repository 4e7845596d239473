"""Judging a mutant of the core: by comparison and tour, and by proof where neither finds anything."""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from fencepost.conformance.zoo.mutation.mutants import Mutant
from fencepost.model.explore.tours import Machine
from tests.model.mutants.core import LoadedMutant, function_of
from tests.model.mutants.corner_cases import CORNER_CASES
from tests.model.mutants.equivalence import (
    MachineRecording,
    Relevant,
    any_transition,
    compare,
    find_by_tour,
    record_machine,
    runs_function,
)
from tests.model.mutants.extended_tours import find_by_extended_tour
from tests.model.mutants.line_coverage import lines_run, reaches, readers
from tests.model.mutants.machines import NAMES, machine, module_of
from tests.model.mutants.modules import BY_NAME
from tests.model.mutants.proving import prove_mutant
from tests.model.mutants.results import EQUIVALENT, REFUTED, TOUR, UNEXPLAINED, UNREACHED, Verdict

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
    *CORNER_CASES,
)
"""The machines, more or less the quick ones first."""
assert set(ORDER) == set(NAMES)


@cache
def recording(name: str) -> MachineRecording:
    """The shipped machine of this name."""
    return record_machine(machine(name, importlib.import_module(module_of(name))))


@cache
def count(name: str, function: str | None) -> int:
    """How many transitions of a machine run a function; all of them for None."""
    shipped, is_meant = recording(name), relevant(function)
    return sum(is_meant(move) for moves in shipped.moves for move in moves)


def relevant(function: str | None) -> Relevant:
    """The transitions that run a function; all of them for None."""
    return any_transition if function is None else runs_function(function)


def changed_transitions(mutant: Mutant, loaded: LoadedMutant, name: str) -> Relevant:
    """The transitions of a machine that the mutant can change."""
    function, reading = function_of(mutant), readers(mutant)
    if reading is not None:
        return lambda move: not move.runs.isdisjoint(reading)
    known = None if function is None else recording(name).calls.get(function)
    if known is None:
        return relevant(function)
    numbers = known.changed_transitions(loaded.function)
    return lambda move: move.number in numbers


def classify_mutant(mutant: Mutant, machines: Sequence[str] = ORDER) -> Verdict:
    """What becomes of the mutant by comparison and tour."""
    try:
        loaded = LoadedMutant(mutant)
    except Exception as error:
        return Verdict(TOUR, machines[0], 1, 1, note=f"cannot be loaded: {type(error).__name__}")
    function, compared, note = function_of(mutant), 0, ""
    later: UndetectedDifference | None = None
    for name in machines:
        if loaded.is_shipped(name):
            continue
        compared += count(name, function)
        shipped = recording(name)
        try:
            mine = loaded.machine(name)
        except Exception as error:
            return Verdict(TOUR, name, 1, 1, note=f"cannot start: {type(error).__name__}")
        may_differ = changed_transitions(mutant, loaded, name)
        comparison = compare(shipped, mine, may_differ)
        if comparison.shortest is not None:
            found = find_by_tour(shipped, mine, may_differ)
            if found is not None:
                return Verdict(TOUR, name, *found, shortest=len(comparison.shortest))
            later = later or (name, mine, may_differ, len(comparison.shortest))
        elif not comparison.complete:
            note = f"{name}: too many states that differ"
    if later is not None:
        return classify_by_extended_tour(*later, relevant(function))
    return classify_indistinct(mutant, machines, compared, note)


UndetectedDifference = tuple[str, Machine[Any, Any], Relevant, int]
"""The first machine of which no ordinary tour tells that of a mutant apart, the transitions that may differ, and how
many inputs show that they do."""


def classify_by_extended_tour(
    name: str, mine: Machine[Any, Any], may_differ: Relevant, shortest: int, runs: Relevant
) -> Verdict:
    """By tours that go on after the transitions that run the function."""
    found = find_by_extended_tour(recording(name), mine, may_differ, runs)
    if found is None:
        return Verdict(UNEXPLAINED, note=f"{name}: {shortest} inputs show it, and no tour")
    return Verdict(TOUR, name, found.tour, found.step, shortest, further=found.further)


def classify_indistinct(mutant: Mutant, machines: Sequence[str], compared: int, note: str) -> Verdict:
    """No machine answers differently: equivalent, if all were compared and some transition runs the function."""
    if note or compared == 0:
        return Verdict(UNEXPLAINED, compared=compared, note=note or "no transition runs it")
    return Verdict(EQUIVALENT, compared=compared, note="" if is_reached(mutant, machines) else UNREACHED)


def is_reached(mutant: Mutant, machines: Sequence[str]) -> bool:
    """Some transition runs the mutant's line, or it is in no function."""
    function = function_of(mutant)
    return function is None or any(reached_in(name, function, mutant) for name in machines)


def reached_in(name: str, function: str, mutant: Mutant) -> bool:
    """Some transition of a machine runs the mutant's line."""
    shipped = recording(name)
    if function in shipped.calls:
        return mutant.line in lines_of(name, function)
    return reaches(shipped, mutant, runs_function(function))


@cache
def lines_of(name: str, function: str) -> frozenset[int]:
    """The lines of a function that the transitions of a machine run."""
    module, _, short = function.partition(".")
    return lines_run(getattr(importlib.import_module(BY_NAME[module]), short), recording(name).calls[function])


def classify_by_proof(mutant: Mutant, verdict: Verdict) -> Verdict:
    """What becomes of a mutant that no tour finds once the proof is asked as well."""
    proof = prove_mutant(mutant, LoadedMutant(mutant))
    name = REFUTED if proof.broken else verdict.verdict
    return replace(verdict, verdict=name, proof=proof.broken, asked=True, note=verdict.note or proof.stops)
