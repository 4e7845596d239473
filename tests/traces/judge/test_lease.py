"""Traces of a toy protocol go through the judge: nothing in it is about the protocol of consumer groups alone."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fencepost.model.frozen import evolve
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.judge.judge import Judge, MakeProtocol
from fencepost.traces.judge.search.configuration import Configuration
from fencepost.traces.judge.search.search import Search
from fencepost.traces.judge.search.stepper import SearchLimitExceeded
from fencepost.traces.verdict import TraceVerdict, Violation
from tests.support.lease.protocol import Lease, LeaseError, LeaseProtocol, LeaseStepper

TTL, GRACE = 100, 10
Exchange = tuple[int, int, str, dict[str, Any], LeaseError, int]
"""When the request was sent and the response seen, the API, the request, and the response's error and token."""


def acquire(
    sent: int, client: str, token: int, error: LeaseError = LeaseError.NONE, seen: int | None = None
) -> Exchange:
    return sent, sent + 1 if seen is None else seen, "acquire", {"client": client, "ttl": TTL}, error, token


def renew(sent: int, client: str, token: int, error: LeaseError = LeaseError.NONE) -> Exchange:
    body = {"client": client, "token": token, "ttl": TTL}
    return sent, sent + 1, "renew", body, error, 0 if error else token


def write(sent: int, token: int, error: LeaseError = LeaseError.NONE) -> Exchange:
    return sent, sent + 1, "write", {"token": token}, error, 0 if error else token


def judge_exchanges(order: Order, *exchanges: Exchange) -> TraceVerdict:
    moments = sorted(
        [(sent, number, Kind.REQUEST) for number, (sent, *_) in enumerate(exchanges)]
        + [(seen, number, Kind.RESPONSE) for number, (_, seen, *_) in enumerate(exchanges)],
        key=lambda moment: moment[0],
    )
    events: list[Event] = []
    requests: dict[int, int] = {}
    for sequence, (time, number, kind) in enumerate(moments):
        _, _, api, body, error, token = exchanges[number]
        if kind is Kind.REQUEST:
            requests[number] = sequence
            events.append(Event(sequence, time, 0, "A", kind, api, 0, {"group": "l", **body}))
        else:
            response = {"error_code": int(error), "token": token}
            events.append(Event(sequence, time, 0, "A", kind, api, 0, response, requests[number]))
    header = Header("lease", order, "virtual", Settings(), GRACE)
    return Judge(header, protocol=LeaseProtocol).judge_events(events)


ORDERS = pytest.mark.parametrize("order", list(Order))


@ORDERS
def test_a_correct_trace_is_accepted(order: Order) -> None:
    verdict = judge_exchanges(
        order,
        acquire(0, "a", 1),
        acquire(20, "b", 0, LeaseError.HELD),
        renew(50, "a", 1),
        acquire(120, "b", 0, LeaseError.HELD),
        write(130, 1),
        acquire(200, "b", 2),
        write(210, 2),
        write(220, 1, LeaseError.FENCED),
        renew(230, "a", 1, LeaseError.STALE),
    )
    assert (verdict.violations, verdict.inconclusive) == ((), ())
    expected = {"acquire.free": 2, "acquire.held": 2, "renew.holder": 1, "expire": 1, "renew.stale": 1}
    assert verdict.rules == {**expected, "write.current": 2, "write.fenced": 1}


@ORDERS
def test_a_wrong_token_is_a_violation(order: Order) -> None:
    (violation,) = judge_exchanges(order, acquire(0, "a", 1), acquire(200, "b", 1)).violations
    assert (violation.rule, violation.fields, violation.allowed) == (
        "acquire.free",
        ("token",),
        ("error_code=NONE, token=2",),
    )


@ORDERS
def test_an_early_expiry_is_a_violation(order: Order) -> None:
    (violation,) = judge_exchanges(order, acquire(0, "a", 1), acquire(50, "b", 2)).violations
    assert (violation.rule, violation.fields) == ("acquire.held", ("error_code",))
    assert violation.guard == "a client holds the lease"


