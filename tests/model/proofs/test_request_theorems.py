"""Each theorem about a single step, from T19 on, is refuted of a core that breaks it."""

from collections.abc import Callable
from typing import Any

import pytest

from fencepost.model.classic.core import (
    join,
    join_phase,
    member_table,
    membership,
    protocol_selection,
    sync,
    timers,
)
from fencepost.model.classic.member import member
from fencepost.model.classic.proofs.induction import ProofSize, decode_refutation, prove_event, replay_handler
from fencepost.model.classic.proofs.proof_events import coordinator_events, member_events
from fencepost.model.classic.theorems.request_statements import STEP_THEOREMS
from fencepost.model.classic.theorems.step_statements import GENERATION_THEOREMS
from fencepost.model.classic.theorems.unconditional import WHATEVER_CLIENTS_SEND
from tests.support.edits import mutant

TINY = ProofSize(slots=1, partitions=1)
LARGER = {"T38": ProofSize(slots=3, partitions=1, protocols=2)}
"""What takes more than one member."""
BREAKS: dict[str, tuple[Callable[..., Any], str, str, str]] = {
    "T19": (sync.sync_completing, "sync=request.handle, ", "", "sync"),
    "T20": (member_table.rearm, "now + slot.session_timeout", "now", "commit"),
    "T21": (join_phase.complete_join, "context.now + group_timeout(group)", "context.now", "expire-join"),
    "T22": (
        join.join,
        'Step(group, refusal(request, error, request.member), "join.unknown-member")',
        'admit(group, 0, request.member, request, context, "join.pending")',
        "join",
    ),
    "T23": (sync.names_protocol, "request.protocol == group.protocol", "True", "sync"),
    "T24": (membership.commit, "renew_session(group, index, context.now)", "group", "commit"),
    "T25": (membership.leave, "left = or_(left, rebalances)", "left = True", "leave"),
    "T26": (member_table.add_member, "session_timeout=request.session_timeout", "session_timeout=0", "join"),
    "T27": (join_phase.prepare_rebalance, "join_armed=True", "join_armed=False", "join"),
    "T28": (timers.expire_member, "or_(slot.join != 0, slot.sync != 0)", "slot.join != 0", "expire-member-0"),
    "T29": (membership.remove_entry, "pending != NOWHERE", "False", "leave"),
    "T30": (join_phase.complete_join, "is_new=False, ", "", "expire-join"),
    "T31": (join_phase.join_response, "generation=group.generation", "generation=group.generation - 1", "join"),
    "T32": (join_phase.try_complete_join, "group.phase == Phase.PREPARING, ", "", "expire-member-0"),
    "T33": (member_table.add_member, "armed=True", "armed=False", "join"),
    "T34": (sync.sync_completing, "emit(slot.sync != 0,", "emit(True,", "sync"),
    "T35": (sync.sync_stable, "unsynced=False", "unsynced=True", "sync"),
    "T36": (membership.remove_entry, "Error.NONE, noticed,", "Error.NONE, False,", "leave"),
    "T37": (sync.names_protocol, "or_(absent(request.protocol), ", "or_(", "sync"),
    "T38": (
        protocol_selection.select_protocol,
        "all_(tally >= other for other in tallies)",
        "True",
        "expire-join",
    ),
    "T39": (join.join, "if absent(request.instance):", "if False:", "join"),
    "T40": (member_table.add_member, "leader=ite(leads, member, group.leader)", "leader=group.leader", "join"),
    "T41": (member_table.accepts, "joined_count(group) < limit", "True", "join"),
    "T42": (join.join, "None if known == NOWHERE else request.member", "request.member", "join"),
    "T43": (member.handle_error, "not_(is_current(member, sender, generation))", "False", "member-heartbeat-response"),
    "T44": (member.handle_error, "error == Error.UNKNOWN_MEMBER_ID", "False", "member-commit-response"),
    "T45": (member.leave, "absent(member.settings.instance)", "True", "member-leave"),
    "T46": (member.commit, "any_(partitions)", "True", "member-commit"),
    "T47": (member.disconnect, "or_(member.rejoins, member.waiting != 0)", "member.rejoins", "member-disconnect"),
}
"""By theorem: a function, a text in it, what is there instead, and the event whose proof has to notice."""


@pytest.mark.parametrize("theorem", BREAKS)
def test_the_theorem_is_refuted_of_a_core_that_breaks_it(theorem: str) -> None:
    function, before, after, name = BREAKS[theorem]
    size = LARGER.get(theorem, TINY)
    event = next(one for one in (*coordinator_events(size.slots), *member_events()) if one.name == name)
    with mutant(function, before, after):
        refuted = {one.statement.id: one for one in prove_event(event, WHATEVER_CLIENTS_SEND, size).refutations}
        assert theorem in refuted
        example = decode_refutation(event, refuted[theorem])
        assert replay_handler(event, example) == example.result


def test_every_theorem_has_a_break() -> None:
    assert list(BREAKS) == [one.id for one in STEP_THEOREMS if one not in GENERATION_THEOREMS]
