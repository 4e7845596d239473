"""Requests of the reference client as bodies of the wire codec, and responses as it takes them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.classic.core.state import HeartbeatResponse, JoinResponse, LeaveResponse, MemberView, SyncResponse
from fencepost.model.classic.member.client import (
    CallbackKind,
    Client,
    ClientResponse,
    FindCoordinator,
    FindCoordinatorResponse,
    ListOffsets,
    ListOffsetsResponse,
    Position,
    is_returnable,
    position_of,
)
from fencepost.model.classic.member.step import SendRequest
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup, SyncGroup, id_token
from fencepost.model.errors import Error
from fencepost.model.groups.messages import (
    Offset,
    OffsetCommit,
    OffsetFetch,
    OffsetFetchResponse,
    Partition,
    PartitionErrors,
)
from fencepost.model.sorts import AssignmentBytes
from fencepost.model.wire.codec import Body
from fencepost.model.wire.records import Batch, decode_batches, records_of


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
        body.get("protocol_type"),
        body["protocol_name"],
        id_token(body["leader"]),
        id_token(body["member_id"]),
        members,
        body.get("skip_assignment", False),
    )


def read_sync(request: Body, body: Body) -> ClientResponse:
    """The response to SyncGroup."""
    named = body.get("protocol_type"), body.get("protocol_name")
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


# --- The fetcher of the reference client: what was fetched, and which records a poll returns (member.md 6.6).
#
# Each response to Fetch adds a completed fetch for each partition at the tail of a queue. A poll drains the head, then
# the next, until it has its limit. No fetch is sent for a partition while one of its completed fetches is in the queue.

DEFAULT_LIMIT = 30
"""The most records that a poll returns."""


@dataclass(slots=True)
class CompletedFetch:
    """Records of one partition, by their offsets. `position` is that of the client which the next one continues, and
    `following` the position behind the last batch."""

    partition: Partition
    position: int
    offsets: list[int]
    following: int


@dataclass(frozen=True, slots=True)
class ReturnedRecords:
    """Records that a poll returns, by their offsets: the position moves from `first` to `following`."""

    partition: Partition
    offsets: tuple[int, ...]
    first: int
    following: int


@dataclass(slots=True)
class Fetcher:
    """Completed fetches in their order; `limit` is the most records that a poll returns."""

    limit: int = DEFAULT_LIMIT
    queue: deque[CompletedFetch] = field(default_factory=deque)
    turns: dict[Partition, int] = field(default_factory=dict)
    """When records of a partition were returned last, as the number of that turn."""

    def positions_to_fetch(self, client: Client, in_flight: Iterable[Partition]) -> list[Position]:
        """The positions to ask for: those of partitions of which nothing is buffered or asked for."""
        busy = {*in_flight, *(completed.partition for completed in self.queue)}
        wanted = [one for one in client.positions if self.is_fetchable(client, one) and one.partition not in busy]
        return self.put_in_order(wanted)

    def put_in_order(self, positions: list[Position]) -> list[Position]:
        """The positions in the order in which brokers fill their responses: the longest without records first
        (PREFETCH-10)."""
        return sorted(positions, key=lambda one: self.turns.get(one.partition, 0))

    def is_fetchable(self, client: Client, position: Position) -> bool:
        """Whether a partition may be fetched: its position is known, its records could be returned, and no listener is
        being told that it is given up (PREFETCH-08)."""
        call = client.callback
        given_up = call.partitions if call is not None and call.kind is not CallbackKind.ASSIGNED else ()
        if position.partition in given_up:
            return False
        return position.offset is not None and is_returnable(client, position.partition)

    def add_response(self, client: Client, asked: Mapping[Partition, int], body: Body) -> None:
        """A response to Fetch has come; `asked` are the offsets by partition that the request asked for."""
        for topic in body["responses"]:
            for row in topic["partitions"]:
                partition = topic["topic"], row["partition_index"]
                if row["error_code"] == Error.NONE and self.is_expected(client, partition, asked.get(partition)):
                    self.add_batches(partition, asked[partition], decode_batches(row["records"] or b"").batches)

    def is_expected(self, client: Client, partition: Partition, asked: int | None) -> bool:
        """Whether the position is still the one that was asked for (POLL-11)."""
        position = position_of(client, partition)
        return asked is not None and position is not None and position.offset == asked

    def add_batches(self, partition: Partition, asked: int, batches: tuple[Batch, ...]) -> None:
        """Add the records of a partition from the offset on that was asked for."""
        if not batches:
            return
        records = (record for batch in batches if not batch.control for record in records_of(batch)[0])
        offsets = [record.offset for record in records if self.is_wanted(record.offset, asked)]
        # Compaction may have removed the last records of the last batch (POLL-12).
        self.queue.append(CompletedFetch(partition, asked, offsets, batches[-1].next_offset))

    def is_wanted(self, offset: int, asked: int) -> bool:
        """Whether a record of a batch is one that was asked for: a batch may begin before it."""
        return offset >= asked

    def drain(self, client: Client) -> Iterator[ReturnedRecords]:
        """What a poll returns, completed fetch by completed fetch; the caller moves the positions meanwhile."""
        left = self.limit
        for _ in range(len(self.queue)):
            if not left:
                return
            completed = self.queue.popleft()
            if self.is_stale(client, completed):
                continue
            if not is_returnable(client, completed.partition):
                self.queue.append(completed)  # paused: kept for later (POLL-09)
                continue
            taken = self.take(completed, left)
            left -= len(taken.offsets)
            if completed.offsets:
                self.queue.appendleft(completed)
            yield taken

    def is_stale(self, client: Client, completed: CompletedFetch) -> bool:
        """Whether a completed fetch is of no use any more: its partition is gone, or its position is another one."""
        position = position_of(client, completed.partition)
        is_subscribed = client.is_manual or completed.partition[0] in client.topics
        return position is None or position.offset != completed.position or not is_subscribed

    def take(self, completed: CompletedFetch, count: int) -> ReturnedRecords:
        """Take `count` records from a completed fetch."""
        offsets, completed.offsets = completed.offsets[:count], completed.offsets[count:]
        first = completed.position
        self.turns[completed.partition] = 1 + max(self.turns.values(), default=0)
        completed.position = offsets[-1] + 1 if completed.offsets else completed.following
        return ReturnedRecords(completed.partition, tuple(offsets), first, completed.position)
