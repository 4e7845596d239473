"""Judging a mutant of the core: by comparison and tour, and by proof where neither finds anything.

The proof of a mutant gives the first event with a counterexample to induction, and the statements that it breaks.
"""

import ast
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import CodeType, FrameType
from typing import Any

from fencepost.conformance.zoo.measuring import trace_lines
from fencepost.conformance.zoo.mutants import Mutant, file_of, load_changed, node_at, source_of
from fencepost.model.classic.proofs.induction import STATEMENTS, ProofSize, prove_event
from fencepost.model.classic.proofs.proof_events import coordinator_events, member_events
from fencepost.model.explore.tours import Machine
from tests.model.mutants.comparison import (
    Calls,
    MachineRecording,
    Relevant,
    any_transition,
    compare,
    find_by_extended_tour,
    find_by_tour,
    name_of,
    record_machine,
    runs_function,
)
from tests.model.mutants.core import BY_NAME, CORE, MACHINE_MODULES, LoadedMutant, function_of, functions_of
from tests.model.mutants.corner_cases import CORNER_CASES
from tests.model.mutants.machines import NAMES, machine, module_of
from tests.model.mutants.results import EQUIVALENT, REFUTED, TOUR, UNEXPLAINED, UNREACHED, Verdict

# -- lines of the core, and fields of the dialect, that transitions reach ----------------------------------------------


VALUES = BY_NAME["state"]


def reaches(recording: MachineRecording, mutant: Mutant, relevant: Relevant) -> bool:
    """Whether some of these transitions run the mutant's line."""
    line = (str(file_of(mutant.module)), mutant.line)
    for state, moves in zip(recording.states, recording.moves, strict=True):
        for move in filter(relevant, moves):
            with trace_lines(line[0]) as lines:
                recording.machine.follow(state, move.step.input, move.step.milliseconds)
            if line in lines:
                return True
    return False


def lines_run(function: Callable[..., Any], calls: Calls) -> frozenset[int]:
    """The lines that some of these calls of the function run of it."""
    with trace_lines(function.__code__.co_filename, function.__code__.co_qualname) as lines:
        for given, _result in calls.results:
            function(*given)
    return frozenset(number for _, number in lines)


def readers(mutant: Mutant) -> frozenset[str] | None:
    """The functions of the core that read the field of the dialect whose default is mutated.

    A transition that runs none of them is the same. None if it is no such mutant, or if others read the field too.
    """
    if (mutant.module, mutant.function) != (VALUES, "CoreDialect"):
        return None
    node: Any = node_at(ast.parse(source_of(VALUES)), mutant.path[:-1])
    field = node.target.id
    found = {module: readers_in(module, field) for module in MACHINE_MODULES}
    if any(names for module, names in found.items() if module not in CORE or None in names):
        return None
    return frozenset(f"{module.rpartition('.')[2]}.{name}" for module, names in found.items() for name in names)


@cache
def readers_in(module: str, field: str) -> frozenset[str | None]:
    """The functions of a module that read a field of this name; None for what is in no function."""
    found: set[str | None] = set()
    for node in ast.parse(source_of(module)).body:
        name = getattr(node, "name", None) if isinstance(node, ast.FunctionDef) else None
        if any(isinstance(one, ast.Attribute) and one.attr == field for one in ast.walk(node)):
            found.add(name if name in functions_of(module) else None)
    return frozenset(found)


# -- proof -------------------------------------------------------------------------------------------------------------


INDUCTION, EVENTS = (
    "fencepost.model.classic.proofs.induction",
    "fencepost.model.classic.proofs.proof_events",
)
SIZE = ProofSize(slots=2, partitions=1)


@cache
def functions_proved() -> dict[str, frozenset[str]]:
    """The functions of the core that the proof of each event runs."""
    return {event.name: functions_in(event) for event in (*coordinator_events(SIZE.slots), *member_events())}


def functions_in(event: Any) -> frozenset[str]:
    """The functions of the core that the proof of an event runs."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, kind: str, _: object) -> None:
        if kind == "call" and frame.f_globals.get("__name__") in CORE:
            codes.add(frame.f_code)

    sys.setprofile(note)
    try:
        prove_event(event, STATEMENTS, SIZE)
    finally:
        sys.setprofile(None)
    return frozenset(name_of(code) for code in codes)


@dataclass(frozen=True, slots=True)
class Proof:
    """What the proof says of a mutant: the first event that has a counterexample to induction, with the statements
    that it breaks, if there is one; and where the mutant cannot be run on symbolic values."""

    broken: Mapping[str, list[str]] = field(default_factory=dict)
    stops: str = ""


def prove_mutant(mutant: Mutant, loaded: LoadedMutant) -> Proof:
    """The result of the proof on the loaded mutant: the first event with a counterexample, if there is one.

    Only events whose proof runs the mutant's function are proved again.
    """
    function = function_of(mutant)
    events = [name for name, run in functions_proved().items() if function is None or function in run]
    return prove_events(loaded, events)


def natively_broken(event: Any, verdict: Any, prover: Any) -> set[str]:
    """The refuted statements with a counterexample of which the mutant's own handler, run on plain values, makes the
    same."""
    found = set()
    for refutation in verdict.refutations:
        example = prover.decode_refutation(event, refutation)
        if prover.replay_handler(event, example) == example.result:
            found.add(refutation.statement.id)
    return found


def prove_events(loaded: LoadedMutant, names: Iterable[str]) -> Proof:
    """Prove these events of the mutant.

    A counterexample counts if the mutant's own handler, run on plain values, makes the same of it.
    """
    modules = load_changed(loaded.changed, (INDUCTION, EVENTS), loaded.shared)
    prover, events = modules[INDUCTION], modules[EVENTS]
    every = {one.name: one for one in (*events.coordinator_events(SIZE.slots), *events.member_events())}
    stops = ""
    for event in (every[name] for name in names):
        try:
            verdict = prover.prove_event(event, prover.STATEMENTS, prover.ProofSize(SIZE.slots, SIZE.partitions))
        except Exception as error:
            stops = stops or f"the proof of {event.name} stops: {type(error).__name__}"
            continue
        found = natively_broken(event, verdict, prover)
        if found:
            return Proof({event.name: sorted(found)}, stops)
    return Proof(stops=stops)


# -- verdict -----------------------------------------------------------------------------------------------------------


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
