"""The server of the bundled coordinator: its sockets, its clock and its broker APIs."""

import asyncio
import logging
import signal
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from fencepost.adapters.serve import record_apis
from fencepost.adapters.serve.cluster import NODE_ID, ServedCluster, api_versions
from fencepost.adapters.serve.coordination import Node, NodeLeadership, Response, ServedCoordinator, dialect_named
from fencepost.adapters.serve.coordination import Request as Question
from fencepost.adapters.serve.record_apis import OFFERED_VERSIONS, TopicStore
from fencepost.model.errors import Error
from fencepost.model.protocols import KAFKA
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import Body, DecodedRequest, encode_response, fit_body
from fencepost.model.wire.records import Batch

# --- One client's connection: request frames in, response frames out, one at a time and in order, as in Kafka.

Respond: TypeAlias = Callable[[bytes], Awaitable[bytes | None]]
"""Returns the response frame to a request frame, None where there is none."""

MAX_REQUEST_BYTES = 2 * 1024 * 1024
"""The largest request that is read. Kafka's limit is 100 MiB; this one bounds what a hostile frame unpacks to."""

MAX_ARRAY_ITEMS = 50_000
"""The most array items that a request may hold, for the same reason."""

MAX_QUEUED_REQUESTS = 4
"""Requests of a connection that wait behind the handled one; a disconnect behind more of them is noticed late."""

_LENGTH_BYTES = 4

_log = logging.getLogger(__name__)


class Disconnect(Exception):
    """The connection has to be closed; the message is the reason."""


def ignore_frame(frame: bytes) -> None:
    """Do nothing."""


def ignore_refusal(reason: Disconnect) -> None:
    """Do nothing."""


async def serve_connection(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    respond: Respond,
    arrive: Callable[[bytes], None] = ignore_frame,
    read_ahead: int = MAX_QUEUED_REQUESTS,
    refuse: Callable[[Disconnect], None] = ignore_refusal,
) -> None:
    """Respond to frame after frame until the client disconnects or misbehaves, then close. `respond` may return None;
    `arrive` gets each request frame as soon as it is read, `refuse` why the client is hung up on.

    So many frames are read ahead at most, so that a disconnect is noticed while a request is parked; they are handled
    after its response. The parked request of a client that disconnects stays in its group: only the response is lost.
    """
    frames: asyncio.Queue[bytes | Disconnect | None] = asyncio.Queue(read_ahead)
    reading = asyncio.ensure_future(_read_frames(reader, frames, arrive))
    try:
        while (frame := await frames.get()) is not None:
            if isinstance(frame, Disconnect):
                raise frame
            response = await _await_response(asyncio.ensure_future(respond(frame)), reading)
            if response is not None:
                writer.write(len(response).to_bytes(_LENGTH_BYTES) + response)
                await writer.drain()
    except Disconnect as why:
        refuse(why)
        _log.warning("closing the connection of %s: %s", writer.get_extra_info("peername"), why)
    except ConnectionError:
        pass
    except asyncio.CancelledError:
        writer.transport.abort()
        raise
    except Exception:
        _log.exception("closing the connection of %s", writer.get_extra_info("peername"))
    finally:
        reading.cancel()
        writer.close()
        await asyncio.gather(reading, return_exceptions=True)


async def _read_frames(
    reader: asyncio.StreamReader, frames: "asyncio.Queue[bytes | Disconnect | None]", arrive: Callable[[bytes], None]
) -> None:
    """Queue frame after frame, and at the end the reason why there are no more."""
    try:
        while (frame := await _read_frame(reader)) is not None:
            arrive(frame)
            await frames.put(frame)
        await frames.put(None)
    except Disconnect as why:
        await frames.put(why)
    except OSError:
        await frames.put(None)


async def _read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """Read the next request without its length; None at the end. Raises `Disconnect`."""
    try:
        length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), signed=True)
        if not 0 < length <= MAX_REQUEST_BYTES:
            raise Disconnect(f"a request of {length} bytes")
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError:
        return None


async def _await_response(response: asyncio.Task[bytes | None], reading: asyncio.Task[None]) -> bytes | None:
    """Await the response; None if the client disconnects first."""
    try:
        await asyncio.wait((response, reading), return_when=asyncio.FIRST_COMPLETED)
        if not response.done():
            raise ConnectionAbortedError
        return await response
    finally:
        response.cancel()


