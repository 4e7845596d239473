"""The lease and its clients as a system to explore; each client remembers the last token that it was granted."""

from fencepost.model.explore import transition_system as explore
from tests.support.lease.protocol import Acquire, Lease, LeaseStep, Renew, Write, acquire, expire, renew, write
from tests.support.lease.theorems import STEP_STATEMENTS, fence_granted

MAX_TOKEN = 3
HANDLERS = {
    "acquires": lambda lease, client, token: acquire(lease, Acquire(client, 0), 0),
    "renews": lambda lease, client, token: renew(lease, Renew(client, token, 0), 0),
    "writes": lambda lease, client, token: write(lease, Write(token), 0),
}
"""What a client does with the token that it remembers."""


def transition(label: str, before: Lease, step: LeaseStep, *writes: tuple[int, int]) -> explore.Transition:
    violated = next((one.id for one in STEP_STATEMENTS if not one.holds(before, step.lease)), "")
    cut = step.lease.token > MAX_TOKEN
    return explore.Transition(label, ((0, step.lease), *writes), step.rule, cut, violated)


def client_action(column: int, client: str, name: str) -> explore.Action:
    def transitions(lease: Lease, token: int) -> tuple[explore.Transition, ...]:
        step = HANDLERS[name](lease, client, token)
        return (transition(f"{client} {name}", lease, step, (column, step.token or token)),)

    return explore.Action(f"{client} {name}", (0, column), transitions)


def expire_held(lease: Lease) -> tuple[explore.Transition, ...]:
    return () if lease.holder is None else (transition("the lease expires", lease, expire(lease)),)


def lease_system(clients: str = "AB") -> explore.TransitionSystem:
    actions = [client_action(column, client, name) for column, client in enumerate(clients, 1) for name in HANDLERS]
    actions.append(explore.Action("the lease expires", (0,), expire_held))
    columns = (explore.Column("lease", "lease"), *(explore.Column(f"token of {one}", "token") for one in clients))
    safe = explore.Check(fence_granted.id, (0,), fence_granted.holds)
    fenced = explore.Check("fenced", (0, 1), lambda lease, token: token < lease.fence, explore.PropertyKind.SOMETIMES)
    return explore.TransitionSystem(columns, (Lease(), *(0 for _ in clients)), tuple(actions), checks=(safe, fenced))
