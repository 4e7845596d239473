"""Conversion of frames on the wire to events, for the recorder between clients and a cluster and for captures.

A request is handled between its event and its response's event (`Order.INTERVALS`). No frame is refused: one that
cannot be decoded is kept as bytes, or as its size if it may hold records or credentials.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fencepost.model.wire.codec import API_NAMES, decode_request, decode_response
from fencepost.traces.events import Body, Event, Kind

RECORD_KEYS = frozenset({0, 1})
"""API keys of Produce and Fetch: the records themselves are never kept."""
CONSUMER_GROUP_KEYS = frozenset({68, 69})
"""API keys of the newer group protocol (KIP-848), which the kit does not decode."""
SASL_HANDSHAKE_KEY, SASL_AUTHENTICATE_KEY = 17, 36
"""API keys of authentication: what SaslAuthenticate carries is never kept. After version 0 of SaslHandshake the same
bytes come without a header (KIP-43), and look like messages of any key."""
KEYS_KEPT_AS_BYTES = frozenset(API_NAMES) - RECORD_KEYS - {SASL_AUTHENTICATE_KEY} | CONSUMER_GROUP_KEYS
"""API keys of messages that are kept as bytes if they cannot be decoded; other messages may hold credentials."""
GROUP_CHANGING_APIS = frozenset(
    {
        "JoinGroup",
        "SyncGroup",
        "Heartbeat",
        "LeaveGroup",
        "OffsetCommit",
        "TxnOffsetCommit",
        "InitProducerId",
        "EndTxn",
        "DeleteGroups",
        "OffsetDelete",
    }
)
"""APIs that change a group: after a message of theirs that cannot be read, the state of groups is unknown."""
MAX_ACTORS = 10_000
"""Maximum number of member ids remembered to label actors."""


class ActorLabels:
    """Labels of actors: A, B, ... A member is recognized by its id; before it has one, by its connection."""

    def __init__(self) -> None:
        self._labels: OrderedDict[str, str] = OrderedDict()
        self._count = 0

    def new_label(self) -> str:
        """The next unused label."""
        name, number = "", self._count
        while number >= 0:
            name = chr(ord("A") + number % 26) + name
            number = number // 26 - 1
        self._count += 1
        return name

    def label_of(self, member: object) -> str | None:
        """The label of the actor with this member id; None if no actor was seen with it."""
        return self._labels.get(member) if isinstance(member, str) and member else None

    def learn_label(self, member: object, label: str) -> None:
        """Remember `member` as the member id of the actor `label`."""
        if isinstance(member, str) and member:
            self._labels.setdefault(member, label)
            if len(self._labels) > MAX_ACTORS:
                self._labels.popitem(last=False)


class WireTrace:
    """Numbers and writes the events of all connections in the order of observation.

    `now` returns milliseconds since the trace began; `write` is called with each event; `keep_all_bytes` also keeps
    bytes that may hold records or credentials; `labels` are those of actors.
    """

    def __init__(
        self,
        write: Callable[[Event], None],
        now: Callable[[], int],
        *,
        keep_all_bytes: bool = False,
        labels: ActorLabels | None = None,
    ) -> None:
        self.write = write
        self.keep_all_bytes = keep_all_bytes
        self.labels = labels if labels is not None else ActorLabels()
        self.events = 0
        self.undecoded = 0
        self._now = now
        self._connections: dict[int, ConnectionDecoder] = {}
        self._connection_count = 0

    def record_event(
        self, kind: Kind, api: str, version: int, body: Body, connection: int, member: str, of: int | None = None
    ) -> Event:
        """Write one event at the current time and return it."""
        event = Event(self.events, self._now(), connection, member, kind, api, version, body, of)
        self.events += 1
        self.write(event)
        return event

    def mark_gap(self, reason: str, group: str | None = None) -> None:
        """Write an event `unknown`: from here on the state of groups, or of one, is unknown, for this `reason`."""
        told = {"reason": reason} if group is None else {"reason": reason, "group": group}
        self.record_event(Kind.INTERNAL, "unknown", 0, told, 0, "")

    def open_connection(self) -> "ConnectionDecoder":
        """The decoder of a new connection."""
        self._connection_count += 1
        begun = ConnectionDecoder(self, self._connection_count)
        self._connections[self._connection_count] = begun
        return begun

    def close_connection(self, number: int) -> None:
        """Forget a connection that has ended."""
        self._connections.pop(number, None)

    def requests_in_flight(self) -> list[Event]:
        """The requests in flight on all connections, by sequence number."""
        flights = (flight for each in self._connections.values() for flight in each.pending)
        return sorted((flight.request for flight in flights), key=lambda event: event.sequence)


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request without a response."""

    correlation: int
    key: int
    request: Event


