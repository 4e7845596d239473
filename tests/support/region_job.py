"""A region that reads a topic of a Kafka to its end, with rebalances that force resets and crashes of operators."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from fencepost.adapters.region.controller import RegionMode, RegionProgram, RegionSettings
from fencepost.adapters.region.kafka import Downstream, Offsets, Partition
from fencepost.adapters.region.kafka_consumer import KafkaGroup, NetworkConsumer

LOOK_SECONDS = 0.05
TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Load:
    """What goes through a region, and what happens meanwhile, evenly spread over the records."""

    records: int
    partitions: int = 3
    rebalances: int = 0
    """How often the group is made to rebalance; an operator that has fetched forces a reset then."""
    crashes: int = 0
    operators: Sequence[str] = ("A", "B", "C")


@dataclass(slots=True)
class JobResult:
    """How it ended: the last complete checkpoint's downstream, and what it took."""

    downstream: Downstream
    ends: Offsets
    resets: int
    checkpoints: int
    seconds: float
    crashes: list[str] = field(default_factory=list)
    has_failed: bool = False

    def faults(self) -> str:
        """The losses and duplicates in words; empty if there are none."""
        found = self.downstream
        if found.duplicates or found.gaps:
            return f"{found.duplicates} came twice, {found.gaps} gaps"
        if found.taken != self.ends or found.next != self.ends:
            return f"{sum(found.taken.values())} of {sum(self.ends.values())} came"
        return ""


def fill_topic(bootstrap: str, topic: str, load: Load) -> Offsets:
    """Make a topic with the records of a load; returns the ends of its logs."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, load.partitions, 1)]).values():
        made.result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 2_000_000})
    for number in range(load.records):
        producer.produce(topic, value=b"%d" % number, partition=number % load.partitions)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    whole, rest = divmod(load.records, load.partitions)
    return {(topic, one): whole + (one < rest) for one in range(load.partitions)}


def add_partition(bootstrap: str, topic: str, count: int, records: int) -> None:
    """Have a topic grow to `count` partitions, and put records into the last one."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_partitions([NewPartitions(topic, count)]).values():
        made.result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": bootstrap, "topic.metadata.refresh.interval.ms": 200})
    for number in range(records):
        producer.produce(topic, value=b"%d" % number, partition=count - 1)
    assert producer.flush(TIMEOUT_S) == 0


def delete_records(bootstrap: str, topic: str, partition: int, before: int) -> None:
    """Delete the records of a partition before an offset."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for gone in admin.delete_records([TopicPartition(topic, partition, before)]).values():
        gone.result(TIMEOUT_S)


def log_start(bootstrap: str, partition: Partition) -> int:
    """Where a log begins."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "log-start"})
    first, _ = consumer.get_watermark_offsets(TopicPartition(*partition), TIMEOUT_S)
    consumer.close()
    return int(first)


async def run_job(
    group: KafkaGroup, load: Load, ends: Offsets, settings: RegionSettings, timeout: float = TIMEOUT_S
) -> JobResult:
    """Run a region until every record is in a complete checkpoint, it has failed, or time is over (seconds)."""
    region = RegionProgram(tuple(load.operators), group.make_consumer, settings)
    begun = time.monotonic()
    crashed: list[str] = []
    running = asyncio.create_task(region.run())
    try:
        async with asyncio.timeout(timeout):
            troubles = asyncio.create_task(cause_troubles(region, load, crashed))
            while region.last.downstream.next != ends and not running.done():
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        pass
    finally:
        troubles.cancel()
        running.cancel()
        await asyncio.gather(running, troubles, return_exceptions=True)
    seconds = time.monotonic() - begun
    has_failed = region.mode is RegionMode.FAILED
    return JobResult(region.last.downstream, ends, region.resets, region.last.number, seconds, crashed, has_failed)


async def cause_troubles(region: RegionProgram, load: Load, crashed: list[str]) -> None:
    """Each trouble once downstream has got its part of the records."""
    count = load.rebalances + load.crashes
    every = count // load.crashes if load.crashes else 0
    for number in range(1, count + 1):
        due = load.records * number // (count + 1)
        while sum(region.downstream.taken.values()) < due or region.mode is not RegionMode.RUN:
            await asyncio.sleep(LOOK_SECONDS)
        name = load.operators[number % len(load.operators)]
        if every and number % every == 0 and len(crashed) < load.crashes:
            crashed.append(name)
            region.crash(name)
        elif name in region.operators:
            consumer = region.operators[name].operator.consumer
            assert isinstance(consumer, NetworkConsumer)
            consumer.enforce_rebalance()
