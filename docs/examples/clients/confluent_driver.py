"""A driver for confluent-kafka, which is librdkafka: `fencepost test-client --driven -- python confluent_driver.py
[name=value...]`."""

import json
import os
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition


def say(message: dict[str, Any]) -> None:
    """Write a message for the kit."""
    print(json.dumps(message), flush=True)


def pairs(partitions: Any) -> list[list[Any]]:
    """Partitions as the kit has them."""
    return [[each.topic, each.partition] for each in partitions]


def partitions_of(command: dict[str, Any]) -> list[TopicPartition]:
    """The partitions of a command, as the client has them."""
    return [TopicPartition(topic, index) for topic, index in command["partitions"]]


def call_back(event: str) -> Any:
    """A listener that says its callbacks."""
    return lambda consumer, partitions: say({"event": event, "partitions": pairs(partitions)})


def poll(milliseconds: int) -> str:
    """Return the records that come until then; the last error of the client, "" for none."""
    records: list[list[Any]] = []
    problem, deadline = "", time.monotonic() + milliseconds / 1000
    while (left := deadline - time.monotonic()) > 0 and not problem:
        message = consumer.poll(0 if records else left)
        if message is None:
            break
        error = message.error()
        if error is not None:
            problem = error.name()
        else:
            records.append([message.topic(), message.partition(), message.offset()])
    if records:
        say({"records": records})
    return problem


def obey(command: dict[str, Any]) -> str:
    """Carry out a command; what could not be done, "" for nothing."""
    match command["do"]:
        case "subscribe":
            callbacks = {
                f"on_{event}": call_back({"assign": "assigned", "revoke": "revoked"}.get(event, event))
                for event in ("assign", "revoke", "lost")
            }
            topics = [f"^{command['pattern']}"] if "pattern" in command else command["topics"]
            consumer.subscribe(topics, **callbacks)
        case "poll":
            return poll(command["ms"])
        case "commit":
            consumer.commit(asynchronous=False)
        case "pause":
            consumer.pause(partitions_of(command))
        case "resume":
            consumer.resume(partitions_of(command))
        case "seek":
            consumer.seek(TopicPartition(command["topic"], command["partition"], command["offset"]))
        case "assign":
            consumer.assign(partitions_of(command))
            kept["manual"] = True
        case "unsubscribe":
            if kept.pop("manual", None):
                consumer.unassign()  # unsubscribe leaves what the application has assigned
            consumer.unsubscribe()
            problem, deadline = poll(500), time.monotonic() + 5  # polls call the listener back
            while consumer.assignment() and time.monotonic() < deadline:
                problem = poll(100) or problem
            return problem
        case "close":
            consumer.close()
        case _:
            return "unsupported"
    return ""


kept: dict[str, bool] = {}
"""`manual` while the application has assigned its partitions itself."""
consumer = Consumer(
    {
        "bootstrap.servers": os.environ["FENCEPOST_BOOTSTRAP"],
        "group.id": os.environ["FENCEPOST_GROUP"],
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 500,
        "max.poll.interval.ms": 6_000,
        "topic.metadata.refresh.interval.ms": 1_000,
        "auto.commit.interval.ms": 1_000,
        **dict(setting.split("=", 1) for setting in sys.argv[1:]),
    }
)
say({"ready": {"callbacks": ["assigned", "revoked", "lost"], "auto_commit": True}})
for line in sys.stdin:
    command = json.loads(line)
    try:
        problem = obey(command)
    except KafkaException as error:
        problem = str(error.args[0].name())
    say({"error": problem, "of": command["id"]} if problem else {"done": command["id"]})
    if command["do"] == "close":
        break
