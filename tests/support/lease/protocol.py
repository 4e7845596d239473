"""The lease: state, requests, responses, requirements, rules, and one pure handler an action.

A client acquires the lease for a time and gets a fencing token, larger than every token before it. Writes carry a
token; a write with a smaller token than one accepted before is refused.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from functools import partial

from fencepost.adapters.in_process import ImmediateTarget
from fencepost.adapters.target import SendOptions
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.protocol import ProtocolDescription
from fencepost.conformance.run.schedule import Move, RandomMoves, actor_label
from fencepost.model.catalogue.notation import read_requirements, read_rules
from fencepost.model.catalogue.specification import Specification
from fencepost.model.explore import transition_system as explore
from fencepost.model.frozen import evolve
from fencepost.model.logic import Time, Token, Truth, absent, not_, or_
from fencepost.model.proofs.induction import HandlerEvent
from fencepost.model.statement import statement
from fencepost.traces.events import Body, Operation
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol
from fencepost.traces.judge.search.configuration import GroupOperation, Instant
from fencepost.traces.judge.search.stepper import HandlerStepper

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


# --- The theorems about the lease, proved by induction over its events and checked in a system of a few clients.


@statement("fence-granted", "No accepted write carries a larger token than the last one granted.")
def fence_granted(lease: Lease) -> Truth:
    return lease.fence <= lease.token


@statement("one-holder", "A client holds the lease until it expires.")
def one_holder(before: Lease, after: Lease) -> Truth:
    return or_(absent(before.holder), absent(after.holder), before.holder == after.holder)


@statement("tokens-grow", "A client that gets the lease gets a larger token than every client before it.")
def tokens_grow(before: Lease, after: Lease) -> Truth:
    return or_(absent(after.holder), not_(absent(before.holder)), after.token > before.token)


@statement("fence-grows", "No write is accepted after a write with a larger token.")
def fence_grows(before: Lease, after: Lease) -> Truth:
    return after.fence >= before.fence


STEP_STATEMENTS = (one_holder, tokens_grow, fence_grows)
STATEMENTS = (fence_granted, *STEP_STATEMENTS)
# Any client sends any token at any time; a write carries one that was granted.
ACQUIRE = HandlerEvent("acquire", acquire, (Request, Time))
RENEW = HandlerEvent("renew", renew, (Request, Time))
WRITE = HandlerEvent("write", write, (Request, Time), assumed=lambda lease, request, now: request.token <= lease.token)
EXPIRE = HandlerEvent("expire", expire, ())
MAX_TOKEN = 3
lease_action = partial(explore.handler_action, statements=STEP_STATEMENTS, is_beyond=lambda one: one.token > MAX_TOKEN)


def client_action(column: int, client: str, name: str) -> explore.Action:
    def handle(lease: Lease, token: int) -> tuple[str, tuple[Lease, int]]:
        step = HANDLERS[name](lease, Request("lease", client, token), 0)
        return step.rule, (step.lease, step.token or token)

    return lease_action(f"{client} {name}", (0, column), handle)


def expire_held(lease: Lease) -> tuple[str, tuple[Lease]] | None:
    return None if lease.holder is None else ("expire", (expire(lease).lease,))


def lease_system(clients: str = "AB") -> explore.TransitionSystem:
    """The lease and its clients, each of which remembers the last token that it was granted."""
    actions = [client_action(column, client, name) for column, client in enumerate(clients, 1) for name in HANDLERS]
    actions.append(lease_action("expire", (0,), expire_held))
    columns = (explore.Column("lease", "lease"), *(explore.Column(f"token of {one}", "token") for one in clients))
    safe = explore.Check(fence_granted.id, (0,), fence_granted.holds)
    fenced = explore.Check("fenced", (0, 1), lambda lease, token: token < lease.fence, explore.PropertyKind.SOMETIMES)
    return explore.TransitionSystem(columns, (Lease(), *(0 for _ in clients)), tuple(actions), checks=(safe, fenced))


# --- The lease as the judge sees it: messages, steps and timers.


@dataclass(slots=True)
class LeaseStepper(HandlerStepper):
    """Takes single steps of one lease; a lease that is held is its own timer, as it has a deadline."""

    def initial_state(self) -> Lease:
        return Lease()

    def armed_timers(self, state: Lease) -> Sequence[Lease]:
        return () if state.holder is None else (state,)

    def take_step(self, state: Lease, part: GroupOperation | None, now: Instant) -> tuple[Lease, str, Body]:
        step = expire(state) if part is None else HANDLERS[part.operation.api](state, part.request, now)
        return step.lease, step.rule, step.response


class LeaseProtocol(JudgedProtocol):
    """Reads a trace of leases."""

    specification = SPECIFICATION
    stepper = LeaseStepper

    def requests_in(self, operation: Operation, groups: Iterable[str]) -> Iterator[Request]:
        yield Request(**operation.body)

    def state_label(self, state: Lease) -> str:
        return "free" if state.holder is None else "held"


# --- A lease server as a target in this process, random schedules of two clients for it, and the description for
# runs.

TTL_MS = 300


def handle_request(lease: Lease, api: str, body: Body, now: int) -> LeaseStep:
    """Handle a request after the lease has expired, if its deadline has come by `now` (milliseconds)."""
    due = lease.holder is not None and lease.deadline <= now
    return HANDLERS[api](expire(lease).lease if due else lease, Request(**body), now)


def lease_target(handle: Callable[[Lease, str, Body, int], LeaseStep] = handle_request) -> ImmediateTarget:
    """A lease server; a faulty one has another `handle`."""

    def respond(lease: Lease, api: str, body: Body, now: int) -> tuple[Lease, Body]:
        step = handle(lease, api, body, now)
        return step.lease, step.response

    return ImmediateTarget("lease", HANDLERS, respond, Lease())


class LeaseSchedules(RandomMoves):
    """The lease as the schedule engine sees it: clients acquire, renew and write, and time passes."""

    moves = (*(Move(kind, who) for kind in HANDLERS for who in (0, 1)), Move("wait"), Move("wait", 0, (("ms", 100),)))
    wait_ms = 2 * TTL_MS

    async def play_move(self, context: ScenarioContext, move: Move, memory: dict[int, int]) -> None:
        """Send a request, with the token that the client was granted last."""
        client = actor_label(move.who)
        body = asdict(Request("lease", client, memory.get(move.who, 0), TTL_MS))
        response = await context.channel.send(move.kind, 0, body, SendOptions(client)).response
        if response and move.kind == "acquire" and not response["error_code"]:
            memory[move.who] = response["token"]


LEASE = ProtocolDescription(
    SPECIFICATION,
    LeaseProtocol,
    make_schedules=lambda scope: LeaseSchedules(),
    make_bundled=lambda settings: lease_target(),
)
