"""Committed offsets: their store, transactions, OffsetFetch, OffsetDelete, OffsetCommit and TxnOffsetCommit."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Offset, Partition, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.messages import CONSUMER
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.records import (
    GroupTombstone,
    OffsetRecord,
    OffsetTombstone,
    ProducerRecord,
    TransactionEnd,
)
from fencepost.adapters.serve.coordination import Body, Request
from fencepost.model.errors import Error

# --- Committed offsets and open transactions, updated by live requests and by loading.


class OffsetStore:
    """Applies the records of the log to the groups' offsets."""

    def __init__(self, runtime: CoordinatorState) -> None:
        self._runtime = runtime

    def group_for_offsets(self, group_id: str) -> Group:
        """The group of that id; a missing one is created as a simple group (COMMIT-07)."""
        group = self._runtime.groups.get(group_id)
        if group is None:
            group = self._runtime.groups[group_id] = Group(group_id, self._runtime.now)
        return group

    def add_offset(self, record: OffsetRecord) -> None:
        """Add an offset; a transactional one is invisible until its transaction ends."""
        group = self.group_for_offsets(record.group)
        offset = Offset(
            record.offset,
            record.leader_epoch,
            record.metadata,
            record.committed_at,
            record.expires_at,
            self._runtime.next_commit_number(),
        )
        partition = (record.topic, record.partition)
        if record.producer is None:
            group.offsets[partition] = offset
        else:
            group.uncommitted.setdefault(record.producer, {})[partition] = offset

    def end_transaction(self, record: TransactionEnd) -> None:
        """Commit or discard the producer's offsets in every group (FETCH-12)."""
        for group in self._runtime.groups.values():
            offsets = group.uncommitted.pop(record.producer, {})
            if record.committed:
                for partition, offset in offsets.items():
                    self.commit_offset(group, partition, offset)

    def commit_offset(self, group: Group, partition: Partition, offset: Offset) -> None:
        """Commit a transaction's offset, unless a later one was written."""
        present = group.offsets.get(partition)
        if present is None or present.number < offset.number:
            group.offsets[partition] = offset

    def remove_offset(self, record: OffsetTombstone) -> None:
        """Remove a partition's offset and its uncommitted ones; a transaction stays open until its end."""
        group = self._runtime.groups.get(record.group)
        if group is None:
            return
        partition = (record.topic, record.partition)
        group.offsets.pop(partition, None)
        for offsets in group.uncommitted.values():
            offsets.pop(partition, None)

    def remove_group(self, record: GroupTombstone) -> None:
        """Remove a group and its offsets."""
        group = self._runtime.groups.pop(record.group, None)
        for member_id in group.pending if group is not None else ():
            self._runtime.timers.cancel(("member", record.group, member_id))


# --- Producers and their transactions, for offsets that are committed in transactions.
#
# Epochs are checked; transaction timeouts and partitions of topics are not kept.


class Transactions:
    """Handles InitProducerId, AddOffsetsToTxn and EndTxn."""

    def __init__(self, runtime: CoordinatorState, ledger: OffsetStore) -> None:
        self._runtime = runtime
        self._ledger = ledger
        self._producers: dict[str, ProducerRecord] = {}
        self._last_producer = 0

    def add_producer(self, record: ProducerRecord) -> None:
        """Add a producer that the log has."""
        self._last_producer = max(self._last_producer, record.producer)
        if record.transactional_id is not None:
            self._producers[record.transactional_id] = record

    def handle_init(self, request: Request) -> None:
        """A producer id; a transactional id keeps its own under a new epoch, its open transaction is aborted."""
        record = self.next_producer(request.body.get("transactional_id"))
        try:
            self._runtime.write(record, TransactionEnd(record.producer, committed=False))
        except LogWriteError:
            body = {"error_code": Error.COORDINATOR_NOT_AVAILABLE, "producer_id": -1, "producer_epoch": 0}
        else:
            self.add_producer(record)
            self._ledger.end_transaction(TransactionEnd(record.producer, committed=False))
            body = {"error_code": Error.NONE, "producer_id": record.producer, "producer_epoch": record.epoch}
        self._runtime.respond(request, body)

    def next_producer(self, transactional_id: str | None) -> ProducerRecord:
        """A new producer, or the next epoch of a known one."""
        present = self._producers.get(transactional_id) if transactional_id is not None else None
        if present is None:
            return ProducerRecord(transactional_id, self._last_producer + 1, 0)
        return ProducerRecord(transactional_id, present.producer, present.epoch + 1)

    def handle_add_offsets(self, request: Request) -> None:
        """Return whether the producer may add a group's offsets to its transaction; the state is unchanged."""
        self._runtime.respond(request, {"error_code": self.check_producer(request)})

    def handle_end(self, request: Request) -> None:
        """End the producer's transaction."""
        committed = request.body.get("committed", False)
        error = self.check_producer(request) or self.end_transaction(request.body.get("producer_id", 0), committed)
        self._runtime.respond(request, {"error_code": error})

    def check_producer(self, request: Request) -> Error:
        """Whether id and epoch are those of the transactional id."""
        present = self._producers.get(request.body.get("transactional_id", ""))
        if present is None or present.producer != request.body.get("producer_id", 0):
            return Error.INVALID_PRODUCER_ID_MAPPING
        current = present.epoch == request.body.get("producer_epoch", 0)
        return Error.NONE if current else Error.INVALID_PRODUCER_EPOCH

    def is_fenced(self, request: Request) -> bool:
        """Whether the epoch of a transactional commit is older than that of its transactional id (COMMIT-31)."""
        present = self._producers.get(request.body.get("transactional_id", ""))
        if present is None or present.producer != request.body.get("producer_id", 0):
            return False
        return bool(request.body.get("producer_epoch", 0) < present.epoch)

    def end_transaction(self, producer: int, committed: bool) -> Error:
        """Write the end of the transaction to the log, then apply it."""
        record = TransactionEnd(producer, committed)
        try:
            self._runtime.write(record)
        except LogWriteError:
            return Error.COORDINATOR_NOT_AVAILABLE
        self._ledger.end_transaction(record)
        return Error.NONE


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


