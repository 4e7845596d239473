"""A program that speaks the line protocol as a target: a connection, and so a job, for each channel."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from fencepost.adapters.address import TargetError
from fencepost.adapters.region.line_program import MAX_LINE, LineJob, respond
from fencepost.adapters.target import (
    DEFAULT_OPTIONS,
    Description,
    Exchange,
    RemoteTargetBase,
    SendOptions,
    TraceBuilder,
)
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Event, Kind, Order
from fencepost.traces.region.judge import FIELDS

PROTOCOL = "region"
ANSWER_SECONDS = 10.0
"""How long the kit waits for a response or a connection."""


class LineConnection(Protocol):
    """A job at a program."""

    async def ask(self, line: bytes) -> bytes:
        """The response to a line; empty at the end of the connection."""

    async def close(self) -> None:
        """End the connection, and with it the job."""


Connect: TypeAlias = Callable[[], Awaitable[LineConnection]]


@dataclass(eq=False, slots=True)
class MemoryConnection:
    """A job in this process."""

    job: LineJob | None = None

    async def ask(self, line: bytes) -> bytes:
        """As `LineConnection.ask`."""
        response, self.job = respond(line, self.job)
        return json.dumps(response).encode()

    async def close(self) -> None:
        """As `LineConnection.close`."""
        self.job = None


@dataclass(eq=False, slots=True)
class TcpConnection:
    """A job at a program over TCP."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, line: bytes) -> bytes:
        """As `LineConnection.ask`."""
        try:
            self.writer.write(line + b"\n")
            await self.writer.drain()
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self.reader.readline()
        except (ConnectionError, TimeoutError, ValueError):
            return b""

    async def close(self) -> None:
        """As `LineConnection.close`."""
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


async def connect_in_memory() -> MemoryConnection:
    """A job of the bundled operators in this process."""
    return MemoryConnection()


def connect_over_tcp(host: str, port: int) -> Connect:
    """Connects to a program at an address."""

    async def connect() -> TcpConnection:
        async with asyncio.timeout(ANSWER_SECONDS):
            return TcpConnection(*await asyncio.open_connection(host, port, limit=MAX_LINE))

    return connect


@dataclass(eq=False, slots=True)
class LineTarget(RemoteTargetBase):
    """A program that speaks the line protocol; `name` is its address. It answers each request at once."""

    name: str
    connect: Connect
    clock: str = "virtual"
    implementation: dict[str, str] = field(default_factory=dict)

    async def open(self) -> Description:
        """As `Target.open`."""
        if not await self.is_alive():
            raise TargetError(f"{self.name}: nothing there speaks the line protocol of a region")
        versions = dict.fromkeys(FIELDS, (0, 0))
        about = self.implementation
        return Description(
            self.name, Order.TOTAL, self.clock, versions, Settings(), "", implementation=about, protocol=PROTOCOL
        )

    def channel(self, recorder: TraceBuilder) -> "LineChannel":
        """As `Target.channel`."""
        return LineChannel(self, recorder)

    async def is_alive(self) -> bool:
        """Whether it opens a job on a fresh connection."""
        try:
            connection = await self.connect()
        except (OSError, TimeoutError):
            return False
        line = json.dumps({"id": 0, "do": "open", "operators": ["A"], "max_poll_records": 1}).encode()
        try:
            return read_response(await connection.ask(line), 0) is not None
        finally:
            await connection.close()


@dataclass(eq=False, slots=True)
class LineChannel:
    """A job. A request waits for the one before it."""

    target: LineTarget
    recorder: TraceBuilder
    _connection: LineConnection | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _has_ended: bool = False

    def send(self, api: str, version: int, body: Body, options: SendOptions = DEFAULT_OPTIONS) -> Exchange:
        """As `Channel.send`."""
        request = self.recorder.record(Kind.REQUEST, api, version, body, member=options.member)
        response: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._exchange(request, response))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return Exchange(request, response, lambda: None)

    async def _exchange(self, request: Event, response: asyncio.Future[Body | None]) -> None:
        line = json.dumps({"id": request.sequence, "do": request.api, **request.body}).encode()
        async with self._turn:
            found = None if self._has_ended else read_response(await self._ask(line), request.sequence)
        self._has_ended = found is None
        kind, api, body = (Kind.FAULT, "closed", {}) if found is None else (Kind.RESPONSE, request.api, found)
        self.recorder.record(kind, api, 0, body, member=request.member, of=request.sequence)
        if not response.done():
            response.set_result(found)

    async def _ask(self, line: bytes) -> bytes:
        if self._connection is None:
            try:
                self._connection = await self.target.connect()
            except (OSError, TimeoutError):
                return b""
        return await self._connection.ask(line)

    async def close(self) -> None:
        """As `Channel.close`."""
        for task in tuple(self._tasks):
            task.cancel()
        if self._connection is not None:
            await self._connection.close()


def read_response(line: bytes, number: int) -> dict[str, Any] | None:
    """The body of a response to the request with this number; None if the line is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.pop("of", None) != number:
        return None
    return found
