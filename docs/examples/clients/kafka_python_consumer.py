"""One consumer of kafka-python, until SIGTERM. Arguments: bootstrap address, group, topic."""

import signal
import sys
import warnings

warnings.simplefilter("ignore")  # its schemas are read in a deprecated way
from kafka import KafkaConsumer  # type: ignore[import-untyped]  # noqa: E402

bootstrap, group, topic = sys.argv[1:4]
consumer = KafkaConsumer(
    topic,
    bootstrap_servers=bootstrap,
    group_id=group,
    auto_offset_reset="earliest",
    session_timeout_ms=6_000,
    heartbeat_interval_ms=500,
    max_poll_interval_ms=6_000,
    metadata_max_age_ms=1_000,
    auto_commit_interval_ms=1_000,
)
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
try:
    while True:
        consumer.poll(timeout_ms=200)
finally:
    consumer.close()
