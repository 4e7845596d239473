"""From frames on the wire to events: what a recorder sees between clients and a cluster, and what a capture holds.

Seen on the way, a request is handled between its event and its answer's (`Order.INTERVALS`). Nothing is refused: what
cannot be decoded is kept as bytes, or told by its size where it may hold records or credentials.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fencepost.model.wire.codec import API_NAMES, decode_request, decode_response
from fencepost.traces.events import Body, Event, Kind

RECORDS = frozenset({0, 1})
"""Keys of Produce and Fetch: the records themselves are never kept."""
CONSUMER_GROUPS = frozenset({68, 69})
"""Keys of the newer group protocol (KIP-848), which the kit does not decode."""
KEPT = frozenset(API_NAMES) - RECORDS | CONSUMER_GROUPS
"""Keys whose messages are kept as bytes where they cannot be decoded; others may hold credentials."""
CHANGING = frozenset(
    {
        "JoinGroup",
        "SyncGroup",
        "Heartbeat",
        "LeaveGroup",
        "OffsetCommit",
        "TxnOffsetCommit",
        "EndTxn",
        "DeleteGroups",
        "OffsetDelete",
    }
)
"""APIs by which a group changes: of one that cannot be read, nobody knows what it did."""
ACTORS = 10_000
"""How many member ids are remembered to tell actors apart."""


class Actors:
    """Labels for who sends: A, B, ... A member is known by its id, before it has one by its connection."""

    def __init__(self) -> None:
        self._labels: OrderedDict[str, str] = OrderedDict()
        self._count = 0

    def new(self) -> str:
        """A label that nobody has."""
        name, number = "", self._count
        while number >= 0:
            name = chr(ord("A") + number % 26) + name
            number = number // 26 - 1
        self._count += 1
        return name

    def of(self, member: object) -> str | None:
        """Whose member id this is, as far as anybody was seen with it."""
        return self._labels.get(member) if isinstance(member, str) and member else None

    def learn(self, member: object, label: str) -> None:
        """This is somebody's member id."""
        if isinstance(member, str) and member:
            self._labels.setdefault(member, label)
            if len(self._labels) > ACTORS:
                self._labels.popitem(last=False)


class Tape:
    """Numbers events in the order in which they are seen. `now` gives milliseconds since the trace began; `write` takes
    each event; with `everything`, also bytes are kept that may hold records or credentials."""

    def __init__(self, write: Callable[[Event], None], now: Callable[[], int], *, everything: bool = False) -> None:
        self.write = write
        self.everything = everything
        self.actors = Actors()
        self.events = 0
        self.undecoded = 0
        self._now = now
        self._conversations: dict[int, Conversation] = {}
        self._begun = 0

    def record(
        self, kind: Kind, api: str, version: int, body: Body, connection: int, member: str, of: int | None = None
    ) -> Event:
        """Write one event at the present time."""
        event = Event(self.events, self._now(), connection, member, kind, api, version, body, of)
        self.events += 1
        self.write(event)
        return event

    def unknown(self, reason: str) -> None:
        """From here on nobody knows what state groups are in."""
        self.record(Kind.INTERNAL, "unknown", 0, {"reason": reason}, 0, "")

    def conversation(self) -> "Conversation":
        """A new connection."""
        self._begun += 1
        begun = Conversation(self, self._begun)
        self._conversations[self._begun] = begun
        return begun

    def forget(self, number: int) -> None:
        """A connection has ended."""
        self._conversations.pop(number, None)

    def open(self) -> list[Event]:
        """The requests in flight, in order."""
        flights = (flight for each in self._conversations.values() for flight in each.flights)
        return sorted((flight.request for flight in flights), key=lambda event: event.sequence)


@dataclass(frozen=True, slots=True)
class Flight:
    """A request that has no answer yet."""

    correlation: int
    key: int
    request: Event


