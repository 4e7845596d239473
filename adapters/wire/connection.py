"""One TCP connection, which carries one request at a time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

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
