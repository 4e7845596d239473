"""Timers of a target whose clock is not the trace's: never early, but for the ticks of the clocks."""

import pytest

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.judge.judge import judge
from fencepost.traces.judge.search.stepper import CLOCK_RESOLUTION_MS

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
