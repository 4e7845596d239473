"""The formats that members and assignors write into JoinGroup and SyncGroup: subscriptions, assignments, user data.

All but user data begin with a version. A version newer than the known ones is read by the newest known layout, and
surplus bytes are left alone (WIRE-02). User data of `sticky` and `cooperative-sticky` have no version; whatever cannot
be read as such claims nothing. member.md appendix C.
"""

from collections.abc import Iterable
from typing import Any

from fencepost.model.assignors.group import NO_GENERATION, Subscription, TopicPartition
from fencepost.model.wire.codec import Body, DecodedBody, decode_body, encode_body

SUBSCRIPTION = "ConsumerProtocolSubscription"
ASSIGNMENT = "ConsumerProtocolAssignment"
STICKY_USER_DATA = "StickyAssignorUserData"
COOPERATIVE_USER_DATA = "CooperativeStickyAssignorUserData"
NEWEST_VERSION = 3
_VERSION_BYTES = 2
_HARMLESS = ("surplus byte", "no UTF-8")
"""What findings of the codec say that leave a message readable."""


class ConsumerProtocolError(ValueError):
    """Bytes that are no subscription or assignment; the message is one line."""


def encode_subscription(subscription: Subscription, version: int = NEWEST_VERSION) -> bytes:
    """The bytes of a subscription. A version that lacks a field leaves it out; topics and partitions are sorted."""
    body: dict[str, Any] = {"topics": sorted(subscription.topics), "user_data": subscription.user_data}
    if version >= 1:
        body["owned_partitions"] = _group_by_topic(subscription.owned)
    if version >= 2:
        body["generation_id"] = subscription.generation
    if version >= 3:
        body["rack_id"] = subscription.rack
    return _with_version(version, encode_body(SUBSCRIPTION, version, body))


def decode_subscription(data: bytes) -> Subscription:
    """The subscription in these bytes. Raises ConsumerProtocolError if they are none."""
    body = _decode_versioned(SUBSCRIPTION, data)
    owned = body.get("owned_partitions", [])
    generation, rack = body.get("generation_id", NO_GENERATION), body.get("rack_id")
    return Subscription(tuple(body["topics"]), body["user_data"], _partitions_in(owned), generation, rack)


def encode_assignment(
    partitions: Iterable[TopicPartition], user_data: bytes | None = None, version: int = NEWEST_VERSION
) -> bytes:
    """The bytes of a member's assignment."""
    body = {"assigned_partitions": _group_by_topic(partitions), "user_data": user_data}
    return _with_version(version, encode_body(ASSIGNMENT, version, body))


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions of the assignment in these bytes. Raises ConsumerProtocolError if they are none.

    No bytes at all are the assignment of nothing: a member that the leader left out gets them.
    """
    return _partitions_in(_decode_versioned(ASSIGNMENT, data)["assigned_partitions"]) if data else ()


def encode_sticky_user_data(partitions: Iterable[TopicPartition], generation: int | None) -> bytes:
    """The user data of `sticky` after an assignment. Before the first one it is null (STICKY-18).

    Without a generation it has the older layout.
    """
    body: dict[str, Any] = {"previous_assignment": _group_by_topic(partitions)}
    if generation is None:
        return encode_body(STICKY_USER_DATA, 0, body)
    return encode_body(STICKY_USER_DATA, 1, body | {"generation": generation})


def decode_sticky_user_data(data: bytes | None) -> tuple[tuple[TopicPartition, ...], int] | None:
    """The claim and its generation, NO_GENERATION in the older layout; None if the bytes are neither (STICKY-11)."""
    if not data:
        return None
    for version in (1, 0):
        decoded = decode_body(STICKY_USER_DATA, version, data)
        if _fault_of(decoded) is None:
            body = decoded.body
            return _partitions_in(body["previous_assignment"]), body.get("generation", NO_GENERATION)
    return None


def encode_cooperative_user_data(generation: int = NO_GENERATION) -> bytes:
    """The user data of `cooperative-sticky`: the generation of the latest assignment."""
    return encode_body(COOPERATIVE_USER_DATA, 0, {"generation": generation})


def decode_cooperative_user_data(data: bytes | None) -> int:
    """The generation in the user data, NO_GENERATION if there is none."""
    if not data:
        return NO_GENERATION
    decoded = decode_body(COOPERATIVE_USER_DATA, 0, data)
    return NO_GENERATION if _fault_of(decoded) is not None else int(decoded.body["generation"])


def _with_version(version: int, body: bytes) -> bytes:
    return version.to_bytes(_VERSION_BYTES, signed=True) + body


def _decode_versioned(name: str, data: bytes) -> Body:
    """The body behind a version. Raises ConsumerProtocolError."""
    version = int.from_bytes(data[:_VERSION_BYTES], signed=True) if len(data) >= _VERSION_BYTES else -1
    if version < 0:
        raise ConsumerProtocolError(f"{name}: the version is {version if data else 'missing'}, expected 0 or more")
    decoded = decode_body(name, min(version, NEWEST_VERSION), data[_VERSION_BYTES:])
    if (fault := _fault_of(decoded)) is not None:
        raise ConsumerProtocolError(f"{name} version {version}: {fault}")
    return decoded.body


def _fault_of(decoded: DecodedBody) -> str | None:
    """Why the bytes cannot be read as they are meant, None if they can."""
    return next((each for each in decoded.findings if not any(word in each for word in _HARMLESS)), None)


def _group_by_topic(partitions: Iterable[TopicPartition]) -> list[Body]:
    """The partitions as the wire has them: sorted, so that equal ones give equal bytes (WIRE-04, KAFKA-12898)."""
    numbers: dict[str, list[int]] = {}
    for topic, number in sorted(set(partitions)):
        numbers.setdefault(topic, []).append(number)
    return [{"topic": topic, "partitions": each} for topic, each in numbers.items()]


def _partitions_in(topics: Iterable[Body]) -> tuple[TopicPartition, ...]:
    """The inverse of `_group_by_topic`."""
    return tuple((each["topic"], number) for each in topics for number in each["partitions"])
