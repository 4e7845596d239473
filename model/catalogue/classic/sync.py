"""SyncGroup: the sync phase, and the assignments it hands out."""

from fencepost.model.catalogue.requirement import Requirement, must

SYNC: tuple[Requirement, ...] = (
    must(
        "SYNC-01",
        "Empty group id",
        "A SyncGroup with an empty group id is refused with INVALID_GROUP_ID.",
        "GroupCoordinatorServiceTest",
    ),
    must(
        "SYNC-02",
        "Unknown or Empty group",
        "A SyncGroup to an unknown or Empty group is refused with UNKNOWN_MEMBER_ID.",
        "SyncGroupRequestTest, GroupMetadataManagerTest",
    ),
    must(
        "SYNC-03",
        "Unknown member id",
        "A SyncGroup with an unknown member id is refused with UNKNOWN_MEMBER_ID before its generation is looked at.",
        "SyncGroupRequestTest, GroupMetadataManagerTest",
    ),
    must(
        "SYNC-04",
        "Wrong generation",
        "A SyncGroup with a lower or a higher generation than the current one is refused with ILLEGAL_GENERATION.",
        "SyncGroupRequestTest, GroupMetadataManagerTest",
    ),
    must(
        "SYNC-05",
        "Wrong protocol",
        "From version 5 on, a protocol type or name other than the group's is refused with "
        "INCONSISTENT_GROUP_PROTOCOL, and the answer carries neither.",
        "KIP-559, SyncGroupRequestTest",
    ),
    must(
        "SYNC-06",
        "Missing protocol",
        "From version 5 on, a SyncGroup without protocol type or name is refused with INCONSISTENT_GROUP_PROTOCOL, "
        "whatever the group.",
        "KIP-559, Apache Kafka source",
    ),
    must(
        "SYNC-07",
        "Old versions need no protocol",
        "Up to version 4 a SyncGroup needs neither protocol type nor name.",
        "GroupMetadataManagerTest, SyncGroupRequestTest",
    ),
    must(
        "SYNC-08",
        "Generation before protocol",
        "When both the generation and the protocol are wrong, the answer is ILLEGAL_GENERATION.",
        "Apache Kafka source",
    ),
    must(
        "SYNC-09",
        "Sync in PreparingRebalance",
        "In PreparingRebalance, a SyncGroup with the current generation is answered REBALANCE_IN_PROGRESS at once.",
        "GroupCoordinatorTest, GroupMetadataManagerTest",
    ),
    must(
        "SYNC-10",
        "Follower waits for the leader",
        "In CompletingRebalance the SyncGroup of a follower parks until the leader's arrives.",
        "SyncGroupRequestTest, GroupMetadataManagerTest",
    ),
    must(
        "SYNC-11",
        "Leader does not wait",
        "In CompletingRebalance the leader's SyncGroup succeeds without waiting for followers and makes the group "
        "Stable.",
        "SyncGroupRequestTest",
    ),
    must(
        "SYNC-12",
        "Assignments are handed on exactly",
        "Each member gets exactly the bytes that the leader gave for its id.",
        "client-side assignment proposal, SyncGroupRequestTest",
    ),
    must(
        "SYNC-13",
        "Member left out",
        "A member that the leader left out succeeds with an empty assignment.",
        "GroupMetadataManagerTest, GroupCoordinatorTest",
    ),
    must(
        "SYNC-14",
        "Assignment for a stranger",
        "Assignments for ids that are not members are ignored.",
        "Apache Kafka source",
    ),
    must(
        "SYNC-15",
        "Assignments from a follower",
        "Assignments in the SyncGroup of a follower are ignored.",
        "client-side assignment proposal",
    ),
    must(
        "SYNC-16",
        "Sync in Stable",
        "In Stable, a SyncGroup by any member returns the stored assignment at once, as often as it is asked.",
        "GroupMetadataManagerTest",
    ),
    must(
        "SYNC-17",
        "Leader syncs again in Stable",
        "In Stable, a leader's SyncGroup with other assignments changes nothing.",
        "Apache Kafka source",
    ),
    must(
        "SYNC-18",
        "Interrupted sync phase",
        "A rebalance that starts in CompletingRebalance answers every parked SyncGroup with REBALANCE_IN_PROGRESS "
        "and no assignment.",
        "GroupMetadataManagerTest, GroupCoordinatorTest",
    ),
    must(
        "SYNC-19",
        "Interrupted assignment is forgotten",
        "An assignment from an interrupted round is never seen later.",
        "Apache Kafka source",
    ),
    must(
        "SYNC-20",
        "Previous generation after Stable",
        "Once Stable, a SyncGroup with the previous generation is still refused with ILLEGAL_GENERATION.",
        "GroupMetadataManagerTest",
    ),
    must(
        "SYNC-21",
        "Protocol in the answer",
        "From version 5 on, a successful SyncGroup carries the protocol type and name that the JoinGroup answer gave.",
        "KIP-559, SyncGroupRequestTest",
    ),
    must(
        "SYNC-22",
        "Errors carry no assignment",
        "An error answer to a SyncGroup carries an empty assignment.",
        "Apache Kafka source",
        incidental=True,
    ),
    must(
        "SYNC-23",
        "Rebalance overtakes the leader",
        "If a rebalance begins before the leader's assignment is stored, the leader's SyncGroup is answered "
        "REBALANCE_IN_PROGRESS and does not succeed.",
        "Apache Kafka source",
        incidental=True,
    ),
    must(
        "SYNC-24",
        "Second sync while one is parked",
        "When a member repeats a SyncGroup while one is parked, the newer one is answered; the older may never be.",
        "Apache Kafka source",
    ),
    must(
        "SYNC-25",
        "Answered assignment survives",
        "A SyncGroup that succeeded means that the assignment survives a failover of the coordinator.",
        "client-side assignment proposal",
        needs=("restart",),
    ),
)
