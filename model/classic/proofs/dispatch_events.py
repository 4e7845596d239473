"""Requests of members at the dispatcher: each runs `handle_request` on an arbitrary world of one group id.

The group is unknown or any group at all, in which no statement need hold; so is every setting that the dispatcher looks
at. Commits name a partition that exists and one that does not. Of protocol types the one that the dispatcher knows by
name, `consumer`, is left out: with it, the coordinator reads the topics of a subscription, for OffsetDelete.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fencepost.model.classic.coordinator.group_log import group_record, load_record, writes_record
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import (
    Context,
    Group,
    HeartbeatRequest,
    JoinRequest,
    LeaveRequest,
    Step,
    SyncRequest,
)
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from fencepost.model.classic.proofs.proof_events import (
    EventResult,
    ProofEvent,
    Situation,
    any_context,
    coordinator_events,
    member_events,
    symbolic,
)
from fencepost.model.classic.proofs.symbolic_history import GroupSymbols
from fencepost.model.classic.theorems.dispatch_statements import DispatchedStep, MemberRequest, dispatch_request
from fencepost.model.classic.theorems.failover import (
    Loading,
    RecordedStep,
    group_is_stored,
    record_claims,
    record_leader,
)
from fencepost.model.classic.theorems.ghost_state import GroupRecord
from fencepost.model.classic.theorems.step_statements import CoordinatorStep
from fencepost.model.groups.messages import CommitRequest, Offset, OffsetCommit
from fencepost.model.groups.protocol import Cluster
from fencepost.model.logic import Truth
from fencepost.model.settings import Settings

GROUP_ID = "group"
KNOWN, MISSING, OTHER = ("topic", 0), ("topic", 1), ("other", 0)
"""A partition that exists, one that does not, and one that no request names."""
TOPICS = {"topic": 1, "other": 1}
TRANSACTION = 7
"""A producer with a transaction that is open."""

RequestMaker = Callable[[GroupSymbols, Any], MemberRequest]
"""Makes an arbitrary request; the second argument is a group id, perhaps the empty one."""


def dispatch_events(_: int) -> Iterator[ProofEvent]:
    """Every request of a member. The tables have their own size: the dispatcher looks at free slots alone."""
    yield dispatch_event("join", lambda symbols, group: JoinGroup(group, symbols.arbitrary(JoinRequest, "join")))
    yield dispatch_event("sync", any_sync)
    yield dispatch_event(
        "heartbeat", lambda symbols, group: Heartbeat(group, symbols.arbitrary(HeartbeatRequest, "heartbeat"))
    )
    yield dispatch_event("leave", lambda symbols, group: LeaveGroup(group, symbols.arbitrary(LeaveRequest, "leave")))
    yield dispatch_event("commit", any_commit)


def any_sync(symbols: GroupSymbols, group: Any) -> SyncGroup:
    """A SyncGroup, complete or not."""
    complete: Any = symbols.truth("complete")
    return SyncGroup(group, symbols.arbitrary(SyncRequest, "sync"), complete)


def any_commit(symbols: GroupSymbols, group: Any) -> OffsetCommit:
    """An OffsetCommit of two partitions, with or without an end of its retention."""
    version: Any = symbols.number("version")
    offsets = tuple((where, any_offset(symbols, where[0])) for where in (KNOWN, MISSING))
    retention: Any = symbols.number("retention")
    return OffsetCommit(group, symbols.arbitrary(CommitRequest, "commit"), version, offsets, retention)


def any_offset(symbols: GroupSymbols, label: str) -> Offset:
    """Any offset, with metadata that may be too large."""
    offset: Any = symbols.number(f"{label}.offset")
    epoch: Any = symbols.number(f"{label}.epoch")
    return Offset(offset, epoch, "metadata")


def dispatch_event(name: str, make: RequestMaker) -> ProofEvent:
    """A request arrives at the dispatcher."""

    def prepare(symbols: GroupSymbols) -> Situation:
        group = symbols.arbitrary(Group, "group")
        drawn: Dialect = symbols.arbitrary(Dialect, "dialect")
        moment = replace(any_context(symbols), dialect=drawn)
        choices = tuple(symbols.truth(label) for label in ("group id", "known", "asks", "open", "retained"))
        places = enumerate((KNOWN, OTHER))
        offsets: Any = {at: replace(any_offset(symbols, f"before.{at[0]}"), number=number) for number, at in places}
        stored = GroupState(group, stored=symbols.arbitrary(Group, "record"), offsets=offsets)
        request = make(symbols, GROUP_ID)
        return Situation(symbols, group, arguments=(choices, stored, request, any_cluster(symbols), moment))

    def run(situation: Situation) -> EventResult:
        choices, stored, request, cluster, moment = situation.arguments
        step = symbolic(dispatch_choice)(choices, stored, request, cluster, moment)
        result = Step(step.after.group or Group(), (), step.rule)
        return EventResult(situation.group, situation.ghost, None, ((True, step),), result)

    return ProofEvent(name, dispatch_choice_result, prepare, run, subject=lambda situation: situation.arguments[0])


def dispatch_choice(
    choices: tuple[Any, ...], stored: GroupState, request: MemberRequest, cluster: Cluster, moment: Context
) -> DispatchedStep:
    """Dispatch the request, or one that is the same but for what is chosen: another world, an empty group id."""
    is_named, is_known, asks, is_open, is_retained = choices
    if not is_named:
        request = replace(request, group="")
    state = stored if is_known else replace(stored, group=None, stored=None)
    if isinstance(request, OffsetCommit):
        if not asks:
            request = replace(request, offsets=request.offsets[1:])
        if is_open:
            state = replace(state, pending={TRANSACTION: {KNOWN: state.offsets[OTHER]}})
        if not is_retained:
            request = replace(request, retention=None)
    return dispatch_request(state, request, moment, cluster)


def dispatch_choice_result(
    choices: tuple[Any, ...], stored: GroupState, request: MemberRequest, cluster: Cluster, moment: Context
) -> Step:
    """A request through the dispatcher by these choices, as a step of the core, for counterexamples."""
    step = dispatch_choice(choices, stored, request, cluster, moment)
    return Step(step.after.group or Group(), (), step.rule)


def any_cluster(symbols: GroupSymbols) -> Cluster:
    """A cluster with two topics and any limits."""
    limits: Any = {
        name: symbols.number(name) for name in ("min_session_timeout", "max_session_timeout", "max_offset_metadata")
    }
    return Cluster(replace(Settings(), **limits), TOPICS)


# --- Events of the proof across fail-overs: those of a term, each with the record that it writes, and the loading.

LOADING = "load"
IN_PARTS = frozenset({"leave-two", "leave-two-settled-each"})
"""A LeaveGroup of several entries is proved in parts here; the proof of one term has it whole."""
_LEAVING = frozenset({record_leader.id, record_claims.id, group_is_stored.id})
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
        if changes and symbolic(log.writes_record)(situation.group, step, situation.arguments[-1]):
            record = GroupRecord(symbolic(log.group_record)(step.group, situation.arguments[-1]))
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
        step = symbolic(log.load_record)(recorded_group(situation), *situation.arguments)
        loading = Loading(recorded_group(situation), step.group, situation.arguments[-1])
        return EventResult(step.group, situation.ghost, None, ((True, loading),), step, situation.record)

    return ProofEvent(LOADING, log.load_record, prepare, run, subject=recorded_group)


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
