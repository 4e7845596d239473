"""The proof by induction: every statement that holds before an event holds after it, for each of the events.

For one event the handler runs on an arbitrary situation. Every statement is assumed of that situation and of arbitrary
bystanders (a second group of members and messages), and proved of the situation after the event, of the bystanders in
it, and of what the event sends.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import z3

from fencepost.model.classic.core.state import FREE, Group, JoinRequest, JoinResponse, Slot, Step, SyncRequest
from fencepost.model.classic.member.member import MemberStep, PartitionCommit
from fencepost.model.classic.proofs.dispatch_events import LOADING, dispatch_events, failover_events
from fencepost.model.classic.proofs.proof_events import (
    EventResult,
    ProofEvent,
    Situation,
    coordinator_events,
    member_events,
    symbolic,
)
from fencepost.model.classic.proofs.symbolic_history import GroupSymbols, SymbolicGhostState
from fencepost.model.classic.theorems.dispatch_statements import DISPATCH_THEOREMS
from fencepost.model.classic.theorems.failover import ACROSS_FAILOVERS, FAILOVERS_WHATEVER_CLIENTS_SEND, KEPT_BY_KAFKA
from fencepost.model.classic.theorems.ghost_state import (
    CommitAccepted,
    GhostState,
    GroupRecord,
    JoinResponseSent,
    Process,
    SyncResponseSent,
)
from fencepost.model.classic.theorems.lemmas import LEMMAS
from fencepost.model.classic.theorems.ownership_lemmas import OWNERSHIP_LEMMAS
from fencepost.model.classic.theorems.request_statements import STEP_THEOREMS
from fencepost.model.classic.theorems.statements import THEOREMS, WHATEVER_CLIENTS_SEND
from fencepost.model.frozen import evolve
from fencepost.model.logic import Token, Truth, not_, or_
from fencepost.model.proofs.induction import Goal, InductionCounterexample, check_goals
from fencepost.model.proofs.solver import LimitedSolver
from fencepost.model.proofs.symbolic_execution import execute_paths
from fencepost.model.proofs.symbolic_values import formula
from fencepost.model.proofs.term_evaluation import TermKeys, TermReader, model_reader, to_plain
from fencepost.model.proofs.terms import Term, address, clear_terms, is_true
from fencepost.model.statement import Statement

STATEMENTS: tuple[Statement, ...] = (*THEOREMS, *STEP_THEOREMS, *LEMMAS, *OWNERSHIP_LEMMAS)
"""All that is proved together."""

ALONE = frozenset(one.id for one in (*WHATEVER_CLIENTS_SEND, *DISPATCH_THEOREMS)) | FAILOVERS_WHATEVER_CLIENTS_SEND
"""What the coordinator keeps whatever clients send: these statements are proved from each other alone."""

_MESSAGES: tuple[type, ...] = (
    JoinResponseSent,
    SyncResponseSent,
    JoinRequest,
    SyncRequest,
    PartitionCommit,
    CommitAccepted,
)

ValuesByType = dict[type, list[Any]]
"""What there is of each kind."""


@dataclass(frozen=True, slots=True)
class Refutation:
    """A counterexample to induction: the statement that the event breaks, in a model of the solver's."""

    statement: Statement
    situation: Situation
    happened: EventResult
    arguments: tuple[Any, ...]
    model: z3.ModelRef


@dataclass(frozen=True, slots=True)
class ProvedEvent:
    """What came of one event: refuted goals, and statements that the solver could not decide in its time."""

    event: ProofEvent
    possible: bool
    """The event can happen: what is assumed of the situation before it contradicts nothing."""
    paths: int
    goals: int
    refutations: tuple[Refutation, ...]
    undecided: tuple[str, ...]
    rules: frozenset[str]
    """The rules that applied on its paths."""
    seconds: float
    longest: float
    """The seconds of the longest query."""


@dataclass(frozen=True, slots=True)
class ProofSize:
    """How large the world of a proof is: member slots, partitions, protocols that a member offers."""

    slots: int
    partitions: int
    protocols: int = 1


def bystanders(symbols: GroupSymbols, statements: Sequence[Statement], situation: Situation) -> ValuesByType:
    """Arbitrary values of each kind beside the situation's own: enough for each of the statements."""
    found: ValuesByType = {}
    for kind in (Process, *_MESSAGES):
        count = max((one.subjects.count(kind) for one in statements), default=0)
        found[kind] = [without_timers(symbols.arbitrary(kind, f"other-{kind.__name__}")) for _ in range(count)]
    if situation.process is not None:
        symbols.domain.extend(formula(other.name != situation.process.name) for other in found[Process])
    return found


