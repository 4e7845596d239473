"""Answers that hold nothing but an error, for every API: what a coordinator says that does not look at the group."""

from collections.abc import Callable, Mapping
from typing import Any

from fencepost.adapters.bundled.classic import responses
from fencepost.adapters.bundled.classic.messages import Error, Request

NOT_COORDINATOR = 16
_TOP_ERROR_ENDS = 8
_NAMED_BY_ID_SINCE = 10


def refusal(request: Request, error: int) -> dict[str, Any]:
    """The body of the answer to this request that says the error and nothing else."""
    return REFUSALS[request.api](request, error)


def _join(request: Request, error: int) -> dict[str, Any]:
    body = responses.join_refused(Error.NONE, request.body.get("member_id", ""), request.version)
    return body | {"error_code": error}


def _sync(request: Request, error: int) -> dict[str, Any]:
    return responses.sync_refused(Error.NONE) | {"error_code": error}


def _leave(request: Request, error: int) -> dict[str, Any]:
    return {"error_code": error, "members": []}


def _alone(request: Request, error: int) -> dict[str, Any]:
    return {"error_code": error}


def _commit(request: Request, error: int) -> dict[str, Any]:
    def topic(entry: Mapping[str, Any]) -> dict[str, Any]:
        by_id = request.api == "OffsetCommit" and request.version >= _NAMED_BY_ID_SINCE
        name = {"topic_id": entry["topic_id"]} if by_id else {"name": entry["name"]}
        rows = [{"partition_index": row["partition_index"], "error_code": error} for row in entry["partitions"]]
        return name | {"partitions": rows}

    return {"topics": [topic(entry) for entry in request.body.get("topics", ())]}


def _fetch(request: Request, error: int) -> dict[str, Any]:
    if request.version < _TOP_ERROR_ENDS:
        return {"topics": [], "error_code": error}
    groups = request.body.get("groups", ())
    return {"groups": [{"group_id": one["group_id"], "topics": [], "error_code": error} for one in groups]}


def _describe(request: Request, error: int) -> dict[str, Any]:
    groups = request.body.get("groups", ())
    return {
        "groups": [responses.described_nothing(one, 0) | {"error_code": error, "group_state": ""} for one in groups]
    }


def _list(request: Request, error: int) -> dict[str, Any]:
    return {"error_code": error, "groups": []}


def _delete(request: Request, error: int) -> dict[str, Any]:
    names = dict.fromkeys(request.body.get("groups_names", ()))
    return {"results": [{"group_id": name, "error_code": error} for name in names]}


def _delete_offsets(request: Request, error: int) -> dict[str, Any]:
    return {"error_code": error, "topics": []}


REFUSALS: Mapping[str, Callable[[Request, int], dict[str, Any]]] = {
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "Heartbeat": _alone,
    "LeaveGroup": _leave,
    "OffsetCommit": _commit,
    "TxnOffsetCommit": _commit,
    "OffsetFetch": _fetch,
    "DescribeGroups": _describe,
    "ListGroups": _list,
    "DeleteGroups": _delete,
    "OffsetDelete": _delete_offsets,
    "AddOffsetsToTxn": _alone,
    "EndTxn": _alone,
}
