"""The theorems about how a round goes on: who is awaited, when a phase ends, and what is answered to whom."""

from fencepost.model.classic.core.member_table import is_member, offered_by_all
from fencepost.model.classic.core.state import (
    Group,
    Holder,
    JoinRequest,
    JoinResponse,
    LeaveResponse,
    NoResponse,
    Output,
    Phase,
    Slot,
    SyncRequest,
)
from fencepost.model.classic.theorems.lemmas import is_generation_active
from fencepost.model.classic.theorems.step_statements import CoordinatorStep, TimerExpiry
from fencepost.model.errors import Error
from fencepost.model.logic import Truth, absent, all_, and_, any_, count, not_, or_
from fencepost.model.sorts import Handle, InstanceId, MemberId, ProtocolName
from fencepost.model.statement import implies, statement


@statement("T34", "A response goes to the request at hand, or to one that waits.")
def responses_are_asked_for(step: CoordinatorStep) -> Truth:
    """Nobody is told what nobody asked."""
    return all_(implies(output.when, is_asked_for(step, output.handle)) for output in step.outputs)


def is_asked_for(step: CoordinatorStep, handle: Handle) -> Truth:
    """The handle is that of the step's request, or of one that waits before the step."""
    mine = not isinstance(step.input, TimerExpiry) and step.input.handle == handle
    waits = (or_(slot.join == handle, slot.sync == handle) for slot in step.before.slots)
    return or_(mine, and_(handle != 0, any_(waits)))


@statement("T35", "A member is awaited by the sync timer from the beginning of a generation until its SyncGroup.")
def members_are_awaited_once(step: CoordinatorStep) -> Truth:
    """Who has synced is not removed. A replacement is not awaited."""
    begins = step.after.generation != step.before.generation
    other = or_(begins, not_(is_generation_active(step.after)))
    not_again = all_(
        implies(and_(is_member(new), new.unsynced), or_(other, and_(old.unsynced, old.id == new.id)))
        for old, new in zip(step.before.slots, step.after.slots, strict=False)
    )
    if not isinstance(step.input, SyncRequest):
        return not_again
    request, refused = step.input, is_refused_with_error(step, step.input.handle)
    synced = all_(
        implies(and_(is_member(slot), slot.id == request.member), not_(slot.unsynced)) for slot in step.after.slots
    )
    return and_(not_again, or_(refused, synced))


def is_refused_with_error(step: CoordinatorStep, handle: Handle) -> Truth:
    """The request with this handle is answered with an error."""
    return any_(
        and_(output.when, output.handle == handle, output.response.error != Error.NONE)
        for output in step.outputs
        if not isinstance(output.response, NoResponse | LeaveResponse)
    )


@statement("T36", "A join phase ends once nobody is awaited in it, unless it began with an empty group.")
def join_phase_ends(step: CoordinatorStep) -> Truth:
    """Nobody waits for nobody. The refusal of a member that is too many may wait for the timer (DIV-08)."""
    before, after = step.before, step.after
    return implies(
        is_nobody_awaited(after),
        or_(is_nobody_awaited(before), any_(is_refusal_for_size(step, output) for output in step.outputs)),
    )


def is_nobody_awaited(group: Group) -> Truth:
    """In a join phase that began with members, each has joined, and no id is pending."""
    joined = (or_(slot.holder == Holder.NOBODY, and_(is_member(slot), slot.join != 0)) for slot in group.slots)
    return and_(group.phase == Phase.PREPARING, not_(group.from_empty), all_(joined))


def is_refusal_for_size(step: CoordinatorStep, output: Output) -> Truth:
    """The JoinGroup at hand is refused because the group is full."""
    if not isinstance(step.input, JoinRequest) or not isinstance(output.response, JoinResponse):
        return False
    refused: Truth = output.response.error == Error.GROUP_MAX_SIZE_REACHED
    return and_(output.when, output.handle == step.input.handle, refused)


@statement("T37", "A member's SyncGroup for its generation and protocol is refused in a join phase only.")
def syncs_are_accepted(step: CoordinatorStep) -> Truth:
    """Who is in time gets its assignment (T8), or waits for it (T19)."""
    request, before = step.input, step.before
    if not isinstance(request, SyncRequest):
        return True
    fits = and_(
        is_of_member(before, request.member, request.instance),
        request.generation == before.generation,
        or_(absent(request.protocol), request.protocol == before.protocol),
        or_(absent(request.protocol_type), request.protocol_type == before.protocol_type),
    )
    return implies(and_(fits, is_generation_active(before)), not_(is_refused_with_error(step, request.handle)))


def is_of_member(group: Group, member: MemberId | None, instance: InstanceId | None) -> Truth:
    """The id is a member's, and the instance id, if there is one, is that member's too."""
    return any_(
        and_(
            is_member(slot),
            not_(absent(member)),
            slot.id == member,
            or_(absent(instance), and_(not_(absent(slot.instance)), slot.instance == instance)),
        )
        for slot in group.slots
    )


@statement("T38", "No protocol has more votes of the members than that of their generation, when it begins.")
def protocol_is_elected(step: CoordinatorStep) -> Truth:
    """A member votes for the first of its protocols that all offer."""
    group = step.after
    begins = and_(group.generation != step.before.generation, group.phase == Phase.COMPLETING)
    elected = votes_for(group, group.protocol)
    names = (protocol.name for slot in group.slots for protocol in slot.protocols)
    return implies(begins, all_(votes_for(group, name) <= elected for name in names))


def votes_for(group: Group, name: ProtocolName | None) -> int:
    """How many members vote for a protocol of this name."""
    return count(and_(is_member(slot), is_first_common(group, slot, name)) for slot in group.slots)


def is_first_common(group: Group, slot: Slot, name: ProtocolName | None) -> Truth:
    """The name is the first in the member's list that all members offer."""
    found: list[Truth] = []
    earlier: list[Truth] = []
    for protocol in slot.protocols:
        common = offered_by_all(group, protocol.name)
        found.append(and_(protocol.name == name, common, *map(not_, earlier)))
        earlier.append(common)
    return or_(*found)


PHASE_THEOREMS = (
    responses_are_asked_for,
    members_are_awaited_once,
    join_phase_ends,
    syncs_are_accepted,
    protocol_is_elected,
)
