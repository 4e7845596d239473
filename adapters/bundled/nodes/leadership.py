"""Which of several nodes leads a partition, which coordinates all groups, and how the others respond."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fencepost.adapters.classic import responses
from fencepost.adapters.classic.messages import Error, Request, Response

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
    return Response(request.handle, responses.trim_to_version(request.api, request.version, make_body(request)))


def refuse_join(request: Request) -> Mapping[str, Any]:
    """The body for JoinGroup."""
    return responses.join_refused(ELSEWHERE, request.body.get("member_id", ""), request.version)


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
    "SyncGroup": lambda request: responses.sync_refused(ELSEWHERE),
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

OFFSETS_TOPIC = "__consumer_offsets"
PARTITIONS_IN_TURN = 3
"""So many partitions of a topic are led by a node before the next node leads as many: a Fetch has several of them."""


class NodeLeadership:
    """The nodes by id, the first of which coordinates all groups until they are moved to the next one."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self.nodes = tuple(nodes)
        self.leader = self.nodes[0]

    def move(self) -> int:
        """Have the next node coordinate all groups, and return it."""
        self.leader = self.nodes[(self.nodes.index(self.leader) + 1) % len(self.nodes)]
        return self.leader

    def leader_of(self, index: int) -> int:
        """The node that leads the partition with this number of any topic."""
        return self.nodes[index // PARTITIONS_IN_TURN % len(self.nodes)]

    def refuse(self, request: Request, node: int) -> Response | None:
        """The response of a node that does not coordinate; None if it does, or if any node handles the request."""
        return None if node == self.leader else refuse_elsewhere(request)

    def end_parked(self, request: Request) -> Response | None:
        """The response to a parked request whose group is moved (FAILOVER-11)."""
        return refuse_elsewhere(request)

    def describe_offsets_topic(self, partitions: int) -> dict[str, Any]:
        """The offsets topic in a response to Metadata: every partition is led by the node that coordinates."""
        rows = [
            {
                "error_code": 0,
                "partition_index": index,
                "leader_id": self.leader,
                "leader_epoch": 0,
                "replica_nodes": list(self.nodes),
                "isr_nodes": list(self.nodes),
                "offline_replicas": [],
            }
            for index in range(partitions)
        ]
        return {"error_code": 0, "name": OFFSETS_TOPIC, "is_internal": True, "partitions": rows}
