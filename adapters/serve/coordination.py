"""What a server and the coordinator behind it know of each other: requests, nodes, topics, and what a dialect has.

A server finds the coordinator of a dialect among the parts of a protocol, and imports none.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from fencepost.model.errors import Error
from fencepost.model.protocols import KAFKA, default_protocol, load_part, registered_protocols
from fencepost.model.wire.codec import DecodedRequest

# --- Requests and responses.

Body: TypeAlias = Mapping[str, Any]
"""A message by field name, Kafka's schema names in snake case."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrived. `handle` is the caller's name for it, returned with the response.

    A field that `body` lacks has its schema default; fields that `version` does not have are ignored.
    """

    handle: int
    api: str
    version: int
    client_id: str | None
    client_host: str
    body: Body


@dataclass(frozen=True, slots=True)
class Response:
    """The response to the request with that handle: every field of its version, in plain values."""

    handle: int
    body: dict[str, Any]


class CorruptLogError(Exception):
    """What is stored cannot be read; the message says which file and where."""


# --- The topics of the cluster as a coordinator sees them: names, partition counts and ids (KIP-516).


class Topics(Protocol):
    """The topics of a cluster. Methods return None for a topic that it lacks."""

    def partition_count(self, name: str) -> int | None:
        """The number of partitions of the topic."""
        ...

    def id_of(self, name: str) -> str | None:
        """The id of the topic."""
        ...

    def name_of(self, topic_id: str) -> str | None:
        """The name of the topic with this id."""
        ...


def topic_id_of(name: str) -> str:
    """The id that is derived from the name, so that a restart does not change it."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


class FixedTopics:
    """Topics with constant numbers of partitions."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = dict(counts)
        self._names = {topic_id_of(name): name for name in counts}

    def partition_count(self, name: str) -> int | None:
        """As `Topics.partition_count`."""
        return self._counts.get(name)

    def id_of(self, name: str) -> str | None:
        """As `Topics.id_of`."""
        return topic_id_of(name) if name in self._counts else None

    def name_of(self, topic_id: str) -> str | None:
        """As `Topics.name_of`."""
        return self._names.get(topic_id)


# --- The coordinators that a server can have.


class ServedCoordinator(Protocol):
    """A coordinator of all groups: requests and the time in, responses out. Times are in milliseconds."""

    def handle(self, request: Request, now: int) -> list[Response]:
        """The response to a request, unless it is parked, and those of parked requests that it releases."""
        ...

    def advance(self, now: int) -> list[Response]:
        """Fire all timers that are due."""
        ...

    def next_deadline(self) -> int | None:
        """The time of the earliest armed timer; None without one."""
        ...

    def end_transaction(self, producer_id: int, committed: bool) -> Error:
        """End a producer's transaction as EndTxn does, without a request."""
        ...


@dataclass(frozen=True, slots=True)
class ServedDialect:
    """A dialect that a server can speak.

    `versions` are those of every API that its coordinator handles. `open_log` opens a log in a file, or in memory,
    every write to which takes so many milliseconds; it returns the log, and what closes it. `make_coordinator` makes a
    coordinator on such a log. `decode_request` reads a request of so many array items at most. `refuse` makes the
    response of a node that does not coordinate what the request is about; None if any node handles it.
    """

    versions: Mapping[str, tuple[int, int]]
    open_log: Callable[[Path | None, int], tuple[Any, Callable[[], None]]]
    make_coordinator: Callable[..., ServedCoordinator]
    decode_request: Callable[[bytes, int], DecodedRequest]
    refuse: Callable[[Request], Response | None]


def dialect_named(name: str) -> ServedDialect:
    """The dialect of this name: `kafka`, or the name of a protocol that is a dialect of it. Raises KeyError."""
    entry = default_protocol() if name == KAFKA else registered_protocols()[name]
    found: ServedDialect = load_part(entry.coordinator)
    return found


def refuse_elsewhere(request: Request) -> Response | None:
    """The response of a node that does not coordinate what the request is about; None if any node handles it."""
    return dialect_named(KAFKA).refuse(request)


# --- The nodes of a cluster: which leads a partition, and which coordinates all groups.


@dataclass(frozen=True, slots=True)
class Node:
    """A broker and how it is reached."""

    node_id: int
    host: str
    port: int


LOCAL = Node(0, "127.0.0.1", 9092)
OFFSETS_TOPIC = "__consumer_offsets"
PARTITIONS_IN_TURN = 3
"""How many partitions of a topic in a row one node leads before the next node does: a Fetch has several of them."""


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
