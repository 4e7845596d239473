"""Cores and members that do harm to nobody, nor their work: each is refuted by the name of what it does not do."""

from collections.abc import Callable
from typing import Any

import pytest

from fencepost.model.classic.core import join, join_phase, membership, sync, timers
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
