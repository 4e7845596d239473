"""Silence is evidence for every protocol that says how long after its latest moment a response may be out."""

from collections.abc import Callable

import pytest

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.judge.groups.protocol import JudgedProtocol
from fencepost.traces.judge.judge import Judge
from fencepost.traces.verdict import Violation
from tests.support.lease.judge import LeaseProtocol
from tests.support.lease.protocol import LeaseError

GRACE_MS, SILENCE_GRACE_MS = 10, 40


class ImpatientLeaseProtocol(LeaseProtocol):
    """A lease whose responses come at once."""

    def silence_grace(self) -> int:
        return SILENCE_GRACE_MS


def judge_unanswered_acquire(
    protocol: Callable[[Header], JudgedProtocol], order: Order, seen_alive_at: int
) -> tuple[Violation, ...]:
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
        [(0, ("missing",), ("NONE, token=1",))] if is_overdue else []
    )


@pytest.mark.parametrize("order", list(Order))
def test_a_protocol_that_does_not_say_so_tolerates_silence(order: Order) -> None:
    assert judge_unanswered_acquire(LeaseProtocol, order, 200) == ()
