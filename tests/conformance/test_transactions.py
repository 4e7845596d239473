"""Coordinators that do wrong with open transactions, old epochs of producers and groups with nothing to keep."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.classic.administration import Cleanup
from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.group import Group, State
from fencepost.adapters.classic.offsets import Commit, Commits, OffsetStore, Transactions
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios.failovers import failovers
from fencepost.conformance.classic.scenarios.fetches import Producer, begin_transaction
from fencepost.conformance.classic.zoo.bugs.deviations import DEVIATIONS
from fencepost.conformance.classic.zoo.coordinator_stand import play_scenario_in
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import RequirementResult, Verdict
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.play import play_scenario
from fencepost.conformance.subject import Scenario
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.model.errors import Error
from fencepost.traces.classic.overdue import MAX_CLEANUP_PASSES
from fencepost.traces.events import Body, Order
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict
from tests.support.faulty_coordinators import altering_coordinator
from tests.support.trace_builder import OK, OneMemberTrace

Script = Callable[[ScenarioContext], Coroutine[Any, Any, None]]
INTERVAL = BUNDLED_SETTINGS.retention_check_interval


def result_of(requirement: str) -> RequirementResult:
    """The result for one requirement on the bundled coordinator, as it is patched."""
    run = BundledRun(Plan(BUNDLED), Profile())
    (result,) = asyncio.run(run.run([CATALOGUE[requirement]], lambda event: None)).results
    return result


def verdict_on(
    script: Script, coordinator: type[Coordinator] = Coordinator, order: Order = Order.TOTAL
) -> TraceVerdict:
    """The verdict on a script without checks, played on the bundled coordinator, as it is patched."""

    async def play() -> TraceVerdict:
        target = InProcessTarget(BUNDLED_SETTINGS, make_coordinator=coordinator)
        run = await play_scenario(Scenario("s", (), script), target, await target.open(), "g", grace=0)
        return judge(replace(run.header, order=order), run.events)

    return run_virtual(play())


def violated(verdict: TraceVerdict) -> list[tuple[str, ...]]:
    """The requirements of each violation."""
    return [violation.requirements for violation in verdict.violations]


def is_never(*given: Any) -> bool:
    """Nothing is ever so."""
    return False


def is_always(*given: Any) -> bool:
    """Everything is always so."""
    return True


def end_nothing(*given: Any) -> None:
    """A transaction does not end for the group."""


# --- old epochs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("requirement", ["COMMIT-31", "COMMIT-32"])
def test_a_commit_of_an_old_epoch_that_is_accepted_is_a_failure(
    requirement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert result_of(requirement).verdict is Verdict.PASS
    monkeypatch.setattr(Transactions, "is_fenced", is_never)
    assert result_of(requirement).verdict is Verdict.FAIL


async def commit_after_a_newer_epoch(group: ScenarioContext) -> None:
    """A transaction is ended by a newer epoch; both epochs commit, and the newer one ends."""
    older, _ = await begin_transaction(group)
    newer = Producer(group)
    await newer.begin()
    await older.commit(0, 71)
    await newer.commit(0, 72)
    await older.commit(0, 73)
    await newer.end(committed=True)
    await group.fetch(stable=True)


def test_a_newer_epoch_aborts_the_transaction_of_the_older_one() -> None:
    verdict = verdict_on(commit_after_a_newer_epoch)
    assert (verdict.violations, verdict.inconclusive) == ((), ())
    assert verdict.rules["transaction.old-epoch"] == 2


def test_a_violation_of_epochs_is_named_without_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transactions, "is_fenced", is_never)
    assert violated(verdict_on(commit_after_a_newer_epoch))[0] == ("COMMIT-31",)


async def commit_of_an_epoch_unknown_to_the_group(group: ScenarioContext) -> None:
    """The newer epoch begins while the older one has no transaction in the group."""
    older = Producer(group)
    await older.begin_epoch()
    await Producer(group).begin_epoch()
    await older.commit(0, 71)


@pytest.mark.parametrize("asks_beforehand", [True, False])
def test_an_epoch_that_the_group_has_not_seen_may_be_refused_or_not(
    asks_beforehand: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not asks_beforehand:
        monkeypatch.setattr(Transactions, "is_fenced", is_never)
    assert violated(verdict_on(commit_of_an_epoch_unknown_to_the_group)) == []


async def commit_of_an_epoch_that_added_the_group(group: ScenarioContext) -> None:
    """The newer epoch ends a transaction to which the group was added, before any offset of it."""
    older = Producer(group)
    await older.begin()
    await Producer(group).begin_epoch()
    await older.commit(0, 71)


def test_a_group_without_offsets_of_the_transaction_hears_of_the_newer_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = verdict_on(commit_of_an_epoch_that_added_the_group)
    assert (verdict.violations, verdict.rules["transaction.old-epoch"]) == ((), 1)
    monkeypatch.setattr(Transactions, "is_fenced", is_never)
    assert violated(verdict_on(commit_of_an_epoch_that_added_the_group)) == [("COMMIT-31",)]


FENCED = Error.INVALID_PRODUCER_EPOCH


def commit_while_a_newer_epoch_begins(
    error: int, begun: int, *, is_added: bool = True, ends: bool = False
) -> list[str]:
    """The requirements violated where a TxnOffsetCommit is under way when InitProducerId comes, with the error of each.

    As a Kafka 4.4 had it: the group was added to the transaction, which has no offset yet.
    """
    trace = OneMemberTrace(Order.INTERVALS)
    started = {"transactional_id": "p", "transaction_timeout_ms": 60_000}
    producer = {"transactional_id": "p", "producer_id": 5, "producer_epoch": 0}
    trace.exchange(10, "InitProducerId", started, {"error_code": 0, "producer_id": 5, "producer_epoch": 0}, 2)
    if is_added:
        trace.exchange(20, "AddOffsetsToTxn", producer, OK, 2)
    if ends:
        trace.exchange(25, "EndTxn", {**producer, "committed": True}, OK, 2)
    rows = [{"partition_index": 0, "committed_offset": 7, "committed_leader_epoch": -1, "committed_metadata": ""}]
    body = {**producer, "generation_id": -1, "member_id": "", "topics": [{"name": "t", "partitions": rows}]}
    commit = trace.send_request(30, "TxnOffsetCommit", body, 3)
    epoch = {"producer_id": -1, "producer_epoch": -1} if begun else {"producer_id": 5, "producer_epoch": 1}
    trace.exchange(31, "InitProducerId", started, {"error_code": begun, **epoch}, 2)
    told = {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "error_code": error}]}]}
    trace.send_response(33, commit, told)
    return [id for violation in trace.verdict().violations for id in violation.requirements]


@pytest.mark.parametrize("error", [Error.NONE, FENCED])
@pytest.mark.parametrize("begun", [Error.NONE, Error.CONCURRENT_TRANSACTIONS])
def test_a_commit_under_way_may_come_before_or_after_the_newer_epoch(error: Error, begun: Error) -> None:
    assert commit_while_a_newer_epoch_begins(error, begun) == []


@pytest.mark.parametrize(("is_added", "ends"), [(False, False), (True, True)])
def test_a_group_of_no_open_transaction_has_nothing_to_refuse_yet(is_added: bool, ends: bool) -> None:
    refused = commit_while_a_newer_epoch_begins(FENCED, Error.CONCURRENT_TRANSACTIONS, is_added=is_added, ends=ends)
    assert refused != []


# --- producers that name no member, deleted offsets, groups without members -----------------------------------------


def test_a_transactional_commit_from_outside_that_is_refused_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result_of("COMMIT-33").verdict is Verdict.PASS
    check = Commits.check

    def want_a_member(commits: Commits, group: Group, commit: Commit) -> Error:
        is_foreign = group.state is not State.EMPTY and not commit.names_member
        return Error.UNKNOWN_MEMBER_ID if is_foreign else check(commits, group, commit)

    monkeypatch.setattr(Commits, "check", want_a_member)
    assert result_of("COMMIT-33").verdict is Verdict.FAIL


def test_a_group_that_pending_ids_keep_from_being_empty_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result_of("GEN-21").verdict is Verdict.PASS
    start = Rebalancer.start_join_timer
    monkeypatch.setattr(Rebalancer, "start_join_timer", lambda rounds, group: group.members and start(rounds, group))
    assert result_of("GEN-21").verdict is Verdict.FAIL
    assert violated(verdict_on(look_at_a_group_of_pending_ids)) == [("GEN-21",)]


async def look_at_a_group_of_pending_ids(group: ScenarioContext) -> None:
    """The only member leaves while an id is pending."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.join(group.member("B"))
    await group.leave(a)
    await group.sleep(1)
    await group.describe_groups()


