"""The theorems about the repaired push coordinator, for any number of consumers and partitions.

The invariants hold at the beginning and after every event; guards that the draft lacks are needed.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import z3

from fencepost.model.logic import and_, not_, or_
from fencepost.model.proofs.induction import KernelTheorems, Lemma, kernel_lemmas
from fencepost.model.proofs.symbolic_relations import any_relation, without_past
from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicElement, formula
from fencepost.model.push.kernel import PLANS, SETS, Events, PushKernel, invariants, kernel_events

# The kernel on sets of any size: registrations and partitions are uninterpreted sorts.
#
# A state is a few sets, so that every question is in a decidable fragment.


REGISTRATION = z3.DeclareSort("Registration")
PARTITION = z3.DeclareSort("Partition")
ONE, OTHER = (SymbolicElement(z3.Const(name, REGISTRATION)) for name in ("one", "other"))


def any_kernel() -> PushKernel:
    """Any state."""
    sets = {name: any_relation(name, (REGISTRATION,)) for name in SETS}
    plans = {name: any_relation(name, (REGISTRATION, PARTITION)) for name in PLANS}
    phases: dict[str, Any] = {name: SymbolicBool(z3.Bool(name)) for name in ("is_stopping", "is_starting")}
    return PushKernel(**sets, **plans, **phases)


def any_events(kernel: PushKernel) -> Events:
    """Every event, for any registration that it may be about and any plan."""
    plan = any_relation("new_plan", (REGISTRATION, PARTITION))
    return kernel_events(kernel, ONE, plan, any_relation("new_snapshot", (REGISTRATION,)))


# The lemmas: the invariants hold at the beginning and after every event; guards that the draft lacks are needed.


THEOREMS = {
    "push.one-owner": "No partition is fetched by two consumers of a group, whoever dies, stalls or fails over.",
    "push.barrier": "No consumer is sent a Start before every other one of the group has stopped.",
    "push.stopped-first": "No consumer gets a Start while it fetches.",
    "push.true-map": "When owners are recorded, every live member of the attempt fetches what it was given.",
}
"""The invariants that people read."""
BELOW = "push.kernel"
"""The theorem of the invariants that nobody reads."""
LEASE = "push.lease"
FALSE_LEASE = "push.unconfirmed-lease"
BIT = "push.bit"
FALSE_THEOREMS = {
    "push.lease is needed": "Without waiting for the lease, removal keeps the invariants.",
    "push.wait after an election is needed": "Without a wait after an election, a rebalance keeps the invariants.",
    "push.barrier is needed": "Without waiting for the responses to Stop, Start keeps the invariants.",
    "push.attempt numbers is needed": "Counting a stale response keeps the invariants.",
    "push.remembered changes is needed": "Forgetting a change that meets the set bit keeps the invariant.",
    FALSE_LEASE: "A lease that every ping renews ends before the coordinator's.",
}
"""What has to be refuted: the witnesses that the proofs can fail."""
SENTENCES = {
    **THEOREMS,
    LEASE: "With clocks that drift by r, a lease of L1 ends before one of L2 if L1 (1 + r) <= L2 (1 - r).",
    BIT: "While the rebalance bit is clear, the last rebalance saw the last change; it is set while one works.",
}


def theorem_of(name: str) -> str:
    """The theorem that an invariant counts for."""
    return name if name in THEOREMS else BELOW


def push_lemmas() -> Iterator[Lemma]:
    """Every lemma."""
    before = any_kernel()
    start = replace(without_past(before), is_stopping=False, is_starting=False)
    yield from kernel_lemmas("push", start, before, any_events(before), invariants, theorem_of)
    yield from barrier_lemmas()
    yield from lease_lemmas()
    yield from bit_lemmas()


def barrier_lemmas() -> Iterator[Lemma]:
    """S3: what fetches while a Start of the attempt is under way was started by that attempt, for there is no other."""
    k = any_kernel()
    known = tuple(map(formula, invariants(k).values()))
    stopped = and_(k.is_stopping, k.snapshot.has(OTHER), k.stopped.has(OTHER), k.attached.has(OTHER))
    yield Lemma(
        "push.barrier",
        "who has stopped runs nothing until it is started",
        (*known, formula(stopped)),
        formula(not_(or_(k.fetching.has(OTHER), k.start_sent.has(OTHER)))),
    )
    sends = next(event for event in any_events(k) if event.name == "send starts")
    nobody = formula(and_(not_(k.fetching.has(OTHER)), not_(k.start_sent.has(ONE))))
    for theorem in ("push.barrier", "push.one-owner"):
        yield Lemma(theorem, "nobody fetches when Starts are sent", (*known, formula(sends.guard)), nobody)


def lease_lemmas() -> Iterator[Lemma]:
    """PUSH-42: moments are reals; a clock that drifts by r makes a lease longer or shorter by that share."""
    seen, arrived, ends, removed, again = z3.Reals("seen arrived ends removed again")
    lease, limit, drift = z3.Reals("lease limit drift")
    fits = z3.And(drift >= 0, drift < 1, lease > 0, lease * (1 + drift) <= limit * (1 - drift), seen <= arrived)
    removal = removed >= arrived + limit * (1 - drift)
    yield Lemma(LEASE, "from the confirmed ping", (fits, removal, ends <= seen + lease * (1 + drift)), ends <= removed)
    # As drafted a later ping renews it, though its response is lost.
    renewed = z3.And(again > arrived, again < arrived + lease * (1 - drift), ends == again + lease)
    yield Lemma(FALSE_LEASE, "from any ping", (fits, removal, renewed), ends <= removed, holds=False)


def bit_lemmas() -> Iterator[Lemma]:
    """S6 and L2: changes are counted; `seen` is the last one that the rebalance under way, or the last one, knows."""
    bit, dirty, queued, running = z3.Bools("bit dirty queued running")
    changes, seen = z3.Ints("changes seen")

    def holds(bit: Any, dirty: Any, queued: Any, running: Any, changes: Any, seen: Any) -> Any:
        return z3.And(
            bit == z3.Or(queued, running),
            z3.Not(z3.And(queued, running)),
            z3.Or(seen == changes, dirty, queued),
            z3.Implies(dirty, bit),
            seen <= changes,
        )

    state = (bit, dirty, queued, running, changes, seen)
    yes, no = z3.BoolVal(True), z3.BoolVal(False)
    events = {
        "change": (yes, (yes, z3.Or(dirty, bit), z3.Or(queued, z3.Not(bit)), running, changes + 1, seen)),
        "take": (z3.And(queued, z3.Not(running)), (bit, dirty, no, yes, changes, changes)),
        "retry": (running, (bit, dirty, queued, running, changes, changes)),
        "finish": (running, (dirty, no, dirty, no, changes, seen)),
        "give up": (running, (yes, no, yes, no, changes, seen)),
    }
    clear = (holds(*state), z3.Not(bit))
    yield Lemma(BIT, "at the beginning", (yes,), holds(no, no, no, no, z3.IntVal(0), z3.IntVal(0)))
    yield Lemma(BIT, "while it is clear", clear, z3.And(seen == changes, z3.Not(running)))
    for name, (guard, after) in events.items():
        yield Lemma(BIT, f"after {name}", (holds(*state), guard), holds(*after))
    forgotten = (yes, dirty, queued, running, changes + 1, seen)
    yield Lemma(
        "push.remembered changes is needed",
        "a change that meets the bit",
        (holds(*state), bit),
        holds(*forgotten),
        False,
    )


PUSH_THEOREMS = KernelTheorems(
    "push",
    SENTENCES,
    FALSE_THEOREMS,
    push_lemmas,
    "the repaired push coordinator reduced to who may fetch, for any number of consumers and partitions",
    "the handlers themselves: tests tie each step of their search to the kernel",
)
