"""The reference implementations: where the two coordinators of Apache Kafka differ, and how to tell its releases apart.

Where the coordinators differ, the sources are ambiguous about a requirement. How a failing log is told (DIV-16, DIV-17)
is no requirement's business.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class ReferenceDifference:
    """A difference, the requirement that it leaves open, and what either coordinator does.

    `since` is the change that brought it where it did not come with the new coordinator of Apache Kafka 4.
    """

    id: str
    requirement: str
    older: str
    newer: str
    since: str = ""


DIFFERENCES: Mapping[str, ReferenceDifference] = MappingProxyType(
    {
        "validity_comes_before_place": ReferenceDifference(
            "DIV-01",
            "FAILOVER-01",
            "a coordinator that is not ready looks at the group id before and at the session timeout after that",
            "a coordinator that is not ready looks at group id and session timeout before it says that it is elsewhere",
        ),
        "loading_refuses_sync": ReferenceDifference(
            "DIV-02",
            "FAILOVER-01",
            "SyncGroup gets REBALANCE_IN_PROGRESS while the group is loading",
            "SyncGroup gets COORDINATOR_LOAD_IN_PROGRESS while the group is loading",
        ),
        "sync_in_stable_keeps_session": ReferenceDifference(
            "DIV-03",
            "TIMER-01",
            "a SyncGroup in Stable extends the session",
            "a SyncGroup in Stable does not extend the session",
        ),
        "initial_delay_grows_always": ReferenceDifference(
            "DIV-04",
            "TIMER-17",
            "newcomers extend the initial delay in the first generation alone",
            "newcomers extend the initial delay whenever the group was Empty",
        ),
        "unknown_group_named": ReferenceDifference(
            "DIV-05",
            "COMMIT-11",
            "from version 9 on too a commit with a generation to an unknown group gets ILLEGAL_GENERATION",
            "from version 9 on a commit with a generation to an unknown group gets GROUP_ID_NOT_FOUND",
        ),
        "batch_leave_settles_once": ReferenceDifference(
            "DIV-06",
            "LEAVE-22",
            "the rebalance begins with the first member of a batch that leaves",
            "the rebalance begins once, after the whole batch",
        ),
        "pending_leave_rebalances": ReferenceDifference(
            "DIV-07",
            "LEAVE-10",
            "a pending id that leaves a settled group starts no rebalance",
            "a pending id that leaves a settled group starts a rebalance",
        ),
        "eviction_waits": ReferenceDifference(
            "DIV-08",
            "JOIN-49",
            "a member that is thrown out may complete the join phase at once",
            "a member that is thrown out does not complete the join phase by that",
        ),
        "expiry_cuts_initial_delay": ReferenceDifference(
            "DIV-09",
            "TIMER-18",
            "a session that expires does not cut the initial delay short",
            "a session that expires cuts the initial delay short if all others have joined",
        ),
        "emptied_group_stays": ReferenceDifference(
            "DIV-12",
            "ADMIN-35",
            "an Empty group that OffsetDelete leaves without offsets is removed at once",
            "an Empty group that OffsetDelete leaves without offsets stays until a clean-up pass",
        ),
        "loading_lists_nothing": ReferenceDifference(
            "DIV-14",
            "FAILOVER-01",
            "ListGroups has the groups that are known beside its COORDINATOR_LOAD_IN_PROGRESS",
            "ListGroups has no groups beside its COORDINATOR_LOAD_IN_PROGRESS",
        ),
        "new_group_is_stored": ReferenceDifference(
            "DIV-15",
            "FAILOVER-14",
            "a group that has had no generation yet is forgotten",
            "a group that has had no generation yet is remembered",
        ),
        "gate_hides_member_id": ReferenceDifference(
            "DIV-18",
            "FAILOVER-01",
            "a coordinator that is not ready echoes the member id",
            "a coordinator that is not ready does not echo the member id",
        ),
        "unknown_group_fences_transaction": ReferenceDifference(
            "DIV-19",
            "COMMIT-11",
            "a transactional commit with a generation to an unknown group gets UNKNOWN_MEMBER_ID",
            "a transactional commit with a generation to an unknown group gets ILLEGAL_GENERATION",
        ),
        "replaced_stays_new": ReferenceDifference(
            "DIV-20",
            "TIMER-06",
            "a static member that is replaced in its first join phase still counts as new, "
            "and may be dropped while it waits",
            "a static member that is replaced in its first join phase no longer counts as new",
        ),
        "unselected_protocol_fits_any": ReferenceDifference(
            "DIV-21",
            "SYNC-05",
            "before a first protocol is selected, a SyncGroup that names one gets INCONSISTENT_GROUP_PROTOCOL",
            "before a first protocol is selected, a SyncGroup may name any",
        ),
        "deleted_offsets_stay_deleted": ReferenceDifference(
            "DIV-22",
            "FAILOVER-15",
            "a failover brings back offsets that were deleted in an open transaction, with their group or alone",
            "a failover brings back no offsets that were deleted in an open transaction",
        ),
        "superseded_stays_silent": ReferenceDifference(
            "DIV-23",
            "JOIN-51",
            "a parked request that the member's next one supersedes gets no response",
            "a parked request that the member's next one supersedes gets NOT_COORDINATOR",
            "KAFKA-20938",
        ),
    }
)
"""By the name that the judge has for them (`Dialect`), where true is what the newer coordinator does.

