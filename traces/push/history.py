"""The history of push groups: attempts begin with a Stop, go on with a Start, and end with the last response to it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from fencepost.traces.events import FAULT, INTERNAL, REQUEST, RESPONSE, Event, Operation
from fencepost.traces.history.builder import (
    EMPTY,
    NOT_SHOWN,
    STABLE,
    UNKNOWN,
    CauseKind,
    ChangeCause,
    HoldKind,
    PhaseHold,
    TimelineBuilder,
)
from fencepost.traces.history.recorder import MessageRecorder

CHANGED = ChangeCause(CauseKind.OTHER, detail="the topics or their partitions changed")
AGAIN = ChangeCause(CauseKind.OTHER, detail="the attempt before it failed")


@dataclass(slots=True)
class PushGroup:
    """A group: its consumers by connection, the present attempt, and whom that waits for."""

    builder: TimelineBuilder
    consumers: dict[int, str] = field(default_factory=dict)
    attempt: int | None = None
    started_at: int | None = None
    """When the first Start of the attempt was sent."""
    awaited: dict[str, None] = field(default_factory=dict)
    """Consumers without a response to its Stop or Start."""
    cause: ChangeCause = NOT_SHOWN
    """Why the next rebalance begins."""

    def on_stop(self, attempt: int, consumer: str, time: int) -> None:
        """A Stop, of a new attempt if its number is new."""
        if attempt != self.attempt:
            is_retry = self.builder.open is not None and self.cause is NOT_SHOWN
            self.builder.begin_rebalance(time, AGAIN if is_retry else self.cause)
            self.attempt, self.started_at, self.cause = attempt, None, NOT_SHOWN
            self.awaited.clear()
        self.awaited[consumer] = None

    def on_start(self, attempt: int, consumer: str, time: int) -> None:
        """A Start; with the first one all have stopped."""
        if attempt != self.attempt:
            return
        if self.started_at is None:
            self.started_at = time
            self.awaited.clear()
            self.builder.end_join_phase(time, attempt)
        self.awaited[consumer] = None

    def on_stopped(self, attempt: int, consumer: str, time: int) -> None:
        """A response to Stop."""
        if attempt == self.attempt and self.started_at is None:
            self.awaited.pop(consumer, None)
            self.builder.mark_back(time, consumer)

    def on_started(self, attempt: int, consumer: str, time: int) -> None:
        """A response to Start; the last one ends the rebalance."""
        if attempt != self.attempt or self.started_at is None or consumer not in self.awaited:
            return
        del self.awaited[consumer]
        if not self.awaited:
            hold = PhaseHold(HoldKind.LAST_TO_JOIN, (consumer,), time - self.started_at)
            self.builder.end_rebalance(time, STABLE, hold)

    def on_gone(self, connection: int, time: int) -> None:
        """The connection of a consumer ended."""
        consumer = self.consumers.pop(connection, None)
        if consumer is None:
            return
        cause = ChangeCause(CauseKind.CLOSED, (consumer,))
        self.awaited.pop(consumer, None)
        if consumer not in self.consumers.values():
            self.builder.remove_member(time, consumer, cause)
        self.cause = cause
        if not self.consumers:
            self.builder.end_rebalance(time, EMPTY)


@dataclass(slots=True)
class PushRecorder(MessageRecorder):
    """Records the history of a trace of push."""

    groups: dict[str, PushGroup] = field(default_factory=dict)
    owners: dict[int, PushGroup] = field(default_factory=dict)
    """The group of each connection on which a consumer is registered."""
    limits: ClassVar[tuple[str, ...]] = (
        "It has the messages of the connections that were recorded; other members of a group do not show.",
        "Why a rebalance begins is told by what the trace shows before it.",
    )

    def tell(self, event: Event, operation: Operation | None) -> None:
        """As `MessageRecorder.tell`."""
        group = self.owners.get(event.connection)
        if event.kind is INTERNAL:
            self.on_internal(event)
        elif event.kind is FAULT and event.api in ("closed", "drop") and group is not None:
            group.on_gone(event.connection, event.time)
        elif operation is not None and operation.api == "RegisterConsumer":
            if event.kind is RESPONSE and event.body.get("error_code") == 0:
                self.on_registered(operation, event.time)
        elif operation is not None and group is not None and event.kind in (REQUEST, RESPONSE):
            self.on_command(group, event, operation)

    def on_registered(self, operation: Operation, time: int) -> None:
        """A consumer is registered."""
        name, consumer = operation.body["group"], operation.body["consumer"]
        group = self.groups.setdefault(name, PushGroup(self.builder_of(name)))
        group.consumers[operation.connection] = consumer
        group.cause = ChangeCause(CauseKind.CAME, (consumer,))
        group.builder.add_member(time, consumer)
        if group.builder.phase == UNKNOWN:
            group.builder.change_phase(time, EMPTY)
        self.owners[operation.connection] = group

    def on_command(self, group: PushGroup, event: Event, operation: Operation) -> None:
        """A Stop or Start, or the response to one."""
        consumer = group.consumers.get(event.connection)
        attempt = operation.body.get("attempt")
        if consumer is None or not isinstance(attempt, int):
            return
        match event.kind, operation.api:
            case (kind, "Stop") if kind is REQUEST:
                group.on_stop(attempt, consumer, event.time)
            case (kind, "Start") if kind is REQUEST:
                group.on_start(attempt, consumer, event.time)
            case _, "Stop":
                group.on_stopped(attempt, consumer, event.time)
            case _, "Start" if event.body.get("error_code") == 0:
                group.on_started(attempt, consumer, event.time)

    def on_internal(self, event: Event) -> None:
        """The kit changed partitions, or took its place from the coordinator."""
        for group in self.groups.values():
            if event.api == "partitions":
                group.cause = CHANGED
            elif event.api == "lost-coordinator":
                group.builder.end_rebalance(event.time, UNKNOWN)
                group.builder.add_limit(event.time, "another coordinator begins with an empty group")
                group.attempt = None

    def awaited_members(self, group: str) -> Iterable[str]:
        """As `MessageRecorder.awaited_members`."""
        return self.groups[group].awaited if group in self.groups else ()