class ConnectionDecoder:
    """Decodes the frames of one connection; responses come in the order of their requests."""

    def __init__(self, trace: WireTrace, number: int) -> None:
        self.number = number
        self.pending: deque[PendingRequest] = deque()
        self.may_change_groups = False
        """Whether a request that can change a group was sent on this connection."""
        self._trace = trace
        self._label = ""
        self._may_carry_tokens = False
        """Whether frames without a header, which hold credentials, may follow."""

    def on_request(self, frame: bytes) -> None:
        """Record a request; `frame` is without its length prefix."""
        key, version = int.from_bytes(frame[:2], signed=True), int.from_bytes(frame[2:4], signed=True)
        correlation, api = int.from_bytes(frame[4:8], signed=True), API_NAMES.get(key)
        body: Body = {"_size": len(frame)}
        if api != "Produce":
            asked = decode_request(frame)
            body = self._body_to_keep(key, frame, asked.body, asked.findings)
        self._may_carry_tokens |= key == SASL_HANDSHAKE_KEY and version == 0
        name = api or f"api-{key}"
        member = self._actor_label(body)
        request = self._trace.record_event(Kind.REQUEST, name, version, body, self.number, member)
        self.pending.append(PendingRequest(correlation, key, request))
        self.may_change_groups |= name in GROUP_CHANGING_APIS
        self._mark_if_unreadable(request)

    def on_response(self, frame: bytes) -> PendingRequest | None:
        """Record a response and return its request, or None for a stray response.

        Requests that get no response (Produce with acks=0) are skipped. `frame` is without its length prefix.
        """
        correlation = int.from_bytes(frame[:4], signed=True)
        if all(flight.correlation != correlation for flight in self.pending):
            body: Body = {"_undecoded": frame} if self._trace.keep_all_bytes else {"_size": len(frame)}
            self._trace.record_event(Kind.INTERNAL, "stray", 0, body, self.number, self._label)
            return None
        while (flight := self.pending.popleft()).correlation != correlation:
            pass
        request, body = flight.request, {"_size": len(frame)}
        if request.api in API_NAMES.values() and request.api != "Produce":
            body = self._decode_response(flight, frame)
        elif self._may_keep_bytes(flight.key):
            body = {"_undecoded": frame}
        response = self._trace.record_event(
            Kind.RESPONSE, request.api, request.version, body, self.number, request.member, request.sequence
        )
        if request.api == "JoinGroup":
            self._trace.labels.learn_label(body.get("member_id"), request.member)
        self._mark_if_unreadable(response)
        return flight

    def on_closed(self, cause: str, reason: str) -> None:
        """Record the end of the connection: `cause` is "drop" if the client closed it, "lost" if the other side did."""
        for flight in self.pending:
            request = flight.request
            self._trace.record_event(
                Kind.FAULT, cause, 0, {"reason": reason}, self.number, request.member, request.sequence
            )
        self.pending.clear()
        self._trace.close_connection(self.number)
        if cause == "lost" and self.may_change_groups:
            self._trace.mark_gap(f"connection {self.number}: {reason}")

    def _decode_response(self, flight: PendingRequest, frame: bytes) -> Body:
        request = flight.request
        try:
            response = decode_response(request.api, request.version, frame)
        except ValueError:  # a version that the kit does not know
            return self._body_to_keep(flight.key, frame, {}, ("unknown version",))
        return self._body_to_keep(flight.key, frame, response.body, response.findings)

    def _body_to_keep(self, key: int, frame: bytes, body: Body, findings: tuple[str, ...]) -> Body:
        """The body to record, with findings and undecoded bytes if it is malformed, and without records."""
        told = without_secrets(key, body)
        if not findings:
            return told
        self._trace.undecoded += 1
        if self._may_carry_tokens and not self._trace.keep_all_bytes:
            return {"_size": len(frame)}
        kept: dict[str, Any] = {"_undecoded": frame} if self._may_keep_bytes(key) else {"_size": len(frame)}
        return {**told, "_findings": list(findings), **kept}

    def _may_keep_bytes(self, key: int) -> bool:
        return self._trace.keep_all_bytes or (key in KEYS_KEPT_AS_BYTES and not self._may_carry_tokens)

    def _mark_if_unreadable(self, event: Event) -> None:
        """Mark a gap after a message that can change a group and could not be decoded at all."""
        if event.api in GROUP_CHANGING_APIS and "_undecoded" in event.body and len(event.body) == 2:
            self._trace.mark_gap(f"{event.api} v{event.version} cannot be read")

    def _actor_label(self, body: Body) -> str:
        """The label of the sender of a request."""
        label = self._trace.labels.label_of(body.get("member_id")) or self._label or self._trace.labels.new_label()
        self._label = label
        self._trace.labels.learn_label(body.get("member_id"), label)
        return label


def without_secrets(key: int, body: Body) -> Body:
    """The part of a message's body that may be recorded: no records, and nothing that authenticates."""
    if key == SASL_AUTHENTICATE_KEY:
        return {name: value for name, value in body.items() if name != "auth_bytes"}
    return drop_records(body) if key in RECORD_KEYS else body


def drop_records(body: Body) -> Body:
    """A Fetch response without its records; any other body unchanged."""
    return (
        {
            **body,
            "responses": [
                {
                    **topic,
                    "partitions": [
                        {name: value for name, value in partition.items() if name != "records"}
                        for partition in topic.get("partitions") or ()
                    ],
                }
                for topic in body["responses"]
            ],
        }
        if "responses" in body
        else body
    )


class FrameSplitter:
    """Cuts a stream of bytes into frames.

    `is_broken` is set at the first length that is negative or above `limit`; the rest of the stream is ignored.
    """

    def __init__(self, limit: int) -> None:
        self.is_broken = False
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that `data` completes, each without its length prefix."""
        buffer = self._buffer
        buffer += data
        start = 0
        while not self.is_broken and len(buffer) - start >= 4:
            size = int.from_bytes(buffer[start : start + 4], signed=True)
            self.is_broken = not 0 <= size <= self._limit
            if self.is_broken or len(buffer) - start - 4 < size:
                break
            yield bytes(memoryview(buffer)[start + 4 : start + 4 + size])
            start += 4 + size
        del buffer[:start]

    def take_rest(self) -> bytes:
        """Return and forget the bytes of an unfinished frame."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest
