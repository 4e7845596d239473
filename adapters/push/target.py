"""Push coordinators as targets, in this process and over the network, and connections that record what is seen."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from fencepost.adapters.address import Address, TargetError, format_address
from fencepost.adapters.in_process import MemoryTransport
from fencepost.adapters.push.broker import BrokerSettings, PushBroker
from fencepost.adapters.push.zookeeper import MemoryZookeeper
from fencepost.adapters.target import (
    DEFAULT_OPTIONS,
    Description,
    Exchange,
    RemoteTargetBase,
    SendOptions,
    TraceBuilder,
)
from fencepost.model.push.dialect import REPAIRED
from fencepost.model.push.group import Interest, format_interest
from fencepost.model.push.wire import (
    Body,
    MalformedFrame,
    decode_push_request,
    decode_push_response,
    encode_push_request,
    encode_push_response,
    frame_size,
    response_name,
)
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind, Order

# One connection to a push broker, with everything that is seen on it on record.


DIALECT = REPAIRED
"""The messages that the kit speaks."""
RESPONSE_TIMEOUT_S = 10.0
APART, FORM = "PUSH-51", "PUSH-50"
"""The requirements that bytes may break: responses can be told apart, and messages have their form."""


@dataclass(eq=False, slots=True)
class PushConnection:
    """A connection of one actor."""

    recorder: TraceBuilder
    number: int
    member: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    is_over: bool = field(default=False)

    async def ask(self, api: str, body: Body, **marks: bool) -> Body | None:
        """Send a lookup or a registration, and return the body of its response; None if none comes. `marks` are
        recorded and not sent."""
        request = self.record(Kind.REQUEST, api, {**body, **{f"_{name}": value for name, value in marks.items()}})
        if self.is_over:
            return None
        self.writer.write(encode_push_request(api, body, DIALECT))
        payload = await self.read_payload()
        if payload is None:
            return None
        try:
            response = decode_push_response(api, payload, DIALECT)
        except MalformedFrame as error:
            self.give_up(error, APART if payload[:2] and not self.is_type_of(payload, api) else FORM)
            return None
        self.record(Kind.RESPONSE, api, response, of=request.sequence)
        return response

    async def next_request(self) -> Event | None:
        """The next request of the coordinator; None if the connection is over."""
        payload = await self.read_payload(forever=True)
        if payload is None or self.is_over:  # what was under way when it was closed is read by nobody
            return None
        try:
            api, body = decode_push_request(payload, DIALECT)
        except MalformedFrame as error:
            self.give_up(error, FORM)
            return None
        return self.record(Kind.REQUEST, api, body)

    def respond(self, request: Event, body: Body) -> None:
        """Respond to a request of the coordinator."""
        if not self.is_over:
            self.record(Kind.RESPONSE, request.api, body, of=request.sequence)
            self.writer.write(encode_push_response(request.api, body, DIALECT))

    def drop(self) -> None:
        """Close the connection."""
        if not self.is_over:
            self.is_over = True
            self.record(Kind.FAULT, "drop", {})
            self.writer.close()

    def close(self) -> None:
        """Close the connection when the trace is over: nothing is recorded."""
        self.is_over = True
        self.writer.close()

    async def read_payload(self, *, forever: bool = False) -> bytes | None:
        """The next payload; None if the connection is over, which is recorded."""
        try:
            async with asyncio.timeout(None if forever else RESPONSE_TIMEOUT_S):
                size = frame_size(await self.reader.readexactly(4))
                return await self.reader.readexactly(size)
        except MalformedFrame as error:
            self.give_up(error, FORM)
        except TimeoutError:
            return None
        except (asyncio.IncompleteReadError, ConnectionError):
            if not self.is_over:
                self.is_over = True
                self.record(Kind.FAULT, "closed", {})
                self.writer.close()
        return None

    def give_up(self, error: MalformedFrame, requirement: str) -> None:
        """Close a connection on which bytes came that are no message."""
        if not self.is_over:
            self.is_over = True
            self.record(Kind.FAULT, "malformed", {"reason": str(error), "requirement": requirement})
            self.writer.close()

    @staticmethod
    def is_type_of(payload: bytes, api: str) -> bool:
        """Whether a response says that it is one to this request."""
        try:
            return response_name(payload) == api
        except MalformedFrame:
            return False

    def record(self, kind: Kind, api: str, body: Body, of: int | None = None) -> Event:
        """Put an event of this connection on record."""
        return self.recorder.record(kind, api, 0, body, connection=self.number, member=self.member, of=of)


# The connections of one scenario to push brokers.


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[Address], Awaitable[Streams]]
"""Opens a connection to an address. Raises `OSError`."""


@dataclass(slots=True)
class PushChannel:
    """Opens connections, numbered from 1, and closes them all in the end."""

    recorder: TraceBuilder
    connect: Connect
    bootstrap: tuple[Address, ...]
    hooks: "BundledPushTarget | None" = None
    """What can be done to the target beside its wire."""
    known: Mapping[str, list[str]] = field(default_factory=dict)
    """The topics with their partitions, where no hook tells them."""
    connections: list[PushConnection] = field(default_factory=list)

    async def open(self, member: str, address: Address) -> PushConnection | None:
        """A new connection to an address; None if there is none, which is recorded."""
        number = len(self.connections) + 1
        try:
            reader, writer = await self.connect(address)
        except OSError as error:
            self.recorder.record(Kind.FAULT, "unreachable", 0, {"reason": str(error)}, connection=number, member=member)
            return None
        opened = PushConnection(self.recorder, number, member, reader, writer)
        self.connections.append(opened)
        return opened

    def send(self, api: str, version: int, body: Body, options: SendOptions = DEFAULT_OPTIONS) -> Exchange:
        """Send a lookup to the first broker on a connection of its own."""
        response: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()

        async def ask() -> None:
            connection = await self.open(options.member, self.bootstrap[0])
            response.set_result(None if connection is None else await connection.ask(api, body))

        task = asyncio.get_running_loop().create_task(ask())

        def drop() -> None:
            task.cancel()

        return Exchange(None, response, drop)

    async def close(self) -> None:
        """Close every connection."""
        for connection in self.connections:
            connection.close()


# What a push target is asked before a run: where its coordinator is, and what partitions a topic has.


PROBE_SECONDS = 20.0
PROBE_TIMEOUT_MS = 3_000
"""The session timeout of the probing consumer where no bounds are told."""


def registration(group: str, consumer: str, topics: Interest, timeout_ms: int, *, auto_commit: bool = False) -> Body:
    """The body of a registration."""
    return {
        "group": group,
        "consumer": consumer,
        "topic_count": format_interest(topics),
        "auto_commit": auto_commit,
        "auto_offset_reset": "smallest",
        "session_timeout_ms": timeout_ms,
    }


def coordinator_address(metadata: Body) -> Address | None:
    """Where the coordinator is, as a broker says; None if it does not know."""
    if metadata["error_code"]:
        return None
    places = {each["id"]: (each["host"], each["port"]) for each in metadata["brokers"]}
    return places.get(metadata["coordinator_id"])


async def find_coordinator(channel: PushChannel, member: str = "") -> Address | None:
    """The address of the coordinator, as the first broker that knows it says."""
    for address in channel.bootstrap:
        connection = await channel.open(member, address)
        if connection is None:
            continue
        metadata = await connection.ask("ClusterMetadata", {})
        connection.drop()
        found = None if metadata is None else coordinator_address(metadata)
        if found is not None:
            return found
    return None


async def probe_topic(channel: PushChannel, topic: str, limits: Mapping[str, int]) -> list[str]:
    """Register a consumer of the topic and return its partitions. Raises `TargetError`."""
    address = await find_coordinator(channel)
    if address is None:
        raise TargetError("no broker answers with a coordinator")
    connection = await channel.open("", address)
    if connection is None:
        raise TargetError("its coordinator cannot be reached")
    timeout = limits.get("session_timeout_ms", PROBE_TIMEOUT_MS)
    answer = await connection.ask("RegisterConsumer", registration("probe", "probe", Interest(((topic, 1),)), timeout))
    if answer is None or answer["error_code"]:
        told = "no response" if answer is None else f"error {answer['error_code']}"
        raise TargetError(
            f"a registration with a session timeout of {timeout} ms gets {told}; say session_timeout_ms in [limits]"
        )
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            while (request := await connection.next_request()) is not None:
                attempt = {"attempt": request.body["attempt"]} if "attempt" in request.body else {}
                if request.api == "Start":
                    connection.respond(request, {**attempt, "error_code": 0})
                    return [entry["partition"] for entry in request.body["partitions"]]
                connection.respond(request, {**attempt, **({"partitions": []} if request.api == "Stop" else {})})
    except TimeoutError:
        pass
    raise TargetError(f"a consumer of {topic!r} is told of no partitions within {PROBE_SECONDS:g} s")


# A push coordinator that is reached over the network.


VERSIONS = {"ClusterMetadata": (0, 0), "RegisterConsumer": (0, 0)}
CONNECT_TIMEOUT_S = 5.0


async def connect(address: Address) -> Streams:
    """Open a TCP connection. Raises `OSError`."""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            return await asyncio.open_connection(*address)
    except TimeoutError:
        raise OSError(f"{format_address(*address)}: no connection within {CONNECT_TIMEOUT_S:g} s") from None


class PushTarget(RemoteTargetBase):
    """Brokers at some addresses. `limits` are what a profile says; `topic` is an existing topic."""

    def __init__(self, addresses: tuple[Address, ...], topic: str, limits: Mapping[str, int]) -> None:
        self.addresses = addresses
        self.name = f"push://{','.join(format_address(*each) for each in addresses)}"
        self.topic = topic
        self.limits = dict(limits)
        self.known: dict[str, list[str]] = {}
        """The partitions of the topic, once it is open."""

    async def open(self) -> Description:
        """Reach a broker, and see that a consumer of the topic gets partitions. Raises `TargetError`."""
        recorder = TraceBuilder(lambda: 0)
        channel = PushChannel(recorder, connect, self.addresses)
        try:
            self.known[self.topic] = await probe_topic(channel, self.topic, self.limits)
        except TargetError as error:
            raise TargetError(f"{self.name}: {error}") from None
        finally:
            await channel.close()
        if not self.known[self.topic]:
            raise TargetError(f"{self.name}: topic {self.topic!r} has no partitions; name another in [target] topic")
        return Description(
            self.name, Order.INTERVALS, "wall", VERSIONS, Settings(), self.topic, protocol="push", limits=self.limits
        )

    def channel(self, recorder: TraceBuilder) -> PushChannel:
        """A channel to the brokers."""
        return PushChannel(recorder, connect, self.addresses, known=self.known)

    async def is_alive(self) -> bool:
        """Whether a broker accepts a connection."""
        for address in self.addresses:
            try:
                _, writer = await connect(address)
            except OSError:
                continue
            writer.close()
            return True
        return False


# The bundled push coordinator in this process, on virtual time: brokers around a ZooKeeper in memory.


TOPIC, PARTITIONS = "fencepost", 4
BROKERS = 2
FIRST_PORT = 9092
MakeBroker = Callable[[int, MemoryZookeeper, BrokerSettings], PushBroker]


def memory_streams() -> tuple[Streams, Streams]:
    """Both ends of a connection in this process."""

    def end(reader: asyncio.StreamReader, other: asyncio.StreamReader) -> Streams:
        protocol = asyncio.StreamReaderProtocol(reader)
        transport = MemoryTransport(protocol, other)
        protocol.connection_made(transport)
        return reader, asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())

    one, other = asyncio.StreamReader(), asyncio.StreamReader()
    return end(one, other), end(other, one)


class BundledPushTarget(RemoteTargetBase):
    """Brokers in this process; `make_broker` makes each, in tests a faulty one."""

    def __init__(self, settings: BrokerSettings | None = None, make_broker: MakeBroker = PushBroker) -> None:
        self.name = "bundled push coordinator"
        self.settings = BrokerSettings() if settings is None else settings
        self.make_broker = make_broker
        self.zookeeper = MemoryZookeeper()
        self.brokers: list[PushBroker] = []
        self.addresses: dict[Address, PushBroker] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.recorders: list[TraceBuilder] = []

    async def open(self) -> Description:
        """Start the brokers, each at an address that exists in this process alone."""
        self.zookeeper = MemoryZookeeper({TOPIC: [f"{number % BROKERS}-{number}" for number in range(PARTITIONS)]})
        self.brokers = [self.make_broker(number, self.zookeeper, self.settings) for number in range(BROKERS)]
        self.addresses = {(f"broker-{broker.id}", FIRST_PORT): broker for broker in self.brokers}
        for address, broker in self.addresses.items():
            broker.begin(address)
        settings = self.settings
        limits = {
            "min_session_timeout": settings.minimum_session_timeout_ms,
            "max_session_timeout": settings.maximum_session_timeout_ms,
            "maximum_retries": settings.maximum_retries,
            "backoff_ms": settings.backoff_ms,
            "response_timeout_ms": settings.response_timeout_ms,
            "tick_ms": settings.tick_ms,
        }
        return Description(
            self.name,
            Order.INTERVALS,
            "virtual",
            VERSIONS,
            Settings(),
            TOPIC,
            implementation={"name": "fencepost bundled push coordinator"},
            protocol="push",
            limits=limits,
        )

    def channel(self, recorder: TraceBuilder) -> PushChannel:
        """A channel to the brokers."""
        self.recorders.append(recorder)
        return PushChannel(recorder, self.connect, tuple(self.addresses), self)

    async def connect(self, address: Address) -> Streams:
        """A connection to the broker at an address. Raises `OSError` if it is dead."""
        broker = self.addresses.get(address)
        if broker is None or broker not in self.brokers:
            raise ConnectionRefusedError(f"{format_address(*address)}: refused")
        mine, theirs = memory_streams()
        task = asyncio.get_running_loop().create_task(broker.serve(*theirs))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return mine

    async def is_alive(self) -> bool:
        """Whether a broker is there."""
        return bool(self.brokers)

    async def close(self) -> None:
        """End all brokers."""
        for broker in self.brokers:
            await broker.close()
        self.brokers = []

    # --- what can be done beside the wire -----------------------------------------------------------------------

    def topics(self) -> dict[str, list[str]]:
        """The topics with the names of their partitions."""
        return {topic: list(names) for topic, names in self.zookeeper.topics.items()}

    def add_partition(self, topic: str) -> None:
        """Add a partition, and the topic if it is new."""
        number = len(self.zookeeper.topics.get(topic, ()))
        self.zookeeper.add_partition(topic, f"{number % BROKERS}-{number}")

    async def kill_coordinator(self) -> None:
        """Kill the coordinator: another broker is elected at once."""
        broker = self.coordinator()
        self.annotate("killed")
        self.brokers.remove(broker)
        await broker.close()

    async def expire_session(self) -> None:
        """End the session of the coordinator, which lives on and is a candidate again."""
        broker = self.coordinator()
        self.annotate("expired")
        broker.lose_session()

    def coordinator(self) -> PushBroker:
        """The broker that is elected."""
        return next(broker for broker in self.brokers if broker.id == self.zookeeper.coordinator)

    def annotate(self, how: str) -> None:
        """Put on record that the coordinator loses its place."""
        for recorder in self.recorders:
            recorder.record(Kind.INTERNAL, "lost-coordinator", 0, {"how": how})