# --- OffsetCommit and TxnOffsetCommit: admission of commits, and the offsets that they store.

_NO_GENERATION = -1
_NO_RETENTION = -1
_NO_TIMESTAMP = -1
_GROUP_NOT_FOUND_SINCE = 9


@dataclass(frozen=True, slots=True)
class Commit:
    """A parsed commit: the sender's identity, and for a transactional one the producer of its transaction."""

    request: Request
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    producer: int | None

    @classmethod
    def read(cls, request: Request) -> "Commit":
        """Take the fields out of the body of either request."""
        body = request.body
        transactional = request.api == "TxnOffsetCommit"
        return cls(
            request,
            body.get("group_id", ""),
            body.get("generation_id" if transactional else "generation_id_or_member_epoch", _NO_GENERATION),
            body.get("member_id", ""),
            body.get("group_instance_id"),
            body.get("producer_id", 0) if transactional else None,
        )

    @property
    def is_transactional(self) -> bool:
        """Whether the offsets wait for the end of a transaction."""
        return self.producer is not None

    @property
    def names_member(self) -> bool:
        """Whether it has a member id, an instance id or a generation."""
        return self.generation >= 0 or bool(self.member_id) or self.instance_id is not None


Results = dict[tuple[str | None, int], Error]
"""The error of each partition; a topic without a name went by an id that no topic has."""


