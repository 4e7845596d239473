"""Requirements of failover: the state of a group after its coordinator was killed or has moved."""

from fencepost.model.catalogue.requirement import Requirement, may, must

FAILOVER: tuple[Requirement, ...] = (
    must(
        "FAILOVER-01",
        "Not ready yet",
        "Until the group is loaded, requests are answered that the coordinator is loading, unavailable or "
        "elsewhere, except that a Heartbeat may succeed and a SyncGroup be told to rejoin.",
        "GroupCoordinatorTest, GroupCoordinatorServiceTest",
        needs=("restart",),
    ),
    must(
        "FAILOVER-02",
        "Stable group comes back",
        "A Stable group comes back Stable with the same generation, members, leader, protocol and assignments.",
        "client-side assignment proposal, GroupMetadataManagerTest",
        needs=("restart",),
    ),
    must(
        "FAILOVER-03",
        "Failover starts no rebalance",
        "A failover does not start a rebalance by itself.",
        "client-side assignment proposal",
        needs=("restart",),
    ),
    must(
        "FAILOVER-04",
        "Full session after loading",
        "Every member is granted a full session timeout from the moment its group is loaded.",
        "GroupMetadataManagerTest",
        needs=("restart",),
    ),
    must(
        "FAILOVER-05",
        "Repeated sync after storing",
        "A SyncGroup repeated after the assignment was stored returns it at once.",
        "client-side assignment proposal",
        needs=("restart",),
    ),
    must(
        "FAILOVER-06",
        "Unsynced round is lost",
        "A round whose assignment was not stored is lost: a SyncGroup with its generation is refused with "
        "ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID.",
        "Apache Kafka source",
        needs=("restart",),
    ),
    must(
        "FAILOVER-07",
        "Members of the lost round",
        "The members of the last stored generation are known afterwards, and those new in the lost round are not.",
        "Apache Kafka source",
        needs=("restart",),
    ),
    must(
        "FAILOVER-08",
        "Pending ids are lost",
        "Pending ids are lost, so a JoinGroup with one is refused with UNKNOWN_MEMBER_ID.",
        "Apache Kafka source",
        needs=("restart",),
    ),
    may(
        "FAILOVER-09",
        "Generation number used again",
        "The next round may be given the number of the lost one.",
        "Apache Kafka source",
        needs=("restart",),
        untestable="a permission: no response can break it",
    ),
    must(
        "FAILOVER-10",
        "Generation does not fall back",
        "The generation does not fall below the last one that was synced or ended Empty.",
        "GroupMetadataManagerTest",
        needs=("restart",),
    ),
    must(
        "FAILOVER-11",
        "Parked requests end",
        "A parked JoinGroup or SyncGroup is refused or loses its connection, and never succeeds.",
        "GroupMetadataManagerTest",
        needs=("graceful-move",),
    ),
    must(
        "FAILOVER-12",
        "Offsets survive",
        "Offsets whose commit succeeded are there after a failover; those of unanswered commits may be.",
        "consumer group protocol chapter",
        needs=("restart",),
    ),
    must(
        "FAILOVER-13",
        "Matching follower after a failover",
        "A follower that offers one protocol and rejoins unchanged starts no rebalance; one that offers several may.",
        "Apache Kafka source",
        needs=("restart",),
    ),
    must(
        "FAILOVER-14",
        "Empty group comes back",
        "An Empty group with offsets is Empty afterwards, and keeps its generation if it had members once.",
        "GroupMetadataManagerTest",
        needs=("restart",),
    ),
    must(
        "FAILOVER-15",
        "Deleted group stays deleted",
        "A deleted group stays deleted.",
        "Apache Kafka source",
        needs=("restart",),
    ),
    must(
        "FAILOVER-16",
        "Instance ids survive",
        "The member of each instance id is still known after a failover.",
        "GroupMetadataManagerTest",
        needs=("restart",),
    ),
    must(
        "FAILOVER-17",
        "Group above the limit",
        "A group loaded above the maximum size rebalances until at most the limit remains.",
        "KIP-389, GroupMetadataManagerTest",
        needs=("restart", "resize"),
    ),
    must(
        "FAILOVER-18",
        "Old coordinator rejects requests after a move",
        "After the group has moved, the old node answers NOT_COORDINATOR for it.",
        "GroupCoordinatorTest",
        needs=("second-node", "graceful-move"),
    ),
    must(
        "FAILOVER-19",
        "Timeouts survive",
        "The session and rebalance timeouts of the members survive a failover.",
        "GroupMetadataManagerTest",
        needs=("restart",),
    ),
    must(
        "FAILOVER-20",
        "No two coordinators",
        "Once the new coordinator has answered, the old one accepts no commit for a generation that it believes "
        "current.",
        "consumer group protocol chapter",
        incidental=True,
        needs=("second-node", "graceful-move"),
    ),
    must(
        "FAILOVER-21",
        "Partitions of a departed member are reassigned",
        "The partitions of a member that left are up for assignment again within one session timeout, also if the "
        "coordinator restarts in between.",
        "franz-go kfake source",
        needs=("restart",),
    ),
)
