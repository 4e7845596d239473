"""The rebalance listener: which callback is called when, its partitions, and its errors."""

from fencepost.model.classic.core.state import HeartbeatResponse
from fencepost.model.classic.member.client import Problem, position_of
from fencepost.model.classic.member.settings import COOPERATIVE_STICKY, ClientSettings
from fencepost.model.classic.member.step import (
    AssignManually,
    Close,
    CommitOffsets,
    EnforceRebalance,
    PausePartition,
    Poll,
    ReturnRecords,
    Unsubscribe,
)
from fencepost.model.classic.messages import Heartbeat, JoinGroup
from fencepost.model.errors import Error
from fencepost.model.groups.messages import OffsetCommit, OffsetFetch
from tests.support.client_driver import (
    BY_HAND,
    COOPERATIVE,
    COOPERATIVE_BY_HAND,
    P0,
    P1,
    P2,
    ClientDriver,
    reaches,
)

WIDE = ClientSettings(strategies=(COOPERATIVE_STICKY,), auto_commit=False, max_poll_interval=10_000)


def rejoin(driver: ClientDriver) -> None:
    """A stable member asks for a rebalance, and its JoinGroup is out; callbacks return at once."""
    driver.give(EnforceRebalance())
    driver.poll()
    while driver.client.callback is not None:
        driver.returns()
        driver.poll()


