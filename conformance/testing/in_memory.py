"""A user's coordinator as a target in this process, on virtual time."""

import asyncio
import inspect
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from fencepost.adapters.bundled.classic.coordinator import VERSIONS
from fencepost.adapters.bundled.classic.coordinator import Coordinator as BundledCoordinator
from fencepost.adapters.bundled.classic.messages import Request, Response
from fencepost.adapters.in_process import DEFAULT_TOPICS, InProcessTarget
from fencepost.adapters.target import Description, TargetError
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.conformance.testing.coordinators import AsyncCoordinator, MakeCoordinator, Storage
from fencepost.conformance.testing.runs import EXCEPTION, exceptions_in
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import decode_body, encode_body
from fencepost.traces.events import Body, Kind, Order

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

    def make_target(self, settings: Settings) -> "CoordinatorTarget":
        """A target with a coordinator of its own that has these settings."""
        return CoordinatorTarget(replace(self, settings=settings))


def in_memory(
    factory: MakeCoordinator,
    *,
    settings: Settings = BUNDLED_SETTINGS,
    topics: Mapping[str, int] = DEFAULT_TOPICS,
    versions: Mapping[str, tuple[int, int]] = VERSIONS,
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


class InMemoryRun(BundledRun):
    """A run on coordinators in this process that an exception ends."""

    async def play(self, scenario: Scenario, attempt: str) -> ScenarioRun:
        """As `BundledRun.play`."""
        run = await super().play(scenario, attempt)
        return replace(run, crashed=bool(exceptions_in(run.events)))


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
        name = f"{request.api}Request"
        whole = decode_body(name, request.version, encode_body(name, request.version, request.body)).body
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
        self._coordinator = cast(BundledCoordinator, driver)
        self._arm_timer()

    def _deliver(self, responses: Iterable[Response]) -> None:
        for response in responses:
            flight = self._pending.get(response.handle)
            if flight is not None:
                whole = complete_response(flight.request.api, flight.request.version, response.body)
                super()._deliver([replace(response, body=dict(whole))])

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


def complete_response(api: str, version: int, body: Body) -> Body:
    """A response with all fields of its version; absent fields get their defaults. One whose bytes are odd stays as it
    is. Raises `ValueError` for one that cannot be sent."""
    if FINDINGS in body:
        return body
    name = f"{api}Response"
    return decode_body(name, version, encode_body(name, version, body)).body


def describe_error(error: Exception) -> str:
    """An exception in a line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def describe_traceback(error: Exception) -> str:
    """The traceback of an exception, without the frames of the kit."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not _is_own(each.filename)]
    return "".join([*traceback.format_list(frames), *traceback.format_exception_only(error)]).rstrip()


_OWN_FOLDERS = (__file__.rpartition("conformance")[0],)


def _is_own(path: str) -> bool:
    """Whether a file is one of the kit's."""
    root = _OWN_FOLDERS[0]
    return any(path.startswith(f"{root}{layer}") for layer in ("model/", "traces/", "adapters/", "conformance/"))