ServeConnection: TypeAlias = Callable[
    [asyncio.StreamReader, asyncio.StreamWriter, int, Respond], Coroutine[Any, Any, None]
]
"""Serves a connection to the node of this id until it ends; the last argument is how the server responds."""
UNBOUND_PORT = 9092
"""The port that a client in this process is told of the first node, as long as no socket listens."""


@dataclass(frozen=True, slots=True)
class ParkedRequest:
    """A request in the coordinator, and the future that gets the body of its response."""

    question: Question
    response: asyncio.Future[Body]


class Server:
    """The bundled coordinator as a broker of one or more nodes, each with a port of its own.

    Made by `start_server`, for the event loop that runs then.
    """

    def __init__(
        self,
        settings: Settings,
        storage: Path | None,
        storage_delay_ms: int = 0,
        nodes: int = 1,
        observe: Callable[[DecodedRequest, Body], None] = lambda request, body: None,
        serve: ServeConnection = lambda reader, writer, node_id, respond: serve_connection(reader, writer, respond),
        dialect: str = KAFKA,
    ) -> None:
        """`observe` gets each request to the coordinator with its response; `serve` serves each connection; `dialect`
        is "kafka", or the name of a protocol that is a dialect of it."""
        if storage is not None:
            storage.mkdir(parents=True, exist_ok=True)
        self._observe = observe
        self._serve = serve
        self._dialect = dialect_named(dialect)
        self._loop = asyncio.get_running_loop()
        self._began = time.time() - self._loop.time()
        self._topics = TopicStore(storage / "topics.json" if storage else None)
        self._settings = settings
        self._leadership = NodeLeadership(range(NODE_ID, NODE_ID + nodes))
        self._cluster = ServedCluster(settings, self._topics, self._leadership)
        file = storage / "coordinator.log" if storage else None
        self._log, self._close_log = self._dialect.open_log(file, storage_delay_ms)
        self._node = Node(NODE_ID, "", -1)
        """The node that coordinates, as the client of the present request reaches it."""
        self._coordinator = self._start_coordinator()
        self._handles = count()
        self._parked: dict[int, ParkedRequest] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._appended = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._is_down = False
        self._server: asyncio.Server | None = None
        self._others: list[asyncio.Server] = []
        """Where the nodes after the first listen, in their order."""

    def _start_coordinator(self) -> ServedCoordinator:
        return self._dialect.make_coordinator(
            self._settings,
            self._log,
            lambda prefix: f"{prefix}-{uuid.uuid4()}",
            self._topics,
            now=self._now(),
            coordinator_of=lambda key: self._node,
        )

    def move(self) -> None:
        """Have the next node coordinate all groups, as it loads them from the log; parked requests end."""
        self._deliver(self._coordinator.advance(self._now()))
        self._leadership.move()
        ends = (self._leadership.end_parked(parked.question) for parked in tuple(self._parked.values()))
        self._deliver(filter(None, ends))
        self._coordinator = self._start_coordinator()
        self._arm_timer()

    def go_down(self) -> None:
        """Be as a broker is that was killed: connections end, and new ones end at once; parked requests are lost."""
        self._is_down = True
        for conversation in self._connections:
            conversation.cancel()

    def come_back(self) -> None:
        """Be as a broker is that was started again: groups are loaded from the log."""
        self._is_down = False
        self.move()

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port that its first node listens on, or would."""
        return ("127.0.0.1", UNBOUND_PORT) if self._server is None else listening_address(self._server)

    async def listen(self, host: str, port: int) -> None:
        """Begin to take connections, further nodes at free ports. Raises `OSError` if the address is taken."""
        self._server = await asyncio.start_server(self.accept, host, port)
        for node_id in self._leadership.nodes[1:]:
            self._others.append(await asyncio.start_server(partial(self.accept, node_id=node_id), host, 0))
        self._arm_timer()

    async def close(self) -> None:
        """Stop at once: connections are closed, parked requests stay unanswered."""
        for listener in (self._server, *self._others):
            if listener is not None:
                listener.close()
        if self._timer is not None:
            self._timer.cancel()
        for conversation in self._connections:
            conversation.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.sleep(0)  # the transports let go of their sockets in the loop's next turn
        self._close_log()

    async def ask(self, api: str, version: int, body: Body) -> Body:
        """Have the coordinator handle a request of the program that it runs in; no connection is needed."""
        return await self._coordinate(DecodedRequest(api, -1, version, -1, "fencepost", body, ()), self._node, "/")

    def create_topic(self, name: str, partitions: int) -> Error:
        """Create a topic; the error is NONE if that succeeded."""
        return self._topics.create(name, partitions)

    def grow_topic(self, name: str, partitions: int) -> None:
        """Add partitions to a topic until it has `partitions`."""
        self._topics.grow(name, partitions)

    def produce(self, body: Body) -> Body:
        """Append the records of a Produce request of the program that it runs in."""
        response = record_apis.produce(self._topics, body)
        self._wake_readers()
        return response

    def write_transaction(self, topic: str, index: int, batch: Batch) -> None:
        """Append a batch to a partition as a transaction; behind it is an offset without a record."""
        record_apis.write_transaction(self._topics.by_name[topic].partitions[index], batch, self._now())
        self._wake_readers()

    # -- connections --------------------------------------------------------------------------------------------

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node_id: int = NODE_ID) -> None:
        """Serve a connection to a node, in a task of its own; its `sockname` is the address that it came to."""
        if self._is_down:
            writer.transport.abort()
            return
        host, port = writer.get_extra_info("sockname")[:2]
        # The address by which the client came is the one it can come back to.
        node = Node(node_id, host, port)
        client_host = "/" + (writer.get_extra_info("peername") or ("unknown",))[0]
        conversation = asyncio.create_task(
            self._serve(reader, writer, node_id, lambda frame: self._respond(frame, node, client_host))
        )
        self._connections.add(conversation)
        conversation.add_done_callback(self._connections.discard)

    def _nodes_beside(self, node: Node) -> tuple[Node, ...]:
        """All nodes, as a client that came to `node` reaches them."""
        if self._server is None:
            return tuple(
                node if each == node.node_id else Node(each, node.host, UNBOUND_PORT + each)
                for each in self._leadership.nodes
            )
        ports = (listening_address(each)[1] for each in (self._server, *self._others))
        nodes = (Node(node_id, node.host, port) for node_id, port in zip(self._leadership.nodes, ports, strict=True))
        return tuple(node if each.node_id == node.node_id else each for each in nodes)

    async def _respond(self, frame: bytes, node: Node, client_host: str) -> bytes | None:
        request = self._dialect.decode_request(frame, MAX_ARRAY_ITEMS)
        low, high = OFFERED_VERSIONS.get(request.api or "", (0, -1))
        if request.api != "ApiVersions" and not low <= request.version <= high:
            known = f"; {low} to {high} are" if high >= 0 else ""
            raise Disconnect(f"{request.api or request.key} version {request.version} is not offered{known}")
        if request.findings and low <= request.version <= high:
            raise Disconnect(f"{request.api}: {request.findings[0]}")
        body = await self._handle(request, node, client_host)
        if body is None or request.api is None:
            return None
        if request.api == "ApiVersions" and body["error_code"]:
            return encode_response("ApiVersions", 0, request.correlation_id, body)
        body = fit_body(request.api + "Response", request.version, body)
        return encode_response(request.api, request.version, request.correlation_id, body)

    async def _handle(self, request: DecodedRequest, node: Node, client_host: str) -> Body | None:
        if request.api in self._dialect.versions:
            response = await self._coordinate(request, node, client_host)
            self._observe(request, response)
            return response
        match request.api:
            case "ApiVersions":
                return api_versions(request.version)
            case "Metadata":
                return self._cluster.metadata(request.body, request.version, self._nodes_beside(node))
            case "CreateTopics":
                return self._cluster.create_topics(request.body)
            case "DeleteTopics":
                return self._cluster.delete_topics(request.body)
            case "CreatePartitions":
                return self._cluster.create_partitions(request.body)
            case "DescribeConfigs":
                return self._cluster.describe_configs(request.body)
            case "ListOffsets":
                return record_apis.list_offsets(self._topics, request.body)
            case "AddPartitionsToTxn":
                return record_apis.add_transaction_partitions(self._topics, request.body)
            case "Produce":
                return self._produce(request.body)
            case "Fetch":
                return await self._fetch(request.body)
        raise Disconnect(f"{request.api} is offered but not handled")

    # -- records ------------------------------------------------------------------------------------------------

    def _produce(self, body: Body) -> Body | None:
        response = self.produce(body)
        return response if body["acks"] else None

    async def _fetch(self, body: Body) -> Body:
        """Respond to Fetch once enough can be read, at the latest after the request's `max_wait_ms`."""
        deadline = self._loop.time() + max(body["max_wait_ms"], 0) / 1000
        while True:
            appended = self._appended
            found = record_apis.fetch(self._topics, body)
            if found.has_error or found.size >= body["min_bytes"]:
                return found.body
            try:
                async with asyncio.timeout_at(deadline):
                    await appended.wait()
            except TimeoutError:
                return found.body

    def _wake_readers(self) -> None:
        self._appended.set()
        self._appended = asyncio.Event()

    # -- the coordinator ----------------------------------------------------------------------------------------

    async def _coordinate(self, request: DecodedRequest, node: Node, client_host: str) -> Body:
        handle, api = next(self._handles), request.api or ""
        question = Question(handle, api, request.version, request.client_id, client_host, request.body)
        refusal = self._leadership.refuse(question, node.node_id)
        if refusal is not None:
            return refusal.body
        response: asyncio.Future[Body] = self._loop.create_future()
        self._parked[handle] = ParkedRequest(question, response)
        try:
            now = self._now()
            self._deliver(self._coordinator.advance(now))
            self._node = next(each for each in self._nodes_beside(node) if each.node_id == self._leadership.leader)
            self._deliver(self._coordinator.handle(question, now))
            self._arm_timer()
            body = await response
        finally:
            self._parked.pop(handle)
        self._end_transaction(request, body)
        return body

    def _end_transaction(self, request: DecodedRequest, body: Body) -> None:
        """End a transaction's records in the partitions as the coordinator ended its offsets."""
        if request.api not in ("InitProducerId", "EndTxn") or body["error_code"]:
            return
        source = body if request.api == "InitProducerId" else request.body
        producer = source["producer_id"], source["producer_epoch"]
        committed = request.body.get("committed", False)
        if record_apis.end_transaction(self._topics, *producer, committed, self._now()):
            self._wake_readers()

    def _deliver(self, responses: Iterable[Response]) -> None:
        for response in responses:
            parked = self._parked.get(response.handle)
            if parked is not None and not parked.response.done():
                parked.response.set_result(response.body)

    def _now(self) -> int:
        """Milliseconds since 1970, on a clock that does not go back while the server runs."""
        return int((self._began + self._loop.time()) * 1000)

    def _arm_timer(self) -> None:
        """Arm the loop for the coordinator's next deadline."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self._coordinator.next_deadline()
        if deadline is not None:
            self._timer = self._loop.call_at(deadline / 1000 - self._began, self._fire_timers)

    def _fire_timers(self) -> None:
        self._deliver(self._coordinator.advance(self._now()))
        self._arm_timer()


def listening_address(listener: asyncio.Server) -> tuple[str, int]:
    """The host and the port that it listens on."""
    host, port = listener.sockets[0].getsockname()[:2]
    return host, port


async def start_server(
    host: str,
    port: int,
    settings: Settings,
    storage_path: Path | None = None,
    storage_delay_ms: int = 0,
    nodes: int = 1,
    dialect: str = KAFKA,
) -> Server:
    """Start a server of one or more `nodes` in the running event loop; port 0 picks a free one.

    `storage_path` is a folder that keeps groups, offsets and names of topics across restarts, but not records. Every
    write is delayed by `storage_delay_ms` milliseconds. Raises `OSError` if the address or the folder cannot be used,
    and `CorruptLogError`.
    """
    server = Server(settings, storage_path, storage_delay_ms, nodes, dialect=dialect)
    try:
        await server.listen(host, port)
    except BaseException:
        await server.close()
        raise
    return server


async def serve_forever(
    host: str,
    port: int,
    settings: Settings,
    storage_path: Path | None,
    announce: Callable[[str, int], None],
    storage_delay_ms: int = 0,
    nodes: int = 1,
    dialect: str = KAFKA,
) -> None:
    """Serve until cancelled. `announce` gets host and port once clients can connect.

    With several nodes, SIGUSR1 has the next one coordinate all groups. Raises as `start_server`.
    """
    server = await start_server(host, port, settings, storage_path, storage_delay_ms, nodes, dialect)
    try:
        if nodes > 1:
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, server.move)
        announce(*server.address)
        await asyncio.Event().wait()
    finally:
        await server.close()