def assumptions(statements: Sequence[Statement], terms: ValuesByType) -> Iterator[Term]:
    """Every statement about everything there is."""
    for one in statements:
        for arguments in itertools.product(*(terms.get(kind, []) for kind in one.subjects)):
            holds = symbolic(one.holds)(*arguments)
            if holds is not True:
                yield formula(holds)


_TIMER_FIELDS: Any = {
    Slot: dict.fromkeys(("armed", "deadline")),
    Group: dict.fromkeys(("join_armed", "join_deadline", "initial_wait", "initial_left", "sync_deadline")),
}


def without_timers(value: Any, slots: dict[int, tuple[Slot, Slot]] | None = None) -> Any:
    """The value without its deadlines: no statement about states speaks of them.

    `slots` has slots with and without them, by the identity of the former: many groups share their slots.
    """
    known = {} if slots is None else slots
    if isinstance(value, Group):
        bare = tuple([_slot_without_timers(one, known) for one in value.slots])
        return evolve(value, slots=bare, **_TIMER_FIELDS[Group])
    if isinstance(value, CommitAccepted | GroupRecord):
        return evolve(value, group=without_timers(value.group, known))
    return value


def _slot_without_timers(slot: Slot, known: dict[int, tuple[Slot, Slot]]) -> Slot:
    found = known.get(id(slot))
    if found is None:
        found = known[id(slot)] = (slot, evolve(slot, **_TIMER_FIELDS[Slot]))
    return found[1]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may stand in one place of a statement: the value with its key, when it is there, and whether the event
    made it."""

    value: Any
    key: int
    when: Truth
    is_new: bool


class GoalMaker:
    """Makes the goals of an event's paths. Paths that end in the same values have the same goals, made once."""

    def __init__(self, statements: Sequence[Statement], situation: Situation, query: "EventQuery") -> None:
        self._statements = statements
        self._situation = situation
        self._others = query.others
        self._assumed = query.assumed
        self._keys = TermKeys()
        self._slots: dict[int, tuple[Slot, Slot]] = {}
        self._group_before = self._keys.key((self._without_timers(situation.group), True))
        self._terms: dict[tuple[str, tuple[int, ...]], Term] = {}
        self._goals: dict[tuple[int, ...], tuple[Goal, ...]] = {}
        self.rules: set[str] = set()
        """The rules that applied on the paths so far."""

    def goals(self, result: EventResult) -> tuple[Goal, ...]:
        """What has to be shown on one path: one object for all paths that end in the same values."""
        self.rules.add(result.result.rule)
        there = self._candidates(result)
        ended = tuple(made.key for candidates in there.values() for made in candidates)
        if ended not in self._goals:
            self._goals[ended] = tuple(self._make(result, there))
        return self._goals[ended]

    def _make(self, result: EventResult, there: dict[type, list[Candidate]]) -> Iterator[Goal]:
        """The goals, less what is assumed already."""
        unchanged = {
            Group: there[Group][0].key == self._group_before,
            GhostState: result.ghost is self._situation.ghost,
            GroupRecord: result.record is self._situation.record,
        }
        for one in self._statements:
            for choice in itertools.product(*self._options(one, there)):
                kinds = zip(one.subjects, choice, strict=True)
                if all(not made.is_new and unchanged.get(kind, True) for kind, made in kinds):
                    continue
                term = self._term(one, choice)
                if not is_true(term) and address(term) not in self._assumed:
                    yield Goal(one, tuple(made.value for made in choice), term)

    def _candidates(self, result: EventResult) -> dict[type, list[Candidate]]:
        """What there is of each kind after the event, less the others."""
        there: dict[type, list[Candidate]] = {
            Group: [self._candidate(self._without_timers(result.group))],
            GhostState: [self._candidate(result.ghost)],
        }
        if result.record is not None:
            there[GroupRecord] = [self._candidate(self._without_timers(result.record))]
        if result.process is not None:
            there[Process] = [self._candidate(result.process, is_new=True)]
        for when, message in result.sent:
            made = self._candidate(self._without_timers(message), when, is_new=True)
            there.setdefault(type(message), []).append(made)
        return there

    def _without_timers(self, value: Any) -> Any:
        return without_timers(value, self._slots)

    def _candidate(self, value: Any, when: Truth = True, *, is_new: bool = False) -> Candidate:
        return Candidate(value, self._keys.key((value, when)), when, is_new)

    def _options(self, one: Statement, there: dict[type, list[Candidate]]) -> list[list[Candidate]]:
        """What may stand in each place of a statement."""
        options: list[list[Candidate]] = []
        for place, kind in enumerate(one.subjects):
            before = self._others.get(kind, [])
            other = [self._candidate(before[one.subjects[:place].count(kind)])] if before else []
            options.append([*other, *there.get(kind, [])])
        return options

    def _term(self, one: Statement, choice: Sequence[Candidate]) -> Term:
        key = (one.id, tuple(made.key for made in choice))
        term = self._terms.get(key)
        if term is None:
            holds = or_(*(not_(made.when) for made in choice), symbolic(one.holds)(*(made.value for made in choice)))
            term = self._terms[key] = formula(holds)
        return term


