"""A session with ZooKeeper on one connection: the few operations of its wire protocol that the push coordinator needs.

The session is given up with its connection, and before the server can end it: who holds it need not act on a state that
ZooKeeper has taken from it. The formats are those of the jute definitions of ZooKeeper 3.5.
"""

import asyncio
import struct
from collections import deque
from dataclasses import dataclass, field

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
