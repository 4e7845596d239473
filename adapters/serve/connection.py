"""One client's connection: request frames in, response frames out, one at a time and in order, as in Kafka."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

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
