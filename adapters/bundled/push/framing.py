"""Frames on a stream."""

import asyncio

from fencepost.model.push.dialect import REPAIRED
from fencepost.model.push.wire import frame_size

DIALECT = REPAIRED
"""Both programs speak the repaired messages."""


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The payload of the next frame; None at the end. Raises `MalformedFrame` for a size that cannot be."""
    try:
        size = frame_size(await reader.readexactly(4))
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
