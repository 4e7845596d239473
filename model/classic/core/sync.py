"""SyncGroup: the sync phase (coordinator.md 2.3)."""

from fencepost.model.classic.core.join_phase import update_sync_timer
from fencepost.model.classic.core.member_table import check_member, is_member, rearm, with_slot
from fencepost.model.classic.core.state import (
    Context,
    Group,
    NoResponse,
    Output,
    Phase,
    Slot,
    Step,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.logic import Truth, emit
from fencepost.model.sorts import Assignment, MemberId


def sync_error(group: Group, request: SyncRequest, error: Error, rule: str) -> Step:
    """SYNC-ERR."""
    return Step(group, (Output(request.handle, SyncResponse(error)),), rule)


def sync(group: Group, request: SyncRequest, context: Context) -> Step:
    """Handle SyncGroup on a group that exists."""
    error, index = check_member(group, request.member, request.instance)
    if error == Error.UNKNOWN_MEMBER_ID:
        return sync_error(group, request, error, "sync.unknown-member")
    if error == Error.FENCED_INSTANCE_ID:
        return sync_error(group, request, error, "sync.fenced")
    if request.generation != group.generation:
        return sync_error(group, request, Error.ILLEGAL_GENERATION, "sync.other-generation")
    if not names_protocol(group, request, context):
        return sync_error(group, request, Error.INCONSISTENT_GROUP_PROTOCOL, "sync.other-protocol")
    if group.phase == Phase.PREPARING:
        return sync_error(group, request, Error.REBALANCE_IN_PROGRESS, "sync.preparing")
    if group.phase == Phase.STABLE:
        return sync_stable(group, index, request, context)
    return sync_completing(group, index, request, context)


def names_protocol(group: Group, request: SyncRequest, context: Context) -> Truth:
    """Protocol type and name, where given, are the group's (KIP-559)."""
    named = request.protocol is None or request.protocol == group.protocol or accepts_any_protocol(group, context)
    return (request.protocol_type is None or request.protocol_type == group.protocol_type) and named


def accepts_any_protocol(group: Group, context: Context) -> Truth:
    """No protocol is selected, and so none is wrong (DIV-21)."""
    if group.protocol is not None:
        return False
    return context.dialect.unselected_protocol_fits_any


def sync_success(group: Group, slot: Slot) -> SyncResponse:
    """SYNC-OK with the stored assignment."""
    return SyncResponse(Error.NONE, group.protocol_type, group.protocol, slot.assignment)


def sync_stable(group: Group, index: int, request: SyncRequest, context: Context) -> Step:
    """The assignment is known: hand it out, whatever the request carries (SYNC-16, SYNC-17)."""
    slot = evolve(group.slots[index], unsynced=False)
    response = (Output(request.handle, sync_success(group, slot)),)
    if not context.dialect.sync_in_stable_keeps_session:
        slot = rearm(slot, context.now)
    return Step(update_sync_timer(with_slot(group, index, slot)), response, "sync.stable")


def sync_completing(group: Group, index: int, request: SyncRequest, context: Context) -> Step:
    """Park the request; the leader's brings the assignments and ends the round."""
    slot = group.slots[index]
    dropped = emit(slot.sync != 0, Output(slot.sync, NoResponse()))
    waiting = with_slot(group, index, evolve(slot, sync=request.handle, unsynced=False))
    if request.member != group.leader:
        return Step(update_sync_timer(waiting), dropped, "sync.follower")
    outputs: tuple[Output, ...] = ()
    slots: list[Slot] = []
    for member in waiting.slots:
        assigned = evolve(member, assignment=assignment_for(request, member.id))
        parked = is_member(member) and member.sync != 0
        outputs += emit(parked, Output(member.sync, sync_success(group, assigned)))
        answered = rearm(evolve(assigned, sync=0), context.now) if parked else assigned
        slots.append(answered if is_member(member) else member)
    after = evolve(waiting, phase=Phase.STABLE, from_empty=False, slots=tuple(slots))
    return Step(update_sync_timer(after), dropped + outputs, "sync.leader")


def assignment_for(request: SyncRequest, member: MemberId | None) -> Assignment | None:
    """What the leader gives this member: the last entry for its id, None if it is left out (SYNC-13)."""
    assignment: Assignment | None = None
    for owner, given in request.assignments:
        assignment = given if owner == member else assignment
    return assignment
