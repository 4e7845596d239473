"""A schedule's connections to a cluster: requests leave in the order of `send`, and every event is recorded."""

import asyncio
from collections import deque

from fencepost.adapters.address import Address, TargetError
from fencepost.adapters.target import DEFAULT_OPTIONS, Exchange, SendOptions, TraceBuilder, torn_request_body
from fencepost.adapters.wire.cluster import (
    GROUP_KEY,
    AdminClient,
    Cluster,
    CoordinatorKey,
    coordinator_key_of,
    error_codes,
)
from fencepost.adapters.wire.connection import Connection, ConnectionLoss, ConnectionLossError, wait_closed
from fencepost.model.errors import Error
from fencepost.model.wire.codec import DecodedResponse, decode_response, encode_request
from fencepost.traces.events import Body, Kind


class WireChannel:
    """Implements `Channel`. A request whose connection is lost, or cannot be made, is a fault event and resolves to
    None; only too many connections raise `TargetError`."""

    def __init__(
        self, client: AdminClient, cluster: Cluster, recorder: TraceBuilder, siblings: "set[WireChannel]"
    ) -> None:
        self.client = client
        self.cluster = cluster
        self.recorder = recorder
        self.in_flight: set[_InFlightRequest] = set()
        self._siblings = siblings
        self._queue: deque[_InFlightRequest] = deque()
        self._sender: asyncio.Task[None] | None = None
        self._closed = False
        self.is_killing = False
        siblings.add(self)

    def send(self, api: str, version: int, body: Body, options: SendOptions = DEFAULT_OPTIONS) -> Exchange:
        """As `Channel.send`. Raises `UnencodableError` or `ValueError` for what cannot be written or addressed."""
        if self._closed:
            raise RuntimeError("the channel is closed")
        if options.broker is not None and options.broker not in self.cluster.brokers:
            raise ValueError(f"the target has no broker {options.broker}; it has {sorted(self.cluster.brokers)}")
        flight = _InFlightRequest(self, api, version, body, options)
        self.in_flight.add(flight)
        if flight.key is not None and flight.key[0] == GROUP_KEY:
            self.cluster.groups.add(flight.key[1])
        address = None if self._queue else self.cluster.known_address(flight.key, options.broker)
        connection = address and self.client.pool.take_idle(address)
        if address and connection:
            flight.write(address, connection)
        else:
            self._queue.append(flight)
            if self._sender is None:
                self._sender = asyncio.get_running_loop().create_task(self._send_queued())
        return flight.exchange

    async def close(self) -> None:
        """As `Channel.close`: requests in flight are cancelled, and nothing is recorded any more."""
        self._closed = True
        self._siblings.discard(self)
        self._queue.clear()
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.wait([self._sender])
        connections = [flight.abandon() for flight in tuple(self.in_flight)]
        self.in_flight.clear()
        await wait_closed(tuple(connection for connection in connections if connection is not None))

    def expect_kill(self) -> None:
        """Record connections that end from now on as dropped: the target is about to be killed."""
        self.is_killing = True

    def record_restart(self) -> None:
        """Record that the target was killed; later requests go to its next start."""
        self.is_killing = False
        self.recorder.record(Kind.FAULT, "restart", 0, {})

    def record_move(self, api: str, body: Body) -> None:
        """Record that a group is about to be moved, or was."""
        self.recorder.record(Kind.FAULT, api, 0, body)

    async def _send_queued(self) -> None:
        """Send the queued requests one after the other, each once its coordinator and a connection are found."""
        try:
            while self._queue:
                flight = self._queue[0]
                try:
                    address = await self.cluster.locate(flight.key, flight.options.broker)
                    connection = await self.client.pool.acquire(address)
                    flight.write(address, connection)
                except ConnectionLossError as error:
                    flight.mark_unreachable(error.loss)
                except TargetError as error:
                    flight.fail(error)
                self._queue.popleft()
        finally:
            self._sender = None


