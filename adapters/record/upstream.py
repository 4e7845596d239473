"""The proxy's own connections to brokers: encrypted and authenticated as the recording says, for plaintext clients."""

import asyncio
from itertools import count

from fencepost.adapters.address import Address, format_url
from fencepost.adapters.security.authentication import SaslSession
from fencepost.adapters.security.loading import Security
from fencepost.adapters.security.sasl import SaslError
from fencepost.adapters.security.tls_failures import describe_tls_failure

CONNECT_TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 1024 * 1024
"""Longest response to a request of an authentication, in bytes."""
FIRST_RENEWAL_ID = -(1 << 31)
"""Clients count their requests from 0 up."""


class UpstreamError(Exception):
    """There is no connection to a broker; the message says why, in one line."""


class Upstream:
    """A connection to a broker. Where its session ends (KIP-368), the proxy renews it between two requests of the
    client; `take_own` keeps the responses to that from the client."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, security: Security, session: SaslSession
    ) -> None:
        self.reader = reader
        self.writer = writer
        self._security = security
        self._session = session
        self._renew_at = _now() + session.renew_after_s
        self._ids = count(FIRST_RENEWAL_ID)
        self._awaited: dict[bytes, asyncio.Future[bytes]] = {}

    @property
    def has_renewals(self) -> bool:
        """Whether the session ends some time."""
        return self._renew_at != float("inf")

    @property
    def must_renew(self) -> bool:
        """Whether the session ends soon, or has ended."""
        return _now() >= self._renew_at

    async def renew(self) -> None:
        """Authenticate again. No request may be written meanwhile, and responses go to `take_own`. Raises
        `UpstreamError`."""
        try:
            self._session = await self._security.authenticate(
                self._exchange_among_others, ids=self._ids, version=self._session.version
            )
        except SaslError as error:
            raise UpstreamError(f"{error.reason}; {error.advice}") from None
        self._renew_at = _now() + self._session.renew_after_s

    def take_own(self, frame: bytes) -> bool:
        """Take a response if it belongs to a renewal; returns whether it does."""
        awaited = self._awaited.pop(frame[:4], None)
        if awaited is not None and not awaited.done():
            awaited.set_result(frame)
        return awaited is not None

    async def _exchange_among_others(self, frame: bytes) -> bytes:
        response: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._awaited[frame[4:8]] = response
        self.writer.write(len(frame).to_bytes(4) + frame)
        return await response


async def connect_upstream(address: Address, security: Security, limit: int) -> Upstream:
    """Connect to a broker and authenticate; `limit` is that of the reader's buffer. Raises `UpstreamError`."""
    url = format_url(address, uses_tls=security.uses_tls)
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            options = security.connection_options(address)
            reader, writer = await asyncio.open_connection(*address, limit=limit, **options)
            session = await security.authenticate(lambda frame: _exchange(reader, writer, frame))
            return Upstream(reader, writer, security, session)
    except TimeoutError:
        reason = f"no connection within {CONNECT_TIMEOUT_S:g} s"
    except UnicodeError:  # a label that is empty or too long
        reason = "no such host"
    except OSError as error:
        failure = describe_tls_failure(security, address[0], error) if security.uses_tls else None
        reason = "; ".join(failure) if failure else error.strerror or str(error)
    except SaslError as error:
        reason = f"{error.reason}; {error.advice}"
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        reason = "the broker closed the connection during authentication"
    if writer is not None:
        writer.transport.abort()
    raise UpstreamError(f"{url}: {reason}")


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter | None, frame: bytes) -> bytes:
    assert writer is not None
    writer.write(len(frame).to_bytes(4) + frame)
    size = int.from_bytes(await reader.readexactly(4), signed=True)
    if not 0 <= size <= MAX_ANSWER_BYTES:
        raise SaslError("the answer is not Kafka's", "check the address, and whether the port wants TLS")
    return await reader.readexactly(size)


def _now() -> float:
    return asyncio.get_running_loop().time()
