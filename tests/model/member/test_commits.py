"""OffsetCommit: the offsets in it, when it is sent, and the report to the application."""

from fencepost.model.classic.member.client import (
    CommitPurpose,
    FindCoordinator,
    FindCoordinatorResponse,
    Problem,
)
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.model.classic.member.step import (
    AssignManually,
    CommitOffsets,
    CoordinatorDisconnected,
    EnforceRebalance,
    ReturnRecords,
    TimePassed,
    Unsubscribe,
)
from fencepost.model.classic.messages import Heartbeat, JoinGroup
from fencepost.model.errors import Error
from fencepost.model.groups.messages import Offset, OffsetCommit, OffsetFetch, OffsetFetchResponse, PartitionErrors
from tests.support.client_driver import (
    BY_HAND,
    COOPERATIVE,
    EAGER,
    NONE,
    P0,
    P1,
    STATIC,
    ClientDriver,
    reaches,
)

ASYNC = CommitOffsets(is_sync=False)
STATIC_BY_HAND = ClientSettings(auto_commit=False, instance=STATIC.instance)


def failures(driver: ClientDriver) -> list[object]:
    return [report.failure for report in driver.reports]


@reaches("member.commit", "client.commit.done", settings=STATIC_BY_HAND)
def test_a_commit_covers_what_was_returned_and_says_who_commits(driver: ClientDriver) -> None:
    driver.become_consumer(P0, P1, offset=3)
    driver.give(ReturnRecords(P0, 3, 10))
    driver.give(CommitOffsets())
    request = driver.request(OffsetCommit)
    assert {one: offset.offset for one, offset in request.offsets} == {P0: 10, P1: 3}
    assert (request.core.generation, request.core.member, request.core.instance) == (1, "a", "i")
    driver.answer_commit()
    assert failures(driver) == [None]
    driver.give(CommitOffsets(partitions=(P1, ("u", 0))))
    assert [one for one, _ in driver.request(OffsetCommit).offsets] == [P1]


