"""A real ZooKeeper behind the push coordinator: the session of one broker, and what it last read.

Sessions are those of kazoo, from the extra `zookeeper`. One is given up with its connection, and before the server can
end it: who holds it need not act on a state that ZooKeeper has taken from it. Whatever watch fires, everything is read
anew: changes are rare, and nothing is missed between a watch and the next. The number of an election is the version
that it gives the data of `/consumers/election`, so that a write can be made only while that election is the last one
and its node is there.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    ConnectionClosedError,
    KazooException,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.handlers.threading import KazooTimeoutError

from fencepost.adapters.address import Address, format_address
from fencepost.adapters.push.zookeeper import Partition

COORDINATOR, ELECTION = "/consumers/coordinator", "/consumers/election"
OWNERS, OFFSETS = "/consumers/groups/owners", "/consumers/groups/offsets"
BROKERS, TOPICS = "/brokers/ids", "/brokers/topics"
RETRY_SECONDS = 0.5
SESSION_SECONDS = 6.0


class ZookeeperSession:
    """A session, whose operations are those of kazoo, each in a thread of its own. Times are seconds."""

    def __init__(self, address: Address, timeout: float = SESSION_SECONDS) -> None:
        self.address = address
        self.timeout = timeout
        """After how long a silence the server may end the session."""
        self.client = KazooClient(format_address(*address), timeout, connection_retry={"max_tries": 0})
        self.changed = asyncio.Event()
        """Set when a watch fired, whichever, or the session is over."""
        self.is_over = False
        self.loop = asyncio.get_running_loop()
        self.watching: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin. Raises `OSError` if the server is not there or does not speak ZooKeeper's protocol."""
        # Where nobody listens, kazoo would wait for the whole timeout.
        async with asyncio.timeout(self.timeout):
            _, writer = await asyncio.open_connection(*self.address)
        writer.close()
        try:
            await asyncio.to_thread(self.client.start, self.timeout)
        except (KazooTimeoutError, KazooException) as error:
            raise ConnectionRefusedError(str(error) or "no answer") from None
        self.client.add_listener(lambda state: None if state == KazooState.CONNECTED else self.wake(self.close))
        self.watching = self.loop.create_task(self.watch_silence())

    def wake(self, act: Callable[[], None]) -> None:
        """Do something in the loop, called from a thread of kazoo."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(act)

    def on_watch(self, event: object) -> None:
        """A watch has fired."""
        self.wake(self.changed.set)

    async def ask(self, operation: Callable[..., Any], *values: Any) -> Any:
        """What an operation returns. Raises `KazooException` if it is refused, or the session is over."""
        if self.is_over:
            raise ConnectionClosedError("the session with ZooKeeper is over")
        return await asyncio.to_thread(operation, *values)

    async def data(self, path: str) -> bytes | None:
        """The data of a node, None if there is none."""
        try:
            found: bytes = (await self.ask(self.client.get, path))[0]
        except NoNodeError:
            return None
        return found

    async def transact(self, *operations: tuple[Any, ...]) -> list[Any]:
        """Do all or none; each is named as kazoo names it, before its values. Raises as `ask`."""
        transaction = self.client.transaction()
        for name, *values in operations:
            getattr(transaction, name)(*values)
        results: list[Any] = await self.ask(transaction.commit)
        for failure in results:
            # Those beside the one that failed are told as rolled back.
            if isinstance(failure, KazooException) and not isinstance(failure, (RolledBackError, RuntimeInconsistency)):
                raise failure
        return results

    async def watch_silence(self) -> None:
        """Close once nothing was heard for two thirds of the timeout: the server ends the session a whole one after
        what it heard last, which it heard after it was sent."""
        confirmed = self.loop.time()
        try:
            while not self.is_over:
                sent = self.loop.time()
                async with asyncio.timeout_at(confirmed + self.timeout * 2 / 3):
                    await self.ask(self.client.exists, "/")
                confirmed = sent
                await asyncio.sleep(self.timeout / 3)
        except (KazooException, TimeoutError):
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Give the session up; the server deletes its nodes at once if it can be told."""
        if not self.is_over:
            self.is_over = True
            self.changed.set()
            self.loop.run_in_executor(None, end, self.client)


def end(client: KazooClient) -> None:
    """End a session, and free what it holds."""
    client.stop()
    client.close()


