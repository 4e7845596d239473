"""The one place where the coordinator looks into metadata: the topics a `consumer` group subscribes to."""

import struct
from typing import Any

from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.protocol_selection import metadata_for
from fencepost.model.classic.core.state import Group, Phase

CONSUMER = "consumer"
"""The protocol type whose metadata is a subscription."""


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """The union of the members' topics, None if some metadata cannot be read (ADMIN-30, ADMIN-31)."""
    if group.protocol_type != CONSUMER:
        return None
    if group.phase == Phase.EMPTY:
        return frozenset()
    topics: set[str] = set()
    for slot in group.slots:
        if is_member(slot):
            metadata: Any = metadata_for(slot, group.protocol)
            named = topics_of(metadata)
            if named is None:
                return None
            topics |= named
    return frozenset(topics)


def topics_of(metadata: bytes | None) -> frozenset[str] | None:
    """The topics in a subscription (its version 0 prefix), None if the bytes are not one."""
    if metadata is None:
        return None
    try:
        _, count = struct.unpack_from(">hi", metadata)
        position, topics = 6, set()
        for _ in range(min(count, len(metadata))):
            (length,) = struct.unpack_from(">h", metadata, position)
            position += 2
            topics.add(metadata[position : position + length].decode())
            position += length
    except (struct.error, UnicodeDecodeError):
        return None
    return None if count < 0 or count > len(metadata) or position > len(metadata) else frozenset(topics)
