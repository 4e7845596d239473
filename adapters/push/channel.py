"""The connections of one scenario to push brokers."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from fencepost.adapters.address import Address
from fencepost.adapters.push.connection import PushConnection
from fencepost.adapters.target import DEFAULT_OPTIONS, Exchange, SendOptions, TraceBuilder
from fencepost.traces.events import Body, Kind

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[Address], Awaitable[Streams]]
"""Opens a connection to an address. Raises `OSError`."""


class PushHooks(Protocol):
    """What can be done to a target beside its wire."""

    def topics(self) -> dict[str, list[str]]:
        """The topics with the names of their partitions."""
        ...

    def add_partition(self, topic: str) -> None:
        """Add a partition, and the topic if it is new."""
        ...

    def can_fail_over(self) -> bool:
        """Whether a broker is left once the coordinator is dead."""
        ...

    async def kill_coordinator(self) -> None:
        """Kill the coordinator without warning."""
        ...

    async def expire_session(self) -> None:
        """End the session of the coordinator, which lives on."""
        ...


@dataclass(slots=True)
class PushChannel:
    """Opens connections, numbered from 1, and closes them all in the end."""

    recorder: TraceBuilder
    connect: Connect
    bootstrap: tuple[Address, ...]
    hooks: PushHooks | None = None
    known: Mapping[str, list[str]] = field(default_factory=dict)
    """The topics with their partitions, where no hook tells them."""
    connections: list[PushConnection] = field(default_factory=list)

    async def open(self, member: str, address: Address) -> PushConnection | None:
        """A new connection to an address; None if there is none, which is recorded."""
        number = len(self.connections) + 1
        try:
            reader, writer = await self.connect(address)
        except OSError as error:
            self.recorder.record(Kind.FAULT, "unreachable", 0, {"reason": str(error)}, connection=number, member=member)
            return None
        opened = PushConnection(self.recorder, number, member, reader, writer)
        self.connections.append(opened)
        return opened

    def send(self, api: str, version: int, body: Body, options: SendOptions = DEFAULT_OPTIONS) -> Exchange:
        """Send a lookup to the first broker on a connection of its own."""
        response: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()

        async def ask() -> None:
            connection = await self.open(options.member, self.bootstrap[0])
            response.set_result(None if connection is None else await connection.ask(api, body))

        task = asyncio.get_running_loop().create_task(ask())

        def drop() -> None:
            task.cancel()

        return Exchange(None, response, drop)

    async def close(self) -> None:
        """Close every connection."""
        for connection in self.connections:
            connection.close()
