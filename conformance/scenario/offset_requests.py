"""The requests about committed offsets: OffsetCommit, OffsetFetch, OffsetDelete."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fencepost.conformance.scenario.actors import Call, Member
from fencepost.conformance.scenario.requests import RequestSender
from fencepost.traces.events import Body


class OffsetRequests(RequestSender):
    """Sends requests about the offsets of the group under test."""

    def commit(
        self,
        member: Member | None,
        offsets: Mapping[tuple[str, int] | int, int | Body],
        *,
        version: int | None = None,
        **changes: Any,
    ) -> Call:
        """Send OffsetCommit as a member (None: without one).

        Keys are partitions of the kit's topic, or pairs of topic and partition; values are offsets, or fields of the
        partition.
        """
        number = self.highest_version("OffsetCommit") if version is None else version
        body = {
            "group_id": self.group_id,
            "generation_id_or_member_epoch": member.generation if member else -1,
            "member_id": member.id if member else "",
            "group_instance_id": member.instance if member else None,
            "retention_time_ms": -1,
            "topics": self.partitions_by_topic(
                {
                    where: value if isinstance(value, Mapping) else {"committed_offset": value}
                    for where, value in offsets.items()
                },
                {"committed_leader_epoch": -1, "committed_metadata": ""},
            ),
        }
        return self.send("OffsetCommit", body | changes, version=number, member=member.label if member else "")

    def partitions_by_topic(self, rows: Mapping[tuple[str, int] | int, Body], defaults: Body) -> list[Body]:
        """The rows, each with the defaults, as the list of topics of a request."""
        topics: dict[str, list[Body]] = {}
        for where, row in rows.items():
            topic, index = (self.topic, where) if isinstance(where, int) else where
            topics.setdefault(topic, []).append({"partition_index": index, **defaults, **row})
        return [{**self.topic_entry(topic), "partitions": found} for topic, found in topics.items()]

    def topic_entry(self, topic: str) -> dict[str, Any]:
        """The name and the id of a topic; the id of a topic that is not the kit's is made up, as it does not exist."""
        topic_id = self.description.topic_id if topic == self.topic else None
        return {"name": topic, "topic_id": topic_id or str(uuid.uuid5(uuid.NAMESPACE_URL, topic))}

    def fetch(
        self,
        partitions: Iterable[tuple[str, int] | int] | None = (0,),
        *,
        groups: Sequence[str] | None = None,
        stable: bool = False,
        version: int | None = None,
        **changes: Any,
    ) -> Call:
        """Send OffsetFetch for partitions (None: all) of the groups (None: the group under test; several: v8)."""
        number = self.highest_version("OffsetFetch") if version is None else version
        topics: list[Body] | None = None
        if partitions is not None:
            indexes: dict[str, list[int]] = {}
            for partition in partitions:
                topic, index = (self.topic, partition) if isinstance(partition, int) else partition
                indexes.setdefault(topic, []).append(index)
            topics = [{**self.topic_entry(topic), "partition_indexes": found} for topic, found in indexes.items()]
        group_ids = groups if groups is not None else [self.group_id]
        if number >= 8:
            rows = [{"group_id": group, "topics": topics} for group in group_ids]
            body: dict[str, Any] = {"groups": rows, "require_stable": stable}
        else:
            body = {"group_id": group_ids[0], "topics": topics, "require_stable": stable}
        return self.send("OffsetFetch", body | changes, version=number)

    def delete_offsets(self, partitions: Iterable[tuple[str, int] | int], **changes: Any) -> Call:
        """Send OffsetDelete for partitions: of the kit's topic, or pairs of topic and partition."""
        topics = self.partitions_by_topic({where: {} for where in partitions}, {})
        return self.send("OffsetDelete", {"group_id": self.group_id, "topics": topics} | changes)
