"""Positions after an assignment, and the records that a poll may return."""

from fencepost.model.classic.member.client import (
    FindCoordinator,
    FindCoordinatorResponse,
    ListOffsets,
    ListOffsetsResponse,
    Problem,
    position_of,
)
from fencepost.model.classic.member.settings import ClientSettings, ResetPolicy
from fencepost.model.classic.member.step import (
    AssignManually,
    CoordinatorDisconnected,
    PausePartition,
    ReturnRecords,
    Seek,
    TimePassed,
)
from fencepost.model.errors import Error
from fencepost.model.groups.messages import NO_OFFSET, Offset, OffsetFetch, OffsetFetchResponse, Partition
from tests.support.client_driver import BY_HAND, NONE, P0, P1, ClientDriver, reaches

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
