"""What the coordinator reads of JoinGroup: the request, and the subscription in a consumer's metadata."""

import struct
from dataclasses import dataclass

from fencepost.adapters.serve.coordination import Request


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """A parsed JoinGroup request (timeouts in milliseconds, protocols in the order of preference)."""

    request: Request
    group_id: str
    member_id: str
    instance_id: str | None
    session_timeout: int
    rebalance_timeout: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]

    @classmethod
    def read(cls, request: Request) -> "JoinGroup":
        """Parse the body of the request."""
        body = request.body
        session_timeout = body.get("session_timeout_ms", 0)
        return cls(
            request,
            body.get("group_id", ""),
            body.get("member_id", ""),
            body.get("group_instance_id"),
            session_timeout,
            # JOIN-42: version 0 has no rebalance timeout of its own.
            session_timeout if request.version == 0 else body.get("rebalance_timeout_ms", -1),
            body.get("protocol_type", ""),
            tuple((protocol["name"], bytes(protocol.get("metadata", b""))) for protocol in body.get("protocols", ())),
        )

    @property
    def is_static(self) -> bool:
        """Whether the request has an instance id (KIP-345)."""
        return self.instance_id is not None


# --- The subscribed topics in a consumer's metadata, the only part of metadata that a coordinator reads.
#
# Needed for OffsetDelete's error 86 and for expiry only; to everything else the bytes are opaque.

CONSUMER = "consumer"
"""The protocol type whose metadata is a subscription."""

_COUNT_AT = 2  # after the version, which changes nothing in this part
_COUNT = struct.Struct(">i")
_LENGTH = struct.Struct(">h")


class UnreadableSubscription(Exception):
    """The bytes do not begin like a subscription."""


def read_topics(metadata: bytes) -> frozenset[str]:
    """The topics in the part that all versions share: int16 version, int32 count, strings with int16 lengths.

    The rest is ignored. Raises `UnreadableSubscription` on anything else, however absurd its lengths.
    """
    try:
        (count,) = _COUNT.unpack_from(metadata, _COUNT_AT)
        position = _COUNT_AT + _COUNT.size
        # Every topic takes at least its length field: an absurd count is refused before it is counted to.
        if not 0 <= count <= (len(metadata) - position) // _LENGTH.size:
            raise UnreadableSubscription(f"{count} topics in {len(metadata)} bytes")
        topics = set()
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(metadata, position)
            position += _LENGTH.size
            if not 0 <= length <= len(metadata) - position:
                raise UnreadableSubscription(f"a topic of {length} bytes at byte {position}")
            topics.add(metadata[position : position + length].decode())
            position += length
    except (struct.error, UnicodeDecodeError) as error:
        raise UnreadableSubscription(str(error)) from error
    return frozenset(topics)