@dataclass(eq=False, slots=True)
class NetworkZookeeper:
    """The view of one broker: `Zookeeper` over a connection. Without a session, nobody is the coordinator."""

    address: Address
    session_timeout: float = SESSION_SECONDS
    """Seconds, as asked for."""
    topics: dict[str, list[str]] = field(default_factory=dict)
    offsets: dict[str, dict[Partition, int]] = field(default_factory=dict)
    addresses: dict[int, Address] = field(default_factory=dict)
    coordinator: int | None = None
    _session: ZookeeperSession | None = None
    _running: "asyncio.Task[None] | None" = None
    _writes: set["asyncio.Task[bool]"] = field(default_factory=set)
    _election: int | None = None
    _on_elected: Callable[[int], None] | None = None
    _on_change: Callable[[str], None] | None = None

    def begin_session(self, broker: int, address: Address, on_lost: Callable[[], None]) -> None:
        """Begin a session as soon as the server can be reached; it is lost with its connection."""
        self._running = asyncio.get_running_loop().create_task(self._run(broker, address, on_lost))

    def end_session(self, broker: int) -> None:
        """End the session; the server deletes its nodes at once if it can be told."""
        if self._running is not None:
            self._running.cancel()
        self._running = self._on_elected = self._on_change = None
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
        session, path = self._session, f"{folder}/{quote(group, safe='')}"
        if session is None or self._election is None:
            return False
        guards = ("check", COORDINATOR, -1), ("check", ELECTION, self._election)
        data = json.dumps([[*partition, value] for partition, value in sorted(values.items())]).encode()
        try:
            await session.ask(session.client.ensure_path, path)
            await session.transact(*guards, ("set_data", path, data))
        except KazooException:
            session.close()
            return False
        return True

    def _forget(self) -> None:
        session, self._session = self._session, None
        self._election = self.coordinator = None
        self.addresses = {}
        if session is not None:
            session.close()

    async def _run(self, broker: int, address: Address, on_lost: Callable[[], None]) -> None:
        """A session from its begin, for which it tries again and again, to its loss."""
        while True:
            session = self._session = ZookeeperSession(self.address, self.session_timeout)
            try:
                await session.open()
                break
            except OSError:
                await asyncio.sleep(RETRY_SECONDS)
        try:
            await self._register(session, broker, address)
            while not session.is_over:
                session.changed.clear()
                await self._read(session)
                if self.coordinator is None and self._on_elected is not None:
                    await self._stand(session, broker, self._on_elected)
                elif self._election is not None and self.coordinator != broker:
                    break
                await session.changed.wait()
        except KazooException:
            pass
        if self._session is session:
            self._forget()
            self._running = None
            on_lost()

    async def _register(self, session: ZookeeperSession, broker: int, address: Address) -> None:
        """Make the paths, and the broker's node; one that is there is of its former session."""
        for path in (OWNERS, OFFSETS, BROKERS, TOPICS, ELECTION):
            await session.ask(session.client.ensure_path, path)
        path = f"{BROKERS}/{broker}"
        node = ("create", path, json.dumps(address).encode(), None, True)
        try:
            await session.transact(node)
        except NodeExistsError:
            await session.transact(("delete", path), node)

    async def _read(self, session: ZookeeperSession) -> None:
        """Read everything, watch it, and tell of the topics that changed."""
        await session.ask(session.client.exists, COORDINATOR, session.on_watch)
        holder = await session.data(COORDINATOR)
        self.coordinator = None if holder is None else int(holder)
        addresses: dict[int, Address] = {}
        for name in await session.ask(session.client.get_children, BROKERS, session.on_watch):
            if (data := await session.data(f"{BROKERS}/{name}")) is not None:
                host, port = json.loads(data)
                addresses[int(name)] = (host, port)
        before, topics = self.topics, {}
        for name in sorted(await session.ask(session.client.get_children, TOPICS, session.on_watch)):
            names = await session.ask(session.client.get_children, f"{TOPICS}/{name}", session.on_watch)
            topics[name] = sorted(names, key=partition_number)
        self.addresses, self.topics = addresses, topics
        for name, partitions in topics.items():
            if partitions != before.get(name) and self._on_change is not None:
                self._on_change(name)

    async def _stand(self, session: ZookeeperSession, broker: int, on_elected: Callable[[int], None]) -> None:
        """Try to be elected, and read the offsets that the coordinator before recorded."""
        name = str(broker).encode()
        try:
            node = ("create", COORDINATOR, name, None, True)
            _, written = await session.transact(node, ("set_data", ELECTION, name))
        except NodeExistsError:
            # Another one was faster: the watch fires, or has.
            return
        offsets = {}
        for name in await session.ask(session.client.get_children, OFFSETS):
            entries = json.loads(await session.data(f"{OFFSETS}/{name}") or b"[]")
            offsets[unquote(name)] = {(topic, partition): offset for topic, partition, offset in entries}
        self.offsets, self.coordinator, self._election, self._on_elected = offsets, broker, written.version, None
        on_elected(written.version)


def partition_number(name: str) -> tuple[int, str]:
    """The order of partitions: by the number behind the broker's, as they were made."""
    number = name.rpartition("-")[2]
    return (int(number) if number.isdecimal() else -1, name)


async def add_topics(address: Address, topics: Mapping[str, list[str]]) -> None:
    """Make topics and their partitions, where they are missing. Raises `OSError` if the server cannot be reached."""
    session = ZookeeperSession(address)
    await session.open()
    try:
        for path in (TOPICS, *(f"{TOPICS}/{topic}/{name}" for topic, names in topics.items() for name in names)):
            await session.ask(session.client.ensure_path, path)
    finally:
        session.close()
