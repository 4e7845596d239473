"""The theorems about the repaired consistent region, for any number of operators and records.

The invariants hold at the beginning and after every event; what the page lacks is needed.
"""

from collections.abc import Iterator
from typing import Any

import z3

from fencepost.model.kernel_logic import KernelEvent
from fencepost.model.proofs.induction import KernelTheorems, Lemma, kernel_lemmas
from fencepost.model.proofs.symbolic_values import SymbolicLogic
from fencepost.model.region.kernel import (
    OFFSETS,
    SETS,
    MergeKernel,
    RegionKernel,
    contribute_event,
    initial_kernel,
    invariants,
    is_clean,
    kernel_events,
    merge_invariant,
)

OPERATOR = z3.DeclareSort("Operator")
EXACT, ONE_HOLDER, MERGE, SEEN_ONCE = "region.exact", "region.one-holder", "region.merge", "region.once"
SENTENCES = {
    EXACT: "A complete checkpoint resumes each partition at exactly what downstream in it has yet to see.",
    ONE_HOLDER: "No two operators that agree to a checkpoint hold the same partition.",
    SEEN_ONCE: "Downstream in a complete checkpoint has seen nothing twice and has missed nothing.",
    MERGE: "A merge is complete only with a contribution of every operator of the job, and of nobody else.",
}
"""What people read."""
BELOW = "region.kernel"
"""The theorem of the invariants that nobody reads."""
FALSE_MERGE = "region.names is needed"
FALSE_THEOREMS = {
    "region.veto is needed": "An operator that waits for a reset may write its checkpoint.",
    "region.membership is needed": "An operator whose membership has ended may write its checkpoint.",
    "region.base is needed": "A partition that nobody wrote may be resumed at its initial offset.",
    "region.permit is needed": "An operator may be reset with a message in hand.",
    FALSE_MERGE: "A merge may be complete once all those have contributed whom a contributor names.",
}
"""What has to be refuted: the witnesses that the proofs can fail."""


def any_kernel() -> RegionKernel:
    """Any state."""
    sets = {name: z3.Function(name, OPERATOR, z3.BoolSort()) for name in SETS}
    offsets = {name: z3.Function(name, OPERATOR, z3.IntSort()) for name in OFFSETS}
    numbers = {name: z3.Int(name) for name in ("down", "snap", "merged")}
    names = ("is_running", "is_checkpointing", "is_resetting", "is_wrong")
    flags = {name: z3.Bool(name) for name in names}
    made: dict[str, Any] = {**sets, **offsets, **numbers, **flags}
    return RegionKernel(SymbolicLogic(OPERATOR), **made)


def any_events(kernel: RegionKernel) -> tuple[KernelEvent[RegionKernel], ...]:
    """Every event, for any operator and assignment."""
    owns = z3.Function("new_owns", OPERATOR, z3.BoolSort())
    return kernel_events(kernel, z3.Const("one", OPERATOR), owns, z3.Int("chosen"), z3.Int("first"))


def theorem_of(name: str) -> str:
    """The theorem that an invariant counts for."""
    return name if name in SENTENCES else BELOW


def region_lemmas() -> Iterator[Lemma]:
    """Every lemma."""
    start, before = initial_kernel(SymbolicLogic(OPERATOR), z3.Int("first")), any_kernel()
    yield from kernel_lemmas("region", start, before, any_events(before), invariants, theorem_of)
    yield from completion_lemmas(before, tuple(invariants(before).values()))
    yield from merge_lemmas()


def completion_lemmas(k: RegionKernel, known: tuple[Any, ...]) -> Iterator[Lemma]:
    """A checkpoint that is complete has no wrong tuple in it, for no reset was due."""
    complete = z3.And(k.is_checkpointing, k.logic.every(k.written))
    yield Lemma(SEEN_ONCE, "no reset is due when all have written", (*known, complete), is_clean(k))
    submits = next(event for event in any_events(k) if event.name == "submits")
    amiss = k.hand_off(z3.Const("one", OPERATOR)) != k.down
    yield Lemma(SEEN_ONCE, "what is not the next offset is wrong", (submits.guard, amiss), submits.after.is_wrong)
    yield Lemma(SEEN_ONCE, "nothing wrong when all have written", (*known, complete), z3.Not(k.is_wrong))


def merge_lemmas() -> Iterator[Lemma]:
    """REGION-33: the names are those of the job, whatever each contributor has heard."""
    logic = SymbolicLogic(OPERATOR)
    job, contributed, named = (z3.Function(name, OPERATOR, z3.BoolSort()) for name in ("job", "contributed", "named"))
    k = MergeKernel(logic, job, contributed, z3.Bool("is_complete"))
    one = z3.Const("one", OPERATOR)
    nobody = MergeKernel(logic, job, logic.nobody, logic.any_of())
    yield Lemma(MERGE, "at the beginning", (z3.BoolVal(True),), merge_invariant(nobody))
    more = MergeKernel(logic, job, logic.with_one(contributed, one), k.is_complete)
    yield Lemma(MERGE, "after a contribution", (merge_invariant(k), job(one)), merge_invariant(more))
    repaired, documented, whole = contribute_event(k, one, named)
    yield Lemma(MERGE, "once it is complete", (merge_invariant(k), repaired), merge_invariant(whole))
    yield Lemma(FALSE_MERGE, "own names", (merge_invariant(k), documented), merge_invariant(whole), holds=False)


REGION_THEOREMS = KernelTheorems(
    "region",
    SENTENCES,
    FALSE_THEOREMS,
    region_lemmas,
    "the repaired region reduced to what one partition's offsets are, for any number of operators and records",
    "the handlers themselves: tests hold the kernel's invariants in every state of their search",
)
