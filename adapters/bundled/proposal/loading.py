"""Loading in the proposal: a synchronization that was under way goes on."""

from fencepost.adapters.bundled.classic.group import Group, State
from fencepost.adapters.bundled.classic.loading import Loading
from fencepost.adapters.bundled.classic.records import GroupRecord, Record, SynchronizationRecord


class ProposedLoading(Loading):
    """Reads the log, with the records of synchronizations."""

    def replay(self, record: Record) -> None:
        """Apply one record to the state."""
        if isinstance(record, SynchronizationRecord):
            self.resume(record)
        else:
            super().replay(record)

    def restore_group(self, record: GroupRecord) -> None:
        """Restore the record's group. One of another generation leaves nobody to be waited for."""
        known = self._runtime.groups.get(record.group)
        awaited = known.unsynced if known is not None and known.generation == record.generation else set()
        super().restore_group(record)
        group = self._runtime.groups[record.group]
        group.unsynced = awaited & group.members.keys()

    def resume(self, record: SynchronizationRecord) -> None:
        """Wait again for those who have not asked for their assignment."""
        group = self._runtime.groups[record.group]
        group.unsynced = set(record.awaited)
        group.state = State.STABLE if record.is_assigned else State.COMPLETING

    def start_group(self, group: Group) -> None:
        """Give every member a full session, and those who are waited for a full rebalance timeout."""
        if group.unsynced:
            self._rounds.start_sync_timer(group)
        super().start_group(group)
