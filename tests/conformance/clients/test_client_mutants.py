"""Checks of the judge can fail: mutants of the reference client violate them, in the scenarios that are for them."""

from dataclasses import replace

import pytest

from fencepost.conformance.classic.clients import SCENARIOS
from fencepost.conformance.classic.zoo.client_stand import CLIENTS, shown_by
from fencepost.conformance.classic.zoo.clients.reference import KINDS
from fencepost.conformance.classic.zoo.zoo import member_mutants
from fencepost.conformance.subject import Scenario
from fencepost.conformance.zoo.hunt import usual_run

MUTANTS = (
    ("HBT-01", "eager", "a-client-alone", "heartbeats.work: always: client.settings.dialect.heartbeats_in_poll"),
    ("CALLBACK-08", "cooperative", "a-partition-taken-away", "commits.install_assignment: always: position is"),
    ("CALLBACK-12", "eager", "a-listener-that-raises-first", "commits.on_prepare_callback: always: not raised"),
    ("COOP-08", "cooperative", "a-partition-taken-away", "joining.subscription_of: never"),
    (
        "MCOMMIT-09",
        "eager",
        "a-commit-that-tells-of-a-rebalance",
        "member.on_commit_response: never",
    ),
    ("MCOMMIT-14", "eager", "a-commit-that-is-lost", "lookup.lose_coordinator: never: commit.handle"),
    (
        "MCOMMIT-15",
        "static",
        "a-periodic-commit-of-a-fenced-member",
        "commits.judge_commit: always: error == Error.REB",
    ),
    ("CALLBACK-09", "eager", "topics-that-the-leader-sees-first", "commits.complete_rebalance: always: full"),
    (
        "MEMBER-30",
        "eager",
        "a-membership-lost-before-the-assignment-is-read",
        "commits.complete_rebalance: never: step.rule",
    ),
    (
        "PREFETCH-03",
        "eager",
        "a-coordinator-that-moves-from-a-manual-assignment",
        "heartbeats.continue_poll: never: client.is_manual",
    ),
    (
        "COOP-01",
        "cooperative",
        "one-topic-less",
        "commits.on_prepare_callback: never: one.partition not in given_up",
    ),
    (
        "STICKY-18",
        "sticky by hand",
        "a-leader-of-two",
        "joining.user_data_of: comparison: client.member.owned_in < 0 -> client.member.owned_in >= 0",
    ),
    ("MEMBER-22", "eager", "a-client-alone", "leaving.close: always: client.closing is not Closing.OPEN"),
    (
        "MCOMMIT-08",
        "cooperative",
        "an-application-that-commits-while-joining",
        "commits.local_failure: always: client.is_manual or client.member.state",
    ),
    ("PREFETCH-03", "eager", "first-offsets-that-are-lost", "lookup.lose_coordinator: never: position.asked in asked"),
    (
        "PREFETCH-03",
        "sticky by hand",
        "partitions-assigned-without-a-coordinator",
        "heartbeats.find_if_needed: comparison: one.offset is None",
    ),
    ("MCOMMIT-14", "eager", "commits-that-nobody-waits-for", "lookup.with_commit: always: commit.number"),
    ("MEMBER-17", "eager", "offsets-that-cannot-be-told", "lookup.fetch_offsets: never: client.coordinator is None"),
    (
        "MEMBER-29",
        "sticky by hand",
        "a-membership-lost-while-joining",
        "member.on_join_response: never: member.state != MemberState.PREPARING_REBALANCE",
    ),
    ("MEMBER-31", "eager", "an-assignment-of-another-protocol", "joining.on_sync_response: never: contradicts"),
    (
        "CALLBACK-12",
        "eager",
        "a-listener-that-raises-when-it-unsubscribes",
        "leaving.on_leave_callback: always: not raised",
    ),
    (
        "PREFETCH-03",
        "eager",
        "a-coordinator-that-moves-while-starts-are-asked",
        "lookup.lose_coordinator: never: one.kind in",
    ),
    (
        "MCOMMIT-06",
        "eager",
        "a-commit-before-a-rebalance-that-never-succeeds",
        "commits.commit_before_rebalance: always: not client.clocks.prepare",
    ),
    ("MEMBER-17", "eager", "polls-without-a-coordinator", "lookup.on_find_response: never: response.error in LOOKUP"),
    ("MEMBER-17", "eager", "offsets-that-cannot-be-told", "lookup.on_offsets: never: response.error in RETRIED"),
    (
        "MCOMMIT-07",
        "eager",
        "a-last-commit-that-takes-long",
        "leaving.continue_closing: comparison: context.now < last[0].deadline -> context.now >=",
    ),
    ("MEMBER-17", "eager", "a-sync-during-a-rebalance", "joining.refuse_exchange: never: error in RETRIED"),
    (
        "CALLBACK-16",
        "cooperative by hand",
        "a-listener-that-commits",
        "commits.is_revoking: never: client.callback is not None and",
    ),
    (
        "MEMBER-15",
        "static",
        "a-late-commit-that-is-fenced",
        "commits.judge_commit: comparison: error in THROWN_OUT | {",
    ),
    (
        "MCOMMIT-14",
        "eager",
        "a-commit-while-lookups-fail",
        "commits.send_waiting: comparison: commit.purpose is CommitPurpose.ASYNC",
    ),
    ("STICKY-18", "sticky by hand", "a-client-alone", "joining.user_data_of: never: client.member.owned_in < 0 or"),
    (
        "CALLBACK-11",
        "cooperative",
        "closing-while-joining",
        "leaving.give_up_before_leaving: always: has_generation(client) and",
    ),
    ("CALLBACK-19", "cooperative", "a-leader-of-two", "commits.prepare: never: not dropped"),
    ("MCOMMIT-12", "eager", "partitions-that-the-application-assigns", "commits.core_commit: never: client.is_manual"),
    (
        "MCOMMIT-14",
        "eager",
        "commits-of-which-one-partition-is-refused",
        "commits.error_in: always: error != Error.NONE",
    ),
    ("MCOMMIT-17", "eager", "a-periodic-commit-while-loading", "lookup.finish_commit: never: is_retriable ->"),
    ("MEMBER-38", "eager", "a-lookup-that-is-refused-for-good", "lookup.on_find_response: always: response.error in"),
    (
        "MEMBER-39",
        "eager",
        "a-coordinator-that-moves-while-starts-are-asked",
        "heartbeats.on_heartbeat_response: never: error in COORDINATOR_MOVED",
    ),
    (
        "MEMBER-38",
        "eager",
        "offsets-that-are-refused-for-good",
        "lookup.on_offsets: never: response.error != Error.NONE",
    ),
)
"""The requirement, the kind of the client, the scenario and how the name of the mutant begins."""


def find_scenario(name: str) -> Scenario:
    """The scenario for clients with this name."""
    return next(each for each in SCENARIOS if each.name == name)


@pytest.mark.parametrize(("requirement", "kind", "scenario", "mutant"), MUTANTS)
def test_a_mutant_is_found(requirement: str, kind: str, scenario: str, mutant: str) -> None:
    (fault,) = [fault for name, fault in member_mutants().items() if name.startswith(mutant)]
    played, settings = find_scenario(scenario), KINDS[kind]
    run = CLIENTS.run_with(replace(fault, setting=settings), played)
    assert requirement in shown_by(run) - shown_by(usual_run(CLIENTS, settings, played)), (shown_by(run), run.blocked)
