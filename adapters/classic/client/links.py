"""Connections of the reference client: to a server in this process, or to brokers over TCP."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from fencepost.adapters.in_process import MemoryTransport
from fencepost.model.wire.codec import Body

Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Any]
"""Takes a connection to the node of this id, as servers do."""
LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class AwaitedResponse:
    """A request that waits for its response: its API, its handle in the model (0 for none), its body, and when it was
    sent."""

    api: str
    handle: int
    request: Body
    sent_at: int


@dataclass(eq=False, slots=True)
class Link(ABC):
    """A connection to a node, and the requests on it that wait for their responses, by correlation id."""

    waiting: dict[int, AwaitedResponse] = field(default_factory=dict)

    @abstractmethod
    def send(self, frame: bytes) -> None:
        """Send a frame; one that cannot leave is lost with the connection."""

    @abstractmethod
    async def receive(self) -> bytes:
        """The next frame. Raises `ConnectionError` at the end of the connection."""

    @abstractmethod
    def hang_up(self) -> None:
        """End the connection."""

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """Whether the connection has ended."""


class Network(Protocol):
    """What the reference client needs of the network."""

    def connect(self, node: int) -> Link:
        """A new connection to a node; it may be under way still."""
        ...

    def learn(self, node: int, host: str, port: int) -> None:
        """A node has this address."""


@dataclass(eq=False, slots=True)
class MemoryLink(Link):
    """A connection to a server in this process."""

    requests: asyncio.StreamReader = field(kw_only=True)
    responses: asyncio.StreamReader = field(kw_only=True)
    transport: MemoryTransport = field(kw_only=True)

    def send(self, frame: bytes) -> None:
        """As `Link.send`."""
        self.requests.feed_data(len(frame).to_bytes(LENGTH_BYTES) + frame)

    async def receive(self) -> bytes:
        """As `Link.receive`."""
        return await read_frame(self.responses)

    def hang_up(self) -> None:
        """As `Link.hang_up`."""
        self.requests.feed_eof()

    @property
    def is_over(self) -> bool:
        """As `Link.is_over`."""
        return self.transport.is_closing()


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The next frame of a stream. Raises `ConnectionError`."""
    try:
        size = int.from_bytes(await reader.readexactly(LENGTH_BYTES))
        return await reader.readexactly(size)
    except asyncio.IncompleteReadError as end:
        raise ConnectionError("the connection has ended") from end


@dataclass(frozen=True, slots=True)
class MemoryNetwork:
    """The nodes of a server in this process."""

    accept: Accept

    def connect(self, node: int) -> MemoryLink:
        """As `Network.connect`."""
        loop = asyncio.get_running_loop()
        requests, responses = asyncio.StreamReader(loop=loop), asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(requests, loop=loop)
        transport = MemoryTransport(protocol, responses)
        protocol.connection_made(transport)
        self.accept(requests, asyncio.StreamWriter(transport, protocol, requests, loop), node)
        return MemoryLink(requests=requests, responses=responses, transport=transport)

    def learn(self, node: int, host: str, port: int) -> None:
        """As `Network.learn`: in this process, a node is its id."""


@dataclass(eq=False, slots=True)
class TcpLink(Link):
    """A connection over TCP, which is made in the background."""

    address: tuple[str, int] = field(kw_only=True)
    _unsent: list[bytes] = field(default_factory=list)
    _writer: asyncio.StreamWriter | None = None
    _reader: asyncio.StreamReader | None = None
    _has_ended: bool = False

    def send(self, frame: bytes) -> None:
        """As `Link.send`."""
        data = len(frame).to_bytes(LENGTH_BYTES) + frame
        if self._writer is None:
            self._unsent.append(data)
        elif not self._writer.is_closing():
            self._writer.write(data)

    async def receive(self) -> bytes:
        """As `Link.receive`; the first time, connect."""
        try:
            if self._reader is None:
                self._reader, self._writer = await asyncio.open_connection(*self.address)
                self._writer.write(b"".join(self._unsent))
            return await read_frame(self._reader)
        except OSError as error:
            self.hang_up()
            raise ConnectionError(str(error)) from error

    def hang_up(self) -> None:
        """As `Link.hang_up`."""
        self._has_ended = True
        if self._writer is not None:
            with suppress(OSError, RuntimeError):
                self._writer.close()

    @property
    def is_over(self) -> bool:
        """As `Link.is_over`."""
        return self._has_ended


@dataclass(slots=True)
class TcpNetwork:
    """A cluster of brokers. Until a node is known, the bootstrap address is its own."""

    bootstrap: tuple[str, int]
    addresses: dict[int, tuple[str, int]] = field(default_factory=dict)

    def connect(self, node: int) -> TcpLink:
        """As `Network.connect`."""
        return TcpLink(address=self.addresses.get(node, self.bootstrap))

    def learn(self, node: int, host: str, port: int) -> None:
        """As `Network.learn`."""
        self.addresses[node] = host, port
