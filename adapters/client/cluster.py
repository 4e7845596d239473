"""The cluster that a client under test meets: the bundled server, with a script over it and a trace of all frames."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from fencepost.adapters.address import Address, TargetError
from fencepost.adapters.serve.coordination import Request, refuse_elsewhere, topic_id_of
from fencepost.adapters.serve.server import Disconnect, Respond, ServeConnection, Server, serve_connection
from fencepost.model.errors import Error, FencepostError
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import Body, DecodedRequest, decode_request, decode_response, encode_response, fit_body
from fencepost.model.wire.records import Record, decode_batches, encode_batch, make_batch
from fencepost.traces.events import Event, Kind
from fencepost.traces.frames import ActorLabels, ConnectionDecoder, WireTrace

# --- The brokers behind the script: what handles the requests of a client that no fault is for.

ACKS_ALL = -1
NODES = 2
"""How many brokers the bundled cluster has."""


class NotOffered(FencepostError):
    """The brokers cannot do what a scenario asks for; the message says what."""


class Brokers(Protocol):
    """Brokers that are reached through listeners of this process. All of it raises `TargetError` for brokers that are
    gone."""

    @property
    def address(self) -> Address:
        """Where clients reach the first broker."""

    async def listen(self) -> None:
        """Begin to take connections. Raises `OSError` without a port."""

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node_id: int) -> None:
        """Serve a connection to the broker of this id, in a task of its own."""

    async def close(self) -> None:
        """End all connections, and remove what was created."""

    async def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic, unless it is there."""

    async def grow_topic(self, name: str, partitions: int) -> None:
        """Add partitions to a topic until it has `partitions`."""

    async def write(self, topic: str, index: int, records: Sequence[Record], *, is_transaction: bool) -> None:
        """Append records to a partition; behind those of a transaction there is an offset without a record. Raises
        `NotOffered`."""

    async def move(self) -> None:
        """Have another broker coordinate all groups. Raises `NotOffered`."""

    async def ask(self, api: str, version: int, body: Body) -> Body:
        """Have the coordinator of a group handle a request of the kit, and return the response."""


class BundledBrokers:
    """The bundled server of two nodes."""

    def __init__(self, settings: Settings, serve: ServeConnection) -> None:
        self._server = Server(settings, None, nodes=NODES, serve=serve)
        self.accept = self._server.accept

    @property
    def address(self) -> Address:
        """As `Brokers.address`."""
        return self._server.address

    async def listen(self) -> None:
        """As `Brokers.listen`."""
        await self._server.listen("127.0.0.1", 0)

    async def close(self) -> None:
        """As `Brokers.close`."""
        await self._server.close()

    async def create_topic(self, name: str, partitions: int) -> None:
        """As `Brokers.create_topic`."""
        self._server.create_topic(name, partitions)

    async def grow_topic(self, name: str, partitions: int) -> None:
        """As `Brokers.grow_topic`."""
        self._server.grow_topic(name, partitions)

    async def write(self, topic: str, index: int, records: Sequence[Record], *, is_transaction: bool) -> None:
        """As `Brokers.write`."""
        if is_transaction:
            self._server.write_transaction(topic, index, make_batch(records))
        else:
            self._server.produce(produce_body(topic, index, records))

    async def move(self) -> None:
        """As `Brokers.move`."""
        self._server.move()

    async def ask(self, api: str, version: int, body: Body) -> Body:
        """As `Brokers.ask`."""
        return await self._server.ask(api, version, body)


def produce_body(topic: str, index: int, records: Sequence[Record]) -> Body:
    """A Produce request for one partition, which waits for all replicas."""
    row = {"index": index, "records": encode_batch(make_batch(records))}
    return {"acks": ACKS_ALL, "topic_data": [{"name": topic, "partition_data": [row]}]}


# --- Faults: functions that respond to an intercepted request in the cluster's place, and the script that has them.

FIRST_LOOKUP_OF_KEYS = 4
"""The first version of FindCoordinator with several keys."""


class HangUp(ConnectionError):
    """The cluster closes the connection without a response."""


@dataclass(slots=True)
class InterceptedRequest:
    """A request of the client that waits for its response. `pass_on` has the cluster handle it and returns the
    response; `copies` says how often the response is sent."""

    request: DecodedRequest
    pass_on: Callable[[], Awaitable[Body | None]]
    copies: int = 1


Fault: TypeAlias = Callable[[InterceptedRequest], Awaitable[Body | None]]
"""Returns the body of the response, None for no response. Raises `HangUp`."""
Matches: TypeAlias = Callable[[DecodedRequest], bool]


