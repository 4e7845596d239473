"""The judge on groups that are moved to another node: parked requests end, and stored state comes back."""

from typing import Any

import pytest

from fencepost.model.errors import Error
from fencepost.traces.events import Header, Kind, Order
from fencepost.traces.files.jsonl import MalformedLineError, decode_event, encode_event
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import CheckStatus, TraceVerdict
from tests.support.trace_builder import (
    GRACE,
    SESSION,
    SETTINGS,
    OneMemberTrace,
    commit_offset,
    fetch_offset,
    join_body,
    sync_error,
    sync_response,
)

ORDERS = pytest.mark.parametrize("order", list(Order))
OLD, NEW = 1, 2


class MovedTrace(OneMemberTrace):
    """The trace of a group that is moved; B is a second member that comes late."""

    def begin_move(self, time: int) -> None:
        self.add_event(Kind.FAULT, time, "move", {"group": "g"})

    def end_move(self, time: int, group: str = "g") -> None:
        self.add_event(Kind.FAULT, time, "moved", {"group": group, "old": OLD, "new": NEW})

    def move(self, time: int) -> None:
        self.begin_move(time)
        self.end_move(time + 10)

    def park_join(self, time: int) -> int:
        """JoinGroup of a second member, which waits for the first, as a heartbeat of that one shows."""
        request = self.send_request(time, "JoinGroup", join_body(""), 2)
        self.heartbeat(time + 50, Error.REBALANCE_IN_PROGRESS)
        return request

    def close(self, time: int, request: int) -> None:
        self.add_event(Kind.FAULT, time, "closed", {"reason": "broken"}, of=request)

    def check_end(self, request: int) -> None:
        body = {"requirement": "FAILOVER-11", "fields": ["error"], "met": True, "note": "", "may_close": True}
        self.add_event(Kind.INTERNAL, self.events[-1].time, "check", body, of=request)

    def judge_on_virtual_time(self) -> TraceVerdict:
        return judge(Header("test", self.order, "virtual", SETTINGS, GRACE), self.events)


def join_response(error: int) -> dict[str, Any]:
    granted = {"generation_id": 2, "protocol_name": "p", "leader": "a", "member_id": "b"}
    refused = {"generation_id": -1, "protocol_name": "", "leader": "", "member_id": ""}
    return {"error_code": error, **(refused if error else granted), "members": []}


def failed_requirements(verdict: TraceVerdict) -> list[tuple[str, ...]]:
    return [violation.requirements for violation in verdict.violations]


# --- parked requests


@ORDERS
@pytest.mark.parametrize("error", [Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.REBALANCE_IN_PROGRESS])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_parked_request_may_be_refused_with_any_error(order: Order, error: Error, is_late: bool) -> None:
    tape = MovedTrace(order)
    tape.form_stable_group()
    parked = tape.park_join(100)
    tape.begin_move(200)
    if not is_late:
        tape.send_response(205, parked, join_response(error))
    tape.end_move(210)
    if is_late:
        tape.send_response(215, parked, join_response(error))
    tape.heartbeat(300, 0)
    tape.check_end(parked)
    verdict = tape.judge_on_virtual_time()
    assert failed_requirements(verdict) == []
    assert [result.status for result in verdict.check_results] == [CheckStatus.PASS]


@ORDERS
@pytest.mark.parametrize("is_late", [False, True])
def test_a_parked_request_does_not_succeed(order: Order, is_late: bool) -> None:
    tape = MovedTrace(order)
    tape.form_stable_group()
    parked = tape.park_join(100)
    tape.begin_move(200)
    if not is_late:
        tape.send_response(205, parked, join_response(0))
    tape.end_move(210)
    if is_late:
        tape.send_response(215, parked, join_response(0))
    tape.check_end(parked)
    verdict = tape.judge_on_virtual_time()
    assert failed_requirements(verdict) == [("FAILOVER-11",)]
    assert [result.status for result in verdict.check_results] == [CheckStatus.FAIL]


