"""The theorems about the lease, proved by induction over its events and checked in a system of a few clients."""

from functools import partial

from fencepost.model.explore import transition_system as explore
from fencepost.model.logic import Time, Truth, absent, not_, or_
from fencepost.model.proofs.induction import HandlerEvent
from fencepost.model.statement import statement
from tests.support.lease.protocol import HANDLERS, Lease, Request, acquire, expire, renew, write


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
