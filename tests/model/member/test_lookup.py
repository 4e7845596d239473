"""The client and its coordinator: lookups, lost connections, timeouts."""

from fencepost.model.classic.core.state import HeartbeatResponse, JoinResponse
from fencepost.model.classic.member.client import FindCoordinator, FindCoordinatorResponse
from fencepost.model.classic.member.member import MemberState
from fencepost.model.classic.member.step import CoordinatorDisconnected, ResponseArrived
from fencepost.model.classic.messages import Heartbeat, JoinGroup
from fencepost.model.errors import Error
from tests.support.client_driver import NONE, P0, ClientDriver, reaches
from tests.support.plain_values import build


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
