"""Small systems beside the main one: leases and pings on a clock, and offsets that move with a partition."""

from collections.abc import Iterator
from dataclasses import dataclass

from fencepost.model.explore.rows import value_system
from fencepost.model.explore.transition_system import TransitionSystem
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.push.consumer import (
    ConsumerLease,
    OffsetTable,
    PartitionPosition,
    accept_offset,
    lose_memory,
    may_deliver,
    ping_period,
    removal_time,
    renew_lease,
    reported_offset,
    sends_ping,
    write_offsets,
)
from fencepost.model.push.dialect import PushDialect

# Pings, responses and the lease on a discrete clock: one consumer, and the moment from which its partition may be
# somebody else's.


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


Step = tuple[str, LeaseState, str]
"""What happens, the state after it, and the property that it breaks."""


def lease_system(bounds: LeaseBounds) -> TransitionSystem:
    """The system with one column. Without losses, what is under way arrives before the clock goes on."""

    def steps(state: LeaseState) -> Iterator[Step]:
        for step in (scheduler_steps, coordinator_steps, consumer_steps, clock_steps):
            yield from step(bounds, state)

    def is_safe(state: LeaseState) -> bool:
        delivers = not state.has_given_up and may_deliver(state.lease, state.now, state.noticed, bounds.dialect)
        return not (state.is_removed and delivers)

    def is_kept(state: LeaseState) -> bool:
        # A healthy connection is given up wrongly only where nothing is lost.
        return bounds.loses or not state.has_given_up

    first = LeaseState(scheduled=ping_period(bounds.timeout), lease=ConsumerLease(bounds.timeout))
    return value_system("lease", first, steps, {"S2": is_safe, "L5": is_kept})


def scheduler_steps(bounds: LeaseBounds, state: LeaseState) -> Iterator[Step]:
    """The scheduler looks at the head of its queue."""
    due = state.now >= state.scheduled
    if state.is_removed or len(state.requests) > 1:
        return
    after = evolve(state, scheduled=state.scheduled + ping_period(bounds.timeout))
    if sends_ping(state.scheduled, state.now, state.held_since is not None, bounds.dialect):
        number = state.number + 1
        sent = evolve(after, number=number, requests=(*state.requests, (number, state.confirmed)))
        yield f"at {state.now}: ping {number}, due at {state.scheduled}", sent, "" if due else "PUSH-08"
    elif due:
        yield f"at {state.now}: no ping", after, ""


def coordinator_steps(bounds: LeaseBounds, state: LeaseState) -> Iterator[Step]:
    """A response arrives or is lost; the consumer is taken for dead; a rebalance holds the channel."""
    if state.responses:
        number, rest = state.responses[0], state.responses[1:]
        arrived = evolve(state, responses=rest, confirmed=number, last_response=state.now)
        yield f"at {state.now}: response {number} arrives", arrived, ""
        if bounds.loses:
            yield f"at {state.now}: response {number} is lost", evolve(state, responses=rest), ""
    if not state.is_removed and state.now >= removal_time(state.last_response, bounds.timeout, bounds.slack):
        yield f"at {state.now}: the partition goes to another consumer", evolve(state, is_removed=True), ""
    if bounds.hold and state.held_since is None:
        yield f"at {state.now}: a rebalance holds the channel", evolve(state, held_since=state.now), ""
    if state.held_since is not None and state.now > state.held_since:
        # Its Stop or Start is a request like any other, and renews the lease.
        lease = evolve(state.lease, end=max(state.lease.end, state.now + bounds.timeout))
        released = evolve(state, held_since=None, lease=lease, last_response=state.now)
        yield f"at {state.now}: Start is answered", released, ""


def consumer_steps(bounds: LeaseBounds, state: LeaseState) -> Iterator[Step]:
    """The reader looks at the clock, reads a ping, or never gets it."""
    if state.has_given_up:
        return
    if state.now >= state.lease.end:
        yield f"at {state.now}: the consumer gives up", evolve(state, has_given_up=True, noticed=state.now), ""
        return
    if state.noticed != state.now and not bounds.dialect.checks_lease_on_delivery:
        yield f"at {state.now}: the reader looks at the clock", evolve(state, noticed=state.now), ""
    if state.requests:
        (number, confirmed), rest = state.requests[0], state.requests[1:]
        lease = renew_lease(state.lease, number, confirmed, state.now, bounds.timeout, bounds.dialect)
        responses = (*state.responses, number)
        read = evolve(state, requests=rest, responses=responses, lease=lease)
        read = read if bounds.dialect.checks_lease_on_delivery else evolve(read, noticed=state.now)
        yield f"at {state.now}: ping {number} is answered", read, ""
        if bounds.loses:
            yield f"at {state.now}: ping {number} is lost", evolve(state, requests=rest), ""


