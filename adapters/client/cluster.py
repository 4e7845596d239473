"""The cluster that a client under test meets: the bundled server, with a script over it and a trace of all frames."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fencepost.adapters.client.brokers import Brokers, BundledBrokers
from fencepost.adapters.client.faults import Cue, HangUp, InterceptedRequest, Script
from fencepost.adapters.serve.connection import Disconnect, Respond, serve_connection
from fencepost.adapters.serve.server import ServeConnection
from fencepost.adapters.target import TargetError
from fencepost.model.errors import FencepostError
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import Body, decode_request, decode_response, encode_response, fit_body
from fencepost.model.wire.records import Record, decode_batches
from fencepost.traces.events import Event, Kind
from fencepost.traces.frames import ActorLabels, ConnectionDecoder, WireTrace

CLIENT_LABEL = "A"
"""The label of the client under test; scripted members have later ones."""
MAX_EVENTS = 20_000
"""The events of a trace after which a client counts as one that floods the cluster."""
DOUBLED = "doubled"
"""The fault of a response that comes twice: the client may close the connection, and lose what comes on it."""
REFUSED = "refused"
"""The cluster hangs up on a client that sends what no broker takes."""

Sees = Callable[[Event], bool]
MakeBrokers = Callable[[Settings, ServeConnection], Brokers]
"""Makes the brokers of a cluster, whose connections are served by the function given."""


class FloodError(FencepostError):
    """The client sends more than a trace can hold."""


class OneLabel(ActorLabels):
    """Labels of a trace in which whoever connects is the client under test."""

    def new_label(self) -> str:
        """The client's label."""
        return CLIENT_LABEL


def flood_error() -> FloodError:
    """The error of a client that floods the cluster."""
    return FloodError(f"the client and the cluster exchanged {MAX_EVENTS} messages in one scenario")


@dataclass(slots=True)
class Watcher:
    """Somebody who waits for an event."""

    sees: Sees
    seen: asyncio.Future[Event]


