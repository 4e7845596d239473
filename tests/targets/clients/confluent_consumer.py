"""One consumer of confluent-kafka, which is librdkafka, until SIGTERM. Arguments: bootstrap address, group, topic, and
settings as name=value."""

import signal
import sys

from confluent_kafka import Consumer

bootstrap, group, topic, *settings = sys.argv[1:]
consumer = Consumer(
    {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 500,
        "max.poll.interval.ms": 6_000,
        "topic.metadata.refresh.interval.ms": 1_000,
        "auto.commit.interval.ms": 1_000,
        **dict(setting.split("=", 1) for setting in settings),
    }
)
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
consumer.subscribe([topic])
try:
    while True:
        consumer.poll(0.2)
finally:
    consumer.close()
