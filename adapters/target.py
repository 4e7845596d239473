"""The contract between the runner and a target: what can be asked of any implementation.

A target hands out channels; a channel sends requests, one connection for each request in flight, and records
everything in the order and at the time it was seen.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from fencepost.model.errors import FencepostError
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Event, Kind, Order


@dataclass(frozen=True, slots=True)
class Description:
    """What a target is, as found when it was opened.

    `versions` maps an API name to the lowest and highest version that both the target and the kit know;
    an API that the target does not advertise is missing.
    """

    name: str
    order: Order
    clock: str
    versions: Mapping[str, tuple[int, int]]
    settings: Settings
    topic: str
    """An existing topic with at least four partitions, made by the kit if need be."""
    topic_id: str | None = None
    """Its id (KIP-516); without one no version is offered that goes by ids."""
    brokers: tuple[int, ...] = (0,)
    can_restart: bool = False
    implementation: Mapping[str, str] = field(default_factory=dict)


class TraceBuilder:
    """Collects the events of one schedule. `now` gives milliseconds since the run began."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._events: list[Event] = []

    def now(self) -> int:
        """Milliseconds since the run began."""
        return self._now()

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything seen so far, in order."""
        return tuple(self._events)

    def record(
        self,
        kind: Kind,
        api: str,
        version: int,
        body: Body,
        *,
        connection: int = 0,
        member: str = "",
        of: int | None = None,
    ) -> Event:
        """Append one event at the present time and return it."""
        event = Event(len(self._events), self._now(), connection, member, kind, api, version, body, of)
        self._events.append(event)
        return event


@dataclass(slots=True)
class Exchange:
    """A request that was sent, and the answer to come.

    `answer` resolves to the body of the answer, or to None when the connection ended without one.
    """

    request: Event | None
    """Recorded just before the bytes are written: None while a connection is still being made, and for a request of
    which only a part is sent."""
    response: asyncio.Future[Body | None]
    drop: Callable[[], None]
    """Close the connection that carries this request; the answer is then never seen."""


def torn_request_body(api: str, body: Body, share: int) -> Body:
    """What is recorded of a request of which only a part was sent."""
    return {"api": api, "share": share, "request": body}


class Channel(Protocol):
    """A schedule's own way to the target."""

    def send(
        self,
        api: str,
        version: int,
        body: Body,
        *,
        member: str = "",
        client_id: str = "fencepost",
        broker: int | None = None,
        share: int | None = None,
    ) -> Exchange:
        """Send a request on a connection that has none in flight. `broker` overrides the coordinator.

        With a `share`, only so many percent of its bytes are sent, and then the connection is cut. Below 100 nothing
        was asked, and no request is recorded; at 100 all of it was, and it may be handled.
        """
        ...

    async def close(self) -> None:
        """Close every connection of this channel."""
        ...


class Target(Protocol):
    """An implementation under test."""

    async def open(self) -> Description:
        """Reach the target and learn what it is. Raises `TargetError` if it cannot be used."""
        ...

    def channel(self, recorder: TraceBuilder) -> Channel:
        """A fresh channel that records into `recorder`."""
        ...

    async def restart(self) -> None:
        """Kill the target without warning and start it again with the same storage."""
        ...

    async def close(self) -> None:
        """Let go of the target."""
        ...


class TargetError(FencepostError):
    """The target cannot be used; the message is one clear line: what, where, what to do."""
