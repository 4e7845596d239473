"""The bundled push coordinator in this process, on virtual time: brokers around a ZooKeeper in memory."""

import asyncio
from collections.abc import Callable

from fencepost.adapters.address import Address, format_address
from fencepost.adapters.bundled.push.broker import BrokerSettings, PushBroker
from fencepost.adapters.bundled.push.zookeeper import MemoryZookeeper
from fencepost.adapters.memory_transport import MemoryTransport
from fencepost.adapters.push.channel import PushChannel, Streams
from fencepost.adapters.push.network_target import VERSIONS
from fencepost.adapters.remote_base import RemoteTargetBase
from fencepost.adapters.target import Description, TraceBuilder
from fencepost.model.settings import Settings
from fencepost.traces.events import Kind, Order

TOPIC, PARTITIONS = "fencepost", 4
BROKERS = 2
FIRST_PORT = 9092
MakeBroker = Callable[[int, MemoryZookeeper, BrokerSettings], PushBroker]


def memory_streams() -> tuple[Streams, Streams]:
    """Both ends of a connection in this process."""
    loop = asyncio.get_running_loop()
    readers = asyncio.StreamReader(), asyncio.StreamReader()
    protocols = [asyncio.StreamReaderProtocol(reader) for reader in readers]
    transports = [MemoryTransport(protocols[0], readers[1]), MemoryTransport(protocols[1], readers[0])]
    for protocol, transport in zip(protocols, transports, strict=True):
        protocol.connection_made(transport)
    ends = [
        (reader, asyncio.StreamWriter(transport, protocol, reader, loop))
        for reader, transport, protocol in zip(readers, transports, protocols, strict=True)
    ]
    return ends[0], ends[1]


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

    def can_fail_over(self) -> bool:
        """Whether a broker is left once the coordinator is dead."""
        return len(self.brokers) > 1

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
