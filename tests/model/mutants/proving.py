"""The proof run on a mutant: the first event with a counterexample to induction, and the statements it breaks."""

import ast
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType
from typing import Any

from fencepost.conformance.zoo.mutation.module_copies import load_changed
from fencepost.conformance.zoo.mutation.mutants import Mutant
from fencepost.model.proofs.classic.induction import STATEMENTS, ProofSize, prove_event
from fencepost.model.proofs.classic.inductions import INDUCTIONS
from fencepost.model.proofs.classic.proof_events import coordinator_events, member_events
from tests.model.mutants.call_sites import name_of
from tests.model.mutants.core import LoadedMutant, function_of
from tests.model.mutants.modules import CORE

PROVER, EVENTS, DECODE, INDUCTION = (
    "fencepost.model.proofs.classic.induction",
    "fencepost.model.proofs.classic.proof_events",
    "fencepost.model.proofs.classic.counterexample",
    "fencepost.model.proofs.classic.inductions",
)
SIZE = ProofSize(slots=2, partitions=1)
MANY_PATHS = ("join", "leave", "leave-two", "leave-two-settled-each")


@cache
def functions_proved() -> dict[str, frozenset[str]]:
    """The functions of the core that the proof of each event runs."""
    return {event.name: functions_in(event.name) for event in (*coordinator_events(SIZE.slots), *member_events())}


def functions_in(name: str) -> frozenset[str]:
    """The functions of the core that the proof of an event runs."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, kind: str, _: object) -> None:
        if kind == "call" and frame.f_globals.get("__name__") in CORE:
            codes.add(frame.f_code)

    (event,) = [one for one in (*coordinator_events(SIZE.slots), *member_events()) if one.name == name]
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


def prove_inductions(mutant: Mutant, loaded: LoadedMutant, size: ProofSize) -> Proof:
    """Prove what `fencepost prove` proves of the mutant's handlers: see `prove_changed`."""
    return prove_changed(loaded.changed, loaded.shared, function_of(mutant), size)


def prove_changed(
    changed: Mapping[str, ast.Module], shared: Collection[str], function: str | None, size: ProofSize
) -> Proof:
    """Prove what `fencepost prove` proves, with the sources of some modules changed, within a term and across
    fail-overs, up to the first event with a counterexample. The events with few paths come first.

    Only events whose proof runs the changed function are proved again; all of them if that is None.
    """
    modules = load_changed(changed, (PROVER, DECODE, INDUCTION), shared)
    prover, decode, inductions = (modules[one] for one in (PROVER, DECODE, INDUCTION))
    stops = ""
    for name in INDUCTIONS:
        induction = inductions.INDUCTIONS[name]
        wrong = [] if name != "term" else prover.initially_false(induction.statements, size)
        if wrong:
            return Proof({"beginning": sorted(wrong)})
        for event in sorted(induction.events(size.slots), key=lambda event: event.name in MANY_PATHS):
            if function is not None and function not in functions_proved().get(event.name, {function}):
                continue
            label = event.name if name == "term" else f"{name}: {event.name}"
            try:
                verdict = prover.prove_event(event, induction.statements, size)
            except Exception as error:
                stops = stops or f"the proof of {label} stops: {type(error).__name__}"
                continue
            broken = natively_broken(event, verdict, decode)
            if broken:
                return Proof({label: sorted(broken)}, stops)
    return Proof(stops=stops)


def natively_broken(event: Any, verdict: Any, decode: Any) -> set[str]:
    """The refuted statements with a counterexample of which the mutant's own handler, run on plain values, makes the
    same."""
    found = set()
    for refutation in verdict.refutations:
        example = decode.decode_refutation(event, refutation)
        if decode.replay_handler(event, example) == example.result:
            found.add(refutation.statement.id)
    return found


def prove_events(loaded: LoadedMutant, names: Iterable[str]) -> Proof:
    """Prove these events of the mutant.

    A counterexample counts if the mutant's own handler, run on plain values, makes the same of it.
    """
    modules = load_changed(loaded.changed, (PROVER, EVENTS, DECODE), loaded.shared)
    prover, events, decode = (modules[one] for one in (PROVER, EVENTS, DECODE))
    every = {one.name: one for one in (*events.coordinator_events(SIZE.slots), *events.member_events())}
    stops = ""
    for event in (every[name] for name in names):
        try:
            verdict = prover.prove_event(event, prover.STATEMENTS, prover.ProofSize(SIZE.slots, SIZE.partitions))
        except Exception as error:
            stops = stops or f"the proof of {event.name} stops: {type(error).__name__}"
            continue
        found = natively_broken(event, verdict, decode)
        if found:
            return Proof({event.name: sorted(found)}, stops)
    return Proof(stops=stops)
