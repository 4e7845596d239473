"""`fencepost serve` under the three real clients, over loopback."""

import asyncio
import os
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import ConsumerGroupState, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from fencepost.adapters.serve import record_apis as module
from fencepost.adapters.serve.record_apis import AbortedTransaction, Partition
from fencepost.adapters.serve.server import Server
from fencepost.conformance.reports.incident import MEMBER_COLUMNS, OFFSET_COLUMNS, STATE_COLUMNS
from fencepost.model.settings import Settings
from fencepost.model.wire.records import Batch, Record, decode_batches, encode_batch, make_batch
from tests.support.real_clients import CLIENTS, PARTITIONS, TIMEOUT_S, TOPIC, RealClientGroup, produce
from tests.support.served_coordinator import serve_in_thread
from tests.targets.kafka.installation import VERSIONS, install, install_tools, java_command
from tests.targets.process import MissingDependencyError


@pytest.fixture
def bootstrap() -> Iterator[str]:
    with serve_in_thread() as address:
        yield address


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_client_alone_consumes_commits_and_goes_on_where_it_was(
    client: str, compression: str, bootstrap: str
) -> None:
    room = RealClientGroup(bootstrap, "alone")
    first = produce(bootstrap, range(40), **{"compression.type": compression})
    member = room.add_member(client)
    room.wait_until(lambda: room.is_fully_assigned() and room.has_consumed(first))
    room.remove_member(member)
    second = produce(bootstrap, range(40, 60))
    room.add_member(client)
    room.wait_until(lambda: room.has_consumed(second))
    room.remove_member(room.members[0])


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_follow_their_group_to_another_node(client: str) -> None:
    made: list[Server] = []

    def make_server(settings: Settings, storage: Path | None, delay: int) -> Server:
        made.append(Server(settings, storage, delay, nodes=2))
        return made[0]

    with serve_in_thread(make_server=make_server) as bootstrap:
        room = RealClientGroup(bootstrap, "followers")
        first = produce(bootstrap, range(40))
        room.add_member(client)
        room.wait_until(lambda: room.is_fully_assigned() and room.has_consumed(first))
        made[0]._loop.call_soon_threadsafe(made[0].move)
        room.add_member(client)
        room.wait_until(lambda: room.is_fully_assigned() and all(member.assigned for member in room.members))
        later = produce(bootstrap, range(40, 80))
        room.wait_until(lambda: room.has_consumed(first | later))
        while room.members:
            room.remove_member(room.members[0])


def test_all_three_in_one_group(bootstrap: str) -> None:
    room = RealClientGroup(bootstrap, "mixed")
    wanted = produce(bootstrap, range(40))
    for client in CLIENTS:
        room.add_member(client)
    room.wait_until(lambda: room.is_fully_assigned() and room.has_consumed(wanted))
    leaver = room.members[0]
    room.remove_member(leaver)
    room.wait_until(room.is_fully_assigned)
    room.add_member("kafka-python")
    room.wait_until(room.is_fully_assigned)
    seen = {value for member in room.members for value in member.values}
    later = produce(bootstrap, range(40, 80))
    room.wait_until(lambda: room.has_consumed(seen | later))
    while room.members:
        room.remove_member(room.members[0])


def test_the_group_as_an_admin_sees_it(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 4, 1)])[TOPIC].result(TIMEOUT_S)
    room = RealClientGroup(bootstrap, "watched")
    member = room.add_member("kafka-python")
    room.wait_until(room.is_fully_assigned)
    listed = admin.list_consumer_groups().result(TIMEOUT_S).valid
    assert [(group.group_id, group.state) for group in listed] == [("watched", ConsumerGroupState.STABLE)]
    described = admin.describe_consumer_groups(["watched"])["watched"].result(TIMEOUT_S)
    (shown,) = described.members
    assert {place.partition for place in shown.assignment.topic_partitions} == PARTITIONS
    room.remove_member(member)
    admin.delete_consumer_groups(["watched"])["watched"].result(TIMEOUT_S)
    assert not admin.list_consumer_groups().result(TIMEOUT_S).valid


def test_a_reader_of_committed_records_sees_no_aborted_ones(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "teller"})
    producer.init_transactions(TIMEOUT_S)
    for round_, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        producer.produce(TOPIC, value=b"%d" % round_, partition=0)
        assert producer.flush(TIMEOUT_S) == 0
        (producer.commit_transaction if commit else producer.abort_transaction)(TIMEOUT_S)
    assert consume_values(bootstrap, "read_committed", 2) == [b"0", b"2"]
    assert consume_values(bootstrap, "read_uncommitted", 3) == [b"0", b"1", b"2"]


