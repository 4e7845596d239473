"""JoinGroup and SyncGroup: their fields, and the reaction to every response."""

import pytest

from fencepost.model.assignors.consumer_protocol import decode_assignment, encode_assignment
from fencepost.model.classic.core.state import JoinResponse, SyncResponse
from fencepost.model.classic.member.client import FindCoordinator, FindCoordinatorResponse, Problem
from fencepost.model.classic.member.settings import (
    COOPERATIVE_STICKY,
    RANGE,
    STICKY,
    ClientDialect,
    ClientSettings,
    RebalanceProtocol,
    Strategy,
    UnusableClientSettings,
)
from fencepost.model.classic.member.step import (
    EnforceRebalance,
    MetadataArrived,
    ResponseArrived,
    Restart,
    Subscribe,
    Unsubscribe,
)
from fencepost.model.classic.messages import JoinGroup, LeaveGroup, SyncGroup
from fencepost.model.errors import Error
from tests.support.client_driver import (
    BY_HAND,
    COOPERATIVE,
    COOPERATIVE_BY_HAND,
    EAGER,
    NONE,
    P0,
    P1,
    STATIC,
    ClientDriver,
    reaches,
    view,
)
from tests.support.plain_values import build

FATAL_TO_JOIN = (
    Error.INCONSISTENT_GROUP_PROTOCOL,
    Error.INVALID_SESSION_TIMEOUT,
    Error.INVALID_GROUP_ID,
    Error.GROUP_AUTHORIZATION_FAILED,
    Error.GROUP_MAX_SIZE_REACHED,
    Error.UNSUPPORTED_VERSION,
    Error.UNKNOWN_SERVER_ERROR,
)


@reaches("member.join", settings=STATIC)
def test_join_carries_what_is_configured(driver: ClientDriver) -> None:
    driver.start_joining()
    core = driver.request(JoinGroup).core
    assert (core.member, core.instance, core.protocol_type) == (None, "i", "consumer")
    assert (core.session_timeout, core.rebalance_timeout) == (45_000, 300_000)
    assert [protocol.name for protocol in core.protocols] == ["range", "cooperative-sticky"]
    subscription = driver.subscription()
    assert (subscription.topics, subscription.owned, subscription.generation) == (("t",), (), -1)


