"""Responses that contain only an error, for every API: those of a coordinator that does not read the group."""

from collections.abc import Callable, Mapping
from typing import Any

from fencepost.adapters.bundled.classic import responses
from fencepost.adapters.bundled.classic.messages import Error, Request

NOT_COORDINATOR = 16
_TOP_ERROR_ENDS = 8
_NAMED_BY_ID_SINCE = 10


def error_body(request: Request, error: int) -> dict[str, Any]:
    """The body of a response to this request that contains only this error."""
    return ERROR_BODIES[request.api](request, error)


def _join_error(request: Request, error: int) -> dict[str, Any]:
    body = responses.join_refused(Error.NONE, request.body.get("member_id", ""), request.version)
    return body | {"error_code": error}


def _sync_error(request: Request, error: int) -> dict[str, Any]:
    return responses.sync_refused(Error.NONE) | {"error_code": error}


def _leave_error(request: Request, error: int) -> dict[str, Any]:
    return {"error_code": error, "members": []}


def _error_only(request: Request, error: int) -> dict[str, Any]:
    return {"error_code": error}


def _commit_error(request: Request, error: int) -> dict[str, Any]:
    def topic(entry: Mapping[str, Any]) -> dict[str, Any]:
        by_id = request.api == "OffsetCommit" and request.version >= _NAMED_BY_ID_SINCE
        name = {"topic_id": entry["topic_id"]} if by_id else {"name": entry["name"]}
        rows = [{"partition_index": row["partition_index"], "error_code": error} for row in entry["partitions"]]
        return name | {"partitions": rows}

    return {"topics": [topic(entry) for entry in request.body.get("topics", ())]}


def _fetch_error(request: Request, error: int) -> dict[str, Any]:
    if request.version < _TOP_ERROR_ENDS:
        return {"topics": [], "error_code": error}
    groups = request.body.get("groups", ())
    return {"groups": [{"group_id": one["group_id"], "topics": [], "error_code": error} for one in groups]}


def _describe_error(request: Request, error: int) -> dict[str, Any]:
    groups = request.body.get("groups", ())
    return {
        "groups": [
            responses.describe_missing_group(one, 0) | {"error_code": error, "group_state": ""} for one in groups
        ]
    }


def _list_error(request: Request, error: int) -> dict[str, Any]:
    return {"error_code": error, "groups": []}


def _delete_error(request: Request, error: int) -> dict[str, Any]:
    names = dict.fromkeys(request.body.get("groups_names", ()))
    return {"results": [{"group_id": name, "error_code": error} for name in names]}


def _delete_offsets_error(request: Request, error: int) -> dict[str, Any]:
    return {"error_code": error, "topics": []}


ERROR_BODIES: Mapping[str, Callable[[Request, int], dict[str, Any]]] = {
    "JoinGroup": _join_error,
    "SyncGroup": _sync_error,
    "Heartbeat": _error_only,
    "LeaveGroup": _leave_error,
    "OffsetCommit": _commit_error,
    "TxnOffsetCommit": _commit_error,
    "OffsetFetch": _fetch_error,
    "DescribeGroups": _describe_error,
    "ListGroups": _list_error,
    "DeleteGroups": _delete_error,
    "OffsetDelete": _delete_offsets_error,
    "AddOffsetsToTxn": _error_only,
    "EndTxn": _error_only,
}
