"""OffsetCommit and TxnOffsetCommit: admission of commits, and the offsets that they store."""

from dataclasses import dataclass
from typing import Any

from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.messages import Error
from fencepost.adapters.classic.offset_store import OffsetStore
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.records import OffsetRecord
from fencepost.adapters.classic.transactions import Transactions
from fencepost.adapters.serve.coordination import Body, Request

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
