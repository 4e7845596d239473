"""Lookups of coordinators, checked against each other and against the nodes' later responses (coordinator.md 2.1)."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

from fencepost.model.classic.messages.requests import Request
from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.model.groups.messages import EndTxn, InitProducerId, ListGroups
from fencepost.model.wire.java_hash import java_abs_hash
from fencepost.traces.events import Body, Operation
from fencepost.traces.judge.diagnosis.wording import errors_in, format_observed
from fencepost.traces.verdict import Violation

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
"""Key types."""
NOT_AVAILABLE, NOT_COORDINATOR, INVALID_REQUEST = 15, 16, 42
FIRST_BATCHED_VERSION = 4
"""The first version of FindCoordinator with several keys."""
OFFSETS_TOPIC = "__consumer_offsets"


COMMITS = frozenset({"OffsetCommit", "TxnOffsetCommit"})


class LookupCheck:
    """Remembers which node was named for which group, and where the offsets topic lives if the trace shows it.

    While groups move, and until all nodes have had time to learn of it, nothing is judged.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, int] = {}
        self.leaders: dict[int, int] = {}
        self.old_nodes: dict[str, int] = {}
        """By group, the node that coordinated it before it was moved."""
        self.settled_at: float = 0
        """The time, in milliseconds, from which all nodes know who coordinates what."""
        self.broken_by: dict[int, str] = {}
        """Of requests whose node is known: the requirement that it breaks by anything but NOT_COORDINATOR; empty for
        the node named for their group."""

    def reset(self) -> None:
        """Coordinators may have moved."""
        self.nodes.clear()
        self.leaders.clear()

    def on_move(self) -> None:
        """Groups are being moved to other nodes."""
        self.reset()
        self.settled_at = math.inf

    def on_moved(self, group: str, old: int, new: int, settled_at: int) -> None:
        """The node `new` coordinates the group in the place of `old`, which all know at `settled_at`."""
        self.reset()
        self.nodes[group], self.old_nodes[group] = new, old
        self.settled_at = settled_at

    def is_sent_elsewhere(self, operation: Operation, request: Request) -> bool:
        """The request went to another node than the one named for its group, which knows nothing of it."""
        node = self.nodes.get(request.group)
        if operation.broker is None or node is None:
            return False
        is_home = node == operation.broker
        if operation.sent_at >= self.settled_at and not isinstance(request, ListGroups | EndTxn | InitProducerId):
            is_old = operation.broker == self.old_nodes.get(request.group)
            self.broken_by[operation.handle] = "" if is_home else "FAILOVER-18" if is_old else "FIND-10"
        return not is_home

    def check_response(self, operation: Operation) -> Iterable[Violation]:
        """What is wrong with a response."""
        if operation.response is None:
            return ()
        if operation.api == "FindCoordinator":
            is_settled = operation.sent_at >= self.settled_at
            return self.check_find_coordinator(operation, operation.response) if is_settled else ()
        if operation.handle in self.broken_by:
            return self.check_coordinator(operation, operation.response, self.broken_by.pop(operation.handle))
        if operation.api == "Metadata":
            self.learn_leaders(operation.response)
        elif operation.response.get("error_code") in COORDINATOR_NOT_READY:
            self.reset()
        return ()

    def check_coordinator(self, operation: Operation, response: Body, broken_by: str) -> Iterator[Violation]:
        """The response of a known node: it coordinates the group, or it says that it does not. One that does not, and
        says something else, violates `broken_by`."""
        errors = errors_in(response)
        refused = errors == {NOT_COORDINATOR}
        if not broken_by and refused:
            yield self.violation_of(operation, ("place",), "an answer of the node that was named", "FIND-01")
        elif broken_by == "FAILOVER-18" and operation.api in COMMITS and 0 in errors:
            yield self.violation_of(operation, ("accepted", "error"), "NOT_COORDINATOR", "FAILOVER-20")
        elif broken_by and not refused:
            yield self.violation_of(operation, ("error",), "NOT_COORDINATOR", broken_by)

    def check_find_coordinator(self, operation: Operation, response: Body) -> Iterator[Violation]:
        """The response to a lookup."""
        batched = operation.version >= FIRST_BATCHED_VERSION
        if ("coordinators" if batched else "node_id") not in response:
            layout = "a list of coordinators" if batched else "the node at top level"
            yield self.violation_of(operation, ("layout",), layout, "FIND-06")
            return
        keys = list(operation.body.get("coordinator_keys") or ()) if batched else [operation.body.get("key")]
        rows = response["coordinators"] if batched else [response]
        if batched and [row.get("key") for row in rows] != keys:
            yield self.violation_of(operation, ("keys",), f"one entry for each of {keys}, in order", "FIND-05")
            return
        for key, row in zip(keys, rows, strict=True):
            yield from self.check_entry(operation, operation.body.get("key_type", GROUP_KEY), key, row)

    def check_entry(self, operation: Operation, kind: int, key: Any, row: Body) -> Iterator[Violation]:
        """One entry of a response."""
        error = row.get("error_code")
        if kind not in (GROUP_KEY, TRANSACTION_KEY, SHARE_KEY):
            if error != INVALID_REQUEST:
                yield self.violation_of(operation, ("error",), "INVALID_REQUEST", "FIND-07")
            return
        if kind != GROUP_KEY:
            return
        # A coordinator may be gone for a while, but not for the empty id alone.
        if error == NOT_AVAILABLE and not (key == "" and self.nodes):
            self.reset()
            if row.get("node_id") != -1:
                yield self.violation_of(operation, ("node",), "node_id=-1 with COORDINATOR_NOT_AVAILABLE", "FIND-08")
            return
        if error != 0 or not row.get("host") or not 0 < row.get("port", -1) < 65536 or row.get("node_id", -1) < 0:
            wrong = "FIND-09" if key == "" else "FIND-01"
            yield self.violation_of(operation, ("error",), "NONE with node id, host and port", wrong)
            return
        yield from self.check_named_node(operation, key, row["node_id"])

    def check_named_node(self, operation: Operation, key: str, node: int) -> Iterator[Violation]:
        """A node was named: as before, and as the offsets topic says?"""
        if self.nodes.setdefault(key, node) != node:
            yield self.violation_of(operation, ("node",), f"node_id={self.nodes[key]} as before", "FIND-03")
        home = self.leaders.get(java_abs_hash(key) % len(self.leaders)) if self.leaders else None
        if home is not None and home != node:
            yield self.violation_of(operation, ("home",), f"node_id={home}, leader of the group's partition", "FIND-04")

    def learn_leaders(self, response: Body) -> None:
        """Where the partitions of the offsets topic are led."""
        for topic in response.get("topics") or ():
            if topic.get("name") == OFFSETS_TOPIC:
                self.leaders = {row["partition_index"]: row["leader_id"] for row in topic.get("partitions") or ()}

    @staticmethod
    def violation_of(operation: Operation, fields: tuple[str, ...], allowed: str, requirement: str) -> Violation:
        """A violation in words."""
        return Violation(
            sequence=operation.handle - 1,
            group="",
            api=operation.api,
            fields=fields,
            observed=format_observed(operation.response or {}),
            allowed=(allowed,),
            rule="find.coordinator",
            guard="",
            requirements=(requirement,),
        )


def unusual_lookup_fields(response: Body) -> set[str]:
    """The fields of a response to a lookup that are allowed, but not as Apache Kafka has them."""
    rows = response.get("coordinators") or [response]
    named = any(row.get("error_code") != 0 and row.get("node_id", -1) != -1 for row in rows)
    return ({"wire"} if response.get("_findings") else set()) | ({"node"} if named else set())
