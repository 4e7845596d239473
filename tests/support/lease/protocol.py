"""The lease: state, requests, responses, requirements, rules, and one pure handler an action.

A client acquires the lease for a time and gets a fencing token, larger than every token before it. Writes carry a
token; a write with a smaller token than one accepted before is refused.
"""

from dataclasses import dataclass
from enum import IntEnum

from fencepost.model.catalogue.notation import read_requirements, read_rules
from fencepost.model.catalogue.specification import Specification
from fencepost.model.frozen import evolve
from fencepost.model.logic import Time, Token, absent

LeaseError = IntEnum("LeaseError", ("NONE", "HELD", "STALE", "FENCED"), start=0)
"""Error codes of responses."""
NONE, HELD, STALE, FENCED = LeaseError
REQUIREMENTS, _ = read_requirements("""
LEASE-01 MUST: Tokens grow
  Each token is larger than every token before it. [the toy protocol]
LEASE-02 MUST: Leases expire
  A lease is free once its deadline has come. [the toy protocol]
LEASE-03 MUST: Writes are fenced
  A write with a smaller token than another is refused. [the toy protocol]
""")
RULES = """
api acquire
  acquire.free NONE: nobody holds the lease [LEASE-02; token LEASE-01]
  acquire.held HELD: a client holds the lease [LEASE-02]
api renew
  renew.holder NONE: the token is that of the client that holds the lease [LEASE-02]
  renew.stale STALE: the token is not the holder's, or the lease is free [LEASE-02]
api write
  write.current NONE: no write with a larger token was accepted [LEASE-03]
  write.fenced FENCED: a write with a larger token was accepted before [LEASE-03]
no api: the clock
  expire: the deadline of the lease has come [LEASE-02]
"""
SPECIFICATION = Specification(
    REQUIREMENTS, read_rules(RULES, requirements=REQUIREMENTS, errors=LeaseError.__members__), subject="lease"
)


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

    @property
    def response(self) -> dict[str, int]:
        return {"error_code": self.error, "token": self.token}


def acquire(lease: Lease, request: Request, now: Time) -> LeaseStep:
    """Grant the lease with the next token if it is free."""
    if not absent(lease.holder):
        return LeaseStep(lease, HELD, 0, "acquire.held")
    granted = evolve(lease, holder=request.client, token=lease.token + 1, deadline=now + request.ttl)
    return LeaseStep(granted, NONE, granted.token, "acquire.free")


def renew(lease: Lease, request: Request, now: Time) -> LeaseStep:
    """Move the deadline if the request is the holder's."""
    if absent(lease.holder) or lease.holder != request.client or lease.token != request.token:
        return LeaseStep(lease, STALE, 0, "renew.stale")
    return LeaseStep(evolve(lease, deadline=now + request.ttl), NONE, lease.token, "renew.holder")


def write(lease: Lease, request: Request, now: Time) -> LeaseStep:
    """Accept the write unless a larger token was seen."""
    if request.token < lease.fence:
        return LeaseStep(lease, FENCED, 0, "write.fenced")
    return LeaseStep(evolve(lease, fence=request.token), NONE, request.token, "write.current")


def expire(lease: Lease) -> LeaseStep:
    """Free the lease; its deadline has come."""
    return LeaseStep(evolve(lease, holder=None), NONE, 0, "expire")


HANDLERS = {"acquire": acquire, "renew": renew, "write": write}
"""The handler of each request."""
