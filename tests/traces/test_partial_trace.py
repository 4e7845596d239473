"""Traces that do not show everything: nobody is blamed for what was not seen, and what was seen is judged."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.judge.judge import judge
from tests.support.client_view import seen_by_clients
from tests.support.random_client import random_trace

STEPS, PAUSE_MS, TRAVEL_MS = 120, 10, 12


def unknown(sequence: int, time: int) -> Event:
    return Event(sequence, time, 0, "", Kind.INTERNAL, "unknown", 0, {"reason": "the recording begins"})


def cut(events: Sequence[Event], at: int) -> tuple[Event, ...]:
    """What somebody sees who comes late: answers only to what was asked since."""
    first = events[at]
    kept = [event for event in events[:at] if event.kind is Kind.INTERNAL and event.api == "topics"]
    kept.append(unknown(first.sequence - 1, first.time))
    asked = set[int]()
    for event in events[at:]:
        if event.kind is Kind.REQUEST:
            asked.add(event.sequence)
        if event.of is None or event.of in asked:
            kept.append(event)
    return tuple(kept)


def walk(seed: int) -> tuple[Header, tuple[Event, ...]]:
    """A random schedule, seen at the coordinator or by clients."""
    if seed % 2:
        header, events = random_trace(random.Random(seed), STEPS)
        return header, events
    header, events = random_trace(random.Random(seed), STEPS, PAUSE_MS)
    return seen_by_clients(replace(header, grace=2 * TRAVEL_MS), events, random.Random(seed), TRAVEL_MS)


@pytest.mark.parametrize("seed", range(40))
def test_whoever_comes_late_blames_nobody(seed: int) -> None:
    header, events = walk(seed)
    at = random.Random(seed).randrange(1, len(events) // 2)
    assert judge(header, cut(events, at)).faults == ()


def group_of(generation: int, *, first: int = 100, others: Sequence[str] = ()) -> list[Event]:
    """One member of group g in some generation, which it leads, from joining to its assignment, as clients see it."""
    told = [{"member_id": name, "group_instance_id": None, "metadata": b""} for name in ("m", *others)]
    join = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "m",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    joined = {"error_code": 0, "generation_id": generation, "protocol_name": "range", "leader": "m", "member_id": "m"}
    me = {"group_id": "g", "generation_id": generation, "member_id": "m", "group_instance_id": None}
    return [
        ask(first, "JoinGroup", 5, join),
        tell(first + 1, "JoinGroup", 5, {**joined, "members": told}),
        ask(first + 2, "SyncGroup", 3, {**me, "assignments": [{"member_id": "m", "assignment": b"mine"}]}),
        tell(first + 3, "SyncGroup", 3, {"error_code": 0, "assignment": b"mine"}),
    ]


def ask(sequence: int, api: str, version: int, body: dict[str, object]) -> Event:
    return Event(sequence, sequence * 10, 1, "A", Kind.REQUEST, api, version, body)


def tell(sequence: int, api: str, version: int, body: dict[str, object], of: int | None = None) -> Event:
    asked = sequence - 1 if of is None else of
    return Event(sequence, sequence * 10, 1, "A", Kind.ANSWER, api, version, body, asked)


def beat(sequence: int, generation: int, error: int) -> list[Event]:
    me: dict[str, object] = {"group_id": "g", "generation_id": generation, "member_id": "m", "group_instance_id": None}
    return [ask(sequence, "Heartbeat", 3, me), tell(sequence + 1, "Heartbeat", 3, {"error_code": error})]


def fetch(sequence: int, offset: int) -> list[Event]:
    asked: dict[str, object] = {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}
    row = {"partition_index": 0, "committed_offset": offset, "metadata": "", "error_code": 0}
    row["committed_leader_epoch"] = -1
    told: dict[str, object] = {"topics": [{"name": "t", "partitions": [row]}], "error_code": 0}
    return [ask(sequence, "OffsetFetch", 5, asked), tell(sequence + 1, "OffsetFetch", 5, told)]


HEADER = Header("here", Order.INTERVALS, "wall", random_trace(random.Random(0), 1)[0].settings, 100)
LATE = 10_000
"""A sequence number, and time, at which nothing lingers any more."""


@pytest.mark.parametrize("order", Order)
def test_a_group_is_judged_from_its_first_whole_round(order: Order) -> None:
    header = replace(HEADER, order=order)
    seen = [unknown(0, 0), *group_of(7), *beat(200, 7, 0)]
    good = judge(header, seen)
    assert (good.faults, good.inconclusive, good.rules) == ((), (), {"heartbeat.stable": 1})
    (fault,) = judge(header, [unknown(0, 0), *group_of(7), *beat(200, 6, 0)]).faults
    assert fault.rule == "heartbeat.other-generation"


def test_without_a_whole_round_nothing_is_said() -> None:
    verdict = judge(HEADER, [unknown(0, 0), *beat(200, 6, 0), *beat(210, 5, 22), *beat(220, 9, 0)])
    assert (verdict.faults, verdict.rules) == ((), {})
    assert [line for line in verdict.inconclusive if "'g'" in line]


def test_offsets_are_what_is_shown_first() -> None:
    group = [unknown(0, 0), *group_of(7)]
    assert judge(HEADER, [*group, *fetch(200, 42), *fetch(202, 42)]).faults == ()
    (fault,) = judge(HEADER, [*group, *fetch(200, 42), *fetch(LATE, 41)]).faults
    assert fault.fields == ("offset",)
    doubtful = judge(HEADER, [*group, *fetch(200, 42), *fetch(202, 41)])
    assert doubtful.faults == () and doubtful.inconclusive


def test_members_that_are_not_shown_explain_whatever_went_before() -> None:
    puzzling = [unknown(0, 0), *group_of(7), *beat(200, 7, 27)]
    assert judge(HEADER, puzzling).faults
    verdict = judge(HEADER, [*puzzling, *group_of(8, first=300, others=["stranger"])])
    assert verdict.faults == ()
    assert any("does not show" in line for line in verdict.inconclusive)


def test_a_gap_in_the_middle_begins_anew() -> None:
    gap = unknown(300, 3_000)
    seen = [*group_of(1), *beat(200, 1, 0), gap, *beat(310, 3, 0), *group_of(4, first=400), *beat(500, 4, 0)]
    assert judge(HEADER, [unknown(0, 0), *seen]).faults == ()
    without = [event for event in seen if event is not gap]
    assert judge(HEADER, [unknown(0, 0), *without]).faults


def test_a_coordinator_that_was_not_ready_may_be_another_since() -> None:
    seen = [
        unknown(0, 0),
        *group_of(7),
        *beat(200, 7, 16),
        *beat(210, 7, 25),
        *group_of(9, first=300),
        *beat(400, 9, 0),
    ]
    verdict = judge(HEADER, seen)
    assert (verdict.faults, verdict.inconclusive) == ((), ())
    assert verdict.rules["heartbeat.stable"] == 1


def test_what_depends_on_settings_that_are_not_known_is_left_open() -> None:
    late = [*group_of(7), ask(LATE, "JoinGroup", 5, {**group_of(1)[0].body, "member_id": "", "session_timeout_ms": 1})]
    late.append(tell(LATE + 1, "JoinGroup", 5, {"error_code": 79, "member_id": "new", "generation_id": -1}))
    (fault,) = judge(HEADER, [unknown(0, 0), *late]).faults
    assert "INVALID_SESSION_TIMEOUT" in fault.allowed[0]
    verdict = judge(replace(HEADER, implementation={"settings": "assumed"}), [unknown(0, 0), *late])
    assert verdict.faults == () and any("settings" in line for line in verdict.inconclusive)


def test_a_request_that_was_lost_in_the_gap_is_not_waited_for() -> None:
    lost = [beat(200, 7, 0)[0], Event(201, 2_010, 1, "A", Kind.FAULT, "lost", 0, {"reason": "it broke"}, 200)]
    seen = [unknown(0, 0), *group_of(7), *lost, unknown(300, 3_000), *group_of(9, first=400), *beat(500, 9, 0)]
    verdict = judge(HEADER, seen)
    assert (verdict.faults, verdict.inconclusive) == ((), ())
    assert verdict.rules["heartbeat.stable"] == 1