@ORDERS
def test_a_parked_request_may_lose_its_connection(order: Order) -> None:
    tape = MovedTrace(order)
    tape.form_stable_group()
    parked = tape.park_join(100)
    tape.begin_move(200)
    tape.close(205, parked)
    tape.end_move(210)
    tape.heartbeat(300, 0)
    tape.check_end(parked)
    verdict = tape.judge_on_virtual_time()
    assert failed_requirements(verdict) == []
    assert [result.status for result in verdict.check_results] == [CheckStatus.PASS]


@ORDERS
def test_a_parked_request_is_not_left_without_a_response(order: Order) -> None:
    tape = MovedTrace(order)
    tape.form_stable_group()
    tape.park_join(100)
    tape.move(200)
    tape.heartbeat(300, 0)
    tape.heartbeat(SESSION - 100, 0)
    assert failed_requirements(tape.judge_on_virtual_time()) == [("FAILOVER-11",)]


# --- the group


@ORDERS
@pytest.mark.parametrize(("error", "faults"), [(0, 0), (25, 1), (27, 1)])
def test_a_stable_group_comes_back(order: Order, error: int, faults: int) -> None:
    tape = MovedTrace(order)
    tape.form_stable_group()
    tape.move(1_000)
    tape.heartbeat(2_000, error)
    assert len(tape.judge_on_virtual_time().violations) == faults


@ORDERS
@pytest.mark.parametrize(("error", "faults"), [(25, 0), (22, 1), (0, 1)])
def test_a_round_without_assignment_is_lost(order: Order, error: int, faults: int) -> None:
    tape = MovedTrace(order)
    tape.join(10, 1)
    tape.move(100)
    tape.sync(200, 1, sync_error(error) if error else sync_response(b"plan"))
    assert len(tape.judge_on_virtual_time().violations) == faults


@ORDERS
@pytest.mark.parametrize(("offset", "faults"), [(5, 0), (-1, 1)])
def test_offsets_come_along(order: Order, offset: int, faults: int) -> None:
    tape = MovedTrace(order)
    commit_offset(tape, 10, 5, True)
    tape.move(100)
    fetch_offset(tape, 200, offset)
    assert len(tape.judge_on_virtual_time().violations) == faults


@ORDERS
@pytest.mark.parametrize("moved", [True, False])
def test_a_group_of_which_nothing_is_said_may_have_moved_or_not(order: Order, moved: bool) -> None:
    tape = MovedTrace(order)
    tape.join(10, 1)
    tape.begin_move(100)
    tape.end_move(110, group="another")
    tape.sync(200, 1, sync_error(25) if moved else sync_response(b"plan"))
    assert not tape.judge_on_virtual_time().violations


@ORDERS
def test_a_second_move_is_one_more(order: Order) -> None:
    tape = MovedTrace(order)
    tape.form_stable_group()
    tape.move(100)
    tape.heartbeat(200, 0)
    parked = tape.park_join(300)
    tape.begin_move(400)
    tape.send_response(405, parked, join_response(Error.NOT_COORDINATOR))
    tape.end_move(410)
    tape.heartbeat(500, 0)
    assert not tape.judge_on_virtual_time().violations
    tape.heartbeat(600, 27)
    assert len(tape.judge_on_virtual_time().violations) == 1


# --- the format


@pytest.mark.parametrize("body", [{"group": 1}, {}, {"group": "g", "old": 1}, {"group": "g", "old": 1, "new": "2"}])
def test_a_malformed_move_is_refused(body: dict[str, Any]) -> None:
    tape = MovedTrace(Order.TOTAL)
    tape.end_move(10)
    line = encode_event(tape.events[-1])
    assert decode_event(line) == tape.events[-1]
    tape.add_event(Kind.FAULT, 20, "moved", body)
    with pytest.raises(MalformedLineError):
        decode_event(encode_event(tape.events[-1]))
