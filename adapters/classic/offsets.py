"""OffsetFetch and OffsetDelete."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Offset, Partition, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.messages import Error
from fencepost.adapters.classic.offset_store import OffsetStore
from fencepost.adapters.classic.records import OffsetTombstone
from fencepost.adapters.classic.subscription import CONSUMER
from fencepost.adapters.serve.coordination import Body, Request

_GROUPS_SINCE = 8


class Offsets:
    """Handles OffsetFetch and OffsetDelete."""

    def __init__(self, runtime: CoordinatorState, ledger: OffsetStore) -> None:
        self._runtime = runtime
        self._ledger = ledger

    # -- fetch --------------------------------------------------------------------------------------------------

    def handle_fetch(self, request: Request) -> None:
        """Respond for every requested group. State, member and generation do not matter (FETCH-07)."""
        stable = request.body.get("require_stable", False)
        if request.version < _GROUPS_SINCE:
            topics = self.fetch_group(request, request.body, stable)
            self._runtime.respond(request, {"topics": topics, "error_code": Error.NONE})
            return
        groups = [
            {
                "group_id": entry["group_id"],
                "topics": self.fetch_group(request, entry, stable),
                "error_code": Error.NONE,
            }
            for entry in request.body.get("groups", ())
        ]
        self._runtime.respond(request, {"groups": groups})

    def fetch_group(self, request: Request, entry: Body, stable: bool) -> list[dict[str, Any]]:
        """The topics of one group's response; a null list requests all of them (FETCH-04, FETCH-05)."""
        group = self._runtime.groups.get(entry.get("group_id", ""))
        wanted = entry.get("topics", ())
        if wanted is None:
            topics = self.all_topics(group)
        else:
            topics = [
                (self._runtime.topic_name(request, topic), topic.get("topic_id"), topic["partition_indexes"])
                for topic in wanted
            ]
        return [
            self._runtime.topic_reference(request, name, topic_id)
            | {"partitions": self.fetch_partitions(group, name, indexes, stable)}
            for name, topic_id, indexes in topics
        ]

    def all_topics(self, group: Group | None) -> list[tuple[str | None, str | None, list[int]]]:
        """Every partition with a committed offset, by name and id of its topic."""
        partitions: Iterable[Partition] = sorted(group.offsets) if group is not None else ()
        return [
            (name, self._runtime.topics.id_of(name), [index for _, index in found])
            for name, found in groupby(partitions, lambda found: found[0])
        ]

    def fetch_partitions(
        self, group: Group | None, topic: str | None, indexes: Iterable[int], stable: bool
    ) -> list[dict[str, Any]]:
        """The rows of one topic; it has no name if no topic has the requested id."""
        if topic is None:
            return [self.row(index, None, Error.UNKNOWN_TOPIC_ID) for index in indexes]
        return [self.fetch_partition(group, (topic, index), stable) for index in indexes]

    def fetch_partition(self, group: Group | None, partition: Partition, stable: bool) -> dict[str, Any]:
        """The committed offset; -1 without one, and with an open transaction if the request wants stable offsets."""
        unstable = stable and group is not None and group.has_uncommitted(partition)
        offset = None if unstable or group is None else group.offsets.get(partition)
        return self.row(partition[1], offset, Error.UNSTABLE_OFFSET_COMMIT if unstable else Error.NONE)

    def row(self, index: int, offset: Offset | None, error: Error) -> dict[str, Any]:
        """The row of a partition in a response."""
        return {
            "partition_index": index,
            "committed_offset": offset.offset if offset else -1,
            "committed_leader_epoch": offset.leader_epoch if offset else -1,
            "metadata": offset.metadata if offset else "",
            "error_code": error,
        }

    # -- delete -------------------------------------------------------------------------------------------------

    def handle_delete(self, request: Request) -> None:
        """Respond for every partition, or with one error for all (ADMIN-29)."""
        group_id = request.body.get("group_id", "")
        group = self._runtime.groups.get(group_id)
        error = self.check_delete(group_id, group)
        topics: list[dict[str, Any]] = []
        if group is not None and not error:
            results = self.deletion_errors(group, request)
            error = self.delete(group, results)
            topics = [] if error else self.delete_results(request, results)
        self._runtime.respond(request, {"error_code": error, "topics": topics})

    def check_delete(self, group_id: str, group: Group | None) -> Error:
        """Check that an active group is a consumer group with known subscriptions (ADMIN-23, ADMIN-24)."""
        if not group_id:
            return Error.INVALID_GROUP_ID
        if group is None:
            return Error.GROUP_ID_NOT_FOUND
        if group.state is not State.EMPTY and group.protocol_type != CONSUMER:
            return Error.NON_EMPTY_GROUP
        return Error.NONE

    def deletion_errors(self, group: Group, request: Request) -> dict[Partition, Error]:
        """The error of each partition, NONE if its offset may be deleted (ADMIN-25, ADMIN-28)."""
        results: dict[Partition, Error] = {}
        for topic in request.body.get("topics", ()):
            for entry in topic["partitions"]:
                partition = (topic["name"], entry["partition_index"])
                results[partition] = self.deletion_error(group, partition)
        return results

    def deletion_error(self, group: Group, partition: Partition) -> Error:
        """NONE, or the error that keeps the partition's offset."""
        if not self._runtime.has_partition(*partition):
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        return Error.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed(partition[0]) else Error.NONE

    def delete(self, group: Group, results: dict[Partition, Error]) -> Error:
        """Delete the offsets without error, all or none. The group stays, with or without offsets (DIV-12)."""
        batch = [
            OffsetTombstone(group.group_id, *partition)
            for partition, error in results.items()
            if not error and (partition in group.offsets or group.has_uncommitted(partition))
        ]
        try:
            self._runtime.write(*batch)
        except LogWriteError:
            return Error.COORDINATOR_NOT_AVAILABLE
        for record in batch:
            self._ledger.remove_offset(record)
        return Error.NONE

    def delete_results(self, request: Request, results: dict[Partition, Error]) -> list[dict[str, Any]]:
        """The topics of the response."""
        return [
            {
                "name": topic["name"],
                "partitions": [
                    {
                        "partition_index": entry["partition_index"],
                        "error_code": results[topic["name"], entry["partition_index"]],
                    }
                    for entry in topic["partitions"]
                ],
            }
            for topic in request.body.get("topics", ())
        ]
