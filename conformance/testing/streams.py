"""A user's server of Kafka's protocol as a target in this process: bytes in, bytes out, and no port."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from fencepost.adapters.bundled.classic.coordinator import VERSIONS
from fencepost.adapters.bundled.classic.topics import Topics
from fencepost.adapters.in_process import DEFAULT_TOPICS, MemoryTransport
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.testing.coordinators import Storage
from fencepost.conformance.testing.in_memory import FINDINGS, InMemory, in_memory
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import decode_response, encode_request

Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Serves one connection until its client closes it, as `asyncio.start_server` takes it."""
MakeServe: TypeAlias = Callable[[Settings, Topics, Storage], Serve]
"""Makes a server that keeps to the settings, for these topics, from what its predecessor has stored."""
LENGTH_BYTES = 4
MAX_RESPONSE_BYTES = 64 * 1024 * 1024


class StreamError(Exception):
    """A server did not send what the protocol asks for."""


def in_memory_stream(
    factory: MakeServe,
    *,
    settings: Settings = BUNDLED_SETTINGS,
    topics: Mapping[str, int] = DEFAULT_TOPICS,
    versions: Mapping[str, tuple[int, int]] = VERSIONS,
    restart: bool = False,
) -> InMemory:
    """A server of connections in this process as what `fencepost_target` returns, so that its codec is tested, too.

    `factory(settings, topics, storage)` makes an `async def serve(reader, writer)`, a fresh one for every scenario. It
    gets the bytes of requests and writes those of responses, each with its length before it, on virtual time; a
    connection has one request at a time. The other arguments are those of `in_memory`.

    A server that raises an exception or closes a connection without a response is gone, as in `in_memory`. What is odd
    about its bytes is a remark on a pass, and what they lack is absent from the response, as for a broker over TCP.
    """

    def make(own: Settings, topics: Topics, storage: Storage) -> StreamCoordinator:
        return StreamCoordinator(factory(own, topics, storage))

    make.__name__ = getattr(factory, "__name__", type(factory).__name__)
    return in_memory(make, settings=settings, topics=topics, versions=versions, restart=restart)


class StreamCoordinator:
    """An `AsyncCoordinator` that hands the bytes of each request to a server of connections.

    A connection has one request at a time; idle ones are used again.
    """

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._idle: list[_MemoryConnection] = []
        self._correlation_id = 0

    async def handle(self, api: str, version: int, body: Mapping[str, Any], client_id: str | None) -> Mapping[str, Any]:
        """As `AsyncCoordinator.handle`; remarks about odd bytes are in the body. Raises `StreamError`, and what the
        server raises."""
        connection = self._idle.pop() if self._idle else _MemoryConnection(self._serve)
        self._correlation_id += 1
        sent = self._correlation_id
        frame = await connection.exchange(encode_request(api, version, sent, client_id, body))
        response = decode_response(api, version, frame)
        if connection.is_open:
            self._idle.append(connection)
        findings = list(response.findings)
        if response.correlation_id != sent:
            findings.append(f"correlation id {response.correlation_id} instead of {sent}")
        return {**response.body, FINDINGS: findings} if findings else response.body


class _MemoryConnection:
    """A connection in this process to a server, which runs in a task of its own."""

    def __init__(self, serve: Serve) -> None:
        loop = asyncio.get_running_loop()
        self._requests = asyncio.StreamReader(loop=loop)
        self._responses = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(self._requests, loop=loop)
        transport = MemoryTransport(protocol, self._responses)
        protocol.connection_made(transport)
        self._transport = transport
        writer = asyncio.StreamWriter(transport, protocol, self._requests, loop)
        self._server = asyncio.ensure_future(serve(self._requests, writer))
        self._server.add_done_callback(lambda _: transport.close())

    @property
    def is_open(self) -> bool:
        """Whether the server takes another request."""
        return not self._transport.is_closing()

    async def exchange(self, frame: bytes) -> bytes:
        """Hand a request to the server, and return its response. A caller that is cancelled ends the connection."""
        self._requests.feed_data(len(frame).to_bytes(LENGTH_BYTES) + frame)
        try:
            size = int.from_bytes(await self._responses.readexactly(LENGTH_BYTES), signed=True)
            if not 0 <= size <= MAX_RESPONSE_BYTES:
                raise StreamError(f"a response of {size} bytes")
            return await self._responses.readexactly(size)
        except asyncio.IncompleteReadError:
            if self._server.done() and not self._server.cancelled() and (failure := self._server.exception()):
                raise failure from None
            raise StreamError("the connection was closed without a response") from None
        except asyncio.CancelledError:
            self._server.cancel()
            raise
