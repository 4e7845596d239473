"""The inductions about coordinator and members: which statements are proved together, over which events."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from fencepost.model.classic.theorems.dispatch_statements import DISPATCH_THEOREMS
from fencepost.model.classic.theorems.failover import ACROSS_FAILOVERS, KEPT_BY_KAFKA
from fencepost.model.proofs.classic.counterexample import InductionCounterexample, decode_refutation
from fencepost.model.proofs.classic.dispatch_events import dispatch_events
from fencepost.model.proofs.classic.failover_events import failover_events
from fencepost.model.proofs.classic.induction import STATEMENTS, ProofSize, prove_event
from fencepost.model.proofs.classic.proof_events import ProofEvent, coordinator_events, member_events
from fencepost.model.statement import Statement

SLOWEST_FIRST = ("leave-two-settled-each", "leave-two", "join", "leave")


@dataclass(frozen=True, slots=True)
class Induction:
    """Statements that are proved together, and the events that have to keep them, by the number of slots."""

    name: str
    statements: tuple[Statement, ...]
    events: Callable[[int], Iterable[ProofEvent]]
    own_size: ProofSize | None = None
    """Its size where it does not depend on the chosen one."""

    def event_names(self, size: ProofSize) -> list[str]:
        """The names of its events. The slowest come first, so that no process is left alone with one at the end."""
        names = [event.name for event in self.events(size.slots)]
        slow = [name for name in SLOWEST_FIRST if name in names]
        return [*slow, *(name for name in names if name not in slow)]


def events_of_one_term(slots: int) -> Iterable[ProofEvent]:
    """Everything that can happen in one term of a coordinator."""
    return (*coordinator_events(slots), *member_events())


ONE_TERM = Induction("term", STATEMENTS, events_of_one_term)
KAFKA_FAILOVERS = Induction("failover", KEPT_BY_KAFKA, partial(failover_events, early=False))
"""Of Kafka's dialects."""
EARLY_FAILOVERS = Induction("early", ACROSS_FAILOVERS, partial(failover_events, early=True))
"""Of the design that stores a generation before JoinGroup is answered."""
DISPATCH = Induction("dispatch", DISPATCH_THEOREMS, dispatch_events, ProofSize(slots=2, partitions=1))
"""Of the dispatcher: single steps from any state of a group. It looks for free slots in the table, and no further."""
INDUCTIONS = {one.name: one for one in (ONE_TERM, KAFKA_FAILOVERS, EARLY_FAILOVERS, DISPATCH)}


@dataclass(frozen=True, slots=True)
class EventProof:
    """What a process is to prove: that one event keeps the statements of its induction."""

    induction: str
    event: str
    size: ProofSize
    seed: int


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """The proof of one event in plain values, which another process can hand over; times in seconds."""

    event: str
    possible: bool
    undecided: tuple[str, ...]
    counterexamples: tuple[InductionCounterexample, ...]
    rules: frozenset[str]
    """The rules that applied on its paths."""
    seconds: float
    longest: float


def prove_named_event(proof: EventProof) -> EventOutcome:
    """Prove that the event keeps every statement of its induction."""
    induction = INDUCTIONS[proof.induction]
    size = induction.own_size or proof.size
    (event,) = (one for one in induction.events(size.slots) if one.name == proof.event)
    verdict = prove_event(event, induction.statements, size, proof.seed)
    examples = tuple(decode_refutation(event, refuted) for refuted in verdict.refutations)
    return EventOutcome(
        proof.event,
        verdict.possible,
        verdict.undecided,
        examples,
        verdict.rules,
        verdict.seconds,
        verdict.longest,
    )
