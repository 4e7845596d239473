"""When the response to a parked request is due at the latest (coordinator.md 3.2)."""

from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Group, Phase, Slot
from fencepost.model.logic import Time


def response_deadlines(state: GroupState, handle: int) -> tuple[Time, ...]:
    """Moments in milliseconds, by each of which a parked request has its response, whatever else happens; none if it
    is not parked, or if no timer ends its wait."""
    group = state.group
    if group is None or not handle:
        return ()
    for slot in group.slots:
        if slot.join == handle:
            return join_deadlines(group, slot)
        if slot.sync == handle:
            return (group.sync_deadline,) if group.sync_armed and group.phase == Phase.COMPLETING else ()
    return ()


def join_deadlines(group: Group, slot: Slot) -> tuple[Time, ...]:
    """Those of a parked JoinGroup: the end of the join phase (JOIN-44), after all that newcomers can add to an initial
    delay (TIMER-16, TIMER-17), and that of a first JoinGroup (TIMER-06)."""
    found: list[Time] = []
    if group.join_armed and group.phase == Phase.PREPARING:
        found.append(group.join_deadline + group.initial_left if group.initial else group.join_deadline)
    if slot.is_new and slot.armed:
        found.append(slot.deadline)
    return tuple(found)
