"""The bundled coordinator behind the interfaces for users' coordinators."""

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Any

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.log import MemoryLog
from fencepost.adapters.serve.coordination import Request, Response, Topics
from fencepost.conformance.testing.in_memory import Storage
from fencepost.model.settings import Settings


def make_wrapped(
    settings: Settings, topics: Topics, storage: Storage, kind: type[Coordinator] = Coordinator
) -> Coordinator:
    """The bundled coordinator, or one of its kind, as a `Coordinator`."""
    log = storage.setdefault("log", MemoryLog())
    ids = storage.setdefault("ids", count())
    now = round(asyncio.get_running_loop().time() * 1000)
    return kind(settings, log, lambda prefix: f"{prefix}-{next(ids)}", topics, now=now)


class WrappedAsyncCoordinator:
    """The bundled coordinator as an `AsyncCoordinator`."""

    def __init__(self, settings: Settings, topics: Topics, storage: Storage) -> None:
        self.coordinator = make_wrapped(settings, topics, storage)
        self.loop = asyncio.get_running_loop()
        self.parked: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.handles = count()

    async def handle(self, api: str, version: int, body: Mapping[str, Any], client_id: str | None) -> Mapping[str, Any]:
        """Have a request handled, and wait for its response."""
        handle, now = next(self.handles), self.now()
        waiting: asyncio.Future[Mapping[str, Any]] = self.loop.create_future()
        self.parked[handle] = waiting
        self.deliver(self.coordinator.advance(now))
        self.deliver(self.coordinator.handle(Request(handle, api, version, client_id, "/127.0.0.1", body), now))
        self.arm()
        return await waiting

    def now(self) -> int:
        """Milliseconds since the loop began."""
        return round(self.loop.time() * 1000)

    def deliver(self, responses: list[Response]) -> None:
        """Release the requests that have a response."""
        for response in responses:
            waiting = self.parked.pop(response.handle)
            if not waiting.done():
                waiting.set_result(response.body)

    def arm(self) -> None:
        """Have the loop call at the next deadline."""
        if self.timer is not None:
            self.timer.cancel()
        deadline = self.coordinator.next_deadline()
        if deadline is not None:
            self.timer = self.loop.call_at(deadline / 1000, self.fire)

    def fire(self) -> None:
        """Fire the timers that are due."""
        self.deliver(self.coordinator.advance(self.now()))
        self.arm()
