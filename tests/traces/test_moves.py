"""The judge on groups that are moved to another node: parked requests end, and stored state comes back."""

from collections.abc import Sequence
from typing import Any

import pytest

from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.primitives import java_abs_hash
from fencepost.traces.classic.failover import OFFSETS_TOPIC
from fencepost.traces.events import Body, Event, Header, Kind, Order
from fencepost.traces.files.jsonl import MalformedLineError, decode_event, encode_event
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import CheckStatus, TraceVerdict, Violation, initial_violations
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


# --- Lookups of coordinators, checked against each other, against the offsets topic and against the nodes.

LookupStep = tuple[str, int, Body, Body, int | None]
"""API, version, request, answer, and the node it was sent to."""
Pause = int
"""Milliseconds until the next step."""
LOOKUP_GRACE = 2_000


def violations_of(*steps: LookupStep | str | Pause) -> Sequence[Violation]:
    """What is wrong with the answers, one request after the other; a string is a fault of the target, in which group a
    moves from node 1 to node 2."""
    events: list[Event] = []
    paused = 0

    def add(kind: Kind, api: str, version: int, body: Body, of: int | None = None) -> int:
        events.append(Event(len(events), 10 * len(events) + paused, 1, "", kind, api, version, body, of))
        return len(events) - 1

    for step in steps:
        if isinstance(step, Pause):
            paused += step
            continue
        if isinstance(step, str):
            add(Kind.FAULT, step, 0, MOVES.get(step, {}))
            continue
        api, version, request, response, broker = step
        sent = add(Kind.REQUEST, api, version, request)
        if broker is not None:
            add(Kind.INTERNAL, "routed", 0, {"broker": broker}, sent)
        add(Kind.RESPONSE, api, version, response, sent)
    return judge(Header("test", Order.INTERVALS, "wall", Settings(), LOOKUP_GRACE), events).violations


def node(number: int, error: int = 0) -> Body:
    """A node in an answer."""
    return {"error_code": error, "node_id": number, "host": "localhost" if number >= 0 else "", "port": 9092}


def find_coordinator(key: str, response: Body) -> LookupStep:
    """A lookup of a group in version 3."""
    return ("FindCoordinator", 3, {"key": key, "key_type": 0}, response, None)


def find_coordinators(keys: Sequence[str], response: Body, key_type: int = 0) -> LookupStep:
    """A lookup of several groups in version 4."""
    return ("FindCoordinator", 4, {"key_type": key_type, "coordinator_keys": list(keys)}, response, None)


def beat(group: str, error: int, broker: int | None) -> LookupStep:
    """A heartbeat of a stranger."""
    request = {"group_id": group, "generation_id": 1, "member_id": "nobody"}
    return ("Heartbeat", 4, request, {"error_code": error}, broker)


def lookup_response(*rows: tuple[str, Body]) -> Body:
    """An answer to a lookup of several groups."""
    return {"coordinators": [{"key": key, **row} for key, row in rows]}


def commit(error: int, broker: int) -> LookupStep:
    """A commit of nobody in particular."""
    row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    request = {"group_id": "a", "generation_id_or_member_epoch": -1, "member_id": ""}
    request |= {"topics": [{"name": "t", "partitions": [row]}]}
    response = {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "error_code": error}]}]}
    return ("OffsetCommit", 3, request, response, broker)


MOVES: dict[str, Body] = {"move": {"group": "a"}, "moved": {"group": "a", "old": 1, "new": 2}}
MOVED = ("move", "moved", LOOKUP_GRACE)
"""Group a is moved, and all nodes know."""
OFFSETS = {"topics": [{"name": OFFSETS_TOPIC, "partitions": [{"partition_index": i, "leader_id": i} for i in (0, 1)]}]}
UNNAMED = {"error_code": Error.COORDINATOR_NOT_AVAILABLE, "node_id": -1, "host": "", "port": -1}