def initially_false(statements: Sequence[Statement], size: ProofSize) -> tuple[str, ...]:
    """The statements that do not hold of a new group, of which nothing has been heard. Processes start later."""
    group = Group(slots=(FREE,) * size.slots)
    there: ValuesByType = {Group: [group], GhostState: [SymbolicGhostState()], GroupRecord: [GroupRecord(Group())]}
    return tuple(
        one.id
        for one in statements
        for arguments in itertools.product(*(there.get(kind, []) for kind in one.subjects))
        if one.holds(*arguments) is not True
    )


@dataclass(frozen=True, slots=True)
class EventQuery:
    """What is assumed of an event, and of whom; the solvers hold the assumptions.

    `weaker` assumes nothing of clients: it holds the statements that the coordinator keeps alone. It is the same solver
    for the events of members.
    """

    event: ProofEvent
    situation: Situation
    others: ValuesByType
    assumed: frozenset[int]
    """The addresses of the terms that both solvers assume."""
    weaker: LimitedSolver
    solver: LimitedSolver

    def paths(self) -> Iterator[tuple[EventResult, list[Term]]]:
        """What the event leads to on each of its paths, and the path's conditions, which the solver holds meanwhile."""
        return execute_paths(lambda: self.event.run(self.situation), self.weaker)


def prepare_query(event: ProofEvent, statements: Sequence[Statement], size: ProofSize, seed: int = 0) -> EventQuery:
    """The event in an arbitrary situation, of which the statements hold."""
    clear_terms()
    shapes = GroupSymbols(slots=size.slots, partitions=size.partitions, protocols=size.protocols)
    situation = event.prepare(shapes)
    others = bystanders(shapes, statements, situation)
    before = [one for one in statements if one.id not in event.unassumed]
    there = values_before(situation, others)
    alone = list(assumptions([one for one in before if one.id in ALONE], there))
    rest = list(assumptions([one for one in before if one.id not in ALONE], there))
    domain = (*shapes.domain, *shapes.freshness_terms(situation.ghost), *situation.assumed)
    weaker = solver = LimitedSolver(seed, simple=True)
    if situation.process is None and rest and alone:
        solver = LimitedSolver(seed, simple=True)
        solver.add(*alone, *rest, *domain)
        weaker.add(*alone, *domain)
    else:
        solver.add(*alone, *rest, *domain)
    assumed = frozenset(map(address, alone))
    return EventQuery(event, situation, others, assumed, weaker, solver)


def prove_event(event: ProofEvent, statements: Sequence[Statement], size: ProofSize, seed: int = 0) -> ProvedEvent:
    """Show that the event keeps every statement; those that hold whatever clients send, from nothing but such."""
    began = time.perf_counter()
    query = prepare_query(event, statements, size, seed)
    situation = query.situation
    after = [one for one in statements if one.id not in event.unproved]
    maker = GoalMaker(after, situation, query)
    stronger = None if query.weaker is query.solver else query.solver
    alone = [one for one in after if one.id in ALONE]
    found = check_goals(query.weaker, lambda: event.run(situation), maker.goals, stronger, alone)
    refutations = tuple(
        Refutation(one.goal.statement, situation, one.result, one.goal.arguments, one.model) for one in found.broken
    )
    seconds = time.perf_counter() - began
    return ProvedEvent(
        event,
        found.possible,
        found.paths,
        found.goals,
        refutations,
        found.undecided,
        frozenset(maker.rules),
        seconds,
        found.longest,
    )


def values_before(situation: Situation, others: ValuesByType) -> ValuesByType:
    """All that there is before the event."""
    terms = {kind: list(values) for kind, values in others.items()}
    terms |= {Group: [without_timers(situation.group)], GhostState: [situation.ghost]}
    if situation.record is not None:
        terms[GroupRecord] = [without_timers(situation.record)]
    if situation.process is not None and situation.existed:
        terms[Process].append(situation.process)
    for message in situation.arriving:
        terms.setdefault(type(message), []).append(message)
    return terms


