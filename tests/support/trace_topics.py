"""Traces in Kafka topics, for tests."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from fencepost.traces.pipeline.topics import Topic, find_topic


def create_topic(address: str, name: str, partitions: int = 1) -> Topic:
    """A new topic."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    admin.create_topics([NewTopic(name, partitions, 1)], request_timeout=30)[name].result(30)
    return find_topic(f"kafka://{address}/{name}", {})


def produce_records(
    address: str, topic: str, records: Iterable[tuple[str | None, bytes | None]], settings: Mapping[str, str] = {}
) -> None:
    """Write records, each with its key and its value."""
    client = {"bootstrap.servers": address, "log_level": 0, "acks": "all", "queue.buffering.max.messages": 10_000_000}
    producer = Producer({**client, **settings})
    for key, value in records:
        producer.produce(topic, value, key)
        producer.poll(0)
    assert producer.flush(60) == 0


def records_of(path: Path, key: str, *, ends: bool = True) -> list[tuple[str | None, bytes | None]]:
    """The lines of a trace file as records, and the one that ends the trace."""
    lines: list[tuple[str | None, bytes | None]] = [(key, line) for line in path.read_bytes().splitlines()]
    return [*lines, (key, None)] if ends else lines
