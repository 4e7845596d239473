"""A schedule's own way to a broker: requests leave in the order they were sent, and all that is seen is recorded."""

import asyncio
from collections import deque

from fencepost.adapters.target import Exchange, Recorder, TargetError, torn
from fencepost.adapters.wire.admin_client import Client, error_codes
from fencepost.adapters.wire.cluster import Cluster, Key, key_of
from fencepost.adapters.wire.connection import Connection, Loss, LossError
from fencepost.adapters.wire.pool import Address, gone
from fencepost.model.wire.codec import Response, decode_response, encode_request
from fencepost.traces.events import Body, Kind

NOT_COORDINATOR = 16


class WireChannel:
    """Implements `Channel`. A request whose connection is lost, or cannot be made, is a fault event and resolves to
    None; only too many connections are a `TargetError`."""

    def __init__(self, client: Client, cluster: Cluster, recorder: Recorder, siblings: "set[WireChannel]") -> None:
        self.client = client
        self.cluster = cluster
        self.recorder = recorder
        self.flights: set[_Flight] = set()
        self._siblings = siblings
        self._queue: deque[_Flight] = deque()
        self._departures: asyncio.Task[None] | None = None
        self._closed = False
        self.is_killing = False
        siblings.add(self)

    def send(
        self,
        api: str,
        version: int,
        body: Body,
        *,
        member: str = "",
        client_id: str = "fencepost",
        broker: int | None = None,
        share: int | None = None,
    ) -> Exchange:
        """As `Channel.send`. Raises `UnencodableError` or `ValueError` for what cannot be written or addressed."""
        if self._closed:
            raise RuntimeError("the channel is closed")
        if broker is not None and broker not in self.cluster.brokers:
            raise ValueError(f"the target has no broker {broker}; it has {sorted(self.cluster.brokers)}")
        flight = _Flight(self, api, version, body, member, client_id, broker, share)
        self.flights.add(flight)
        address = None if self._queue else self.cluster.known(flight.key, broker)
        connection = address and self.client.pool.idle(address)
        if address and connection:
            flight.depart(address, connection)
        else:
            self._queue.append(flight)
            if self._departures is None:
                self._departures = asyncio.get_running_loop().create_task(self._depart_all())
        return flight.exchange

    async def close(self) -> None:
        """As `Channel.close`: what is in flight is cancelled, and nothing is recorded any more."""
        self._closed = True
        self._siblings.discard(self)
        self._queue.clear()
        if self._departures is not None:
            self._departures.cancel()
            await asyncio.wait([self._departures])
        connections = [flight.abandon() for flight in tuple(self.flights)]
        self.flights.clear()
        await gone(tuple(connection for connection in connections if connection is not None))

    def expect_kill(self) -> None:
        """The target is about to be killed: until it was, a connection that ends is no fault of the target."""
        self.is_killing = True

    def note_restart(self) -> None:
        """The target was killed; from here on, requests meet the one that is started next."""
        self.is_killing = False
        self.recorder.record(Kind.FAULT, "restart", 0, {})

    async def _depart_all(self) -> None:
        """Send what has to wait for a connection or a coordinator, one after the other."""
        try:
            while self._queue:
                flight = self._queue[0]
                try:
                    address = await self.cluster.locate(flight.key, flight.broker)
                    connection = await self.client.pool.connect(address)
                    flight.depart(address, connection)
                except LossError as error:
                    flight.strand(error.loss)
                except TargetError as error:
                    flight.fail(error)
                self._queue.popleft()
        finally:
            self._departures = None


class _Flight:
    """One request from its sending to its end."""

    __slots__ = (
        "_address",
        "_channel",
        "_connection",
        "_frame",
        "_is_dropped",
        "_request",
        "_share",
        "broker",
        "exchange",
        "key",
    )

    def __init__(
        self,
        channel: WireChannel,
        api: str,
        version: int,
        body: Body,
        member: str,
        client_id: str,
        broker: int | None,
        share: int | None,
    ) -> None:
        answer: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
        self.exchange = Exchange(None, answer, self._drop)
        self._frame = encode_request(api, version, channel.client.next_id(), client_id, body)
        self.key: Key | None = key_of(api, body)
        self.broker = broker
        self._channel = channel
        self._request = (api, version, body, member)
        self._address: Address | None = None
        self._connection: Connection | None = None
        self._share = share
        self._is_dropped = share is not None

    def depart(self, address: Address, connection: Connection) -> None:
        """Record the request, then write it."""
        api, version, body, member = self._request
        if self._share is not None and self._share < 100:
            self._channel.recorder.record(Kind.FAULT, "torn", version, torn(api, body, self._share), member=member)
            connection.tear(self._frame, self._share)
            self._end(None)
            return
        self._address, self._connection = address, connection
        self.exchange.request = self._channel.recorder.record(
            Kind.REQUEST, api, version, body, connection=connection.number, member=member
        )
        if self.broker is not None:
            self._record(Kind.INTERNAL, "routed", 0, {"broker": self.broker})
        connection.send(self._frame, self._receive, self._lose)
        if self._is_dropped:
            self._cut()

    def strand(self, loss: Loss) -> None:
        """No connection could be made."""
        api, _, _, member = self._request
        self._channel.recorder.record(Kind.FAULT, "unreachable", 0, {"api": api, "reason": loss.reason}, member=member)
        self._end(None)

    def fail(self, error: TargetError) -> None:
        self._channel.flights.discard(self)
        if not self.exchange.answer.done():
            self.exchange.answer.set_exception(error)

    def abandon(self) -> Connection | None:
        """Let go of it quietly."""
        if self._connection is not None:
            self._connection.abort()
        self.exchange.answer.cancel()
        return self._connection

    def _receive(self, frame: bytes) -> None:
        api, version, _, _ = self._request
        body = _seen(self._frame, decode_response(api, version, frame))
        self._record(Kind.ANSWER, api, version, body)
        assert self._address is not None and self._connection is not None
        self._channel.client.pool.give_back(self._address, self._connection)
        if self.broker is None and NOT_COORDINATOR in error_codes(body):
            self._channel.cluster.forget(self.key)
        self._end(body)

    def _lose(self, loss: Loss) -> None:
        body: dict[str, object] = {"reason": loss.reason}
        if loss.head:
            body["head"] = loss.head
        self._record(Kind.FAULT, "drop" if self._channel.is_killing else "closed", 0, body)
        self._channel.cluster.forget(self.key)
        self._end(None)

    def _drop(self) -> None:
        if self.exchange.answer.done() or self._is_dropped:
            return
        # A request that still waits for its connection is dropped as soon as it was written.
        self._is_dropped = True
        if self._connection is not None:
            self._cut()

    def _cut(self) -> None:
        assert self._connection is not None
        self._record(Kind.FAULT, "drop", 0, {})
        self._connection.close()
        self._end(None)

    def _record(self, kind: Kind, api: str, version: int, body: Body) -> None:
        """Something that became of the request."""
        request = self.exchange.request
        assert request is not None
        self._channel.recorder.record(
            kind, api, version, body, connection=request.connection, member=request.member, of=request.sequence
        )

    def _end(self, outcome: Body | None) -> None:
        self._channel.flights.discard(self)
        if not self.exchange.answer.done():
            self.exchange.answer.set_result(outcome)


def _seen(request: bytes, response: Response) -> Body:
    """The body of an answer, with what was wrong on the wire."""
    findings = list(response.findings)
    expected = int.from_bytes(request[4:8])
    if response.correlation_id != expected:
        findings.append(f"correlation id {response.correlation_id} instead of {expected}")
    return {**response.body, "_findings": findings} if findings else response.body
