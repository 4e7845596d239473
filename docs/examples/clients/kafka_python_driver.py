"""A driver for kafka-python: `fencepost test-client --driven -- python kafka_python_driver.py [name=value...]`."""

import json
import os
import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")  # its schemas are read in a deprecated way
from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition  # type: ignore[import-untyped]  # noqa: E402

MAX_POLL_RECORDS = 500


def say(message: dict[str, Any]) -> None:
    """Write a message for the kit."""
    print(json.dumps(message), flush=True)


def number(text: str) -> Any:
    """A setting as a number, if it is one."""
    return int(text) if text.isdecimal() else text


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Says every callback."""

    def on_partitions_revoked(self, revoked: Any) -> None:
        say({"event": "revoked", "partitions": pairs(revoked)})

    def on_partitions_assigned(self, assigned: Any) -> None:
        say({"event": "assigned", "partitions": pairs(assigned)})

    def on_partitions_lost(self, lost: Any) -> None:
        say({"event": "lost", "partitions": pairs(lost)})


def pairs(partitions: Any) -> list[list[Any]]:
    """Partitions as the kit has them."""
    return [[each.topic, each.partition] for each in partitions]


def partitions_of(command: dict[str, Any]) -> list[Any]:
    """The partitions of a command, as the client has them."""
    return [TopicPartition(topic, index) for topic, index in command["partitions"]]


def report(number: int, result: Any) -> None:
    """Say what came of a commit that was not waited for."""
    failed = {"error": f"{type(result).__name__}: {result}"} if isinstance(result, Exception) else {}
    say({"committed": number, **failed})


def obey(command: dict[str, Any]) -> str:
    """Carry out a command; what could not be done, "" for nothing."""
    match command["do"]:
        case "subscribe":
            consumer.subscribe(command.get("topics", ()), pattern=command.get("pattern"), listener=Listener())
        case "poll":
            polled = consumer.poll(timeout_ms=command["ms"])
            if polled:
                say({"records": [[each.topic, each.partition, each.offset] for row in polled.values() for each in row]})
        case "commit":
            consumer.commit()
        case "commit_async":
            consumer.commit_async(callback=lambda offsets, result: report(command["id"], result))
        case "pause":
            consumer.pause(*partitions_of(command))
        case "resume":
            consumer.resume(*partitions_of(command))
        case "seek":
            consumer.seek(TopicPartition(command["topic"], command["partition"]), command["offset"])
        case "assign":
            consumer.assign(partitions_of(command))
        case "unsubscribe":
            consumer.unsubscribe()
        case "close":
            consumer.close()
        case _:
            return "unsupported"
    return ""


settings: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 500,
    "max_poll_interval_ms": 6_000,
    "max_poll_records": MAX_POLL_RECORDS,
    "metadata_max_age_ms": 1_000,
    "auto_commit_interval_ms": 1_000,
    **{name: number(value) for name, value in (word.split("=", 1) for word in sys.argv[1:])},
}
consumer = KafkaConsumer(
    bootstrap_servers=os.environ["FENCEPOST_BOOTSTRAP"], group_id=os.environ["FENCEPOST_GROUP"], **settings
)
callbacks = ["assigned", "revoked", "lost"]
say({"ready": {"callbacks": callbacks, "max_poll_records": settings["max_poll_records"], "auto_commit": True}})
for line in sys.stdin:
    command = json.loads(line)
    try:
        problem = obey(command)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    say({"error": problem, "of": command["id"]} if problem else {"done": command["id"]})
    if command["do"] == "close":
        break