class _InFlightRequest:
    """One request from `send` to its response or loss."""

    __slots__ = (
        "_address",
        "_channel",
        "_connection",
        "_frame",
        "_is_dropped",
        "_request",
        "exchange",
        "key",
        "options",
    )

    def __init__(self, channel: WireChannel, api: str, version: int, body: Body, options: SendOptions) -> None:
        response: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
        self.exchange = Exchange(None, response, self._drop)
        self._frame = encode_request(api, version, channel.client.next_id(), options.client_id, body)
        self.key: CoordinatorKey | None = coordinator_key_of(api, body)
        self._channel = channel
        self._request = (api, version, body)
        self.options = options
        self._address: Address | None = None
        self._connection: Connection | None = None
        self._is_dropped = options.share is not None

    def write(self, address: Address, connection: Connection) -> None:
        """Record the request, then write it."""
        api, version, body = self._request
        member, broker, share = self.options.member, self.options.broker, self.options.share
        if share is not None and self.options.is_torn:
            torn = torn_request_body(api, body, self.options)
            self._channel.recorder.record(Kind.FAULT, "torn", version, torn, member=member)
            connection.send_partially(self._frame, share)
            self._resolve(None)
            return
        self._address, self._connection = address, connection
        self.exchange.request = self._channel.recorder.record(
            Kind.REQUEST, api, version, body, connection=connection.number, member=member
        )
        if broker is not None:
            self._record(Kind.INTERNAL, "routed", 0, {"broker": broker})
        connection.send(self._frame, self._record_response, self._record_loss)
        if self._is_dropped:
            self._close_connection()

    def mark_unreachable(self, loss: ConnectionLoss) -> None:
        """Record that no connection could be made, and resolve the request to None."""
        body = {"api": self._request[0], "reason": loss.reason}
        self._channel.recorder.record(Kind.FAULT, "unreachable", 0, body, member=self.options.member)
        self._resolve(None)

    def fail(self, error: TargetError) -> None:
        self._channel.in_flight.discard(self)
        if not self.exchange.response.done():
            self.exchange.response.set_exception(error)

    def abandon(self) -> Connection | None:
        """Cancel the request without recording anything; returns its connection."""
        if self._connection is not None:
            self._connection.abort()
        self.exchange.response.cancel()
        return self._connection

    def _record_response(self, frame: bytes) -> None:
        api, version, _ = self._request
        body = _observed_body(self._frame, decode_response(api, version, frame))
        self._record(Kind.RESPONSE, api, version, body)
        assert self._address is not None and self._connection is not None
        self._channel.client.pool.release(self._address, self._connection)
        if api == "JoinGroup" and body.get("error_code") == Error.MEMBER_ID_REQUIRED:
            self._channel.cluster.reserve_id(self.key, body.get("member_id"))
        if self.options.broker is None and Error.NOT_COORDINATOR in error_codes(body):
            self._channel.cluster.forget_coordinator(self.key)
        self._resolve(body)

    def _record_loss(self, loss: ConnectionLoss) -> None:
        body: dict[str, object] = {"reason": loss.reason}
        if loss.head:
            body["head"] = loss.head
        self._record(Kind.FAULT, "drop" if self._channel.is_killing else "closed", 0, body)
        self._channel.cluster.forget_coordinator(self.key)
        self._resolve(None)

    def _drop(self) -> None:
        if self.exchange.response.done() or self._is_dropped:
            return
        # A request that still waits for its connection is dropped as soon as it was written.
        self._is_dropped = True
        if self._connection is not None:
            self._close_connection()

    def _close_connection(self) -> None:
        assert self._connection is not None
        self._record(Kind.FAULT, "drop", 0, {})
        self._connection.close()
        self._resolve(None)

    def _record(self, kind: Kind, api: str, version: int, body: Body) -> None:
        """Record an event of the request."""
        request = self.exchange.request
        assert request is not None
        self._channel.recorder.record(
            kind, api, version, body, connection=request.connection, member=request.member, of=request.sequence
        )

    def _resolve(self, outcome: Body | None) -> None:
        self._channel.in_flight.discard(self)
        if not self.exchange.response.done():
            self.exchange.response.set_result(outcome)


def _observed_body(request: bytes, response: DecodedResponse) -> Body:
    """The body of a response, with the findings of the codec."""
    findings = list(response.findings)
    expected = int.from_bytes(request[4:8])
    if response.correlation_id != expected:
        findings.append(f"correlation id {response.correlation_id} instead of {expected}")
    return {**response.body, "_findings": findings} if findings else response.body
