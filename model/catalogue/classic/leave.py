"""Requirements of LeaveGroup, single and batched, and of its effect on the round in progress."""

from fencepost.model.catalogue.classic.changes import KNOWN_INSTANCE
from fencepost.model.catalogue.requirement import Requirement, must

LEAVE: tuple[Requirement, ...] = (
    must(
        "LEAVE-01",
        "Empty group id",
        "A LeaveGroup with an empty group id is refused with INVALID_GROUP_ID at top level and no entries, whatever "
        "members it names.",
        "LeaveGroupRequestTest",
    ),
    must(
        "LEAVE-02",
        "Unknown group",
        "A LeaveGroup to an unknown group gives every entry UNKNOWN_MEMBER_ID: at top level up to version 2, per "
        "entry from version 3 on.",
        "LeaveGroupRequestTest, GroupCoordinatorServiceTest",
    ),
    must(
        "LEAVE-03",
        "Unknown member id",
        "A LeaveGroup of an unknown id gives its entry UNKNOWN_MEMBER_ID and changes nothing.",
        "LeaveGroupRequestTest",
    ),
    must(
        "LEAVE-04",
        "Member leaves",
        "A LeaveGroup of a member succeeds and removes it at once.",
        "LeaveGroupRequestTest, GroupMetadataManagerTest",
    ),
    must(
        "LEAVE-05",
        "Leaving starts a rebalance",
        "If others remain when a member leaves in Stable or CompletingRebalance, a rebalance starts.",
        "GroupMetadataManagerTest",
    ),
    must(
        "LEAVE-06",
        "Last member leaves",
        "When the last member leaves, the group is Empty and its generation is one higher.",
        "LeaveGroupRequestTest, GroupMetadataManagerTest",
    ),
    must(
        "LEAVE-07",
        "Leaving completes the join phase",
        "In PreparingRebalance, a leave completes the join phase if all remaining members have rejoined and no id "
        "is pending.",
        "GroupMetadataManagerTest",
    ),
    must(
        "LEAVE-08",
        "Leaving keeps the initial delay",
        "During the initial delay a leave does not cut the delay short.",
        "Apache Kafka source",
        needs=("initial-delay",),
    ),
    must(
        "LEAVE-09",
        "Parked join of the leaver",
        "The parked JoinGroup of a member that leaves is answered UNKNOWN_MEMBER_ID with an empty member id.",
        "Apache Kafka source",
    ),
    must(
        "LEAVE-10",
        "Pending id leaves",
        "A LeaveGroup of a pending id succeeds, and the id is unknown afterwards.",
        "GroupMetadataManagerTest, GroupCoordinatorTest",
    ),
    must(
        "LEAVE-11",
        "Entries answered one by one",
        "From version 3 on, entries are answered one by one and in order with their ids echoed, and a failing entry "
        "does not stop the others.",
        "KIP-345, GroupMetadataManagerTest",
    ),
    must(
        "LEAVE-12",
        "Same member twice",
        "A member named twice in one request gives success and then UNKNOWN_MEMBER_ID.",
        "Apache Kafka source",
    ),
    must(
        "LEAVE-13",
        "Entry without any id",
        "An entry with neither member id nor instance id gives UNKNOWN_MEMBER_ID.",
        "LeaveGroupRequestTest",
    ),
    must(
        "LEAVE-14",
        "Removal by instance id",
        "An entry with an empty member id and a known instance id removes that member, and echoes the empty id.",
        "KIP-345, LeaveGroupRequestTest",
    ),
    must(
        "LEAVE-15",
        "Instance id mismatch",
        "In an entry, an unknown instance id gives UNKNOWN_MEMBER_ID and a known one with another member's id gives "
        "FENCED_INSTANCE_ID.",
        "KIP-345, LeaveGroupRequestTest",
        since=KNOWN_INSTANCE,
    ),
    must(
        "LEAVE-16",
        "Empty batch",
        "An empty list of members succeeds without entries and changes nothing.",
        "Apache Kafka source",
    ),
    must(
        "LEAVE-17",
        "Leader leaves",
        "A leader that leaves is replaced by a member that rejoins.",
        "Apache Kafka source",
    ),
    must(
        "LEAVE-18",
        "Leave reason is ignored",
        "The reason sent from version 5 on affects nothing.",
        "KIP-800",
    ),
    must(
        "LEAVE-19",
        "Leaving in CompletingRebalance",
        "A leave in CompletingRebalance answers the parked SyncGroups of the others with REBALANCE_IN_PROGRESS.",
        "GroupCoordinatorTest, GroupMetadataManagerTest",
    ),
    must(
        "LEAVE-20",
        "Leaving needs no generation",
        "A LeaveGroup needs no generation, and up to version 2 it removes a static member that is named by its id.",
        "Kafka message schema, Apache Kafka source",
    ),
    must(
        "LEAVE-21",
        "Offsets outlive members",
        "Leaving does not delete committed offsets.",
        "GroupCoordinatorTest",
    ),
    must(
        "LEAVE-22",
        "Batch empties the group",
        "A batch that removes all members leaves the group Empty, however many rebalances that is counted as.",
        "GroupMetadataManagerTest",
    ),
)
