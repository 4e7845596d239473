"""The three kinds of timers (coordinator.md 3.2). A timer may fire late, never early: each guards its deadline."""

from fencepost.model.classic.core.join_phase import (
    anyone_unsynced,
    complete_join,
    prepare,
    remaining_wait,
    trigger,
    try_complete,
)
from fencepost.model.classic.core.member_table import all_joined, is_member, removed, with_slot
from fencepost.model.classic.core.membership import departed
from fencepost.model.classic.core.state import Context, Group, Holder, Phase, Step
from fencepost.model.frozen import alter
from fencepost.model.logic import Truth, and_, ite, not_, or_


def expire_member(group: Group, index: int, context: Context) -> Step:
    """The member timer of a slot: a pending id, a first JoinGroup parked too long, or a session."""
    slot = group.slots[index]
    if or_(slot.holder == Holder.NOBODY, not_(slot.armed), context.now < slot.deadline):
        return Step(group, (), "timer.not-due")
    if slot.holder == Holder.PENDING:
        return check_round(removed(group, index), context, "timer.pending-id")
    if and_(not_(slot.is_new), or_(slot.join != 0, slot.sync != 0)):
        # Waiting is a sign of life; the next answer arms the timer again (TIMER-03, TIMER-04).
        return Step(with_slot(group, index, alter(slot, armed=False)), (), "timer.parked")
    rule = "timer.new-member" if slot.is_new else "timer.session"
    rest, outputs = departed(group, index)
    if rest.phase == Phase.PREPARING:
        step = check_round(rest, context, rule)
        return alter(step, outputs=outputs + step.outputs)
    after, answers = trigger(rest, context)
    return Step(after, outputs + answers, rule)


def check_round(group: Group, context: Context, rule: str) -> Step:
    """Complete the join phase if the one that just went was the last obstacle (DIV-09)."""
    if and_(group.phase == Phase.PREPARING, group.from_empty):
        if and_(context.dialect.expiry_cuts_initial_delay, all_joined(group)):
            after, outputs = complete_join(group, context)
            return Step(after, outputs, rule)
        return Step(group, (), rule)
    after, outputs = try_complete(group, context)
    return Step(after, outputs, rule)


def grows(group: Group, context: Context) -> Truth:
    """Newcomers extend the initial delay (LAT-08, DIV-04)."""
    if not_(context.dialect.initial_delay_grows):
        return False
    return or_(group.generation == 0, context.dialect.initial_delay_grows_always)


def expire_join(group: Group, context: Context) -> Step:
    """The join timer: another step of the initial delay (KIP-134), or the end of the join phase."""
    if or_(group.phase != Phase.PREPARING, not_(group.join_armed), context.now < group.join_deadline):
        return Step(group, (), "timer.not-due")
    if and_(group.initial, remaining_wait(group), grows(group, context)):
        left = group.initial_left
        wait = ite(context.initial_rebalance_delay < left, context.initial_rebalance_delay, left)
        waited = group.initial_wait
        longer = alter(
            group,
            newcomer=False,
            join_deadline=context.now + wait,
            initial_wait=wait,
            initial_left=ite(left > waited, left - waited, 0),
        )
        return Step(longer, (), "timer.initial-delay-grows")
    rule = "timer.initial-delay" if group.initial else "timer.rebalance"
    after, outputs = complete_join(group, context)
    return Step(after, outputs, rule)


def expire_sync(group: Group, context: Context) -> Step:
    """The sync timer: who has not synced is removed, whether or not it heartbeats (KAFKA-12890)."""
    if or_(not_(group.sync_armed), context.now < group.sync_deadline):
        return Step(group, (), "timer.not-due")
    if not_(or_(anyone_unsynced(group), group.stale_unsynced)):
        return Step(alter(group, sync_armed=False), (), "timer.sync-idle")
    rest = alter(group, sync_armed=False)
    for index, slot in enumerate(group.slots):
        rest = ite(and_(is_member(slot), slot.unsynced), removed(rest, index), rest)
    after, outputs = prepare(rest, context)
    return Step(after, outputs, "timer.sync")
