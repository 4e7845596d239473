"""The theorems across fail-overs are inductive, and each part of the log that they rest on is missed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fencepost.model.classic.coordinator import group_log
from fencepost.model.classic.core.state import Group, Holder, Step
from fencepost.model.classic.proofs.dispatch_events import failover_events
from fencepost.model.classic.proofs.induction import (
    ProofSize,
    decode_refutation,
    initially_false,
    prove_event,
    replay_handler,
)
from fencepost.model.classic.proofs.proof_events import ProofEvent
from fencepost.model.classic.theorems.failover import (
    ACROSS_FAILOVERS,
    FAILOVERS_WHATEVER_CLIENTS_SEND,
    KEPT_BY_KAFKA,
    generation_is_stored,
    record_generation,
)
from fencepost.model.classic.theorems.ghost_state import GroupRecord
from fencepost.model.classic.theorems.statements import commit_by_owner, one_leader
from fencepost.model.proposal.proofs import proposal_events
from tests.support.edits import mutant

SMALL = ProofSize(slots=2, partitions=1)
EARLY = {event.name: event for event in failover_events(SMALL.slots, early=True)}
KAFKA = {event.name: event for event in failover_events(SMALL.slots, early=False)}


PROPOSAL = {event.name: event for event in proposal_events(SMALL.slots)}


@pytest.mark.parametrize("event", PROPOSAL.values(), ids=PROPOSAL)
def test_the_proposal_keeps_every_theorem(event: ProofEvent) -> None:
    test_a_generation_that_is_stored_early_keeps_every_theorem(event)


@pytest.mark.parametrize("event", EARLY.values(), ids=EARLY)
def test_a_generation_that_is_stored_early_keeps_every_theorem(event: ProofEvent) -> None:
    verdict = prove_event(event, ACROSS_FAILOVERS, SMALL)
    assert verdict.possible
    assert [(one.statement.id, one.happened.result.rule) for one in verdict.refutations] == []
    assert verdict.undecided == ()


@pytest.mark.parametrize("event", KAFKA.values(), ids=KAFKA)
def test_kafka_keeps_what_is_said_of_commits_and_assignments(event: ProofEvent) -> None:
    verdict = prove_event(event, KEPT_BY_KAFKA, SMALL)
    assert verdict.possible
    assert [(one.statement.id, one.happened.result.rule) for one in verdict.refutations] == []
    assert verdict.undecided == ()


def test_every_statement_holds_of_a_new_group_and_its_record() -> None:
    assert initially_false(ACROSS_FAILOVERS, SMALL) == initially_false(KEPT_BY_KAFKA, SMALL) == ()


def test_kafka_does_not_store_a_generation_when_it_begins() -> None:
    verdict = prove_event(KAFKA["expire-join"], ACROSS_FAILOVERS, SMALL)
    assert {"record-generation", "record-leader", "record:join-response"} <= {
        one.statement.id for one in verdict.refutations
    }


def test_an_old_coordinator_of_kafka_may_tell_of_a_generation_that_is_not_stored() -> None:
    verdict = prove_event(KAFKA["expire-join"], (*KEPT_BY_KAFKA, generation_is_stored), SMALL)
    assert {one.statement.id for one in verdict.refutations} == {"stored-generation"}


def test_what_kafka_is_proved_to_keep_leaves_out_the_leader() -> None:
    assert not {one_leader, commit_by_owner, record_generation} & set(KEPT_BY_KAFKA)


def test_no_statement_about_records_that_is_proved_alone_is_about_clients() -> None:
    alone = [one for one in (*ACROSS_FAILOVERS, *KEPT_BY_KAFKA) if one.id in FAILOVERS_WHATEVER_CLIENTS_SEND]
    assert {kind.__name__ for one in alone for kind in one.subjects} <= {
        *(kind.__name__ for kind in (Group, GroupRecord)),
        "GhostState",
        "JoinResponseSent",
        "RecordedStep",
    }


MUTANTS: list[tuple[Callable[..., Any], str, str, str, set[str]]] = [
    (
        group_log.load_group,
        "generation=stored.generation",
        "generation=0",
        "load",
        {"record-generation", "group-generation"},
    ),
    (group_log.load_group, "leader=stored.leader", "leader=None", "load", {"group-leader"}),
    (group_log.load_group, "ite(early, Phase.COMPLETING, Phase.STABLE)", "Phase.STABLE", "load", {"record-leader"}),
    (group_log.member_record, "assignment=slot.assignment", "assignment=None", "sync", {"stored-assignment"}),
    (group_log.load_slot, "join=0, ", "join=1, ", "load", {"group-parked"}),
    (group_log.group_record, "leader=group.leader", "leader=None", "expire-join", {"record:group-leader"}),
    (group_log.member_record, "id=slot.id", "id=slot.instance", "expire-join", {"record:group-ids"}),
    (
        group_log.writes_record,
        "or_(settled, becomes_empty(before, after))",
        "settled",
        "expire-join",
        {"record-generation"},
    ),
    (
        group_log.writes_record,
        "or_(settled, becomes_empty(before, after))",
        "False",
        "sync",
        {"record-leader", "stored-assignment"},
    ),
]


@pytest.mark.parametrize(("function", "before", "after", "event", "broken"), MUTANTS)
def test_mutants_of_the_log_are_refuted_and_every_counterexample_replays(
    function: Callable[..., Any], before: str, after: str, event: str, broken: set[str]
) -> None:
    with mutant(function, before, after):
        verdict = prove_event(EARLY[event], ACROSS_FAILOVERS, SMALL)
        assert broken <= {one.statement.id for one in verdict.refutations}
        for refutation in verdict.refutations:
            example = decode_refutation(EARLY[event], refutation)
            assert without_free_slots(replay_handler(EARLY[event], example)) == without_free_slots(example.result)


def without_free_slots(step: Step) -> Step:
    """The step without free slots after it: a record has as many as it needs, and their number means nothing."""
    slots = tuple(slot for slot in step.group.slots if slot.holder != Holder.NOBODY)
    return replace(step, group=replace(step.group, slots=slots))
