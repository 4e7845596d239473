"""A pool of connections to a target: reused, and limited by the system's open files."""

import asyncio
import errno
import itertools
import socket
import ssl
import sys
from dataclasses import replace

from fencepost.adapters.address import Address
from fencepost.adapters.security.loading import PLAINTEXT, Security
from fencepost.adapters.security.sasl import SaslError
from fencepost.adapters.security.tls_failures import describe_tls_failure
from fencepost.adapters.target import TargetError
from fencepost.adapters.wire.connection import Connection, ConnectionLoss, ConnectionLossError, LossCause

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