def test_an_offset_that_comes_back_is_a_failure() -> None:
    assert result_of("FAILOVER-22").verdict is Verdict.PASS
    fault = DEVIATIONS["deleted-offset-comes-back"]
    (scenario,) = (each for each in failovers.scenarios if "FAILOVER-22" in each.requirements)
    with fault.activate():
        assert result_of("FAILOVER-22").verdict is Verdict.FAIL
        run = play_scenario_in(fault.setting, scenario)
    unchecked = [event for event in run.events if event.api != "check"]
    assert set(violated(judge(run.header, unchecked))) == {("FAILOVER-22",)}


# --- members -------------------------------------------------------------------------------------------------------


async def commit_as_a_stranger(group: ScenarioContext) -> None:
    """A member id that the group never had commits an offset in a transaction."""
    await group.form_stable_group(group.member("A"))
    producer = Producer(group)
    await producer.begin()
    rows: dict[tuple[str, int] | int, Body] = {
        0: {"committed_offset": 7, "committed_metadata": "", "committed_leader_epoch": -1}
    }
    topics = group.partitions_by_topic(rows, {})
    await producer.send_commit(topics, generation_id=1, member_id="nobody")


def test_a_transactional_commit_of_a_stranger_is_about_members(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = verdict_on(commit_as_a_stranger)
    assert (violated(verdict), verdict.rules["transaction.fenced"]) == ([], 1)

    def let_in(request: Request, response: Response) -> Response:
        if request.api != "TxnOffsetCommit":
            return response
        topics = [
            {**topic, "partitions": [{**row, "error_code": 0} for row in topic["partitions"]]}
            for topic in response.body["topics"]
        ]
        return replace(response, body={**response.body, "topics": topics})

    assert violated(verdict_on(commit_as_a_stranger, altering_coordinator(let_in))) == [("COMMIT-05",)]


# --- the end of transactions ---------------------------------------------------------------------------------------


def test_a_transaction_that_never_ends_for_the_group_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OffsetStore, "end_transaction", end_nothing)
    assert result_of("FETCH-16").verdict is Verdict.FAIL


