"""The consumer: registration, Stop and Start, and giving its connection up (draft, 5 and 9)."""

from dataclasses import dataclass
from enum import StrEnum

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.logic import Token
from fencepost.model.push.dialect import Command, PushDialect
from fencepost.model.push.messages import (
    ILLEGAL_STATE,
    PingRequest,
    PingResponse,
    StartRequest,
    StartResponse,
    StopRequest,
    StopResponse,
)


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
