"""The bodies of responses: one builder for each, and one table of the fields that some versions lack."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fencepost.adapters.classic.group import Group, Member, State
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.model.errors import Error

_NO_LIMIT: Final = 99

_VERSIONS: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "JoinGroup": {
        "throttle_time_ms": (2, _NO_LIMIT),
        "protocol_type": (7, _NO_LIMIT),
        "skip_assignment": (9, _NO_LIMIT),
        "members.group_instance_id": (5, _NO_LIMIT),
    },
    "SyncGroup": {"throttle_time_ms": (1, _NO_LIMIT), "protocol_type": (5, _NO_LIMIT), "protocol_name": (5, _NO_LIMIT)},
    "Heartbeat": {"throttle_time_ms": (1, _NO_LIMIT)},
    "LeaveGroup": {"throttle_time_ms": (1, _NO_LIMIT), "members": (3, _NO_LIMIT)},
    "OffsetCommit": {"throttle_time_ms": (3, _NO_LIMIT)},
    "OffsetFetch": {
        "throttle_time_ms": (3, _NO_LIMIT),
        "topics": (0, 7),
        "error_code": (2, 7),
        "topics.partitions.committed_leader_epoch": (5, 7),
        "groups": (8, _NO_LIMIT),
    },
    "FindCoordinator": {
        "throttle_time_ms": (1, _NO_LIMIT),
        "error_code": (0, 3),
        "error_message": (1, 3),
        "node_id": (0, 3),
        "host": (0, 3),
        "port": (0, 3),
        "coordinators": (4, _NO_LIMIT),
    },
    "DescribeGroups": {
        "throttle_time_ms": (1, _NO_LIMIT),
        "groups.error_message": (6, _NO_LIMIT),
        "groups.members.group_instance_id": (4, _NO_LIMIT),
        "groups.authorized_operations": (3, _NO_LIMIT),
    },
    "ListGroups": {
        "throttle_time_ms": (1, _NO_LIMIT),
        "groups.group_state": (4, _NO_LIMIT),
        "groups.group_type": (5, _NO_LIMIT),
    },
}
"""First and last version of every answer field that not all versions have. Source: Kafka's message schemas."""


def trim_to_version(api: str, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body without the fields that this version lacks, and with `throttle_time_ms` if it has that."""
    return _trim_fields({"throttle_time_ms": 0} | dict(body), _VERSIONS.get(api, {}), version, "")


def _trim_fields(
    body: Mapping[str, Any], limits: Mapping[str, tuple[int, int]], version: int, path: str
) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in body.items():
        first, last = limits.get(path + name, (0, _NO_LIMIT))
        if first <= version <= last:
            kept[name] = _trim_value(value, limits, version, f"{path}{name}.")
    return kept


def _trim_value(value: Any, limits: Mapping[str, tuple[int, int]], version: int, path: str) -> Any:
    if isinstance(value, list):
        return [_trim_fields(entry, limits, version, path) if isinstance(entry, Mapping) else entry for entry in value]
    return int(value) if isinstance(value, Error) else value


def join_accepted(group: Group, member: Member) -> dict[str, Any]:
    """JOIN-OK for the group's generation; only the leader gets the members (JOIN-37)."""
    members = describe_members(group) if member.member_id == group.leader else []
    return _join(group, Error.NONE, member.member_id, group.leader or "", members, False)


def join_accepted_in_place(group: Group, member: Member, leader: str, skip_assignment: bool) -> dict[str, Any]:
    """JOIN-OK for a static member that was replaced without a rebalance (KIP-345, KIP-814)."""
    members = describe_members(group) if skip_assignment else []
    return _join(group, Error.NONE, member.member_id, leader, members, skip_assignment)


def join_not_stored(group: Group, leader: str) -> dict[str, Any]:
    """The response to a replacement in place that could not be stored: the state before it, and the error."""
    return _join(group, Error.COORDINATOR_NOT_AVAILABLE, "", leader, [], False)


def join_refused(error: Error, member_id: str, version: int) -> dict[str, Any]:
    """JOIN-ERR; the protocol name is null from version 7 on, `""` before (JOIN-41)."""
    return {
        "error_code": error,
        "generation_id": -1,
        "protocol_type": None,
        "protocol_name": None if version >= 7 else "",
        "leader": "",
        "skip_assignment": False,
        "member_id": member_id,
        "members": [],
    }


def describe_members(group: Group) -> list[dict[str, Any]]:
    """All members with their metadata for the selected protocol."""
    return [
        {
            "member_id": member.member_id,
            "group_instance_id": member.instance_id,
            "metadata": member.metadata(group.protocol),
        }
        for member in group.members.values()
    ]


def _join(
    group: Group, error: Error, member_id: str, leader: str, members: list[dict[str, Any]], skip_assignment: bool
) -> dict[str, Any]:
    return {
        "error_code": error,
        "generation_id": group.generation,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol,
        "leader": leader,
        "skip_assignment": skip_assignment,
        "member_id": member_id,
        "members": members,
    }


def sync_accepted(group: Group, member: Member) -> dict[str, Any]:
    """SYNC-OK with the member's assignment."""
    return {
        "error_code": Error.NONE,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol,
        "assignment": member.assignment,
    }


def sync_refused(error: Error) -> dict[str, Any]:
    """SYNC-ERR: no assignment (SYNC-22)."""
    return {"error_code": error, "protocol_type": None, "protocol_name": None, "assignment": b""}


def describe_group(group: Group) -> dict[str, Any]:
    """A DescribeGroups entry; protocol and metadata show in Stable only (ADMIN-04), assignments always (DIV-11)."""
    protocol = group.protocol if group.state is State.STABLE else None
    return {
        "error_code": Error.NONE,
        "error_message": None,
        "group_id": group.group_id,
        "group_state": str(group.state),
        "protocol_type": group.protocol_type or "",
        "protocol_data": protocol or "",
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "member_metadata": member.metadata(protocol),
                "member_assignment": member.assignment,
            }
            for member in group.members.values()
        ],
        "authorized_operations": -2147483648,
    }


