"""`fencepost serve` under the three real clients, over loopback."""

import asyncio
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import ConsumerGroupState, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from fencepost.adapters.serve.server import Server
from fencepost.model.settings import Settings
from tests.support.real_clients import CLIENTS, PARTITIONS, TIMEOUT_S, TOPIC, RealClientGroup, produce
from tests.support.served_coordinator import serve_in_thread


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
