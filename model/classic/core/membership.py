"""Heartbeat, LeaveGroup and the membership side of OffsetCommit (coordinator.md 2.4 to 2.6)."""

from fencepost.model.classic.core.join_phase import Progress, trigger_rebalance
from fencepost.model.classic.core.member_table import (
    NOWHERE,
    check_member,
    clear_slot,
    find,
    find_instance,
    rearm,
    with_slot,
)
from fencepost.model.classic.core.state import (
    CommitResponse,
    Context,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    Holder,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    NoResponse,
    Output,
    Phase,
    Step,
)
from fencepost.model.errors import Error
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.logic import Time, emit
from fencepost.model.sorts import InstanceId, MemberId


def heartbeat(group: Group, request: HeartbeatRequest, context: Context) -> Step:
    """Handle Heartbeat on a group that exists."""
    error, index = check_member(group, request.member, request.instance)
    if error == Error.UNKNOWN_MEMBER_ID:
        return respond_to_heartbeat(group, request, error, "heartbeat.unknown-member")
    if error == Error.FENCED_INSTANCE_ID:
        return respond_to_heartbeat(group, request, error, "heartbeat.fenced")
    if request.generation != group.generation:
        return respond_to_heartbeat(group, request, Error.ILLEGAL_GENERATION, "heartbeat.other-generation")
    alive = renew_session(group, index, context.now)
    if group.phase == Phase.PREPARING:
        return respond_to_heartbeat(alive, request, Error.REBALANCE_IN_PROGRESS, "heartbeat.preparing")
    if group.phase == Phase.COMPLETING:
        return respond_to_heartbeat(alive, request, Error.NONE, "heartbeat.completing")
    return respond_to_heartbeat(alive, request, Error.NONE, "heartbeat.stable")


def respond_to_heartbeat(group: Group, request: HeartbeatRequest, error: Error, rule: str) -> Step:
    """Answer a Heartbeat."""
    return Step(group, (Output(request.handle, HeartbeatResponse(error)),), rule)


def renew_session(group: Group, index: int, now: Time) -> Group:
    """The group with a full session before the member in this slot."""
    return with_slot(group, index, rearm(group.slots[index], now))


def commit(group: Group, request: CommitRequest, context: Context) -> Step:
    """May this commit be stored? The offsets themselves are kept outside the core."""
    simple = request.generation < 0 and request.member is None and request.instance is None
    if request.generation < 0 and group.phase == Phase.EMPTY:
        return respond_to_commit(group, request, Error.NONE, "commit.empty")
    if simple:
        return respond_to_commit(group, request, Error.UNKNOWN_MEMBER_ID, "commit.simple-in-active")
    error, index = check_member(group, request.member, request.instance)
    if error == Error.UNKNOWN_MEMBER_ID:
        return respond_to_commit(group, request, error, "commit.unknown-member")
    if error == Error.FENCED_INSTANCE_ID:
        return respond_to_commit(group, request, error, "commit.fenced")
    if request.generation != group.generation:
        return respond_to_commit(group, request, Error.ILLEGAL_GENERATION, "commit.other-generation")
    if group.phase == Phase.COMPLETING:
        return respond_to_commit(group, request, Error.REBALANCE_IN_PROGRESS, "commit.completing")
    alive = renew_session(group, index, context.now)
    if group.phase == Phase.PREPARING:
        return respond_to_commit(alive, request, Error.NONE, "commit.preparing")
    return respond_to_commit(alive, request, Error.NONE, "commit.stable")


def respond_to_commit(group: Group, request: CommitRequest, error: Error, rule: str) -> Step:
    """Answer an OffsetCommit."""
    return Step(group, (Output(request.handle, CommitResponse(error)),), rule)


def leave(group: Group, request: LeaveRequest, context: Context) -> Step:
    """Handle LeaveGroup on a group that exists: each entry in turn, then one look at the round (DIV-06)."""
    outputs: tuple[Output, ...] = ()
    errors: list[Error] = []
    left = False
    for member, instance in request.entries:
        error, rebalances, (group, silenced) = remove_entry(group, member, instance, context)
        errors.append(error)
        outputs += silenced
        if rebalances and not context.dialect.batch_leave_settles_once:
            group, responses = rebalance_after_leave(group, context)
            outputs += responses
        left = left or rebalances
    if left and context.dialect.batch_leave_settles_once:
        group, responses = rebalance_after_leave(group, context)
        outputs += responses
    response = Output(request.handle, LeaveResponse(Error.NONE, tuple(errors)))
    return Step(group, (response, *outputs), "leave.member" if left else "leave.nobody")


def rebalance_after_leave(group: Group, context: Context) -> Progress:
    """After a departure: rebalance, or see whether the join phase is now complete."""
    if group.phase == Phase.EMPTY:
        return group, ()
    return trigger_rebalance(group, context)


def remove_entry(
    group: Group, member: MemberId | None, instance: InstanceId | None, context: Context
) -> tuple[Error, bool, Progress]:
    """One entry: its error, whether the round has to be looked at, and what is left."""
    if member is None:
        if instance is None:
            return Error.UNKNOWN_MEMBER_ID, False, (group, ())
        index = find_instance(group, instance)
        if index == NOWHERE:
            return Error.UNKNOWN_MEMBER_ID, False, (group, ())
        return Error.NONE, True, remove_member(group, index)
    pending = find(group, member, Holder.PENDING)
    if pending != NOWHERE:
        noticed = context.dialect.pending_leave_rebalances or group.phase == Phase.PREPARING
        return Error.NONE, noticed, (clear_slot(group, pending), ())
    error, index = check_member(group, member, instance)
    if error != Error.NONE:
        return error, False, (group, ())
    return Error.NONE, True, remove_member(group, index)


def remove_member(group: Group, index: int) -> Progress:
    """The group without the member; its parked JoinGroup is refused, its SyncGroup forgotten (LEAVE-09)."""
    slot = group.slots[index]
    outputs = emit(slot.join != 0, Output(slot.join, JoinResponse(Error.UNKNOWN_MEMBER_ID)))
    outputs += emit(slot.sync != 0, Output(slot.sync, NoResponse()))
    return clear_slot(group, index), outputs
