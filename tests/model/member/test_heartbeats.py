"""Heartbeats, the session as the client sees it, and the poll interval."""

from fencepost.model.classic.core.state import HeartbeatRequest, HeartbeatResponse
from fencepost.model.classic.member.client import FindCoordinator
from fencepost.model.classic.member.settings import ClientDialect, ClientSettings
from fencepost.model.classic.member.step import (
    AskHeartbeat,
    AssignManually,
    Close,
    EnforceRebalance,
    ResponseArrived,
    TimePassed,
)
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup
from fencepost.model.errors import Error
from tests.support.client_driver import BY_HAND, COOPERATIVE_BY_HAND, NONE, P0, P1, STATIC, ClientDriver, reaches

IN_POLL = ClientSettings(dialect=ClientDialect(heartbeats_in_poll=True), auto_commit=False)
QUICK = ClientSettings(session_timeout=10_000, max_poll_interval=5_000, auto_commit=False)
QUICK_STATIC = ClientSettings(session_timeout=10_000, max_poll_interval=5_000, instance=STATIC.instance)


@reaches("member.heartbeat", "member.heartbeat.answered", "client.worker.sleep", settings=STATIC)
def test_a_stable_member_heartbeats_at_its_interval(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    for _ in range(3):
        driver.heartbeat()
    driver.wait(2_900)
    assert driver.count(Heartbeat) == 3
    core: HeartbeatRequest = driver.request(Heartbeat).core
    assert (core.generation, core.member, core.instance) == (1, "a", "i")
    assert driver.now == 3 * 3_000 + 2_900


@reaches("member.heartbeat", "client.worker.idle")
def test_heartbeats_flow_between_join_and_sync_and_not_before(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.wait(20_000)
    assert driver.count(Heartbeat) == 0
    driver.succeed_join(generation=3)
    driver.wait(3_000)
    assert driver.request(Heartbeat).core.generation == 3


@reaches("member.heartbeat.rebalance", settings=BY_HAND)
def test_a_rebalance_is_joined_by_the_next_poll_and_heartbeats_go_on_until_then(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.heartbeat(Error.REBALANCE_IN_PROGRESS)
    driver.heartbeat(Error.REBALANCE_IN_PROGRESS)
    assert driver.count(JoinGroup) == 1
    driver.poll()
    assert driver.calls()[-1] == ("revoked", (P0,))
    driver.wait(3_000)
    assert driver.count(Heartbeat) == 3
    driver.returns()
    driver.poll()
    assert driver.request(JoinGroup).core.member == "a"


def test_a_member_that_joins_because_of_others_says_so() -> None:
    driver = ClientDriver(BY_HAND)
    driver.become_stable(P0)
    driver.heartbeat(Error.REBALANCE_IN_PROGRESS)
    driver.poll()
    driver.returns()
    driver.poll()
    assert driver.last(JoinGroup).reason == "the group is already rebalancing"


@reaches("client.heartbeat.already-joining")
def test_a_rebalance_is_no_news_to_a_member_that_is_joining(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.succeed_join()
    driver.heartbeat(Error.REBALANCE_IN_PROGRESS)
    driver.succeed_sync(P0)
    driver.poll()
    driver.returns()
    assert not driver.client.member.rejoins


@reaches("member.illegal-generation", "member.unknown-member", "client.prepare.lost", settings=COOPERATIVE_BY_HAND)
def test_a_reset_member_loses_everything_and_joins(driver: ClientDriver) -> None:
    for error, id in ((Error.ILLEGAL_GENERATION, "a"), (Error.UNKNOWN_MEMBER_ID, None)):
        one = driver if id else ClientDriver(COOPERATIVE_BY_HAND)
        one.become_stable(P0, P1)
        one.heartbeat(error)
        one.poll()
        assert one.calls()[-1] == ("lost", (P0, P1))
        assert one.assignment() == (P0, P1)  # the listener sees the old assignment
        one.returns()
        one.poll()
        assert one.request(JoinGroup).core.member == id
        driver.rules += one.rules


@reaches("member.heartbeat.fenced", "client.poll.raise", settings=STATIC)
def test_a_fenced_member_is_told_so_by_the_next_poll(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.heartbeat(Error.FENCED_INSTANCE_ID)
    driver.poll()
    assert driver.raised == [Error.FENCED_INSTANCE_ID]
    driver.poll()
    assert driver.calls()[-1] == ("lost", (P0,))


@reaches("member.late-answer", settings=BY_HAND)
def test_a_late_answer_to_an_old_generation_changes_nothing(driver: ClientDriver) -> None:
    for error in (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
        driver.client = ClientDriver(BY_HAND).client
        driver.become_stable(P0)
        driver.wait(3_000)
        late = driver.last(Heartbeat).handle
        driver.give(EnforceRebalance())
        driver.poll()
        driver.returns()
        driver.poll()
        driver.complete(P0, generation=2)
        member = driver.client.member
        driver.give(ResponseArrived(late, HeartbeatResponse(error)))
        assert driver.client.member == member


@reaches("client.heartbeat.failed")
def test_a_failed_heartbeat_is_repeated_soon_and_costs_nothing(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    for error in (Error.GROUP_AUTHORIZATION_FAILED, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.UNKNOWN_SERVER_ERROR):
        driver.heartbeat(error)
        before = driver.now
        driver.heartbeat()
        assert driver.now - before == 100
    driver.poll()
    assert driver.raised == [] and driver.calls() == [("assigned", (P0,))]


@reaches("client.worker.session-expired", settings=ClientSettings(session_timeout=10_000))
def test_silence_for_a_session_makes_the_client_look_for_the_coordinator(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.wait(10_200)
    assert isinstance(driver.sent[-1].request, FindCoordinator)
    assert driver.client.member.generation == 1
    assert (driver.count(LeaveGroup), driver.count(JoinGroup)) == (0, 1)


@reaches("client.worker.poll-expired", "member.leave", "client.leave.send", "client.prepare.lost", settings=QUICK)
def test_a_member_that_is_not_polled_leaves(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.wait(5_000)
    assert driver.last(LeaveGroup).reason == "consumer poll timeout has expired."
    assert driver.request(LeaveGroup).core.entries == (("a", None),)
    beats = driver.count(Heartbeat)
    driver.wait(20_000)
    assert driver.count(Heartbeat) == beats
    driver.poll()
    assert driver.calls()[-1] == ("lost", (P0,))
    driver.returns()
    driver.poll()
    assert driver.request(JoinGroup).core.member is None


@reaches("client.worker.poll-expired", "client.leave.silent", settings=QUICK_STATIC)
def test_a_static_member_that_is_not_polled_falls_silent(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.wait(20_000)
    assert (driver.count(LeaveGroup), driver.count(Heartbeat)) == (0, 1)
    driver.poll()
    driver.returns()
    driver.poll()
    core = driver.request(JoinGroup).core
    assert (core.member, core.instance) == (None, "i")


def test_a_member_that_left_before_a_poll_took_its_assignment_joins_again() -> None:
    driver = ClientDriver(QUICK_STATIC)
    driver.start_joining()
    driver.succeed_join()
    driver.succeed_sync(P0)
    driver.wait(20_000)
    driver.poll()
    assert driver.count(JoinGroup) == 2


def test_a_single_long_poll_is_no_absence() -> None:
    driver = ClientDriver(ClientSettings(max_poll_interval=5_000, auto_commit=False))
    driver.become_consumer(P0)
    driver.poll(timeout=12_000)
    driver.wait(12_000)
    driver.wait(4_900)
    assert driver.count(LeaveGroup) == 0
    driver.wait(100)
    assert driver.count(LeaveGroup) == 1


def test_polling_counts_while_the_coordinator_is_unknown() -> None:
    driver = ClientDriver(QUICK)
    driver.become_stable(P0)
    driver.heartbeat(Error.NOT_COORDINATOR)
    for _ in range(20):
        driver.wait(1_000)
        driver.poll()
    assert driver.count(LeaveGroup) == 0


def test_heartbeats_flow_while_a_callback_runs() -> None:
    driver = ClientDriver(BY_HAND)
    driver.start_joining()
    driver.succeed_join()
    driver.succeed_sync(P0)
    driver.poll()
    assert driver.client.callback is not None
    beats = driver.count(Heartbeat)
    for _ in range(20):
        driver.heartbeat()
    assert driver.count(Heartbeat) == beats + 20


def test_a_join_restarts_the_clocks() -> None:
    driver = ClientDriver(QUICK)
    driver.start_joining()
    driver.now += 9_000
    driver.succeed_join()
    driver.give(TimePassed())
    assert driver.count(LeaveGroup) == 0
    assert (driver.client.clocks.session, driver.client.clocks.poll) == (19_000, 14_000)


@reaches("client.worker.off")
def test_no_heartbeats_without_a_group(driver: ClientDriver) -> None:
    driver.give(AssignManually((P0,)))
    driver.wait(10_000)
    assert driver.count(Heartbeat) == 0
    other = ClientDriver(BY_HAND)
    other.become_stable()
    other.give(Close())
    other.wait(10_000)
    assert other.count(Heartbeat) == 0


@reaches("client.worker.in-poll", "member.heartbeat", settings=IN_POLL)
def test_before_kip_62_only_polls_send_heartbeats(driver: ClientDriver) -> None:
    driver.become_consumer(P0)
    driver.wait(60_000, cycle=1_000)
    assert driver.count(Heartbeat) == 0
    driver.poll()
    driver.poll()
    assert driver.count(Heartbeat) == 1
    driver.answer(HeartbeatResponse(NONE), Heartbeat)


@reaches("client.heartbeat.asked", "member.nothing", settings=IN_POLL)
def test_the_application_may_ask_for_a_heartbeat(driver: ClientDriver) -> None:
    driver.give(AskHeartbeat())
    driver.become_stable(P0)
    driver.give(AskHeartbeat())
    assert driver.count(Heartbeat) == 1
    driver.answer(HeartbeatResponse(Error.UNKNOWN_MEMBER_ID), Heartbeat)
    driver.give(AskHeartbeat())
    assert driver.count(Heartbeat) == 1
