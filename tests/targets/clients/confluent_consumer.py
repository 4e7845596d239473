"""One consumer of confluent-kafka, which is librdkafka, until SIGTERM. Arguments: bootstrap address, group, topic, and
settings as name=value."""

import signal
import sys
from types import FrameType

from confluent_kafka import Consumer

ending = False


def end(number: int, frame: FrameType | None) -> None:
    """Have the loop end."""
    global ending
    ending = True


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
signal.signal(signal.SIGTERM, end)
consumer.subscribe([topic])
while not ending:
    consumer.poll(0.2)
consumer.close()
