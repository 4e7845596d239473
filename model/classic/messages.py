"""Requests and responses of the classic protocol as values, and how the bodies of requests are read into them.

The requests that every group gets, whatever its protocol, are those of `model/groups`. The topics in a subscription are
the one place where the coordinator looks into metadata. Byte layouts live in `model/wire`.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.protocol_selection import metadata_for
from fencepost.model.classic.core.state import (
    CoreResponse,
    Group,
    HeartbeatRequest,
    JoinRequest,
    LeaveRequest,
    Phase,
    Protocol,
    SyncRequest,
)
from fencepost.model.errors import Error
from fencepost.model.frozen import fast_frozen
from fencepost.model.groups.messages import (
    CommitRequest,
    DeleteGroup,
    DescribeGroup,
    EndTxn,
    GroupRequest,
    GroupResponse,
    ListGroups,
    Offset,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    Partition,
    TopicNames,
    TxnOffsetCommit,
)
from fencepost.model.logic import Token
from fencepost.model.sorts import Handle, HandleNumber


@fast_frozen
@dataclass(frozen=True, slots=True)
class JoinGroup:
    """JoinGroup as sent."""

    group: str
    core: JoinRequest


@fast_frozen
@dataclass(frozen=True, slots=True)
class SyncGroup:
    """SyncGroup as sent; `complete` is false from v5 if protocol type or name is null (SYNC-06). `failure` is the
    leader's reason why there is no assignment: only the proposal of client-side assignment has it."""

    group: str
    core: SyncRequest
    complete: bool
    failure: Error = Error.NONE


