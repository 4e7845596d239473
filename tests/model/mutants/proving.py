"""The proof run on a mutant: which events have a counterexample to induction, and to what."""

import sys
from functools import cache
from types import CodeType, FrameType

from fencepost.conformance.zoo.loading import load
from fencepost.conformance.zoo.mutation import Mutant
from fencepost.model.proofs.events import coordinator_events, member_events
from fencepost.model.proofs.prover import STATEMENTS, Size, prove
from tests.model.mutants.core import Loaded, function_of
from tests.model.mutants.lockstep import CORE, name_of

PROVER, EVENTS, DECODE = (
    "fencepost.model.proofs.prover",
    "fencepost.model.proofs.events",
    "fencepost.model.proofs.decode",
)
SIZE = Size(slots=2, partitions=1)


@cache
def functions_proved() -> dict[str, frozenset[str]]:
    """The functions of the core that the proof of each event runs."""
    return {event.name: functions_in(event.name) for event in (*coordinator_events(SIZE.slots), *member_events())}


def functions_in(name: str) -> frozenset[str]:
    """The functions of the core that the proof of an event runs."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, kind: str, _: object) -> None:
        if kind == "call" and frame.f_globals.get("__name__", "").startswith(CORE):
            codes.add(frame.f_code)

    (event,) = [one for one in (*coordinator_events(SIZE.slots), *member_events()) if one.name == name]
    sys.setprofile(note)
    try:
        prove(event, STATEMENTS, SIZE)
    finally:
        sys.setprofile(None)
    return frozenset(name_of(code) for code in codes)


def refuted(mutant: Mutant, loaded: Loaded) -> dict[str, list[str]]:
    """The events whose proof fails for the mutant, each with the statements broken; of those, the first only.

    Only events whose proof runs the mutant's function are proved again. A counterexample counts if the mutant's own
    handler, run on plain values, makes the same of it.
    """
    function = function_of(mutant)
    modules = load(loaded.changed, (PROVER, EVENTS, DECODE), loaded.shared)
    prover, events, decode = (modules[name] for name in (PROVER, EVENTS, DECODE))
    for event in (*events.coordinator_events(SIZE.slots), *events.member_events()):
        if function is not None and function not in functions_proved()[event.name]:
            continue
        try:
            verdict = prover.prove(event, prover.STATEMENTS, prover.Size(SIZE.slots, SIZE.partitions))
        except Exception as error:
            return {event.name: [f"the proof stops: {type(error).__name__}"]}
        found = []
        for refutation in verdict.refutations:
            example = decode.decoded(event, refutation)
            if decode.replayed(event, example) == example.result:
                found.append(refutation.statement.id)
        if found:
            return {event.name: sorted(set(found))}
    return {}