class Commits:
    """Handles OffsetCommit and TxnOffsetCommit."""

    def __init__(
        self, runtime: CoordinatorState, rounds: Rebalancer, ledger: OffsetStore, transactions: Transactions
    ) -> None:
        self._runtime = runtime
        self._rounds = rounds
        self._ledger = ledger
        self._transactions = transactions

    def handle(self, request: Request) -> None:
        """Respond for every partition; the group is checked only if the cluster has one of them (COMMIT-14)."""
        commit = Commit.read(request)
        results: Results = self.refuse_absent(request)
        if self.partitions(request):
            error = self.admit(commit)
            results |= self.refuse(commit, error) if error else self.store(commit)
        self.respond(request, results)

    def refuse_absent(self, request: Request) -> Results:
        """The errors of the partitions that the cluster lacks (COMMIT-13)."""
        return {
            (topic, entry["partition_index"]): error
            for topic, entry in self.entries(request)
            if (error := self._runtime.partition_error(topic, entry["partition_index"]))
        }

    def partitions(self, request: Request) -> list[tuple[str, Body]]:
        """Topic and partition entry of each requested partition that the cluster has."""
        return [
            (topic, entry)
            for topic, entry in self.entries(request)
            if topic is not None and self._runtime.has_partition(topic, entry["partition_index"])
        ]

    def entries(self, request: Request) -> list[tuple[str | None, Body]]:
        """Topic and partition entry of each requested partition."""
        return [
            (self._runtime.topic_name(request, topic), entry)
            for topic in request.body.get("topics", ())
            for entry in topic["partitions"]
        ]

    # -- may it commit? -----------------------------------------------------------------------------------------

    def admit(self, commit: Commit) -> Error:
        """Return NONE for an accepted commit, which extends the member's session (COMMIT-19), else the error."""
        if commit.is_transactional and not commit.group_id:
            return Error.INVALID_GROUP_ID
        if commit.is_transactional and self._transactions.is_fenced(commit.request):
            return Error.INVALID_PRODUCER_EPOCH
        group = self._runtime.groups.get(commit.group_id)
        if group is None:
            return self.check_unknown_group(commit)
        error = self.check(group, commit)
        if not error and not commit.is_transactional:
            self.extend_session(group, commit)
        return error

    def check_unknown_group(self, commit: Commit) -> Error:
        """Only a commit without a generation creates a group (COMMIT-07, COMMIT-11, DIV-05, DIV-19)."""
        if commit.generation < 0:
            return Error.NONE
        if not commit.is_transactional and commit.request.version >= _GROUP_NOT_FOUND_SINCE:
            return Error.GROUP_ID_NOT_FOUND
        return Error.ILLEGAL_GENERATION

    def check(self, group: Group, commit: Commit) -> Error:
        """Membership, generation, state, in this order (COMMIT-06)."""
        if commit.generation < 0 and group.state is State.EMPTY:
            return Error.NONE
        if commit.names_member:
            if error := group.check_member(commit.member_id, commit.instance_id):
                return error
            if commit.generation != group.generation:
                return Error.ILLEGAL_GENERATION
        elif not commit.is_transactional:
            return Error.UNKNOWN_MEMBER_ID
        if group.state is State.COMPLETING and not commit.is_transactional:
            return Error.REBALANCE_IN_PROGRESS
        return Error.NONE

    def extend_session(self, group: Group, commit: Commit) -> None:
        """Extend the member's session as a heartbeat does."""
        member = group.members.get(commit.member_id)
        if member is not None and group.state in (State.STABLE, State.PREPARING):
            self._rounds.touch_session(group, member)

    # -- taking it in -------------------------------------------------------------------------------------------

    def refuse(self, commit: Commit, error: Error) -> Results:
        """Return the same error for every partition (COMMIT-22)."""
        entries = self.partitions(commit.request)
        return {(topic, entry["partition_index"]): error for topic, entry in entries}

    def store(self, commit: Commit) -> Results:
        """Write all offsets or none, except those with too long metadata, which fail alone (COMMIT-15)."""
        results: Results = {}
        batch: list[OffsetRecord] = []
        for topic, entry in self.partitions(commit.request):
            too_long = self.is_metadata_too_long(entry)
            results[topic, entry["partition_index"]] = Error.OFFSET_METADATA_TOO_LARGE if too_long else Error.NONE
            if not too_long:
                batch.append(self.record(commit, topic, entry))
        try:
            self._runtime.write(*batch)
        except LogWriteError:
            return self.refuse(commit, Error.COORDINATOR_NOT_AVAILABLE)
        self._ledger.group_for_offsets(commit.group_id)
        for record in batch:
            self._ledger.add_offset(record)
        return results

    def is_metadata_too_long(self, entry: Body) -> bool:
        """Whether the metadata has more characters than the limit."""
        return len(entry.get("committed_metadata") or "") > self._runtime.settings.max_offset_metadata

    def record(self, commit: Commit, topic: str, entry: Body) -> OffsetRecord:
        """The record of the offset. Null metadata becomes `""` (COMMIT-16)."""
        now = self._runtime.now
        timestamp = entry.get("commit_timestamp", _NO_TIMESTAMP)
        retention = commit.request.body.get("retention_time_ms", _NO_RETENTION)
        return OffsetRecord(
            commit.group_id,
            topic,
            entry["partition_index"],
            entry["committed_offset"],
            entry.get("committed_leader_epoch", -1),
            entry.get("committed_metadata") or "",
            now if timestamp == _NO_TIMESTAMP else timestamp,
            None if retention == _NO_RETENTION else now + retention,
            commit.producer,
        )

    def respond(self, request: Request, results: Results) -> None:
        """Return every requested partition in order; those the cluster lacks have their own error."""
        topics: list[dict[str, Any]] = []
        for topic in request.body.get("topics", ()):
            name = self._runtime.topic_name(request, topic)
            entries = [
                {"partition_index": entry["partition_index"], "error_code": results[name, entry["partition_index"]]}
                for entry in topic["partitions"]
            ]
            topics.append(self._runtime.topic_reference(request, name, topic.get("topic_id")) | {"partitions": entries})
        self._runtime.respond(request, {"topics": topics})
