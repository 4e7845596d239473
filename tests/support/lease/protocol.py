"""The lease: state, requests, responses, rules, and one pure handler an action.

A client acquires the lease for a time and gets a fencing token, larger than every token before it. Writes carry a
token; a write with a smaller token than one accepted before is refused.
"""

from dataclasses import dataclass
from enum import IntEnum

from fencepost.model.frozen import evolve
from fencepost.model.logic import Time, Token, absent

RULES = {
    "acquire.free": "nobody holds the lease",
    "acquire.held": "a client holds the lease",
    "renew.holder": "the request carries the token of the client that holds the lease",
    "renew.stale": "the token is not the holder's, or the lease is free",
    "write.current": "no write with a larger token was accepted",
    "write.fenced": "a write with a larger token was accepted before",
    "expire": "the deadline of the lease has come",
}
"""When each rule applies."""
LeaseError = IntEnum("LeaseError", ("NONE", "HELD", "STALE", "FENCED"), start=0)
"""Error codes of responses."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The state: who holds the lease until when (milliseconds), the last token, the largest token of a write."""

    holder: Token = None
    token: int = 0
    deadline: Time = 0
    fence: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """A request: which lease, the client, the token that it was granted, and for how many milliseconds it wants it."""

    group: Token
    client: Token = None
    token: int = 0
    ttl: Time = 0


@dataclass(frozen=True, slots=True)
class LeaseStep:
    """The lease after an action, the response (error, token) if there is one, and the rule."""

    lease: Lease
    error: LeaseError
    token: int
    rule: str


def acquire(lease: Lease, request: Request, now: Time) -> LeaseStep:
    """Grant the lease with the next token if it is free."""
    if not absent(lease.holder):
        return LeaseStep(lease, LeaseError.HELD, 0, "acquire.held")
    granted = evolve(lease, holder=request.client, token=lease.token + 1, deadline=now + request.ttl)
    return LeaseStep(granted, LeaseError.NONE, granted.token, "acquire.free")


def renew(lease: Lease, request: Request, now: Time) -> LeaseStep:
    """Move the deadline if the request is the holder's."""
    if absent(lease.holder) or lease.holder != request.client or lease.token != request.token:
        return LeaseStep(lease, LeaseError.STALE, 0, "renew.stale")
    return LeaseStep(evolve(lease, deadline=now + request.ttl), LeaseError.NONE, lease.token, "renew.holder")


def write(lease: Lease, request: Request, now: Time) -> LeaseStep:
    """Accept the write unless a larger token was seen."""
    if request.token < lease.fence:
        return LeaseStep(lease, LeaseError.FENCED, 0, "write.fenced")
    return LeaseStep(evolve(lease, fence=request.token), LeaseError.NONE, request.token, "write.current")


def expire(lease: Lease) -> LeaseStep:
    """Free the lease; its deadline has come."""
    return LeaseStep(evolve(lease, holder=None), LeaseError.NONE, 0, "expire")


HANDLERS = {"acquire": acquire, "renew": renew, "write": write}
"""The handler of each request."""
