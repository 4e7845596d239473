"""The theorems about the repaired consistent region, for any number of operators and records.

The invariants hold at the beginning and after every event; what the page lacks is needed.
"""

from collections.abc import Iterator
from typing import Any

import z3

from fencepost.model.logic import and_, not_
from fencepost.model.proofs.induction import KernelTheorems, Lemma, kernel_lemmas
from fencepost.model.proofs.symbolic_relations import SymbolicRelation, any_relation
from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicElement, SymbolicNumber, formula
from fencepost.model.region.kernel import (
    OFFSETS,
    SETS,
    Events,
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
ONE = SymbolicElement(z3.Const("one", OPERATOR))
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
    job = SymbolicRelation((OPERATOR,), lambda o: z3.BoolVal(True))
    sets = {name: any_relation(name, (OPERATOR,)) for name in SETS}
    offsets = {name: any_offset(name) for name in OFFSETS}
    numbers = {name: any_number(name) for name in ("down", "snap", "merged")}
    names = ("is_running", "is_checkpointing", "is_resetting", "is_wrong")
    flags: dict[str, Any] = {name: SymbolicBool(z3.Bool(name)) for name in names}
    return RegionKernel(job, **sets, **offsets, **numbers, **flags)  # type: ignore[arg-type]


def any_offset(name: str) -> Any:
    """Any offset of each operator."""
    offset = z3.Function(name, OPERATOR, z3.IntSort())
    return lambda o: SymbolicNumber(offset(o.term))


def any_number(name: str) -> Any:
    """An integer, of which a proof knows nothing."""
    return SymbolicNumber(z3.Int(name))


def any_events(kernel: RegionKernel) -> Events:
    """Every event, for any operator and assignment."""
    owns = any_relation("new_owns", (OPERATOR,))
    return kernel_events(kernel, ONE, owns, any_number("chosen"), any_number("first"))


def theorem_of(name: str) -> str:
    """The theorem that an invariant counts for."""
    return name if name in SENTENCES else BELOW


def region_lemmas() -> Iterator[Lemma]:
    """Every lemma."""
    before = any_kernel()
    start = initial_kernel(before.job, any_number("first"))
    yield from kernel_lemmas("region", start, before, any_events(before), invariants, theorem_of)
    yield from completion_lemmas(before, tuple(map(formula, invariants(before).values())))
    yield from merge_lemmas()


def completion_lemmas(k: RegionKernel, known: tuple[Any, ...]) -> Iterator[Lemma]:
    """A checkpoint that is complete has no wrong tuple in it, for no reset was due."""
    complete = formula(and_(k.is_checkpointing, k.job.every(k.written.has)))
    yield Lemma(SEEN_ONCE, "no reset is due when all have written", (*known, complete), formula(is_clean(k)))
    submits = next(event for event in any_events(k) if event.name == "submits")
    amiss = formula(and_(submits.guard, not_(k.hand_off(ONE) == k.down)))
    yield Lemma(SEEN_ONCE, "what is not the next offset is wrong", (amiss,), formula(submits.after.is_wrong))
    yield Lemma(SEEN_ONCE, "nothing wrong when all have written", (*known, complete), formula(not_(k.is_wrong)))


def merge_lemmas() -> Iterator[Lemma]:
    """REGION-33: the names are those of the job, whatever each contributor has heard."""
    job, contributed, named = (any_relation(name, (OPERATOR,)) for name in ("job", "contributed", "named"))
    k = MergeKernel(job, contributed, SymbolicBool(z3.Bool("is_complete")))  # type: ignore[arg-type]
    known = formula(merge_invariant(k))
    nobody = MergeKernel(job, contributed.empty(), False)
    yield Lemma(MERGE, "at the beginning", (z3.BoolVal(True),), formula(merge_invariant(nobody)))
    more = MergeKernel(job, contributed.plus(ONE), k.is_complete)
    yield Lemma(MERGE, "after a contribution", (known, formula(job.has(ONE))), formula(merge_invariant(more)))
    repaired, documented, whole = contribute_event(k, ONE, named)
    after = formula(merge_invariant(whole))
    yield Lemma(MERGE, "once it is complete", (known, formula(repaired)), after)
    yield Lemma(FALSE_MERGE, "own names", (known, formula(documented)), after, holds=False)


REGION_THEOREMS = KernelTheorems(
    "region",
    SENTENCES,
    FALSE_THEOREMS,
    region_lemmas,
    "the repaired region reduced to what one partition's offsets are, for any number of operators and records",
    "the handlers themselves: tests hold the kernel's invariants in every state of their search",
)