Of `TRUE_AS_OLDER` it is what the older one does.
"""
TRUE_AS_OLDER = frozenset({"replaced_stays_new", "superseded_stays_silent"})


COMPARED_APIS = (
    "Metadata",
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "OffsetCommit",
    "OffsetFetch",
    "TxnOffsetCommit",
    "DescribeGroups",
    "ListGroups",
    "DeleteGroups",
)
"""The APIs whose highest versions tell releases of Apache Kafka apart."""

HIGHEST_VERSIONS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "2.3.1": (8, 2, 5, 3, 3, 2, 7, 5, 2, 3, 2, 1),
        "2.4.1": (9, 3, 6, 4, 4, 4, 8, 6, 2, 5, 3, 2),
        "2.5.1": (9, 3, 7, 5, 4, 4, 8, 7, 3, 5, 3, 2),
        "2.7.2": (9, 3, 7, 5, 4, 4, 8, 7, 3, 5, 4, 2),
        "2.8.2": (11, 3, 7, 5, 4, 4, 8, 7, 3, 5, 4, 2),
        "3.0.2": (11, 4, 7, 5, 4, 4, 8, 8, 3, 5, 4, 2),
        "3.1.2": (12, 4, 7, 5, 4, 4, 8, 8, 3, 5, 4, 2),
        "3.6.2": (12, 4, 9, 5, 4, 5, 8, 8, 3, 5, 4, 2),
        "3.7.2": (12, 4, 9, 5, 4, 5, 9, 9, 3, 5, 4, 2),
        "3.8.1": (12, 5, 9, 5, 4, 5, 9, 9, 4, 5, 5, 2),
        "3.9.2": (12, 6, 9, 5, 4, 5, 9, 9, 4, 5, 5, 2),
    }
)
"""The highest versions of `COMPARED_APIS`, by the last release that has exactly these.

From the message schemas of the source of each release; unstable versions are left out.
"""


def describe_side(name: str, side: bool) -> str:
    """What a target does that took one side."""
    difference = DIFFERENCES[name]
    newer = side is not (name in TRUE_AS_OLDER)
    told = difference.newer if newer else difference.older
    if difference.since:
        return f"as Apache Kafka {'since' if newer else 'before'} {difference.since}, {told} ({difference.id})"
    return f"as the {'newer' if newer else 'older'} coordinator, {told} ({difference.id})"


def latest_release(versions: Mapping[str, tuple[int, int]]) -> str:
    """The last release of Apache Kafka before 4.0 that advertises exactly these versions; "" if none does.

    `versions` are the lowest and highest version of each API.
    """
    highest = tuple(versions.get(api, (0, -1))[1] for api in COMPARED_APIS)
    return next((release for release, known in HIGHEST_VERSIONS.items() if known == highest), "")
