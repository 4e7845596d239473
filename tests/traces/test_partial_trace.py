"""Traces that do not show everything: unseen events cause no violation, and seen responses are judged."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.judge.judge import judge
from fencepost.traces.judge.search.stepper import CLOCK_RESOLUTION_MS
from tests.support.client_view import as_seen_by_clients
from tests.support.random_client import random_trace

STEPS, PAUSE_MS, TRAVEL_MS = 120, 10, 12


def gap_event(sequence: int, time: int) -> Event:
    return Event(sequence, time, 0, "", Kind.INTERNAL, "unknown", 0, {"reason": "the recording begins"})


def cut_beginning(events: Sequence[Event], at: int) -> tuple[Event, ...]:
    """The events from `at` on, as a late observer sees them: without responses to earlier requests."""
    first = events[at]
    kept = [event for event in events[:at] if event.kind is Kind.INTERNAL and event.api == "topics"]
    kept.append(gap_event(first.sequence - 1, first.time))
    asked = set[int]()
    for event in events[at:]:
        if event.kind is Kind.REQUEST:
            asked.add(event.sequence)
        if event.of is None or event.of in asked:
            kept.append(event)
    return tuple(kept)


def random_walk(seed: int) -> tuple[Header, tuple[Event, ...]]:
    """A random schedule, seen at the coordinator or by clients."""
    if seed % 2:
        header, events = random_trace(random.Random(seed), STEPS)
        return header, events
    header, events = random_trace(random.Random(seed), STEPS, PAUSE_MS)
    return as_seen_by_clients(replace(header, grace=2 * TRAVEL_MS), events, random.Random(seed), TRAVEL_MS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_partial_trace_reports_no_violation(seed: int) -> None:
    header, events = random_walk(seed)
    at = random.Random(seed).randrange(1, len(events) // 2)
    assert judge(header, cut_beginning(events, at)).violations == ()


def single_member_group(generation: int, *, first: int = 100, others: Sequence[str] = ()) -> list[Event]:
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
        request_event(first, "JoinGroup", 5, join),
        response_event(first + 1, "JoinGroup", 5, {**joined, "members": told}),
        request_event(first + 2, "SyncGroup", 3, {**me, "assignments": [{"member_id": "m", "assignment": b"mine"}]}),
        response_event(first + 3, "SyncGroup", 3, {"error_code": 0, "assignment": b"mine"}),
    ]


def request_event(sequence: int, api: str, version: int, body: dict[str, object]) -> Event:
    return Event(sequence, sequence * 10, 1, "A", Kind.REQUEST, api, version, body)


def response_event(sequence: int, api: str, version: int, body: dict[str, object], of: int | None = None) -> Event:
    asked = sequence - 1 if of is None else of
    return Event(sequence, sequence * 10, 1, "A", Kind.RESPONSE, api, version, body, asked)


def heartbeat(sequence: int, generation: int, error: int) -> list[Event]:
    me: dict[str, object] = {"group_id": "g", "generation_id": generation, "member_id": "m", "group_instance_id": None}
    return [
        request_event(sequence, "Heartbeat", 3, me),
        response_event(sequence + 1, "Heartbeat", 3, {"error_code": error}),
    ]


def fetch(sequence: int, offset: int) -> list[Event]:
    asked: dict[str, object] = {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}
    row = {"partition_index": 0, "committed_offset": offset, "metadata": "", "error_code": 0}
    row["committed_leader_epoch"] = -1
    told: dict[str, object] = {"topics": [{"name": "t", "partitions": [row]}], "error_code": 0}
    return [request_event(sequence, "OffsetFetch", 5, asked), response_event(sequence + 1, "OffsetFetch", 5, told)]


HEADER = Header("here", Order.INTERVALS, "wall", random_trace(random.Random(0), 1)[0].settings, 100)
LATE = 10_000
"""A sequence number, and time, at which nothing lingers any more."""


@pytest.mark.parametrize("order", Order)
def test_a_group_is_judged_from_its_first_whole_round(order: Order) -> None:
    header = replace(HEADER, order=order)
    seen = [gap_event(0, 0), *single_member_group(7), *heartbeat(200, 7, 0)]
    good = judge(header, seen)
    assert (good.violations, good.inconclusive, good.rules) == ((), (), {"heartbeat.stable": 1})
    (fault,) = judge(header, [gap_event(0, 0), *single_member_group(7), *heartbeat(200, 6, 0)]).violations
    assert fault.rule == "heartbeat.other-generation"


def test_without_a_whole_round_nothing_is_said() -> None:
    verdict = judge(HEADER, [gap_event(0, 0), *heartbeat(200, 6, 0), *heartbeat(210, 5, 22), *heartbeat(220, 9, 0)])
    assert (verdict.violations, verdict.rules) == ((), {})
    assert [line for line in verdict.inconclusive if "'g'" in line]


def test_offsets_are_what_is_shown_first() -> None:
    group = [gap_event(0, 0), *single_member_group(7)]
    assert judge(HEADER, [*group, *fetch(200, 42), *fetch(202, 42)]).violations == ()
    (fault,) = judge(HEADER, [*group, *fetch(200, 42), *fetch(LATE, 41)]).violations
    assert fault.fields == ("offset",)
    doubtful = judge(HEADER, [*group, *fetch(200, 42), *fetch(202, 41)])
    assert doubtful.violations == () and doubtful.inconclusive


def test_members_that_are_not_shown_explain_whatever_went_before() -> None:
    puzzling = [gap_event(0, 0), *single_member_group(7), *heartbeat(200, 7, 27)]
    assert judge(HEADER, puzzling).violations
    verdict = judge(HEADER, [*puzzling, *single_member_group(8, first=300, others=["stranger"])])
    assert verdict.violations == ()
    assert any("does not show" in line for line in verdict.inconclusive)


def test_a_gap_in_the_middle_begins_anew() -> None:
    gap = gap_event(300, 3_000)
    seen = [
        *single_member_group(1),
        *heartbeat(200, 1, 0),
        gap,
        *heartbeat(310, 3, 0),
        *single_member_group(4, first=400),
        *heartbeat(500, 4, 0),
    ]
    assert judge(HEADER, [gap_event(0, 0), *seen]).violations == ()
    without = [event for event in seen if event is not gap]
    assert judge(HEADER, [gap_event(0, 0), *without]).violations


def test_a_coordinator_that_was_not_ready_may_be_another_since() -> None:
    seen = [
        gap_event(0, 0),
        *single_member_group(7),
        *heartbeat(200, 7, 16),
        *heartbeat(210, 7, 25),
        *single_member_group(9, first=300),
        *heartbeat(400, 9, 0),
    ]
    verdict = judge(HEADER, seen)
    assert (verdict.violations, verdict.inconclusive) == ((), ())
    assert verdict.rules["heartbeat.stable"] == 1


def test_what_depends_on_settings_that_are_not_known_is_left_open() -> None:
    late = [
        *single_member_group(7),
        request_event(
            LATE, "JoinGroup", 5, {**single_member_group(1)[0].body, "member_id": "", "session_timeout_ms": 1}
        ),
    ]
    late.append(
        response_event(
            LATE + 1, "JoinGroup", 5, {"error_code": Error.MEMBER_ID_REQUIRED, "member_id": "new", "generation_id": -1}
        )
    )
    (fault,) = judge(HEADER, [gap_event(0, 0), *late]).violations
    assert "INVALID_SESSION_TIMEOUT" in fault.allowed[0]
    verdict = judge(replace(HEADER, implementation={"settings": "assumed"}), [gap_event(0, 0), *late])
    assert verdict.violations == () and any("settings" in line for line in verdict.inconclusive)


def test_a_request_that_was_lost_in_the_gap_is_not_waited_for() -> None:
    lost = [heartbeat(200, 7, 0)[0], Event(201, 2_010, 1, "A", Kind.FAULT, "lost", 0, {"reason": "it broke"}, 200)]
    seen = [
        gap_event(0, 0),
        *single_member_group(7),
        *lost,
        gap_event(300, 3_000),
        *single_member_group(9, first=400),
        *heartbeat(500, 9, 0),
    ]
    verdict = judge(HEADER, seen)
    assert (verdict.violations, verdict.inconclusive) == ((), ())
    assert verdict.rules["heartbeat.stable"] == 1


# --- Timers of a target whose clock is not the trace's: never early, but for the ticks of the clocks.

DELAY = 600
JOIN = {
    "group_id": "g",
    "session_timeout_ms": 6_000,
    "rebalance_timeout_ms": 60_000,
    "member_id": "",
    "protocol_type": "x",
    "protocols": [{"name": "p", "metadata": b"m"}],
}
JOINED = {
    "error_code": 0,
    "generation_id": 1,
    "protocol_name": "p",
    "leader": "a",
    "member_id": "a",
    "members": [{"member_id": "a", "metadata": b"m"}],
}


@pytest.mark.parametrize(
    ("order", "wait", "early"),
    [
        (Order.INTERVALS, DELAY, False),
        (Order.INTERVALS, DELAY - CLOCK_RESOLUTION_MS, False),
        (Order.INTERVALS, DELAY - CLOCK_RESOLUTION_MS - 1, True),
        (Order.TOTAL, DELAY, False),
        (Order.TOTAL, DELAY - 1, True),
    ],
)
def test_the_initial_delay(order: Order, wait: int, early: bool) -> None:
    header = Header("test", order, "wall", Settings(initial_rebalance_delay=DELAY), 100)
    events = [
        Event(0, 7, 1, "A", Kind.REQUEST, "JoinGroup", 3, JOIN),
        Event(1, 7 + wait, 1, "A", Kind.RESPONSE, "JoinGroup", 3, JOINED, 0),
    ]
    assert bool(judge(header, events).violations) is early
