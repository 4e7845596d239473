"""JoinGroup: admission, the two steps of a new member, the join phase and its answers."""

from fencepost.model.catalogue.classic.changes import OLD_LEADERS
from fencepost.model.catalogue.requirement import Requirement, must

JOIN: tuple[Requirement, ...] = (
    must(
        "JOIN-01",
        "Empty group id",
        "A JoinGroup with an empty group id is refused with INVALID_GROUP_ID and echoes the member id.",
        "GroupCoordinatorServiceTest, GroupCoordinatorTest",
    ),
    must(
        "JOIN-02",
        "Session timeout bounds",
        "A session timeout below the minimum or above the maximum is refused with INVALID_SESSION_TIMEOUT, while "
        "both bounds themselves are accepted.",
        "GroupCoordinatorServiceTest, GroupCoordinatorTest",
        needs=("session-bounds",),
    ),
    must(
        "JOIN-03",
        "Session timeout checked before the group",
        "A bad session timeout is reported also for a group that does not exist, and does not create it.",
        "Apache Kafka source",
        needs=("session-bounds",),
    ),
    must(
        "JOIN-04",
        "Rebalance timeout is not bounded",
        "The session timeout limits do not apply to the rebalance timeout.",
        "Apache Kafka source",
    ),
    must(
        "JOIN-05",
        "Member id in an unknown group",
        "A JoinGroup that brings a member id to an unknown group is refused with UNKNOWN_MEMBER_ID, echoes the id "
        "and does not create the group, with an instance id or without.",
        "GroupMetadataManagerTest, GroupCoordinatorTest",
    ),
    must(
        "JOIN-06",
        "Joining creates the group",
        "A JoinGroup with an empty member id creates a group that does not exist yet.",
        "GroupMetadataManagerTest",
    ),
    must(
        "JOIN-07",
        "Member id handed out first",
        "From version 4 on, a dynamic JoinGroup with an empty member id is answered at once with "
        "MEMBER_ID_REQUIRED, a fresh id and generation -1, in every state.",
        "KIP-394, JoinGroupRequestTest",
    ),
    must(
        "JOIN-08",
        "Old versions join in one step",
        "Up to version 3, a dynamic JoinGroup with an empty member id never gets MEMBER_ID_REQUIRED: the member is "
        "added and its request parks.",
        "KIP-394, JoinGroupRequestTest",
    ),
    must(
        "JOIN-09",
        "Handing out an id disturbs nobody",
        "Handing out a member id neither starts a rebalance nor changes state or generation.",
        "GroupMetadataManagerTest",
    ),
    must(
        "JOIN-10",
        "Handed-out ids are fresh",
        "Every member id that is handed out was never used before in the group.",
        "KIP-394",
    ),
    must(
        "JOIN-11",
        "Pending id joins",
        "A JoinGroup with a pending id is accepted as that of a new member under this id.",
        "KIP-394, GroupMetadataManagerTest",
    ),
    must(
        "JOIN-12",
        "Second JoinGroup's protocols and timeouts apply",
        "For a member that joins in two steps, the protocols and timeouts of the second request are those that count.",
        "Apache Kafka source",
    ),
    must(
        "JOIN-13",
        "Pending id gone",
        "A pending id that left, expired or belongs to a deleted group is refused with UNKNOWN_MEMBER_ID.",
        "GroupMetadataManagerTest, GroupCoordinatorTest",
    ),
    must(
        "JOIN-14",
        "Pending id with an instance id",
        "A pending id used together with an instance id is refused; Kafka answers UNKNOWN_SERVER_ERROR.",
        "GroupMetadataManagerTest",
    ),
    must(
        "JOIN-15",
        "No protocols in an Empty group",
        "In an Empty group, an empty protocol type or an empty protocol list is refused with "
        "INCONSISTENT_GROUP_PROTOCOL.",
        "GroupMetadataManagerTest, GroupCoordinatorTest",
    ),
    must(
        "JOIN-16",
        "Foreign protocol type",
        "In a group that is not Empty, a different protocol type is refused with INCONSISTENT_GROUP_PROTOCOL.",
        "GroupMetadataManagerTest, JoinGroupRequestTest",
    ),
    must(
        "JOIN-17",
        "No common protocol",
        "In a group that is not Empty, a list without any protocol that all members offer is refused with "
        "INCONSISTENT_GROUP_PROTOCOL.",
        "GroupMetadataManagerTest, GroupCoordinatorTest",
    ),
    must(
        "JOIN-18",
        "One common protocol suffices",
        "A single protocol that all members offer is enough to be admitted.",
        "ClassicGroupTest",
    ),
    must(
        "JOIN-19",
        "Protocols before membership",
        "Unsupported protocols are refused with INCONSISTENT_GROUP_PROTOCOL before the member id is looked at, so "
        "an unknown id gets that error too.",
        "Apache Kafka source",
    ),
    must(
        "JOIN-20",
        "Lone member changes its whole list",
        "A sole member that rejoins with a list disjoint from its stored one is refused with "
        "INCONSISTENT_GROUP_PROTOCOL.",
        "Apache Kafka source",
    ),
    must(
        "JOIN-21",
        "Refusal changes nothing",
        "A refused JoinGroup leaves the group as it was.",
        "GroupMetadataManagerTest",
    ),
    must(
        "JOIN-22",
        "Emptied group takes another type",
        "A group that is Empty again accepts a different protocol type.",
        "Apache Kafka source",
    ),
    must(
        "JOIN-23",
        "Unknown member id",
        "A JoinGroup with an id that is neither a member's nor pending is refused with UNKNOWN_MEMBER_ID and echoes "
        "the id.",
        "JoinGroupRequestTest",
    ),
    must(
        "JOIN-24",
        "New member in Stable",
        "A new member joining a Stable group is parked and moves the group to PreparingRebalance.",
        "JoinGroupRequestTest, GroupMetadataManagerTest",
    ),
    must(
        "JOIN-25",
        "New member in CompletingRebalance",
        "A new member joining in CompletingRebalance moves the group to PreparingRebalance, and parked SyncGroups "
        "are answered REBALANCE_IN_PROGRESS.",
        "GroupMetadataManagerTest",
    ),
    must(
        "JOIN-26",
        "Join parks until the phase completes",
        "In PreparingRebalance the JoinGroup of a member parks until the join phase completes.",
        "JoinGroupRequestTest",
    ),
    must(
        "JOIN-27",
        "Phase completes at once",
        "Outside the initial delay, the join phase completes at once when every member has rejoined and no id is "
        "pending.",
        "GroupMetadataManagerTest",
    ),
    must(
        "JOIN-28",
        "Pending id holds up the phase",
        "An outstanding pending id holds up the join phase until it joins, leaves or expires, or until the "
        "rebalance timeout.",
        "KAFKA-7909, GroupMetadataManagerTest, GroupCoordinatorTest",
    ),
    must(
        "JOIN-29",
        "Matching rejoin in CompletingRebalance",
        "In CompletingRebalance, a member that rejoins with identical protocols is answered at once with the "
        "current generation and without a rebalance; the leader gets the members again.",
        "GroupMetadataManagerTest",
    ),
    must(
        "JOIN-30",
        "Changed rejoin in CompletingRebalance",
        "In CompletingRebalance, a member that rejoins with different protocols starts a rebalance.",
        "GroupMetadataManagerTest",
    ),
    must(
        "JOIN-31",
        "Leader rejoins in Stable",
        "In Stable, a JoinGroup by the leader starts a rebalance even if nothing changed.",
        "GroupMetadataManagerTest, GroupCoordinatorTest",
    ),
    must(
        "JOIN-32",
        "Matching follower in Stable",
        "In Stable, a follower that rejoins with identical protocols is answered at once with the current "
        "generation, the leader's id and no members, and no rebalance starts.",
        "GroupMetadataManagerTest, JoinGroupRequestTest",
    ),
    must(
        "JOIN-33",
        "Changed follower in Stable",
        "In Stable, a follower that rejoins with different metadata starts a rebalance.",
        "GroupMetadataManagerTest",
    ),
    must(
        "JOIN-34",
        "Protocol order counts",
        "The same protocols in another order count as different.",
        "ClassicGroupMemberTest, Apache Kafka source",
    ),
    must(
        "JOIN-35",
        "Timeouts alone do not count",
        "A rejoin that changes nothing but a timeout counts as identical, and the new timeout is not stored.",
        "Apache Kafka source",
    ),
    must(
        "JOIN-36",
        "One round, one answer",
        "When a join phase completes, all members that rejoined get the same generation, protocol and leader.",
        "GroupMetadataManagerTest, client-side assignment proposal",
    ),
    must(
        "JOIN-37",
        "Members only for the leader",
        "Only the leader's answer lists the members, all of them, each with its metadata for the selected protocol "
        "byte for byte; other answers list none.",
        "client-side assignment proposal, JoinGroupRequestTest",
    ),
    must(
        "JOIN-38",
        "Members are complete",
        "The members listed include the leader itself and static members kept without rejoining.",
        "GroupMetadataManagerTest",
    ),
    must(
        "JOIN-39",
        "Answered id is the member's id",
        "The member id in a successful answer is the one to use from then on.",
        "Kafka message schema",
        incidental=True,
    ),
    must(
        "JOIN-40",
        "Protocol type in answers",
        "From version 7 on, a successful answer carries the protocol type and an error carries none.",
        "KIP-559, GroupMetadataManagerTest, GroupCoordinatorTest",
    ),
    must(
        "JOIN-41",
        "Shape of refusals",
        "A refusal carries generation -1 and no protocol name: empty up to version 6, null from version 7 on.",
        "JoinGroupRequestTest",
    ),
    must(
        "JOIN-42",
        "Version 0 rebalance timeout",
        "In version 0 the session timeout serves as the rebalance timeout.",
        "Kafka message schema",
    ),
    must(
        "JOIN-43",
        "Join reason is ignored",
        "The reason sent from version 8 on, whether null, empty or long, affects nothing.",
        "KIP-800",
    ),
    must(
        "JOIN-44",
        "Rebalance timeout drops the absent",
        "At the rebalance timeout, dynamic members that have not rejoined are dropped and the others are answered.",
        "KIP-62, GroupMetadataManagerTest",
    ),
    must(
        "JOIN-45",
        "Dropped members are unknown",
        "A member dropped at the rebalance timeout gets UNKNOWN_MEMBER_ID from then on.",
        "GroupMetadataManagerTest",
    ),
    must(
        "JOIN-46",
        "Full group refuses newcomers",
        "In Stable or CompletingRebalance at the maximum size, a JoinGroup by a non-member is refused with "
        "GROUP_MAX_SIZE_REACHED and an empty member id.",
        "KIP-389, GroupMetadataManagerTest",
        needs=("size-limit",),
    ),
    must(
        "JOIN-47",
        "Members rejoin a full group",
        "Members of a full group can still rejoin it.",
        "GroupMetadataManagerTest, GroupCoordinatorTest",
        needs=("size-limit",),
    ),
    must(
        "JOIN-48",
        "Limit counts parked joins",
        "In PreparingRebalance the size limit counts parked joins: the first ones get in and later ones get "
        "GROUP_MAX_SIZE_REACHED.",
        "KAFKA-9885, GroupMetadataManagerTest",
        needs=("size-limit",),
    ),
    must(
        "JOIN-49",
        "Member refused for size is out",
        "A member refused with GROUP_MAX_SIZE_REACHED in PreparingRebalance is no longer in the group.",
        "GroupMetadataManagerTest",
        needs=("size-limit",),
    ),
    must(
        "JOIN-50",
        "Pending ids do not count",
        "Pending ids do not count towards the size limit.",
        "GroupMetadataManagerTest",
        needs=("size-limit",),
    ),
    must(
        "JOIN-51",
        "Second join while one is parked",
        "A second JoinGroup of the same member while one is parked does not count twice, and the newer one is "
        "answered.",
        "Apache Kafka source",
    ),
    must(
        "JOIN-52",
        "Dropped connection still counts",
        "A parked JoinGroup whose connection dropped still counts as rejoined.",
        "Apache Kafka source",
    ),
    must(
        "JOIN-53",
        "Former member of an Empty group",
        "In an Empty group, the id of a former member is refused with UNKNOWN_MEMBER_ID.",
        "GroupMetadataManagerTest",
    ),
    must(
        "JOIN-54",
        "Metadata is opaque",
        'Metadata may be any bytes or none, and comes back unchanged, for every protocol type but "consumer"; '
        "there, bytes that cannot be parsed should do no harm either.",
        "client-side assignment proposal",
    ),
    must(
        "JOIN-55",
        "Instance ids among the members",
        "From version 5 on, the members listed show their instance ids; a leader that asks in an earlier one gets them "
        "without.",
        "Kafka message schema, JoinGroupRequestTest",
        since=OLD_LEADERS,
    ),
)
