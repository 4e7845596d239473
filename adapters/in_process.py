"""The bundled coordinator as a target in this process: no network, virtual time, every event in total order."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from fencepost.adapters.address import TargetError
from fencepost.adapters.serve.coordination import (
    LOCAL,
    OFFSETS_TOPIC,
    FixedTopics,
    Node,
    NodeLeadership,
    Request,
    Response,
    ServedCoordinator,
    dialect_named,
)
from fencepost.adapters.target import (
    DEFAULT_OPTIONS,
    Channel,
    Description,
    Exchange,
    SendOptions,
    TraceBuilder,
    torn_request_body,
)
from fencepost.model.protocols import KAFKA
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import fit_body
from fencepost.traces.events import Body, Event, Kind, Order

BUNDLED = dialect_named(KAFKA)
"""What the bundled coordinator has."""
DEFAULT_TOPIC = "fencepost"
DEFAULT_TOPICS: Mapping[str, int] = MappingProxyType({DEFAULT_TOPIC: 4})
OFFERED: Mapping[str, tuple[int, int]] = MappingProxyType({**BUNDLED.versions, "Metadata": (4, 9)})
"""Lowest and highest version of every API; Metadata tells of nothing but the offsets topic."""
NODES = (LOCAL, Node(LOCAL.node_id + 1, LOCAL.host, LOCAL.port + 1))
_HOST = "/127.0.0.1"


@dataclass(slots=True)
class _PendingRequest:
    """A request in the coordinator, the channel and future that get its response, and the node it went to, if any."""

    channel: "_Channel"
    request: Event
    response: asyncio.Future[Body | None]
    broker: int | None


class InProcessTarget:
    """The bundled coordinator, driven by the running loop's clock, which is virtual on a `VirtualClock`.

    It is on one of two nodes, from which its groups can be moved to the other.

    `topics` are the topics that exist, with their numbers of partitions. `log` is kept across restarts.
    `make_coordinator` makes the coordinator at every start, in tests a faulty one. Member ids are counted, never
    random, so that two runs of one schedule give the same trace.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        topics: Mapping[str, int] = DEFAULT_TOPICS,
        log: Any = None,
        make_coordinator: Callable[..., ServedCoordinator] = BUNDLED.make_coordinator,
    ) -> None:
        self._settings = settings if settings is not None else Settings()
        self._topic = next(iter(topics))
        self._topics = FixedTopics(topics)
        self._log = log if log is not None else BUNDLED.open_log(None, 0)[0]
        self._make_coordinator = make_coordinator
        self.versions = OFFERED
        """Lowest and highest version of every API that the coordinator handles."""
        self._coordinator: ServedCoordinator | None = None
        self._leadership = NodeLeadership([node.node_id for node in NODES])
        self._pending: dict[int, _PendingRequest] = {}
        self._channels: list[_Channel] = []
        self._timer: asyncio.TimerHandle | None = None
        self._ids = 0
        self._handles = 0

    # -- Target -------------------------------------------------------------------------------------------------

    async def open(self) -> Description:
        """Start the coordinator from the log."""
        self._start()
        return Description(
            name="bundled",
            order=Order.TOTAL,
            clock="virtual",
            versions=dict(self.versions),
            settings=self._settings,
            topic=self._topic,
            topic_id=self._topics.id_of(self._topic),
            brokers=self._leadership.nodes,
            can_restart=True,
            can_move=True,
            implementation={"name": "fencepost bundled coordinator"},
        )

    def channel(self, recorder: TraceBuilder) -> Channel:
        """Return a new channel. Raises `TargetError` before `open`."""
        if self._coordinator is None:
            raise TargetError("the bundled coordinator is not running: open the target first")
        channel = _Channel(self, recorder)
        self._channels.append(channel)
        return channel

    async def restart(self, max_group_size: int | None = None) -> None:
        """Drop the coordinator and its parked requests, and start another from the same log, with another size limit if
        one is given."""
        if max_group_size is not None:
            self._settings = replace(self._settings, max_group_size=max_group_size)
        changed = {} if max_group_size is None else {"max_group_size": max_group_size}
        lost, self._pending = self._pending, {}
        self._record_fault("restart", changed)
        for flight in lost.values():
            flight.channel.disconnect(flight)
        self._start()

    async def move(self, group: str) -> None:
        """As `Target.move`: all groups go to the other node, which loads them from the log; parked requests end."""
        self.advance()
        self._record_fault("move", {"group": group})
        old, new = self._leadership.leader, self._leadership.move()
        events = [(handle, flight.request) for handle, flight in self._pending.items()]
        parked = [Request(handle, one.api, one.version, None, _HOST, one.body) for handle, one in events]
        self._deliver(filter(None, map(self._leadership.end_parked, parked)))
        self._start()
        self._record_fault("moved", {"group": group, "old": old, "new": new})

    async def close(self) -> None:
        """Stop the coordinator; its parked requests are lost."""
        for channel in list(self._channels):
            await channel.close()
        if self._timer is not None:
            self._timer.cancel()
        self._coordinator = None

    # -- the coordinator ----------------------------------------------------------------------------------------

    def submit(self, request: Request, flight: _PendingRequest) -> None:
        """Give a request to the coordinator. Timers due by now have to have fired: see `advance`."""
        self._pending[request.handle] = flight
        response = self._respond_as_node(request, flight.broker)
        handled = self._running_coordinator().handle(request, self._now()) if response is None else [response]
        self._deliver(handled)
        self._arm_timer()

    def advance(self) -> None:
        """Fire the due timers, and arm the loop for the next one."""
        if self._coordinator is not None:
            self._deliver(self._coordinator.advance(self._now()))
            self._arm_timer()

    def next_handle(self) -> int:
        """Return an unused handle for a request."""
        self._handles += 1
        return self._handles

    def remove_channel(self, channel: "_Channel") -> None:
        """Forget a closed channel: its requests stay in the coordinator, but their responses are dropped."""
        self._channels.remove(channel)
        for handle in [handle for handle, flight in self._pending.items() if flight.channel is channel]:
            channel.disconnect(self._pending.pop(handle))

    def _respond_as_node(self, request: Request, broker: int | None) -> Response | None:
        """The response of a node that needs no coordinator; None if the coordinator handles the request."""
        if request.api == "Metadata":
            topic = self._leadership.describe_offsets_topic(self._settings.offsets_partitions)
            asked = [entry["name"] for entry in request.body.get("topics") or ()]
            brokers = [{"node_id": node.node_id, "host": node.host, "port": node.port, "rack": None} for node in NODES]
            body = {"throttle_time_ms": 0, "brokers": brokers, "cluster_id": None, "controller_id": NODES[0].node_id}
            body |= {"topics": [topic] if OFFSETS_TOPIC in asked else []}
            return Response(request.handle, dict(fit_body("MetadataResponse", request.version, body)))
        return self._leadership.refuse(request, self._leadership.leader if broker is None else broker)

    def _record_fault(self, name: str, body: Body) -> None:
        for recorder in {id(channel.recorder): channel.recorder for channel in self._channels}.values():
            recorder.record(Kind.FAULT, name, 0, body)

    def _start(self) -> None:
        leader = next(node for node in NODES if node.node_id == self._leadership.leader)
        # A coordinator names the first node by itself.
        named = {} if leader is LOCAL else {"coordinator_of": lambda key: leader}
        self._coordinator = self._make_coordinator(
            self._settings, self._log, self._new_id, self._topics, now=self._now(), **named
        )
        self._arm_timer()

    def _running_coordinator(self) -> ServedCoordinator:
        if self._coordinator is None:
            raise TargetError("the bundled coordinator is not running: open the target first")
        return self._coordinator

    def _now(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000)

    def _new_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}-{self._ids:08d}"

    def _deliver(self, responses: Iterable[Response]) -> None:
        for response in responses:
            flight = self._pending.pop(response.handle, None)
            if flight is not None:
                flight.channel.deliver(flight, response.body)

    def _arm_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadline = self._running_coordinator().next_deadline()
        loop = asyncio.get_running_loop()
        self._timer = None if deadline is None else loop.call_at(deadline / 1000, self.advance)


