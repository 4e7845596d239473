"""Pings and leases: when a ping is sent, how long a consumer fetches without one, when it is taken for dead.

Moments are numbers on one clock (draft, 3 scheduler, Overview and 9).
"""

from dataclasses import dataclass

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.push.dialect import PushDialect


def ping_period(session_timeout: int) -> int:
    """How long after a ping the next one is due: a third of the consumer's session timeout."""
    return session_timeout // 3


def sends_ping(scheduled: int, now: int, is_held: bool, dialect: PushDialect) -> bool:
    """Whether the scheduler sends the ping at the head of its queue (steps 2 to 2.2)."""
    due = now >= scheduled if dialect.pings_when_due else scheduled >= now
    return due and not is_held


@fast_frozen
@dataclass(frozen=True, slots=True)
class ConsumerLease:
    """The consumer's side: it may fetch until `end`. `pings` is the number of the last ping that it has seen, and
    `seen_at` when it saw each ping that is not confirmed yet, as (number, moment)."""

    end: int
    pings: int = 0
    seen_at: tuple[tuple[int, int], ...] = ()


def renew_lease(
    lease: ConsumerLease, number: int, confirmed: int, now: int, timeout: int, dialect: PushDialect
) -> ConsumerLease:
    """The lease after a ping. As drafted every request renews it; repaired, only what the coordinator has confirmed:
    it runs from the moment when the consumer saw the ping whose response arrived."""
    if not dialect.lease_is_confirmed:
        return evolve(lease, end=now + timeout, pings=number)
    known = dict(lease.seen_at)
    end = max(lease.end, known[confirmed] + timeout) if confirmed in known else lease.end
    seen = tuple(one for one in lease.seen_at if one[0] > confirmed)
    return evolve(lease, end=end, pings=number, seen_at=(*seen, (number, now)))


def may_deliver(lease: ConsumerLease, now: int, noticed: int, dialect: PushDialect) -> bool:
    """Whether a fetcher hands a batch to the application: as drafted until the reader has `noticed` the end of the
    lease, repaired until the end itself."""
    return now < lease.end if dialect.checks_lease_on_delivery else noticed < lease.end


def removal_time(last_response: int, timeout: int, slack: int) -> int:
    """When the coordinator may take a consumer for dead: `slack` past its timeout after the last response."""
    return last_response + timeout + slack
