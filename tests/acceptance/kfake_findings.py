"""Known failures of kfake, by the requirement that it violates: its behaviour, and the place in its source.

Each was judged by hand, from the trace, the sentence of the requirement and the source: lines are those of `groups.go`
in the version that tests/targets/kfake/go.mod names. A run that reports another failure shows a change: of a newer
kfake, or of the kit.
"""

from collections.abc import Mapping
from types import MappingProxyType

KNOWN_FAILURES: Mapping[str, str] = MappingProxyType(
    {
        "JOIN-01": "a refusal does not echo the member id (819)",
        "JOIN-05": "a refusal does not echo the member id (890)",
        "JOIN-22": "an emptied group keeps its protocol type (1639)",
        "JOIN-23": "a refusal does not echo the member id (890)",
        "JOIN-28": "pending ids hold up nothing (1328)",
        "JOIN-37": "each member that is answered while no leader is found is told that it leads (1427)",
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
        "FETCH-02": "metadata of what was not committed is null (665), and an unknown topic id gets no error (579)",
        "FETCH-03": "an unknown group gets GROUP_ID_NOT_FOUND (590)",
        "FETCH-10": "an offset in an open transaction makes no group, which gets GROUP_ID_NOT_FOUND (590)",
        "ADMIN-01": "an unknown group is described without a message (417)",
        "ADMIN-29": "deleting the offset of an unknown partition succeeds (742)",
        "ADMIN-30": "metadata that cannot be parsed subscribe to nothing (2951)",
        "ADMIN-34": "a group has a protocol type from the first request for an id on (1636)",
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
