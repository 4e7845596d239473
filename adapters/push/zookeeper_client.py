"""A real ZooKeeper behind the push coordinator: a session on one connection, and what it last read."""

import asyncio
import json
import struct
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from fencepost.adapters.push.zookeeper import Partition

# A session with ZooKeeper on one connection: the few operations of its wire protocol that the push coordinator needs.
#
# The session is given up with its connection, and before the server can end it: who holds it need not act on a state
# that ZooKeeper has taken from it. The formats are those of the jute definitions of ZooKeeper 3.5.


CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_CHILDREN, PING, CHECK, MULTI, CLOSE = 1, 2, 3, 4, 5, 8, 11, 13, 14, -11
EVENT_XID, PING_XID = -1, -2
NO_NODE, BAD_VERSION, NODE_EXISTS = -101, -103, -110
EPHEMERAL = 1
ANY_VERSION = -1
ALL_PERMISSIONS = 31
STAT_BYTES, VERSION_AT = 68, 32
MAX_REPLY_BYTES = 1 << 24

Operation = tuple[int, bytes]
"""The code of an operation and its fields."""


class ZookeeperError(Exception):
    """ZooKeeper refused an operation; `code` is its error code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"ZooKeeper refused an operation with error {code}")
        self.code = code


def encode_bytes(data: bytes) -> bytes:
    """Bytes behind their length."""
    return struct.pack(">i", len(data)) + data


def encode_path(path: str, *flags: bool) -> bytes:
    """A path, and what follows it: whether to watch."""
    return encode_bytes(path.encode()) + bytes(flags)


def create(path: str, data: bytes = b"", flags: int = 0) -> Operation:
    """Make a node that everybody may change."""
    everybody = struct.pack(">ii", 1, ALL_PERMISSIONS) + encode_path("world") + encode_path("anyone")
    return CREATE, encode_path(path) + encode_bytes(data) + everybody + struct.pack(">i", flags)


def delete(path: str) -> Operation:
    """Delete a node, whatever its version."""
    return DELETE, encode_path(path) + struct.pack(">i", ANY_VERSION)


def set_data(path: str, data: bytes) -> Operation:
    """Set the data of a node, whatever its version."""
    return SET_DATA, encode_path(path) + encode_bytes(data) + struct.pack(">i", ANY_VERSION)


def check(path: str, version: int = ANY_VERSION) -> Operation:
    """Have a transaction fail unless a node is there and has this version."""
    return CHECK, encode_path(path) + struct.pack(">i", version)


@dataclass(eq=False, slots=True)
class ZookeeperClient:
    """A session. Every operation raises `ZookeeperError` if it is refused, `ConnectionError` once the session is over.

    Times are seconds of the event loop.
    """

    timeout: float
    """After how long a silence the server ends the session, as agreed with it."""
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a watch fired, whichever, or the session is over."""
    is_over: bool = False
    _made: set[str] = field(default_factory=set)
    _xid: int = 0
    _awaited: deque["asyncio.Future[tuple[int, bytes]]"] = field(default_factory=deque)
    _pings: deque["asyncio.Future[tuple[int, bytes]]"] = field(default_factory=deque)
    _tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    @classmethod
    async def open(cls, address: tuple[str, int], timeout: float) -> "ZookeeperClient":
        """Begin a session. Raises `OSError` if the server is not there or does not speak ZooKeeper's protocol."""
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(*address)
            try:
                no_session = struct.pack(">iqiq", 0, 0, round(timeout * 1000), 0) + encode_bytes(bytes(16))
                writer.write(encode_bytes(no_session))
                _, agreed, _ = struct.unpack_from(">iiq", await read_reply(reader))
            except BaseException:
                writer.close()
                raise
        client = cls(agreed / 1000, reader, writer)
        client._tasks = [asyncio.create_task(client._read_replies()), asyncio.create_task(client._keep_alive())]
        return client

    async def transact(self, *operations: Operation) -> int:
        """Do all or none; the version that the last of them, if it is `set_data`, gave its node, else 0."""
        fields = b"".join(struct.pack(">i?i", code, False, -1) + body for code, body in operations)
        reply = await self._call(MULTI, fields + struct.pack(">i?i", -1, True, -1))
        version, at = 0, 0
        for code, _ in operations:
            kind, _, error = struct.unpack_from(">i?i", reply, at)
            at += 9
            if kind == -1:
                # Those before the one that failed are told as 0: rolled back.
                at, failure = at + 4, error or struct.unpack_from(">i", reply, at)[0]
                if failure:
                    raise ZookeeperError(failure)
            elif code == CREATE:
                at += 4 + struct.unpack_from(">i", reply, at)[0]
            elif code == SET_DATA:
                (version,) = struct.unpack_from(">i", reply, at + VERSION_AT)
                at += STAT_BYTES
        return version

    async def ensure(self, path: str) -> None:
        """Make a node and those above it, if they are not there."""
        parts = path.strip("/").split("/")
        for length in range(1, len(parts) + 1):
            node = "/" + "/".join(parts[:length])
            if node not in self._made:
                try:
                    await self._call(*create(node))
                except ZookeeperError as error:
                    if error.code != NODE_EXISTS:
                        raise
                self._made.add(node)

    async def list_children(self, path: str, watch: bool = False) -> list[str]:
        """The names of a node's children."""
        reply = await self._call(GET_CHILDREN, encode_path(path, watch))
        names, at = [], 4
        for _ in range(*struct.unpack_from(">i", reply)):
            (size,) = struct.unpack_from(">i", reply, at)
            names.append(reply[at + 4 : at + 4 + size].decode())
            at += 4 + size
        return names

    async def data(self, path: str) -> bytes | None:
        """The data of a node, None if there is none."""
        try:
            reply = await self._call(GET_DATA, encode_path(path, False))
        except ZookeeperError as error:
            if error.code == NO_NODE:
                return None
            raise
        (size,) = struct.unpack_from(">i", reply)
        return reply[4 : 4 + max(0, size)]

    async def watch(self, path: str) -> None:
        """Be told once the node is made or deleted or has other data."""
        try:
            await self._call(EXISTS, encode_path(path, True))
        except ZookeeperError as error:
            if error.code != NO_NODE:
                raise

    def close(self) -> None:
        """End the session at the server too, so that its ephemeral nodes go at once."""
        if not self.is_over:
            self.writer.write(encode_bytes(struct.pack(">ii", self._xid + 1, CLOSE)))
        self.abandon()

    def abandon(self) -> None:
        """Give the session up without a word to the server."""
        self.is_over = True
        self.changed.set()
        self.writer.close()
        for future in (*self._awaited, *self._pings):
            if not future.done():
                future.set_exception(ConnectionResetError("the session with ZooKeeper is over"))
                # Whoever waited may be gone.
                future.exception()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    async def _call(self, code: int, fields: bytes = b"") -> bytes:
        error, body = await self._send(code, fields)
        if error:
            raise ZookeeperError(error)
        return body

    def _send(self, code: int, fields: bytes = b"") -> "asyncio.Future[tuple[int, bytes]]":
        if self.is_over:
            raise ConnectionResetError("the session with ZooKeeper is over")
        future: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        xid = PING_XID
        if code != PING:
            self._xid += 1
            xid = self._xid
        (self._pings if code == PING else self._awaited).append(future)
        self.writer.write(encode_bytes(struct.pack(">ii", xid, code) + fields))
        return future

    async def _read_replies(self) -> None:
        try:
            while True:
                reply = await read_reply(self.reader)
                xid, _, error = struct.unpack_from(">iqi", reply)
                if xid == EVENT_XID:
                    self.changed.set()
                    continue
                future = (self._pings if xid == PING_XID else self._awaited).popleft()
                if not future.done():
                    future.set_result((error, reply[16:]))
        except (OSError, IndexError, struct.error):
            return
        finally:
            self.abandon()

    async def _keep_alive(self) -> None:
        """The server ends the session a whole timeout after what it heard last, which it heard after it was sent."""
        loop = asyncio.get_running_loop()
        confirmed = loop.time()
        try:
            while True:
                sent = loop.time()
                async with asyncio.timeout_at(confirmed + self.timeout * 2 / 3):
                    await self._send(PING)
                confirmed = sent
                await asyncio.sleep(self.timeout / 3)
        except (OSError, TimeoutError):
            return
        finally:
            self.abandon()


async def read_reply(reader: asyncio.StreamReader) -> bytes:
    """The next reply of a server. Raises `ConnectionError` at the end or for a size that cannot be."""
    try:
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        if not 0 <= size <= MAX_REPLY_BYTES:
            raise ConnectionResetError("a reply with a size that cannot be")
        return await reader.readexactly(size)
    except asyncio.IncompleteReadError:
        raise ConnectionResetError("the server closed the connection") from None


# A real ZooKeeper behind the push coordinator: the session of one broker, and what it last read.
#
# Whatever watch fires, everything is read anew: changes are rare, and nothing is missed between a watch and the next.
# The number of an election is the version that it gives the data of `/consumers/election`, so that a write can be
# made only while that election is the last one and its node is there.


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
