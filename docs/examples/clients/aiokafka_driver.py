"""A driver for aiokafka: `fencepost test-client --driven -- python aiokafka_driver.py [name=value...]`."""

import asyncio
import json
import os
import sys
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition  # type: ignore[import-untyped]


def say(message: dict[str, Any]) -> None:
    """Write a message for the kit."""
    print(json.dumps(message), flush=True)


def number(text: str) -> Any:
    """A setting as a number, if it is one."""
    return int(text) if text.isdecimal() else text


def pairs(partitions: Any) -> list[list[Any]]:
    """Partitions as the kit has them."""
    return [[each.topic, each.partition] for each in partitions]


def partitions_of(command: dict[str, Any]) -> list[Any]:
    """The partitions of a command, as the client has them."""
    return [TopicPartition(topic, index) for topic, index in command["partitions"]]


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Says every callback; there is none about lost partitions."""

    async def on_partitions_revoked(self, revoked: Any) -> None:
        say({"event": "revoked", "partitions": pairs(revoked)})

    async def on_partitions_assigned(self, assigned: Any) -> None:
        say({"event": "assigned", "partitions": pairs(assigned)})


async def obey(consumer: Any, command: dict[str, Any]) -> str:
    """Carry out a command; what could not be done, "" for nothing."""
    match command["do"]:
        case "subscribe":
            consumer.subscribe(command.get("topics", ()), pattern=command.get("pattern"), listener=Listener())
        case "poll":
            polled = await consumer.getmany(timeout_ms=command["ms"])
            if polled:
                say({"records": [[each.topic, each.partition, each.offset] for row in polled.values() for each in row]})
        case "commit":
            await consumer.commit()
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
            await consumer.stop()
        case _:
            return "unsupported"
    return ""


async def drive() -> None:
    """Carry out commands until the client is closed."""
    settings: dict[str, Any] = {
        "auto_offset_reset": "earliest",
        "session_timeout_ms": 6_000,
        "heartbeat_interval_ms": 500,
        "max_poll_interval_ms": 6_000,
        "rebalance_timeout_ms": 6_000,
        "max_poll_records": 500,
        "metadata_max_age_ms": 1_000,
        "auto_commit_interval_ms": 1_000,
        **{name: number(value) for name, value in (word.split("=", 1) for word in sys.argv[1:])},
    }
    consumer = AIOKafkaConsumer(
        bootstrap_servers=os.environ["FENCEPOST_BOOTSTRAP"], group_id=os.environ["FENCEPOST_GROUP"], **settings
    )
    await consumer.start()
    say(
        {
            "ready": {
                "callbacks": ["assigned", "revoked"],
                "max_poll_records": settings["max_poll_records"],
                "auto_commit": True,
            }
        }
    )
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        try:
            problem = await obey(consumer, command)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        say({"error": problem, "of": command["id"]} if problem else {"done": command["id"]})
        if command["do"] == "close":
            break


asyncio.run(drive())
