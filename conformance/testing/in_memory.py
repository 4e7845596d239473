"""Coordinators of test suites in this process: what they are, their targets and runs, and streams to them."""

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, cast

from fencepost.adapters.address import TargetError
from fencepost.adapters.in_process import BUNDLED, DEFAULT_TOPICS, InProcessTarget, MemoryTransport
from fencepost.adapters.serve.coordination import Request, Response, ServedCoordinator, Topics
from fencepost.adapters.target import Description
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.testing.runs import EXCEPTION
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import complete_body, decode_response, encode_request
from fencepost.traces.events import Kind, Order

# -- the interfaces of coordinators -----------------------------------------------------------------------------------

__all__ = ["AsyncCoordinator", "Coordinator", "MakeCoordinator", "Request", "Response", "Storage", "Topics"]

Storage: TypeAlias = MutableMapping[str, Any]
"""What a coordinator has stored: empty at the first start, handed to its successor as it is at a restart."""


class Coordinator(Protocol):
    """A coordinator without input and output: requests and the time in, responses out. Times are in milliseconds."""

    def handle(self, request: Request, now: int) -> Iterable[Response]:
        """Handle a request: its response, unless it is parked, and those of the parked requests that it releases."""
        ...

    def advance(self, now: int) -> Iterable[Response]:
        """Fire the timers that are due: the responses of the parked requests that they release."""
        ...

    def next_deadline(self) -> int | None:
        """When the next timer is due; None without one."""
        ...


class AsyncCoordinator(Protocol):
    """A coordinator whose handlers are coroutines. The event loop runs on virtual time: `asyncio.sleep`,
    `loop.call_later` and `loop.time` are those of the test."""

    async def handle(self, api: str, version: int, body: Mapping[str, Any], client_id: str | None) -> Mapping[str, Any]:
        """The body of the response to a request; whoever parks it awaits something."""
        ...


MakeCoordinator: TypeAlias = Callable[[Settings, Topics, Storage], Coordinator | AsyncCoordinator]
"""Makes a coordinator that keeps to the settings, for these topics, from what its predecessor has stored."""


# -- a user's coordinator as a target in this process -----------------------------------------------------------------

ASYNC_GRACE_MS = 2
"""How late a timer of an `AsyncCoordinator` may fire: its clock counts seconds in floating point."""
FINDINGS = "_findings"
"""The field of a response with what is odd about its bytes."""


@dataclass(frozen=True, slots=True)
class InMemory:
    """A coordinator to be tested in this process; made by `in_memory`."""

    factory: MakeCoordinator
    settings: Settings
    topics: Mapping[str, int]
    versions: Mapping[str, tuple[int, int]]
    restart: bool

    @property
    def name(self) -> str:
        """What reports call it."""
        return getattr(self.factory, "__name__", type(self.factory).__name__)

    async def is_async(self) -> bool:
        """Whether it is an `AsyncCoordinator`. Raises `TargetError` if it cannot be made."""
        target = self.make_target(self.settings)
        await target.open()
        await target.close()
        return target.is_async

    def make_run(self, plan: Plan, profile: Profile) -> BundledRun:
        """A run of a plan; its coordinators can be made with any settings."""
        settings = {name: getattr(self.settings, name) for name in self.settings.__dataclass_fields__}
        return BundledRun(plan, replace(profile, settings={**settings, **profile.settings}), self.make_target)

    def make_target(self, settings: Settings) -> "CoordinatorTarget":
        """A target with a coordinator of its own that has these settings."""
        return CoordinatorTarget(replace(self, settings=settings))


def in_memory(
    factory: MakeCoordinator,
    *,
    settings: Settings = BUNDLED_SETTINGS,
    topics: Mapping[str, int] = DEFAULT_TOPICS,
    versions: Mapping[str, tuple[int, int]] = BUNDLED.versions,
    restart: bool = False,
) -> InMemory:
    """A coordinator in this process as what `fencepost_target` returns.

    `factory(settings, topics, storage)` makes a `Coordinator` or an `AsyncCoordinator`, a fresh one for every scenario.
    `settings` are its bounds, delays and limits, short ones by default; scenarios ask for others, too. `topics` gives
    numbers of partitions by name, the first with at least four. `versions` are the lowest and highest version of each
    API that it has; others are never sent. With `restart`, what it keeps in `storage` outlives it, so that restarts can
    be tested.

    A coordinator that raises an exception is gone: every connection ends without a response, and the traceback is shown
    beside the violation.
    """
    return InMemory(factory, settings, dict(topics), dict(versions), restart)


