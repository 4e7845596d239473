"""The server of the bundled coordinator: its sockets, its clock and its broker APIs."""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

from fencepost.adapters.bundled.classic.admin import Node
from fencepost.adapters.bundled.classic.coordinator import VERSIONS as COORDINATED
from fencepost.adapters.bundled.classic.coordinator import Coordinator
from fencepost.adapters.bundled.classic.log import FileLog, Log, MemoryLog, SlowLog
from fencepost.adapters.bundled.classic.messages import Request as Question
from fencepost.adapters.bundled.classic.messages import Response
from fencepost.adapters.serve import record_apis
from fencepost.adapters.serve.cluster import NODE_ID, SingleNodeCluster, api_versions
from fencepost.adapters.serve.connection import MAX_ARRAY_ITEMS, Disconnect, serve_connection
from fencepost.adapters.serve.topics import TopicStore
from fencepost.adapters.serve.versions import OFFERED_VERSIONS
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import Body, DecodedRequest, decode_request, encode_response, fit_body

_log = logging.getLogger(__name__)


class Server:
    """The bundled coordinator as a broker. Made by `start_server`, for the event loop that runs then."""

    def __init__(
        self,
        settings: Settings,
        storage: Path | None,
        storage_delay_ms: int = 0,
        observe: Callable[[DecodedRequest, Body], None] = lambda request, body: None,
    ) -> None:
        """`observe` gets each request to the coordinator with its response."""
        if storage is not None:
            storage.mkdir(parents=True, exist_ok=True)
        self._observe = observe
        self._loop = asyncio.get_running_loop()
        self._began = time.time() - self._loop.time()
        self._topics = TopicStore(storage / "topics.json" if storage else None)
        self._cluster = SingleNodeCluster(settings, self._topics)
        self._file = FileLog(storage / "coordinator.log") if storage else None
        log: Log = self._file or MemoryLog()
        self._node = Node(NODE_ID, "", -1)
        self._coordinator = Coordinator(
            settings,
            SlowLog(log, lambda: time.sleep(storage_delay_ms / 1000)) if storage_delay_ms else log,
            lambda prefix: f"{prefix}-{uuid.uuid4()}",
            self._topics,
            now=self._now(),
            coordinator_of=lambda key: self._node,
        )
        self._handles = count()
        self._parked: dict[int, asyncio.Future[Body]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._appended = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port that it listens on."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    async def listen(self, host: str, port: int) -> None:
        """Begin to take connections. Raises `OSError` if the address is taken."""
        self._server = await asyncio.start_server(self._accept, host, port)
        self._arm_timer()

    async def close(self) -> None:
        """Stop at once: connections are closed, parked requests stay unanswered."""
        if self._server is not None:
            self._server.close()
        if self._timer is not None:
            self._timer.cancel()
        for conversation in self._connections:
            conversation.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.sleep(0)  # the transports let go of their sockets in the loop's next turn
        if self._file is not None:
            self._file.close()

    async def ask(self, api: str, version: int, body: Body) -> Body:
        """Have the coordinator handle a request of the program that it runs in; no connection is needed."""
        return await self._coordinate(DecodedRequest(api, -1, version, -1, "fencepost", body, ()), self._node, "/")

    def create_topic(self, name: str, partitions: int) -> Error:
        """Create a topic; the error is NONE if that succeeded."""
        return self._topics.create(name, partitions)

    # -- connections --------------------------------------------------------------------------------------------

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = writer.get_extra_info("sockname")[:2]
        # The address by which the client came is the one it can come back to.
        node = Node(NODE_ID, host, port)
        client_host = "/" + (writer.get_extra_info("peername") or ("unknown",))[0]
        conversation = asyncio.create_task(
            serve_connection(reader, writer, lambda frame: self._respond(frame, node, client_host))
        )
        self._connections.add(conversation)
        conversation.add_done_callback(self._connections.discard)

    async def _respond(self, frame: bytes, node: Node, client_host: str) -> bytes | None:
        request = decode_request(frame, MAX_ARRAY_ITEMS)
        low, high = OFFERED_VERSIONS.get(request.api or "", (0, -1))
        if request.api != "ApiVersions" and not low <= request.version <= high:
            raise Disconnect(f"{request.api or request.key} version {request.version} is not offered")
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
        if request.api in COORDINATED:
            response = await self._coordinate(request, node, client_host)
            self._observe(request, response)
            return response
        match request.api:
            case "ApiVersions":
                return api_versions(request.version)
            case "Metadata":
                return self._cluster.metadata(request.body, request.version, node)
            case "CreateTopics":
                return self._cluster.create_topics(request.body)
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
        response = record_apis.produce(self._topics, body)
        self._wake_readers()
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
        handle = next(self._handles)
        response: asyncio.Future[Body] = self._loop.create_future()
        self._parked[handle] = response
        try:
            now = self._now()
            self._deliver(self._coordinator.advance(now))
            self._node = node
            api = request.api or ""
            question = Question(handle, api, request.version, request.client_id, client_host, request.body)
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
            waiting = self._parked.get(response.handle)
            if waiting is not None and not waiting.done():
                waiting.set_result(response.body)

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


async def start_server(
    host: str, port: int, settings: Settings, storage_path: Path | None = None, storage_delay_ms: int = 0
) -> Server:
    """Start a server in the running event loop; port 0 picks a free one.

    `storage_path` is a folder that keeps groups, offsets and names of topics across restarts, but not records. Every
    write is delayed by `storage_delay_ms` milliseconds. Raises `OSError` if the address or the folder cannot be used,
    and `CorruptLogError`.
    """
    server = Server(settings, storage_path, storage_delay_ms)
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
) -> None:
    """Serve until cancelled. `announce` gets host and port once clients can connect. Raises as `start_server`."""
    server = await start_server(host, port, settings, storage_path, storage_delay_ms)
    try:
        announce(*server.address)
        await asyncio.Event().wait()
    finally:
        await server.close()
