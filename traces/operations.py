"""From events to operations: a request with the response that belongs to it, looked up a bounded way ahead."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fencepost.traces.events import FAULT, INTERNAL, REQUEST, RESPONSE, Body, Event

MAX_LOOKAHEAD = 4_096
"""How many events ahead a response is looked for; a response further away is judged when it comes."""


@dataclass(slots=True, eq=False)
class Operation:
    """A request and what became of it. `handle` is its sequence number plus one; times in milliseconds."""

    handle: int
    api: str
    version: int
    member: str
    body: Body
    sent_at: int
    response: Body | None = None
    responded_at: int | None = None
    broker: int | None = None
    """The node it was sent to, where the trace says so."""
    lost: bool = False
    """Its connection ended, or the target was restarted: no response will be seen."""
    connection: int = 0


class PairedEvent(NamedTuple):
    """One event, with the operation that it begins or ends."""

    event: Event
    operation: Operation | None = None


@dataclass(slots=True)
class Lookahead:
    """Reads events ahead and attaches responses to the operations still to be handled."""

    events: Iterable[Event]
    window: int = MAX_LOOKAHEAD
    open_operations: dict[int, Operation] = field(default_factory=dict)

    def pair_operations(self) -> Iterator[PairedEvent]:
        """Every event in order, each request with its response if that is within the window."""
        waiting: deque[PairedEvent] = deque()
        for event in self.events:
            waiting.append(self.pair_event(event))
            if len(waiting) > self.window:
                yield waiting.popleft()
        yield from waiting

    def pair_event(self, event: Event) -> PairedEvent:
        """Take one event in."""
        if event.kind is REQUEST:
            handle = event.sequence + 1
            operation = Operation(
                handle,
                event.api,
                event.version,
                event.member,
                event.body,
                event.time,
                connection=event.connection,
            )
            self.open_operations[event.sequence] = operation
            return PairedEvent(event, operation)
        if event.kind is RESPONSE and event.of is not None:
            found = self.open_operations.pop(event.of, None)
            if found is not None:
                found.response, found.responded_at = event.body, event.time
            return PairedEvent(event, found)
        if event.kind is FAULT and event.of is not None:
            found = self.open_operations.get(event.of)
            if found is not None:
                found.lost = True
            return PairedEvent(event, found)
        if event.kind is INTERNAL and event.api == "routed" and event.of is not None:
            found = self.open_operations.get(event.of)
            if found is not None:
                found.broker = event.body["broker"]
        if event.kind is FAULT and event.api == "restart":
            for operation in self.open_operations.values():
                operation.lost = True
            self.open_operations.clear()
        return PairedEvent(event)
