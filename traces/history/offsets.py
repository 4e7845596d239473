"""Committed offsets, ends of logs and owners of partitions, as far as the messages of a trace show them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost.traces.events import Body
from fencepost.traces.history.timeline import PartitionLag
from fencepost.traces.message_fields import (
    accepted_offsets,
    int32,
    int64,
    log_end_offsets,
    named_groups,
    objects_in,
    partitions_in,
    topic_name_of,
    topic_names,
)
from fencepost.traces.operations import Operation

MAX_PARTITIONS = 100_000
"""How many partitions are followed in one trace."""
Partition = tuple[str, int]


@dataclass(slots=True)
class OffsetTable:
    """The latest offsets and owners in one trace."""

    topics: dict[str, str] = field(default_factory=dict)
    """Names by id."""
    committed: dict[str, dict[Partition, int]] = field(default_factory=dict)
    owners: dict[str, dict[str, str]] = field(default_factory=dict)
    """By group and `topic/number`, the member that it is assigned to."""
    log_ends: dict[Partition, int] = field(default_factory=dict)
    count: int = 0

    def on_response(self, operation: Operation) -> None:
        """Take in a response."""
        api, request, response = operation.api, operation.body, operation.response
        if response is None:
            return
        if api == "Metadata":
            self.topics |= topic_names(response)
        elif api in ("Fetch", "ListOffsets"):
            for topic, number, offset in log_end_offsets(api, request, response, self.topics) or ():
                if (topic, number) in self.log_ends or self.has_room():
                    self.log_ends[topic, number] = offset
        elif api == "OffsetCommit":
            self.add_committed(operation, accepted_offsets(request, response, self.topics) or [])
        elif api == "OffsetFetch":
            for group, body in fetched_groups(request, response):
                for row in objects_in(body, "topics"):
                    self.add_fetched(group, row)
        elif api == "SyncGroup" and response.get("error_code") == 0:
            self.add_assignment(operation, response)

    def has_room(self) -> bool:
        """Whether a further partition may be followed; it counts."""
        self.count += 1
        return self.count <= MAX_PARTITIONS

    def add_committed(self, operation: Operation, offsets: list[tuple[str, int, int]]) -> None:
        """Take in accepted offsets."""
        for group in named_groups(operation.body):
            known = self.committed.setdefault(group, {})
            for topic, number, offset in offsets:
                if (topic, number) in known or self.has_room():
                    known[topic, number] = offset

    def add_fetched(self, group: str, topic: Body) -> None:
        """Take in the offsets of one topic that a response to OffsetFetch shows."""
        name = topic_name_of(topic, self.topics)
        known = self.committed.setdefault(group, {})
        for row in objects_in(topic, "partitions"):
            number, offset = int32(row.get("partition_index")), int64(row.get("committed_offset"))
            if name is None or number is None or offset is None or offset < 0 or row.get("error_code"):
                continue
            if (name, number) in known or self.has_room():
                known[name, number] = offset

    def add_assignment(self, operation: Operation, response: Body) -> None:
        """Take in the partitions that a member is assigned: it has no others."""
        member = operation.body.get("member_id")
        for group in named_groups(operation.body):
            owners = self.owners.setdefault(group, {})
            for partition in [partition for partition, owner in owners.items() if owner == member]:
                del owners[partition]
            for partition in partitions_in(response.get("assignment")):
                if self.has_room():
                    owners[partition] = str(member)

    def partitions_of(self, group: str, members: set[str]) -> Iterator[PartitionLag]:
        """The partitions of a group by topic and number; only present members own any."""
        committed, owners = self.committed.get(group, {}), self.owners.get(group, {})
        owned = {split_partition(name): owner for name, owner in owners.items() if owner in members}
        for topic, number in sorted({*committed, *owned}):
            where = (topic, number)
            yield PartitionLag(topic, number, committed.get(where), self.log_ends.get(where), owned.get(where))


def split_partition(name: str) -> Partition:
    """The topic and the number in `topic/number`."""
    topic, _, number = name.rpartition("/")
    return topic, int(number)


def fetched_groups(request: Body, response: Body) -> Iterator[tuple[str, Body]]:
    """The groups in a response to OffsetFetch, each with its topics."""
    if isinstance(response.get("groups"), list):
        for row in objects_in(response, "groups"):
            if isinstance(row.get("group_id"), str) and not row.get("error_code"):
                yield row["group_id"], row
    elif not response.get("error_code"):
        yield from ((group, response) for group in named_groups(request))
