"""One TCP connection, which carries one request at a time."""

import asyncio
import errno
import itertools
import socket
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from fencepost.adapters.address import Address, TargetError
from fencepost.adapters.security.authentication import PLAINTEXT, Security, describe_tls_failure
from fencepost.adapters.security.settings import SaslError

MAX_RESPONSE_BYTES = 64 * 1024 * 1024
"""Longest response accepted, in bytes. The first bytes of other protocols, read as a length, are far above."""


class LossCause(Enum):
    """Why there is no response; the value is advice to the user."""

    REFUSED = "is the broker running?"
    NO_HOST = "check the host name"
    UNREACHABLE = "check the address and the firewall"
    SILENT = "is this a Kafka broker, and is it well?"
    CLOSED = "it gave no reason; look into its log"
    NOT_KAFKA = "check the address"
    DENIED = "check [security] in the profile"
    ENDED = "the kit ended the connection"


@dataclass(frozen=True, slots=True)
class ConnectionLoss:
    """How a connection ended without a whole response. `head` is the part that had arrived; `advice` to the user is by
    default that of the cause."""

    cause: LossCause
    reason: str
    head: bytes = b""
    advice: str = ""


class ConnectionLossError(Exception):
    """A request of the kit got no response."""

    def __init__(self, loss: ConnectionLoss) -> None:
        super().__init__(loss.reason)
        self.loss = loss


