"""Committed offsets and open transactions, updated by live requests and by loading."""

from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Offset, Partition
from fencepost.adapters.classic.records import GroupTombstone, OffsetRecord, OffsetTombstone, TransactionEnd


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
