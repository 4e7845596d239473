"""Known failures of kfake, by the requirement that it violates: its behaviour, and the place in its source.

Each was judged by hand, from the trace, the sentence of the requirement and the source: lines are those of `groups.go`
in the version that tests/targets/kfake/go.mod names. A run that reports another failure shows a change: of a newer
kfake, or of the kit.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tests.acceptance.source_causes import Deviation

KNOWN_FAILURES: Mapping[str, str] = MappingProxyType(
    {
        "JOIN-01": "a refusal does not echo the member id (819)",
        "JOIN-05": "a refusal does not echo the member id (890)",
        "JOIN-22": "an emptied group keeps its protocol type (1639)",
        "JOIN-23": "a refusal does not echo the member id (890)",
        "JOIN-28": "pending ids hold up nothing (1328)",
        "JOIN-37": "each member that is answered while no leader is found is told that it leads (1427)",
        "JOIN-42": "in version 0 the rebalance timeout is -1, and not the session timeout (1535)",
        "JOIN-48": "a newcomer is refused while the members of a full group have yet to rejoin (845)",
        "JOIN-50": "pending ids count towards the size of the group (845)",
        "SYNC-01": "the empty group id gets GROUP_ID_NOT_FOUND (14_sync_group.go, 29)",
        "SYNC-02": "an unknown group gets GROUP_ID_NOT_FOUND (14_sync_group.go, 29)",
        "SYNC-06": "null protocol type and name are let pass (1033, 1037)",
        "HB-01": "the empty group id gets GROUP_ID_NOT_FOUND (12_heartbeat.go, 28)",
        "HB-02": "an unknown group gets GROUP_ID_NOT_FOUND (12_heartbeat.go, 28)",
        "LEAVE-01": "the empty group id gets GROUP_ID_NOT_FOUND (13_leave_group.go, 29)",
        "LEAVE-02": "an unknown group gets GROUP_ID_NOT_FOUND (13_leave_group.go, 29)",
        "LEAVE-09": "a member that leaves is removed with its parked JoinGroup, which is never answered (1155)",
        "LEAVE-14": "the id of the member that was removed is echoed (1145)",
        "LEAVE-15": "an instance id removes its member, whatever member id is sent with it (1138)",
        "COMMIT-05": "an unknown member of an Empty group gets ILLEGAL_GENERATION (1273)",
        "COMMIT-08": "a simple commit with an instance id to an Empty group gets UNKNOWN_MEMBER_ID (1256)",
        "COMMIT-14": "a commit of nothing creates the group (346)",
        "COMMIT-16": "null metadata comes back as null (670)",
        "COMMIT-31": "an older epoch gets PRODUCER_FENCED (txns.go, 435)",
        "FETCH-02": "metadata of what was not committed is null (665), and an unknown topic id gets no error (579)",
        "FETCH-03": "an unknown group gets GROUP_ID_NOT_FOUND (590)",
        "FETCH-10": "an open transaction makes no group (590), and all offsets of its group unstable (587)",
        "ADMIN-01": "an unknown group is described without a message (417)",
        "ADMIN-29": "deleting the offset of an unknown partition succeeds (742)",
        "ADMIN-30": "metadata that cannot be parsed subscribe to nothing (2951)",
        "ADMIN-34": "a group has a protocol type from the first request for an id on (1636)",
        "ADMIN-36": "an offset in an open transaction makes no group (590)",
        "STATIC-04": "a refusal does not echo the member id (878)",
        "STATIC-11": "the replacement of a leader leads at once in versions 5 to 8, too (989)",
        "STATIC-13": "a replacement with other metadata begins a rebalance (988)",
        "STATIC-18": "a static member that does not rejoin is removed at the rebalance timeout (1370)",
        "TIMER-03": "a session runs out while its JoinGroup is parked, which is never answered (1514)",
        "TIMER-04": "a session runs out while its SyncGroup is parked, which is never answered (1514)",
        "TIMER-10": "every change during a join phase starts its timer anew, with the longest timeout then (1345)",
        "TIMER-12": "the sync timeout is off once the leader has synced (1483)",
        "GEN-05": "each member that is answered while no leader is found is told that it leads (1427)",
    }
)
DEVIATIONS: Mapping[str, Deviation] = MappingProxyType(
    {
        "refusal-without-id": Deviation("groups.go, 819, 878, 890", "a refusal does not echo the member id"),
        "type-outlives-members": Deviation("groups.go, 1639", "an emptied group keeps its protocol type"),
        "pending-holds-nothing": Deviation("groups.go, 1328", "pending ids hold up nothing"),
        "all-lead": Deviation(
            "groups.go, 1427", "each member that is answered while no leader is found is told that it leads"
        ),
        "counted-at-once": Deviation(
            "groups.go, 845", "whoever asks for an id is counted, and so are pending ids and members that are absent"
        ),
        "empty-group-id": Deviation(
            "14_sync_group.go, 29; 12_heartbeat.go, 28; 13_leave_group.go, 29", "an empty group id is not looked for"
        ),
        "group-not-found": Deviation(
            "14_sync_group.go, 29; 12_heartbeat.go, 28; 13_leave_group.go, 29; groups.go, 590",
            "a group that is not found gets GROUP_ID_NOT_FOUND",
        ),
        "null-protocol": Deviation("groups.go, 1033 and 1037", "null protocol type and name are let pass"),
        "leaver-unanswered": Deviation("groups.go, 1155", "a member that leaves is removed with its parked JoinGroup"),
        "removed-id-echoed": Deviation("groups.go, 1145", "the id of the member that was removed is echoed"),
        "version-0-without-timeout": Deviation("groups.go, 1535", "in version 0 the rebalance timeout is -1"),
        "producer-fenced": Deviation("txns.go, 435", "an older epoch gets PRODUCER_FENCED"),
        "instance-id-alone": Deviation(
            "groups.go, 1138", "an instance id removes its member, whatever member id is sent with it"
        ),
        "generation-first": Deviation("groups.go, 1273", "the generation is compared before the member"),
        "instance-in-empty": Deviation("groups.go, 1256", "an instance id is looked up also in an Empty group"),
        "commit-creates": Deviation("groups.go, 346", "a commit creates its group before it looks at partitions"),
        "metadata-as-it-came": Deviation("groups.go, 670", "metadata are kept as they came, null included"),
        "nothing-is-null": Deviation("groups.go, 665 and 579", "metadata of what was not committed is null"),
        "transaction-without-group": Deviation("groups.go, 590", "an offset in an open transaction makes no group"),
        "whole-group-unstable": Deviation("groups.go, 587", "a transaction makes all offsets of its group unstable"),
        "described-without-message": Deviation("groups.go, 417", "an unknown group is described without a message"),
        "deleted-unseen": Deviation("groups.go, 742", "the offset of an unknown partition is deleted"),
        "unreadable-is-nothing": Deviation("groups.go, 2951", "metadata that cannot be parsed subscribe to nothing"),
        "type-of-request": Deviation(
            "groups.go, 1636", "a group has a protocol type from the first request for an id on"
        ),
        "replacement-leads": Deviation("groups.go, 989", "the replacement of a leader leads at once"),
        "replacement-rebalances": Deviation("groups.go, 988", "a replacement with other metadata begins a rebalance"),
        "static-dropped": Deviation(
            "groups.go, 1370", "a static member that does not rejoin is removed at the rebalance timeout"
        ),
        "parked-expires": Deviation("groups.go, 1514", "a session runs out also while a request is parked"),
        "timer-anew": Deviation("groups.go, 1345", "every change during a join phase starts its timer anew"),
        "sync-timeout-off": Deviation("groups.go, 1483", "the sync timeout is off once the leader has synced"),
    }
)
"""What the source decides otherwise, by a name, with the lines of the findings above."""
DEVIATIONS_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "JOIN-01": ("refusal-without-id",),
        "JOIN-05": ("refusal-without-id",),
        "JOIN-22": ("type-outlives-members",),
        "JOIN-23": ("refusal-without-id",),
        "JOIN-28": ("pending-holds-nothing",),
        "JOIN-37": ("all-lead",),
        "JOIN-42": ("version-0-without-timeout",),
        "JOIN-48": ("counted-at-once",),
        "JOIN-50": ("counted-at-once",),
        "SYNC-01": (
            "empty-group-id",
            "group-not-found",
        ),
        "SYNC-02": ("group-not-found",),
        "SYNC-06": (
            "null-protocol",
            "group-not-found",
        ),
        "HB-01": (
            "empty-group-id",
            "group-not-found",
        ),
        "HB-02": ("group-not-found",),
        "LEAVE-01": (
            "empty-group-id",
            "group-not-found",
        ),
        "LEAVE-02": ("group-not-found",),
        "LEAVE-09": ("leaver-unanswered",),
        "LEAVE-14": ("removed-id-echoed",),
        "LEAVE-15": ("instance-id-alone",),
        "COMMIT-05": ("generation-first",),
        "COMMIT-08": ("instance-in-empty",),
        "COMMIT-14": ("commit-creates",),
        "COMMIT-16": ("metadata-as-it-came",),
        "COMMIT-31": ("producer-fenced",),
        "FETCH-02": ("nothing-is-null",),
        "FETCH-03": ("group-not-found",),
        "FETCH-10": (
            "transaction-without-group",
            "group-not-found",
            "whole-group-unstable",
        ),
        "ADMIN-01": ("described-without-message",),
        "ADMIN-29": ("deleted-unseen",),
        "ADMIN-30": ("unreadable-is-nothing",),
        "ADMIN-34": ("type-of-request",),
        "ADMIN-36": ("transaction-without-group",),
        "STATIC-04": ("refusal-without-id",),
        "STATIC-11": ("replacement-leads",),
        "STATIC-13": ("replacement-rebalances",),
        "STATIC-18": ("static-dropped",),
        "TIMER-03": ("parked-expires",),
        "TIMER-04": ("parked-expires",),
        "TIMER-10": ("timer-anew",),
        "TIMER-12": ("sync-timeout-off",),
        "GEN-05": ("all-lead",),
    }
)
"""The deviations behind each failure, the one that its requirement is about first."""