def test_overlapping_requests_are_put_in_the_order_that_explains_them() -> None:
    verdict = judge_exchanges(
        Order.INTERVALS, acquire(0, "a", 0, LeaseError.HELD, seen=18), acquire(10, "b", 1, seen=25), write(50, 1)
    )
    assert (verdict.violations, verdict.inconclusive) == ((), ())


def test_nothing_is_said_after_a_gap() -> None:
    header = Header("lease", Order.TOTAL, "virtual", Settings(), GRACE)
    body: dict[str, Any] = {"group": "l", "client": "a", "ttl": TTL}
    events = [
        Event(0, 0, 0, "A", Kind.INTERNAL, "unknown", 0, {}),
        Event(1, 1, 0, "A", Kind.REQUEST, "acquire", 0, body),
        Event(2, 2, 0, "A", Kind.RESPONSE, "acquire", 0, {"error_code": 0, "token": 7}, 1),
    ]
    verdict = Judge(header, protocol=LeaseProtocol).judge_events(events)
    assert verdict.violations == ()
    assert verdict.inconclusive == ("group 'l': the state of the group is not known",)
    whole = Judge(header, protocol=LeaseProtocol).judge_events(events[1:])
    assert [violation.requirements for violation in whole.violations] == [("LEASE-01",)]


# --- Silence is evidence for every protocol that says how long after its latest moment a response may be out.

GRACE_MS, SILENCE_GRACE_MS = 10, 40


class ImpatientLeaseProtocol(LeaseProtocol):
    """A lease whose responses come at once."""

    def silence_grace(self) -> int:
        return SILENCE_GRACE_MS


def judge_unanswered_acquire(protocol: MakeProtocol, order: Order, seen_alive_at: int) -> tuple[Violation, ...]:
    """The violations if a client gets no response, and another one does later."""
    held = {"error_code": int(LeaseError.HELD), "token": 0}
    bodies = [{"group": "l", "client": client, "ttl": 1_000} for client in "ab"]
    events = [
        Event(0, 0, 0, "a", Kind.REQUEST, "acquire", 0, bodies[0]),
        Event(1, 5, 1, "b", Kind.REQUEST, "acquire", 0, bodies[1]),
        Event(2, 5, 1, "b", Kind.RESPONSE, "acquire", 0, held, 1),
        Event(3, seen_alive_at, 1, "b", Kind.REQUEST, "acquire", 0, bodies[1]),
        Event(4, seen_alive_at, 1, "b", Kind.RESPONSE, "acquire", 0, held, 3),
    ]
    return (
        Judge(Header("lease", order, "wall", Settings(), GRACE_MS), protocol=protocol).judge_events(events).violations
    )


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize(("seen_alive_at", "is_overdue"), [(SILENCE_GRACE_MS, False), (200, True)])
def test_a_lease_that_is_not_answered_is_overdue(order: Order, seen_alive_at: int, is_overdue: bool) -> None:
    found = judge_unanswered_acquire(ImpatientLeaseProtocol, order, seen_alive_at)
    assert [(each.sequence, each.fields, each.allowed) for each in found] == (
        [(0, ("missing",), ("error_code=NONE, token=1",))] if is_overdue else []
    )


@pytest.mark.parametrize("order", list(Order))
def test_a_protocol_that_does_not_say_so_tolerates_silence(order: Order) -> None:
    assert judge_unanswered_acquire(LeaseProtocol, order, 200) == ()


class Spontaneous(LeaseStepper):
    """A lease whose token grows by itself up to 3."""

    def internal_steps(self, configuration: Configuration, time: int, wanted: int) -> Iterator[Configuration]:
        token = configuration.world.token + 1
        if token <= 3:
            yield evolve(configuration, world=replace(configuration.world, token=token))


def test_what_was_seen_may_lie_any_number_of_spontaneous_steps_ahead() -> None:
    search = Search(Spontaneous("l", Order.INTERVALS, GRACE), [Configuration(Lease())])

    def observe(token: int) -> list[int]:
        found = search.observe(lambda one: [one] if one.world.token == token else None, 0)
        return [one.world.token for one in found]

    assert (observe(0), observe(3), observe(4)) == ([0], [3], [])
    search.max_configurations = 2
    with pytest.raises(SearchLimitExceeded, match="more than 2 states explain what was seen"):
        observe(0)
