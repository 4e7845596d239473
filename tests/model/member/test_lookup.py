"""The client's lookup of coordinators, its positions, and its leaving."""

from fencepost.model.classic.core.state import HeartbeatResponse, JoinResponse
from fencepost.model.classic.member.client import (
    Closing,
    FindCoordinator,
    FindCoordinatorResponse,
    ListOffsets,
    ListOffsetsResponse,
    Problem,
    position_of,
)
from fencepost.model.classic.member.member import MemberState
from fencepost.model.classic.member.settings import ClientSettings, ResetPolicy
from fencepost.model.classic.member.step import (
    AskHeartbeat,
    AssignManually,
    Close,
    CoordinatorDisconnected,
    EnforceRebalance,
    PausePartition,
    ResponseArrived,
    Restart,
    ReturnRecords,
    Seek,
    TimePassed,
    Unsubscribe,
)
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup
from fencepost.model.errors import Error
from fencepost.model.groups.messages import NO_OFFSET, Offset, OffsetCommit, OffsetFetch, OffsetFetchResponse, Partition
from tests.support.client_driver import BY_HAND, NONE, P0, P1, STATIC, ClientDriver, reaches
from tests.support.plain_values import build

# --- The client and its coordinator: lookups, lost connections, timeouts.


@reaches("client.poll", "client.lookup.send", "client.lookup.waiting", "client.lookup.found")
def test_nothing_is_sent_before_the_coordinator_is_found(driver: ClientDriver) -> None:
    driver.subscribe()
    driver.poll()
    driver.poll()
    assert [type(one.request) for one in driver.sent] == [FindCoordinator]
    driver.answer(FindCoordinatorResponse(NONE, 7))
    assert driver.client.coordinator == 7
    driver.poll()
    assert driver.request(JoinGroup).core.member is None


@reaches("client.lookup.failed", "client.lookup.backoff")
def test_a_failed_lookup_is_repeated_after_a_backoff_that_doubles(driver: ClientDriver) -> None:
    driver.subscribe()
    for backoff in (100, 200, 400, 800, 1_000, 1_000):
        driver.poll()
        driver.answer(FindCoordinatorResponse(Error.COORDINATOR_NOT_AVAILABLE))
        sent = len(driver.sent)
        driver.now += backoff - 1
        driver.poll()
        assert len(driver.sent) == sent
        driver.now += 1
    driver.find()
    assert driver.client.lookup_failures == 0


@reaches("client.lookup.fatal", "client.poll.raise")
def test_a_lookup_that_is_not_allowed_reaches_the_application(driver: ClientDriver) -> None:
    driver.subscribe()
    driver.poll()
    driver.answer(FindCoordinatorResponse(Error.GROUP_AUTHORIZATION_FAILED))
    driver.poll()
    assert driver.raised == [Error.GROUP_AUTHORIZATION_FAILED]
    driver.poll()
    assert driver.count(FindCoordinator) == 2


