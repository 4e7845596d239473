"""A real ZooKeeper behind the push coordinator: the session of one broker, and what it last read.

Whatever watch fires, everything is read anew: changes are rare, and nothing is missed between a watch and the next.
The number of an election is the version that it gives the data of `/consumers/election`, so that a write can be made
only while that election is the last one and its node is there.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from fencepost.adapters.bundled.push.zookeeper import Partition
from fencepost.adapters.bundled.push.zookeeper_client import (
    EPHEMERAL,
    NODE_EXISTS,
    ZookeeperClient,
    ZookeeperError,
    check,
    create,
    delete,
    set_data,
)

COORDINATOR, ELECTION = "/consumers/coordinator", "/consumers/election"
OWNERS, OFFSETS = "/consumers/groups/owners", "/consumers/groups/offsets"
BROKERS, TOPICS = "/brokers/ids", "/brokers/topics"
RETRY_SECONDS = 0.5
SESSION_SECONDS = 6.0


@dataclass(eq=False, slots=True)
class NetworkZookeeper:
    """The view of one broker: `Zookeeper` over a connection. Without a session, nobody is the coordinator."""

    address: tuple[str, int]
    session_timeout: float = SESSION_SECONDS
    """Seconds, as asked for."""
    topics: dict[str, list[str]] = field(default_factory=dict)
    offsets: dict[str, dict[Partition, int]] = field(default_factory=dict)
    addresses: dict[int, tuple[str, int]] = field(default_factory=dict)
    coordinator: int | None = None
    _client: ZookeeperClient | None = None
    _session: "asyncio.Task[None] | None" = None
    _writes: set["asyncio.Task[bool]"] = field(default_factory=set)
    _election: int | None = None
    _on_elected: Callable[[int], None] | None = None
    _on_change: Callable[[str], None] | None = None

    def begin_session(self, broker: int, address: tuple[str, int], on_lost: Callable[[], None]) -> None:
        """Begin a session as soon as the server can be reached; it is lost with its connection."""
        self._session = asyncio.get_running_loop().create_task(self._run(broker, address, on_lost))

    def end_session(self, broker: int) -> None:
        """End the session; the server deletes its nodes at once if it can be told."""
        if self._session is not None:
            self._session.cancel()
        self._session = self._on_elected = self._on_change = None
        self._forget()

    def watch_topics(self, broker: int, on_change: Callable[[str], None]) -> None:
        """Tell the broker of each topic that is new or has a new partition."""
        self._on_change = on_change

    def elect(self, broker: int, on_elected: Callable[[int], None]) -> None:
        """Make the coordinator path once there is none."""
        self._on_elected = on_elected

    def write_offsets(self, group: str, election: int, offsets: dict[Partition, int]) -> bool:
        """Record offsets. They are on their way when this returns; if they are refused, the session is given up."""
        if election != self._election:
            return False
        self.offsets.setdefault(group, {}).update(offsets)
        write = asyncio.get_running_loop().create_task(self._write(OFFSETS, group, self.offsets[group]))
        self._writes.add(write)
        write.add_done_callback(self._writes.discard)
        return True

    async def write_owners(self, group: str, election: int, owners: dict[Partition, str]) -> bool:
        """Record the owners, unless another broker was elected since or the session is over."""
        return election == self._election and await self._write(OWNERS, group, owners)

    async def _write(self, folder: str, group: str, values: Mapping[Partition, object]) -> bool:
        """Write a group's node in the last election alone; a refusal is the end of the session."""
        client, path = self._client, f"{folder}/{quote(group, safe='')}"
        if client is None or self._election is None:
            return False
        guards = check(COORDINATOR), check(ELECTION, self._election)
        data = json.dumps([[*partition, value] for partition, value in sorted(values.items())]).encode()
        try:
            await client.ensure(path)
            await client.transact(*guards, set_data(path, data))
        except (OSError, ZookeeperError):
            client.close()
            return False
        return True

    def _forget(self) -> None:
        client, self._client = self._client, None
        self._election = self.coordinator = None
        self.addresses = {}
        if client is not None:
            client.close()

    async def _run(self, broker: int, address: tuple[str, int], on_lost: Callable[[], None]) -> None:
        """A session from its begin, for which it tries again and again, to its loss."""
        while True:
            try:
                client = self._client = await ZookeeperClient.open(self.address, self.session_timeout)
                break
            except (OSError, TimeoutError):
                await asyncio.sleep(RETRY_SECONDS)
        try:
            await self._register(client, broker, address)
            while not client.is_over:
                client.changed.clear()
                await self._read(client)
                if self.coordinator is None and self._on_elected is not None:
                    await self._stand(client, broker, self._on_elected)
                elif self._election is not None and self.coordinator != broker:
                    break
                await client.changed.wait()
        except (OSError, ZookeeperError):
            pass
        if self._client is client:
            self._forget()
            self._session = None
            on_lost()

    async def _register(self, client: ZookeeperClient, broker: int, address: tuple[str, int]) -> None:
        """Make the paths, and the broker's node; one that is there is of its former session."""
        for path in (OWNERS, OFFSETS, BROKERS, TOPICS, ELECTION):
            await client.ensure(path)
        path, data = f"{BROKERS}/{broker}", json.dumps(address).encode()
        try:
            await client.transact(create(path, data, EPHEMERAL))
        except ZookeeperError as error:
            if error.code != NODE_EXISTS:
                raise
            await client.transact(delete(path), create(path, data, EPHEMERAL))

    async def _read(self, client: ZookeeperClient) -> None:
        """Read everything, watch it, and tell of the topics that changed."""
        await client.watch(COORDINATOR)
        holder = await client.data(COORDINATOR)
        self.coordinator = None if holder is None else int(holder)
        addresses: dict[int, tuple[str, int]] = {}
        for name in await client.list_children(BROKERS, watch=True):
            if (data := await client.data(f"{BROKERS}/{name}")) is not None:
                host, port = json.loads(data)
                addresses[int(name)] = (host, port)
        self.addresses = addresses
        before, self.topics = (
            self.topics,
            {
                name: sorted(await client.list_children(f"{TOPICS}/{name}", watch=True), key=partition_number)
                for name in sorted(await client.list_children(TOPICS, watch=True))
            },
        )
        for name, partitions in self.topics.items():
            if partitions != before.get(name) and self._on_change is not None:
                self._on_change(name)

    async def _stand(self, client: ZookeeperClient, broker: int, on_elected: Callable[[int], None]) -> None:
        """Try to be elected, and read the offsets that the coordinator before recorded."""
        try:
            node = create(COORDINATOR, str(broker).encode(), EPHEMERAL)
            election = await client.transact(node, set_data(ELECTION, str(broker).encode()))
        except ZookeeperError as error:
            if error.code != NODE_EXISTS:
                raise
            # Another one was faster: the watch fires, or has.
            return
        offsets = {}
        for name in await client.list_children(OFFSETS):
            entries = json.loads(await client.data(f"{OFFSETS}/{name}") or b"[]")
            offsets[unquote(name)] = {(topic, partition): offset for topic, partition, offset in entries}
        self.offsets, self.coordinator, self._election, self._on_elected = offsets, broker, election, None
        on_elected(election)


def partition_number(name: str) -> tuple[int, str]:
    """The order of partitions: by the number behind the broker's, as they were made."""
    number = name.rpartition("-")[2]
    return (int(number) if number.isdecimal() else -1, name)


async def add_topics(address: tuple[str, int], topics: Mapping[str, list[str]]) -> None:
    """Make topics and their partitions, where they are missing. Raises `OSError` if the server cannot be reached."""
    client = await ZookeeperClient.open(address, SESSION_SECONDS)
    try:
        await client.ensure(TOPICS)
        for topic, partitions in topics.items():
            for partition in partitions:
                await client.ensure(f"{TOPICS}/{topic}/{partition}")
    finally:
        client.close()
