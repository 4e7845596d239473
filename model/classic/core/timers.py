"""The three kinds of timers (coordinator.md 3.2). A timer may fire late, never early: each guards its deadline."""

from fencepost.model.classic.core.join_phase import (
    complete_join,
    has_remaining_wait,
    has_unsynced_member,
    prepare_rebalance,
    trigger_rebalance,
    try_complete_join,
)
from fencepost.model.classic.core.member_table import all_joined, clear_slot, is_member, with_slot
from fencepost.model.classic.core.membership import remove_member
from fencepost.model.classic.core.state import Context, Group, Holder, Phase, Step
from fencepost.model.frozen import evolve
from fencepost.model.logic import Truth


def expire_member(group: Group, index: int, context: Context) -> Step:
    """The member timer of a slot: a pending id, a first JoinGroup parked too long, or a session."""
    slot = group.slots[index]
    if slot.holder == Holder.NOBODY or not slot.armed or context.now < slot.deadline:
        return Step(group, (), "timer.not-due")
    if slot.holder == Holder.PENDING:
        return check_join_phase(clear_slot(group, index), context, "timer.pending-id")
    if not slot.is_new and (slot.join != 0 or slot.sync != 0):
        # Waiting is a sign of life; the next answer arms the timer again (TIMER-03, TIMER-04).
        return Step(with_slot(group, index, evolve(slot, armed=False)), (), "timer.parked")
    rule = "timer.new-member" if slot.is_new else "timer.session"
    rest, outputs = remove_member(group, index)
    if rest.phase == Phase.PREPARING:
        step = check_join_phase(rest, context, rule)
        return evolve(step, outputs=outputs + step.outputs)
    after, responses = trigger_rebalance(rest, context)
    return Step(after, outputs + responses, rule)


def check_join_phase(group: Group, context: Context, rule: str) -> Step:
    """Complete the join phase if the one that just went was the last obstacle (DIV-09)."""
    if group.phase == Phase.PREPARING and group.from_empty:
        if context.dialect.expiry_cuts_initial_delay and all_joined(group):
            after, outputs = complete_join(group, context)
            return Step(after, outputs, rule)
        return Step(group, (), rule)
    after, outputs = try_complete_join(group, context)
    return Step(after, outputs, rule)


def extends_initial_delay(group: Group, context: Context) -> Truth:
    """Newcomers extend the initial delay (LAT-08, DIV-04)."""
    if not context.dialect.initial_delay_grows:
        return False
    return group.generation == 0 or context.dialect.initial_delay_grows_always


def expire_join(group: Group, context: Context) -> Step:
    """The join timer: another step of the initial delay (KIP-134), or the end of the join phase."""
    if group.phase != Phase.PREPARING or not group.join_armed or context.now < group.join_deadline:
        return Step(group, (), "timer.not-due")
    if group.initial and has_remaining_wait(group) and extends_initial_delay(group, context):
        left = group.initial_left
        wait = context.initial_rebalance_delay if context.initial_rebalance_delay < left else left
        waited = group.initial_wait
        longer = evolve(
            group,
            newcomer=False,
            join_deadline=context.now + wait,
            initial_wait=wait,
            initial_left=left - waited if left > waited else 0,
        )
        return Step(longer, (), "timer.initial-delay-grows")
    rule = "timer.initial-delay" if group.initial else "timer.rebalance"
    after, outputs = complete_join(group, context)
    return Step(after, outputs, rule)


def expire_sync(group: Group, context: Context) -> Step:
    """The sync timer: who has not synced is removed, whether or not it heartbeats (KAFKA-12890)."""
    if not group.sync_armed or context.now < group.sync_deadline:
        return Step(group, (), "timer.not-due")
    if not (has_unsynced_member(group) or group.stale_unsynced):
        return Step(evolve(group, sync_armed=False), (), "timer.sync-idle")
    rest = evolve(group, sync_armed=False)
    for index, slot in enumerate(group.slots):
        rest = clear_slot(rest, index) if is_member(slot) and slot.unsynced else rest
    after, outputs = prepare_rebalance(rest, context)
    return Step(after, outputs, "timer.sync")