class _Channel:
    """A schedule's connections to the coordinator: numbers, reused once they are free."""

    def __init__(self, target: InProcessTarget, recorder: TraceBuilder) -> None:
        self.recorder = recorder
        self._target = target
        self._busy: set[int] = set()
        self._closed = False

    def send(self, api: str, version: int, body: Body, options: SendOptions = DEFAULT_OPTIONS) -> Exchange:
        """Have the request handled at once, after the timers due by now.

        Raises `TargetError` for an API or version that the target does not have, and on a closed channel.
        """
        lowest, highest = self._target.versions.get(api, (0, -1))
        if self._closed or not lowest <= version <= highest:
            raise TargetError(f"{api} version {version} cannot be sent: " + self._refusal_reason(api))
        self._target.advance()
        if options.is_torn:
            torn = torn_request_body(api, body, options)
            self.recorder.record(Kind.FAULT, "torn", version, torn, member=options.member)
            return Exchange(None, _no_response(), lambda: None)
        connection = self._free_connection()
        event = self.recorder.record(Kind.REQUEST, api, version, body, connection=connection, member=options.member)
        flight = _PendingRequest(self, event, asyncio.get_running_loop().create_future(), options.broker)
        if options.broker is not None:
            self._record(Kind.INTERNAL, "routed", flight, {"broker": options.broker})
        if options.share is not None:
            self._drop(flight)
        request = Request(self._target.next_handle(), api, version, options.client_id, _HOST, body)
        self._target.submit(request, flight)
        return Exchange(event, flight.response, lambda: self._drop(flight))

    async def close(self) -> None:
        """Disconnect every request in flight; nothing more is recorded."""
        if not self._closed:
            self._closed = True
            self._target.remove_channel(self)

    def deliver(self, flight: _PendingRequest, body: Body) -> None:
        """Record a response, and resolve its future unless the connection was dropped."""
        self._record(Kind.RESPONSE, flight.request.api, flight, body)
        self._busy.discard(flight.request.connection)
        if not flight.response.done():
            flight.response.set_result(body)

    def disconnect(self, flight: _PendingRequest) -> None:
        """End a request's connection without a response."""
        self._busy.discard(flight.request.connection)
        if not flight.response.done():
            flight.response.set_result(None)

    def _drop(self, flight: _PendingRequest) -> None:
        if not flight.response.done():
            self._record(Kind.FAULT, "drop", flight, {})
            flight.response.set_result(None)

    def _record(self, kind: Kind, api: str, flight: _PendingRequest, body: Body) -> None:
        request = flight.request
        self.recorder.record(
            kind,
            api,
            request.version,
            body,
            connection=request.connection,
            member=request.member,
            of=request.sequence,
        )

    def _free_connection(self) -> int:
        connection = 0
        while connection in self._busy:
            connection += 1
        self._busy.add(connection)
        return connection

    def _refusal_reason(self, api: str) -> str:
        if self._closed:
            return "the channel is closed"
        lowest, highest = self._target.versions.get(api, (0, -1))
        return f"the coordinator has versions {lowest} to {highest}" if highest >= 0 else "no such API"