def consume_values(bootstrap: str, isolation: str, count: int) -> list[bytes]:
    """The first values of partition 0 that a reader of that isolation level gets."""
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": isolation,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
        }
    )
    consumer.subscribe([TOPIC])
    values: list[bytes] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(values) < count and time.monotonic() < deadline:
        record = consumer.poll(0.1)
        if record is not None and record.error() is None and isinstance(value := record.value(), bytes):
            values.append(value)
    consumer.close()
    return values


def kafka_python_produces(bootstrap: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its schemas are read in a deprecated way
        from kafka import KafkaProducer  # type: ignore[import-untyped]
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    producer.send(TOPIC, b"hello", partition=0).get(TIMEOUT_S)
    producer.close()


def aiokafka_produces(bootstrap: str) -> None:
    from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]

    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        await producer.send_and_wait(TOPIC, b"hello", partition=0)
        await producer.stop()

    asyncio.run(send())


@pytest.mark.parametrize("produces", [kafka_python_produces, aiokafka_produces])
def test_other_producers(produces: Callable[[str], None], bootstrap: str) -> None:
    produces(bootstrap)
    assert consume_values(bootstrap, "read_committed", 1) == [b"hello"]


def test_offsets_in_a_transaction_count_once_it_is_committed(bootstrap: str) -> None:
    produce(bootstrap, range(8))
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "eos",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    deadline = time.monotonic() + TIMEOUT_S
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(0.1)
    places = consumer.assignment()
    for place in places:
        place.offset = 2
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "eos"})
    producer.init_transactions(TIMEOUT_S)
    for end, offsets in ((producer.abort_transaction, {-1001}), (producer.commit_transaction, {2})):
        producer.begin_transaction()
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), TIMEOUT_S)
        end(TIMEOUT_S)
        assert {place.offset for place in consumer.committed(places, TIMEOUT_S)} == offsets
    consumer.close()


# --- Kafka's own `kafka-consumer-groups.sh` on groups of `fencepost serve`; its columns in the report on traces.

TOOL_TIMEOUT_S = 120
"""Seconds that the tool may take on a busy machine; alone it takes three."""
GROUP = "billing"


