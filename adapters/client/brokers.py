"""The brokers behind the script: what handles the requests of a client that no fault is for."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from fencepost.adapters.address import Address
from fencepost.adapters.serve.server import ServeConnection, Server
from fencepost.model.errors import FencepostError
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import Body
from fencepost.model.wire.records import Record, encode_batch, make_batch

ACKS_ALL = -1
NODES = 2
"""How many brokers the bundled cluster has."""


class NotOffered(FencepostError):
    """The brokers cannot do what a scenario asks for; the message says what."""


class Brokers(Protocol):
    """Brokers that are reached through listeners of this process. All of it raises `TargetError` for brokers that are
    gone."""

    @property
    def address(self) -> Address:
        """Where clients reach the first broker."""

    async def listen(self) -> None:
        """Begin to take connections. Raises `OSError` without a port."""

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node_id: int) -> None:
        """Serve a connection to the broker of this id, in a task of its own."""

    async def close(self) -> None:
        """End all connections, and remove what was created."""

    async def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic, unless it is there."""

    async def grow_topic(self, name: str, partitions: int) -> None:
        """Add partitions to a topic, so that it has so many."""

    async def write(self, topic: str, index: int, records: Sequence[Record], *, is_transaction: bool) -> None:
        """Append records to a partition; behind those of a transaction there is an offset without a record. Raises
        `NotOffered`."""

    async def move(self) -> None:
        """Have another broker coordinate all groups. Raises `NotOffered`."""

    async def ask(self, api: str, version: int, body: Body) -> Body:
        """Have the coordinator of a group handle a request of the kit, and return the response."""


class BundledBrokers:
    """The bundled server of two nodes."""

    def __init__(self, settings: Settings, serve: ServeConnection) -> None:
        self._server = Server(settings, None, nodes=NODES, serve=serve)
        self.accept = self._server.accept

    @property
    def address(self) -> Address:
        """As `Brokers.address`."""
        return self._server.address

    async def listen(self) -> None:
        """As `Brokers.listen`."""
        await self._server.listen("127.0.0.1", 0)

    async def close(self) -> None:
        """As `Brokers.close`."""
        await self._server.close()

    async def create_topic(self, name: str, partitions: int) -> None:
        """As `Brokers.create_topic`."""
        self._server.create_topic(name, partitions)

    async def grow_topic(self, name: str, partitions: int) -> None:
        """As `Brokers.grow_topic`."""
        self._server.grow_topic(name, partitions)

    async def write(self, topic: str, index: int, records: Sequence[Record], *, is_transaction: bool) -> None:
        """As `Brokers.write`."""
        if is_transaction:
            self._server.write_transaction(topic, index, make_batch(records))
        else:
            self._server.produce(produce_body(topic, index, records))

    async def move(self) -> None:
        """As `Brokers.move`."""
        self._server.move()

    async def ask(self, api: str, version: int, body: Body) -> Body:
        """As `Brokers.ask`."""
        return await self._server.ask(api, version, body)


def produce_body(topic: str, index: int, records: Sequence[Record]) -> Body:
    """A Produce request for one partition, which waits for all replicas."""
    row = {"index": index, "records": encode_batch(make_batch(records))}
    return {"acks": ACKS_ALL, "topic_data": [{"name": topic, "partition_data": [row]}]}