def clock_steps(bounds: LeaseBounds, state: LeaseState) -> Iterator[Step]:
    """One tick; the scheduler is never late, and a rebalance holds the channel no longer than it may."""
    is_due = bounds.dialect.pings_when_due and state.now >= state.scheduled
    is_held_on = state.held_since is not None and state.now - state.held_since >= bounds.hold
    arrives_first = not bounds.loses and bool(state.requests or state.responses)
    if state.now < bounds.horizon and not (is_due or is_held_on or arrives_first):
        yield f"at {state.now + 1}: a tick", evolve(state, now=state.now + 1), ""


# One partition that moves from one consumer to another: what is fetched, consumed, reported and recorded.


LOG_END = 2
OFFSET_SENTENCES = {
    "S11": "No message is skipped: a consumer begins no later than where the application has consumed.",
    "S11-back": "The offset of a partition never moves backwards.",
}
PARTITION = "p0"
NO_OFFSETS = OffsetTable()


@fast_frozen
@dataclass(frozen=True, slots=True)
class OffsetState:
    """Two consumers' positions, who owns the partition, up to where it was consumed, reports under way, the table."""

    positions: tuple[PartitionPosition, PartitionPosition] = (PartitionPosition(), PartitionPosition())
    owner: int | None = 0
    consumed: int = 0
    reports: tuple[tuple[int, int], ...] = ()
    """Consumer and offset of each ping response under way."""
    table: OffsetTable = NO_OFFSETS
    moves: int = 1
    failovers: int = 0


def offset_system(dialect: PushDialect, failovers: int = 0) -> TransitionSystem:
    """The system with one column; the partition moves once, the coordinator fails over so often."""

    def steps(state: OffsetState) -> Iterator[tuple[str, OffsetState, str]]:
        for label, after in (*reader_steps(state, dialect), *table_steps(state, dialect)):
            goes_back = after.table.offset(PARTITION) < state.table.offset(PARTITION)
            # What a failover forgets was never recorded.
            yield label, after, "S11-back" if goes_back and after.failovers == state.failovers else ""

    def skips_none(state: OffsetState) -> bool:
        # No owner has begun behind a message that nobody consumed.
        return state.owner is None or state.positions[state.owner].consumed <= state.consumed

    return value_system("offsets", OffsetState(failovers=failovers), steps, {"S11": skips_none})


def reader_steps(state: OffsetState, dialect: PushDialect) -> Iterator[tuple[str, OffsetState]]:
    """A consumer fetches, the application consumes, a ping is answered: by one that stopped as well."""
    for who, position in enumerate(state.positions):
        name = f"c{who}"
        if who == state.owner and position.fetched < LOG_END:
            more = evolve(position, fetched=position.fetched + 1)
            yield f"{name} fetches message {position.fetched}", with_position(state, who, more)
        if who == state.owner and position.consumed < position.fetched:
            more = evolve(position, consumed=position.consumed + 1)
            new = evolve(with_position(state, who, more), consumed=max(state.consumed, more.consumed))
            yield f"the application at {name} consumes message {position.consumed}", new
        if len(state.reports) < 2 and (who == state.owner or who == 0):
            offset = reported_offset(position, dialect)
            reports = (*state.reports, (who, offset))
            yield f"{name} answers a ping with offset {offset}", evolve(state, reports=reports)


def with_position(state: OffsetState, who: int, position: PartitionPosition) -> OffsetState:
    """The state with another position of one consumer."""
    one, other = state.positions
    return evolve(state, positions=(position, other) if who == 0 else (one, position))


def table_steps(state: OffsetState, dialect: PushDialect) -> Iterator[tuple[str, OffsetState]]:
    """A report arrives, the batch is written, the partition moves, the coordinator fails over."""
    if state.reports:
        (who, offset), rest = state.reports[0], state.reports[1:]
        table, rule = accept_offset(state.table, PARTITION, offset, who == state.owner, dialect)
        what = "records" if rule == "offset.accepted" else "ignores"
        yield f"the coordinator {what} offset {offset} of c{who}", evolve(state, reports=rest, table=table)
    if state.table.unwritten:
        yield "the offsets are written", evolve(state, table=write_offsets(state.table))
    if state.moves and state.owner is not None:
        yield move_partition(state, dialect)
    if state.failovers:
        lost = evolve(state, failovers=state.failovers - 1, table=lose_memory(state.table), reports=())
        yield "the coordinator fails over", lost


def move_partition(state: OffsetState, dialect: PushDialect) -> tuple[str, OffsetState]:
    """Stop to the owner, then Start to the other with the offset that is known by then."""
    table = state.table
    if dialect.stop_carries_offsets:
        final = reported_offset(state.positions[0], dialect)
        table, _ = accept_offset(table, PARTITION, final, True, dialect)
    offset = table.offset(PARTITION)
    # What was under way on the channel of the old owner was sent before its response to Stop.
    reports = () if dialect.stop_carries_offsets else state.reports
    positions = (state.positions[0], PartitionPosition(offset, offset))
    moved = evolve(state, owner=1, moves=0, table=table, positions=positions, reports=reports)
    return f"p0 moves to c1, which starts at {offset}", moved