def refuse(error: Error) -> Fault:
    """Respond with an error in the place of the cluster, which does not see the request."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        return refusal_of(intercepted.request, error)

    return respond


def delay(seconds: float) -> Fault:
    """Have the cluster handle the request, and keep its response back."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        body = await intercepted.pass_on()
        await asyncio.sleep(seconds)
        return body

    return respond


def hold(release: asyncio.Event) -> Fault:
    """Keep the request back until the release, and hand it to the cluster then."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        await release.wait()
        return await intercepted.pass_on()

    return respond


def lose() -> Fault:
    """Have the cluster handle the request, and lose the response: nothing more comes on this connection."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        await intercepted.pass_on()
        await asyncio.Event().wait()
        return None

    return respond


def double() -> Fault:
    """Send the response twice."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        intercepted.copies = 2
        return await intercepted.pass_on()

    return respond


def hang_up(*, after_handling: bool = False) -> Fault:
    """Close the connection in the place of a response, before or after the cluster has handled the request."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        if after_handling:
            await intercepted.pass_on()
        raise HangUp

    return respond


def edit(change: Callable[[Body], Body]) -> Fault:
    """Change the response of the cluster."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        body = await intercepted.pass_on()
        return None if body is None else change(body)

    return respond


def refusal_of(request: DecodedRequest, error: Error) -> Body:
    """The body of a response with this error, wherever the API has its place for it."""
    if request.api == "FindCoordinator":
        return refuse_lookup(request, error)
    api = request.api or ""
    refused = refuse_elsewhere(Request(0, api, request.version, request.client_id, "/", request.body))
    if refused is None:
        raise ValueError(f"{api} has no place for {error.name}")
    changed = with_error(refused.body, error)
    assert isinstance(changed, Mapping)
    return changed


def refuse_lookup(request: DecodedRequest, error: Error) -> Body:
    """The body for FindCoordinator."""
    nowhere = {"node_id": -1, "host": "", "port": -1, "error_code": error, "error_message": None}
    if request.version < FIRST_LOOKUP_OF_KEYS:
        return nowhere
    return {"coordinators": [{"key": key, **nowhere} for key in request.body.get("coordinator_keys", ())]}


def with_error(value: Any, error: Error) -> Any:
    """A body, or a value in it, with the error in the place of NOT_COORDINATOR."""
    if isinstance(value, Mapping):
        return {
            name: error if name == "error_code" and each == Error.NOT_COORDINATOR else with_error(each, error)
            for name, each in value.items()
        }
    return [with_error(each, error) for each in value] if isinstance(value, list | tuple) else value


@dataclass(slots=True)
class Cue:
    """A fault of a script, and the requests that it is for: the first `times` to an API that match."""

    api: str
    fault: Fault
    note: str
    times: int
    matches: Matches
    taken: int = 0


@dataclass(slots=True)
class Script:
    """The faults that are still to happen."""

    cues: list[Cue] = field(default_factory=list)

    def add(self, api: str, fault: Fault, note: str, *, times: int = 1, matches: Matches = lambda request: True) -> Cue:
        """Have a fault happen to the next requests to an API; `note` says so in words."""
        cue = Cue(api, fault, note, times, matches)
        self.cues.append(cue)
        return cue

    def take(self, request: DecodedRequest) -> Cue | None:
        """The first cue for a request, which counts it; None if there is none."""
        for cue in self.cues:
            if cue.api == request.api and cue.taken < cue.times and cue.matches(request):
                cue.taken += 1
                return cue
        return None

    def drop(self, cue: Cue) -> None:
        """Have a fault happen no more."""
        if cue in self.cues:
            self.cues.remove(cue)


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
        self._names: dict[str, str] = {}
        """The topics by their ids, which Fetch has in the place of names from version 13 on."""
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
        """Create a topic with `records` records in each partition."""
        await self.brokers.create_topic(name, partitions)
        self._names[topic_id_of(name)] = name
        for index in range(partitions if records else 0):
            await self.produce(name, index, [f"{name}-{index}-{number}" for number in range(records)])
        self.annotate("topics", {"topics": {name: partitions}})

    async def grow_topic(self, name: str, partitions: int) -> None:
        """Add partitions to a topic until it has `partitions`."""
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
        """The first event from number `since` on that `sees` looks for; None if none comes within `seconds`.

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
                known = topic["topic"] if "topic" in topic else self._names.get(topic["topic_id"], "")
                name = f"{known}/{row['partition_index']}"
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

    def _name_topics(self, event: Event) -> Event:
        """A Fetch in which each topic has its name."""
        rows = event.body.get("topics") or ()
        if event.api != "Fetch" or not any("topic_id" in row for row in rows):
            return event
        named = [{**row, "topic": self._names.get(row["topic_id"], "")} for row in rows]
        return replace(event, body={**event.body, "topics": named})

    def _record(self, event: Event) -> None:
        event = self._name_topics(event)
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
