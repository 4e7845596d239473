"""One of the two groups: its coordinator with a log, two members, and what lies between them."""

from dataclasses import dataclass, field
from typing import cast

from fencepost.model.classic.coordinator.group_log import group_record, load_record, writes_record
from fencepost.model.classic.coordinator.proposal import amend_heartbeat, amend_join, amend_sync
from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import heartbeat
from fencepost.model.classic.core.sorts import HandleNumber, OtherProtocolType, ProtocolName, numbered_id
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    Context,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    Holder,
    JoinRequest,
    JoinResponse,
    Step,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.member.member import Member, MemberSettings, new_member
from fencepost.model.classic.member.resync import Leadership
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve

SLOTS = 2
PARTITIONS = 2
"""The second one comes when the topic grows."""
HANDLES = 100
"""So many handles has each member."""
SETTINGS = MemberSettings(
    names=(ProtocolName("range"),),
    protocol_type=OtherProtocolType("claims"),
    session_timeout=0,
    rebalance_timeout=0,
    requires_id=False,
)


@dataclass(frozen=True, slots=True)
class Actor:
    """A member process, the SyncGroup that it has to send, and a response that lies ready for it."""

    member: Member
    handles: int = 0
    request: SyncRequest | None = None
    response: JoinResponse | SyncResponse | None = None
    leadership: Leadership | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two groups. `told` has generations with who was told that it leads them, `given` the generations,
    partitions and members of assignments as members were told; `errors` are those of the last move, by member."""

    dialect: Dialect
    group: Group
    actors: tuple[Actor, ...]
    record: Group = field(default_factory=Group)
    ids: int = 0
    told: frozenset[tuple[int, int]] = frozenset()
    given: frozenset[tuple[int, int, int]] = frozenset()
    errors: tuple[tuple[int, str, Error], ...] = ()

    def context(self) -> Context:
        """Time does not pass, and every armed timer is due."""
        choices = Choices(member_id=numbered_id(self.ids + 1))
        return Context(0, choices, self.dialect, initial_rebalance_delay=0, new_member_timeout=0)


def new_side(dialect: Dialect) -> Side:
    """A group without members, of a coordinator that speaks the dialect, and two processes."""
    actors = tuple(Actor(new_member(SETTINGS, PARTITIONS)) for _ in range(2))
    return Side(dialect, Group(slots=(FREE,) * SLOTS), actors)


def sender_of(handle: int) -> int:
    """The member that sent the request of this handle."""
    return handle // HANDLES


def next_handle(side: Side, index: int) -> HandleNumber:
    """A handle that no request of the member had."""
    return HandleNumber(index * HANDLES + side.actors[index].handles + 1)


def with_actor(side: Side, index: int, actor: Actor) -> Side:
    """The group with this actor in the place of another."""
    actors = tuple(actor if place == index else other for place, other in enumerate(side.actors))
    return evolve(side, actors=actors)


def handle_request(
    side: Side, request: JoinRequest | SyncRequest | HeartbeatRequest, failure: Error = Error.NONE
) -> Side:
    """The coordinator handles a request."""
    group, context = side.group, side.context()
    match request:
        case JoinRequest():
            step = amend_join(group, request, join(group, request, context), context)
        case SyncRequest():
            step = amend_sync(group, request, failure, sync(group, request, context), context)
        case HeartbeatRequest():
            step = amend_heartbeat(group, request, heartbeat(group, request, context), context)
    return take_step(side, step)


def take_step(side: Side, step: Step) -> Side:
    """The group after a step of its coordinator: the record is written, and responses are on their way."""
    context = side.context()
    used = any(slot.id == numbered_id(side.ids + 1) for slot in step.group.slots)
    record = side.record
    if step.group is not side.group and writes_record(side.group, step, context):
        record = group_record(step.group, context)
    side = evolve(side, group=step.group, record=record, ids=side.ids + used)
    for output in step.outputs:
        if output.when:
            side = deliver(side, int(output.handle), output.response)
    return side


def deliver(side: Side, handle: int, response: object) -> Side:
    """A response is on its way to who asked."""
    index = sender_of(handle)
    actor = side.actors[index]
    if isinstance(response, HeartbeatResponse):
        return evolve(side, errors=(*side.errors, (index, "Heartbeat", response.error)))
    if not isinstance(response, JoinResponse | SyncResponse):
        return side
    kind = "JoinGroup" if isinstance(response, JoinResponse) else "SyncGroup"
    side = evolve(side, errors=(*side.errors, (index, kind, response.error)))
    if isinstance(response, JoinResponse) and response.leader is not None and response.leader == response.member:
        side = evolve(side, told=side.told | {(response.generation, index)})
    if isinstance(response, SyncResponse) and response.error is Error.NONE:
        parts = [part for part, has in enumerate(cast(tuple[bool, ...], response.assignment or ())) if has]
        given = {(side.group.generation, part, index) for part in parts}
        side = evolve(side, given=side.given | given)
    if handle != actor.member.waiting:
        return side  # given up meanwhile
    return with_actor(side, index, evolve(actor, response=response))


def lose_coordinator(side: Side) -> Side:
    """The coordinator is lost, and the next one begins with the record."""
    step = load_record(side.record, side.context())
    members = [slot for slot in step.group.slots if slot.holder != Holder.NOBODY]
    slots = (*members, *(FREE,) * SLOTS)[:SLOTS]
    return evolve(side, group=evolve(step.group, slots=slots))
