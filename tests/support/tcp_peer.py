"""Raw connections to the bundled server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fencepost.adapters.serve.server import Server, start_server
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import Body, decode_response, encode_request

TIMEOUT_S = 10
SETTINGS = Settings(min_session_timeout=100, initial_rebalance_delay=50, max_group_size=7)


class RawClient:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def write_frame(self, frame: bytes) -> None:
        """Send a frame, whatever it holds."""
        self._writer.write(len(frame).to_bytes(4) + frame)

    def write_raw(self, data: bytes) -> None:
        """Send bytes without a length in front."""
        self._writer.write(data)

    async def read_frame(self) -> bytes:
        """The next response frame; `b""` if the server has closed the connection."""
        async with asyncio.timeout(TIMEOUT_S):
            try:
                return await self._reader.readexactly(int.from_bytes(await self._reader.readexactly(4)))
            except (asyncio.IncompleteReadError, ConnectionError):
                return b""

    async def request(self, api: str, version: int, body: Body) -> dict[str, Any]:
        """Send a request and return the response's body, which must decode without findings."""
        self.write_frame(encode_request(api, version, 5, "peer", body))
        response = decode_response(api, version, await self.read_frame())
        assert (response.correlation_id, response.findings) == (5, ())
        return dict(response.body)

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        await self._writer.wait_closed()


class RunningServer:
    """A server and its raw clients."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._clients: list[RawClient] = []

    @property
    def address(self) -> tuple[str, int]:
        """The host and port that it listens on."""
        return self.server.address

    async def connect(self, address: tuple[str, int] | None = None) -> RawClient:
        """A new connection, to the first node unless an address is given."""
        self._clients.append(RawClient(*await asyncio.open_connection(*(address or self.address))))
        return self._clients[-1]

    async def close(self) -> None:
        """Close all connections and the server."""
        for peer in self._clients:
            await peer.close()
        await self.server.close()


@asynccontextmanager
async def running_server(
    storage: Path | None = None, nodes: int = 1, dialect: str = "kafka"
) -> AsyncIterator[RunningServer]:
    """A server of so many nodes on free ports, closed at the end."""
    place = RunningServer(await start_server("127.0.0.1", 0, SETTINGS, storage, nodes=nodes, dialect=dialect))
    try:
        yield place
    finally:
        await place.close()
