"""Ways to break the core by hand, each with the events whose proof has to notice, and the theorems that it breaks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fencepost.model.classic.core import (
    join,
    join_phase,
    member_table,
    membership,
    protocol_selection,
    static_replacement,
    sync,
    timers,
)
from fencepost.model.classic.member import member


@dataclass(frozen=True, slots=True)
class Break:
    """The source text `before` of a function becomes `after`. `theorems` are those that the proof of `event` refutes
    at least, none where the break only delays or where nothing that is stated depends on it."""

    name: str
    function: Callable[..., Any]
    before: str
    after: str
    event: str
    theorems: frozenset[str]


def one(name: str, function: Callable[..., Any], before: str, after: str, event: str, *theorems: str) -> Break:
    """A break of one place."""
    return Break(name, function, before, after, event, frozenset(theorems))


BREAKS = (
    one(
        "01 a commit of any generation",
        membership.commit,
        "request.generation != group.generation",
        "False",
        "commit",
        "T2",
    ),
    one(
        "02 anybody's SyncGroup installs the assignment",
        sync.sync_completing,
        "request.member != group.leader",
        "False",
        "sync",
        "T8",
    ),
    one(
        "03 every answer names its receiver as leader",
        join_phase.join_response,
        "leader=group.leader",
        "leader=member",
        "expire-join",
        "T1",
    ),
    one(
        "04 instance ids are not fenced",
        member_table.check_member,
        "member is None or group.slots[index].id != member",
        "False",
        "commit",
        "T2",
    ),
    one(
        "05 a commit in Completing",
        membership.commit,
        "group.phase == Phase.COMPLETING",
        "False",
        "commit",
        "T2-awaited",
    ),
    one(
        "06 the sync timer removes nobody",
        timers.expire_sync,
        "is_member(slot) and slot.unsynced",
        "False",
        "expire-sync",
        "T13",
    ),
    one(
        "06b the sync timer never fires",
        timers.expire_sync,
        "not group.sync_armed or context.now < group.sync_deadline",
        "True",
        "expire-sync",
        "T9",
    ),
    one(
        "07 a session ends early", timers.expire_member, " or context.now < slot.deadline", "", "expire-member-0", "T9"
    ),
    one(
        "07b the join timer never fires",
        timers.expire_join,
        "context.now < group.join_deadline",
        "True",
        "expire-join",
        "T9",
    ),
    one(
        "08 the generation stays",
        join_phase.complete_join,
        "group.generation + 1",
        "group.generation",
        "expire-join",
        "T1",
    ),
    one(
        "09 a simple commit into an active group",
        membership.commit,
        'Error.UNKNOWN_MEMBER_ID, "commit.simple-in-active"',
        'Error.NONE, "commit.simple-in-active"',
        "commit",
        "T2-simple",
    ),
    one(
        "10 a commit without a generation in any phase",
        membership.commit,
        "request.generation < 0 and group.phase == Phase.EMPTY",
        "request.generation < 0",
        "commit",
        "T2-simple",
    ),
    one(
        "11 the last entry of a LeaveGroup decides",
        membership.leave,
        "left = left or rebalances",
        "left = rebalances",
        "leave-two",
    ),
    one(
        "12 assignments outlive an interrupted generation",
        join_phase.prepare_rebalance,
        "None if interrupted else slot.assignment",
        "slot.assignment",
        "sync",
    ),
    one(
        "13 a SyncGroup in Stable gets the first slot's assignment",
        sync.sync_stable,
        "sync_success(group, slot)",
        "sync_success(group, group.slots[0])",
        "sync",
        "T4",
        "T8",
    ),
    one(
        "14 a static member is replaced in Completing unnoticed",
        static_replacement.replace_static,
        "group.phase == Phase.COMPLETING",
        "False",
        "join",
    ),
    one(
        "15 a Heartbeat of any generation",
        membership.heartbeat,
        "request.generation != group.generation",
        "False",
        "heartbeat",
        "T15",
    ),
    one(
        "16 a rejoin into a full table is told that it leads",
        join.rejoin,
        "    if leads:\n",
        "    if find_free(group) == NOWHERE:\n"
        "        alone = evolve(current_response(group, slot), leader=slot.id)\n"
        '        return Step(group, (Output(request.handle, alone),), "join.full-table")\n'
        "    if leads:\n",
        "join",
        "T1",
    ),
    one("17 a SyncGroup of any generation", sync.sync, "request.generation != group.generation", "False", "sync"),
    one(
        "19 absent dynamic members are kept",
        join_phase.complete_join,
        "is_member(slot) and slot.join == 0 and slot.instance is None",
        "False",
        "expire-join",
        "T11",
    ),
    one(
        "21 an eager member keeps what it owns",
        member.join,
        "settings.cooperative and member.generation != NO_GENERATION",
        "True",
        "member-join",
    ),
    one(
        "22 a member adds to what it owns",
        member.on_sync_response,
        "tuple(holds(response.assignment, part) for part in range(len(member.owned)))",
        "tuple(mine or holds(response.assignment, part) for part, mine in enumerate(member.owned))",
        "member-sync-response",
    ),
    one(
        "23 the leader ignores claims", member.gets_partition, " and not claimed[partition]", "", "member-join-response"
    ),
    one(
        "24 a leader that did not rejoin leads",
        protocol_selection.choose_leader,
        "stays = any(has_rejoined(slot) and slot.id == group.leader for slot in group.slots)",
        "stays = group.leader is not None",
        "expire-join",
        "T7",
    ),
    one("25 a parked JoinGroup is not forgotten", join_phase.complete_join, "join=0, is_new", "is_new", "expire-join"),
    one(
        "26 a pending id counts as a member",
        member_table.is_member,
        "slot.holder == Holder.MEMBER",
        "slot.holder != Holder.NOBODY",
        "join",
        "T41",
    ),
    one(
        "28 protocols are not compared",
        join.join,
        "has_protocol = supports(group, request)",
        "has_protocol = True",
        "join",
    ),
    one(
        "30 the first JoinGroup ends the join phase",
        join_phase.try_complete_join,
        "all_joined(group)",
        "True",
        "join",
        "T10",
    ),
    one(
        "31 a follower is answered before the leader's SyncGroup",
        sync.sync_completing,
        'Step(update_sync_timer(waiting), dropped, "sync.follower")',
        'Step(group, (Output(request.handle, sync_success(group, slot)),), "sync.follower")',
        "sync",
    ),
    one(
        "32 an empty group counts from 0 again",
        join_phase.become_empty,
        "group.generation + 1",
        "0",
        "expire-join",
        "T17",
    ),
    one(
        "33 only the leader's JoinGroup is answered",
        join_phase.complete_join,
        "emit(has_rejoined(slot), ",
        "emit(has_rejoined(slot) and slot.id == group.leader, ",
        "expire-join",
        "T12",
    ),
    one(
        "34 everybody is told of the members",
        join_phase.current_response,
        "member_views(group) if slot.id == group.leader else ()",
        "member_views(group)",
        "expire-join",
        "T16",
    ),
    one(
        "35 everybody gets the leader's assignment",
        sync.sync_completing,
        "assignment_for(request, member.id)",
        "assignment_for(request, request.member)",
        "sync",
        "T8",
    ),
    one("36 a fenced JoinGroup is let in", join.join, "error == Error.FENCED_INSTANCE_ID", "False", "join"),
    one(
        "37 the vote ignores what others offer",
        protocol_selection.vote,
        "offered_by_all(group, protocol.name)",
        "protocol.name is not None",
        "expire-join",
        "T18",
    ),
    one(
        "38 the first of several entries wins",
        sync.assignment_for,
        "in request.assignments",
        "in reversed(request.assignments)",
        "sync",
        "T8",
    ),
    one(
        "39 a newcomer unseats the leader",
        member_table.add_member,
        "leader=member if leads else group.leader",
        "leader=member",
        "join",
        "T14",
    ),
    one(
        "40 a static leader that returns keeps its old id as leader",
        static_replacement.take_over_slot,
        "member if slot.id == group.leader else group.leader",
        "group.leader",
        "join",
        "T7",
    ),
    one(
        "41 the answer depends on the client",
        join_phase.join_response,
        "leader=group.leader",
        "leader=member if any(slot.client is not None for slot in group.slots) else group.leader",
        "expire-join",
        "T1",
    ),
)
"""The numbers are those under which they were first tried; 18, 20, 27 and 29 were never there."""
