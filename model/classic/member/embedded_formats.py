"""Subscriptions and assignments as values, and the bytes in which JoinGroup and SyncGroup carry them (appendix C)."""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from fencepost.model.classic.core.sorts import AssignmentBytes, MetadataBytes
from fencepost.model.classic.messages.requests import Partition
from fencepost.model.wire.codec import decode_body, encode_body

NEWEST_VERSION = 3
"""Of subscriptions and assignments alike."""
SUBSCRIPTION, ASSIGNMENT = "ConsumerProtocolSubscription", "ConsumerProtocolAssignment"


class UnreadableFormat(ValueError):
    """Bytes that are no subscription or no assignment."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """What a member says of itself when it joins; `generation` is -1 where it has none."""

    topics: tuple[str, ...]
    owned: tuple[Partition, ...] = ()
    generation: int = -1
    user_data: bytes | None = None
    rack: str | None = None
    version: int = NEWEST_VERSION


def encode_subscription(subscription: MemberSubscription) -> MetadataBytes:
    """The subscription as bytes, topics and owned partitions sorted (WIRE-01, WIRE-04)."""
    version = subscription.version
    body: dict[str, Any] = {"topics": sorted(subscription.topics), "user_data": subscription.user_data}
    if version >= 1:
        body["owned_partitions"] = topic_rows(subscription.owned)
    if version >= 2:
        body["generation_id"] = subscription.generation
    if version >= 3:
        body["rack_id"] = subscription.rack
    return MetadataBytes(struct.pack(">h", version) + encode_body(SUBSCRIPTION, version, body))


def decode_subscription(data: bytes) -> MemberSubscription:
    """The subscription in the bytes; a version that is newer than known is read as the newest (WIRE-02).

    Raises `UnreadableFormat`.
    """
    version, body = decode_versioned(SUBSCRIPTION, data)
    return MemberSubscription(
        topics=tuple(body["topics"]),
        owned=partitions_in(body.get("owned_partitions") or ()),
        generation=body.get("generation_id", -1),
        user_data=body.get("user_data"),
        rack=body.get("rack_id"),
        version=version,
    )


def encode_assignment(partitions: Iterable[Partition], version: int = NEWEST_VERSION) -> AssignmentBytes:
    """The assignment of these partitions as bytes."""
    body = {"assigned_partitions": topic_rows(partitions), "user_data": None}
    return AssignmentBytes(struct.pack(">h", version) + encode_body(ASSIGNMENT, version, body))


def decode_assignment(data: bytes) -> tuple[Partition, ...]:
    """The partitions in an assignment, sorted; no bytes at all are an empty assignment. Raises `UnreadableFormat`."""
    if not data:
        return ()
    _, body = decode_versioned(ASSIGNMENT, data)
    return partitions_in(body["assigned_partitions"])


def decode_versioned(name: str, data: bytes) -> tuple[int, Mapping[str, Any]]:
    """Version and body of embedded bytes. Raises `UnreadableFormat`."""
    if len(data) < 2:
        raise UnreadableFormat(f"{name}: {len(data)} bytes are too few for a version")
    (version,) = struct.unpack_from(">h", data)
    if version < 0:
        raise UnreadableFormat(f"{name}: version {version} is negative")
    decoded = decode_body(name, min(version, NEWEST_VERSION), data[2:])
    if any(key not in decoded.body for key in required_fields(name, version)):
        raise UnreadableFormat(f"{name}: {decoded.findings[0]}")
    return version, decoded.body


def required_fields(name: str, version: int) -> tuple[str, ...]:
    """The fields that a body of this version has."""
    if name == ASSIGNMENT:
        return ("assigned_partitions", "user_data")
    return ("topics", "user_data", "owned_partitions", "generation_id", "rack_id")[: 2 + min(version, NEWEST_VERSION)]


def topic_rows(partitions: Iterable[Partition]) -> list[dict[str, Any]]:
    """Partitions as the wire has them: one row for each topic, sorted."""
    by_topic = groupby(sorted(partitions), key=lambda partition: partition[0])
    return [{"topic": topic, "partitions": [number for _, number in row]} for topic, row in by_topic]


def partitions_in(rows: Iterable[Mapping[str, Any]]) -> tuple[Partition, ...]:
    """The partitions in such rows, sorted."""
    return tuple(sorted({(row["topic"], number) for row in rows for number in row["partitions"]}))


def encode_claims(partitions: Iterable[Partition], generation: int) -> bytes:
    """The user data of `sticky`: the last assignment and its generation (STICKY-18)."""
    rows = topic_rows(partitions)
    data = bytearray(struct.pack(">i", len(rows)))
    for row in rows:
        name = row["topic"].encode()
        numbers = row["partitions"]
        data += struct.pack(f">h{len(name)}si{len(numbers)}i", len(name), name, len(numbers), *numbers)
    return bytes(data + struct.pack(">i", generation))


def encode_generation(generation: int) -> bytes:
    """The user data of `cooperative-sticky`."""
    return struct.pack(">i", generation)
