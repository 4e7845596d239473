"""The consumer: registration, Stop and Start, its lease and its offsets."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.logic import Token
from fencepost.model.push.dialect import Command, PushDialect
from fencepost.model.push.group import (
    ILLEGAL_STATE,
    PingRequest,
    PingResponse,
    StartRequest,
    StartResponse,
    StopRequest,
    StopResponse,
)

# Pings and leases: when a ping is sent, how long a consumer fetches without one, when it is taken for dead.
#
# Moments are numbers on one clock (draft, 3 scheduler, Overview and 9).


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


# Offsets: what a consumer reports, what the coordinator records, where the next owner begins (draft, 9; Impr 1).


@fast_frozen
@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """A consumer's place in a partition: what was fetched, and up to where the application consumed."""

    fetched: int = 0
    consumed: int = 0


def reported_offset(position: PartitionPosition, dialect: PushDialect) -> int:
    """The offset in a response. The draft's "current offset" leaves open which; read as the fetched one it loses
    messages."""
    return position.consumed if dialect.offers_consumed else position.fetched


@fast_frozen
@dataclass(frozen=True, slots=True)
class OffsetTable:
    """What the coordinator knows of each partition: the offset and its owner. `unwritten` are not in ZooKeeper yet
    (the first improvement: a map in memory that is written now and then)."""

    recorded: tuple[tuple[Token, int], ...] = ()
    unwritten: tuple[tuple[Token, int], ...] = ()

    def offset(self, partition: Token) -> int:
        """The newest offset of a partition."""
        return dict(self.recorded + self.unwritten).get(partition, 0)


def accept_offset(
    table: OffsetTable, partition: Token, offset: int, is_owner: bool, dialect: PushDialect
) -> tuple[OffsetTable, str]:
    """The table after a report of a consumer, and the rule. Repaired: the owner alone reports."""
    if dialect.owner_alone_reports and not is_owner:
        return table, "offset.not-owner"
    pending: Mapping[Token, int] = dict(table.unwritten) | {partition: offset}
    return evolve(table, unwritten=tuple(sorted(pending.items()))), "offset.accepted"


def write_offsets(table: OffsetTable) -> OffsetTable:
    """The table once the batch is in ZooKeeper."""
    return OffsetTable(tuple(sorted((dict(table.recorded) | dict(table.unwritten)).items())))


def lose_memory(table: OffsetTable) -> OffsetTable:
    """What another coordinator reads: offsets that were in memory alone are gone."""
    return OffsetTable(table.recorded)


# The consumer: registration, Stop and Start, and giving its connection up (draft, 5 and 9).


class ConsumerPhase(StrEnum):
    """Where the consumer is in its startup procedure."""

    DOWN = "down"
    SEARCHING = "searching"
    REGISTERING = "registering"
    REGISTERED = "registered"


@fast_frozen
@dataclass(frozen=True, slots=True)
class PushConsumer:
    """A consumer. `broker` and `number` are those of its channel."""

    phase: ConsumerPhase = ConsumerPhase.SEARCHING
    broker: int | None = None
    number: int = 0
    is_stopped: bool = True
    """The draft's fetcherStopped."""
    registry: tuple[Token, ...] = ()
    """The draft's topicRegistry."""
    fetchers: tuple[Token, ...] = ()
    """The partitions that are really fetched."""

    @property
    def is_attached(self) -> bool:
        """Whether it has a channel to a coordinator."""
        return self.phase in (ConsumerPhase.REGISTERING, ConsumerPhase.REGISTERED)


@fast_frozen
@dataclass(frozen=True, slots=True)
class ConsumerStep:
    """What comes of a request: the consumer, the rule, the response if there is one."""

    consumer: PushConsumer
    rule: str
    response: PingResponse | StopResponse | StartResponse | None = None


def new_consumer(dialect: PushDialect) -> PushConsumer:
    """A consumer at the beginning of its process. The draft gives the flag no initial value (PUSH-H06)."""
    return PushConsumer(is_stopped=dialect.start_stops_first)


def handle_ping(consumer: PushConsumer, request: PingRequest) -> ConsumerStep:
    """Say that it is alive."""
    return ConsumerStep(consumer, "ping.answered", PingResponse())


def handle_stop(consumer: PushConsumer, request: StopRequest, dialect: PushDialect) -> ConsumerStep:
    """Close all fetchers unless the flag says that they are closed (9, handleStopRequest)."""
    response = StopResponse(request.attempt) if dialect.command is Command.STOP_RESPONSE else None
    if consumer.is_stopped:
        return ConsumerStep(consumer, "stop.stopped-before", response)
    return ConsumerStep(evolve(consumer, fetchers=(), is_stopped=True), "stop.closed", response)


def handle_start(
    consumer: PushConsumer, request: StartRequest, dialect: PushDialect, fails_after: int | None = None
) -> ConsumerStep:
    """Take the assignment over and start its fetchers (9, handleStartRequest). The start fails after so many fetchers.

    A Start for a consumer that fetches something else is an error: as drafted the exception ends the handling.
    """
    if dialect.start_stops_first and dialect.command is Command.RESTART:
        consumer = evolve(consumer, fetchers=(), is_stopped=True)
    if not consumer.is_stopped and consumer.registry != request.partitions:
        refusal = StartResponse(request.attempt, ILLEGAL_STATE) if dialect.start_stops_first else None
        return ConsumerStep(consumer, "start.illegal", refusal)
    if fails_after is not None:
        half = request.partitions[:fails_after]
        stopped = not dialect.lowers_flag_first
        failed = evolve(consumer, registry=request.partitions, fetchers=half, is_stopped=stopped)
        return ConsumerStep(failed, "start.failed")
    started = evolve(consumer, registry=request.partitions, fetchers=request.partitions, is_stopped=False)
    return ConsumerStep(started, "start.started", StartResponse(request.attempt))


def give_up_channel(consumer: PushConsumer) -> PushConsumer:
    """Stop the fetchers and look for a coordinator again (Overview)."""
    return evolve(consumer, phase=ConsumerPhase.SEARCHING, broker=None, fetchers=(), registry=(), is_stopped=True)
