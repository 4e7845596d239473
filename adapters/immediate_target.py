"""Targets in this process that respond to every request at once: a protocol adds a function that handles one."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fencepost.adapters.target import DEFAULT_OPTIONS, Description, Exchange, SendOptions, TargetError, TraceBuilder
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Kind, Order


@dataclass(slots=True)
class ImmediateTarget:
    """A target on virtual time, seen at the coordinator: `handle` returns the state after a request, and its response.

    It gets the state, the API, the body, and the milliseconds since the run began.
    """

    name: str
    apis: Iterable[str]
    handle: Callable[[Any, str, Body, int], tuple[Any, Body]]
    state: Any

    async def open(self) -> Description:
        """The description of a target with default settings, without topics, with version 0 of each API."""
        return Description(self.name, Order.TOTAL, "virtual", dict.fromkeys(self.apis, (0, 0)), Settings(), "")

    def channel(self, recorder: TraceBuilder) -> "ImmediateChannel":
        """A channel to this target."""
        return ImmediateChannel(self, recorder)

    async def restart(self) -> None:
        """Raises TargetError: nothing is stored."""
        raise TargetError(f"{self.name}: cannot be restarted")

    async def move(self, group: str) -> None:
        """Raises TargetError: there is no other node."""
        raise TargetError(f"{self.name}: has no other node")

    async def close(self) -> None:
        """Nothing is open."""


class ImmediateChannel:
    """A channel that records each request with its response."""

    def __init__(self, target: ImmediateTarget, recorder: TraceBuilder) -> None:
        self.target = target
        self.recorder = recorder

    def send(self, api: str, version: int, body: Body, options: SendOptions = DEFAULT_OPTIONS) -> Exchange:
        """Send a request; its response is there at once."""
        request = self.recorder.record(Kind.REQUEST, api, version, body, member=options.member)
        target = self.target
        target.state, seen = target.handle(target.state, api, body, request.time)
        self.recorder.record(Kind.RESPONSE, api, version, seen, member=options.member, of=request.sequence)
        response: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
        response.set_result(seen)
        return Exchange(request, response, lambda: None)

    async def close(self) -> None:
        """Nothing is open."""