@fast_frozen
@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Heartbeat as sent."""

    group: str
    core: HeartbeatRequest


@fast_frozen
@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """LeaveGroup as sent."""

    group: str
    core: LeaveRequest


Request = JoinGroup | SyncGroup | Heartbeat | LeaveGroup | GroupRequest
Response = CoreResponse | GroupResponse


def handle_of(request: Request) -> int:
    """The handle that the answer to this request will carry."""
    if isinstance(request, JoinGroup | SyncGroup | Heartbeat | LeaveGroup | OffsetCommit | TxnOffsetCommit):
        return request.core.handle
    return request.handle


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


Body = Mapping[str, Any]
"""A message by field name (Kafka's schema names in snake case)."""
NO_TOPIC_NAMES: TopicNames = MappingProxyType({})


def id_token(value: str | None) -> Token:
    """A member id or type as the core sees it: the empty string is no id."""
    return value or None


def topic_of(row: Body, names: TopicNames) -> Any:
    """The topic that a row of a message is about: its name, or its id where no topic has that id."""
    return names.get(row["topic_id"], row["topic_id"]) if "topic_id" in row else row["name"]


def read_requests(
    api: str, version: int, body: Body, handle: int, groups: Iterable[str], names: TopicNames = NO_TOPIC_NAMES
) -> tuple[Request, ...]:
    """The requests in a message. `groups` are those that calls without a group id concern, `names` the topics by
    their ids. Other APIs have none."""
    if api == "ListGroups":
        states = frozenset(state.lower() for state in body.get("states_filter") or ())
        types = frozenset(kind.lower() for kind in body.get("types_filter") or ())
        return tuple(ListGroups(group, handle, states, types) for group in groups)
    if api == "EndTxn":
        producer, committed = body["producer_id"], body["committed"]
        return tuple(EndTxn(group, handle, producer, committed) for group in groups)
    if api in TOPIC_READERS:
        return TOPIC_READERS[api](version, body, HandleNumber(handle), names)
    reader = READERS.get(api)
    return () if reader is None else reader(version, body, HandleNumber(handle))


def read_join(version: int, body: Body, handle: Handle) -> tuple[Request, ...]:
    """JoinGroup; below v1 the rebalance timeout is the session timeout (JOIN-42)."""
    session = body["session_timeout_ms"]
    core = JoinRequest(
        handle=handle,
        member=id_token(body["member_id"]),
        instance=body.get("group_instance_id"),
        protocol_type=id_token(body["protocol_type"]),
        protocols=tuple(Protocol(protocol["name"], protocol["metadata"]) for protocol in body["protocols"]),
        session_timeout=session,
        rebalance_timeout=body["rebalance_timeout_ms"] if version >= 1 else session,
        requires_id=version >= 4,
        can_skip=version >= 9,
    )
    return (JoinGroup(body["group_id"], core),)


def read_sync(version: int, body: Body, handle: Handle) -> tuple[Request, ...]:
    """SyncGroup; the one of the proposal of client-side assignment may carry an error."""
    protocol_type, protocol = body.get("protocol_type"), body.get("protocol_name")
    core = SyncRequest(
        handle=handle,
        member=id_token(body["member_id"]),
        instance=body.get("group_instance_id"),
        generation=body["generation_id"],
        protocol_type=protocol_type if version >= 5 else None,
        protocol=protocol if version >= 5 else None,
        assignments=tuple((given["member_id"], given["assignment"]) for given in body.get("assignments") or ()),
    )
    complete = version < 5 or (protocol_type is not None and protocol is not None)
    return (SyncGroup(body["group_id"], core, complete, Error(body.get("sync_error_code", Error.NONE))),)


def read_heartbeat(version: int, body: Body, handle: Handle) -> tuple[Request, ...]:
    """The one request in the body of a Heartbeat of any version."""
    member, instance = id_token(body["member_id"]), body.get("group_instance_id")
    return (Heartbeat(body["group_id"], HeartbeatRequest(handle, member, instance, body["generation_id"])),)


def read_leave(version: int, body: Body, handle: Handle) -> tuple[Request, ...]:
    """LeaveGroup; below v3 it names one member."""
    if version < 3:
        entries: tuple[tuple[Token, Token], ...] = ((id_token(body["member_id"]), None),)
    else:
        entries = tuple((id_token(entry["member_id"]), entry.get("group_instance_id")) for entry in body["members"])
    return (LeaveGroup(body["group_id"], LeaveRequest(handle, entries)),)


def read_offsets(body: Body, names: TopicNames = NO_TOPIC_NAMES) -> tuple[tuple[Partition, Offset], ...]:
    """Every offset in a commit; null metadata is stored as the empty string (COMMIT-16)."""
    return tuple(
        (
            (topic_of(topic, names), partition["partition_index"]),
            Offset(
                partition["committed_offset"],
                partition.get("committed_leader_epoch", -1),
                partition.get("committed_metadata") or "",
            ),
        )
        for topic in body["topics"]
        for partition in topic["partitions"]
    )


def read_commit(version: int, body: Body, handle: Handle, names: TopicNames) -> tuple[Request, ...]:
    """OffsetCommit."""
    generation = body.get("generation_id_or_member_epoch", -1)
    core = CommitRequest(handle, id_token(body.get("member_id")), body.get("group_instance_id"), generation)
    retention = body.get("retention_time_ms", -1) if 2 <= version <= 4 else -1
    return (
        OffsetCommit(body["group_id"], core, version, read_offsets(body, names), None if retention < 0 else retention),
    )


def read_transactional_commit(version: int, body: Body, handle: Handle) -> tuple[Request, ...]:
    """TxnOffsetCommit."""
    member, instance = id_token(body.get("member_id")), body.get("group_instance_id")
    core = CommitRequest(handle, member, instance, body.get("generation_id", -1))
    return (
        TxnOffsetCommit(body["group_id"], core, body["producer_id"], read_offsets(body), body.get("producer_epoch", 0)),
    )


def read_fetch(version: int, body: Body, handle: int, names: TopicNames) -> tuple[Request, ...]:
    """OffsetFetch, of one group or of several from v8; null topics ask for all partitions."""
    stable = bool(body.get("require_stable", False))
    asked = body["groups"] if version >= 8 else (body,)
    return tuple(
        OffsetFetch(one["group_id"], handle, version, read_partitions(one["topics"], names), stable) for one in asked
    )


def read_partitions(topics: Iterable[Body] | None, names: TopicNames) -> tuple[Partition, ...] | None:
    """The partitions named in an OffsetFetch, None for all."""
    if topics is None:
        return None
    return tuple((topic_of(topic, names), index) for topic in topics for index in topic["partition_indexes"])


def read_describe(version: int, body: Body, handle: int) -> tuple[Request, ...]:
    """DescribeGroups."""
    return tuple(DescribeGroup(group, handle, version) for group in body["groups"])


def read_delete(version: int, body: Body, handle: int) -> tuple[Request, ...]:
    """DeleteGroups; duplicates are collapsed."""
    return tuple(DeleteGroup(group, handle) for group in dict.fromkeys(body["groups_names"]))


def read_delete_offsets(version: int, body: Body, handle: int) -> tuple[Request, ...]:
    """OffsetDelete."""
    partitions = tuple(
        (topic["name"], partition["partition_index"]) for topic in body["topics"] for partition in topic["partitions"]
    )
    return (OffsetDelete(body["group_id"], handle, partitions),)


READERS: Mapping[str, Callable[[int, Body, Handle], tuple[Request, ...]]] = {
    "JoinGroup": read_join,
    "SyncGroup": read_sync,
    "Heartbeat": read_heartbeat,
    "LeaveGroup": read_leave,
    "TxnOffsetCommit": read_transactional_commit,
    "DescribeGroups": read_describe,
    "DeleteGroups": read_delete,
    "OffsetDelete": read_delete_offsets,
}
"""How to read each request that names its group."""
TOPIC_READERS: Mapping[str, Callable[[int, Body, Handle, TopicNames], tuple[Request, ...]]] = {
    "OffsetCommit": read_commit,
    "OffsetFetch": read_fetch,
}
"""How to read those that may name topics by their ids."""