class Conversation:
    """One connection: requests go one way, answers come back in the same order."""

    def __init__(self, tape: Tape, number: int) -> None:
        self.number = number
        self.flights: deque[Flight] = deque()
        self.concerns_groups = False
        """A request that can change a group came this way."""
        self._tape = tape
        self._label = ""

    def request(self, frame: bytes) -> None:
        """A request was seen, without the bytes of its length."""
        key, version = int.from_bytes(frame[:2], signed=True), int.from_bytes(frame[2:4], signed=True)
        correlation, api = int.from_bytes(frame[4:8], signed=True), API_NAMES.get(key)
        body: Body = {"_size": len(frame)}
        if api != "Produce":
            asked = decode_request(frame)
            body = self._seen(key, frame, asked.body, asked.findings)
        name = api or f"api-{key}"
        member = self._speaker(body)
        request = self._tape.record(Kind.REQUEST, name, version, body, self.number, member)
        self.flights.append(Flight(correlation, key, request))
        self.concerns_groups |= name in CHANGING
        self._doubt(request)

    def answer(self, frame: bytes) -> Flight | None:
        """An answer was seen; which request it belongs to. One without an answer (Produce with acks=0) is passed by."""
        correlation = int.from_bytes(frame[:4], signed=True)
        if all(flight.correlation != correlation for flight in self.flights):
            body: Body = {"_undecoded": frame} if self._tape.everything else {"_size": len(frame)}
            self._tape.record(Kind.INTERNAL, "stray", 0, body, self.number, self._label)
            return None
        while (flight := self.flights.popleft()).correlation != correlation:
            pass
        request, body = flight.request, {"_size": len(frame)}
        if request.api in API_NAMES.values() and request.api != "Produce":
            body = self._answered(flight, frame)
        elif self._may_keep(flight.key):
            body = {"_undecoded": frame}
        answer = self._tape.record(
            Kind.ANSWER, request.api, request.version, body, self.number, request.member, request.sequence
        )
        if request.api == "JoinGroup":
            self._tape.actors.learn(body.get("member_id"), request.member)
        self._doubt(answer)
        return flight

    def ended(self, cause: str, reason: str) -> None:
        """The connection is gone: `cause` is "drop" if the client went, "lost" if it broke on the other side."""
        for flight in self.flights:
            request = flight.request
            self._tape.record(Kind.FAULT, cause, 0, {"reason": reason}, self.number, request.member, request.sequence)
        self.flights.clear()
        self._tape.forget(self.number)
        if cause == "lost" and self.concerns_groups:
            self._tape.unknown(f"connection {self.number}: {reason}")

    def _answered(self, flight: Flight, frame: bytes) -> Body:
        request = flight.request
        try:
            response = decode_response(request.api, request.version, frame)
        except ValueError:  # a version that the kit does not know
            return self._seen(flight.key, frame, {}, ("unknown version",))
        return self._seen(flight.key, frame, response.body, response.findings)

    def _seen(self, key: int, frame: bytes, body: Body, findings: tuple[str, ...]) -> Body:
        """The body, with what could not be read of it; of records their size."""
        if not findings:
            return without_records(body) if key in RECORDS else body
        self._tape.undecoded += 1
        kept: dict[str, Any] = {"_undecoded": frame} if self._may_keep(key) else {"_size": len(frame)}
        told = without_records(body) if key in RECORDS else body
        return {**told, "_findings": list(findings), **kept}

    def _may_keep(self, key: int) -> bool:
        return self._tape.everything or key in KEPT

    def _doubt(self, event: Event) -> None:
        """What an unreadable message did to a group is not known."""
        if event.api in CHANGING and "_undecoded" in event.body and len(event.body) == 2:
            self._tape.unknown(f"{event.api} v{event.version} cannot be read")

    def _speaker(self, body: Body) -> str:
        """Whose request this is."""
        label = self._tape.actors.of(body.get("member_id")) or self._label or self._tape.actors.new()
        self._label = label
        self._tape.actors.learn(body.get("member_id"), label)
        return label


def without_records(body: Body) -> Body:
    """An answer to Fetch without the records in it."""
    return (
        {
            **body,
            "responses": [
                {**topic, "partitions": [dict(bare(partition)) for partition in topic.get("partitions") or ()]}
                for topic in body["responses"]
            ],
        }
        if "responses" in body
        else body
    )


def bare(partition: Body) -> Iterator[tuple[str, Any]]:
    """The fields of a partition, but for its records."""
    return ((name, value) for name, value in partition.items() if name != "records")


class Splitter:
    """Cuts a stream of bytes into frames. `broken` is set once it cannot be Kafka's; the rest is not looked at."""

    def __init__(self, limit: int) -> None:
        self.broken = False
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that these bytes complete, each without the bytes of its length."""
        buffer = self._buffer
        buffer += data
        start = 0
        while not self.broken and len(buffer) - start >= 4:
            size = int.from_bytes(buffer[start : start + 4], signed=True)
            self.broken = not 0 <= size <= self._limit
            if self.broken or len(buffer) - start - 4 < size:
                break
            yield bytes(memoryview(buffer)[start + 4 : start + 4 + size])
            start += 4 + size
        del buffer[:start]

    def rest(self) -> bytes:
        """What is left over of an unfinished frame; it is not given twice."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest
