"""One consumer of aiokafka, until SIGTERM. Arguments: bootstrap address, group, topic."""

import asyncio
import signal
import sys

from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]


async def consume(bootstrap: str, group: str, topic: str) -> None:
    """Poll until SIGTERM."""
    ending = asyncio.Event()
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
        max_poll_interval_ms=6_000,
        rebalance_timeout_ms=6_000,
        metadata_max_age_ms=1_000,
        auto_commit_interval_ms=1_000,
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    await consumer.start()
    while not ending.is_set():
        await consumer.getmany(timeout_ms=200)
    await consumer.stop()


asyncio.run(consume(*sys.argv[1:4]))
