"""The set of standings that a client may be in."""

from typing import Any

import pytest

from fencepost.model.classic.member.member import MemberState
from fencepost.model.errors import Error
from fencepost.traces.classic.client.standings import Knowledge, Tidings
from fencepost.traces.events import Event, Kind, Operation

GRACE = 1_000
MEMBER: dict[str, Any] = {"member_id": "m", "generation_id": 1}


def request(api: str, handle: int, body: dict[str, Any] | None = None, connection: int = 1) -> Operation:
    return Operation(handle, api, 5, "A", body or MEMBER, sent_at=handle, connection=connection)


def answer(sent: Operation, error: Error = Error.NONE, time: int = 0, **told: Any) -> Tidings:
    body = {"error_code": error, **told}
    place = time or sent.sent_at
    event = Event(place, place, sent.connection, "A", Kind.RESPONSE, sent.api, 5, body, sent.handle - 1)
    return Tidings(sent, event, frozenset() if sent.api == "SyncGroup" and not error else None)


def lose(sent: Operation, time: int) -> Tidings:
    event = Event(time, time, sent.connection, "A", Kind.FAULT, "drop", 0, {}, sent.handle - 1)
    return Tidings(sent, event, is_loss=True)


def become_stable() -> Knowledge:
    join, sync = request("JoinGroup", 1, {"member_id": ""}), request("SyncGroup", 3)
    known = Knowledge(GRACE).become(lambda each: each.join(join))
    known = known.tell(answer(join, member_id="m", generation_id=1, leader="m")).settle(2 * GRACE)
    known = known.become(lambda each: each.sync(sync)).tell(answer(sync, time=4)).settle(2 * GRACE)
    assert [each.member.state for each in known.standings] == [MemberState.STABLE]
    return known


def test_what_may_be_unread_is_in_two_standings_until_its_time_has_passed() -> None:
    known = become_stable().tell(answer(request("Heartbeat", 10), Error.ILLEGAL_GENERATION, time=5_000))
    assert [each.generation for each in known.standings] == [1, -1]
    assert [each.generation for each in known.settle(5_000 + GRACE).standings] == [-1]


def test_a_request_leaves_the_standings_that_send_it() -> None:
    known = become_stable().tell(answer(request("Heartbeat", 10), Error.UNKNOWN_MEMBER_ID, time=5_000))
    stays = known.narrow(lambda each: each.sends("m", 1))
    assert [(each.generation, len(each.unread)) for each in stays.standings] == [(1, 1), (-1, 0)]
    joins = known.narrow(lambda each: each.member_id == "")
    assert [each.generation for each in joins.standings] == [-1] and ("m", 1) in joins.former


@pytest.mark.parametrize("connections", [(1, 1), (1, 2)])
def test_news_is_read_in_order_on_a_connection(connections: tuple[int, int]) -> None:
    first, second = connections
    known = become_stable().tell(answer(request("Heartbeat", 10, connection=first), Error.REBALANCE_IN_PROGRESS))
    known = known.tell(answer(request("Heartbeat", 11, connection=second), Error.ILLEGAL_GENERATION))
    assert len(known.standings) == (3 if first == second else 4)


def test_an_old_connection_that_ends_asks_for_nothing() -> None:
    former = request("SyncGroup", 3)
    known = become_stable().tell(lose(former, 9_000)).settle(9_000 + GRACE)
    assert (known.latest.requirement, known.latest.member.rejoins) == ("", False)


@pytest.mark.parametrize("api", ["Heartbeat", "OffsetCommit"])
def test_a_member_that_is_out_loses_nothing_with_a_connection(api: str) -> None:
    known = become_stable().tell(answer(request("Heartbeat", 10), Error.UNKNOWN_MEMBER_ID)).settle(10 + GRACE)
    moved = known.tell(lose(request(api, 5_000), 9_000)).settle(9_000 + GRACE)
    assert {each.requirement for each in (*known.standings, *moved.standings)} == {"MEMBER-13"}


def test_who_is_told_that_the_coordinator_is_elsewhere_may_read_nothing_more_there() -> None:
    known = become_stable().tell(answer(request("Heartbeat", 10), Error.NOT_COORDINATOR))
    known = known.tell(answer(request("Heartbeat", 11), Error.UNKNOWN_MEMBER_ID)).settle(11 + GRACE)
    assert sorted(each.generation for each in known.standings) == [-1, 1]
