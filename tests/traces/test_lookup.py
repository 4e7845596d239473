"""Lookups of coordinators, checked against each other, against the offsets topic and against the nodes."""

from collections.abc import Sequence

import pytest

from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.java_hash import java_abs_hash
from fencepost.traces.classic.failover import OFFSETS_TOPIC
from fencepost.traces.events import Body, Event, Header, Kind, Order
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import Violation, initial_violations

LookupStep = tuple[str, int, Body, Body, int | None]
"""API, version, request, answer, and the node it was sent to."""
Pause = int
"""Milliseconds until the next step."""
GRACE = 2_000


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
    return judge(Header("test", Order.INTERVALS, "wall", Settings(), GRACE), events).violations


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
MOVED = ("move", "moved", GRACE)
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