async def fetch_after_the_end(group: ScenarioContext) -> None:
    """A transaction ends, and an offset is fetched a moment later."""
    producer, _ = await begin_transaction(group)
    await producer.end(committed=True)
    await group.sleep(group.short_pause)
    await group.fetch(stable=True)


def test_an_offset_that_stays_unstable_is_named_without_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OffsetStore, "end_transaction", end_nothing)
    assert violated(verdict_on(fetch_after_the_end)) == [("FETCH-16",)]


# --- clean-up passes -----------------------------------------------------------------------------------------------


def test_a_group_that_goes_in_spite_of_a_transaction_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result_of("ADMIN-36").verdict is Verdict.PASS
    monkeypatch.setattr(Cleanup, "is_removable", is_always)
    assert result_of("ADMIN-36").verdict is Verdict.FAIL


def test_an_offset_that_expires_under_a_transaction_is_unusual(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result_of("COMMIT-30").note == ""
    monkeypatch.setattr("fencepost.adapters.classic.group.Group.has_uncommitted", is_never)
    result = result_of("COMMIT-30")
    assert (result.verdict, "although a transaction" in str(result)) == (Verdict.PASS, True)


def test_a_staged_offset_that_expires_with_the_committed_one_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result_of("COMMIT-34").verdict is Verdict.PASS
    monkeypatch.setattr(Cleanup, "expired_partitions", lambda cleanup, group: list(group.offsets))
    assert result_of("COMMIT-34").verdict is Verdict.FAIL
    for order in Order:
        assert violated(verdict_on(fetch_after_the_retention, order=order)) == [("COMMIT-34",)]


async def fetch_after_the_retention(group: ScenarioContext) -> None:
    """A stable fetch of a partition with an open transaction, whose committed offset has expired."""
    await group.commit(None, {0: 7}, version=4, retention_time_ms=1)
    producer = Producer(group)
    await producer.begin(4 * INTERVAL)
    await producer.commit(0, 70)
    await group.sleep(2 * INTERVAL)
    await group.fetch(stable=True)


def test_a_group_with_nothing_to_keep_that_stays_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result_of("ADMIN-35").verdict is Verdict.PASS
    monkeypatch.setattr(Cleanup, "is_removable", is_never)
    result = result_of("ADMIN-35")
    assert result.verdict is Verdict.FAIL
    assert result.failures[0].rule.startswith("clean-up.overdue")


def leave_and_look(milliseconds: int) -> Script:
    """A script in which the only member leaves, and the group is described so much later."""

    async def script(group: ScenarioContext) -> None:
        (a,) = await group.form_stable_group(group.member("A"))
        await group.leave(a)
        await group.sleep(milliseconds)
        await group.describe_groups()
        await group.join_new(group.member("B"))

    return script


@pytest.mark.parametrize(("passes", "expected"), [(MAX_CLEANUP_PASSES, []), (MAX_CLEANUP_PASSES + 1, [("ADMIN-35",)])])
def test_a_group_that_stays_is_named_without_a_check_once_it_is_overdue(
    passes: int, expected: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cleanup, "is_removable", is_never)
    assert violated(verdict_on(leave_and_look(passes * INTERVAL))) == expected
