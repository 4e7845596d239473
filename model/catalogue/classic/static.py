"""Static members: instance ids, replacement and fencing (KIP-345)."""

from fencepost.model.catalogue.classic.changes import KNOWN_INSTANCE, STATIC_REBALANCE, STORED_REPLACEMENT
from fencepost.model.catalogue.requirement import Requirement, may, must

STATIC: tuple[Requirement, ...] = (
    must(
        "STATIC-01",
        "Static member joins in one step",
        "A first JoinGroup with an instance id and no member id never gets MEMBER_ID_REQUIRED: the member is added "
        "and its request parks.",
        "KIP-345, GroupMetadataManagerTest",
    ),
    must(
        "STATIC-02",
        "Replacement",
        "A JoinGroup with a known instance id and no member id replaces the member under a new id, and the old id "
        "stops working at once.",
        "GroupMetadataManagerTest",
    ),
    must(
        "STATIC-03",
        "Old id is fenced",
        "The replaced id gets FENCED_INSTANCE_ID with the instance id, and UNKNOWN_MEMBER_ID without it, from every "
        "group API.",
        "GroupMetadataManagerTest",
    ),
    must(
        "STATIC-04",
        "Shape of a fenced join",
        "A JoinGroup refused with FENCED_INSTANCE_ID echoes the id sent and carries generation -1 and no leader.",
        "GroupMetadataManagerTest, JoinGroupRequestTest",
    ),
    must(
        "STATIC-05",
        "Parked requests of the old owner",
        "The old owner's parked JoinGroup and SyncGroup are answered FENCED_INSTANCE_ID when it is replaced.",
        "GroupMetadataManagerTest",
    ),
    must(
        "STATIC-06",
        "Instance id of another member",
        "A known instance id with a different member's id is refused with FENCED_INSTANCE_ID.",
        "GroupMetadataManagerTest",
    ),
    must(
        "STATIC-07",
        "Unknown instance id",
        "An unknown instance id with a member's id is refused with UNKNOWN_MEMBER_ID.",
        "GroupMetadataManagerTest",
        since=KNOWN_INSTANCE,
    ),
    must(
        "STATIC-08",
        "Replacement without a rebalance",
        "A replacement in Stable that leaves the selected protocol unchanged is answered at once with the same "
        "generation and starts no rebalance.",
        "KIP-345, GroupMetadataManagerTest",
    ),
    must(
        "STATIC-09",
        "Assignment is inherited",
        "The replacement's SyncGroup returns the assignment of the id it replaced.",
        "GroupMetadataManagerTest",
    ),
    must(
        "STATIC-10",
        "Leader replaced, version 9",
        "From version 9 on, replacing the leader answers the new id as leader, all members, and that assignment is "
        "to be skipped.",
        "KIP-814, GroupMetadataManagerTest",
    ),
    must(
        "STATIC-11",
        "Leader replaced, versions 5 to 8",
        "In versions 5 to 8, replacing the leader answers the old id as leader and no members.",
        "GroupMetadataManagerTest",
    ),
    must(
        "STATIC-12",
        "Follower replaced",
        "Replacing a follower answers the current leader and no members, and does not ask to skip the assignment.",
        "GroupMetadataManagerTest",
    ),
    must(
        "STATIC-13",
        "New subscription on replacement",
        "A replacement in Stable with changed metadata but the same selected protocol starts no rebalance, and the "
        "next round lists the new metadata.",
        "Apache Kafka source, GroupMetadataManagerTest",
    ),
    must(
        "STATIC-14",
        "Replacement changes the protocol",
        "A replacement in Stable that changes the selected protocol starts a rebalance.",
        "GroupMetadataManagerTest",
    ),
    must(
        "STATIC-15",
        "Replacement in CompletingRebalance",
        "A replacement in CompletingRebalance always starts a rebalance, and parked SyncGroups of the others are "
        "answered REBALANCE_IN_PROGRESS.",
        "GroupMetadataManagerTest",
        since=STATIC_REBALANCE,
    ),
    must(
        "STATIC-16",
        "Replacement in PreparingRebalance",
        "A replacement in PreparingRebalance counts as rejoined, and completes the join phase if it was the last "
        "one missing.",
        "JoinGroupRequestTest, GroupMetadataManagerTest",
    ),
    must(
        "STATIC-17",
        "Static rejoin",
        "A JoinGroup with a member's own id and instance id behaves like the rejoin of a dynamic member.",
        "GroupMetadataManagerTest",
    ),
    must(
        "STATIC-18",
        "Static member survives the round",
        "At the rebalance timeout, a static member that did not rejoin stays and is listed among the members.",
        "KIP-345, GroupMetadataManagerTest",
    ),
    must(
        "STATIC-19",
        "Absent static leader",
        "A static leader that did not rejoin loses the leadership to a member that did.",
        "KAFKA-8220, GroupMetadataManagerTest",
    ),
    must(
        "STATIC-20",
        "No generation without a rejoined member",
        "If only static members remain and none rejoined, no generation is formed until one rejoins or their "
        "sessions expire.",
        "GroupMetadataManagerTest",
    ),
    must(
        "STATIC-21",
        "Static session expiry",
        "A static member is removed when its session expires, like any other.",
        "KIP-345, GroupMetadataManagerTest",
    ),
    must(
        "STATIC-22",
        "Kept member that never syncs",
        "A kept static member that never syncs is removed at the sync timeout, even if it heartbeats.",
        "Apache Kafka source",
    ),
    must(
        "STATIC-23",
        "Instance id is freed",
        "An instance id is free again after its member left or expired.",
        "Apache Kafka source",
    ),
    must(
        "STATIC-24",
        "Replacement ids are fresh",
        "Every replacement is given an id different from all before.",
        "GroupMetadataManagerTest",
    ),
    must(
        "STATIC-25",
        "One owner per instance id",
        "No two members hold the same instance id.",
        "ClassicGroupTest",
        incidental=True,
    ),
    may(
        "STATIC-26",
        "Restart in a full group",
        "In a full group, a static member that restarts with an empty id is refused with GROUP_MAX_SIZE_REACHED on "
        "Kafka; a target may let it in.",
        "Apache Kafka source",
        needs=("size-limit",),
    ),
    must(
        "STATIC-27",
        "Instance id may be omitted",
        "A static member's valid id is accepted without its instance id.",
        "GroupMetadataManagerTest, Apache Kafka source",
    ),
    must(
        "STATIC-28",
        "Replacement survives",
        "A replacement without a rebalance survives a failover: the new id is known and the old one is not.",
        "KAFKA-10284, GroupMetadataManagerTest",
        needs=("restart",),
        since=STORED_REPLACEMENT,
    ),
    must(
        "STATIC-29",
        "Static member leaves",
        "A LeaveGroup by a static member removes it and starts a rebalance.",
        "GroupMetadataManagerTest",
    ),
    must(
        "STATIC-30",
        "Instance id needs its version",
        "Below the version that introduced it, an instance id is not required by any API.",
        "Kafka message schema",
    ),
)