# --- Counterexamples to induction in plain values, and their replay by the same handlers outside the proof.


def without_fillers(value: Any) -> Any:
    """Entries for no member and nameless protocols stand for nothing."""
    if isinstance(value, Slot | JoinRequest):
        return replace(value, protocols=tuple(one for one in value.protocols if one.name is not None))
    if isinstance(value, JoinResponse):
        return replace(value, members=tuple(view for view in value.members if view.id is not None))
    if isinstance(value, SyncRequest):
        return replace(value, assignments=tuple(entry for entry in value.assignments if entry[0] is not None))
    return value


def plain_group(value: Any, read: TermReader, token: Callable[[int], Token] = lambda number: number or None) -> Any:
    """The value in plain values, without fillers."""
    return to_plain(value, read, token, without_fillers)


def decode_refutation(event: ProofEvent, refutation: Refutation) -> InductionCounterexample:
    """The refutation in plain values."""
    read, situation = model_reader(refutation.model), refutation.situation
    return InductionCounterexample(
        event=event.name,
        statement=refutation.statement.id,
        subject=plain_group(event.subject(situation), read),
        arguments=plain_group(situation.arguments, read),
        result=keep_sent(plain_group(refutation.happened.result, read)),
        about=tuple(plain_group(one, read) for one in refutation.arguments if not isinstance(one, SymbolicGhostState)),
    )


def replay_handler(event: ProofEvent, example: InductionCounterexample) -> Any:
    """What the same handler makes of the counterexample outside the proof."""
    return keep_sent(event.handler(example.subject, *example.arguments))


def keep_sent(step: Any) -> Any:
    """A step with what is really sent, and only that."""
    if isinstance(step, Step):
        sent = tuple(replace(one, response=without_fillers(one.response)) for one in step.outputs if one.when)
        return replace(step, outputs=sent)
    assert isinstance(step, MemberStep)
    return replace(
        step,
        sent_requests=tuple(
            replace(one, request=without_fillers(one.request)) for one in step.sent_requests if one.when
        ),
    )


# --- The inductions about coordinator and members: which statements are proved together, over which events.

SLOWEST_FIRST = ("leave-two-settled-each", "leave-two", "join", "leave")


@dataclass(frozen=True, slots=True)
class Induction:
    """Statements that are proved together, and the events that have to keep them, by the number of slots."""

    name: str
    statements: tuple[Statement, ...]
    events: Callable[[int], Iterable[ProofEvent]]
    own_size: ProofSize | None = None
    """Its size where it does not depend on the chosen one."""
    of_term: frozenset[str] = frozenset()
    """The statements that the steps of a term keep by the induction of one term, which assumes no more: only a loading
    has to be shown to keep them."""

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
EARLY_FAILOVERS = Induction(
    "early",
    ACROSS_FAILOVERS,
    partial(failover_events, early=True),
    of_term=frozenset(one.id for one in ACROSS_FAILOVERS if one in STATEMENTS),
)
"""Of the design that stores a generation before JoinGroup is answered. It assumes whatever one term assumes."""
DISPATCH = Induction("dispatch", DISPATCH_THEOREMS, dispatch_events, ProofSize(slots=2, partitions=1))
"""Of the dispatcher: single steps from any state of a group. It looks for free slots in the table, and no further."""
INDUCTIONS = {one.name: one for one in (ONE_TERM, KAFKA_FAILOVERS, EARLY_FAILOVERS, DISPATCH)}


@dataclass(frozen=True, slots=True)
class EventProof:
    """What a process is to prove: that one event keeps the statements of its induction, or one of them."""

    induction: str
    event: str
    size: ProofSize
    seed: int
    statement: str = ""
    """The id of the one statement that is proved, from all others; empty for all of them."""
    beside_term: bool = False
    """The induction of one term is proved in the same size."""


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
    """Prove that the event keeps every statement of its induction, or the one that is asked for."""
    induction = INDUCTIONS[proof.induction]
    size = induction.own_size or proof.size
    (event,) = (one for one in induction.events(size.slots) if one.name == proof.event)
    if proof.statement:
        others = (one.id for one in induction.statements if one.id != proof.statement)
        event = replace(event, unproved=event.unproved.union(others))
    elif proof.beside_term and event.name != LOADING:
        event = replace(event, unproved=event.unproved | induction.of_term)
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
