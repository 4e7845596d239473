"""The join phase: how a rebalance begins, and how its join phase completes (coordinator.md 1.6).

A rebalance is a round of two phases. In the join phase every member has to send JoinGroup; in the sync phase every
member asks for its assignment. This module holds the first one and the step into the second.

                     first JoinGroup                        a member joins, leaves or changes,
                  +------------------------+             +---- or a timer removes one ---------+
                  |                        v             v                                     |
            +-----------+            +-----------+   all joined, or   +------------+    +----------+
            |   EMPTY   |            | PREPARING |-- the join timer ->| COMPLETING |--->|  STABLE  |
            +-----------+            +-----------+                    +------------+    +----------+
                  ^                        |                                        the leader's
                  +---- nobody joined -----+                                        SyncGroup

A JoinGroup that is admitted is parked in its member's slot: `slot.join` has its handle, and it is answered when the
phase completes. So a member has joined if it is a member and `slot.join` is not 0 (`has_rejoined`).

The phase completes in one of three ways:

* `try_complete_join`: every member has joined and no id is pending (ALL-JOINED). It is asked after each change that
  may have been the last one. A phase that was entered from EMPTY goes on, because members start one by one; only
  a pending id or a member that expires may end it early (DIV-09).
* The initial delay ends, where the phase was entered from EMPTY. A newcomer during the delay extends it by another
  step, up to the largest rebalance timeout of the members (KIP-134): `initial_wait` is the present step and
  `initial_left` the time that remains after it.
* The join timer ends: the members had the largest of their rebalance timeouts. Those that did not join are dropped,
  except static ones, which stay until their sessions end (KIP-345).

`complete_join` is the one place where a generation begins. In order:

1. Dynamic members that did not join lose their slots. If no member is left, the group is EMPTY; the generation counts
   that too (GEN-02).
2. The leader is chosen: the present one if it joined, else any member that did. If there are only static members and
   none of them joined, the phase goes on for another rebalance timeout (STATIC-20).
3. The generation is raised by one, and the protocol with the most votes is selected.
4. Every parked JoinGroup is answered; the leader's response lists all members with their metadata (JOIN-37).
5. Session timers start anew, since a member could not heartbeat while it waited; the sync timer starts.

A rebalance that begins while members wait for assignments (COMPLETING) sends them away with REBALANCE_IN_PROGRESS
(`prepare_rebalance`); they join again. What is open in these steps, such as the leader or the protocol among several
with the same votes, comes in with the context (LAT-02, LAT-03), so that a step is a function of its arguments.
"""

from fencepost.model.classic.core.member_table import all_joined, group_timeout, is_member, no_members, rearm
from fencepost.model.classic.core.protocol_selection import choose_leader, has_rejoined, metadata_for, select_protocol
from fencepost.model.classic.core.state import (
    FREE,
    Context,
    Group,
    JoinResponse,
    MemberView,
    Output,
    Phase,
    Slot,
    SyncResponse,
)
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.logic import Time, Truth, emit
from fencepost.model.sorts import MemberId

Progress = tuple[Group, tuple[Output, ...]]
"""A group on its way through a step, and the answers so far."""


def trigger_rebalance(group: Group, context: Context) -> Progress:
    """TRIGGER: begin a rebalance, or see whether the one under way is complete."""
    if group.phase == Phase.PREPARING:
        return try_complete_join(group, context)
    return prepare_rebalance(group, context)


def prepare_rebalance(group: Group, context: Context) -> Progress:
    """PREPARE: enter the join phase, sending away those who wait for an assignment."""
    interrupted = group.phase == Phase.COMPLETING
    outputs: tuple[Output, ...] = ()
    slots: list[Slot] = []
    for slot in group.slots:
        parked = interrupted and is_member(slot) and slot.sync != 0
        outputs += emit(parked, Output(slot.sync, SyncResponse(Error.REBALANCE_IN_PROGRESS)))
        cleared = evolve(slot, unsynced=False, assignment=None if interrupted else slot.assignment)
        slots.append(rearm(evolve(cleared, sync=0), context.now) if parked else cleared)
    begun = evolve(
        group,
        phase=Phase.PREPARING,
        slots=tuple(slots),
        from_empty=group.phase == Phase.EMPTY,
        sync_armed=False,
        stale_unsynced=False,
    )
    if group.phase == Phase.EMPTY:
        delay = context.initial_rebalance_delay
        timeout = group_timeout(begun)
        left = timeout - delay if timeout > delay else 0
        return evolve(
            begun,
            join_armed=True,
            join_deadline=context.now + delay,
            initial=True,
            initial_wait=delay,
            initial_left=left,
        ), outputs
    if all_joined(begun):
        done, responses = complete_join(begun, context)
        return done, outputs + responses
    return arm_join_timer(begun, context.now), outputs


