"""`fencepost serve` under the three real clients, over loopback."""

import asyncio
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import ConsumerGroupState, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.real_clients import CLIENTS, Consumer
from tests.support.served_coordinator import served

TOPIC = "orders"
PARTITIONS = frozenset(range(4))
PATIENCE = 30
"""Seconds; what usually takes less than one."""


@pytest.fixture
def bootstrap() -> Iterator[str]:
    with served() as address:
        yield address


class Room:
    """Some members of one group."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._place = (bootstrap, group)
        self._news = threading.Condition()
        self.members: list[Consumer] = []

    def enter(self, client: str) -> Consumer:
        """A further member joins."""
        member = CLIENTS[client](*self._place, TOPIC, self._news)
        self.members.append(member)
        return member

    def leave(self, member: Consumer) -> None:
        """A member goes."""
        self.members.remove(member)
        member.leave()

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait for something to become true of the members."""
        with self._news:
            self._news.wait_for(lambda: holds() or any(member.error for member in self.members), PATIENCE)
            assert holds(), [(member.assigned, len(member.values), member.error) for member in self.members]

    def is_shared_out(self) -> bool:
        """Every member has something, every partition one owner."""
        shares = [member.assigned for member in self.members]
        return all(shares) and Counter(p for share in shares for p in share) == Counter(PARTITIONS)

    def has_consumed(self, values: set[bytes]) -> bool:
        """The members have seen just these values, together."""
        return {value for member in self.members for value in member.values} == values


def produce(bootstrap: str, numbers: range, **settings: str) -> set[bytes]:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **settings})
    for number in numbers:
        producer.produce(TOPIC, value=b"%d" % number, key=b"k", partition=number % len(PARTITIONS))
    assert producer.flush(PATIENCE) == 0
    return {b"%d" % number for number in numbers}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_client_alone_consumes_commits_and_goes_on_where_it_was(
    client: str, compression: str, bootstrap: str
) -> None:
    room = Room(bootstrap, "alone")
    first = produce(bootstrap, range(40), **{"compression.type": compression})
    member = room.enter(client)
    room.wait_until(lambda: room.is_shared_out() and room.has_consumed(first))
    room.leave(member)
    second = produce(bootstrap, range(40, 60))
    room.enter(client)
    room.wait_until(lambda: room.has_consumed(second))
    room.leave(room.members[0])


def test_all_three_in_one_group(bootstrap: str) -> None:
    room = Room(bootstrap, "mixed")
    wanted = produce(bootstrap, range(40))
    for client in CLIENTS:
        room.enter(client)
    room.wait_until(lambda: room.is_shared_out() and room.has_consumed(wanted))
    leaver = room.members[0]
    room.leave(leaver)
    room.wait_until(room.is_shared_out)
    room.enter("kafka-python")
    room.wait_until(room.is_shared_out)
    seen = {value for member in room.members for value in member.values}
    later = produce(bootstrap, range(40, 80))
    room.wait_until(lambda: room.has_consumed(seen | later))
    while room.members:
        room.leave(room.members[0])


def test_the_group_as_an_admin_sees_it(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 4, 1)])[TOPIC].result(PATIENCE)
    room = Room(bootstrap, "watched")
    member = room.enter("kafka-python")
    room.wait_until(room.is_shared_out)
    listed = admin.list_consumer_groups().result(PATIENCE).valid
    assert [(group.group_id, group.state) for group in listed] == [("watched", ConsumerGroupState.STABLE)]
    described = admin.describe_consumer_groups(["watched"])["watched"].result(PATIENCE)
    (shown,) = described.members
    assert {place.partition for place in shown.assignment.topic_partitions} == PARTITIONS
    room.leave(member)
    admin.delete_consumer_groups(["watched"])["watched"].result(PATIENCE)
    assert not admin.list_consumer_groups().result(PATIENCE).valid


def test_a_reader_of_committed_records_sees_no_aborted_ones(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "teller"})
    producer.init_transactions(PATIENCE)
    for round_, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        producer.produce(TOPIC, value=b"%d" % round_, partition=0)
        assert producer.flush(PATIENCE) == 0
        (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE)
    assert consumed(bootstrap, "read_committed", 2) == [b"0", b"2"]
    assert consumed(bootstrap, "read_uncommitted", 3) == [b"0", b"1", b"2"]


def consumed(bootstrap: str, isolation: str, count: int) -> list[bytes]:
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
    deadline = time.monotonic() + PATIENCE
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
    producer.send(TOPIC, b"hello", partition=0).get(PATIENCE)
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
    assert consumed(bootstrap, "read_committed", 1) == [b"hello"]


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
    deadline = time.monotonic() + PATIENCE
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(0.1)
    places = consumer.assignment()
    for place in places:
        place.offset = 2
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "eos"})
    producer.init_transactions(PATIENCE)
    for end, offsets in ((producer.abort_transaction, {-1001}), (producer.commit_transaction, {2})):
        producer.begin_transaction()
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), PATIENCE)
        end(PATIENCE)
        assert {place.offset for place in consumer.committed(places, PATIENCE)} == offsets
    consumer.close()
