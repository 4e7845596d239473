"""The program that speaks the line protocol: a job for each connection, and a line of JSON for each message."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from fencepost.adapters.bundled.region.line_job import BadRequest, LineJob, new_job

MAX_LINE = 1 << 20
"""Bytes; a longer line ends the connection."""


class LineProgram:
    """Serves connections, each with a job of its own, which ends with it."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.StreamWriter, asyncio.Task[Any] | None] = {}

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; returns the address. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_LINE)
        address = self._server.sockets[0].getsockname()
        return address[0], address[1]

    async def close(self) -> None:
        """Stop, with all connections."""
        if self._server is not None:
            self._server.close()
            served = dict(self._connections)
            for writer in served:
                writer.close()
            await asyncio.gather(*filter(None, served.values()), return_exceptions=True)
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[writer] = asyncio.current_task()
        job: LineJob | None = None
        with suppress(ConnectionError):
            while line := await read_line(reader):
                response, job = await respond(line, job)
                writer.write(json.dumps(response).encode() + b"\n")
                await writer.drain()
            if line is None:
                writer.write(json.dumps({"error": f"the line is longer than {MAX_LINE} bytes"}).encode() + b"\n")
        del self._connections[writer]
        writer.close()


async def read_line(reader: asyncio.StreamReader) -> bytes | None:
    """The next line, b"" at the end, None if it is too long."""
    try:
        return await reader.readline()
    except ValueError:
        return None


async def respond(line: bytes, job: LineJob | None) -> tuple[dict[str, Any], LineJob | None]:
    """The response to a line, and the job after it."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        return {"error": "the line is not JSON"}, job
    if not isinstance(request, dict):
        return {"error": "the line is not a JSON object"}, job
    of = {"of": request.get("id")}
    try:
        if request.get("do") == "open":
            return of, new_job(request)
        if job is None:
            raise BadRequest("no job is open")
        return {**of, **await job.handle(request)}, job
    except BadRequest as error:
        return {**of, "error": str(error)}, job
