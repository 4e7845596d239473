"""The interfaces of coordinators that are tested in this process."""

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any, Protocol, TypeAlias

from fencepost.adapters.bundled.classic.messages import Request, Response
from fencepost.adapters.bundled.classic.topics import Topics
from fencepost.model.settings import Settings

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
