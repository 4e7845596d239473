"""The proxy: a listener for every broker of the cluster, and the bytes between each client and its broker."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar
from weakref import WeakSet

from fencepost.adapters.address import Address
from fencepost.adapters.record.address_rewriting import (
    REWRITTEN_APIS,
    is_known,
    read_addresses,
    rewrite_addresses,
)
from fencepost.adapters.record.upstream import Upstream, UpstreamError, connect_upstream
from fencepost.adapters.security.loading import PLAINTEXT, Security
from fencepost.traces.frames import ConnectionDecoder, FrameSplitter, WireTrace

MAX_FRAME_BYTES = 128 * 1024 * 1024
"""Longest frame of Kafka, in bytes: its brokers refuse requests above 100 MiB."""
READ_CHUNK_BYTES = 256 * 1024
MAX_WARNINGS = 100

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Proxy:
    """Listens on `host` for the clients of a cluster. A broker that a response names gets a listener of its own. `show`
    gets lines for the operator; `security` is that of the connections to brokers."""

    def __init__(
        self, trace: WireTrace, host: str, show: Callable[[str], None], security: Security = PLAINTEXT
    ) -> None:
        self._security = security
        self._trace = trace
        self._host = host
        self._show = show
        self._ports: dict[Address, int] = {}
        self._opening = asyncio.Lock()
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._writers: WeakSet[asyncio.StreamWriter] = WeakSet()
        self._warned: set[str] = set()

    async def listen(self, upstream: Address, port: int = 0) -> int:
        """Listen for a broker's clients on `port` (0: any) and return the port. Raises `OSError` if it is taken."""
        async with self._opening:  # two answers may name a broker at the same time
            if upstream not in self._ports:
                self._ports[upstream] = await self._listen(upstream, port)
        return self._ports[upstream]

    async def _listen(self, upstream: Address, port: int) -> int:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._writers.add(writer)
            task = asyncio.create_task(self._relay_connection(reader, writer, upstream))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

        server = await asyncio.start_server(accept, self._host, port, limit=READ_CHUNK_BYTES)
        self._servers.append(server)
        found: int = server.sockets[0].getsockname()[1]
        return found

    async def close(self) -> None:
        """Close every listener and every connection."""
        for server in self._servers:
            server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # the transports let go of their sockets in the loop's next turn

    async def _relay_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: Address
    ) -> None:
        """Relay one client's connection until it ends."""
        talk = self._trace.open_connection()
        try:
            broker = await connect_upstream(upstream, self._security, READ_CHUNK_BYTES)
        except UpstreamError as error:
            self._warn_once(f"{error}; its clients are turned away")
            self._record_safely(lambda: talk.on_closed("lost", "no connection to the broker"))
            writer.close()
            return
        self._writers.add(broker.writer)
        gone: list[str] = []
        asking = asyncio.create_task(self._relay_requests(reader, broker, talk, gone))
        answering = asyncio.create_task(self._relay_responses(broker, writer, talk, gone))
        try:
            await asyncio.wait((asking, answering), return_when=asyncio.FIRST_COMPLETED)
            if asking.done() and asking.exception() is None and broker.writer.can_write_eof():
                await asyncio.wait((answering,))  # the client has said all that it will, and may still be answered
        finally:
            for task in (asking, answering):
                task.cancel()
            await asyncio.gather(asking, answering, return_exceptions=True)
            first = next(iter(gone), "recorder")
            self._record_safely(
                lambda: talk.on_closed("lost" if first == "broker" else "drop", f"the {first} closed the connection")
            )
            broker.writer.close()
            writer.close()

    async def _relay_requests(
        self, reader: asyncio.StreamReader, broker: Upstream, decoder: ConnectionDecoder, closed_by: list[str]
    ) -> None:
        """Forward bytes from the client. A request is recorded before its last byte is forwarded."""
        splitter = FrameSplitter(MAX_FRAME_BYTES)
        back = broker.writer
        while data := await read_chunk(reader, "client", closed_by):
            if splitter.is_broken:
                back.write(data)
            elif broker.has_renewals:
                await self._relay_between_renewals(splitter.feed(data), broker, decoder)
                self._check_decodable(splitter, decoder)
                back.write(splitter.take_rest() if splitter.is_broken else b"")
            else:
                for frame in splitter.feed(data):
                    self._record_safely(partial(decoder.on_request, frame))
                self._check_decodable(splitter, decoder)
                back.write(data)
            await back.drain()
        if back.can_write_eof():
            back.write_eof()

    async def _relay_between_renewals(
        self, frames: Iterator[bytes], broker: Upstream, decoder: ConnectionDecoder
    ) -> None:
        """Record and forward whole requests; between two of them the session may be renewed."""
        for frame in frames:
            if broker.must_renew:
                try:
                    await broker.renew()
                except UpstreamError as error:
                    self._warn_once(f"a session could not be renewed: {error}; its client is turned away")
                    raise ConnectionAbortedError from None
            self._record_safely(partial(decoder.on_request, frame))
            broker.writer.write(len(frame).to_bytes(4) + frame)

    async def _relay_responses(
        self,
        broker: Upstream,
        writer: asyncio.StreamWriter,
        decoder: ConnectionDecoder,
        closed_by: list[str],
    ) -> None:
        """Forward bytes from the broker. A response is recorded before its first byte is forwarded."""
        splitter = FrameSplitter(MAX_FRAME_BYTES)
        here = writer.get_extra_info("sockname")[0]
        try:
            while data := await read_chunk(broker.reader, "broker", closed_by):
                if splitter.is_broken:
                    writer.write(data)
                else:
                    for frame in splitter.feed(data):
                        if broker.take_own(frame):
                            continue
                        passed = await self._rewrite_response(frame, decoder, here)
                        writer.write(len(passed).to_bytes(4) + passed)
                    self._check_decodable(splitter, decoder)
                    if splitter.is_broken:
                        writer.write(splitter.take_rest())
                await writer.drain()
        finally:
            writer.write(splitter.take_rest())

    async def _rewrite_response(self, frame: bytes, decoder: ConnectionDecoder, here: str) -> bytes:
        """Record a response, and return it with the proxy's addresses."""
        flight = self._record_safely(partial(decoder.on_response, frame))
        if flight is None or flight.request.api not in REWRITTEN_APIS:
            return frame
        api, version = flight.request.api, flight.request.version
        if not is_known(api, version):
            self._warn_once(
                f"{api} version {version} is not known: its answers pass as they are, and clients may go past"
            )
            return frame
        try:
            places = {each: (here, await self.listen(each)) for each in read_addresses(api, version, frame)}
            return rewrite_addresses(api, version, frame, places)
        except (OSError, ValueError) as error:
            self._warn_once(f"an answer to {api} passes as it is, and clients may go past the recorder: {error}")
            return frame

    def _check_decodable(self, splitter: FrameSplitter, decoder: ConnectionDecoder) -> None:
        if splitter.is_broken:
            self._warn_once("a connection does not speak Kafka in the clear (is it TLS?): its bytes pass unrecorded")
            self._record_safely(lambda: self._trace.mark_gap(f"connection {decoder.number} cannot be read"))

    def _record_safely(self, step: Callable[[], T]) -> T | None:
        """Call `step`, which records; a failure is logged, and bytes are still forwarded."""
        try:
            return step()
        except Exception as error:
            _log.exception("not recorded")
            self._warn_once(f"something could not be recorded ({error}); bytes pass all the same")
            return None

    def _warn_once(self, line: str) -> None:
        """Show a line to the operator, unless it was shown before."""
        if line not in self._warned and len(self._warned) < MAX_WARNINGS:
            self._warned.add(line)
            self._show(line)


async def read_chunk(reader: asyncio.StreamReader, side: str, closed_by: list[str]) -> bytes:
    """Read some bytes, b"" at the end; `closed_by` then gets the name of the side. Raises `ConnectionError`."""
    data = b""
    try:
        data = await reader.read(READ_CHUNK_BYTES)
    finally:
        if (not data and reader.at_eof()) or reader.exception() is not None:
            closed_by.append(side)
    return data
