"""Requirements of Heartbeat: its response in each state of the group, and its effect on the session."""

from fencepost.model.catalogue.classic.changes import KNOWN_INSTANCE
from fencepost.model.catalogue.requirement import Requirement, must

HB: tuple[Requirement, ...] = (
    must(
        "HB-01",
        "Empty group id",
        "A Heartbeat with an empty group id is refused with INVALID_GROUP_ID.",
        "GroupCoordinatorServiceTest",
    ),
    must(
        "HB-02",
        "Unknown or Empty group",
        "A Heartbeat to an unknown or Empty group is refused with UNKNOWN_MEMBER_ID.",
        "HeartbeatRequestTest, GroupMetadataManagerTest",
    ),
    must(
        "HB-03",
        "Unknown member id",
        "A Heartbeat with an unknown member id is refused with UNKNOWN_MEMBER_ID, whatever its generation.",
        "HeartbeatRequestTest",
    ),
    must(
        "HB-04",
        "Wrong generation",
        "A Heartbeat with any generation but the current one is refused with ILLEGAL_GENERATION.",
        "HeartbeatRequestTest, GroupMetadataManagerTest",
    ),
    must(
        "HB-05",
        "Heartbeat in Stable",
        "In Stable a Heartbeat of a member succeeds.",
        "HeartbeatRequestTest",
    ),
    must(
        "HB-06",
        "Heartbeat in PreparingRebalance",
        "In PreparingRebalance a Heartbeat with the current generation is answered REBALANCE_IN_PROGRESS.",
        "HeartbeatRequestTest, GroupMetadataManagerTest",
    ),
    must(
        "HB-07",
        "Heartbeat in CompletingRebalance",
        "In CompletingRebalance a Heartbeat succeeds for the leader and for followers.",
        "KAFKA-10134, HeartbeatRequestTest, GroupMetadataManagerTest",
    ),
    must(
        "HB-08",
        "Heartbeat of a pending id",
        "A Heartbeat of a pending id is refused with UNKNOWN_MEMBER_ID.",
        "Apache Kafka source",
    ),
    must(
        "HB-09",
        "Heartbeat extends the session",
        "A Heartbeat that succeeds or is answered REBALANCE_IN_PROGRESS extends the session by a full session timeout.",
        "GroupMetadataManagerTest, GroupCoordinatorTest",
    ),
    must(
        "HB-10",
        "Refused Heartbeat does not extend",
        "A Heartbeat refused with any other error does not extend the session.",
        "Apache Kafka source",
    ),
    must(
        "HB-11",
        "Rebalance signalled until rejoin",
        "A member is told REBALANCE_IN_PROGRESS on every Heartbeat until it rejoins or is dropped.",
        "client-side assignment proposal",
    ),
    must(
        "HB-12",
        "Heartbeat while loading",
        "While the group is loading, a Heartbeat succeeds, whoever sends it; targets other than Kafka may answer "
        "that they are not ready.",
        "GroupCoordinatorTest, GroupCoordinatorServiceTest",
        needs=("restart",),
    ),
    must(
        "HB-13",
        "Heartbeats do not replace a rejoin",
        "Heartbeats do not keep a member that fails to rejoin or to sync beyond the rebalance timeout.",
        "GroupMetadataManagerTest",
    ),
    must(
        "HB-14",
        "Instance id before generation",
        "From version 3 on, an instance id of another member gets FENCED_INSTANCE_ID and an unknown one "
        "UNKNOWN_MEMBER_ID, both before the generation is checked.",
        "KIP-345, GroupMetadataManagerTest",
        since=KNOWN_INSTANCE,
    ),
)
