"""The proof by induction: every statement that holds before an event holds after it, for each of the events.

For one event the handler runs on an arbitrary situation. Every statement is assumed of that situation and of arbitrary
bystanders (a second group of members and messages), and proved of the situation after the event, of the bystanders in
it, and of what the event sends.
"""

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import z3

from fencepost.model.classic.core.state import FREE, Group, JoinRequest, Slot, SyncRequest
from fencepost.model.classic.member.member import PartitionCommit
from fencepost.model.classic.theorems.ghost_state import (
    CommitAccepted,
    GhostState,
    JoinResponseSent,
    Process,
    SyncResponseSent,
)
from fencepost.model.classic.theorems.lemmas import LEMMAS
from fencepost.model.classic.theorems.ownership_lemmas import OWNERSHIP_LEMMAS
from fencepost.model.classic.theorems.statements import THEOREMS
from fencepost.model.classic.theorems.step_statements import STEP_THEOREMS
from fencepost.model.logic import not_, or_
from fencepost.model.proofs.classic.arbitrary_values import GroupSymbols
from fencepost.model.proofs.classic.proof_events import EventResult, ProofEvent, Situation
from fencepost.model.proofs.classic.symbolic_history import SymbolicGhostState
from fencepost.model.proofs.induction import Goal, check_goals
from fencepost.model.proofs.solver import LimitedSolver
from fencepost.model.proofs.symbolic_execution import execute_paths
from fencepost.model.proofs.symbolic_values import formula, same_terms
from fencepost.model.proofs.terms import Term, clear_terms
from fencepost.model.statement import Statement

STATEMENTS: tuple[Statement, ...] = (*THEOREMS, *STEP_THEOREMS, *LEMMAS, *OWNERSHIP_LEMMAS)
"""All that is proved together."""

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
class EventVerdict:
    """What came of one event: refuted goals, and statements that the solver could not decide in its time."""

    event: ProofEvent
    possible: bool
    """The event can happen: what is assumed of the situation before it contradicts nothing."""
    paths: int
    goals: int
    refutations: tuple[Refutation, ...]
    undecided: tuple[str, ...]
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
    """As many arbitrary things of each kind as one statement can be about."""
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
            holds = one.holds(*arguments)
            if holds is not True:
                yield formula(holds)


_TIMER_FIELDS: Any = {
    Slot: dict.fromkeys(("armed", "deadline", "session_timeout")),
    Group: dict.fromkeys(("join_armed", "join_deadline", "initial_wait", "initial_left", "sync_deadline")),
}


def without_timers(value: Any) -> Any:
    """The value without its deadlines: no statement about states speaks of them."""
    if isinstance(value, Group):
        return replace(value, slots=tuple(without_timers(slot) for slot in value.slots), **_TIMER_FIELDS[Group])
    if isinstance(value, Slot):
        return replace(value, **_TIMER_FIELDS[Slot])
    return replace(value, group=without_timers(value.group)) if isinstance(value, CommitAccepted) else value


def proof_goals(
    statements: Sequence[Statement], situation: Situation, result: EventResult, others: ValuesByType
) -> Iterator[Goal]:
    """What has to be shown on one path."""
    changed = {
        Group: not same_terms(without_timers(situation.group), without_timers(result.group)),
        GhostState: result.ghost is not situation.ghost,
    }
    for one in statements:
        options: list[list[tuple[Any, Any, bool]]] = []
        for place, kind in enumerate(one.subjects):
            options.append(list(candidates(one, place, kind, situation, result, others)))
        for choice in itertools.product(*options):
            if not any(new or changed.get(kind, False) for kind, (_, _, new) in zip(one.subjects, choice, strict=True)):
                continue
            arguments = tuple(value for value, _, _ in choice)
            holds = or_(*(not_(when) for _, when, _ in choice), one.holds(*arguments))
            if holds is not True:
                yield Goal(one, arguments, formula(holds))


def candidates(
    one: Statement, place: int, kind: type, situation: Situation, result: EventResult, others: ValuesByType
) -> Iterator[tuple[Any, Any, bool]]:
    """What may stand in one place of a statement: the value, when it is there, and whether the event made it."""
    if kind is Group:
        yield without_timers(result.group), True, False
        return
    if kind is GhostState:
        yield result.ghost, True, False
        return
    before = others.get(kind, [])
    if before:
        yield before[one.subjects[:place].count(kind)], True, False
    if kind is Process and result.process is not None:
        yield result.process, True, True
    for when, message in result.sent:
        if isinstance(message, kind):
            yield without_timers(message), when, True


def initially_false(statements: Sequence[Statement], size: ProofSize) -> tuple[str, ...]:
    """The statements that do not hold of a new group, of which nothing has been heard. Processes start later."""
    group = Group(slots=(FREE,) * size.slots)
    there: ValuesByType = {Group: [group], GhostState: [SymbolicGhostState()]}
    return tuple(
        one.id
        for one in statements
        for arguments in itertools.product(*(there.get(kind, []) for kind in one.subjects))
        if one.holds(*arguments) is not True
    )


@dataclass(frozen=True, slots=True)
class EventQuery:
    """What is assumed of an event, and of whom; the solver holds the assumptions."""

    event: ProofEvent
    situation: Situation
    others: ValuesByType
    solver: LimitedSolver

    def paths(self) -> Iterator[tuple[EventResult, list[Term]]]:
        """What the event leads to on each of its paths, and the path's conditions, which the solver holds meanwhile."""
        return execute_paths(lambda: self.event.run(self.situation), self.solver)


def prepare_query(event: ProofEvent, statements: Sequence[Statement], size: ProofSize, seed: int = 0) -> EventQuery:
    """The event in an arbitrary situation, of which the statements hold."""
    clear_terms()
    shapes = GroupSymbols(slots=size.slots, partitions=size.partitions, protocols=size.protocols)
    situation = event.prepare(shapes)
    others = bystanders(shapes, statements, situation)
    before = [one for one in statements if one.id not in event.unassumed]
    solver = LimitedSolver(seed, simple=True)
    solver.add(*assumptions(before, values_before(situation, others)))
    solver.add(*shapes.domain, *shapes.freshness_terms(situation.ghost), *situation.assumed)
    return EventQuery(event, situation, others, solver)


def prove_event(event: ProofEvent, statements: Sequence[Statement], size: ProofSize, seed: int = 0) -> EventVerdict:
    """Show that the event keeps every statement."""
    began = time.perf_counter()
    query = prepare_query(event, statements, size, seed)
    situation, others = query.situation, query.others
    after = [one for one in statements if one.id not in event.unproved]

    def goals_after(happened: EventResult) -> Iterator[Goal]:
        return proof_goals(after, situation, happened, others)

    found = check_goals(query.solver, lambda: event.run(situation), goals_after)
    refutations = tuple(
        Refutation(one.goal.statement, situation, one.result, one.goal.arguments, one.model) for one in found.broken
    )
    seconds = time.perf_counter() - began
    return EventVerdict(
        event, found.possible, found.paths, found.goals, refutations, found.undecided, seconds, found.longest
    )


def values_before(situation: Situation, others: ValuesByType) -> ValuesByType:
    """All that there is before the event."""
    terms = {kind: list(values) for kind, values in others.items()}
    terms |= {Group: [without_timers(situation.group)], GhostState: [situation.ghost]}
    if situation.process is not None and situation.existed:
        terms[Process].append(situation.process)
    for message in situation.arriving:
        terms.setdefault(type(message), []).append(message)
    return terms