class Connection(asyncio.Protocol):
    """A connection to a broker. `on_closed` is called once, when the socket is closed; `describe_error` says what an
    error of the transport means, if it is one of TLS."""

    def __init__(
        self,
        number: int,
        on_closed: Callable[["Connection"], None],
        describe_error: Callable[[Exception], ConnectionLoss | None] = lambda _: None,
    ) -> None:
        self.number = number
        self.expires_at = float("inf")
        """When the broker wants to be authenticated again, in seconds of the event loop's clock."""
        self._describe_error = describe_error
        self.closed = asyncio.get_running_loop().create_future()
        self._on_closed = on_closed
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._on_response: Callable[[bytes], None] | None = None
        self._on_loss: Callable[[ConnectionLoss], None] | None = None

    @property
    def is_usable(self) -> bool:
        """Whether a request can be sent now."""
        return self._transport is not None and not self._transport.is_closing() and self._on_response is None

    def send(
        self, frame: bytes, on_response: Callable[[bytes], None], on_loss: Callable[[ConnectionLoss], None]
    ) -> None:
        """Write a request; exactly one of the callbacks is called later, unless this side closes the connection."""
        assert self._transport is not None and self._on_response is None
        self._on_response, self._on_loss = on_response, on_loss
        self._transport.write(len(frame).to_bytes(4) + frame)

    async def exchange(self, frame: bytes) -> bytes:
        """Write a request and return its response. Raises `ConnectionLossError`. Cancelled, it ends the connection."""
        response: asyncio.Future[bytes | ConnectionLoss] = asyncio.get_running_loop().create_future()

        def settle(outcome: bytes | ConnectionLoss) -> None:
            if not response.done():
                response.set_result(outcome)

        self.send(frame, settle, settle)
        try:
            outcome = await response
        finally:
            if response.cancelled():
                self.abort()
        if isinstance(outcome, ConnectionLoss):
            raise ConnectionLossError(outcome)
        return outcome

    def send_partially(self, frame: bytes, share: int) -> None:
        """Write `share` percent of a request, at least a byte and never all of it, and close."""
        assert self._transport is not None and self._on_response is None
        whole = len(frame).to_bytes(4) + frame
        self._transport.write(whole[: max(1, min(len(whole) * share // 100, len(whole) - 1))])
        self.close()

    def close(self) -> None:
        """Close after the written bytes have left, without calling back."""
        self._on_response = self._on_loss = None
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once, without calling back."""
        self._on_response = self._on_loss = None
        if self._transport is not None:
            self._transport.abort()

    def fail(self, cause: LossCause, reason: str) -> None:
        """Close at once, and report a loss to the request in flight."""
        lost, head = self._on_loss, bytes(self._buffer[:64])
        self.abort()
        if lost is not None:
            lost(ConnectionLoss(cause, reason, head))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        if self._on_response is None:
            self.abort()  # bytes that nobody asked for
            return
        if len(buffer) < 4:
            return
        size = int.from_bytes(buffer[:4], signed=True)
        if not 0 <= size <= MAX_RESPONSE_BYTES:
            self.fail(LossCause.NOT_KAFKA, f"the answer is not Kafka's: it begins with {bytes(buffer[:16])!r}")
        elif len(buffer) >= 4 + size:
            frame = bytes(memoryview(buffer)[4 : 4 + size])
            surplus = len(buffer) > 4 + size
            buffer.clear()
            received, self._on_response, self._on_loss = self._on_response, None, None
            if surplus:
                self.abort()
            received(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        known = self._describe_error(exc) if exc is not None else None
        if self._on_loss is not None and known is not None:
            lost = self._on_loss
            self.abort()
            lost(known)
        elif self._on_loss is not None:
            got = len(self._buffer)
            how = f"the connection broke ({exc})" if exc else "the target closed the connection"
            self.fail(LossCause.CLOSED, f"{how} after {got} bytes of the answer" if got else how)
        self._on_closed(self)
        if not self.closed.done():
            self.closed.set_result(None)


# --- A pool of connections to a target: reused, and limited by the system's open files.

MAX_CONNECTIONS = 16_384
RESERVED_FILES = 128
"""Open files reserved for the rest of the process."""
MAX_IDLE_S = 60.0
"""Seconds after which an idle connection is not reused: brokers close theirs after some minutes."""

HANG_UP_ADVICE = "it hung up during authentication: it may want TLS (kafka+ssl://), another mechanism, or no SASL"


def connection_limit() -> int:
    """The most connections allowed; the limit of open files is raised for them as far as the system permits."""
    if sys.platform == "win32":
        return MAX_CONNECTIONS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft = raised
    return max(1, min(soft, wanted) - RESERVED_FILES) if soft != resource.RLIM_INFINITY else MAX_CONNECTIONS


class ConnectionPool:
    """Connections by address, made as `security` says. Connecting may take `timeout` seconds."""

    def __init__(self, limit: int, timeout: float, security: Security = PLAINTEXT) -> None:
        self.security = security
        self._limit = limit
        self._timeout = timeout
        self._numbers = itertools.count(1)
        self._making = 0
        self._open: set[Connection] = set()
        self._idle: dict[Address, list[tuple[Connection, float]]] = {}

    def take_idle(self, address: Address) -> Connection | None:
        """Take an idle connection to `address`; None if there is none."""
        idle = self._idle.get(address)
        now = asyncio.get_running_loop().time()
        while idle:
            connection, since = idle.pop()
            if connection.is_usable and now - since < MAX_IDLE_S and now < connection.expires_at:
                return connection
            connection.close()
        return None

    def idle_count(self, address: Address) -> int:
        """The number of idle connections to `address`."""
        return len(self._idle.get(address, ()))

    async def acquire(self, address: Address) -> Connection:
        """Take an idle connection or make a new one. Raises `ConnectionLossError` if the target cannot be reached, and
        `TargetError` if there are too many connections."""
        found = self.take_idle(address)
        return found or await self.open_connection(address)

    async def open_connection(self, address: Address) -> Connection:
        """Make a new connection. Raises as `acquire`."""
        if len(self._open) + self._making >= self._limit and not self._close_idle():
            raise self._too_many_connections()
        self._making += 1
        try:
            async with asyncio.timeout(self._timeout):
                return await self._connect(address)
        except TimeoutError:
            raise ConnectionLossError(
                ConnectionLoss(LossCause.UNREACHABLE, f"no connection within {self._timeout:g} s")
            ) from None
        except UnicodeError:  # a label that is empty or too long
            raise ConnectionLossError(ConnectionLoss(LossCause.NO_HOST, "no such host")) from None
        except OSError as cause:
            if cause.errno in (errno.EMFILE, errno.ENFILE):
                raise self._too_many_connections() from None
            raise ConnectionLossError(self._tls_loss(address, cause) or _connection_loss(cause)) from None
        finally:
            self._making -= 1

    async def _connect(self, address: Address) -> Connection:
        """Make a connection and authenticate it. Raises `OSError` and `ConnectionLossError`."""
        loop = asyncio.get_running_loop()
        connection = await self._open_socket(address)
        try:
            session = await self.security.authenticate(connection.exchange)
            connection.expires_at = loop.time() + session.renew_after_s
        except SaslError as error:
            connection.abort()
            raise ConnectionLossError(ConnectionLoss(LossCause.DENIED, error.reason, advice=error.advice)) from None
        except ConnectionLossError as error:
            if error.loss.cause is not LossCause.CLOSED or error.loss.head or error.loss.advice:
                raise
            raise ConnectionLossError(replace(error.loss, advice=HANG_UP_ADVICE)) from None
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _open_socket(self, address: Address) -> Connection:
        """Make a connection, over TLS if need be. Raises `OSError`."""
        made: list[Connection] = []

        def make() -> Connection:
            made.append(self._new(address))
            return made[-1]

        options = self.security.connection_options(address)
        try:
            await asyncio.get_running_loop().create_connection(make, *address, **options)
        except BaseException:
            self._open.difference_update(made)  # without a handshake it is never told that it is lost
            raise
        return made[-1]

    def release(self, address: Address, connection: Connection) -> None:
        """Make a connection idle after the response to its request."""
        if connection.is_usable:
            now = asyncio.get_running_loop().time()
            self._idle.setdefault(address, []).append((connection, now))

    def fail_all(self, reason: str) -> None:
        """Report every request in flight as lost, and close every connection."""
        self._idle.clear()
        for connection in tuple(self._open):
            connection.fail(LossCause.ENDED, reason)

    async def close(self) -> None:
        """Close every connection and wait until they are gone."""
        self._idle.clear()
        closing = tuple(self._open)
        for connection in closing:
            connection.abort()
        await wait_closed(closing)

    def _new(self, address: Address) -> Connection:
        def describe(error: Exception) -> ConnectionLoss | None:
            return self._tls_loss(address, error) if isinstance(error, ssl.SSLError) else None

        connection = Connection(next(self._numbers), self._open.discard, describe)
        self._open.add(connection)
        return connection

    def _tls_loss(self, address: Address, error: Exception) -> ConnectionLoss | None:
        """The loss of a connection that TLS ended, None if it did not."""
        if not self.security.uses_tls or not isinstance(error, OSError):
            return None
        found = describe_tls_failure(self.security, address[0], error)
        return found and ConnectionLoss(LossCause.DENIED, found[0], advice=found[1])

    def _close_idle(self) -> bool:
        """Close an idle connection; returns whether there was one."""
        for idle in self._idle.values():
            if idle:
                connection, _ = idle.pop(0)
                connection.abort()
                return True
        return False

    def _too_many_connections(self) -> TargetError:
        return TargetError(
            f"{len(self._open)} connections are open and the system allows no more; "
            "raise the limit of open files (ulimit -n), or run fewer groups at once"
        )


async def wait_closed(connections: tuple[Connection, ...]) -> None:
    """Wait until the sockets of closed connections are gone."""
    if connections:
        await asyncio.wait([connection.closed for connection in connections])


def _connection_loss(cause: OSError) -> ConnectionLoss:
    if isinstance(cause, socket.gaierror):
        return ConnectionLoss(LossCause.NO_HOST, "no such host")
    # A name with several addresses fails with one error that only quotes the others.
    if cause.errno == errno.ECONNREFUSED or f"[Errno {errno.ECONNREFUSED}]" in str(cause):
        return ConnectionLoss(LossCause.REFUSED, "connection refused")
    return ConnectionLoss(LossCause.UNREACHABLE, cause.strerror or str(cause))
