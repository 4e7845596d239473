"""Requirements of OffsetCommit: the members and generations whose commits succeed in each state of the group."""

from fencepost.model.catalogue.classic.changes import KNOWN_INSTANCE, PARTIAL_COMMIT
from fencepost.model.catalogue.requirement import Requirement, may, must, should

COMMIT: tuple[Requirement, ...] = (
    must(
        "COMMIT-01",
        "Member commits in Stable",
        "In Stable, a commit by a member with the current generation succeeds and can be read back.",
        "OffsetCommitRequestTest, OffsetFetchRequestTest",
    ),
    must(
        "COMMIT-02",
        "Member commits in PreparingRebalance",
        "In PreparingRebalance, a commit by a member with the current generation succeeds.",
        "Apache Kafka source, client-side assignment proposal",
    ),
    must(
        "COMMIT-03",
        "Member commits in CompletingRebalance",
        "In CompletingRebalance, a commit by a member with the current generation is answered REBALANCE_IN_PROGRESS "
        "and stores nothing.",
        "GroupCoordinatorTest, OffsetMetadataManagerTest",
    ),
    must(
        "COMMIT-04",
        "Wrong generation",
        "In a group with members, a member's commit with another generation is refused with ILLEGAL_GENERATION and "
        "stores nothing.",
        "OffsetCommitRequestTest, OffsetMetadataManagerTest",
    ),
    must(
        "COMMIT-05",
        "Unknown member id",
        "A commit with a generation and an unknown or empty member id is refused with UNKNOWN_MEMBER_ID in every "
        "state, Empty included.",
        "OffsetCommitRequestTest, OffsetMetadataManagerTest",
    ),
    must(
        "COMMIT-06",
        "Fencing before state",
        "In CompletingRebalance, UNKNOWN_MEMBER_ID and ILLEGAL_GENERATION are decided before REBALANCE_IN_PROGRESS.",
        "GroupCoordinatorTest",
    ),
    must(
        "COMMIT-07",
        "Simple commit creates the group",
        "A commit without member id and generation to an unknown group succeeds and creates a simple group.",
        "OffsetCommitRequestTest, GroupCoordinatorTest",
    ),
    must(
        "COMMIT-08",
        "Simple commit in Empty",
        "In Empty, a commit with generation -1 succeeds, whatever member id or instance id it names.",
        "GroupCoordinatorTest, OffsetMetadataManagerTest",
    ),
    must(
        "COMMIT-09",
        "Simple commit among members",
        "In a group that is not Empty, a commit with generation -1 and no member id is refused with UNKNOWN_MEMBER_ID.",
        "OffsetMetadataManagerTest",
    ),
    must(
        "COMMIT-10",
        "Member without a generation",
        "In a group that is not Empty, a member's commit with generation -1 is refused with ILLEGAL_GENERATION.",
        "Apache Kafka source",
    ),
    must(
        "COMMIT-11",
        "Generation in an unknown group",
        "A commit with a generation to an unknown group is refused with ILLEGAL_GENERATION, in version 9 also with "
        "GROUP_ID_NOT_FOUND, and does not create the group.",
        "OffsetCommitRequestTest, OffsetMetadataManagerTest",
    ),
    must(
        "COMMIT-12",
        "Empty group id",
        "For OffsetCommit and OffsetFetch the empty group id is an ordinary one.",
        "GroupCoordinatorTest, OffsetCommitRequestTest",
    ),
    must(
        "COMMIT-13",
        "Unknown topic or partition",
        "A partition that the cluster does not have gets UNKNOWN_TOPIC_OR_PARTITION (from version 10 on, where no "
        "topic has the id, UNKNOWN_TOPIC_ID), and the others are handled normally.",
        "Apache Kafka source",
    ),
    must(
        "COMMIT-14",
        "Nothing left to commit",
        "If no partition is left to commit, the answer carries no group error, no group is created and no session "
        "is extended.",
        "Apache Kafka source",
    ),
    must(
        "COMMIT-15",
        "Metadata too long",
        "Metadata longer than the limit gets OFFSET_METADATA_TOO_LARGE for its own partition only, and the others "
        "are stored.",
        "OffsetMetadataManagerTest",
        needs=("metadata-limit",),
        since=PARTIAL_COMMIT,
    ),
    must(
        "COMMIT-16",
        "Null metadata",
        "Null metadata comes back as an empty string.",
        "Apache Kafka source",
    ),
    must(
        "COMMIT-17",
        "Any offset",
        "Every 64-bit offset is stored and returned, also one lower than before.",
        "Apache Kafka source",
    ),
    must(
        "COMMIT-18",
        "Leader epoch",
        "A leader epoch committed from version 6 on is returned by OffsetFetch from version 5 on, and is -1 if none "
        "was given.",
        "KIP-320, Kafka message schema",
    ),
    must(
        "COMMIT-19",
        "Commit extends the session",
        "A commit accepted in Stable or PreparingRebalance extends the member's session.",
        "GroupCoordinatorTest, OffsetMetadataManagerTest",
    ),
    must(
        "COMMIT-20",
        "Refused commit does not extend",
        "A refused commit does not extend the session.",
        "Apache Kafka source",
    ),
    must(
        "COMMIT-21",
        "Instance id before generation",
        "From version 7 on, an instance id of another member gets FENCED_INSTANCE_ID and an unknown one "
        "UNKNOWN_MEMBER_ID, both before the generation is checked.",
        "KIP-345, OffsetMetadataManagerTest",
        since=KNOWN_INSTANCE,
    ),
    must(
        "COMMIT-22",
        "Same error everywhere",
        "An error that concerns the group is the same in every partition that the coordinator was asked about.",
        "Apache Kafka source",
    ),
    must(
        "COMMIT-23",
        "Fenced by the next generation",
        "Once any member has been given the next generation, nobody's commit with the previous one succeeds.",
        "consumer group protocol chapter",
        incidental=True,
    ),
    must(
        "COMMIT-24",
        "Commits leave the group alone",
        "A commit changes neither state nor generation nor membership.",
        "Apache Kafka source",
    ),
    must(
        "COMMIT-25",
        "Commits are durable",
        "A commit that succeeded is visible to every later fetch and survives a failover.",
        "consumer group protocol chapter",
        needs=("restart",),
    ),
    should(
        "COMMIT-26",
        "Explicit retention",
        "In versions 2 to 4 an explicit retention time should expire the offset after it, and -1 means the broker's "
        "own.",
        "OffsetMetadataManagerTest",
        needs=("retention",),
    ),
    may(
        "COMMIT-27",
        "Version 0 commit",
        "A commit of version 0 may be refused with UNSUPPORTED_VERSION.",
        "Kafka message schema",
    ),
    must(
        "COMMIT-28",
        "Simple group can be joined",
        "A simple group can be joined afterwards and keeps its offsets.",
        "GroupCoordinatorTest, Apache Kafka source",
    ),
    must(
        "COMMIT-29",
        "Removed members cannot commit",
        "A member that left, expired, was dropped or was fenced cannot commit with its id again.",
        "consumer group protocol chapter, OffsetMetadataManagerTest",
    ),
    should(
        "COMMIT-30",
        "Open transaction protects the offset",
        "While a transaction with an offset of a partition is open, the committed offset of that partition should not "
        "expire.",
        "KAFKA-14505, OffsetMetadataManagerTest",
        needs=("retention", "transactions"),
    ),
    must(
        "COMMIT-31",
        "Old epoch of a producer",
        "Once a newer epoch of a producer has ended the transaction of an older one, a transactional commit of the "
        "older epoch is refused with INVALID_PRODUCER_EPOCH and stores nothing.",
        "KIP-360, KIP-447, Apache Kafka source",
        needs=("transactions",),
    ),
    must(
        "COMMIT-32",
        "Epochs survive a failover",
        "A transactional commit of an older epoch is refused after a failover, too.",
        "KIP-360, Apache Kafka source",
        needs=("restart", "transactions"),
    ),
)