@reaches("member.join.id-required")
def test_a_required_id_is_used_without_a_callback(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.answer_join(Error.MEMBER_ID_REQUIRED, "a")
    driver.poll()
    assert driver.request(JoinGroup).core.member == "a"
    assert driver.callbacks == []


@reaches("member.join.unknown-member", settings=BY_HAND)
def test_an_unknown_id_is_dropped(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.give(EnforceRebalance())
    driver.poll()
    driver.returns()
    driver.poll()
    driver.answer_join(Error.UNKNOWN_MEMBER_ID)
    driver.poll()
    assert driver.request(JoinGroup).core.member is None
    assert driver.calls()[-1] == ("revoked", (P0,))  # an eager member owns nothing that it could lose here


@reaches("member.join.unknown-member", "client.prepare.lost", settings=COOPERATIVE_BY_HAND)
def test_a_cooperative_member_that_is_unknown_claims_nothing(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.give(EnforceRebalance())
    driver.poll()
    assert driver.subscription().owned == (P0,)
    driver.answer_join(Error.UNKNOWN_MEMBER_ID)
    driver.poll()
    assert driver.calls()[-1] == ("lost", (P0,))
    driver.returns()
    driver.poll()
    assert (driver.subscription().owned, driver.subscription().generation) == ((), -1)


@reaches("client.join.rebalance")
def test_a_rebalance_in_progress_joins_again_at_once(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.answer_join(Error.MEMBER_ID_REQUIRED, "a")
    driver.poll()
    driver.answer_join(Error.REBALANCE_IN_PROGRESS)
    driver.poll()
    assert driver.count(JoinGroup) == 3
    assert driver.request(JoinGroup).core.member == "a"


@reaches("client.join.moved")
def test_a_coordinator_that_moved_is_looked_up(driver: ClientDriver) -> None:
    for error in (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE):
        driver = driver if error is Error.NOT_COORDINATOR else ClientDriver()
        driver.start_joining()
        driver.answer_join(error)
        driver.poll()
        assert isinstance(driver.sent[-1].request, FindCoordinator)


@reaches("client.join.loading", "client.join.backoff")
def test_a_coordinator_that_loads_is_asked_again_after_a_backoff(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.answer_join(Error.COORDINATOR_LOAD_IN_PROGRESS)
    driver.poll()
    assert driver.count(JoinGroup) == 1
    driver.now += 100
    driver.poll()
    assert driver.count(JoinGroup) == 2
    assert driver.count(FindCoordinator) == 1


@reaches("client.join.fatal")
def test_a_fatal_error_reaches_the_application_and_a_later_poll_tries_again(driver: ClientDriver) -> None:
    for error in FATAL_TO_JOIN:
        driver.client = ClientDriver().client
        driver.start_joining()
        joins = driver.count(JoinGroup)
        driver.answer_join(error)
        driver.poll()
        assert driver.raised[-1] is error
        assert driver.count(JoinGroup) == joins
        driver.poll()
        assert driver.count(JoinGroup) == joins + 1


@reaches("client.join.fatal")
def test_another_protocol_type_is_an_error(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.answer(build(JoinResponse, NONE, 1, "connect", "range", "x", "a"), JoinGroup)
    driver.poll()
    assert driver.raised == [Error.INCONSISTENT_GROUP_PROTOCOL]
    assert driver.count(SyncGroup) == 0


@reaches("client.join.fenced", "client.sync.fenced", settings=STATIC)
def test_a_fenced_instance_is_told_so_and_keeps_its_id(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.answer_join(Error.FENCED_INSTANCE_ID)
    driver.poll()
    assert driver.raised == [Error.FENCED_INSTANCE_ID]
    driver.poll()
    driver.succeed_join()
    driver.answer_sync(Error.FENCED_INSTANCE_ID)
    driver.poll()
    assert driver.raised == [Error.FENCED_INSTANCE_ID] * 2
    assert driver.client.member.id == "a"


@reaches("client.join.waiting")
def test_an_exchange_is_continued_and_not_begun_anew(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.poll()
    driver.succeed_join()
    driver.poll()
    driver.poll()
    assert (driver.count(JoinGroup), driver.count(SyncGroup)) == (1, 1)


@reaches("member.join.answered", "client.sync.as-follower", settings=STATIC)
def test_a_follower_syncs_with_what_it_was_told_and_no_assignments(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.succeed_join(generation=4)
    core = driver.request(SyncGroup).core
    assert (core.generation, core.member, core.instance, core.assignments) == (4, "a", "i", ())
    assert (core.protocol_type, core.protocol) == ("consumer", "range")


@reaches("client.sync.as-leader")
def test_a_leader_brings_an_entry_for_every_member(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.succeed_join(leader="a", views=(view("a"), view("b"), view("c")))
    plan = {id: decode_assignment(data) for id, data in driver.request(SyncGroup).core.assignments}
    assert plan == {"a": (P0,), "b": (P1,), "c": ()}


@reaches("client.sync.as-leader", settings=COOPERATIVE)
def test_a_leader_withholds_what_another_member_claims(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.succeed_join(leader="a", views=(view("a"), view("b", P0, P1)))
    plan = {id: decode_assignment(data) for id, data in driver.request(SyncGroup).core.assignments}
    assert plan == {"a": (), "b": (P1,)}


def test_a_leader_by_an_eager_assignor_gives_away_what_is_claimed() -> None:
    driver = ClientDriver()
    driver.start_joining()
    driver.succeed_join(leader="a", views=(view("a"), view("b", P0, P1)))
    plan = {id: decode_assignment(data) for id, data in driver.request(SyncGroup).core.assignments}
    assert plan == {"a": (P0,), "b": (P1,)}


@reaches("client.sync.as-leader")
def test_a_subscription_that_cannot_be_read_subscribes_to_nothing(driver: ClientDriver) -> None:
    driver.start_joining()
    odd = build(type(view("b")), "b", None, b"\x00")
    driver.succeed_join(leader="a", views=(view("a"), odd))
    plan = {id: decode_assignment(data) for id, data in driver.request(SyncGroup).core.assignments}
    assert plan == {"a": (P0, P1), "b": ()}


@reaches("client.sync.skip-assignment", "client.rejoin.metadata")
def test_a_leader_that_need_not_plan_still_watches_metadata(driver: ClientDriver) -> None:
    driver.start_joining()
    views = (view("a"), view("b", topics=("u",)))
    driver.answer(build(JoinResponse, NONE, 1, "consumer", "range", "a", "a", views, skip_assignment=True), JoinGroup)
    assert driver.request(SyncGroup).core.assignments == ()
    driver.succeed_sync(P0, P1)
    driver.poll()
    driver.returns()
    driver.give(MetadataArrived((("t", 2), ("u", 1))))
    driver.poll()
    assert driver.client.member.rejoins


@reaches("client.rejoin.metadata", settings=BY_HAND)
def test_the_leader_and_only_the_leader_rejoins_when_a_topic_grows(driver: ClientDriver) -> None:
    for leader, joins in (("a", 2), ("other", 1)):
        one = driver if leader == "a" else ClientDriver(BY_HAND)
        one.start_joining()
        one.succeed_join(leader=leader, views=(view("a"),))
        one.succeed_sync(P0)
        one.poll()
        one.returns()
        one.give(MetadataArrived((("t", 3),)))
        one.poll()
        if one.client.callback is not None:
            one.returns()
            one.poll()
        assert one.count(JoinGroup) == joins


@reaches("client.sync.rebalance", settings=BY_HAND)
def test_a_sync_during_a_rebalance_joins_again_without_a_callback(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.give(EnforceRebalance())
    driver.poll()
    driver.returns()
    driver.poll()
    driver.succeed_join(generation=2)
    calls = len(driver.callbacks)
    driver.answer_sync(Error.REBALANCE_IN_PROGRESS)
    driver.poll()
    assert driver.request(JoinGroup).core.member == "a"
    assert (driver.count(JoinGroup), driver.count(SyncGroup), len(driver.callbacks)) == (3, 2, calls)


@reaches("member.sync.illegal-generation", "member.sync.unknown-member")
def test_a_sync_of_an_old_generation_keeps_the_id_and_one_of_an_unknown_member_does_not(driver: ClientDriver) -> None:
    for error, id in ((Error.ILLEGAL_GENERATION, "a"), (Error.UNKNOWN_MEMBER_ID, None)):
        driver.client = ClientDriver().client
        driver.start_joining()
        driver.succeed_join()
        driver.answer_sync(error)
        driver.poll()
        assert isinstance(driver.sent[-1].request, JoinGroup)
        assert driver.request(JoinGroup).core.member == id
        assert driver.client.member.generation == -1


@reaches("client.sync.moved")
def test_a_sync_at_the_wrong_node_is_not_repeated(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.succeed_join()
    driver.answer_sync(Error.NOT_COORDINATOR)
    driver.find()
    driver.now += 100
    driver.poll()
    assert driver.request(JoinGroup).core.member == "a"
    assert driver.count(SyncGroup) == 1


@reaches("client.sync.fatal")
def test_other_errors_of_a_sync_are_raised(driver: ClientDriver) -> None:
    driver.start_joining()
    for error in (Error.GROUP_AUTHORIZATION_FAILED, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.UNKNOWN_SERVER_ERROR):
        driver.succeed_join()
        driver.answer_sync(error)
        driver.poll()
        assert driver.raised[-1] is error
        driver.poll()
    assert driver.count(JoinGroup) == 4


@reaches("client.sync.assigned", "member.sync.answered")
def test_an_assignment_is_taken_by_the_next_poll(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.succeed_join()
    driver.succeed_sync(P0, P1)
    assert driver.assignment() == () and driver.callbacks == []
    driver.poll()
    assert driver.assignment() == (P0, P1)
    assert driver.calls() == [("assigned", (P0, P1))]


@reaches("client.sync.unreadable", "client.sync.wrong-protocol")
def test_a_sync_that_contradicts_or_cannot_be_read_is_raised(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.succeed_join()
    driver.answer(SyncResponse(NONE, assignment=build(bytes, b"\xff\xff")), SyncGroup)  # type: ignore[arg-type]
    driver.poll()
    driver.poll()
    driver.succeed_join()
    driver.answer(build(SyncResponse, NONE, "consumer", "sticky", encode_assignment([P0])), SyncGroup)
    driver.poll()
    assert driver.raised == [Problem.UNREADABLE, Problem.WRONG_PROTOCOL]
    assert driver.assignment() == ()


@reaches("member.late-answer", settings=BY_HAND)
def test_an_exchange_that_the_member_left_is_not_continued(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.give(Unsubscribe())
    driver.succeed_join()
    assert driver.count(SyncGroup) == 0
    driver.subscribe()
    driver.poll()
    driver.succeed_join()
    driver.give(Unsubscribe())
    driver.succeed_sync(P0)
    driver.poll()
    assert driver.assignment() == ()
    assert driver.count(LeaveGroup) == 1


@reaches("client.complete.foreign-topic")
def test_an_assignment_outside_the_subscription_is_not_applied(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.succeed_join()
    driver.succeed_sync(P0, ("u", 0))
    driver.poll()
    assert driver.assignment() == () and driver.callbacks == []
    driver.poll()
    driver.returns()
    driver.poll()
    assert driver.count(JoinGroup) == 2


@reaches("client.rejoin.subscription", "client.subscribe", settings=BY_HAND)
def test_a_changed_subscription_joins_in_the_next_poll(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.subscribe("t", "u")
    assert driver.assignment() == (P0,) and driver.count(JoinGroup) == 1
    driver.poll()
    driver.returns()
    driver.poll()
    assert driver.subscription().topics == ("t", "u")


@reaches("client.rejoin.subscription")
def test_a_subscription_that_changed_during_the_exchange_is_not_forgotten(driver: ClientDriver) -> None:
    driver.start_joining()
    driver.subscribe("t", "u")
    driver.complete(P0)
    driver.poll()
    assert driver.client.member.rejoins


@reaches("client.metadata.pattern", "client.rejoin.subscription", settings=BY_HAND)
def test_a_pattern_subscriber_joins_when_it_matches_more_topics(driver: ClientDriver) -> None:
    driver.give(Subscribe(pattern="t.*"))
    driver.find()
    driver.poll()
    driver.complete(P0, ("t2", 0))
    assert driver.client.topics == {"t", "t2"}
    driver.give(MetadataArrived((("t", 2), ("t3", 1), ("u", 1))))
    driver.poll()
    driver.returns()
    driver.poll()
    assert driver.subscription().topics == ("t", "t3")


@reaches("client.metadata")
def test_partition_counts_are_remembered(driver: ClientDriver) -> None:
    driver.give(MetadataArrived((("u", 1), ("t", 3))))
    assert driver.client.metadata == (("t", 3), ("u", 1))


@reaches("member.rejoin", settings=BY_HAND)
def test_an_enforced_rebalance_has_a_reason_of_limited_length(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    driver.give(EnforceRebalance("x" * 300))
    driver.poll()
    driver.returns()
    driver.poll()
    assert driver.last(JoinGroup).reason == "x" * 255
    driver.complete(P0, generation=2)
    assert driver.client.reason == ""


@reaches("member.restart", settings=STATIC)
def test_a_restart_joins_with_the_instance_id_and_no_member_id(driver: ClientDriver) -> None:
    driver.become_stable(P0)
    old = driver.last(JoinGroup).handle
    driver.give(Restart(ClientSettings(strategies=(COOPERATIVE_STICKY,), instance=STATIC.instance)))
    driver.start_joining()
    core = driver.request(JoinGroup).core
    assert (core.member, core.instance, core.protocols[0].name) == (None, "i", "cooperative-sticky")
    assert core.handle > old
    driver.give(ResponseArrived(old, JoinResponse(Error.UNKNOWN_MEMBER_ID)))
    assert driver.rules[-1] == "client.response.late"


@reaches("client.poll.no-subscription")
def test_a_client_without_a_subscription_sends_nothing(driver: ClientDriver) -> None:
    driver.poll()
    assert driver.sent == []


@reaches("member.join", settings=ClientSettings(strategies=(STICKY,), auto_commit=False))
def test_sticky_sends_its_last_assignment_with_its_generation(driver: ClientDriver) -> None:
    driver.start_joining()
    assert driver.subscription().user_data is None
    driver.complete(P0, P1, generation=5)
    driver.give(EnforceRebalance())
    driver.poll()
    driver.returns()
    driver.poll()
    expected = "00000001 0001 74 00000002 00000000 00000001 00000005"
    assert driver.subscription().user_data == bytes.fromhex(expected)
    assert driver.subscription().owned == ()


@reaches("member.join", settings=ClientSettings(dialect=ClientDialect(heartbeats_in_poll=True)))
def test_before_kip_62_the_session_timeout_is_the_rebalance_timeout(driver: ClientDriver) -> None:
    driver.start_joining()
    assert driver.request(JoinGroup).core.rebalance_timeout == 45_000


def test_a_poll_that_blocks_joins_without_another_poll() -> None:
    driver = ClientDriver(BY_HAND)
    driver.subscribe()
    driver.poll(timeout=10_000)
    driver.answer(FindCoordinatorResponse(NONE, 1))
    driver.answer_join(Error.MEMBER_ID_REQUIRED, "a")
    driver.succeed_join()
    driver.succeed_sync(P0)
    assert driver.assignment() == (P0,)


@pytest.mark.parametrize(
    ("strategies", "expected"),
    [
        ((RANGE, COOPERATIVE_STICKY), RebalanceProtocol.EAGER),
        ((COOPERATIVE_STICKY,), RebalanceProtocol.COOPERATIVE),
        ((RANGE, STICKY), RebalanceProtocol.EAGER),
    ],
)
def test_the_highest_common_rebalance_protocol_is_used(
    strategies: tuple[Strategy, ...], expected: RebalanceProtocol
) -> None:
    settings = ClientSettings(strategies=strategies)
    assert settings.rebalance_protocol is expected
    assert settings.member_settings().cooperative == (expected is RebalanceProtocol.COOPERATIVE)


def test_settings_that_no_client_takes_are_refused_in_one_line() -> None:
    only_cooperative = Strategy("mine", frozenset({RebalanceProtocol.COOPERATIVE}))
    for strategies in ((RANGE, only_cooperative), ()):
        with pytest.raises(UnusableClientSettings, match="no common rebalance protocol"):
            ClientSettings(strategies=strategies)
    with pytest.raises(UnusableClientSettings, match="the interval has to be shorter"):
        ClientSettings(session_timeout=3_000)
    assert EAGER.join_timeout == 305_000