def describe_missing_group(group_id: str, version: int) -> dict[str, Any]:
    """A DescribeGroups entry for a group that does not exist (ADMIN-01; error 69 since KIP-1043)."""
    known_error = version >= 6
    return {
        "error_code": Error.GROUP_ID_NOT_FOUND if known_error else Error.NONE,
        "error_message": f"Group {group_id} not found." if known_error else None,
        "group_id": group_id,
        "group_state": str(State.DEAD),
        "protocol_type": "",
        "protocol_data": "",
        "members": [],
        "authorized_operations": -2147483648,
    }


# --- The responses of a node that does not coordinate: NOT_COORDINATOR, where each response has its place for it.

ELSEWHERE = Error.NOT_COORDINATOR
FIRST_FETCH_OF_GROUPS = 8
"""The first version of OffsetFetch with several groups."""


def refuse_elsewhere(request: Request) -> Response | None:
    """The response of a node that does not coordinate what the request is about; None if any node handles it."""
    make_body = BODIES.get(request.api)
    # Without a transactional id, any node gives out a producer id.
    if make_body is None or (request.api == "InitProducerId" and request.body.get("transactional_id") is None):
        return None
    return Response(request.handle, trim_to_version(request.api, request.version, make_body(request)))


def refuse_join(request: Request) -> Mapping[str, Any]:
    """The body for JoinGroup."""
    return join_refused(ELSEWHERE, request.body.get("member_id", ""), request.version)


def refuse_partitions(request: Request) -> Mapping[str, Any]:
    """The body for a commit: the error of each partition."""
    topics = [
        {
            **{name: value for name, value in topic.items() if name != "partitions"},
            "partitions": [
                {"partition_index": row["partition_index"], "error_code": ELSEWHERE} for row in topic["partitions"]
            ],
        }
        for topic in request.body.get("topics", ())
    ]
    return {"topics": topics}


def refuse_fetch(request: Request) -> Mapping[str, Any]:
    """The body for OffsetFetch: the error of each group, of the whole, or of each partition."""
    if request.version >= FIRST_FETCH_OF_GROUPS:
        groups = request.body.get("groups", ())
        return {"groups": [{"group_id": row["group_id"], "error_code": ELSEWHERE, "topics": []} for row in groups]}
    if request.version >= 2:
        return {"error_code": ELSEWHERE, "topics": []}
    nothing = {"committed_offset": -1, "metadata": "", "error_code": ELSEWHERE}
    topics = [
        {
            "name": topic["name"],
            "partitions": [{"partition_index": index, **nothing} for index in topic["partition_indexes"]],
        }
        for topic in request.body.get("topics") or ()
    ]
    return {"topics": topics}


def refuse_describe(request: Request) -> Mapping[str, Any]:
    """The body for DescribeGroups: the error of each group."""
    texts = dict.fromkeys(("group_state", "protocol_type", "protocol_data"), "")
    nothing: Mapping[str, Any] = {"error_message": None, **texts, "members": [], "authorized_operations": -2147483648}
    groups = [{"error_code": ELSEWHERE, "group_id": name, **nothing} for name in request.body.get("groups", ())]
    return {"groups": groups}


def refuse_delete(request: Request) -> Mapping[str, Any]:
    """The body for DeleteGroups: the error of each group."""
    names = dict.fromkeys(request.body.get("groups_names", ()))
    return {"results": [{"group_id": name, "error_code": ELSEWHERE} for name in names]}


def refuse_whole(**fields: Any) -> Callable[[Request], Mapping[str, Any]]:
    """The body of a response with one error, and these fields."""
    return lambda request: {"error_code": ELSEWHERE, **fields}


BODIES: Mapping[str, Callable[[Request], Mapping[str, Any]]] = {
    "JoinGroup": refuse_join,
    "SyncGroup": lambda request: sync_refused(ELSEWHERE),
    "Heartbeat": refuse_whole(),
    "LeaveGroup": refuse_whole(members=[]),
    "OffsetCommit": refuse_partitions,
    "TxnOffsetCommit": refuse_partitions,
    "OffsetFetch": refuse_fetch,
    "OffsetDelete": refuse_whole(topics=[]),
    "DescribeGroups": refuse_describe,
    "DeleteGroups": refuse_delete,
    "ListGroups": lambda request: {"error_code": Error.NONE, "groups": []},
    "InitProducerId": refuse_whole(producer_id=-1, producer_epoch=-1),
    "AddOffsetsToTxn": refuse_whole(),
    "EndTxn": refuse_whole(),
}
"""The bodies by API; all others are handled by any node, FindCoordinator among them."""
