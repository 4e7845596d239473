"""The actions of a coordinator without a request: timers, transaction markers, unloading, restart and loading."""

from dataclasses import dataclass
from enum import Enum

from fencepost.model.classic.coordinator.dispatch import apply_core_step
from fencepost.model.classic.coordinator.group_log import load_record
from fencepost.model.classic.coordinator.state import GroupState, Reply, StepResult
from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import Context, Group, Holder, JoinResponse, Step, SyncResponse
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.classic.dialect import dialect_of
from fencepost.model.classic.messages import subscribed_topics
from fencepost.model.errors import Error
from fencepost.model.groups.offsets import apply_transaction_marker, load_deleted_offsets
from fencepost.model.groups.protocol import NOTHING_DELETED
from fencepost.model.logic import Time


class Timer(Enum):
    """The kinds of things that come due."""

    MEMBER = "member"
    JOIN = "join"
    SYNC = "sync"
    MARKER = "marker"


@dataclass(frozen=True, slots=True)
class ArmedTimer:
    """A timer and its deadline in milliseconds; `slot` is the member's place, 0 otherwise."""

    kind: Timer
    deadline: int
    slot: int = 0


def armed_timers(state: GroupState) -> tuple[ArmedTimer, ...]:
    """Every armed timer of the world."""
    group = state.group
    found = [ArmedTimer(Timer.MARKER, state.ended_transactions[0][2])] if state.ended_transactions else []
    if group is not None:
        found += [
            ArmedTimer(Timer.MEMBER, slot.deadline, index)
            for index, slot in enumerate(group.slots)
            if slot.armed and slot.holder is not Holder.NOBODY
        ]
        if group.join_armed:
            found.append(ArmedTimer(Timer.JOIN, group.join_deadline))
        if group.sync_armed:
            found.append(ArmedTimer(Timer.SYNC, group.sync_deadline))
    return tuple(found)


def armed_deadlines(state: GroupState) -> list[Time]:
    """When each of the armed timers is due."""
    found = [state.ended_transactions[0][2]] if state.ended_transactions else []
    group = state.group
    if group is not None:
        found += [slot.deadline for slot in group.slots if slot.armed]
        if group.join_armed:
            found.append(group.join_deadline)
        if group.sync_armed:
            found.append(group.sync_deadline)
    return found


def fire_timer(state: GroupState, timer: ArmedTimer, context: Context) -> StepResult:
    """Let a timer fire; nothing happens if it is not due."""
    if timer.kind is Timer.MARKER:
        return StepResult(apply_transaction_marker(state), (), "transaction.marker")
    assert state.group is not None
    step: Step
    if timer.kind is Timer.MEMBER:
        step = expire_member(state.group, timer.slot, context)
    elif timer.kind is Timer.JOIN:
        step = expire_join(state.group, context)
    else:
        step = expire_sync(state.group, context)
    return apply_core_step(state, step, context)


def unload_group(state: GroupState) -> StepResult:
    """The group moves to another node: whoever waits is sent there, and nothing of it stays (coordinator.md 5.3)."""
    members = [] if state.group is None else [slot for slot in state.group.slots if is_member(slot)]
    elsewhere = Error.NOT_COORDINATOR
    joins = [Reply(slot.join, JoinResponse(elsewhere, member=slot.id)) for slot in members if slot.join]
    syncs = [Reply(slot.sync, SyncResponse(elsewhere)) for slot in members if slot.sync]
    return StepResult(GroupState(), (*joins, *syncs), "unload")


def restart_coordinator(state: GroupState, context: Context) -> StepResult:
    """The world as a new coordinator loads it from the log (coordinator.md 5.2)."""
    if state.deleted != NOTHING_DELETED:
        state = load_deleted_offsets(state, dialect_of(context))
    stored = state.stored
    if stored is not None and stored.generation == 0 and not dialect_of(context).new_group_is_stored:
        stored = None
    if stored is None and (state.offsets or state.pending):
        stored = Group()
    if stored is None:
        return StepResult(GroupState(), (), "load.nothing")
    loaded = load_record(stored, context)
    subscribed = subscribed_topics(loaded.group) if stored.generation else None
    after = GroupState(
        loaded.group,
        subscribed,
        state.offsets,
        state.pending,
        state.ended_transactions,
        state.emptied_at,
        stored,
        state.epochs,
    )
    return StepResult(after, (), loaded.rule)