def arm_join_timer(group: Group, now: Time) -> Group:
    """The group waiting for its members for the rebalance timeout."""
    return evolve(group, join_armed=True, join_deadline=now + group_timeout(group), initial=False)


def rearm_join_timer(group: Group, now: Time) -> Group:
    """Only static members are left and none came: another rebalance timeout, of some length at least (STATIC-20)."""
    timeout = group_timeout(group)
    return evolve(group, join_armed=True, join_deadline=now + (timeout if timeout > 0 else 1), initial=False)


def try_complete_join(group: Group, context: Context) -> Progress:
    """TRY-COMPLETE: complete the join phase if everyone is there and it is not an initial round."""
    if group.phase == Phase.PREPARING and not group.from_empty and all_joined(group):
        return complete_join(group, context)
    return group, ()


def complete_join(group: Group, context: Context) -> Progress:
    """COMPLETE-JOIN: drop who did not come, elect, raise the generation, answer every parked JoinGroup."""
    slots = tuple(
        FREE if is_member(slot) and slot.join == 0 and slot.instance is None else slot for slot in group.slots
    )
    group = evolve(group, slots=slots, join_armed=False, initial=False)
    if no_members(group):
        return become_empty(group), ()
    leader = choose_leader(group, context.choices.leader)
    if leader is None:
        return rearm_join_timer(group, context.now), ()
    group = evolve(
        group,
        generation=group.generation + 1,
        leader=leader,
        leader_open=False,
        protocol=select_protocol(group, context.choices.protocol),
        phase=Phase.COMPLETING,
        sync_armed=True,
        sync_deadline=context.now + group_timeout(group),
    )
    outputs: tuple[Output, ...] = ()
    for slot in group.slots:
        outputs += emit(has_rejoined(slot), Output(slot.join, current_response(group, slot)))
    slots = tuple(
        rearm(evolve(slot, join=0, is_new=False, unsynced=True), context.now) if is_member(slot) else slot
        for slot in group.slots
    )
    return evolve(group, slots=slots), outputs


def become_empty(group: Group) -> Group:
    """The group after a join phase that ended with nobody; the generation counts it (GEN-02)."""
    return evolve(
        group,
        phase=Phase.EMPTY,
        generation=group.generation + 1,
        protocol=None,
        leader=None,
        leader_open=False,
        from_empty=False,
        sync_armed=False,
    )


def member_views(group: Group) -> tuple[MemberView, ...]:
    """All members as the leader is told of them; free slots have no id."""
    return tuple(
        MemberView(slot.id, slot.instance, metadata_for(slot, group.protocol))
        if is_member(slot)
        else MemberView(None, None, None)
        for slot in group.slots
    )


def current_response(group: Group, slot: Slot) -> JoinResponse:
    """JOIN-OK for a member of the current generation; only the leader is told of the others (JOIN-37)."""
    return join_response(group, slot.id, member_views(group) if slot.id == group.leader else ())


def join_response(group: Group, member: MemberId | None, members: tuple[MemberView, ...]) -> JoinResponse:
    """JOIN-OK of the current generation with the given member list."""
    return JoinResponse(
        error=Error.NONE,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader,
        member=member,
        members=members,
    )


def has_remaining_wait(group: Group) -> Truth:
    """Somebody came during this step of the initial delay and time is left for another."""
    return group.newcomer and group.initial_left != 0


def has_unsynced_member(group: Group) -> Truth:
    """Some member has yet to send SyncGroup in this generation."""
    return any(is_member(slot) and slot.unsynced for slot in group.slots)


def update_sync_timer(group: Group) -> Group:
    """The group with its sync timer cancelled if nobody is waited for any more."""
    waiting = has_unsynced_member(group) or group.stale_unsynced
    return evolve(group, sync_armed=group.sync_armed and waiting)
