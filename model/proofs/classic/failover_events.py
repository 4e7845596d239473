"""Events of the proof across fail-overs: those of a term, each with the record that it writes, and the loading."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fencepost.model.classic.coordinator.group_log import group_record, load_record, writes_record
from fencepost.model.classic.core.state import Context, Group, Step
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.theorems.failover import RecordedStep, record_claims, record_leader
from fencepost.model.classic.theorems.ghost_state import GroupRecord
from fencepost.model.classic.theorems.step_statements import CoordinatorStep
from fencepost.model.logic import Truth
from fencepost.model.proofs.classic.arbitrary_values import GroupSymbols
from fencepost.model.proofs.classic.proof_events import (
    EventResult,
    ProofEvent,
    Situation,
    any_context,
    coordinator_events,
    member_events,
)

IN_PARTS = frozenset({"leave-two", "leave-two-settled-each"})
"""A LeaveGroup of several entries is proved in parts here; the proof of one term has it whole."""
_LEAVING = frozenset({record_leader.id, record_claims.id})
"""What need not hold between the entries of a LeaveGroup."""


@dataclass(frozen=True, slots=True)
class GroupLog:
    """How a coordinator stores a group and loads it."""

    writes_record: Callable[[Group, Step, Context], Truth] = writes_record
    group_record: Callable[[Group, Context], Group] = group_record
    load_record: Callable[[Group, Context], Step] = load_record


def failover_events(slots: int, *, early: bool, log: GroupLog = GroupLog()) -> Iterator[ProofEvent]:
    """Everything that can happen to a coordinator, its log and its members.

    `early`: in the dialects that store a generation before JoinGroup is answered, otherwise in Kafka's.
    """
    yield load_event(early, log)
    for event in (*coordinator_events(slots), *member_events()):
        if event.name not in IN_PARTS:
            yield with_log(event, early, log)


def with_log(event: ProofEvent, early: bool, log: GroupLog) -> ProofEvent:
    """The event, with the record that it writes."""

    def prepare(symbols: GroupSymbols) -> Situation:
        situation = replace(event.prepare(symbols), record=any_record(symbols))
        if situation.process is not None:
            return situation
        *others, moment = situation.arguments
        return replace(situation, arguments=(*others, with_dialect(symbols, moment, early)))

    def run(situation: Situation) -> EventResult:
        result = event.run(situation)
        step, record = result.result, situation.record
        if not isinstance(step, Step):
            return replace(result, record=record)
        changes = step.group is not situation.group
        if changes and log.writes_record(situation.group, step, situation.arguments[-1]):
            record = GroupRecord(log.group_record(step.group, situation.arguments[-1]))
        assert record is not None
        acknowledged = [
            (when, RecordedStep(fact, record.group)) for when, fact in result.sent if isinstance(fact, CoordinatorStep)
        ]
        return replace(result, record=record, sent=(*result.sent, *acknowledged))

    return replace(
        event,
        prepare=prepare,
        run=run,
        unassumed=event.unassumed | _LEAVING if event.unassumed else event.unassumed,
        unproved=event.unproved | _LEAVING if event.unproved else event.unproved,
    )


def load_event(early: bool, log: GroupLog) -> ProofEvent:
    """The coordinator is lost, whatever it knew, and another one loads the group from the log."""

    def prepare(symbols: GroupSymbols) -> Situation:
        moment = with_dialect(symbols, any_context(symbols), early)
        return Situation(symbols, symbols.arbitrary(Group, "group"), arguments=(moment,), record=any_record(symbols))

    def run(situation: Situation) -> EventResult:
        step = log.load_record(recorded_group(situation), *situation.arguments)
        return EventResult(step.group, situation.ghost, None, (), step, situation.record)

    return ProofEvent("load", log.load_record, prepare, run, subject=recorded_group)


def recorded_group(situation: Situation) -> Group:
    """The group in the log."""
    assert situation.record is not None
    return situation.record.group


def any_record(symbols: GroupSymbols) -> GroupRecord:
    """A record whose group is arbitrary, pending ids in it included."""
    return GroupRecord(symbols.arbitrary(Group, "record"))


def with_dialect(symbols: GroupSymbols, moment: Context, early: bool) -> Context:
    """The context with a whole dialect: any of Kafka's, or any that stores a generation early.

    An early record needs a LeaveGroup to begin one generation at most, and so to look at the round once (DIV-06).
    """
    drawn: Dialect = replace(symbols.arbitrary(Dialect, "dialect"), generation_waits_for_assignment=not early)
    if early:
        return replace(moment, dialect=replace(drawn, batch_leave_settles_once=True))
    return replace(moment, dialect=drawn)
