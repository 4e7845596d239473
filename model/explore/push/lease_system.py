"""Pings, responses and the lease on a discrete clock: one consumer, and the moment from which its partition may be
somebody else's."""

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.model.explore.transition_system import Action, Check, Column, Transition, TransitionSystem
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.push.dialect import PushDialect
from fencepost.model.push.lease import (
    ConsumerLease,
    may_deliver,
    ping_period,
    removal_time,
    renew_lease,
    sends_ping,
)

LEASE_SENTENCES = {
    "S2": "A consumer delivers nothing once it may have been taken for dead.",
    "L5": "A consumer that answers every ping at once never gives a live coordinator up.",
    "PUSH-08": "No ping is sent before it is due.",
}


FIRST_LEASE = ConsumerLease(3)


@fast_frozen
@dataclass(frozen=True, slots=True)
class LeaseState:
    """The clock, the scheduler, what is under way, and what both sides believe."""

    now: int = 0
    scheduled: int = 1
    number: int = 0
    requests: tuple[tuple[int, int], ...] = ()
    """Pings under way, each with the one that it confirms."""
    responses: tuple[int, ...] = ()
    confirmed: int = 0
    last_response: int = 0
    lease: ConsumerLease = FIRST_LEASE
    noticed: int = 0
    """When the consumer's reader looked at the clock last."""
    has_given_up: bool = False
    is_removed: bool = False
    held_since: int | None = None


@dataclass(frozen=True, slots=True)
class LeaseBounds:
    """The session timeout in ticks, until when the clock runs, whether messages may be lost or late, for how long a
    rebalance may hold the channel."""

    dialect: PushDialect
    timeout: int = 3
    horizon: int = 7
    loses: bool = True
    hold: int = 0
    slack: int = 0


def lease_system(bounds: LeaseBounds) -> TransitionSystem:
    """The system with one column. Without losses, what is under way arrives before the clock goes on."""

    def transitions(state: LeaseState) -> tuple[Transition, ...]:
        return tuple(
            Transition(label, ((0, after),), violates=violates) for label, after, violates in lease_steps(bounds, state)
        )

    safe = Check("S2", (0,), lambda state: not is_delivered_twice(bounds, state))
    # A healthy connection is given up wrongly only where nothing is lost.
    kept = Check("L5", (0,), lambda state: bounds.loses or not state.has_given_up)
    first = LeaseState(scheduled=ping_period(bounds.timeout), lease=ConsumerLease(bounds.timeout))
    return TransitionSystem(
        (Column("lease", "lease"),), (first,), (Action("step", (0,), transitions),), checks=(safe, kept)
    )


def is_delivered_twice(bounds: LeaseBounds, state: LeaseState) -> bool:
    """Whether the consumer would deliver now although its partition may be another's."""
    delivers = not state.has_given_up and may_deliver(state.lease, state.now, state.noticed, bounds.dialect)
    return state.is_removed and delivers


Step = tuple[str, LeaseState, str]


def lease_steps(bounds: LeaseBounds, state: LeaseState) -> list[Step]:
    """Everything that can happen next, with the property that it breaks."""
    found: list[Step] = []
    steps: tuple[Callable[[LeaseBounds, LeaseState], list[Step]], ...] = (
        scheduler_steps,
        coordinator_steps,
        consumer_steps,
        clock_steps,
    )
    for step in steps:
        found += step(bounds, state)
    return found


def scheduler_steps(bounds: LeaseBounds, state: LeaseState) -> list[Step]:
    """The scheduler looks at the head of its queue."""
    held = state.held_since is not None
    due = state.now >= state.scheduled
    if state.is_removed or len(state.requests) > 1:
        return []
    if sends_ping(state.scheduled, state.now, held, bounds.dialect):
        number = state.number + 1
        sent = evolve(
            state,
            number=number,
            requests=(*state.requests, (number, state.confirmed)),
            scheduled=state.scheduled + ping_period(bounds.timeout),
        )
        return [(f"at {state.now}: ping {number}, due at {state.scheduled}", sent, "" if due else "PUSH-08")]
    if due:
        return [
            (f"at {state.now}: no ping", evolve(state, scheduled=state.scheduled + ping_period(bounds.timeout)), "")
        ]
    return []


def coordinator_steps(bounds: LeaseBounds, state: LeaseState) -> list[Step]:
    """A response arrives or is lost; the consumer is taken for dead; a rebalance holds the channel."""
    found: list[Step] = []
    if state.responses:
        number, rest = state.responses[0], state.responses[1:]
        arrived = evolve(state, responses=rest, confirmed=number, last_response=state.now)
        found.append((f"at {state.now}: response {number} arrives", arrived, ""))
        if bounds.loses:
            found.append((f"at {state.now}: response {number} is lost", evolve(state, responses=rest), ""))
    if not state.is_removed and state.now >= removal_time(state.last_response, bounds.timeout, bounds.slack):
        found.append((f"at {state.now}: the partition goes to another consumer", evolve(state, is_removed=True), ""))
    if bounds.hold and state.held_since is None:
        found.append((f"at {state.now}: a rebalance holds the channel", evolve(state, held_since=state.now), ""))
    if state.held_since is not None and state.now > state.held_since:
        # Its Stop or Start is a request like any other, and renews the lease.
        lease = evolve(state.lease, end=max(state.lease.end, state.now + bounds.timeout))
        released = evolve(state, held_since=None, lease=lease, last_response=state.now)
        found.append((f"at {state.now}: Start is answered", released, ""))
    return found


def consumer_steps(bounds: LeaseBounds, state: LeaseState) -> list[Step]:
    """The reader looks at the clock, reads a ping, or never gets it."""
    found: list[Step] = []
    if state.has_given_up:
        return found
    if state.now >= state.lease.end:
        return [(f"at {state.now}: the consumer gives up", evolve(state, has_given_up=True, noticed=state.now), "")]
    if state.noticed != state.now and not bounds.dialect.checks_lease_on_delivery:
        found.append((f"at {state.now}: the reader looks at the clock", evolve(state, noticed=state.now), ""))
    if state.requests:
        (number, confirmed), rest = state.requests[0], state.requests[1:]
        lease = renew_lease(state.lease, number, confirmed, state.now, bounds.timeout, bounds.dialect)
        responses = (*state.responses, number)
        read = evolve(state, requests=rest, responses=responses, lease=lease)
        read = read if bounds.dialect.checks_lease_on_delivery else evolve(read, noticed=state.now)
        found.append((f"at {state.now}: ping {number} is answered", read, ""))
        if bounds.loses:
            found.append((f"at {state.now}: ping {number} is lost", evolve(state, requests=rest), ""))
    return found


def clock_steps(bounds: LeaseBounds, state: LeaseState) -> list[Step]:
    """One tick; the scheduler is never late, and a rebalance holds the channel no longer than it may."""
    if state.now >= bounds.horizon or (bounds.dialect.pings_when_due and state.now >= state.scheduled):
        return []
    if state.held_since is not None and state.now - state.held_since >= bounds.hold:
        return []
    if not bounds.loses and (state.requests or state.responses):
        return []
    return [(f"at {state.now + 1}: a tick", evolve(state, now=state.now + 1), "")]