class GroupTool:
    """The class behind `kafka-consumer-groups.sh`, on one cluster."""

    def __init__(self, home: Path, name: str, bootstrap: str) -> None:
        patience = str(1_000 * TOOL_TIMEOUT_S // 2)  # its own is 5 s
        self.command = [*java_command(home), name, "--bootstrap-server", bootstrap, "--timeout", patience]

    def rows(self, *arguments: str) -> list[list[str]]:
        """The words of each line that the tool prints, without empty lines."""
        done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, timeout=TOOL_TIMEOUT_S)
        assert done.returncode == 0, done.stdout + done.stderr
        return [line.split() for line in done.stdout.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def used_server() -> Iterator[str]:
    """A server with one member that has consumed and committed."""
    with serve_in_thread() as address:
        wanted = produce(address, range(40))
        room = RealClientGroup(address, GROUP)
        room.add_member("confluent-kafka")
        room.wait_until(lambda: room.is_fully_assigned() and room.has_consumed(wanted))
        room.remove_member(room.members[0])  # it commits
        member = room.add_member("confluent-kafka")
        room.wait_until(room.is_fully_assigned)
        yield address
        room.remove_member(member)


@pytest.fixture(
    scope="module",
    params=[pytest.param("4", marks=pytest.mark.kafka4), pytest.param("3.4", marks=pytest.mark.kafka34)],
)
def tool(request: pytest.FixtureRequest, used_server: str) -> GroupTool:
    """The tool of the newest release that is published with it, and that of an older one."""
    try:
        if request.param == "4":
            return GroupTool(install_tools(), "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", used_server)
        return GroupTool(install(VERSIONS["3.4"]), "kafka.admin.ConsumerGroupCommand", used_server)
    except MissingDependencyError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


def test_groups_are_listed(tool: GroupTool) -> None:
    assert tool.rows("--list") == [[GROUP]]
    assert tool.rows("--list", "--state") == [["GROUP", "STATE"], [GROUP, "Stable"]]


def test_offsets_are_described_with_lag_and_owner(tool: GroupTool) -> None:
    head, *rows = tool.rows("--describe", "--group", GROUP)
    assert head == ["GROUP", *OFFSET_COLUMNS, "HOST", "CLIENT-ID"]
    assert {(row[0], row[1], row[2]) for row in rows} == {(GROUP, TOPIC, str(number)) for number in range(4)}
    assert all(row[5] == "0" and row[3] == row[4] for row in rows)  # everything is consumed and committed
    (owner,) = {row[6] for row in rows}
    assert owner.startswith("rdkafka-")
    assert tool.rows("--describe", "--all-groups") == [head, *rows]


def test_the_state_is_described(tool: GroupTool) -> None:
    head, row = tool.rows("--describe", "--group", GROUP, "--state")
    assert head == ["GROUP", "COORDINATOR", "(ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    assert [row[0], *row[-3:]] == [GROUP, "range", "Stable", "1"]
    assert set(STATE_COLUMNS) >= {"GROUP", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"}


def test_members_are_described_with_their_partitions(tool: GroupTool) -> None:
    head, row = tool.rows("--describe", "--group", GROUP, "--members")
    assert head == ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    assert [row[0], *row[2:]] == [GROUP, "/127.0.0.1", "rdkafka", "4"]
    assert {"CONSUMER-ID", "#PARTITIONS"} <= set(MEMBER_COLUMNS)
    verbose = tool.rows("--describe", "--group", GROUP, "--members", "--verbose")[1]
    assert any("0,1,2,3" in word for word in verbose)


# --- The log of one partition.


def data_batch(*values: bytes, producer: int | None = None, timestamp: int = 0) -> Batch:
    made = make_batch([Record(value, timestamp=timestamp) for value in values])
    return made if producer is None else replace(made, producer_id=producer, attributes=0x10)


def append_batch(log: Partition, batch: Batch) -> int:
    return log.append(batch, encode_batch(batch))


def base_offsets(data: bytes) -> list[int]:
    return [found.base_offset for found in decode_batches(data).batches]


def test_whole_batches_are_read_from_the_one_that_holds_the_offset() -> None:
    log = Partition()
    assert [append_batch(log, data_batch(b"a", b"b")) for _ in range(3)] == [0, 2, 4]
    size = data_batch(b"a", b"b").size
    assert base_offsets(log.read(3, 10 * size, committed_only=False, at_least_one=False).data) == [2, 4]
    assert base_offsets(log.read(0, 2 * size, committed_only=False, at_least_one=False).data) == [0, 2]
    assert base_offsets(log.read(0, 1, committed_only=False, at_least_one=True).data) == [0]
    assert log.read(0, size - 1, committed_only=False, at_least_one=False).data == b""
    assert log.read(6, 10 * size, committed_only=False, at_least_one=True).data == b""


def test_open_transactions_hold_back_readers_of_committed_records() -> None:
    log = Partition()
    append_batch(log, data_batch(b"plain"))
    append_batch(log, data_batch(b"in", producer=7))
    append_batch(log, data_batch(b"after"))
    assert log.last_stable_offset == 1
    assert base_offsets(log.read(0, 1000, committed_only=True, at_least_one=True).data) == [0]
    assert base_offsets(log.read(0, 1000, committed_only=False, at_least_one=True).data) == [0, 1, 2]
    assert log.end_transaction(7, 0, committed=False, now=5)
    assert not log.end_transaction(7, 0, committed=False, now=5)
    assert log.last_stable_offset == log.end_offset == 4
    read = log.read(0, 1000, committed_only=True, at_least_one=True)
    assert base_offsets(read.data) == [0, 1, 2, 3]
    assert read.aborted == (AbortedTransaction(7, 1, 3),)
    assert log.read(0, 1, committed_only=True, at_least_one=True).aborted == ()
    append_batch(log, data_batch(b"x", producer=8))
    log.end_transaction(8, 0, committed=True, now=6)
    assert log.read(4, 1000, committed_only=True, at_least_one=True).aborted == ()


def test_an_old_log_forgets_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    size = data_batch(b"value").size
    monkeypatch.setattr(module, "MAX_LOG_BYTES", 3 * size)
    log = Partition()
    append_batch(log, data_batch(b"value", producer=1))
    log.end_transaction(1, 0, committed=False, now=0)
    for _ in range(5):
        append_batch(log, data_batch(b"value"))
    assert (log.start_offset, log.end_offset) == (4, 7)
    read = log.read(4, 1 << 20, committed_only=True, at_least_one=True)
    assert base_offsets(read.data) == [4, 5, 6] and read.aborted == ()


def test_offsets_are_found_by_timestamp() -> None:
    log = Partition()
    assert log.find_max_timestamp() is None and log.find_by_timestamp(0) is None
    append_batch(log, data_batch(b"a", timestamp=5))
    append_batch(log, data_batch(b"b", timestamp=9))
    append_batch(log, replace(data_batch(b"c", timestamp=9), attributes=1))
    assert log.find_by_timestamp(6) == (9, 1)
    assert log.find_max_timestamp() == (9, 1)
    assert log.find_by_timestamp(10) is None
