"""Cores and members that do harm to nobody, nor their work: each is refuted by the name of what it does not do."""

from collections.abc import Callable
from typing import Any

import pytest

from fencepost.model.classic.core import join, join_phase, member_table, membership, sync, timers
from fencepost.model.classic.member import member
from fencepost.model.classic.proofs.induction import ProofSize, decode_refutation, prove_event, replay_handler
from fencepost.model.classic.proofs.proof_events import coordinator_events, member_events
from fencepost.model.classic.theorems.duty_statements import ANSWERS, Line
from fencepost.model.classic.theorems.statements import WHATEVER_CLIENTS_SEND
from fencepost.model.errors import Error
from tests.support.edits import mutant
from tests.support.proof_document import rows

SMALL = ProofSize(slots=2, partitions=1)
EVENTS = {event.name: event for event in (*coordinator_events(SMALL.slots), *member_events())}
AT_ONCE = (
    join_phase.prepare_rebalance,
    "    if all_joined(begun):\n        done, responses = complete_join(begun, context)\n",
    "    if True:\n"
    "        done, responses = evolve(begun, phase=Phase.COMPLETING, generation=group.generation + 1), ()\n",
)
FORMER_TIMEOUT = (
    join.update_member,
    "    changed, dropped = park_join(group, index, request)\n",
    "    slot = group.slots[index]\n"
    "    late = evolve(slot, armed=True, deadline=context.now + slot.session_timeout)\n"
    "    changed, dropped = park_join(with_slot(group, index, late), index, request)\n",
)
IDLE: dict[str, tuple[Callable[..., Any], str, str, str, str]] = {
    "whoever waited in a join phase is told an error at its end": (
        join_phase.complete_join,
        "Output(slot.join, current_response(group, slot))",
        "Output(slot.join, JoinResponse(Error.UNKNOWN_MEMBER_ID))",
        "expire-join",
        "T12",
    ),
    "all but the leader are told NOT_COORDINATOR at the end of a join phase": (
        join_phase.complete_join,
        "Output(slot.join, current_response(group, slot))",
        "Output(slot.join, evolve(current_response(group, slot),"
        " error=Error.NONE if slot.id == group.leader else Error.NOT_COORDINATOR))",
        "expire-join",
        "T12",
    ),
    "the sync timer starts anew": (
        timers.expire_sync,
        "rest = evolve(group, sync_armed=False)\n",
        "return Step(evolve(group, sync_deadline=context.now + 1), (), 'timer.sync')\n",
        "expire-sync",
        "T13",
    ),
    "each Heartbeat asks for a rejoin": (
        membership.heartbeat,
        'Error.NONE, "heartbeat.stable"',
        'Error.REBALANCE_IN_PROGRESS, "heartbeat.stable"',
        "heartbeat",
        "T52",
    ),
    "a commit is refused while members join again": (
        membership.commit,
        'Error.NONE, "commit.preparing"',
        'Error.REBALANCE_IN_PROGRESS, "commit.preparing"',
        "commit",
        "T52",
    ),
    "no commit is accepted": (
        membership.commit,
        'Error.NONE, "commit.stable"',
        'Error.UNKNOWN_MEMBER_ID, "commit.stable"',
        "commit",
        "T52",
    ),
    "no Heartbeat is answered": (
        membership.respond_to_heartbeat,
        "HeartbeatResponse(error)",
        "NoResponse()",
        "heartbeat",
        "T19",
    ),
    "a session that ends starts anew": (
        timers.expire_member,
        "    rest, outputs = remove_member(group, index)\n",
        "    renewed = evolve(slot, deadline=context.now + slot.session_timeout)\n"
        "    return Step(with_slot(group, index, renewed), (), rule)\n"
        "    rest, outputs = remove_member(group, index)\n",
        "expire-member-0",
        "T53",
    ),
    "a join timer that ends starts anew": (
        timers.expire_join,
        "    after, outputs = complete_join(group, context)\n",
        "    after, outputs = evolve(group, join_deadline=context.now + 1), ()\n",
        "expire-join",
        "T54",
    ),
    "a SyncGroup in Stable is never answered": (
        sync.sync_stable,
        "sync_success(group, slot)",
        "NoResponse()",
        "sync",
        "T19",
    ),
    "a member that is told its generation does nothing": (
        member.on_join_response,
        "(SentRequest(request),)",
        "()",
        "member-join-response",
        "T48",
    ),
    "a fenced member goes on": (
        member.on_heartbeat_response,
        'MemberStep(lose_membership(member), (), "member.heartbeat.fenced")',
        'MemberStep(member, (), "member.heartbeat.fenced")',
        "member-heartbeat-response",
        "T44",
    ),
    "any response to a commit ends the membership": (
        member.handle_error,
        "error == Error.UNKNOWN_MEMBER_ID",
        "True",
        "member-commit-response",
        "T44",
    ),
    "a commit names no instance": (member.commit_request, "member.settings.instance", "None", "member-commit", "T46"),
    "a Heartbeat names no instance": (member.heartbeat, "member.settings.instance", "None", "member-heartbeat", "T51"),
    "a member that is told an id joins without it": (
        member.on_join_response,
        "evolve(member, id=response.member, generation=NO_GENERATION)",
        "member",
        "member-join-response",
        "T48",
    ),
    "a member does not wait for its assignment": (
        member.on_join_response,
        "        waiting=next_handle,\n",
        "",
        "member-join-response",
        "T48",
    ),
    "a member asks for its assignment by no protocol": (
        member.on_join_response,
        "protocol=response.protocol,",
        "protocol=None,",
        "member-join-response",
        "T48",
    ),
    "a member that is asked to join again stays": (
        member.ask_rejoin,
        "evolve(member, rejoins=True)",
        "member",
        "member-ask-rejoin",
        "T49",
    ),
    "a member that gives something up does not join again": (
        member.on_sync_response,
        "rejoins=any(revoked)",
        "rejoins=False",
        "member-sync-response",
        "T50",
    ),
    "a member sends a second JoinGroup while one waits": (
        member.join,
        "not member.rejoins or member.waiting != 0",
        "not member.rejoins",
        "member-join",
        "T51",
    ),
    "a member that has not joined heartbeats": (
        member.heartbeat,
        "member.state == MemberState.UNJOINED or member.state == MemberState.PREPARING_REBALANCE",
        "member.state == MemberState.UNJOINED",
        "member-heartbeat",
        "T51",
    ),
    "a cooperative member claims nothing": (
        member.join,
        "Protocol(name, owned)",
        "Protocol(name, no_partitions(owned))",
        "member-join",
        "T59",
    ),
    "a member joins without its instance id": (
        member.join,
        "instance=settings.instance",
        "instance=None",
        "member-join",
        "T59",
    ),
    "a member joins with another session timeout": (
        member.join,
        "session_timeout=settings.session_timeout",
        "session_timeout=settings.rebalance_timeout",
        "member-join",
        "T59",
    ),
    "a leader assigns nothing": (
        member.gets_partition,
        "view.id is not None and plan",
        "False and plan",
        "member-join-response",
        "T60",
    ),
    "a follower assigns": (
        member.on_join_response,
        "assignments(response.members, plan) if leads else ()",
        "assignments(response.members, plan)",
        "member-join-response",
        "T60",
    ),
    "a member ignores that a rebalance is under way": (
        member.on_heartbeat_response,
        "evolve(member, rejoins=True)",
        "member",
        "member-heartbeat-response",
        "T49",
    ),
    "a join phase lasts a thousand times too long": (
        join_phase.arm_join_timer,
        "now + group_timeout(group)",
        "now + group_timeout(group) + 300_000_000",
        "expire-sync",
        "T56",
    ),
    "a SyncGroup of another generation takes the instance id of its member": (
        sync.sync,
        'return sync_error(group, request, Error.ILLEGAL_GENERATION, "sync.other-generation")',
        "slots = tuple(evolve(slot, instance=None) for slot in group.slots)\n"
        "        return sync_error(evolve(group, slots=slots), request, Error.ILLEGAL_GENERATION, '')",
        "sync",
        "T25",
    ),
    "a JoinGroup changes the rebalance timeout of its member and not its protocols": (
        join.park_join,
        "        protocols=request.protocols,\n",
        "",
        "join",
        "T26",
    ),
    "a join phase ends while a member is missing": (
        join_phase.try_complete_join,
        " and all_joined(group)",
        "",
        "join",
        "T10",
    ),
    "a Heartbeat begins a rebalance": (
        membership.heartbeat,
        'respond_to_heartbeat(alive, request, Error.NONE, "heartbeat.stable")',
        'respond_to_heartbeat(trigger_rebalance(alive, context)[0], request, Error.NONE, "heartbeat.stable")',
        "heartbeat",
        "T57",
    ),
    "the first SyncGroup stops the sync timer": (
        join_phase.update_sync_timer,
        "sync_armed=group.sync_armed and waiting",
        "sync_armed=False",
        "sync",
        "T35",
    ),
    "the initial delay goes on beyond the rebalance timeout": (
        timers.expire_join,
        "context.initial_rebalance_delay if context.initial_rebalance_delay < left else left",
        "context.initial_rebalance_delay",
        "expire-join",
        "T56",
    ),
    "the initial delay begins with more than the rebalance timeout": (
        join_phase.prepare_rebalance,
        "initial_left=left,",
        "initial_left=left + 5_000,",
        "join",
        "T56",
    ),
    "a LeaveGroup takes the first member with it": (
        membership.remove_entry,
        "return error, False, (group, ())\n    return Error.NONE, True, remove_member(group, index)",
        "return error, False, (group, ())\n    return Error.NONE, True, remove_member(clear_slot(group, 0), index)",
        "leave",
        "T58",
    ),
    "only the first entry of a LeaveGroup is said to have left": (
        membership.leave,
        "errors.append(error)",
        "errors.append(Error.UNKNOWN_MEMBER_ID if errors else error)",
        "leave-two",
        "T29",
    ),
    "a SyncGroup in a join phase makes the group stable": (
        sync.sync,
        'sync_error(group, request, Error.REBALANCE_IN_PROGRESS, "sync.preparing")',
        'Step(evolve(group, phase=Phase.STABLE), (), "sync.preparing")',
        "sync",
        "T8",
    ),
    "a sync timer that is due and idle goes on": (
        timers.expire_sync,
        'Step(evolve(group, sync_armed=False), (), "timer.sync-idle")',
        'Step(evolve(group, sync_armed=True), (), "timer.sync-idle")',
        "expire-sync",
        "T9",
    ),
    "a join phase ends and begins again while a member is missing": (
        join_phase.try_complete_join,
        "return group, ()",
        "return evolve(group, generation=group.generation + 1), ()",
        "join",
        "T10",
    ),
    "a generation begins at once with whoever is there": (*AT_ONCE, "join", "T11"),
    "a generation begins at once and is told to nobody": (*AT_ONCE, "join", "T12"),
    "a member is exchanged for the leader": (
        sync.sync_completing,
        "from_empty=False, slots=tuple(slots))",
        "from_empty=False, slots=tuple(reversed(slots)), leader=None)",
        "sync",
        "T14",
    ),
    "a LeaveGroup that is fenced lets go of what waits": (
        membership.remove_entry,
        "    if error != Error.NONE:\n",
        "    named = find(group, member, Holder.MEMBER)\n"
        "    if error != Error.NONE and named != NOWHERE:\n"
        "        return error, False, (clear_slot(group, named), ())\n"
        "    if error != Error.NONE:\n",
        "leave",
        "T19",
    ),
    "a JoinGroup begins a session of the timeout before it": (*FORMER_TIMEOUT, "join", "T20"),
    "the first JoinGroup waits for a session of the timeout before it": (*FORMER_TIMEOUT, "join", "T56"),
    "a JoinGroup begins a session that its member does not have": (
        join.update_member,
        "    after, outputs = trigger_rebalance(changed, context)\n",
        "    mine = evolve(group.slots[index], armed=True, deadline=context.now + request.session_timeout)\n"
        "    after, outputs = trigger_rebalance(with_slot(changed, index, mine), context)\n",
        "join",
        "T20",
    ),
    "a SyncGroup cuts the sync phase short": (
        sync.sync_completing,
        'Step(update_sync_timer(waiting), dropped, "sync.follower")',
        'Step(evolve(update_sync_timer(waiting), sync_deadline=context.now), dropped, "sync.follower")',
        "sync",
        "T21",
    ),
    "each SyncGroup gives the others more time": (
        sync.sync_completing,
        'Step(update_sync_timer(waiting), dropped, "sync.follower")',
        'Step(evolve(update_sync_timer(waiting), sync_deadline=group.sync_deadline + 1), dropped, "sync.follower")',
        "sync",
        "T56",
    ),
    "a newcomer gets an id that was not issued for it": (
        join.join_newcomer,
        "admit(group, free, context.choices.member_id,",
        "admit(group, free, context.choices.leader,",
        "join",
        "T22",
    ),
    "a follower waits with another protocol": (
        sync.sync,
        "if not names_protocol(group, request, context):",
        "if (group.phase != Phase.COMPLETING or request.member == group.leader) and not names_protocol("
        "group, request, context):",
        "sync",
        "T23",
    ),
    "a Heartbeat in a join phase does not extend the session": (
        membership.heartbeat,
        "respond_to_heartbeat(alive, request, Error.REBALANCE_IN_PROGRESS",
        "respond_to_heartbeat(group, request, Error.REBALANCE_IN_PROGRESS",
        "heartbeat",
        "T24",
    ),
    "a SyncGroup that comes too early leaves a trace": (
        sync.sync,
        "sync_error(group, request, Error.REBALANCE_IN_PROGRESS",
        "sync_error(evolve(group, newcomer=True), request, Error.REBALANCE_IN_PROGRESS",
        "sync",
        "T25",
    ),
    "an issued id with an instance id is lost": (
        join.join,
        'Step(group, response, "join.pending-with-instance")',
        'Step(clear_slot(group, pending), response, "join.pending-with-instance")',
        "join",
        "T25",
    ),
    "a static member joins without its instance id": (
        member_table.add_member,
        "instance=request.instance",
        "instance=None",
        "join",
        "T26",
    ),
    "a Heartbeat takes the instance id": (
        member_table.rearm,
        "armed=True",
        "instance=None, armed=True",
        "heartbeat",
        "T26",
    ),
    "there is no initial delay": (
        join_phase.prepare_rebalance,
        "delay = context.initial_rebalance_delay",
        "delay = 0",
        "join",
        "T27",
    ),
    "the error of an entry is that of the LeaveGroup": (
        membership.leave,
        "LeaveResponse(Error.NONE, tuple(errors))",
        "LeaveResponse(errors[0], tuple(errors))",
        "leave",
        "T29",
    ),
    "a member is told its generation and not its id": (
        join.resend_generation,
        "current_response(group, slot)",
        "current_response(group, evolve(slot, id=None))",
        "join",
        "T31",
    ),
    "a member is told of no leader": (join_phase.join_response, "leader=group.leader", "leader=None", "join", "T31"),
    "the leader is told of one that is no member": (
        join_phase.member_views,
        "if is_member(slot)",
        "if slot.id is not None",
        "expire-join",
        "T31",
    ),
    "the leader is told of no instance ids": (
        join_phase.member_views,
        "MemberView(slot.id, slot.instance,",
        "MemberView(slot.id, None,",
        "expire-join",
        "T31",
    ),
    "who waits is told the generation before as another one leaves": (
        join_phase.join_response,
        "generation=group.generation",
        "generation=group.generation - 1",
        "leave",
        "T31",
    ),
    "a SyncGroup that waits gets the response to a JoinGroup": (
        join_phase.prepare_rebalance,
        "SyncResponse(Error.REBALANCE_IN_PROGRESS)",
        "JoinResponse(Error.REBALANCE_IN_PROGRESS)",
        "join",
        "T34",
    ),
    "the leader's SyncGroup is not awaited": (
        join_phase.complete_join,
        "unsynced=True",
        "unsynced=slot.id != group.leader",
        "expire-join",
        "T35",
    ),
    "a Heartbeat counts as a SyncGroup": (
        member_table.rearm,
        "armed=True",
        "unsynced=False, armed=True",
        "heartbeat",
        "T35",
    ),
    "nobody looks at the join phase when a member finds no room": (
        join.evict,
        "if context.dialect.eviction_waits:",
        "if True:",
        "join",
        "T36",
    ),
    "a static member that returns finds room in each dialect": (
        join.join,
        " or context.dialect.restart_needs_room",
        "",
        "join",
        "T41",
    ),
    "a late response to a Heartbeat lets go of the JoinGroup that waits": (
        member.handle_error,
        'MemberStep(member, (), "member.late-answer")',
        'MemberStep(evolve(member, waiting=0), (), "member.late-answer")',
        "member-heartbeat-response",
        "T43",
    ),
    "a join phase that is over takes pending ids with it": (
        join_phase.complete_join,
        "FREE if is_member(slot) and slot.join == 0",
        "FREE if slot.join == 0",
        "expire-join",
        "T58",
    ),
}
"""By what is wrong: a function, a text in it, what is there instead, the event and the theorem that have to notice."""


@pytest.mark.slow
@pytest.mark.parametrize("wrong", IDLE)
def test_what_is_not_done_is_refuted_by_its_name(wrong: str) -> None:
    function, before, after, name, theorem = IDLE[wrong]
    with mutant(function, before, after):
        refuted = {one.statement.id: one for one in prove_event(EVENTS[name], WHATEVER_CLIENTS_SEND, SMALL).refutations}
        assert theorem in refuted
        example = decode_refutation(EVENTS[name], refuted[theorem])
        assert replay_handler(EVENTS[name], example) == example.result


def cell(outcome: Any) -> str:
    """An outcome as people read it."""
    return outcome.name if isinstance(outcome, Error) else outcome.value


def table_row(request: str, line: Line) -> tuple[str, ...]:
    """A line of the table in the document."""
    return (request, line.sender, *map(cell, line.outcomes))


def test_the_document_has_the_table_of_answers() -> None:
    head = "| request | from | Empty | Preparing | Completing | Stable |"
    names = {kind: kind.__name__.removesuffix("Request") for kind in ANSWERS}
    assert rows(head) == [table_row(names[kind], line) for kind, lines in ANSWERS.items() for line in lines]
