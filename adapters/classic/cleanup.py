"""The clean-up pass: removes expired offsets, and Empty groups without offsets."""

from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Offset, Partition, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.offset_store import OffsetStore
from fencepost.adapters.classic.records import GroupTombstone, OffsetTombstone, Record
from fencepost.adapters.classic.subscription import CONSUMER

_TIMER = "clean-up"


class Cleanup:
    """Looks through the groups at every check interval, counted from the coordinator's start.

    A pass that could not change anything is not even timed: a coordinator at rest has no timer armed.
    """

    def __init__(self, runtime: CoordinatorState, ledger: OffsetStore) -> None:
        self._runtime = runtime
        self._ledger = ledger
        self._start = runtime.now
        self._armed = False

    def schedule(self) -> None:
        """Arm the timer of the next pass if any group may need it."""
        if not self._armed and self._runtime.groups:
            self._arm()

    def _arm(self) -> None:
        interval = self._runtime.settings.retention_check_interval
        passes = (self._runtime.now - self._start) // interval
        self._armed = True
        self._runtime.timers.arm(_TIMER, self._start + (passes + 1) * interval, self.on_timer)

    def on_timer(self) -> None:
        """Run a pass, and schedule another while one may find something."""
        self._armed = False
        self.run_pass()
        if any(self.may_change(group) for group in self._runtime.groups.values()):
            self._arm()

    def may_change(self, group: Group) -> bool:
        """Whether a pass may change the group as it is, once enough time has passed."""
        can_expire = any(not group.has_uncommitted(partition) for partition in group.offsets)
        return self.is_deletable(group) or (can_expire and self.has_base_time(group))

    def run_pass(self) -> None:
        """Clean up every group; one whose records cannot be written is left for the next pass."""
        for group in list(self._runtime.groups.values()):
            expired = self.expired_partitions(group)
            gone = len(expired) == len(group.offsets) and self.is_removable(group)
            batch: list[Record] = [OffsetTombstone(group.group_id, *partition) for partition in expired]
            try:
                self._runtime.write(*batch, *([GroupTombstone(group.group_id)] if gone else []))
            except LogWriteError:
                continue
            for partition in expired:
                self._ledger.remove_offset(OffsetTombstone(group.group_id, *partition))
            if gone:
                self._ledger.remove_group(GroupTombstone(group.group_id))

    def is_deletable(self, group: Group) -> bool:
        """Whether the group is Empty and has no offsets left."""
        return not group.offsets and self.is_removable(group)

    def is_removable(self, group: Group) -> bool:
        """Whether nothing but offsets could keep the group: no members, no open transaction."""
        return group.state is State.EMPTY and not group.uncommitted

    def expired_partitions(self, group: Group) -> list[Partition]:
        """The partitions whose offsets have expired; open transactions and subscriptions protect them."""
        return [
            partition
            for partition, offset in group.offsets.items()
            if self.is_expired(group, offset)
            and not group.is_subscribed(partition[0])
            and not group.has_uncommitted(partition)
        ]

    def is_expired(self, group: Group, offset: Offset) -> bool:
        """Whether the offset's expiry has passed: that of its commit, else the retention after the base time."""
        if not self.has_base_time(group):
            return False
        if offset.expires_at is not None:
            return self._runtime.now >= offset.expires_at
        return self._runtime.now - self.base_time(group, offset) >= self._runtime.settings.offsets_retention

    def has_base_time(self, group: Group) -> bool:
        """Offsets expire in Empty groups, and in Stable consumer groups whose subscriptions are known."""
        if group.state is State.EMPTY:
            return True
        known = group.protocol_type == CONSUMER and group.subscribed is not None
        return known and group.state is State.STABLE

    def base_time(self, group: Group, offset: Offset) -> int:
        """The start of the retention: the commit, or for a group that had members the end of the last one."""
        if group.protocol_type is not None and group.state is State.EMPTY:
            return group.since
        return offset.committed_at
