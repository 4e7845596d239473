"""Which of several nodes leads a partition, which coordinates all groups, and how the others respond."""

from collections.abc import Sequence
from typing import Any

from fencepost.adapters.bundled.classic.messages import Request, Response
from fencepost.adapters.bundled.nodes.refusals import refuse_elsewhere

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
