"""Unsubscribing and closing: the last commit, the callback, LeaveGroup."""

from fencepost.model.classic.member.client import Closing, Problem
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.model.classic.member.step import Close, CoordinatorDisconnected, Restart, TimePassed, Unsubscribe
from fencepost.model.classic.messages import JoinGroup, LeaveGroup
from fencepost.model.errors import Error
from fencepost.model.groups.messages import OffsetCommit
from tests.support.client_driver import BY_HAND, P0, STATIC, ClientDriver, reaches


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