def _no_response() -> asyncio.Future[Body | None]:
    """A future that is resolved to None already."""
    response: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
    response.set_result(None)
    return response


# --- Targets that respond to every request at once: a protocol adds a function that handles one.


@dataclass(slots=True)
class ImmediateTarget:
    """A target on virtual time, seen at the coordinator: `handle` returns the state after a request, and its response.

    It gets the state, the API, the body, and the milliseconds since the run began.
    """

    name: str
    apis: Iterable[str]
    handle: Callable[[Any, str, Body, int], tuple[Any, Body]]
    state: Any

    async def open(self) -> Description:
        """The description of a target with default settings, without topics, with version 0 of each API."""
        return Description(self.name, Order.TOTAL, "virtual", dict.fromkeys(self.apis, (0, 0)), Settings(), "")

    def channel(self, recorder: TraceBuilder) -> "ImmediateChannel":
        """A channel to this target."""
        return ImmediateChannel(self, recorder)

    async def restart(self) -> None:
        """Raises TargetError: nothing is stored."""
        raise TargetError(f"{self.name}: cannot be restarted")

    async def move(self, group: str) -> None:
        """Raises TargetError: there is no other node."""
        raise TargetError(f"{self.name}: has no other node")

    async def close(self) -> None:
        """Nothing is open."""


class ImmediateChannel:
    """A channel that records each request with its response."""

    def __init__(self, target: ImmediateTarget, recorder: TraceBuilder) -> None:
        self.target = target
        self.recorder = recorder

    def send(self, api: str, version: int, body: Body, options: SendOptions = DEFAULT_OPTIONS) -> Exchange:
        """Send a request; its response is there at once."""
        request = self.recorder.record(Kind.REQUEST, api, version, body, member=options.member)
        target = self.target
        target.state, seen = target.handle(target.state, api, body, request.time)
        self.recorder.record(Kind.RESPONSE, api, version, seen, member=options.member, of=request.sequence)
        response: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
        response.set_result(seen)
        return Exchange(request, response, lambda: None)

    async def close(self) -> None:
        """Nothing is open."""


# --- The transport of a connection within this process.


class MemoryTransport(asyncio.Transport):
    """The server's end of a connection in this process: the client reads the bytes that it writes."""

    def __init__(self, protocol: asyncio.StreamReaderProtocol, responses: asyncio.StreamReader) -> None:
        super().__init__(extra={"peername": ("127.0.0.1", 0), "sockname": ("127.0.0.1", 9092)})
        self._protocol = protocol
        self._responses = responses
        self._is_closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Hand bytes to the client."""
        if not self._is_closing:
            self._responses.feed_data(bytes(data))

    def get_write_buffer_size(self) -> int:
        """Nothing is buffered."""
        return 0

    def is_closing(self) -> bool:
        """Whether the server has closed the connection."""
        return self._is_closing

    def close(self) -> None:
        """End the connection; the client reads what was written before."""
        if not self._is_closing:
            self._is_closing = True
            self._responses.feed_eof()
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        """As `close`: nothing is buffered."""
        self.close()
