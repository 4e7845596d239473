"""The whole dialect of a coordinator: where reference coordinators differ, in the core and around it."""

from dataclasses import dataclass
from typing import cast

from fencepost.model.classic.core.state import Context, CoreDialect
from fencepost.model.logic import Truth


@dataclass(frozen=True, slots=True)
class Dialect(CoreDialect):
    """Where the two reference coordinators differ (DIV-nn); true as the newer one does."""

    unknown_group_named: Truth = True
    """DIV-05: OffsetCommit v9 to an unknown group gets 69; the older one says 22."""
    unknown_group_fences_transaction: Truth = True
    """DIV-19: TxnOffsetCommit to an unknown group gets 22; the older one says 25."""
    keeps_version_0: Truth = True
    """Not a DIV: offsets of version 0 lived elsewhere, and Kafka refuses them with 35 (COMMIT-27, FETCH-14)."""
    new_group_is_stored: Truth = True
    """DIV-15: the older one writes no record of a group that has had no generation yet."""
    emptied_group_stays: Truth = True
    """DIV-12: an Empty group that OffsetDelete leaves without offsets stays; the older one removes it at once."""
    deleted_offsets_stay_deleted: Truth = True
    """DIV-22: pending offsets that were deleted are gone; a failover of the older one brings them back."""
    other_protocols_are_forgotten: Truth = True
    """Not a DIV: the record of a member has the selected protocol only; a target may keep them all (FAILOVER-13)."""
    validity_comes_before_place: Truth = True
    """DIV-01: group id and session timeout are checked after 15 and before 16 and 14; the older one checks the group
    id before all of these and the session timeout after them."""
    loading_refuses_sync: Truth = True
    """DIV-02: SyncGroup gets 14 while the group is loading; the older one says 27."""
    loading_lists_nothing: Truth = True
    """DIV-14: ListGroups has no groups beside its 14; the older one has those it knows."""
    gate_hides_member_id: Truth = True
    """DIV-18: JoinGroup carries no member id beside 14, 15 and 16; the older one echoes it."""
    absent_partitions_come_first: Truth = True
    """Not a DIV: partitions that do not exist are refused before the coordinator is asked (LAT-27)."""
    oversized_is_unexpected: Truth = True
    """DIV-16: OffsetCommit with too large a record gets -1; the older one says 28."""
    late_replication_is_unavailable: Truth = True
    """DIV-17: a group record that is replicated too late gets 15; the older one says 27, and 7 for offsets."""
    superseded_stays_silent: Truth = True
    """DIV-23, true as the older one does: a parked JoinGroup or SyncGroup gets no response once the member's next one
    takes its place. Since KAFKA-20938 it gets 16."""
    generation_waits_for_assignment: Truth = True
    """Not a DIV: a generation is stored with its assignment; in a coordinator that was not built it is stored before
    JoinGroup is answered (`group_log`)."""


NOT_BUILT = frozenset({"generation_waits_for_assignment"})
"""Where every coordinator that was built does the same: no target is asked for it."""
KAFKA = Dialect()
"""The dialect of the newer of Kafka's coordinators."""


def dialect_of(context: Context) -> Dialect:
    """The dialect in which a coordinator takes a step; its context has a whole one."""
    return cast(Dialect, context.dialect)