class ScriptedCluster:
    """Brokers, the script over them, and everything that passed between them and the client.

    Made for the event loop that runs then; the time of the trace begins at 0.
    """

    def __init__(self, settings: Settings, make_brokers: MakeBrokers = BundledBrokers) -> None:
        self.loop = asyncio.get_running_loop()
        self.events: list[Event] = []
        self.script = Script()
        self.brokers = make_brokers(settings, self._serve)
        self._began = self.loop.time()
        self.trace = WireTrace(self._record, self.now, labels=OneLabel())
        self._watchers: list[Watcher] = []
        self._connections: dict[asyncio.StreamWriter, int] = {}
        self.flooded = asyncio.Event()
        self.before_request: Callable[[], None] = lambda: None
        """Called before each request is recorded."""

    def now(self) -> int:
        """Milliseconds since the trace began."""
        return int((self.loop.time() - self._began) * 1000)

    # -- what the script does -------------------------------------------------------------------------------------

    def annotate(self, api: str, body: Body) -> None:
        """Record something that the kit did or saw beside the wire."""
        self.trace.record_event(Kind.INTERNAL, api, 0, body, 0, "")

    async def create_topic(self, name: str, partitions: int, records: int) -> None:
        """Create a topic with so many records in each partition."""
        await self.brokers.create_topic(name, partitions)
        for index in range(partitions if records else 0):
            await self.produce(name, index, [f"{name}-{index}-{number}" for number in range(records)])
        self.annotate("topics", {"topics": {name: partitions}})

    async def grow_topic(self, name: str, partitions: int) -> None:
        """Add partitions to a topic, so that it has so many."""
        await self.brokers.grow_topic(name, partitions)
        self.annotate("topics", {"topics": {name: partitions}})

    async def produce(self, topic: str, index: int, values: Sequence[str], *, is_transaction: bool = False) -> None:
        """Append records to a partition; behind those of a transaction there is an offset without a record. Raises
        `NotOffered`."""
        name = f"{topic}/{index}"
        self.annotate("written", {"records": {name: len(values)}, "markers": [name] if is_transaction else []})
        records = [Record(value.encode(), None, 0) for value in values]
        await self.brokers.write(topic, index, records, is_transaction=is_transaction)

    async def move(self) -> None:
        """Have the other node coordinate all groups. Raises `NotOffered`."""
        self.annotate("script", {"step": "the group moves to the other node"})
        await self.brokers.move()

    def hang_up(self) -> None:
        """Close every connection."""
        for writer, number in tuple(self._connections.items()):
            self.trace.record_event(Kind.FAULT, "hangup", 0, {}, number, CLIENT_LABEL)
            writer.close()

    async def wait_for(self, sees: Sees, seconds: float, *, since: int = 0) -> Event | None:
        """The first event from number `since` on that is seen so; None if none comes within so many seconds.

        Raises `FloodError`.
        """
        if self.flooded.is_set():
            raise flood_error()
        if (found := next(filter(sees, self.events[since:]), None)) is not None:
            return found
        watcher = Watcher(sees, self.loop.create_future())
        self._watchers.append(watcher)
        try:
            async with asyncio.timeout(seconds):
                return await watcher.seen
        except TimeoutError:
            return None
        finally:
            self._watchers.remove(watcher)

    # -- the wire -------------------------------------------------------------------------------------------------

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node_id: int, respond: Respond
    ) -> None:
        """Serve a connection of the client, and record it."""
        decoder = self.trace.open_connection()
        self._connections[writer] = decoder.number
        try:
            await serve_connection(
                reader,
                writer,
                lambda frame: self._respond(frame, respond, decoder, writer),
                lambda frame: self._record_request(frame, decoder),
                MAX_EVENTS,
                lambda why: self._note_refusal(why, decoder),
            )
        finally:
            self._connections.pop(writer, None)
            decoder.on_closed("drop", "the connection is closed")

    def _note_refusal(self, why: Disconnect, decoder: ConnectionDecoder) -> None:
        if not self.flooded.is_set():
            self.trace.record_event(Kind.INTERNAL, REFUSED, 0, {"reason": str(why)}, decoder.number, "")

    def _record_request(self, frame: bytes, decoder: ConnectionDecoder) -> None:
        self.before_request()
        decoder.on_request(frame)

    async def _respond(
        self, frame: bytes, respond: Respond, decoder: ConnectionDecoder, writer: asyncio.StreamWriter
    ) -> bytes | None:
        """The response to a frame, as the script has it; it is recorded when it leaves."""
        if self.flooded.is_set():
            raise Disconnect("the client floods the cluster")
        request = decode_request(frame)
        cue = self.script.take(request)
        response = await respond(frame) if cue is None else await self._play(cue, frame, respond, decoder, writer)
        if response is not None:
            if request.api == "Fetch":
                self._annotate_delivery(request.version, response)
            decoder.on_response(response)
        return response

    def _annotate_delivery(self, version: int, response: bytes) -> None:
        """Record which records a Fetch response has, as traces have none of it: the offset behind the last one of each
        partition, and the partitions with errors."""
        ends: dict[str, int] = {}
        errors: list[str] = []
        for topic in decode_response("Fetch", version, response).body.get("responses") or ():
            for row in topic["partitions"]:
                name = f"{topic.get('topic', '')}/{row['partition_index']}"
                batches = decode_batches(row.get("records") or b"").batches
                if row["error_code"]:
                    errors.append(name)
                elif batches:
                    ends[name] = batches[-1].base_offset + batches[-1].last_offset_delta + 1
        if ends:
            self.annotate("delivered", {"ends": ends, "errors": errors})

    async def _play(
        self, cue: Cue, frame: bytes, respond: Respond, decoder: ConnectionDecoder, writer: asyncio.StreamWriter
    ) -> bytes | None:
        """The response to a frame that a cue is for."""
        request = decode_request(frame)
        api, version = request.api or "", request.version

        async def pass_on() -> Body | None:
            response = await respond(frame)
            return None if response is None else decode_response(api, version, response).body

        self.annotate("script", {"step": cue.note})
        intercepted = InterceptedRequest(request, pass_on)
        try:
            body = await cue.fault(intercepted)
        except HangUp:
            self.trace.record_event(Kind.FAULT, "hangup", 0, {}, decoder.number, CLIENT_LABEL)
            raise
        if body is None:
            return None
        response = encode_response(api, version, request.correlation_id, fit_body(api + "Response", version, body))
        if intercepted.copies > 1:
            self.trace.record_event(Kind.FAULT, DOUBLED, 0, {}, decoder.number, CLIENT_LABEL)
        for _ in range(intercepted.copies - 1):
            writer.write(len(response).to_bytes(4) + response)
        return response

    def _record(self, event: Event) -> None:
        self.events.append(event)
        if len(self.events) >= MAX_EVENTS:
            self.flooded.set()
        for watcher in self._watchers:
            if not watcher.seen.done() and watcher.sees(event):
                watcher.seen.set_result(event)
        if self.flooded.is_set():
            self._end_watching()

    def _end_watching(self) -> None:
        for watcher in self._watchers:
            if not watcher.seen.done():
                watcher.seen.set_exception(flood_error())


async def start_cluster(settings: Settings, make_brokers: MakeBrokers = BundledBrokers) -> ScriptedCluster:
    """Start a cluster at free ports of this machine. Raises `TargetError` if there are none."""
    cluster = ScriptedCluster(settings, make_brokers)
    try:
        await cluster.brokers.listen()
    except OSError as error:
        raise TargetError(f"no port to listen on: {error.strerror}") from None
    return cluster
