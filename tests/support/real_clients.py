"""Three real clients with one interface: each consumes in a thread of its own until `leave`."""

import asyncio
import threading
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any

SESSION_MS = 6_000
HEARTBEAT_MS = 200
POLL_MS = 100
TOPIC = "orders"
PARTITIONS = frozenset(range(4))
TIMEOUT_S = 30
"""Seconds; what usually takes less than one."""


class ConsumerThread(ABC):
    """A member of a group. `changed` is notified whenever something has changed."""

    def __init__(self, bootstrap: str, group: str, topic: str, changed: threading.Condition) -> None:
        self.assigned: frozenset[int] = frozenset()
        self.values: list[bytes] = []
        self.error: BaseException | None = None
        self._settings = (bootstrap, group, topic)
        self._changed = changed
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Close the client, which commits and leaves the group."""
        self._leave.set()
        self._thread.join(20)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error

    def report_progress(self, assigned: frozenset[int], values: list[bytes]) -> None:
        """Take note of what the client shows at the moment."""
        with self._changed:
            self.assigned = assigned
            self.values.extend(values)
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            self.consume(*self._settings)
        except BaseException as error:
            self.error = error
        finally:
            self.report_progress(frozenset(), [])

    @abstractmethod
    def consume(self, bootstrap: str, group: str, topic: str) -> None:
        """Join, and consume until `_leave` is set."""


class KafkaPythonThread(ConsumerThread):
    """kafka-python."""

    def consume(self, bootstrap: str, group: str, topic: str) -> None:
        """Poll; heartbeats come from a thread of the client's."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its schemas are read in a deprecated way
            from kafka import KafkaConsumer  # type: ignore[import-untyped]
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=1_000,
        )
        try:
            while not self._leave.is_set():
                polled = consumer.poll(timeout_ms=POLL_MS)
                values = [record.value for records in polled.values() for record in records]
                self.report_progress(frozenset(place.partition for place in consumer.assignment()), values)
        finally:
            consumer.close()


class ConfluentThread(ConsumerThread):
    """confluent-kafka, which is librdkafka."""

    def consume(self, bootstrap: str, group: str, topic: str) -> None:
        """Poll; everything else happens in threads of the client's."""
        from confluent_kafka import Consumer as Client

        consumer = Client(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "topic.metadata.refresh.interval.ms": 1_000,
                "fetch.wait.max.ms": 100,
            }
        )
        try:
            consumer.subscribe([topic])
            while not self._leave.is_set():
                record = consumer.poll(POLL_MS / 1_000)
                value = record.value() if record is not None and record.error() is None else None
                assigned = frozenset(place.partition for place in consumer.assignment())
                self.report_progress(assigned, [value] if isinstance(value, bytes) else [])
        finally:
            consumer.close()


class AiokafkaThread(ConsumerThread):
    """aiokafka."""

    def consume(self, bootstrap: str, group: str, topic: str) -> None:
        """Run the client in a loop of its own."""
        asyncio.run(self._consume(bootstrap, group, topic))

    async def _consume(self, bootstrap: str, group: str, topic: str) -> None:
        from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

        consumer: Any = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=1_000,
        )
        await consumer.start()
        try:
            while not self._leave.is_set():
                polled = await consumer.getmany(timeout_ms=POLL_MS)
                values = [record.value for records in polled.values() for record in records]
                self.report_progress(frozenset(place.partition for place in consumer.assignment()), values)
        finally:
            await consumer.stop()


CLIENTS: dict[str, Callable[..., ConsumerThread]] = {
    "kafka-python": KafkaPythonThread,
    "aiokafka": AiokafkaThread,
    "confluent-kafka": ConfluentThread,
}


class RealClientGroup:
    """Real clients that consume TOPIC as members of one group."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._location = (bootstrap, group)
        self._changed = threading.Condition()
        self.members: list[ConsumerThread] = []

    def add_member(self, client: str) -> ConsumerThread:
        """Start a client, which joins the group."""
        member = CLIENTS[client](*self._location, TOPIC, self._changed)
        self.members.append(member)
        return member

    def remove_member(self, member: ConsumerThread) -> None:
        """Close a client, which leaves the group."""
        self.members.remove(member)
        member.leave()

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds` is true. Raises AssertionError after TIMEOUT_S seconds or when a member fails."""
        with self._changed:
            self._changed.wait_for(lambda: holds() or any(member.error for member in self.members), TIMEOUT_S)
            assert holds(), [(member.assigned, len(member.values), member.error) for member in self.members]

    def is_fully_assigned(self) -> bool:
        """Whether every member has a partition and every partition one owner."""
        shares = [member.assigned for member in self.members]
        return all(shares) and Counter(p for share in shares for p in share) == Counter(PARTITIONS)

    def has_consumed(self, values: set[bytes]) -> bool:
        """Whether the members together have received `values` and nothing else."""
        return {value for member in self.members for value in member.values} == values


def produce(bootstrap: str, numbers: range, **settings: str) -> set[bytes]:
    """Send one record for each number, spread over the partitions of TOPIC; return the values sent."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **settings})
    for number in numbers:
        producer.produce(TOPIC, value=b"%d" % number, key=b"k", partition=number % len(PARTITIONS))
    assert producer.flush(TIMEOUT_S) == 0
    return {b"%d" % number for number in numbers}
