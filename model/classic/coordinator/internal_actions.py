"""What a coordinator does by itself: timers, clean-up, transaction markers, unloading, restart."""

from dataclasses import dataclass
from enum import Enum

from fencepost.model.classic.coordinator.dispatch import absorbed
from fencepost.model.classic.coordinator.offsets import apply_end
from fencepost.model.classic.coordinator.state import Outcome, Reply, World
from fencepost.model.classic.core.join_phase import trigger
from fencepost.model.classic.core.member_table import is_member, member_count, rearm
from fencepost.model.classic.core.protocol_selection import metadata_for
from fencepost.model.classic.core.state import (
    FREE,
    Context,
    Group,
    Holder,
    JoinAnswer,
    Phase,
    Protocol,
    Slot,
    Step,
    SyncAnswer,
)
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.classic.messages.subscription import subscribed_topics
from fencepost.model.errors import Error
from fencepost.model.frozen import alter
from fencepost.model.logic import Time


class Timer(Enum):
    """The kinds of things that come due."""

    MEMBER = "member"
    JOIN = "join"
    SYNC = "sync"
    MARKER = "marker"


@dataclass(frozen=True, slots=True)
class Due:
    """A timer and its deadline in milliseconds; `slot` is the member's place, 0 otherwise."""

    timer: Timer
    deadline: int
    slot: int = 0


def timers(world: World) -> tuple[Due, ...]:
    """Every armed timer of the world."""
    group = world.group
    found = [Due(Timer.MARKER, world.ending[0][2])] if world.ending else []
    if group is not None:
        found += [
            Due(Timer.MEMBER, slot.deadline, index)
            for index, slot in enumerate(group.slots)
            if slot.armed and slot.holder is not Holder.NOBODY
        ]
        if group.join_armed:
            found.append(Due(Timer.JOIN, group.join_deadline))
        if group.sync_armed:
            found.append(Due(Timer.SYNC, group.sync_deadline))
    return tuple(found)


def deadlines(world: World) -> list[Time]:
    """When each of the armed timers is due."""
    found = [world.ending[0][2]] if world.ending else []
    group = world.group
    if group is not None:
        found += [slot.deadline for slot in group.slots if slot.armed]
        if group.join_armed:
            found.append(group.join_deadline)
        if group.sync_armed:
            found.append(group.sync_deadline)
    return found


def fire(world: World, due: Due, context: Context) -> Outcome:
    """Let a timer fire; nothing happens if it is not due."""
    if due.timer is Timer.MARKER:
        return Outcome(apply_end(world), (), "transaction.marker")
    assert world.group is not None
    step: Step
    if due.timer is Timer.MEMBER:
        step = expire_member(world.group, due.slot, context)
    elif due.timer is Timer.JOIN:
        step = expire_join(world.group, context)
    else:
        step = expire_sync(world.group, context)
    return absorbed(world, step, context.now)


def unloaded(world: World) -> Outcome:
    """The group moves to another node: whoever waits is sent there, and nothing of it stays (coordinator.md 5.3)."""
    members = [] if world.group is None else [slot for slot in world.group.slots if is_member(slot)]
    elsewhere = Error.NOT_COORDINATOR
    joins = [Reply(slot.join, JoinAnswer(elsewhere, member=slot.id)) for slot in members if slot.join]
    syncs = [Reply(slot.sync, SyncAnswer(elsewhere)) for slot in members if slot.sync]
    return Outcome(World(), (*joins, *syncs), "unload")


def restarted(world: World, context: Context) -> Outcome:
    """The world as a new coordinator loads it from the log (coordinator.md 5.2)."""
    stored = world.stored
    if stored is not None and stored.generation == 0 and not context.dialect.new_group_is_stored:
        stored = None
    if stored is None and world.offsets:
        stored = Group()
    if stored is None:
        return Outcome(World(), (), "load.nothing")
    group = loaded(stored, context)
    subscribed = subscribed_topics(group) if group.generation else None
    after = World(group, subscribed, world.offsets, world.pending, world.ending, world.emptied, stored)
    if member_count(group) > context.max_group_size:
        group, outputs = trigger(group, context)
        return absorbed(after, Step(group, outputs, "load.oversized"), context.now)
    return Outcome(after, (), "load.group")


def loaded(stored: Group, context: Context) -> Group:
    """The group of the record: Stable with full sessions if it has members, else Empty."""
    members = tuple(loaded_slot(slot, stored, context) for slot in stored.slots if is_member(slot))
    return Group(
        phase=Phase.STABLE if members else Phase.EMPTY,
        generation=stored.generation,
        protocol_type=stored.protocol_type,
        protocol=stored.protocol,
        leader=stored.leader,
        slots=(*members, FREE),
    )


def loaded_slot(slot: Slot, stored: Group, context: Context) -> Slot:
    """A member of the record, which need not have more than the selected protocol (FAILOVER-13)."""
    selected = (Protocol(stored.protocol, metadata_for(slot, stored.protocol)),)
    protocols = selected if context.dialect.other_protocols_are_forgotten else slot.protocols
    plain = alter(slot, is_new=False, join=0, sync=0, unsynced=False, protocols=protocols)
    return rearm(plain, context.now)
