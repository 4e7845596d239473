"""Everything that can happen: each handler of the core with arbitrary arguments."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import commit, heartbeat, leave, leave_one, settle
from fencepost.model.classic.core.state import (
    CommitAnswer,
    CommitRequest,
    Context,
    Group,
    HeartbeatAnswer,
    HeartbeatRequest,
    Holder,
    JoinAnswer,
    JoinRequest,
    LeaveRequest,
    Step,
    SyncAnswer,
    SyncRequest,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberStep, PartitionCommit, started
from fencepost.model.classic.theorems.ghost_state import (
    Accepted,
    JoinAnswered,
    Ledger,
    Process,
    SyncAnswered,
    born,
    observed,
    recorded,
)
from fencepost.model.errors import Error
from fencepost.model.logic import Token, any_
from fencepost.model.proofs.classic.arbitrary_values import Shapes
from fencepost.model.proofs.classic.symbolic_history import History
from fencepost.model.proofs.symbolic_values import Name, Number, formula, number_term
from fencepost.model.proofs.terms import Term


@dataclass(frozen=True, slots=True)
class Situation:
    """An arbitrary world, as far as one event touches it: the group, the ledger, what acts and what arrives."""

    shapes: Shapes
    group: Group
    ledger: Ledger = field(default_factory=History)
    process: Process | None = None
    arriving: tuple[Any, ...] = ()
    """Messages that were sent some time ago."""
    arguments: tuple[Any, ...] = ()
    """What the handler is called with, besides the group or the member."""
    assumed: tuple[Term, ...] = ()
    existed: bool = True
    """The process was there before the event."""


@dataclass(frozen=True, slots=True)
class Happened:
    """What an event leads to on one path: the world after it and what is sent, each where its condition holds."""

    group: Group
    ledger: Ledger
    process: Process | None
    sent: tuple[tuple[Any, Any], ...]
    result: Step | MemberStep


@dataclass(frozen=True, slots=True)
class Event:
    """Something that can happen, in an arbitrary situation. `handler` is the shipped function that handles it."""

    name: str
    handler: Callable[..., Any]
    prepare: Callable[[Shapes], Situation]
    run: Callable[[Situation], Happened]
    unassumed: frozenset[str] = frozenset()
    """Statements that need not hold before."""
    unproved: frozenset[str] = frozenset()
    """Statements that need not hold after, for more is to come."""


def coordinator_events(slots: int) -> Iterator[Event]:
    """What can happen to a coordinator; a LeaveGroup of several entries is a first, more of them, and a settlement."""
    yield requested("join", join, JoinRequest)
    yield requested("sync", sync, SyncRequest)
    yield requested("heartbeat", heartbeat, HeartbeatRequest)
    yield requested("leave", leave, LeaveRequest)
    yield leave_entry()
    yield leave_settlement()
    yield requested("commit", commit, PartitionCommit)
    for index in range(slots):
        yield timed(f"expire-member-{index}", expire_member, index)
    yield timed("expire-join", expire_join)
    yield timed("expire-sync", expire_sync)


def context(shapes: Shapes) -> Context:
    """Any moment, dialect and limits; the id that the coordinator draws is new, and may be the one chosen to lead."""
    drawn: Context = shapes.arbitrary(Context, "context")
    choices: Any = replace(drawn.choices, member_id=shapes.new_id("new-id"), leader=shapes.name("chosen-leader"))
    moment = replace(drawn, choices=choices)
    waits: tuple[Any, ...] = (moment.initial_rebalance_delay, moment.new_member_timeout)
    shapes.domain.extend(number_term(wait) >= 0 for wait in waits)
    return moment


def requested(name: str, handler: Callable[..., Step], kind: type) -> Event:
    """A request arrives at the coordinator."""

    def prepare(shapes: Shapes) -> Situation:
        group = shapes.arbitrary(Group, "group")
        message = shapes.arbitrary(kind, kind.__name__)
        assumed: tuple[Term, ...] = ()
        if kind is JoinRequest:
            room = any_(slot.holder == Holder.NOBODY for slot in group.slots)
            assumed = (formula(room),)
        request = message.request if isinstance(message, PartitionCommit) else message
        arguments = (request, context(shapes))
        return Situation(shapes, group, arriving=(message,), arguments=arguments, assumed=assumed)

    def run(situation: Situation) -> Happened:
        request, moment = situation.arguments
        step = handler(situation.group, request, moment)
        ledger = situation.ledger
        if isinstance(request, JoinRequest):
            ledger = born(ledger, situation.group, moment.choices.member_id, request.instance, request.handle)
        return after(situation, step, ledger)

    return Event(name, handler, prepare, run)


_LEAVING = frozenset({"group-leader", "join-answer-claims", "syncing-claims"})
"""What need not hold between the entries of a LeaveGroup."""


def leave_entry() -> Event:
    """One of several entries of a LeaveGroup, before the round is looked at."""

    def prepare(shapes: Shapes) -> Situation:
        group = shapes.arbitrary(Group, "group")
        entry = (shapes.member_id("member"), shapes.name("instance"))
        return Situation(shapes, group, arguments=(*entry, context(shapes)))

    def run(situation: Situation) -> Happened:
        return after(situation, one_leaves(situation.group, *situation.arguments), situation.ledger)

    return Event("leave-entry", one_leaves, prepare, run, _LEAVING, _LEAVING)


def one_leaves(group: Group, member: Token, instance: Token, moment: Context) -> Step:
    """What a LeaveGroup makes of one entry."""
    _, _, (rest, outputs) = leave_one(group, member, instance, moment)
    return Step(rest, outputs, "leave.entry")


def leave_settlement() -> Event:
    """The look at the round that follows the entries of a LeaveGroup."""

    def prepare(shapes: Shapes) -> Situation:
        return Situation(shapes, shapes.arbitrary(Group, "group"), arguments=(context(shapes),))

    def run(situation: Situation) -> Happened:
        return after(situation, rounds_on(situation.group, *situation.arguments), situation.ledger)

    return Event("leave-settlement", rounds_on, prepare, run, _LEAVING)


def rounds_on(group: Group, moment: Context) -> Step:
    """What a LeaveGroup does when members have left."""
    rest, outputs = settle(group, moment)
    return Step(rest, outputs, "leave.settled")


def timed(name: str, handler: Callable[..., Step], *index: int) -> Event:
    """A timer of the coordinator fires."""

    def prepare(shapes: Shapes) -> Situation:
        group = shapes.arbitrary(Group, "group")
        return Situation(shapes, group, arguments=(*index, context(shapes)))

    def run(situation: Situation) -> Happened:
        return after(situation, handler(situation.group, *situation.arguments), situation.ledger)

    return Event(name, handler, prepare, run)


def after(situation: Situation, step: Step, ledger: Ledger) -> Happened:
    """The world after a step of the coordinator, with the answers that matter."""
    if step.group is not situation.group:
        ledger = observed(ledger, situation.group, step.group, situation.shapes.partitions)
    sent: list[tuple[Any, Any]] = []
    for output in step.outputs:
        match output.answer:
            case JoinAnswer() as answer:
                sent.append((output.when, JoinAnswered(output.handle, answer)))
            case SyncAnswer() as answer:
                sent.append((output.when, SyncAnswered(output.handle, answer)))
            case CommitAnswer(error):
                moment = Accepted(situation.group, situation.arriving[0])
                sent.append((error == Error.NONE, moment))
    return Happened(step.group, ledger, None, tuple(sent), step)


def member_events() -> Iterator[Event]:
    """What can happen to a member process."""
    yield acting("member-start", starts, existed=False)
    yield acting("member-restart", members.restart)
    yield acting("member-ask-rejoin", members.ask_rejoin)
    yield acting("member-disconnect", members.disconnect)
    yield acting("member-join", members.join, new_handle)
    yield acting("member-heartbeat", members.heartbeat, new_handle)
    yield acting("member-commit", members.commit, new_handle, wanted)
    yield acting("member-leave", members.leave, new_handle)
    yield acting(
        "member-heartbeat-answer", members.on_heartbeat_answer, any_of(HeartbeatRequest), any_of(HeartbeatAnswer)
    )
    yield acting("member-commit-answer", members.on_commit_answer, any_of(CommitRequest), any_of(CommitAnswer))
    yield answered("member-join-answer", members.on_join_answer, JoinAnswered, new_handle, plan)
    yield answered("member-sync-answer", members.on_sync_answer, SyncAnswered, new_handle)
    yield answered("member-sync-answer-quietly", members.on_sync_answer, SyncAnswered)


Argument = Callable[[Shapes], Any]
"""Makes an arbitrary argument of a handler."""


def new_handle(shapes: Shapes) -> Number:
    """A handle that no request had."""
    return shapes.new_handle("new-handle")


def wanted(shapes: Shapes) -> tuple[Any, ...]:
    """Any partitions."""
    return shapes.flags("wanted")


def plan(shapes: Shapes) -> tuple[Name, ...]:
    """Anyone, or nobody, for each partition."""
    return tuple(shapes.member_id(f"plan.{part}") for part in range(shapes.partitions))


def any_of(kind: type) -> Argument:
    """Any value of a kind."""
    return lambda shapes: shapes.arbitrary(kind, kind.__name__)


def starts(stranger: Member) -> MemberStep:
    """A process starts; of what was there before it knows nothing but its settings."""
    return MemberStep(started(stranger.settings, len(stranger.owned)), (), "member.start")


def acting(name: str, handler: Callable[..., MemberStep], *make: Argument, existed: bool = True) -> Event:
    """A member acts by itself, or hears what may be any answer."""

    def prepare(shapes: Shapes) -> Situation:
        group, process = shapes.arbitrary(Group, "group"), shapes.arbitrary(Process, "process")
        arguments = tuple(one(shapes) for one in make)
        return Situation(shapes, group, process=process, arguments=arguments, existed=existed)

    def run(situation: Situation) -> Happened:
        assert situation.process is not None
        return acted(situation, handler(situation.process.member, *situation.arguments))

    return Event(name, handler, prepare, run)


def answered(name: str, handler: Callable[..., MemberStep], kind: type, *make: Argument) -> Event:
    """An answer to JoinGroup or SyncGroup arrives at a member."""

    def prepare(shapes: Shapes) -> Situation:
        group, process = shapes.arbitrary(Group, "group"), shapes.arbitrary(Process, "process")
        message = shapes.arbitrary(kind, kind.__name__)
        arguments = (message.handle, message.answer, *(one(shapes) for one in make))
        return Situation(shapes, group, process=process, arriving=(message,), arguments=arguments)

    def run(situation: Situation) -> Happened:
        assert situation.process is not None
        return acted(situation, handler(situation.process.member, *situation.arguments))

    return Event(name, handler, prepare, run)


def acted(situation: Situation, step: MemberStep) -> Happened:
    """The world after a step of a member."""
    assert situation.process is not None
    ledger = situation.ledger
    for sent in step.sent:
        ledger = recorded(ledger, situation.process.name, sent.request)
    process = replace(situation.process, member=step.member)
    return Happened(situation.group, ledger, process, tuple((sent.when, sent.request) for sent in step.sent), step)
