"""What a push target is asked before a run: where its coordinator is, and what partitions a topic has."""

import asyncio
from collections.abc import Mapping

from fencepost.adapters.address import Address
from fencepost.adapters.push.channel import PushChannel
from fencepost.model.push.interest import Interest, format_interest
from fencepost.model.push.wire import Body

PROBE_SECONDS = 20.0
PROBE_TIMEOUT_MS = 3_000
"""The session timeout of the probing consumer where no bounds are told."""


def registration(group: str, consumer: str, topics: Interest, timeout_ms: int, *, auto_commit: bool = False) -> Body:
    """The body of a registration."""
    return {
        "group": group,
        "consumer": consumer,
        "topic_count": format_interest(topics),
        "auto_commit": auto_commit,
        "auto_offset_reset": "smallest",
        "session_timeout_ms": timeout_ms,
    }


def coordinator_address(metadata: Body) -> Address | None:
    """Where the coordinator is, as a broker says; None if it does not know."""
    if metadata["error_code"]:
        return None
    places = {each["id"]: (each["host"], each["port"]) for each in metadata["brokers"]}
    return places.get(metadata["coordinator_id"])


async def find_coordinator(channel: PushChannel, member: str = "") -> Address | None:
    """The address of the coordinator, as the first broker that knows it says."""
    for address in channel.bootstrap:
        connection = await channel.open(member, address)
        if connection is None:
            continue
        metadata = await connection.ask("ClusterMetadata", {})
        connection.drop()
        found = None if metadata is None else coordinator_address(metadata)
        if found is not None:
            return found
    return None


class UnusableTarget(Exception):
    """What is wrong with a target, in words."""


async def probe_topic(channel: PushChannel, topic: str, limits: Mapping[str, int]) -> list[str]:
    """Register a consumer of the topic and return its partitions. Raises `UnusableTarget`."""
    address = await find_coordinator(channel)
    if address is None:
        raise UnusableTarget("no broker answers with a coordinator")
    connection = await channel.open("", address)
    if connection is None:
        raise UnusableTarget("its coordinator cannot be reached")
    timeout = limits.get("session_timeout_ms", PROBE_TIMEOUT_MS)
    answer = await connection.ask("RegisterConsumer", registration("probe", "probe", Interest(((topic, 1),)), timeout))
    if answer is None or answer["error_code"]:
        told = "no response" if answer is None else f"error {answer['error_code']}"
        raise UnusableTarget(
            f"a registration with a session timeout of {timeout} ms gets {told}; say session_timeout_ms in [limits]"
        )
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            while (request := await connection.next_request()) is not None:
                attempt = {"attempt": request.body["attempt"]} if "attempt" in request.body else {}
                if request.api == "Start":
                    connection.respond(request, {**attempt, "error_code": 0})
                    return [entry["partition"] for entry in request.body["partitions"]]
                connection.respond(request, {**attempt, **({"partitions": []} if request.api == "Stop" else {})})
    except TimeoutError:
        pass
    raise UnusableTarget(f"a consumer of {topic!r} is told of no partitions within {PROBE_SECONDS:g} s")
