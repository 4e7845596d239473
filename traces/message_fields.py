"""Fields of message bodies for queries. A body may hold anything: values of the wrong type count as absent."""

import struct
from collections.abc import Iterator, Mapping
from typing import Any

Body = Mapping[str, Any]
PartitionOffsets = list[tuple[str, int, int]]
"""(topic, partition, offset) triples."""
LATEST_TIMESTAMP = -1
"""The timestamp that asks ListOffsets for the end of the log."""


def encodable_text(value: Any) -> Any:
    """`value` as a string that UTF-8 can encode; None if it is not a string."""
    if not isinstance(value, str):
        return None
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")


def int32(value: Any) -> int | None:
    """`value` if it is an integer of 32 bits, else None."""
    return value if type(value) is int and -(2**31) <= value < 2**31 else None


def int64(value: Any) -> int | None:
    """`value` if it is an integer of 64 bits, else None."""
    return value if type(value) is int and -(2**63) <= value < 2**63 else None


def objects_in(body: Any, key: str) -> Iterator[Body]:
    """Yield the objects in the array `body[key]`."""
    found = body.get(key)
    for row in found if isinstance(found, list) else ():
        if isinstance(row, dict):
            yield row


def named_groups(body: Body) -> list[str]:
    """The groups that a request names; empty if it concerns all groups or none."""
    group = body.get("group_id")
    if isinstance(group, str):
        return [group]
    for key in ("groups", "groups_names"):
        named = body.get(key)
        if isinstance(named, list):
            ids = (row.get("group_id") if isinstance(row, dict) else row for row in named)
            return list(dict.fromkeys(each for each in ids if isinstance(each, str)))
    return []


def common_error(response: Body) -> int | None:
    """The error code of a response, else that of its partitions if all have the same, else None."""
    if "error_code" in response:
        return int32(response["error_code"])
    codes = {
        int32(row.get("error_code"))
        for topic in objects_in(response, "topics")
        for row in objects_in(topic, "partitions")
    }
    return codes.pop() if len(codes) == 1 else None


def topic_names(response: Body) -> dict[str, str]:
    """Topic names by id in a Metadata response."""
    found = ((topic.get("topic_id"), topic.get("name")) for topic in objects_in(response, "topics"))
    return {id: name for id, name in found if isinstance(id, str) and isinstance(name, str)}


def topic_name_of(topic: Body, names: Mapping[str, str]) -> str | None:
    """The name of a topic in a message; its id if the name is unknown."""
    name = topic.get("name", topic.get("topic"))
    id = topic.get("topic_id")
    found: str | None = encodable_text(
        name if isinstance(name, str) else names.get(id, id) if isinstance(id, str) else None
    )
    return found


def accepted_offsets(request: Body, response: Body, names: Mapping[str, str]) -> PartitionOffsets | None:
    """The accepted offsets of a commit; None if none was accepted."""
    kept = {
        (topic_name_of(topic, names), int32(row.get("partition_index")))
        for topic in objects_in(response, "topics")
        for row in objects_in(topic, "partitions")
        if row.get("error_code") == 0
    }
    found = [
        (name, partition, offset)
        for topic in objects_in(request, "topics")
        if (name := topic_name_of(topic, names)) is not None
        for row in objects_in(topic, "partitions")
        if (partition := int32(row.get("partition_index"))) is not None and (name, partition) in kept
        if (offset := int64(row.get("committed_offset"))) is not None
    ]
    return found or None


def log_end_offsets(api: str, request: Body, response: Body, names: Mapping[str, str]) -> PartitionOffsets | None:
    """The ends of partitions in a Fetch response, or in a ListOffsets response for the latest timestamp."""
    key, field = ("responses", "high_watermark") if api == "Fetch" else ("topics", "offset")
    asked = {
        (topic_name_of(topic, names), int32(row.get("partition_index")))
        for topic in objects_in(request, "topics")
        for row in objects_in(topic, "partitions")
        if row.get("timestamp") == LATEST_TIMESTAMP
    }
    found = [
        (name, partition, offset)
        for topic in objects_in(response, key)
        if (name := topic_name_of(topic, names)) is not None
        for row in objects_in(topic, "partitions")
        if row.get("error_code") == 0 and (partition := int32(row.get("partition_index"))) is not None
        if api == "Fetch" or (name, partition) in asked
        if (offset := int64(row.get(field))) is not None and offset >= 0
    ]
    return found or None


def partitions_in(assignment: Any) -> list[str]:
    """The partitions in an assignment of Kafka's consumer protocol, as `topic/number`; empty if it is malformed."""
    if not isinstance(assignment, bytes):
        return []
    found: list[str] = []
    try:
        _, topics = struct.unpack_from(">hi", assignment)
        position = 6
        for _ in range(min(topics, len(assignment))):
            (length,) = struct.unpack_from(">h", assignment, position)
            name = assignment[position + 2 : position + 2 + length].decode()
            position += 2 + length
            (count,) = struct.unpack_from(">i", assignment, position)
            if not 0 <= count <= len(assignment):
                return []
            numbers = struct.unpack_from(f">{count}i", assignment, position + 4)
            position += 4 + 4 * count
            found += (f"{name}/{number}" for number in numbers)
    except (struct.error, UnicodeDecodeError, OverflowError):
        return []
    return found


def assigned_partitions(response: Body) -> list[str]:
    """The partitions that a SyncGroup response assigns, each once."""
    return list(dict.fromkeys(partitions_in(response.get("assignment"))))


def double_assigned(request: Body) -> list[str] | None:
    """The partitions that a SyncGroup request assigns to more than one member; None if there are none."""
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for row in objects_in(request, "assignments"):
        mine = set(partitions_in(row.get("assignment")))
        twice |= dict.fromkeys(sorted(mine & seen))
        seen |= mine
    return list(twice) or None


def poll_counts(body: Body) -> PartitionOffsets | None:
    """The counts of a poll: (partition, records still buffered, records returned) triples; None if there are none."""
    left, returned = body.get("buffered"), body.get("returned")
    left, returned = (each if isinstance(each, dict) else {} for each in (left, returned))
    names = sorted(name for name in {*left, *returned} if isinstance(name, str))
    found = [(encodable_text(name), int64(left.get(name, 0)) or 0, int64(returned.get(name, 0)) or 0) for name in names]
    return found or None
