"""The requests around offsets and of administrators."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fencepost.conformance.scenario.actors import Call, Member
from fencepost.conformance.scenario.requests import RequestSender
from fencepost.traces.events import Body

PREPARING = "PreparingRebalance"
"""The state in which a group waits for JoinGroup requests."""
MAX_STATE_POLLS = 8
"""How often to ask for a state that is to come."""


class AdminRequests(RequestSender):
    """What is sent about the scenario's group and its offsets, by members and others."""

    def commit(
        self,
        member: Member | None,
        offsets: Mapping[tuple[str, int] | int, int | Body],
        *,
        version: int | None = None,
        **changes: Any,
    ) -> Call:
        """Send OffsetCommit, for a member or (None) for nobody. Keys are partitions of the kit's topic or
        (topic, partition); values are offsets or bodies of a partition."""
        number = self.highest_version("OffsetCommit") if version is None else version
        body = {
            "group_id": self.group,
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
        """Topics with their partitions, as messages hold them."""
        topics: dict[str, list[Body]] = {}
        for where, row in rows.items():
            topic, index = (self.topic, where) if isinstance(where, int) else where
            topics.setdefault(topic, []).append({"partition_index": index, **defaults, **row})
        return [{**self.topic_entry(topic), "partitions": found} for topic, found in topics.items()]

    def topic_entry(self, topic: str) -> dict[str, Any]:
        """A topic as versions name it, older ones by name and newer ones by id; one that is not the kit's does not
        exist, and its id is made up."""
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
        """Send OffsetFetch for partitions (None: all), of this group or of several (v8)."""
        number = self.highest_version("OffsetFetch") if version is None else version
        topics: list[Body] | None = None
        if partitions is not None:
            found: dict[str, list[int]] = {}
            for where in partitions:
                topic, index = (self.topic, where) if isinstance(where, int) else where
                found.setdefault(topic, []).append(index)
            topics = [{**self.topic_entry(topic), "partition_indexes": indexes} for topic, indexes in found.items()]
        asked = groups if groups is not None else [self.group]
        if number >= 8:
            rows = [{"group_id": group, "topics": topics} for group in asked]
            body: dict[str, Any] = {"groups": rows, "require_stable": stable}
        else:
            body = {"group_id": asked[0], "topics": topics, "require_stable": stable}
        return self.send("OffsetFetch", body | changes, version=number)

    # --- admin --------------------------------------------------------------------------------------------------

    def describe_groups(self, *groups: str, version: int | None = None, **changes: Any) -> Call:
        """Send DescribeGroups for this group or others."""
        body = {"groups": list(groups) or [self.group], "include_authorized_operations": False}
        return self.send("DescribeGroups", body | changes, version=version)

    async def wait_for_state(self, state: str) -> bool:
        """Wait until DescribeGroups shows the group in a state, which proves that what leads there was handled.

        False if that does not come, or if the target cannot tell.
        """
        for _ in range(MAX_STATE_POLLS):
            await self.sleep(self.short_pause)
            if "DescribeGroups" not in self.description.versions:
                return False
            body = await self.describe_groups()
            if any(row.get("group_state") == state for row in body.get("groups") or ()):
                return True
        return False

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = (), *, version: int | None = None) -> Call:
        """Send ListGroups."""
        body = {"states_filter": list(states), "types_filter": list(types)}
        return self.send("ListGroups", body, version=version)

    def delete_groups(self, *groups: str, version: int | None = None) -> Call:
        """Send DeleteGroups for this group or others."""
        return self.send("DeleteGroups", {"groups_names": list(groups) or [self.group]}, version=version)

    def delete_offsets(self, partitions: Iterable[tuple[str, int] | int], **changes: Any) -> Call:
        """Send OffsetDelete."""
        topics = self.partitions_by_topic({where: {} for where in partitions}, {})
        return self.send("OffsetDelete", {"group_id": self.group, "topics": topics} | changes)
