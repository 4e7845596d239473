"""The parts of a trace: a header with the conditions of observation, and events in the order of observation."""

import gc
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from fencepost.model.frozen import fast_frozen
from fencepost.model.settings import Settings

FORMAT_VERSION = 1
CLASSIC = "classic"
"""The protocol of a trace that names none: that of consumer groups since Kafka 0.9."""
SAVED = "saved"
"""The name of the internal event that says for which requirements a failing trace was saved, and of an excerpt which
requests are `left_out`: others of its requirements may need them."""

Body: TypeAlias = Mapping[str, Any]
"""A message by field name: Kafka's schema names in snake case; values are None, bool, int, float, str, bytes,
lists and further bodies. A field that the version does not have is absent."""


class Order(StrEnum):
    """Place of observation, which decides the meaning of the order of events."""

    TOTAL = "total"
    """Seen at the coordinator: a request event is the moment of its handling."""
    INTERVALS = "intervals"
    """Seen at clients: a request is handled somewhere between its event and its response's event."""


class Kind(StrEnum):
    """Kind of an event."""

    REQUEST = "request"
    RESPONSE = "response"
    CALLBACK = "callback"
    POLL = "poll"
    FAULT = "fault"
    INTERNAL = "internal"


REQUEST, RESPONSE, FAULT, INTERNAL = Kind.REQUEST, Kind.RESPONSE, Kind.FAULT, Kind.INTERNAL
"""The kinds that every event of a trace is compared with; members of an enumeration are looked up slowly."""


@dataclass(frozen=True, slots=True)
class Header:
    """First line of a trace.

    `clock` is "virtual" or "wall"; `settings` are the target's; a timer may fire up to `grace` milliseconds after its
    deadline; `implementation` describes the target. `protocol` names the protocol; `limits` are bounds and times of the
    target that `settings` has no field for, by name. The settings that are `not_told` are guesses: what they excuse is
    right, and what they would accuse is right as well.
    """

    source: str
    order: Order
    clock: str
    settings: Settings
    grace: int
    implementation: Mapping[str, str] = field(default_factory=dict)
    protocol: str = CLASSIC
    limits: Mapping[str, int] = field(default_factory=dict)
    not_told: frozenset[str] = frozenset()


@fast_frozen
@dataclass(frozen=True, slots=True)
class Event:
    """One observation.

    `sequence` rises strictly within a trace; `time` is in milliseconds since the trace began and never falls;
    `of` is the sequence number of the request that a response (or a dropped connection) belongs to, else None.
    `member` is the label of the actor in the schedule ("A", "B", ...), never a member id.
    """

    sequence: int
    time: int
    connection: int
    member: str
    kind: Kind
    api: str
    version: int
    body: Body
    of: int | None = None


# --- From events to operations: a request with the response that belongs to it, looked up a bounded way ahead.

CLOSED_AT_ONCE_MS = 1_000
"""How far apart the ends of connections may be that a target has closed at the same time."""
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
    is_cut_with_others: bool = False
    """The target closed its connection, and others at the same time: which request it went down at is not known."""
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
    just_closed: list[tuple[int, Operation]] = field(default_factory=list)
    """The times at which the target closed connections since its last response, with the requests cut off."""

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
            self.just_closed.clear()
            if found is not None:
                found.response, found.responded_at = event.body, event.time
            return PairedEvent(event, found)
        if event.kind is FAULT and event.of is not None:
            found = self.open_operations.get(event.of)
            if found is not None:
                found.lost = True
                if event.api == "closed":
                    self.note_closed(event.time, found)
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

    def note_closed(self, time: int, operation: Operation) -> None:
        """Note a request that the target closed its connection at, and whether it closed others with it."""
        self.just_closed = [each for each in self.just_closed if time - each[0] <= CLOSED_AT_ONCE_MS]
        self.just_closed.append((time, operation))
        if len({each.connection for _, each in self.just_closed}) > 1:
            for _, each in self.just_closed:
                each.is_cut_with_others = True


# --- Garbage collection while many values are made.

VALUES_BETWEEN_COLLECTIONS = 50_000


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Look for cycles rarely meanwhile: a judge makes millions of values, and hardly a cycle."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(VALUES_BETWEEN_COLLECTIONS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
