"""Records of a group in the log: when one is written, its contents, and the group loaded from it (coordinator.md 5).

A fail-over loses what is not in the record. Kafka writes it with the assignment of a generation, so a generation whose
assignment is awaited is lost, and its number is given again. Were it written before JoinGroup is answered, members
would go on with SyncGroup. None that was built does so: `Dialect.generation_waits_for_assignment` tells them apart.

The functions run on plain groups and, in the proofs, on symbolic ones.
"""

from fencepost.model.classic.core.join_phase import has_unsynced_member, trigger_rebalance
from fencepost.model.classic.core.member_table import group_timeout, is_member, member_count, rearm
from fencepost.model.classic.core.protocol_selection import metadata_for
from fencepost.model.classic.core.state import FREE, Context, Group, Holder, Phase, Protocol, Slot, Step
from fencepost.model.classic.dialect import dialect_of
from fencepost.model.frozen import evolve
from fencepost.model.logic import Truth, and_, ite, not_, or_


def writes_record(before: Group, step: Step, context: Context) -> Truth:
    """Whether a step writes a record of the group: a generation has its assignment, or ended with nobody; or, in the
    dialect that stores it early, has begun."""
    after = step.group
    renewed = step.rule == "join.replace.stable"
    settled = and_(after.phase == Phase.STABLE, or_(before.phase != Phase.STABLE, renewed))
    if or_(settled, becomes_empty(before, after)):
        return True
    if not_(and_(after.phase == Phase.COMPLETING, after.generation != before.generation)):
        return False
    return not_(dialect_of(context).generation_waits_for_assignment)


def becomes_empty(before: Group, after: Group) -> Truth:
    """A join phase ended with nobody."""
    return and_(after.phase == Phase.EMPTY, after.generation != before.generation)


def group_record(group: Group, context: Context) -> Group:
    """The group as far as its record has it: no timers, and nothing parked. Loading decides which protocols stay."""
    return Group(
        phase=group.phase,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader,
        slots=tuple(
            ite(is_member(slot), member_record(slot), FREE) for slot in group.slots if is_member(slot) is not False
        ),
    )


def member_record(slot: Slot) -> Slot:
    """The member in the slot as far as the group's record has it."""
    return Slot(
        holder=Holder.MEMBER,
        id=slot.id,
        instance=slot.instance,
        session_timeout=slot.session_timeout,
        rebalance_timeout=slot.rebalance_timeout,
        protocols=slot.protocols,
        assignment=slot.assignment,
        client=slot.client,
    )


def load_record(stored: Group, context: Context) -> Step:
    """The group as a new coordinator goes on with it; one with too many members begins a rebalance."""
    group = load_group(stored, context)
    if member_count(group) > context.max_group_size:
        return Step(*trigger_rebalance(group, context), "load.oversized")
    return Step(group, (), "load.group")


def load_group(stored: Group, context: Context) -> Group:
    """The group of the record with full sessions: Stable if it has members, else Empty.

    If its assignment is awaited, it is so again, and the sync timer starts anew.
    """
    early = not_(dialect_of(context).generation_waits_for_assignment) if stored.phase == Phase.COMPLETING else False
    members = tuple(
        ite(is_member(slot), load_slot(slot, stored, context, early), FREE)
        for slot in stored.slots
        if is_member(slot) is not False
    )
    group = Group(
        phase=ite(early, Phase.COMPLETING, Phase.STABLE),
        generation=stored.generation,
        protocol_type=stored.protocol_type,
        protocol=stored.protocol,
        leader=stored.leader,
        slots=(*members, FREE),
    )
    if member_count(group) == 0:
        return evolve(group, phase=Phase.EMPTY)
    awaits = has_unsynced_member(group)
    return evolve(group, sync_armed=awaits, sync_deadline=ite(awaits, context.now + group_timeout(group), 0))


def load_slot(slot: Slot, stored: Group, context: Context, early: Truth) -> Slot:
    """A member of the record, which need not have more than the selected protocol (FAILOVER-13)."""
    selected = (Protocol(stored.protocol, metadata_for(slot, stored.protocol)),)
    protocols = selected if dialect_of(context).other_protocols_are_forgotten else slot.protocols
    plain = evolve(slot, is_new=False, join=0, sync=0, unsynced=early, protocols=protocols)
    return rearm(plain, context.now)
