"""Every theorem is inductive, and every guard that carries one is missed."""

from collections.abc import Callable
from typing import Any

import pytest

from fencepost.model.classic.core import join_phase, membership, sync
from fencepost.model.classic.core.state import Group, JoinRequest, Phase, SyncRequest
from fencepost.model.classic.member import member
from fencepost.model.classic.member.member import PartitionCommit
from fencepost.model.classic.proofs import induction
from fencepost.model.classic.proofs.induction import (
    STATEMENTS,
    ProofSize,
    decode_refutation,
    initially_false,
    prove_event,
    replay_handler,
)
from fencepost.model.classic.proofs.proof_events import ProofEvent, coordinator_events, member_events
from fencepost.model.classic.theorems.ghost_state import Process
from fencepost.model.classic.theorems.non_theorems import one_assigned_id, one_leader_id, one_writer
from fencepost.model.classic.theorems.statements import one_assignee
from fencepost.model.classic.theorems.unconditional import WHATEVER_CLIENTS_SEND
from fencepost.model.logic import Truth
from fencepost.model.statement import Statement, statement
from tests.support.edits import mutant

SMALL = ProofSize(slots=2, partitions=1)
EVENTS = {event.name: event for event in (*coordinator_events(SMALL.slots), *member_events())}

MUTANTS: list[tuple[Callable[..., Any], str, str, str, set[str]]] = [
    (membership.commit, "request.generation != group.generation", "False", "commit", {"T2"}),
    (sync.sync, "request.generation != group.generation", "False", "sync", {"sync-response"}),
    (join_phase.complete_join, "group.generation + 1", "group.generation", "expire-join", {"T1", "join-response"}),
    (join_phase.complete_join, "join=0, is_new", "is_new", "expire-join", {"group-parked"}),
    (join_phase.prepare_rebalance, "evolve(cleared, sync=0)", "cleared", "expire-sync", {"group-parked"}),
    (member.on_sync_response, "handle != member.waiting", "False", "member-sync-response", {"member-owns"}),
    (member.gets_partition, "plan[partition] == view.id", "True", "member-join-response", {"sync-request"}),
    (member.gets_partition, ", not_(claimed[partition])", "", "member-join-response", {"sync-request-claims"}),
    (sync.sync, "group.phase == Phase.PREPARING", "False", "sync", {"T4", "stable-claims"}),
    (
        member.on_sync_response,
        "member.state != MemberState.COMPLETING_REBALANCE",
        "False",
        "member-sync-response",
        {"T4-belief"},
    ),
    (member.lose_generation, "generation=NO_GENERATION, ", "", "member-heartbeat-response", {"T4-belief"}),
    (member.lose_membership, "id=None", "id=member.settings.instance", "member-leave", {"member-id"}),
]


def test_every_statement_holds_at_the_beginning() -> None:
    assert initially_false(STATEMENTS, SMALL) == ()
    broken = statement("never", "No group is ever empty.")(never_empty)
    assert initially_false((broken,), SMALL) == ("never",)


def never_empty(group: Group) -> Truth:
    return group.phase != Phase.EMPTY


@pytest.mark.slow
@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_every_event_keeps_every_statement(event: ProofEvent) -> None:
    verdict = prove_event(event, STATEMENTS, SMALL)
    assert verdict.possible
    assert [(one.statement.id, one.happened.result.rule) for one in verdict.refutations] == []
    assert verdict.undecided == ()


@pytest.mark.parametrize("event", tuple(coordinator_events(SMALL.slots)), ids=lambda event: event.name)
def test_the_coordinator_alone_keeps_one_leader_no_stale_commit_and_what_is_said_of_steps(event: ProofEvent) -> None:
    """Whatever clients send: nothing is assumed of requests."""
    assert prove_event(event, WHATEVER_CLIENTS_SEND, SMALL).refutations == ()


def test_no_statement_that_is_proved_whatever_clients_send_is_about_clients() -> None:
    about = {kind for one in WHATEVER_CLIENTS_SEND for kind in one.subjects}
    assert about.isdisjoint({Process, JoinRequest, SyncRequest, PartitionCommit})


def test_what_holds_whatever_clients_send_rests_on_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement about clients that is asked of the weaker assumptions is refuted."""
    assert prove_event(EVENTS["sync"], STATEMENTS, SMALL).refutations == ()
    monkeypatch.setattr(induction, "ALONE", induction.ALONE | {one_assignee.id})
    verdict = prove_event(EVENTS["sync"], STATEMENTS, SMALL)
    assert {one.statement.id for one in verdict.refutations} == {one_assignee.id}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("false", "event"), [(one_leader_id, "join"), (one_assigned_id, "sync"), (one_writer, "commit")]
)
def test_false_theorems_are_not_inductive(false: Statement, event: str) -> None:
    verdict = prove_event(EVENTS[event], (*STATEMENTS, false), SMALL)
    assert {one.statement.id for one in verdict.refutations} == {false.id}


@pytest.mark.slow
@pytest.mark.parametrize(("function", "before", "after", "event", "broken"), MUTANTS)
def test_mutants_are_refuted_and_every_counterexample_replays(
    function: Callable[..., Any], before: str, after: str, event: str, broken: set[str]
) -> None:
    with mutant(function, before, after):
        verdict = prove_event(EVENTS[event], STATEMENTS, SMALL)
        assert broken <= {one.statement.id for one in verdict.refutations}
        for refutation in verdict.refutations:
            example = decode_refutation(EVENTS[event], refutation)
            assert replay_handler(EVENTS[event], example) == example.result