@reaches("client.coordinator.lost", "member.lost", "client.join.backoff", "client.response.late")
def test_a_lost_connection_keeps_generation_and_id(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.heartbeat(Error.REBALANCE_IN_PROGRESS)
    driver.poll()
    driver.returns()
    driver.poll()
    asked = driver.last(JoinGroup).handle
    driver.give(CoordinatorDisconnected())
    driver.give(ResponseArrived(asked, build(JoinResponse, NONE, 9, member="x", leader="y")))
    assert (driver.client.member.id, driver.client.member.generation) == ("a", 1)
    driver.find()
    driver.poll()
    assert driver.count(JoinGroup) == 2
    driver.now += 100
    driver.poll()
    assert driver.request(JoinGroup).core.member == "a"


@reaches("client.request.timeout")
def test_a_join_is_waited_for_longer_than_the_rebalance_timeout(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.now += 304_999
    driver.wait(0)
    driver.wait(1, cycle=1)
    assert driver.client.coordinator is None
    assert driver.client.member.state is MemberState.PREPARING_REBALANCE


def test_requests_that_are_given_up_at_one_moment_are_one_lost_connection() -> None:
    driver = ClientDriver(BY_HAND)
    driver.become_stable(P0, P1)
    driver.poll()
    driver.give(AskHeartbeat())
    driver.give(AskHeartbeat())
    assert len({request.deadline for request in driver.client.unanswered}) == 1 < len(driver.client.unanswered)
    driver.now += driver.client.settings.request_timeout
    driver.give(TimePassed())
    assert driver.count(FindCoordinator) == 2


@reaches("client.request.timeout", "client.lookup.failed")
def test_a_lookup_without_a_response_is_repeated(driver: ClientDriver) -> None:
    driver.subscribe()
    driver.poll()
    driver.wait(30_100, cycle=15_000)
    driver.now += 100
    driver.poll()
    assert driver.count(FindCoordinator) == 2


@reaches("client.response.late")
def test_a_response_that_nobody_waits_for_changes_nothing(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    before = driver.client
    driver.give(ResponseArrived(999, HeartbeatResponse(Error.UNKNOWN_MEMBER_ID)))
    assert driver.client == before


@reaches("client.heartbeat.moved", "client.worker.lookup")
def test_the_worker_finds_the_coordinator_again_by_itself(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.heartbeat(Error.NOT_COORDINATOR)
    driver.wait(100)
    driver.answer(FindCoordinatorResponse(NONE, 2), FindCoordinator)
    driver.wait(3_000)
    assert driver.client.coordinator == 2
    assert driver.request(Heartbeat).core.generation == 1
    assert driver.count(JoinGroup) == 1


# --- Unsubscribing and closing: the last commit, the callback, LeaveGroup.


@reaches("client.unsubscribe", "client.leave.given-up", "client.unsubscribe.leave", "client.leave.send")
def test_unsubscribing_calls_back_leaves_and_allows_another_subscription(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.give(Unsubscribe())
    assert driver.count(LeaveGroup) == 0
    driver.returns()
    assert driver.request(LeaveGroup).core.entries == (("a", None),)
    assert driver.assignment() == () and driver.client.member.id is None
    driver.subscribe()
    driver.poll()
    assert driver.request(JoinGroup).core.member is None


@reaches("client.close", "client.close.commit", "client.close.leave", "client.leave.revoke", "client.leave.answered")
def test_closing_commits_calls_back_and_leaves(driver: ClientDriver) -> None:
    driver.become_consumer(P0, offset=6)
    driver.give(Close())
    assert driver.callbacks[-1].kind.value == "assigned"
    driver.answer_commit(Error.GROUP_AUTHORIZATION_FAILED)
    assert driver.calls()[-1] == ("revoked", (P0,)) and driver.raised == []
    driver.returns()
    driver.answer_leave(Error.UNKNOWN_MEMBER_ID)
    assert driver.client.closing is Closing.CLOSED
    assert driver.count(LeaveGroup) == 1


@reaches("client.close", "client.callback.none")
def test_a_callback_that_returns_while_the_client_closes_goes_on_with_nothing(driver: ClientDriver) -> None:
    driver.become_consumer(P0, offset=6)
    driver.give(EnforceRebalance())
    driver.poll()
    driver.answer_commit()
    driver.poll()
    assert driver.calls()[-1] == ("revoked", (P0,))
    driver.give(ReturnRecords(P0, 6, 2))
    driver.give(Close())
    driver.returns()
    assert driver.assignment() == (P0,) and driver.count(JoinGroup) == 1


def test_closing_does_not_wait_for_its_commit_for_ever() -> None:
    driver = ClientDriver()
    driver.become_consumer(P0)
    driver.give(Close())
    driver.now += 60_000
    driver.give(TimePassed())
    assert driver.calls()[-1] == ("revoked", (P0,))


@reaches("client.leave.silent", "client.close.leave", settings=STATIC)
def test_a_static_member_leaves_without_a_word(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.give(Close())
    driver.returns()
    assert driver.client.closing is Closing.CLOSED and driver.count(LeaveGroup) == 0


@reaches("client.leave.silent", "member.leave", settings=BY_HAND)
def test_a_member_that_does_not_know_the_coordinator_leaves_without_a_word(driver: ClientDriver) -> None:
    driver.become_stable()
    driver.give(CoordinatorDisconnected())
    driver.give(Close())
    assert driver.client.closing is Closing.CLOSED and driver.count(LeaveGroup) == 0


@reaches("client.leave.send")
def test_a_member_with_a_required_id_leaves_with_it(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.answer_join(Error.MEMBER_ID_REQUIRED, "a")
    driver.poll()
    driver.give(Close())
    assert driver.request(LeaveGroup).core.entries == (("a", None),)


@reaches("client.leave.raised", settings=BY_HAND)
def test_a_listener_that_raises_does_not_keep_the_client_in_the_group(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.give(Close())
    driver.returns(raised=True)
    assert driver.raised == [Problem.LISTENER] and driver.count(LeaveGroup) == 1


@reaches("client.poll.closed", "client.close.again", "member.leave.unjoined")
def test_a_closed_client_refuses_to_work(driver: ClientDriver) -> None:
    driver.give(Close())
    driver.poll()
    driver.subscribe()
    driver.give(Unsubscribe())
    driver.give(Close())
    assert driver.raised == [Problem.CLOSED] * 3 and driver.sent == []
    driver.give(Restart())
    driver.start_joining()
    assert driver.count(JoinGroup) == 1


def test_closing_without_leaving_is_a_choice_of_the_user() -> None:
    driver = ClientDriver(ClientSettings(auto_commit=False, leaves_on_close=False))
    driver.become_stable(P0)
    driver.give(Close())
    driver.returns()
    assert driver.count(LeaveGroup) == 0


def test_closing_sends_no_commit_without_a_generation() -> None:
    driver = ClientDriver()
    driver.become_consumer(P0)
    driver.heartbeat(Error.UNKNOWN_MEMBER_ID)
    driver.give(Close())
    assert driver.count(OffsetCommit) == 0
    assert driver.calls()[-1] == ("lost", (P0,))


# --- Positions after an assignment, and the records that a poll may return.

STRICT = ClientSettings(auto_commit=False, reset_policy=ResetPolicy.NONE)


def offset_of(driver: ClientDriver, partition: Partition) -> int | None:
    position = position_of(driver.client, partition)
    assert position is not None
    return position.offset


@reaches("client.offsets.fetch", "client.offsets.committed", "client.offsets.reset", "client.offsets.start")
def test_a_partition_starts_at_its_committed_offset_or_by_the_reset_policy(driver: ClientDriver) -> None:
    driver.become_stable(P0, P1)
    driver.poll()
    request = driver.request(OffsetFetch)
    assert (request.partitions, request.require_stable) == ((P0, P1), True)
    driver.answer(OffsetFetchResponse({P0: Offset(7), P1: NO_OFFSET}), OffsetFetch)
    assert (offset_of(driver, P0), offset_of(driver, P1)) == (7, None)
    asked = driver.request(ListOffsets)
    assert (asked.partitions, asked.policy) == ((P1,), "latest")
    driver.answer(ListOffsetsResponse(((P1, 42),)), ListOffsets)
    assert offset_of(driver, P1) == 42
    driver.poll()
    assert driver.count(OffsetFetch) == 1


@reaches("client.offsets.no-policy", settings=STRICT)
def test_without_a_policy_a_missing_offset_reaches_the_application(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.poll()
    driver.answer(OffsetFetchResponse({P0: NO_OFFSET}), OffsetFetch)
    driver.poll()
    assert driver.raised == [Problem.NO_OFFSET]


@reaches("client.offsets.unstable", "client.offsets.retry", "client.offsets.backoff")
def test_offsets_that_may_be_there_soon_are_asked_for_again(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    for response in (
        OffsetFetchResponse({P0: None}),
        OffsetFetchResponse(error=Error.COORDINATOR_LOAD_IN_PROGRESS),
        OffsetFetchResponse(error=Error.UNSTABLE_OFFSET_COMMIT),
    ):
        driver.poll()
        count = driver.count(OffsetFetch)
        driver.answer(response, OffsetFetch)
        driver.poll()
        assert driver.count(OffsetFetch) == count
        driver.now += 100
    driver.poll()
    assert driver.count(OffsetFetch) == 4


@reaches("client.offsets.moved")
def test_offsets_are_asked_for_at_the_new_coordinator(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.poll()
    driver.answer(OffsetFetchResponse(error=Error.NOT_COORDINATOR), OffsetFetch)
    driver.poll()
    driver.answer(FindCoordinatorResponse(NONE, 2), FindCoordinator)
    driver.now += 100
    driver.poll()
    assert driver.count(OffsetFetch) == 2


def test_an_offset_fetch_that_was_cut_off_is_repeated_for_what_is_still_missing() -> None:
    driver = ClientDriver(BY_HAND)
    driver.become_stable(P0)
    driver.poll()
    driver.give(CoordinatorDisconnected())
    driver.find()
    driver.poll()
    assert driver.request(OffsetFetch).partitions == (P0,) and driver.count(OffsetFetch) == 2


@reaches("client.offsets.fatal")
def test_other_errors_of_an_offset_fetch_are_raised(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.poll()
    driver.answer(OffsetFetchResponse(error=Error.GROUP_AUTHORIZATION_FAILED), OffsetFetch)
    driver.poll()
    assert driver.raised == [Error.GROUP_AUTHORIZATION_FAILED]


@reaches("client.offsets.late", "client.position.seek")
def test_a_position_that_was_set_meanwhile_stays(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.poll()
    driver.give(Seek(P0, 99))
    driver.answer(OffsetFetchResponse({P0: Offset(7)}), OffsetFetch)
    assert offset_of(driver, P0) == 99


@reaches("client.offsets.retry", "client.request.timeout")
def test_a_list_offsets_without_a_response_is_repeated(driver: ClientDriver) -> None:
    driver.give(AssignManually((P0,)))
    driver.find()
    driver.poll()
    driver.answer(OffsetFetchResponse({P0: NO_OFFSET}), OffsetFetch)
    driver.now += 30_000
    driver.give(TimePassed())
    driver.now += 100
    driver.poll()
    assert driver.count(OffsetFetch) == 2


@reaches("client.records.returned", "client.records.dropped", "client.position.pause")
def test_only_records_at_the_position_are_returned(driver: ClientDriver) -> None:
    driver.become_consumer(P0, offset=5)
    for first, following, expected in ((4, 8, 5), (5, 8, 8), (5, 8, 8), (8, 20, 20)):
        driver.give(ReturnRecords(P0, first, following))
        assert offset_of(driver, P0) == expected
    driver.give(PausePartition(P0))
    driver.give(ReturnRecords(P0, 20, 21))
    driver.give(PausePartition(P0, False))
    assert offset_of(driver, P0) == 20
    driver.subscribe("u")
    driver.give(ReturnRecords(P0, 20, 21))
    assert offset_of(driver, P0) == 20


@reaches("client.position.not-assigned", "client.records.dropped")
def test_what_is_not_assigned_has_no_position(driver: ClientDriver) -> None:
    driver.give(Seek(P0, 3))
    driver.give(PausePartition(P0))
    driver.give(ReturnRecords(P0, 0, 1))
    assert driver.client.positions == ()