@reaches("client.prepare.nothing", "client.complete.assign", "client.complete.done")
def test_the_first_join_calls_nothing_but_assigned(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    assert driver.calls() == [("assigned", (P0,))]


@reaches("client.prepare.revoke-all", "client.prepare.given-up", settings=BY_HAND)
def test_an_eager_member_gives_everything_up_before_it_joins(driver: ClientDriver) -> None:
    driver.become_stable(P0, P1)
    driver.give(EnforceRebalance())
    driver.poll()
    assert driver.calls()[-1] == ("revoked", (P0, P1))
    assert driver.assignment() == (P0, P1) and driver.count(JoinGroup) == 1
    driver.returns()
    assert driver.assignment() == ()
    driver.poll()
    driver.complete(P1, generation=2)
    assert driver.calls()[-1] == ("assigned", (P1,))


@reaches("client.prepare.revoke-all", settings=BY_HAND)
def test_an_eager_member_without_partitions_is_told_of_the_empty_set(driver: ClientDriver) -> None:
    driver.become_stable()
    driver.give(EnforceRebalance())
    driver.poll()
    assert driver.calls()[-1] == ("revoked", ())


@reaches("client.prepare.keep", "client.complete.revoke", "client.complete.revoked", settings=COOPERATIVE_BY_HAND)
def test_a_cooperative_member_gives_up_what_it_is_not_assigned_any_more(driver: ClientDriver) -> None:
    driver.become_consumer(P0, P1, offset=5)
    rejoin(driver)
    assert driver.subscription().owned == (P0, P1)
    driver.succeed_join(generation=2)
    driver.succeed_sync(P1, P2)
    driver.poll()
    assert driver.calls()[-1] == ("revoked", (P0,))
    assert driver.assignment() == (P0, P1)
    driver.returns()
    assert driver.calls()[-1] == ("assigned", (P2,))
    assert driver.assignment() == (P1, P2)
    driver.returns()
    driver.poll()
    subscription = driver.subscription()
    assert (subscription.owned, subscription.generation) == ((P1, P2), 2)


@reaches("client.complete.assign", settings=COOPERATIVE_BY_HAND)
def test_a_cooperative_member_that_gives_nothing_up_does_not_rejoin(driver: ClientDriver) -> None:
    driver.become_consumer(P0, offset=5)
    rejoin(driver)
    driver.complete(P0, generation=2)
    driver.poll()
    assert driver.calls()[-1] == ("assigned", ())
    assert driver.count(JoinGroup) == 2 and not driver.client.member.rejoins


def test_retained_partitions_keep_position_and_pause() -> None:
    driver = ClientDriver(COOPERATIVE_BY_HAND)
    driver.become_consumer(P0, offset=5)
    driver.give(PausePartition(P0))
    rejoin(driver)
    driver.complete(P0, P1, generation=2)
    kept = position_of(driver.client, P0)
    assert kept is not None and (kept.offset, kept.is_paused) == (5, True)
    driver.poll()
    assert driver.request(OffsetFetch).partitions == (P1,)


def test_owned_partitions_are_returned_during_a_cooperative_rebalance() -> None:
    driver = ClientDriver(COOPERATIVE_BY_HAND)
    driver.become_consumer(P0)
    rejoin(driver)
    driver.give(ReturnRecords(P0, 0, 7))
    kept = position_of(driver.client, P0)
    assert kept is not None and kept.offset == 7


@reaches("client.prepare.revoke-unsubscribed", settings=COOPERATIVE_BY_HAND)
def test_a_cooperative_member_revokes_topics_that_left_its_subscription(driver: ClientDriver) -> None:
    driver.subscribe("t", "u")
    driver.find()
    driver.poll()
    driver.complete(P0, ("u", 0))
    driver.subscribe("u")
    driver.poll()
    assert driver.calls()[-1] == ("revoked", (P0,))
    driver.returns()
    driver.poll()
    assert driver.subscription().owned == (("u", 0),)


@reaches("client.prepare.raised", settings=BY_HAND)
def test_a_listener_that_raises_before_the_join_is_not_called_again(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.give(EnforceRebalance())
    driver.poll()
    driver.returns(raised=True)
    assert driver.raised == [Problem.LISTENER] and driver.assignment() == ()
    driver.poll()
    assert driver.count(JoinGroup) == 2
    assert driver.calls().count(("revoked", (P0,))) == 1


@reaches("client.complete.raised", settings=COOPERATIVE_BY_HAND)
def test_a_listener_that_raises_after_the_sync_is_still_told_the_rest(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    rejoin(driver)
    driver.succeed_join(generation=2)
    driver.succeed_sync(P1)
    driver.poll()
    driver.returns(raised=True)
    assert driver.raised == [] and driver.calls()[-1] == ("assigned", (P1,))
    driver.returns()
    assert driver.raised == [Problem.LISTENER] and driver.assignment() == (P1,)


@reaches("client.poll.in-callback", "client.callback.none")
def test_a_poll_inside_a_callback_does_nothing(driver: ClientDriver) -> None:
    driver.returns()
    driver.start_joining()
    driver.succeed_join()
    driver.succeed_sync(P0)
    driver.poll()
    callback = driver.client.callback
    driver.give(Poll())
    assert driver.client.callback is callback is not None


def test_a_member_that_is_reset_during_a_callback_loses_what_it_was_given() -> None:
    driver = ClientDriver(COOPERATIVE_BY_HAND)
    driver.start_joining()
    driver.succeed_join()
    driver.succeed_sync(P0)
    driver.poll()
    driver.wait(3_000)
    driver.answer(HeartbeatResponse(Error.UNKNOWN_MEMBER_ID), Heartbeat)
    driver.returns()
    driver.poll()
    assert driver.calls() == [("assigned", (P0,)), ("lost", (P0,))]


def test_a_cooperative_member_that_is_reset_while_it_gives_topics_up_loses_the_rest() -> None:
    driver = ClientDriver(WIDE)
    driver.subscribe("t", "u")
    driver.find()
    driver.poll()
    driver.complete(P0, ("u", 0))
    driver.subscribe("u")
    driver.poll()
    driver.wait(10_000)
    driver.returns()
    driver.poll()
    assert driver.calls()[-2:] == [("revoked", (P0,)), ("lost", (("u", 0),))]


def test_commits_in_callbacks_carry_the_generation_of_their_place() -> None:
    driver = ClientDriver(COOPERATIVE_BY_HAND)
    driver.become_consumer(P0, P1, offset=4)
    rejoin(driver)
    driver.succeed_join(generation=2)
    driver.succeed_sync(P1)
    driver.poll()
    assert driver.calls()[-1] == ("revoked", (P0,))
    driver.give(CommitOffsets())
    request = driver.request(OffsetCommit)
    assert (request.core.generation, [one for one, _ in request.offsets]) == (2, [P0, P1])
    eager = ClientDriver(BY_HAND)
    eager.become_consumer(P0, offset=4)
    eager.give(EnforceRebalance())
    eager.poll()
    eager.give(CommitOffsets())
    assert eager.request(OffsetCommit).core.generation == 1


@reaches("client.complete.commit-given-up", settings=COOPERATIVE)
def test_auto_commit_covers_what_a_cooperative_rebalance_takes_away(driver: ClientDriver) -> None:
    driver.become_consumer(P0, P1, offset=4)
    driver.give(EnforceRebalance())
    driver.poll()
    driver.answer_commit()
    driver.poll()
    driver.give(ReturnRecords(P0, 4, 9))
    driver.succeed_join(generation=2)
    driver.succeed_sync(P1)
    driver.poll()
    request = driver.request(OffsetCommit)
    assert (request.core.generation, [(one, offset.offset) for one, offset in request.offsets]) == (2, [(P0, 9)])


@reaches("client.prepare.lost", settings=ClientSettings(auto_commit=False, hears_lost=False))
def test_a_listener_that_does_not_know_lost_partitions_hears_of_revoked_ones(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.heartbeat(Error.UNKNOWN_MEMBER_ID)
    driver.poll()
    assert driver.calls()[-1] == ("revoked", (P0,))
    driver.returns()
    driver.poll()
    assert driver.request(JoinGroup).core.member is None


@reaches("client.assign")
def test_a_manual_assignment_calls_nobody(driver: ClientDriver) -> None:
    driver.give(AssignManually((P0, P1)))
    driver.poll()
    driver.give(AssignManually((P1,)))
    assert driver.callbacks == [] and driver.assignment() == (P1,)


@reaches("client.leave.revoke", "client.leave.lose", "client.leave.nothing-owned", settings=COOPERATIVE_BY_HAND)
def test_unsubscribing_revokes_in_a_stable_member_and_loses_in_any_other(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.give(Unsubscribe())
    assert driver.calls()[-1] == ("revoked", (P0,))
    driver.returns()
    for prepare in (rejoin, lambda one: one.heartbeat(Error.UNKNOWN_MEMBER_ID)):
        other = ClientDriver(COOPERATIVE_BY_HAND)
        other.become_stable(P0)
        prepare(other)
        other.give(Unsubscribe())
        assert other.calls()[-1] == ("lost", (P0,))
        driver.rules += other.rules
    nobody = ClientDriver()
    nobody.give(Close())
    assert nobody.callbacks == []
    driver.rules += nobody.rules