WRONG: dict[str, tuple[LookupStep | str | Pause, ...]] = {
    "FAILOVER-18": (find_coordinator("a", node(1)), *MOVED, beat("a", 0, 1)),
    "FAILOVER-20": (find_coordinator("a", node(1)), *MOVED, commit(0, 1)),
    "FIND-01": (find_coordinator("a", node(-1, 30)),),
    "FIND-03": (find_coordinator("a", node(1)), find_coordinator("b", node(2)), find_coordinator("a", node(2))),
    "FIND-04": (("Metadata", 9, {}, OFFSETS, None), find_coordinator("a", node(0))),
    "FIND-05": (find_coordinators(["a", "b"], lookup_response(("b", node(1)), ("a", node(1)))),),
    "FIND-06": (find_coordinators(["a"], node(1)),),
    "FIND-07": (find_coordinators(["a"], lookup_response(("a", node(1))), key_type=9),),
    "FIND-08": (find_coordinator("a", UNNAMED | {"node_id": 0}),),
    "FIND-09": (find_coordinator("a", node(1)), find_coordinator("", UNNAMED)),
    "FIND-10": (find_coordinator("a", node(1)), beat("a", 25, 2)),
}

RIGHT: dict[str, tuple[LookupStep | str | Pause, ...]] = {
    "the old node after a move": (*MOVED, beat("a", 16, 1), commit(16, 1), find_coordinator("a", node(2))),
    "nodes that do not know of a move yet": (
        find_coordinator("a", node(1)),
        "move",
        find_coordinator("a", node(1)),
        "moved",
        find_coordinator("a", node(1)),
        beat("a", 0, 1),
        commit(0, 1),
        beat("a", 16, 2),
    ),
    "agreement": (
        find_coordinator("a", node(1)),
        find_coordinators(["a", "b"], lookup_response(("a", node(1)), ("b", node(2)))),
    ),
    "the leader of the partition": (("Metadata", 9, {}, OFFSETS, None), find_coordinator("a", node(1))),
    "an unknown kind": (find_coordinators(["a"], lookup_response(("a", node(-1, 42))), key_type=9),),
    "nobody yet": (find_coordinator("a", UNNAMED), find_coordinator("", UNNAMED), find_coordinator("a", node(1))),
    "a move after a restart": (find_coordinator("a", node(1)), "restart", find_coordinator("a", node(2))),
    "a move that the target tells of": (
        find_coordinator("a", node(1)),
        beat("b", 16, None),
        find_coordinator("a", node(2)),
    ),
    "the wrong node": (find_coordinator("a", node(1)), beat("a", 16, 2), beat("a", 25, 1)),
    "a node that nobody named": (beat("a", 25, 2),),
}


@pytest.mark.parametrize("requirement", WRONG)
def test_wrong_answers_are_faults(requirement: str) -> None:
    assert [fault.requirements for fault in violations_of(*WRONG[requirement])] == [(requirement,)]


@pytest.mark.parametrize("case", RIGHT)
def test_right_answers_are_not(case: str) -> None:
    assert not violations_of(*RIGHT[case])


def test_the_named_node_has_to_take_requests() -> None:
    found = violations_of(find_coordinator("a", node(1)), beat("a", 16, 1))
    assert [fault.requirements for fault in found] == [("FIND-01",)]


def test_a_lookup_does_not_follow_from_what_the_empty_group_was_told() -> None:
    sync = {"group_id": "", "generation_id": -1, "member_id": "", "assignments": []}
    wrong: LookupStep = ("SyncGroup", 4, sync, {"error_code": Error.ILLEGAL_GENERATION, "assignment": b""}, None)
    found = violations_of(wrong, *WRONG["FIND-03"], find_coordinator("a", node(3)))
    assert [(fault.group, fault.api) for fault in found] == [("", "SyncGroup"), *[("", "FindCoordinator")] * 2]
    assert initial_violations(found) == list(found[:2]), "and a lookup may follow from a lookup"


@pytest.mark.parametrize(
    ("step", "requirement"),
    [
        (find_coordinator("a", node(1)), "FIND-03"),
        (beat("a", 16, 2), "FIND-01"),
        (beat("a", 25, 3), "FIND-10"),
        (commit(25, 1), "FAILOVER-18"),
    ],
)
def test_after_a_move_nodes_are_judged_once_all_know(step: LookupStep, requirement: str) -> None:
    assert [fault.requirements for fault in violations_of(*MOVED, step)] == [(requirement,)]


def test_java_hash() -> None:
    # The last has no absolute value in 32 bits.
    assert [java_abs_hash(text) for text in ("", "a", "hello", "polygenelubricants")] == [0, 97, 99162322, 0]
