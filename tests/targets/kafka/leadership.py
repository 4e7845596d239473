"""Which node of a cluster leads what, and how to move that: raw requests, independent of the codec under test."""

import struct
from dataclasses import dataclass

from tests.targets import probe

OFFSETS_TOPIC = "__consumer_offsets"
LIST_OFFSETS, METADATA, ELECT_LEADERS, ALTER_PARTITION_REASSIGNMENTS = 2, 3, 43, 45
ELECTION_NOT_NEEDED = 84
LATEST = -1
CONSUMER, DEBUGGER = -1, -2
"""Who ListOffsets says it is: a consumer is told where what all nodes have ends, a debugger where the log ends."""
TIMEOUT_MS = 10_000


class LeadershipError(Exception):
    """Leadership was not moved; the message is one line."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The leader of a partition (-1: none), the nodes with a copy, the preferred leader first, and those in sync."""

    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


class _Reader:
    """Reads the plain types of a response one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, kind: str) -> int:
        """A number of the size that `struct` gives to the letter."""
        value: int = struct.unpack_from(f">{kind}", self._data, self._at)[0]
        self._at += struct.calcsize(f">{kind}")
        return value

    def text(self) -> str:
        """A string; "" for a null one."""
        size = max(self.number("h"), 0)
        self._at += size
        return self._data[self._at - size : self._at].decode()

    def numbers(self) -> tuple[int, ...]:
        """An array of node ids."""
        return tuple(self.number("i") for _ in range(self.number("i")))


def describe_partitions(port: int, topic: str = OFFSETS_TOPIC) -> dict[int, PartitionState]:
    """The partitions of a topic as the node on `port` knows them, none if there is no such topic."""
    name = topic.encode()
    body = struct.pack(">ih", 1, len(name)) + name
    reader = _Reader(probe.send_request(port, METADATA, body, version=1))
    for _ in range(reader.number("i")):
        reader.number("i"), reader.text(), reader.number("i"), reader.text()  # the nodes
    reader.number("i")  # the controller
    partitions = {}
    for _ in range(reader.number("i")):
        reader.number("h"), reader.text(), reader.number("b")
        for _ in range(reader.number("i")):
            reader.number("h")
            index, leader = reader.number("i"), reader.number("i")
            partitions[index] = PartitionState(leader, reader.numbers(), reader.numbers())
    return partitions


def partition_of(group: str, partitions: int) -> int:
    """The partition of the offsets topic that a group belongs to, by Java's hash of its id (FIND-04)."""
    value = 0
    for unit in memoryview(group.encode("utf-16-le")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    value -= (value & 0x80000000) << 1
    return (0 if value == -(1 << 31) else abs(value)) % partitions


def is_settled(port: int, partition: int, topic: str = OFFSETS_TOPIC) -> bool:
    """Whether the node on `port` leads the partition and all it has is known to be on the nodes in sync.

    Before that a coordinator does not tell offsets that its predecessor has acknowledged.
    """
    ends = [_log_end(port, topic, partition, reader) for reader in (CONSUMER, DEBUGGER)]
    return ends[0] == ends[1] >= 0


def _log_end(port: int, topic: str, partition: int, reader: int) -> int:
    name = topic.encode()
    body = struct.pack(">iih", reader, 1, len(name)) + name + struct.pack(">iiq", 1, partition, LATEST)
    answer = probe.send_request(port, LIST_OFFSETS, body, version=1)
    return int(struct.unpack(">q", answer[-8:])[0])


def move_leadership(port: int, partition: int, node: int, topic: str = OFFSETS_TOPIC) -> None:
    """Have `node` lead the partition, while its old leader stays up. Raises LeadershipError if that is refused."""
    state = describe_partitions(port, topic)[partition]
    if node not in state.replicas:
        raise LeadershipError(f"node {node} has no copy of {topic}-{partition}; name one of {state.replicas}")
    _prefer_leader(port, topic, partition, (node, *(each for each in state.replicas if each != node)))
    _elect_preferred_leader(port, topic, partition)


def _elect_preferred_leader(port: int, topic: str, partition: int) -> None:
    """Have the first replica of a partition lead it."""
    name = topic.encode()
    body = struct.pack(">bih", 0, 1, len(name)) + name + struct.pack(">ii", 1, partition)
    answer = probe.send_request(port, ELECT_LEADERS, body + struct.pack(">i", TIMEOUT_MS), version=1, timeout=15)
    reader = _Reader(answer)
    reader.number("i")  # the throttle time
    _refuse(reader.number("h"), "the election")
    for _ in range(reader.number("i")):
        reader.text()
        for _ in range(reader.number("i")):
            reader.number("i")
            error = reader.number("h")
            reader.text()
            _refuse(0 if error == ELECTION_NOT_NEEDED else error, f"the election for {topic}-{partition}")


def _prefer_leader(port: int, topic: str, partition: int, replicas: tuple[int, ...]) -> None:
    """Reorder the replicas of a partition (AlterPartitionReassignments, version 0, with compact arrays and tags)."""
    nodes = bytes([len(replicas) + 1]) + struct.pack(f">{len(replicas)}i", *replicas)
    row = struct.pack(">i", partition) + nodes + b"\0"
    name = topic.encode()
    body = struct.pack(">i", TIMEOUT_MS) + b"\2" + bytes([len(name) + 1]) + name + b"\2" + row + b"\0\0"
    # Flexible versions have tags after the header as well, in the request and in the response.
    answer = probe.send_request(port, ALTER_PARTITION_REASSIGNMENTS, b"\0" + body, timeout=15)
    _refuse(struct.unpack_from(">h", answer, 5)[0], f"the reassignment of {topic}-{partition}")


def _refuse(error: int, what: str) -> None:
    if error:
        raise LeadershipError(f"{what}: error code {error}")
