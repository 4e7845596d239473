"""The leader's synchronization without a rejoin: what it gives, when it may, and how it batches changes."""

from typing import Any

import pytest

from fencepost.model.classic.core.state import HeartbeatRequest, HeartbeatResponse, JoinResponse, MemberView
from fencepost.model.classic.member.member import Member, MemberSettings, MemberState
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.proposal import member as resync
from fencepost.model.sorts import HandleNumber
from tests.support.plain_values import build

NONE = (False, False)


def response(claims: Any = NONE) -> JoinResponse:
    """JoinGroup's response to leader a; b claims what it is said to."""
    views = (build(MemberView, "a", None, NONE), build(MemberView, "b", None, claims))
    return build(JoinResponse, Error.NONE, 3, None, "range", "a", "a", views)


def stable_member(name: str) -> Member:
    """A stable member of generation 3, which is not about to rejoin."""
    settings = build(MemberSettings, ("range",))
    return build(Member, settings, NONE, 3, MemberState.STABLE, name, 3, rejoins=False)


def lead(plan: Any, claims: Any = NONE) -> resync.Leadership:
    """The leadership of a, whose plan was confirmed."""
    return resync.confirm(resync.lead(response(claims), plan))


def test_a_leader_gives_what_nobody_has_and_moves_nothing() -> None:
    leader, leadership = stable_member("a"), lead(("a", None))
    step, after = resync.resync(leader, leadership, HandleNumber(9), build(tuple, ("b", "b", "b")))
    assert after.given == ("a", "b", "b")
    (sent,) = step.sent_requests
    request: Any = sent.request
    assert request.generation == 3
    assert dict(request.assignments) == {"a": (True, False, False), "b": (False, True, True)}
    assert step.member.waiting == 9 and step.member.state is MemberState.COMPLETING_REBALANCE


def test_a_leader_withholds_what_another_member_claims() -> None:
    claimed = lead(("a", "a"), (True, False))
    assert claimed.given == (None, "a")
    _, after = resync.resync(stable_member("a"), claimed, HandleNumber(9), build(tuple, ("a", "a")))
    assert after.given == (None, "a")


@pytest.mark.parametrize(
    ("member", "leadership"),
    [
        (evolve(stable_member("a"), state=MemberState.COMPLETING_REBALANCE), lead(("a", None))),
        (evolve(stable_member("a"), waiting=4), lead(("a", None))),
        (evolve(stable_member("a"), generation=4), lead(("a", None))),
        (stable_member("a"), evolve(lead(("a", None)), is_open=True)),
    ],
    ids=["not stable", "waits", "another generation", "a SyncGroup is unanswered"],
)
def test_a_leader_that_may_not_sends_nothing(member: Member, leadership: resync.Leadership) -> None:
    step, after = resync.resync(member, leadership, HandleNumber(9), build(tuple, ("a", "b")))
    assert (step.sent_requests, step.member, after) == ((), member, leadership)


def heartbeat_told(member: Member, error: Error) -> Any:
    request = build(HeartbeatRequest, 5, member.id, None, 3)
    return resync.on_heartbeat_told(member, request, HeartbeatResponse(error), HandleNumber(6))


def test_a_member_that_is_told_asks_for_its_assignment_and_joins_only_if_it_gets_none() -> None:
    step = heartbeat_told(stable_member("b"), Error.REBALANCE_IN_PROGRESS)
    (sent,) = step.sent_requests
    assert sent.request.assignments == () and sent.request.member == "b"
    assert step.member.waiting == 6 and step.member.rejoins


def test_any_other_news_are_those_of_the_member_core() -> None:
    assert heartbeat_told(stable_member("b"), Error.NONE).sent_requests == ()
    fenced = heartbeat_told(stable_member("b"), Error.UNKNOWN_MEMBER_ID)
    assert fenced.member.id is None
    waiting = evolve(stable_member("b"), waiting=4)
    assert heartbeat_told(waiting, Error.REBALANCE_IN_PROGRESS).sent_requests == ()
