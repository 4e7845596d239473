"""Servers of connections for tests: the bundled coordinator behind a codec."""

import asyncio

from fencepost.adapters.serve.coordination import Topics
from fencepost.conformance.testing.in_memory import Serve, Storage
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import decode_request, encode_response
from tests.support.wrapped_coordinators import WrappedAsyncCoordinator


class Server:
    """The bundled coordinator behind a codec: `cut` bytes of each Heartbeat response are missing, and `shift` is added
    to its correlation id."""

    def __init__(
        self, settings: Settings, topics: Topics, storage: Storage | None = None, *, cut: int = 0, shift: int = 0
    ) -> None:
        self.coordinator = WrappedAsyncCoordinator(settings, topics, {} if storage is None else storage)
        self.cut = cut
        self.shift = shift

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection until its client closes it."""
        while size := int.from_bytes(await reader.read(4)):
            request = decode_request(await reader.readexactly(size))
            assert request.api is not None
            body = await self.coordinator.handle(request.api, request.version, request.body, request.client_id)
            is_odd = request.api == "Heartbeat"
            sent = request.correlation_id + (self.shift if is_odd else 0)
            frame = encode_response(request.api, request.version, sent, body)
            frame = frame[: len(frame) - self.cut] if is_odd else frame
            writer.write(len(frame).to_bytes(4) + frame)
            await writer.drain()
        writer.close()


def make_server(settings: Settings, topics: Topics, storage: Storage, *, cut: int = 0, shift: int = 0) -> Serve:
    """Such a server as `in_memory_stream` takes it."""
    return Server(settings, topics, storage, cut=cut, shift=shift).serve
