"""Everything that can happen: each handler of the core with arbitrary arguments."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import commit, heartbeat, leave, rebalance_after_leave, remove_entry
from fencepost.model.classic.core.state import (
    CommitResponse,
    Context,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    Holder,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    Step,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberStep, PartitionCommit, new_member
from fencepost.model.classic.proofs.symbolic_history import GroupSymbols, SymbolicGhostState
from fencepost.model.classic.theorems.ghost_state import (
    CommitAccepted,
    GhostState,
    GroupRecord,
    JoinResponseSent,
    Process,
    SyncResponseSent,
    record_coordinator_step,
    record_new_id,
    record_request,
)
from fencepost.model.classic.theorems.member_statements import HeardResponse, MemberAction, MemberChange
from fencepost.model.classic.theorems.step_statements import CoordinatorStep, Input, TimerExpiry, TimerKind
from fencepost.model.errors import Error
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.logic import Token, Truth, absent, any_, not_, or_
from fencepost.model.proofs.plain_python import ModuleTwins
from fencepost.model.proofs.symbolic_values import SymbolicNumber, SymbolicToken, formula, number_term
from fencepost.model.proofs.terms import Term

TWINS = ModuleTwins("fencepost.model.classic.core", "fencepost.model.classic.member.member")
"""The twins of the core and of the member, and of all that calls them."""
symbolic = TWINS.twin
"""A handler, or a predicate about groups and members, as it runs on symbolic values."""


@dataclass(frozen=True, slots=True)
class Situation:
    """An arbitrary state, as far as one event touches it: group, ghost state, process and arriving messages."""

    symbols: GroupSymbols
    group: Group
    ghost: GhostState = field(default_factory=SymbolicGhostState)
    process: Process | None = None
    arriving: tuple[Any, ...] = ()
    """Messages that were sent some time ago."""
    arguments: tuple[Any, ...] = ()
    """What the handler is called with, besides the group or the member."""
    assumed: tuple[Term, ...] = ()
    existed: bool = True
    """The process was there before the event."""
    record: GroupRecord | None = None
    """The group in the log, where the proof is about fail-overs."""


@dataclass(frozen=True, slots=True)
class EventResult:
    """The result of an event on one path: the world after it, and the messages sent, each with its condition."""

    group: Group
    ghost: GhostState
    process: Process | None
    sent: tuple[tuple[Any, Any], ...]
    result: Step | MemberStep
    record: GroupRecord | None = None


def group_or_member(situation: Situation) -> Any:
    """What most handlers handle an event for."""
    return situation.group if situation.process is None else situation.process.member


@dataclass(frozen=True, slots=True)
class ProofEvent:
    """Something that can happen, in an arbitrary situation. `handler` is the shipped function that handles it.

    Its first argument is the `subject`, the others are the situation's.
    """

    name: str
    handler: Callable[..., Any]
    prepare: Callable[[GroupSymbols], Situation]
    run: Callable[[Situation], EventResult]
    unassumed: frozenset[str] = frozenset()
    """Statements that need not hold before."""
    unproved: frozenset[str] = frozenset()
    """Statements that need not hold after, for more is to come."""
    subject: Callable[[Situation], Any] = group_or_member


def coordinator_events(slots: int) -> Iterator[ProofEvent]:
    """What can happen to a coordinator; a LeaveGroup of several entries is a first, more of them, and a settlement."""
    yield request_event("join", join, JoinRequest)
    yield request_event("sync", sync, SyncRequest)
    yield request_event("heartbeat", heartbeat, HeartbeatRequest)
    yield request_event("leave", leave, LeaveRequest)
    yield batch_leave("leave-two", settles_once=True)
    yield batch_leave("leave-two-settled-each", settles_once=False)
    yield leave_entry()
    yield leave_settlement()
    yield request_event("commit", commit, PartitionCommit)
    for index in range(slots):
        yield timer_event(f"expire-member-{index}", expire_member, TimerKind.MEMBER, index)
    yield timer_event("expire-join", expire_join, TimerKind.JOIN)
    yield timer_event("expire-sync", expire_sync, TimerKind.SYNC)


def any_context(symbols: GroupSymbols) -> Context:
    """Any moment, dialect and limits; the id that the coordinator draws is new, and may be the one chosen to lead."""
    drawn: Context = symbols.arbitrary(Context, "context")
    chosen: Any = {"member_id": symbols.new_id("new-id"), "leader": symbols.token("chosen-leader")}
    moment = replace(drawn, choices=replace(drawn.choices, **chosen))
    waits: tuple[Any, ...] = (moment.initial_rebalance_delay, moment.new_member_timeout)
    symbols.domain.extend(number_term(wait) >= 0 for wait in waits)
    return moment


def request_event(name: str, handler: Callable[..., Step], kind: type) -> ProofEvent:
    """A request arrives at the coordinator."""

    def prepare(symbols: GroupSymbols) -> Situation:
        group = symbols.arbitrary(Group, "group")
        message = symbols.arbitrary(kind, kind.__name__)
        request = message.request if isinstance(message, PartitionCommit) else message
        assumed = [number_term(request.handle) > 0]  # 0 is the handle of no request
        if kind is JoinRequest:
            assumed.append(formula(has_room(group, message)))
        arguments = (request, any_context(symbols))
        return Situation(symbols, group, arriving=(message,), arguments=arguments, assumed=tuple(assumed))

    def run(situation: Situation) -> EventResult:
        request, moment = situation.arguments
        step = symbolic(handler)(situation.group, request, moment)
        ledger = situation.ghost
        if isinstance(request, JoinRequest):
            ledger = symbolic(record_new_id)(
                ledger, situation.group, moment.choices.member_id, request.instance, request.handle
            )
        return after_coordinator_step(situation, step, ledger, request)

    return ProofEvent(name, handler, prepare, run)


def has_room(group: Group, request: JoinRequest) -> Truth:
    """A JoinGroup without an id finds a free slot: the dispatcher adds slots for it, and for no other request."""
    return or_(not_(absent(request.member)), any_(slot.holder == Holder.NOBODY for slot in group.slots))


def batch_leave(name: str, *, settles_once: bool) -> ProofEvent:
    """A LeaveGroup of two entries, as one event, in one of the two dialects of DIV-06.

    If each entry settles by itself, the first may end a join phase, and the second another.
    """

    def prepare(symbols: GroupSymbols) -> Situation:
        group = symbols.arbitrary(Group, "group")
        entries: Any = [(symbols.member_id(f"member.{place}"), symbols.token(f"instance.{place}")) for place in (0, 1)]
        handle: Any = symbols.handle("handle")
        request = LeaveRequest(handle, tuple(entries))
        moment = any_context(symbols)
        moment = replace(moment, dialect=replace(moment.dialect, batch_leave_settles_once=settles_once))
        return Situation(symbols, group, arguments=(request, moment))

    def run(situation: Situation) -> EventResult:
        step = symbolic(leave)(situation.group, *situation.arguments)
        return after_coordinator_step(situation, step, situation.ghost, situation.arguments[0])

    return ProofEvent(name, leave, prepare, run)


_LEAVING = frozenset({"T7-exists", "join-response-claims", "syncing-claims", "T36"})
"""What need not hold between the entries of a LeaveGroup."""


def leave_entry() -> ProofEvent:
    """One of several entries of a LeaveGroup, before the round is looked at."""

    def prepare(symbols: GroupSymbols) -> Situation:
        group = symbols.arbitrary(Group, "group")
        entry = (symbols.member_id("member"), symbols.token("instance"))
        return Situation(symbols, group, arguments=(*entry, any_context(symbols)))

    def run(situation: Situation) -> EventResult:
        member, instance, _ = situation.arguments
        step = symbolic(leave_entry_step)(situation.group, *situation.arguments)
        return after_coordinator_step(situation, step, situation.ghost, LeaveRequest(0, ((member, instance),)))

    return ProofEvent("leave-entry", leave_entry_step, prepare, run, _LEAVING, _LEAVING)


def leave_entry_step(group: Group, member: Token, instance: Token, moment: Context) -> Step:
    """What a LeaveGroup makes of one entry."""
    _, _, (rest, outputs) = remove_entry(group, member, instance, moment)
    return Step(rest, outputs, "leave.entry")


def leave_settlement() -> ProofEvent:
    """The look at the round that follows the entries of a LeaveGroup."""

    def prepare(symbols: GroupSymbols) -> Situation:
        return Situation(symbols, symbols.arbitrary(Group, "group"), arguments=(any_context(symbols),))

    def run(situation: Situation) -> EventResult:
        step = symbolic(leave_settlement_step)(situation.group, *situation.arguments)
        return after_coordinator_step(situation, step, situation.ghost, LeaveRequest(0, ()))

    return ProofEvent("leave-settlement", leave_settlement_step, prepare, run, _LEAVING)


def leave_settlement_step(group: Group, moment: Context) -> Step:
    """What a LeaveGroup does when members have left."""
    rest, outputs = rebalance_after_leave(group, moment)
    return Step(rest, outputs, "leave.settled")


def timer_event(name: str, handler: Callable[..., Step], kind: TimerKind, *index: int) -> ProofEvent:
    """A timer of the coordinator fires."""

    def prepare(symbols: GroupSymbols) -> Situation:
        group = symbols.arbitrary(Group, "group")
        return Situation(symbols, group, arguments=(*index, any_context(symbols)))

    def run(situation: Situation) -> EventResult:
        step = symbolic(handler)(situation.group, *situation.arguments)
        return after_coordinator_step(situation, step, situation.ghost, TimerExpiry(kind, *index))

    return ProofEvent(name, handler, prepare, run)


def after_coordinator_step(situation: Situation, step: Step, ghost: GhostState, cause: Input) -> EventResult:
    """The world after a step of the coordinator, with the step itself and the responses that matter."""
    if step.group is not situation.group:
        ghost = symbolic(record_coordinator_step)(ghost, situation.group, step.group, situation.symbols.partitions)
    moment: Context = situation.arguments[-1]
    change = CoordinatorStep(situation.group, cause, moment, step.group, step.outputs)
    sent: list[tuple[Any, Any]] = [(True, change)]
    for output in step.outputs:
        match output.response:
            case JoinResponse() as response:
                sent.append((output.when, JoinResponseSent(output.handle, response)))
            case SyncResponse() as response:
                sent.append((output.when, SyncResponseSent(output.handle, response)))
            case CommitResponse(error):
                acceptance = CommitAccepted(situation.group, situation.arriving[0])
                sent.append((error == Error.NONE, acceptance))
    return EventResult(step.group, ghost, None, tuple(sent), step)


def member_events() -> Iterator[ProofEvent]:
    """What can happen to a member process."""
    yield action_event("member-start", MemberAction.START, start_member, existed=False)
    yield action_event("member-restart", MemberAction.RESTART, members.restart)
    yield action_event("member-ask-rejoin", MemberAction.ASK_REJOIN, members.ask_rejoin)
    yield action_event("member-disconnect", MemberAction.DISCONNECT, members.disconnect)
    yield action_event("member-join", MemberAction.JOIN, members.join, new_handle)
    yield action_event("member-heartbeat", MemberAction.HEARTBEAT, members.heartbeat, new_handle)
    yield action_event("member-commit", MemberAction.COMMIT, members.commit, new_handle, any_partitions)
    yield action_event("member-leave", MemberAction.LEAVE, members.leave, new_handle)
    yield echo_event(
        "member-heartbeat-response",
        members.on_heartbeat_response,
        any_value(HeartbeatRequest),
        any_value(HeartbeatResponse),
    )
    yield echo_event(
        "member-commit-response", members.on_commit_response, any_value(CommitRequest), any_value(CommitResponse)
    )
    yield response_event("member-join-response", members.on_join_response, JoinResponseSent, new_handle, any_plan)
    yield response_event("member-sync-response", members.on_sync_response, SyncResponseSent, new_handle)
    yield response_event("member-sync-response-quietly", members.on_sync_response, SyncResponseSent)


Argument = Callable[[GroupSymbols], Any]
"""Makes an arbitrary argument of a handler."""


def new_handle(symbols: GroupSymbols) -> SymbolicNumber:
    """A handle that no request had."""
    return symbols.new_handle("new-handle")


def any_partitions(symbols: GroupSymbols) -> tuple[Any, ...]:
    """One symbolic truth value for each partition, for a commit of an arbitrary set of partitions."""
    return symbols.flags("wanted")


def any_plan(symbols: GroupSymbols) -> tuple[SymbolicToken, ...]:
    """Anyone, or nobody, for each partition."""
    return tuple(symbols.member_id(f"plan.{part}") for part in range(symbols.partitions))


def any_value(kind: type) -> Argument:
    """Any value of a kind."""
    return lambda shapes: shapes.arbitrary(kind, kind.__name__)


def start_member(stranger: Member) -> MemberStep:
    """A process starts; of what was there before it knows nothing but its settings."""
    return MemberStep(new_member(stranger.settings, len(stranger.owned)), (), "member.start")


def action_event(
    name: str, action: MemberAction, handler: Callable[..., MemberStep], *make: Argument, existed: bool = True
) -> ProofEvent:
    """A member acts by itself."""
    return member_event(name, handler, lambda _: action, *make, existed=existed)


def echo_event(name: str, handler: Callable[..., MemberStep], *make: Argument) -> ProofEvent:
    """A member hears what may be any response to any request, both of which the handler is given."""
    return member_event(name, handler, lambda situation: HeardResponse(*reversed(situation.arguments)), *make)


def member_event(
    name: str,
    handler: Callable[..., MemberStep],
    cause: Callable[[Situation], MemberAction | HeardResponse],
    *make: Argument,
    existed: bool = True,
) -> ProofEvent:
    """Something happens to a member, of which `cause` says what it is."""

    def prepare(symbols: GroupSymbols) -> Situation:
        group, process = symbols.arbitrary(Group, "group"), symbols.arbitrary(Process, "process")
        arguments = tuple(one(symbols) for one in make)
        return Situation(symbols, group, process=process, arguments=arguments, existed=existed)

    def run(situation: Situation) -> EventResult:
        assert situation.process is not None
        step = symbolic(handler)(situation.process.member, *situation.arguments)
        return after_member_step(situation, step, cause(situation))

    return ProofEvent(name, handler, prepare, run)


def response_event(name: str, handler: Callable[..., MemberStep], kind: type, *make: Argument) -> ProofEvent:
    """An answer to JoinGroup or SyncGroup arrives at a member."""

    def prepare(symbols: GroupSymbols) -> Situation:
        group, process = symbols.arbitrary(Group, "group"), symbols.arbitrary(Process, "process")
        message = symbols.arbitrary(kind, kind.__name__)
        arguments = (message.handle, message.response, *(one(symbols) for one in make))
        return Situation(symbols, group, process=process, arriving=(message,), arguments=arguments)

    def run(situation: Situation) -> EventResult:
        assert situation.process is not None
        handle, response, *others = situation.arguments
        step = symbolic(handler)(situation.process.member, *situation.arguments)
        plan = others[1] if isinstance(response, JoinResponse) else ()
        return after_member_step(situation, step, HeardResponse(response, handle, plan))

    return ProofEvent(name, handler, prepare, run)


def after_member_step(situation: Situation, step: MemberStep, cause: MemberAction | HeardResponse) -> EventResult:
    """The world after a step of a member, with the step itself."""
    assert situation.process is not None
    ledger = situation.ghost
    for sent in step.sent_requests:
        ledger = symbolic(record_request)(ledger, situation.process.name, sent.request)
    process = replace(situation.process, member=step.member)
    change = MemberChange(situation.process.member, cause, step.member, step.sent_requests)
    requests = tuple((one.when, one.request) for one in step.sent_requests)
    return EventResult(situation.group, ledger, process, ((True, change), *requests), step)
