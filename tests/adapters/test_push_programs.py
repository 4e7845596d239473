"""The bundled push coordinator and its consumers on loopback: groups settle, move and recover, nobody fetches twice."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from fencepost.adapters.push.broker import (
    DIALECT,
    DUPLICATE_ID,
    NOT_COORDINATOR,
    UNUSABLE_REQUEST,
    UNUSABLE_TIMEOUT,
    BrokerSettings,
    PushBroker,
    read_frame,
)
from fencepost.adapters.push.zookeeper import MemoryZookeeper, Partition
from fencepost.model.push.wire import (
    MAX_FRAME_BYTES,
    Body,
    decode_push_response,
    encode_push_request,
    encode_push_response,
)
from tests.support.push.consumer import Address, PushConsumerProgram

pytestmark = pytest.mark.real_time
TOPICS = {"t": [f"0-{number}" for number in range(6)]}
ALL = frozenset(("t", name) for name in TOPICS["t"])
SETTINGS = BrokerSettings(maximum_session_timeout_ms=1000, response_timeout_ms=400)
PATIENCE_SECONDS = 30.0
SECOND_LOOK_SECONDS = 0.005


@dataclass(slots=True)
class Group:
    """Brokers and consumers in this process; `overlaps` are partitions that two consumers fetched at once."""

    zookeeper: MemoryZookeeper
    brokers: list[PushBroker]
    addresses: list[Address]
    consumers: dict[str, PushConsumerProgram] = field(default_factory=dict)
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    overlaps: set[Partition] = field(default_factory=set)

    def join(self, name: str, consumer: PushConsumerProgram | None = None) -> PushConsumerProgram:
        program = consumer or PushConsumerProgram("g", name, '{"t": 1}', self.addresses)
        self.consumers[name] = program
        self.tasks[name] = asyncio.create_task(program.run())
        return program

    def kill(self, name: str) -> None:
        self.tasks[name].cancel()
        del self.consumers[name]

    def look(self) -> None:
        seen: set[Partition] = set()
        for consumer in self.consumers.values():
            self.overlaps |= seen & consumer.fetched
            seen |= consumer.fetched

    def is_settled(self, partitions: frozenset[Partition] = ALL) -> bool:
        shares = [consumer.fetched for consumer in self.consumers.values()]
        owners = self.zookeeper.owners.get("g", {})
        told = {(part, name) for name, one in self.consumers.items() for part in one.fetched}
        return frozenset().union(*shares) == partitions and all(shares) and set(owners.items()) == told

    async def until(self, condition: Callable[[], bool]) -> None:
        end = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while not condition():
            self.look()
            assert asyncio.get_running_loop().time() < end, "it never came to that"
            await asyncio.sleep(SECOND_LOOK_SECONDS)
        self.look()


@asynccontextmanager
async def running(brokers: int = 1, names: Sequence[str] = ()) -> AsyncIterator[Group]:
    zookeeper = MemoryZookeeper({topic: list(names) for topic, names in TOPICS.items()})
    started = [PushBroker(number, zookeeper, SETTINGS) for number in range(brokers)]
    group = Group(zookeeper, started, [await broker.start() for broker in started])
    try:
        for name in names:
            group.join(name)
        yield group
    finally:
        for task in group.tasks.values():
            task.cancel()
        await asyncio.gather(*group.tasks.values(), return_exceptions=True)
        for broker in started:
            await broker.close()


async def test_a_group_settles_moves_and_grows() -> None:
    async with running(names=("a", "b", "c")) as group:
        await group.until(group.is_settled)
        assert [len(one.fetched) for one in group.consumers.values()] == [2, 2, 2]
        group.kill("b")
        await group.until(group.is_settled)
        group.zookeeper.add_partition("t", "0-6")
        await group.until(lambda: group.is_settled(ALL | {("t", "0-6")}))
        group.join("d")
        await group.until(lambda: group.is_settled(ALL | {("t", "0-6")}))
        assert group.overlaps == set()


@pytest.mark.parametrize("dies", [True, False])
async def test_a_group_recovers_at_another_coordinator(dies: bool) -> None:
    async with running(brokers=2, names=("a", "b")) as group:
        await group.until(group.is_settled)
        if dies:
            await group.brokers[0].close()
        else:
            group.brokers[0].step_down()
            group.zookeeper.end_session(0)
        await group.until(lambda: group.brokers[1].election == 2)
        await group.until(lambda: all(one.registrations >= 2 for one in group.consumers.values()))
        await group.until(group.is_settled)
        assert group.brokers[0].groups == {}
        assert group.overlaps == set()


async def test_a_stuck_consumer_stops_before_it_is_removed() -> None:
    async with running(names=("a", "b")) as group:
        await group.until(group.is_settled)
        stuck = group.consumers["a"]
        stuck.ignores_requests = True
        await group.until(lambda: group.consumers["b"].fetched == ALL)
        assert stuck.fetched == frozenset()
        stuck.ignores_requests = False
        await group.until(group.is_settled)
        assert group.overlaps == set()


async def test_a_consumer_without_a_lease_is_seen_to_fetch_twice() -> None:
    class Endless(PushConsumerProgram):
        @property
        def fetched(self) -> frozenset[Partition]:
            return frozenset(self.positions)

        async def _handle_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._lease_end = float("inf")
            await super()._handle_requests(reader, writer)

    async with running(names=("b",)) as group:
        endless = group.join("a", Endless("g", "a", '{"t": 1}', group.addresses))
        await group.until(group.is_settled)
        endless.ignores_requests = True
        await group.until(lambda: bool(group.overlaps))


async def test_the_next_owner_begins_where_the_last_one_consumed() -> None:
    async with running(names=("a",)) as group:
        await group.until(group.is_settled)
        group.consumers["a"].positions[("t", "0-5")] = 41
        group.join("b")
        await group.until(group.is_settled)
        assert group.consumers["b"].positions[("t", "0-5")] == 41


async def test_with_auto_commit_a_ping_brings_the_offset() -> None:
    async with running() as group:
        committing = PushConsumerProgram("g", "a", '{"t": 1}', group.addresses, auto_commit=True)
        group.join("a", committing)
        await group.until(group.is_settled)

        def is_recorded() -> bool:
            # A consumer that had to start over has forgotten it.
            committing.positions.update({("t", "0-0"): 7} if committing.positions else {})
            return group.zookeeper.offsets["g"].get(("t", "0-0")) == 7

        await group.until(is_recorded)


async def exchange(address: Address, data: bytes) -> bytes | None:
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(data)
        return await asyncio.wait_for(read_frame(reader), PATIENCE_SECONDS)
    finally:
        writer.close()


def registration(**changes: object) -> bytes:
    body: dict[str, object] = {"group": "g", "consumer": "a", "topic_count": '{"t": 1}', "session_timeout_ms": 600}
    return encode_push_request("RegisterConsumer", body | changes, DIALECT)


async def register(address: Address, **changes: object) -> Body:
    payload = await exchange(address, registration(**changes))
    assert payload is not None
    return decode_push_response("RegisterConsumer", payload, DIALECT)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({}, DUPLICATE_ID),
        ({"consumer": "b", "session_timeout_ms": 100}, UNUSABLE_TIMEOUT),
        ({"consumer": "b", "session_timeout_ms": 1001}, UNUSABLE_TIMEOUT),
        ({"consumer": "b", "topic_count": "t"}, UNUSABLE_REQUEST),
        ({"consumer": "b", "session_timeout_ms": 101}, 0),
    ],
)
async def test_registrations(changes: dict[str, object], error: int) -> None:
    async with running(names=("a",)) as group:
        await group.until(group.is_settled)
        assert await register(group.addresses[0], **changes) == {"error_code": error}


async def test_a_broker_that_is_not_elected_refuses() -> None:
    async with running(brokers=2) as group:
        assert await register(group.addresses[1]) == {"error_code": NOT_COORDINATOR}
        payload = await exchange(group.addresses[1], encode_push_request("ClusterMetadata", {}, DIALECT))
        assert payload is not None
        body = decode_push_response("ClusterMetadata", payload, DIALECT)
        assert (body["coordinator_id"], [one["id"] for one in body["brokers"]]) == (0, [0, 1])
        group.zookeeper.end_session(0)
        assert group.brokers[1].describe()["coordinator_id"] == 1


@pytest.mark.parametrize(
    ("data", "ends"),
    [
        (struct.pack(">ih", 2, 99), True),
        (struct.pack(">i", MAX_FRAME_BYTES + 1), True),
        (struct.pack(">i", -1), True),
        (struct.pack(">ihh", 4, 20, 0), True),
        (struct.pack(">ih", 2, 22), True),
        (registration()[:-1], True),
        (b"", False),
        (struct.pack(">i", 40) + b"half", False),
    ],
)
async def test_what_is_no_request_ends_the_connection_and_so_does_silence(data: bytes, ends: bool) -> None:
    async with running() as group:
        reader, writer = await asyncio.open_connection(*group.addresses[0])
        writer.write(data)
        if ends:
            writer.write_eof()
        assert await asyncio.wait_for(reader.read(), PATIENCE_SECONDS) == b""
        writer.close()
        assert group.brokers[0].groups == {}


async def open_registered(group: Group, **changes: object) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which consumer z has registered, which reads little ahead."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(group.addresses[0])
    reader, writer = await asyncio.open_connection(sock=sock, limit=1024)
    writer.write(registration(consumer="z", **changes))
    payload = await asyncio.wait_for(read_frame(reader), PATIENCE_SECONDS)
    assert payload is not None
    assert decode_push_response("RegisterConsumer", payload, DIALECT) == {"error_code": 0}
    return reader, writer


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">ih", 2, 99),
        struct.pack(">ih", 2, 24),
        struct.pack(">i", MAX_FRAME_BYTES + 1),
        struct.pack(">i", -1),
        struct.pack(">ihib", 7, 23, 1, 0),
    ],
    ids=["unknown type", "not awaited", "oversized", "negative size", "cut short"],
)
async def test_what_is_no_response_ends_the_channel_and_the_member_goes_with_its_timeout(data: bytes) -> None:
    async with running() as group:
        reader, writer = await open_registered(group, session_timeout_ms=150)
        writer.write(data)
        await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
        writer.close()
        await group.until(lambda: "z" not in group.brokers[0].groups["g"].members)
        group.join("a")
        await group.until(group.is_settled)


async def test_a_consumer_that_reads_nothing_costs_its_own_connection_alone() -> None:
    async with running() as group:
        group.zookeeper.topics["t"][:] = [f"0-{number:0200}" for number in range(4000)]
        reader, writer = await open_registered(group)
        assert await read_frame(reader) is not None
        # It answers Stop with no offsets, and reads nothing of the large Start.
        writer.write(encode_push_response("Stop", {"attempt": 1}, DIALECT))
        rebalancer = group.brokers[0].groups["g"]
        transport = rebalancer.members["z"].writer.transport
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        await group.until(lambda: transport.get_write_buffer_size() > 0)
        await group.until(lambda: "z" not in rebalancer.members)
        await group.until(lambda: transport.get_write_buffer_size() == 0)
        group.join("a")
        await group.until(lambda: len(group.consumers["a"].fetched) == 4000)
        writer.close()


async def test_a_share_that_fits_no_message_is_said_and_stops_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    async with running(names=("a",)) as group:
        await group.until(group.is_settled)
        other = group.join("o", PushConsumerProgram("k", "o", '{"u": 1}', group.addresses))
        group.zookeeper.topics["t"] += [f"0-{number}" for number in range(6, 33_000)]
        group.zookeeper.add_partition("u", "0-0")
        await group.until(lambda: other.fetched == {("u", "0-0")})
        await group.until(lambda: group.brokers[0].groups["g"].attempts > 0)
        group.zookeeper.add_partition("t", "0-33000")
        await group.until(lambda: "group g cannot be started: Start: partitions cannot be" in caplog.text)
        assert len(caplog.messages[0]) < 300
        del group.zookeeper.topics["t"][6:]
        await group.until(lambda: group.consumers["a"].fetched == ALL)


async def test_a_stuck_group_delays_others_of_its_queue_and_no_more() -> None:
    async with running() as group:
        broker = group.brokers[0]
        assert broker.queue_of("g") is broker.queue_of("k") is not broker.queue_of("h")
        _, writer = await open_registered(group)
        await group.until(lambda: broker.queue_of("g").locked())
        others = [group.join(name, PushConsumerProgram(name, name, '{"t": 1}', group.addresses)) for name in "kh"]
        await group.until(lambda: others[1].fetched == ALL)
        assert others[0].fetched == frozenset()
        await group.until(lambda: others[0].fetched == ALL)
        writer.close()


@pytest.mark.parametrize("data", [struct.pack(">i", -1), struct.pack(">ih", 2, 99), struct.pack(">i", 40) + b"half"])
async def test_a_consumer_leaves_a_coordinator_that_talks_nonsense(data: bytes) -> None:
    heard = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        heard += 1
        await read_frame(reader)
        writer.write(data)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    consumer = PushConsumerProgram("g", "a", '{"t": 1}', [server.sockets[0].getsockname()[:2]], session_timeout=0.1)
    task = asyncio.create_task(consumer.run())
    async with asyncio.timeout(PATIENCE_SECONDS):
        while heard < 3:
            await asyncio.sleep(0.005)
    assert (consumer.registrations, consumer.fetched) == (0, frozenset())
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    server.close()