class CoordinatorTarget(InProcessTarget):
    """A target for one scenario, with a coordinator of its own."""

    def __init__(self, coordinator: InMemory) -> None:
        super().__init__(coordinator.settings, topics=coordinator.topics)
        self.versions = coordinator.versions
        self.given = coordinator
        self.storage: Storage = {}
        self.is_async = False

    async def open(self) -> Description:
        """As `InProcessTarget.open`. Raises `TargetError` if the coordinator cannot be made."""
        try:
            description = await super().open()
        except Exception as error:
            self._crash(error)
            raise TargetError(f"{self.given.name}: cannot be made: {describe_error(error)}") from error
        return replace(
            description,
            name=self.given.name,
            order=Order.INTERVALS if self.is_async else Order.TOTAL,
            can_restart=self.given.restart,
            implementation={"name": self.given.name},
        )

    async def restart(self, max_group_size: int | None = None) -> None:
        """As `InProcessTarget.restart`. Raises `TargetError` if the coordinator cannot be made."""
        try:
            await super().restart(max_group_size)
        except Exception as error:
            self._crash(error)
            raise TargetError(f"{self.given.name}: cannot be restarted: {describe_error(error)}") from error

    async def close(self) -> None:
        """As `InProcessTarget.close`."""
        self._end_tasks()
        await super().close()

    def submit(self, request: Request, flight: Any) -> None:
        """As `InProcessTarget.submit`, with all fields of the request."""
        whole = complete_body(f"{request.api}Request", request.version, request.body)
        try:
            super().submit(replace(request, body=whole), flight)
        except TargetError:
            raise
        except Exception as error:
            self._crash(error)

    def advance(self) -> None:
        """As `InProcessTarget.advance`; nothing happens if the coordinator is gone."""
        if self._coordinator is None:
            return
        try:
            super().advance()
        except Exception as error:
            self._crash(error)

    def _start(self) -> None:
        self._end_tasks()
        made = self.given.factory(self._settings, self._topics, self.storage)  # may ask the loop for the time
        self.is_async = inspect.iscoroutinefunction(made.handle)
        driver = _AsyncDriver(self, cast(AsyncCoordinator, made)) if self.is_async else made
        self._coordinator = cast(ServedCoordinator, driver)
        self._arm_timer()

    def _deliver(self, responses: Iterable[Response]) -> None:
        for response in responses:
            flight = self._pending.get(response.handle)
            if flight is not None:
                whole = response.body
                if FINDINGS not in whole:  # else its bytes are odd, and stay as they are
                    whole = dict(complete_body(f"{flight.request.api}Response", flight.request.version, whole))
                super()._deliver([replace(response, body=whole)])

    def _end_tasks(self) -> None:
        if isinstance(self._coordinator, _AsyncDriver):
            self._coordinator.end()

    def _crash(self, error: Exception) -> None:
        """The coordinator is gone: every connection ends without a response."""
        self._end_tasks()
        self._coordinator = None
        if self._timer is not None:
            self._timer.cancel()
        lost, self._pending = self._pending, {}
        told = {EXCEPTION: describe_traceback(error)}
        for flight in lost.values():
            request = flight.request
            flight.channel.recorder.record(
                Kind.FAULT, "closed", request.version, told, connection=request.connection, of=request.sequence
            )
            flight.channel.disconnect(flight)


class _AsyncDriver:
    """An `AsyncCoordinator` behind the interface of the bundled one: each request has a task of its own."""

    def __init__(self, target: CoordinatorTarget, coordinator: AsyncCoordinator) -> None:
        self.target = target
        self.coordinator = coordinator
        self.tasks: set[asyncio.Task[None]] = set()

    def handle(self, request: Request, now: int) -> list[Response]:
        """Start a task for the request."""
        task = asyncio.get_running_loop().create_task(self.respond(request))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return []

    async def respond(self, request: Request) -> None:
        """Have the request handled, and deliver its response."""
        try:
            body = await self.coordinator.handle(request.api, request.version, request.body, request.client_id)
            self.target._deliver([Response(request.handle, dict(body))])
        except Exception as error:
            self.target._crash(error)

    def advance(self, now: int) -> list[Response]:
        """Its timers are those of the event loop."""
        return []

    def next_deadline(self) -> None:
        """Its timers are those of the event loop."""

    def end(self) -> None:
        """Cancel the requests in flight."""
        for task in self.tasks:
            task.cancel()


def describe_error(error: Exception) -> str:
    """An exception in a line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def describe_traceback(error: Exception) -> str:
    """The traceback of an exception, without the frames of the kit."""
    root = __file__.rpartition("conformance")[0]
    own = tuple(f"{root}{layer}/" for layer in ("model", "traces", "adapters", "conformance"))
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith(own)]
    return "".join([*traceback.format_list(frames), *traceback.format_exception_only(error)]).rstrip()


# -- a user's server of Kafka's protocol as a target in this process --------------------------------------------------

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
    versions: Mapping[str, tuple[int, int]] = BUNDLED.versions,
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
