"""The bundled push coordinators around a real ZooKeeper: election, fail-over, lost sessions, a topic that grows.

Connections go through a gate of the test, which can fall silent or cut them.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from kazoo.client import KazooClient

from fencepost.adapters.push.broker import BrokerSettings, PushBroker
from fencepost.adapters.push.network_zookeeper import ELECTION, OWNERS, TOPICS, NetworkZookeeper, add_topics, end
from fencepost.conformance.push.serve import serve
from tests.support.push.consumer import PushConsumerProgram
from tests.targets.running import RunningTarget

pytestmark = [pytest.mark.real_time, pytest.mark.zookeeper]
PATIENCE_SECONDS = 30.0
SESSION_SECONDS = 1.0
"""Two ticks of the ZooKeeper: the shortest it grants."""
SETTINGS = BrokerSettings(maximum_session_timeout_ms=800, response_timeout_ms=400)


@dataclass(slots=True)
class Gate:
    """A relay to a server. `is_silent`: what either side says is held back, and no end is seen."""

    port: int
    address: tuple[str, int] = ("", 0)
    is_silent: bool = False
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def open(self) -> asyncio.Server:
        server = await asyncio.start_server(self.relay, "127.0.0.1", 0)
        self.address = server.sockets[0].getsockname()[:2]
        return server

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, away = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers += [writer, away]
        for source, sink in ((reader, away), (there, writer)):
            task = asyncio.create_task(self.copy(source, sink))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                if not self.is_silent:
                    sink.write(data)
            if not self.is_silent:
                sink.close()
        except ConnectionError:
            sink.close()

    async def close(self) -> None:
        self.cut()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def cut(self) -> None:
        for writer in self.writers:
            writer.close()
        self.writers = []


@dataclass(slots=True)
class Brokers:
    """Two brokers, each behind a gate of its own, consumers of one group, and a look at ZooKeeper."""

    topic: str
    looker: KazooClient
    gates: list[Gate]
    brokers: list[PushBroker]
    consumers: list[PushConsumerProgram]
    overlaps: set[object] = field(default_factory=set)

    @property
    def coordinators(self) -> list[int]:
        return [broker.id for broker in self.brokers if broker.election is not None]

    def is_settled(self, partitions: int) -> bool:
        fetched = [part for consumer in self.consumers for part in consumer.fetched]
        self.overlaps |= {part for part in fetched if fetched.count(part) > 1}
        return len(fetched) == partitions and all(consumer.fetched for consumer in self.consumers)

    async def settle(self, partitions: int) -> None:
        """Wait until each partition is fetched, and ZooKeeper names who does."""
        await until(lambda: self.is_settled(partitions))
        told = {(*part, one.consumer) for one in self.consumers for part in one.fetched}
        async with asyncio.timeout(PATIENCE_SECONDS):
            while {tuple(entry) for entry in json.loads(await look(self.looker, f"{OWNERS}/g"))} != told:
                await asyncio.sleep(0.005)


async def look(looker: KazooClient, path: str) -> bytes:
    """The data of a node that is a list, an empty one if there is none."""

    def read() -> bytes:
        return (looker.get(path)[0] if looker.exists(path) else b"") or b"[]"

    return await asyncio.to_thread(read)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def running(zookeeper: RunningTarget) -> AsyncIterator[Brokers]:
    """Brokers and two consumers that have settled on a topic with two partitions; broker 0 coordinates."""
    place = ("127.0.0.1", zookeeper.port)
    topic = f"t-{uuid.uuid4().hex}"
    await add_topics(place, {topic: ["0-0", "1-1"]})
    gates = [Gate(zookeeper.port), Gate(zookeeper.port)]
    servers = [await gate.open() for gate in gates]
    brokers = [
        PushBroker(number, NetworkZookeeper(gate.address, SESSION_SECONDS), SETTINGS)
        for number, gate in enumerate(gates)
    ]
    addresses = [await brokers[0].start()]
    await until(lambda: brokers[0].election is not None)
    addresses.append(await brokers[1].start())
    consumers = [PushConsumerProgram("g", name, f'{{"{topic}": 1}}', addresses) for name in ("a", "b")]
    tasks = [asyncio.create_task(consumer.run()) for consumer in consumers]
    looker = KazooClient(zookeeper.bootstrap)
    await asyncio.to_thread(looker.start)
    group = Brokers(topic, looker, gates, brokers, consumers)
    try:
        await group.settle(2)
        yield group
        assert group.overlaps == set()
    finally:
        for task in tasks:
            task.cancel()
        for broker in brokers:
            await broker.close()
        await asyncio.to_thread(end, looker)
        for server, gate in zip(servers, gates, strict=True):
            server.close()
            await gate.close()


async def test_a_group_grows_with_its_topic_and_outlives_its_coordinator(zookeeper: RunningTarget) -> None:
    async with running(zookeeper) as group:
        await until(lambda: group.brokers[1].describe()["coordinator_id"] == 0)
        await until(lambda: len(group.brokers[1].describe()["brokers"]) == 2)
        await add_topics(("127.0.0.1", zookeeper.port), {group.topic: ["0-2"]})
        await group.settle(3)
        group.consumers[0].positions = dict.fromkeys(group.consumers[0].positions, 41)
        before = group.brokers[0].election or 0
        await group.brokers[0].close()
        await until(lambda: group.brokers[1].election == before + 1)
        await group.settle(3)


@pytest.mark.parametrize("how", ["cut", "silence"])
async def test_a_coordinator_that_loses_its_session_steps_down(how: str, zookeeper: RunningTarget) -> None:
    async with running(zookeeper) as group:
        first, gate = group.brokers[0], group.gates[0]
        gate.is_silent = True
        if how == "cut":
            gate.cut()
        # It stops before ZooKeeper ends its session, which only then makes room for the next.
        await until(lambda: first.election is None or len(group.coordinators) > 1)
        assert group.coordinators in ([], [1])
        assert first.groups == {}
        assert first.describe()["coordinator_id"] != 0
        await until(lambda: group.coordinators == [1])
        await group.settle(2)
        gate.cut()
        gate.is_silent = False
        # A new session, as a candidate.
        await until(lambda: first.describe()["coordinator_id"] == 1)


async def test_a_write_of_an_election_that_is_over_is_refused_and_ends_the_session(zookeeper: RunningTarget) -> None:
    async with running(zookeeper) as group:
        view = group.brokers[0].zookeeper
        assert isinstance(view, NetworkZookeeper)
        election = group.brokers[0].election or 0
        # As if another one had been elected without its notice.
        await asyncio.to_thread(group.looker.set, ELECTION, b"7")
        assert not await view.write_owners("other", election, {(group.topic, "0-0"): "a"})
        assert await look(group.looker, f"{OWNERS}/other") == b"[]"
        await until(lambda: (group.brokers[1].election or group.brokers[0].election or 0) > election + 1)
        await group.settle(2)


async def test_serve_makes_the_topics_it_is_asked_for(zookeeper: RunningTarget) -> None:
    announced: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    topic, place = f"t-{uuid.uuid4().hex}", ("127.0.0.1", zookeeper.port)
    serving = asyncio.create_task(serve("127.0.0.1", 0, 2, {topic: 3}, announced.set_result, place))
    assert len((await asyncio.wait_for(announced, PATIENCE_SECONDS)).split(",")) == 2
    looker = KazooClient(zookeeper.bootstrap)
    await asyncio.to_thread(looker.start)
    assert sorted(await asyncio.to_thread(looker.get_children, f"{TOPICS}/{topic}")) == ["0-0", "0-2", "1-1"]
    await asyncio.to_thread(end, looker)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
