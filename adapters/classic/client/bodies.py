"""Requests of the reference client as bodies of the wire codec, and responses as it takes them."""

from collections.abc import Callable, Mapping
from typing import Any

from fencepost.model.classic.core.state import HeartbeatResponse, JoinResponse, LeaveResponse, MemberView, SyncResponse
from fencepost.model.classic.member.client import (
    ClientResponse,
    FindCoordinator,
    FindCoordinatorResponse,
    ListOffsets,
    ListOffsetsResponse,
)
from fencepost.model.classic.member.step import SendRequest
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup, SyncGroup, id_token
from fencepost.model.errors import Error
from fencepost.model.groups.messages import Offset, OffsetCommit, OffsetFetch, OffsetFetchResponse, PartitionErrors
from fencepost.model.sorts import AssignmentBytes
from fencepost.model.wire.codec import Body


def body_of(output: SendRequest) -> tuple[str, dict[str, Any]]:
    """The API and the body of a request of the model."""
    match output.request:
        case FindCoordinator(group=group):
            return "FindCoordinator", {"key": group, "key_type": 0}
        case JoinGroup(group=group, core=core):
            protocols: list[Any] = [{"name": one.name, "metadata": one.metadata} for one in core.protocols]
            timeouts = {"session_timeout_ms": core.session_timeout, "rebalance_timeout_ms": core.rebalance_timeout}
            named: dict[str, Any] = {"protocol_type": "consumer", "protocols": protocols}
            named["reason"] = output.reason or None
            return "JoinGroup", {**identity(group, core.member, core.instance), **timeouts, **named}
        case SyncGroup(group=group, core=core):
            assignments = [{"member_id": id, "assignment": given} for id, given in core.assignments]
            member = {**identity(group, core.member, core.instance), "generation_id": core.generation}
            named = {"protocol_type": core.protocol_type, "protocol_name": core.protocol, "assignments": assignments}
            return "SyncGroup", {**member, **named}
        case Heartbeat(group=group, core=core):
            return "Heartbeat", {**identity(group, core.member, core.instance), "generation_id": core.generation}
        case LeaveGroup(group=group, core=core):
            rows = [
                {"member_id": id, "group_instance_id": one, "reason": output.reason or None} for id, one in core.entries
            ]
            return "LeaveGroup", {"group_id": group, "members": rows}
        case OffsetCommit(group=group, core=core):
            topics = by_topic(
                (partition, {"partition_index": partition[1], "committed_offset": offset.offset})
                for partition, offset in output.request.offsets
            )
            generation = {"generation_id_or_member_epoch": core.generation}
            return "OffsetCommit", {**identity(group, core.member, core.instance), **generation, "topics": topics}
        case OffsetFetch(group=group, partitions=partitions):
            found: dict[str, list[int]] = {}
            for topic, number in partitions or ():
                found.setdefault(topic, []).append(number)
            asked = [{"name": name, "partition_indexes": numbers} for name, numbers in found.items()]
            return "OffsetFetch", {"group_id": group, "topics": asked, "require_stable": True}
        case ListOffsets(partitions=wanted, policy=policy):
            timestamp = -2 if policy == "earliest" else -1
            rows = by_topic((one, {"partition_index": one[1], "timestamp": timestamp}) for one in wanted)
            return "ListOffsets", {"replica_id": -1, "isolation_level": 0, "topics": rows}
    raise TypeError(type(output.request).__name__)


def identity(group: str, member: Any, instance: Any) -> dict[str, Any]:
    """The fields that name a member."""
    return {"group_id": group, "member_id": member or "", "group_instance_id": instance}


def by_topic(rows: Any, name: str = "name") -> list[dict[str, Any]]:
    """Rows of partitions, grouped by topic; the topic is in a field with this name."""
    found: dict[str, list[Any]] = {}
    for (topic, _), row in rows:
        found.setdefault(topic, []).append(row)
    return [{name: topic, "partitions": each} for topic, each in found.items()]


def read_join_response(request: Body, body: Body) -> ClientResponse:
    """The response to JoinGroup."""
    members = tuple(
        MemberView(row["member_id"], row.get("group_instance_id"), row["metadata"]) for row in body["members"]
    )
    return JoinResponse(
        Error(body["error_code"]),
        body["generation_id"],
        body["protocol_type"],
        body["protocol_name"],
        id_token(body["leader"]),
        id_token(body["member_id"]),
        members,
        body.get("skip_assignment", False),
    )


def read_sync(request: Body, body: Body) -> ClientResponse:
    """The response to SyncGroup."""
    named = body["protocol_type"], body["protocol_name"]
    return SyncResponse(Error(body["error_code"]), *named, assignment=AssignmentBytes(body["assignment"]))


def read_errors(request: Body, body: Body) -> ClientResponse:
    """The response to OffsetCommit."""
    errors = {
        (topic["name"], row["partition_index"]): Error(row["error_code"])
        for topic in body["topics"]
        for row in topic["partitions"]
    }
    return PartitionErrors(errors)


def read_offsets(request: Body, body: Body) -> ClientResponse:
    """The response to OffsetFetch."""
    offsets = {
        (topic["name"], row["partition_index"]): None
        if row["error_code"] == Error.UNSTABLE_OFFSET_COMMIT
        else Offset(row["committed_offset"])
        for topic in body["topics"]
        for row in topic["partitions"]
    }
    return OffsetFetchResponse(offsets, Error(body["error_code"]))


def read_starts(request: Body, body: Body) -> ClientResponse:
    """The response to ListOffsets."""
    rows = ((topic["name"], row) for topic in body["topics"] for row in topic["partitions"])
    return ListOffsetsResponse(tuple(((name, row["partition_index"]), row["offset"]) for name, row in rows))


READERS: Mapping[str, Callable[[Body, Body], ClientResponse]] = {
    "JoinGroup": read_join_response,
    "SyncGroup": read_sync,
    "Heartbeat": lambda request, body: HeartbeatResponse(Error(body["error_code"])),
    "LeaveGroup": lambda request, body: LeaveResponse(Error(body["error_code"])),
    "OffsetCommit": read_errors,
    "OffsetFetch": read_offsets,
    "FindCoordinator": lambda request, body: FindCoordinatorResponse(Error(body["error_code"]), body["node_id"]),
    "ListOffsets": read_starts,
}
"""Reads the response to a request, by API: both bodies in."""