@reaches("client.commit.empty", settings=BY_HAND)
def test_a_commit_without_positions_sends_nothing(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.give(CommitOffsets())
    assert driver.count(OffsetCommit) == 0
    assert failures(driver) == [None]


@reaches("client.commit.rebalancing", "client.commit.not-joined", settings=BY_HAND)
def test_a_commit_during_a_rebalance_or_without_a_group_is_not_sent(driver: ClientDriver) -> None:
    cooperative = ClientDriver(ClientSettings(strategies=COOPERATIVE.strategies, auto_commit=False))
    for one, error in ((cooperative, None), (driver, Error.UNKNOWN_MEMBER_ID)):
        one.become_consumer(P0)
        if error is not None:
            one.heartbeat(error)
        else:
            one.give(EnforceRebalance())
            one.poll()
        one.give(CommitOffsets())
        assert one.count(OffsetCommit) == 0
    assert failures(cooperative) == [Problem.REBALANCE_IN_PROGRESS]
    assert failures(driver) == [Problem.COMMIT_FAILED]
    driver.rules += cooperative.rules


@reaches("client.commit.manual", "client.commit.refused")
def test_a_manual_commit_names_no_member(driver: ClientDriver) -> None:
    driver.client = ClientDriver(STATIC_BY_HAND).client
    driver.give(AssignManually((P0,)))
    driver.find()
    driver.poll()
    driver.answer(OffsetFetchResponse({P0: Offset(4)}), OffsetFetch)
    driver.give(CommitOffsets())
    core = driver.request(OffsetCommit).core
    assert (core.generation, core.member, core.instance) == (-1, None, None)
    driver.answer_commit(Error.UNKNOWN_MEMBER_ID)
    assert failures(driver) == [Error.UNKNOWN_MEMBER_ID]
    assert (driver.count(JoinGroup), driver.count(Heartbeat)) == (0, 0)


@reaches("member.commit.rebalance", settings=BY_HAND)
def test_a_commit_during_the_sync_phase_asks_for_a_poll(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.give(CommitOffsets())
    driver.answer_commit(Error.REBALANCE_IN_PROGRESS)
    assert failures(driver) == [Problem.REBALANCE_IN_PROGRESS]
    driver.poll()
    driver.returns()
    driver.poll()
    assert driver.request(JoinGroup).core.member == "a"


@reaches("member.illegal-generation", "member.unknown-member", settings=BY_HAND)
def test_a_commit_of_a_member_that_was_thrown_out_fails_for_good(driver: ClientDriver) -> None:
    for error, id in ((Error.ILLEGAL_GENERATION, "a"), (Error.UNKNOWN_MEMBER_ID, None)):
        driver.client = ClientDriver(BY_HAND).client
        driver.become_consumer(P0)
        driver.give(CommitOffsets())
        driver.answer_commit(error)
        assert failures(driver)[-1] is Problem.COMMIT_FAILED
        driver.poll()
        assert driver.calls()[-1] == ("lost", (P0,))
        driver.returns()
        driver.poll()
        assert driver.request(JoinGroup).core.member == id


@reaches("client.commit.late", settings=BY_HAND)
def test_a_commit_of_an_older_generation_does_not_reset_the_new_one(driver: ClientDriver) -> None:
    for is_joining, expected in ((True, Problem.COMMIT_FAILED), (False, Problem.COMMIT_FAILED)):
        driver.client = ClientDriver(BY_HAND).client
        driver.become_consumer(P0)
        driver.give(CommitOffsets())
        late = driver.last(OffsetCommit)
        driver.give(EnforceRebalance())
        driver.poll()
        driver.returns()
        driver.poll()
        driver.succeed_join(generation=2)
        if not is_joining:
            driver.succeed_sync(P0)
            driver.poll()
            driver.returns()
        member = driver.client.member
        driver.sent.append(late)
        driver.answer_commit(Error.ILLEGAL_GENERATION)
        assert driver.client.member == member
        assert failures(driver)[-1] is expected


@reaches("client.commit.late", settings=BY_HAND)
def test_a_late_commit_of_a_member_that_joins_afresh_is_told_of_the_rebalance(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.give(CommitOffsets())
    driver.heartbeat(Error.ILLEGAL_GENERATION)
    driver.poll()
    driver.returns()
    driver.poll()
    driver.answer_commit(Error.UNKNOWN_MEMBER_ID)
    assert failures(driver) == [Problem.REBALANCE_IN_PROGRESS]
    assert driver.client.member.id == "a"


@reaches("client.commit.fenced", "client.commit.still-fenced", settings=STATIC_BY_HAND)
def test_a_fenced_commit_reaches_the_application(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.give(CommitOffsets())
    driver.answer_commit(Error.FENCED_INSTANCE_ID)
    assert failures(driver) == [Error.FENCED_INSTANCE_ID]
    driver.give(ASYNC)
    driver.answer_commit(Error.FENCED_INSTANCE_ID)
    for _ in range(2):
        driver.poll()
        driver.give(CommitOffsets())
    assert driver.raised == [Error.FENCED_INSTANCE_ID] * 4


@reaches("client.commit.retriable", "client.commit.retry", settings=BY_HAND)
def test_a_synchronous_commit_is_repeated_until_its_deadline(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.give(CommitOffsets())
    for count in range(1, 4):
        assert driver.count(OffsetCommit) == count
        driver.answer_commit(Error.COORDINATOR_LOAD_IN_PROGRESS)
        driver.wait(100)
    driver.answer_commit()
    assert failures(driver) == [None]


@reaches("client.commit.retriable", settings=BY_HAND)
def test_an_asynchronous_commit_is_reported_once_and_on_the_thread_of_the_application(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.give(ASYNC)
    driver.answer_commit(Error.UNKNOWN_TOPIC_OR_PARTITION)
    driver.wait(1_000)
    assert driver.reports == []
    driver.poll()
    assert failures(driver) == [Problem.RETRIABLE_COMMIT]
    assert driver.count(OffsetCommit) == 1


def test_earlier_asynchronous_commits_are_reported_before_a_synchronous_one_ends() -> None:
    driver = ClientDriver(BY_HAND)
    driver.become_consumer(P0)
    driver.give(ASYNC)
    driver.answer_commit()
    driver.give(CommitOffsets())
    driver.answer_commit()
    assert [report.purpose for report in driver.reports] == [CommitPurpose.ASYNC, CommitPurpose.SYNC]


@reaches("client.commit.moved", "client.commit.waiting", settings=BY_HAND)
def test_a_commit_at_the_wrong_node_follows_the_coordinator(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.give(CommitOffsets())
    driver.answer_commit(Error.NOT_COORDINATOR)
    driver.wait(100)
    driver.answer(FindCoordinatorResponse(NONE, 2), FindCoordinator)
    driver.wait(100)
    driver.answer_commit()
    assert failures(driver) == [None]
    driver.give(CoordinatorDisconnected())
    driver.give(ASYNC)
    assert isinstance(driver.sent[-1].request, FindCoordinator)
    driver.answer(FindCoordinatorResponse(NONE, 1), FindCoordinator)
    driver.answer_commit()
    driver.poll()
    assert failures(driver) == [None, None]


@reaches("client.commit.given-up", settings=BY_HAND)
def test_a_commit_is_given_up_after_its_deadline_or_a_failed_lookup(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.give(CoordinatorDisconnected())
    driver.give(CommitOffsets())
    driver.give(ASYNC)
    driver.answer(FindCoordinatorResponse(Error.COORDINATOR_NOT_AVAILABLE), FindCoordinator)
    assert [commit.purpose for commit in driver.client.commits] == [CommitPurpose.SYNC]
    driver.now += 60_000
    driver.give(TimePassed())
    assert failures(driver) == [Problem.RETRIABLE_COMMIT] * 2


def test_a_commit_without_a_response_counts_as_a_lost_connection() -> None:
    driver = ClientDriver(BY_HAND)
    driver.become_consumer(P0)
    driver.give(CommitOffsets())
    driver.now += 60_000
    driver.give(TimePassed())
    assert driver.client.coordinator is None
    assert failures(driver) == [Problem.RETRIABLE_COMMIT]


@reaches("client.commit.refused", settings=BY_HAND)
def test_the_first_error_of_a_partition_decides(driver: ClientDriver) -> None:
    driver.become_consumer(P0, P1)
    for errors, expected in (
        ({P0: NONE, P1: Error.OFFSET_METADATA_TOO_LARGE}, Error.OFFSET_METADATA_TOO_LARGE),
        ({P0: Error.TOPIC_AUTHORIZATION_FAILED, P1: NONE}, Error.TOPIC_AUTHORIZATION_FAILED),
        (
            {P0: Error.TOPIC_AUTHORIZATION_FAILED, P1: Error.GROUP_AUTHORIZATION_FAILED},
            Error.GROUP_AUTHORIZATION_FAILED,
        ),
    ):
        driver.give(CommitOffsets())
        driver.answer(PartitionErrors(errors), OffsetCommit)
        assert failures(driver)[-1] is expected
    driver.give(CommitOffsets())
    driver.answer(PartitionErrors(error=Error.INVALID_COMMIT_OFFSET_SIZE), OffsetCommit)
    assert failures(driver)[-1] is Error.INVALID_COMMIT_OFFSET_SIZE


@reaches("client.auto-commit.due")
def test_auto_commit_covers_what_earlier_polls_returned(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.give(ReturnRecords(P0, 0, 5))
    driver.wait(4_900)
    driver.poll()
    assert driver.count(OffsetCommit) == 0
    driver.wait(100)
    driver.poll()
    driver.give(ReturnRecords(P0, 5, 9))
    assert [offset.offset for _, offset in driver.request(OffsetCommit).offsets] == [5]
    driver.answer_commit()
    driver.poll()
    assert driver.count(OffsetCommit) == 1


@reaches("client.auto-commit.soon")
def test_an_auto_commit_that_may_be_repeated_is_due_soon(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.wait(5_000)
    driver.poll()
    driver.answer_commit(Error.COORDINATOR_LOAD_IN_PROGRESS)
    driver.wait(100)
    driver.poll()
    assert driver.count(OffsetCommit) == 2


def test_no_auto_commit_during_a_rebalance_or_on_unsubscribing() -> None:
    driver = ClientDriver(COOPERATIVE)
    driver.become_consumer(P0)
    driver.give(EnforceRebalance())
    driver.poll()
    driver.answer_commit()
    driver.poll()
    driver.wait(6_000)
    driver.poll()
    assert driver.count(OffsetCommit) == 1
    other = ClientDriver(EAGER)
    other.become_consumer(P0)
    other.give(Unsubscribe())
    other.returns()
    assert other.count(OffsetCommit) == 0


@reaches("client.prepare.hold-back", "client.prepare.commit", "client.prepare.committing", "client.records.dropped")
def test_an_eager_member_commits_before_it_revokes_and_returns_nothing_in_between(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.give(ReturnRecords(P0, 0, 5))
    driver.heartbeat(Error.REBALANCE_IN_PROGRESS)
    driver.poll()
    request = driver.request(OffsetCommit)
    assert (request.core.generation, [offset.offset for _, offset in request.offsets]) == (1, [5])
    driver.give(ReturnRecords(P0, 5, 6))
    driver.poll()
    assert driver.calls()[-1] == ("assigned", (P0,)) and driver.count(JoinGroup) == 1
    driver.answer_commit()
    driver.poll()
    assert driver.calls()[-1] == ("revoked", (P0,))


@reaches("client.prepare.commit")
def test_the_commit_before_a_rebalance_is_repeated_and_abandoned_on_other_errors(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.give(EnforceRebalance())
    for _ in range(3):
        driver.poll()
        driver.answer_commit(Error.COORDINATOR_LOAD_IN_PROGRESS)
        commits = driver.count(OffsetCommit)
        driver.poll()
        assert driver.count(OffsetCommit) == commits
        driver.wait(100)
    assert driver.callbacks[-1].kind.value == "assigned"
    driver.poll()
    driver.answer_commit(Error.GROUP_AUTHORIZATION_FAILED)
    driver.poll()
    assert driver.calls()[-1] == ("revoked", (P0,)) and driver.raised == []


@reaches("client.prepare.commit")
def test_the_commit_before_a_rebalance_may_show_that_the_member_is_out(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.give(EnforceRebalance())
    driver.poll()
    driver.answer_commit(Error.UNKNOWN_MEMBER_ID)
    driver.poll()
    assert driver.calls()[-1] == ("lost", (P0,))
    driver.returns()
    driver.poll()
    assert driver.request(JoinGroup).core.member is None
    assert driver.count(OffsetCommit) == 1


@reaches("client.prepare.commit-too-late", settings=ClientSettings(max_poll_interval=10_000))
def test_the_commit_before_a_rebalance_is_not_waited_for_longer_than_a_rebalance(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.give(EnforceRebalance())
    driver.poll()
    driver.now += 9_999
    driver.poll()
    assert driver.calls()[-1] == ("assigned", (P0,))
    driver.now += 1
    driver.poll()
    assert driver.calls()[-1] == ("revoked", (P0,))


def test_a_commit_that_a_lost_membership_overtook_holds_no_later_rebalance_up() -> None:
    driver = ClientDriver(ClientSettings(max_poll_interval=10_000))
    driver.become_consumer(P0)
    driver.give(EnforceRebalance())
    driver.poll()
    late = driver.last(OffsetCommit)
    driver.heartbeat(Error.UNKNOWN_MEMBER_ID)
    driver.poll()
    driver.returns()
    driver.poll()
    driver.complete(P0, generation=2, member="b")
    driver.poll()
    driver.answer(OffsetFetchResponse({P0: Offset(3)}), OffsetFetch)
    driver.now += 9_000
    driver.give(EnforceRebalance())
    driver.poll()
    assert driver.request(OffsetCommit).core.generation == 2
    driver.sent.append(late)
    driver.answer_commit(Error.UNKNOWN_MEMBER_ID)
    driver.poll()
    assert driver.calls()[-1] == ("assigned", (P0,))
    assert driver.client.member.id == "b"
