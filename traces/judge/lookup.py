"""FindCoordinator answers: held against each other and against what the protocol says of them (coordinator.md 2.1)."""

from collections.abc import Iterator
from typing import Any

from fencepost.traces.events import Body
from fencepost.traces.judge.explanation import observed
from fencepost.traces.judge.operations import Operation
from fencepost.traces.judge.verdict import Fault

GROUP, TRANSACTION, SHARE = 0, 1, 2
"""Key types."""
NOT_AVAILABLE, INVALID_REQUEST = 15, 42


class LookupCheck:
    """Remembers which node was named for which group, and where the offsets topic lives if the trace shows it."""

    def __init__(self) -> None:
        self.nodes: dict[str, int] = {}
        self.leaders: dict[int, int] = {}

    def answered(self, operation: Operation) -> Iterator[Fault]:
        """What is wrong with an answer."""
        if operation.api == "Metadata" and operation.answer is not None:
            self.learn(operation.answer)
        if operation.api != "FindCoordinator" or operation.answer is None:
            return
        body, version = operation.body, operation.version
        keys = body.get("coordinator_keys") or [] if version >= 4 else [body.get("key")]
        rows = operation.answer.get("coordinators") or [] if version >= 4 else [operation.answer]
        if version >= 4 and [row.get("key") for row in rows] != keys:
            yield self.fault(operation, ("keys",), f"one entry for each of {keys}, in order", "FIND-05")
            return
        for key, row in zip(keys, rows, strict=True):
            yield from self.entry(operation, body.get("key_type", GROUP), key, row)

    def entry(self, operation: Operation, kind: int, key: Any, row: Body) -> Iterator[Fault]:
        """One entry of an answer."""
        error = row.get("error_code")
        if kind not in (GROUP, TRANSACTION, SHARE):
            if error != INVALID_REQUEST:
                yield self.fault(operation, ("error",), "INVALID_REQUEST", "FIND-07")
            return
        if kind != GROUP:
            return
        if error == NOT_AVAILABLE:
            if row.get("node_id") != -1:
                yield self.fault(operation, ("node",), "node_id=-1 with COORDINATOR_NOT_AVAILABLE", "FIND-08")
            return
        if error != 0 or not row.get("host") or not 0 < row.get("port", -1) < 65536 or row.get("node_id", -1) < 0:
            wrong = "FIND-09" if key == "" else "FIND-01"
            yield self.fault(operation, ("error",), "NONE with node id, host and port", wrong)
            return
        node = row["node_id"]
        if self.nodes.setdefault(key, node) != node:
            yield self.fault(operation, ("node",), f"node_id={self.nodes[key]} as before", "FIND-03")
        home = self.leaders.get(abs_hash(key) % len(self.leaders)) if self.leaders else None
        if home is not None and home != node:
            yield self.fault(operation, ("home",), f"node_id={home}, leader of the group's partition", "FIND-04")

    def learn(self, answer: Body) -> None:
        """Where the partitions of the offsets topic are led."""
        for topic in answer.get("topics") or ():
            if topic.get("name") == "__consumer_offsets":
                self.leaders = {row["partition_index"]: row["leader_id"] for row in topic.get("partitions") or ()}

    @staticmethod
    def fault(operation: Operation, fields: tuple[str, ...], allowed: str, requirement: str) -> Fault:
        """A fault in words."""
        return Fault(
            sequence=operation.handle - 1,
            group="",
            api=operation.api,
            fields=fields,
            observed=observed(operation.answer or {}),
            allowed=(allowed,),
            rule="find.coordinator",
            guard="",
            requirements=(requirement,),
        )


def abs_hash(text: str) -> int:
    """Java's string hash without its sign, as Kafka takes it: the one value without a positive twin gives 0."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(encoded), 2):
        value = (31 * value + int.from_bytes(encoded[position : position + 2], "big")) & 0xFFFFFFFF
    if value >= 1 << 31:
        value -= 1 << 32
    return 0 if value == -(1 << 31) else abs(value)
