"""DescribeGroups, ListGroups, DeleteGroups and OffsetDelete."""

from fencepost.model.catalogue.classic.changes import STATE_FILTER_CASE
from fencepost.model.catalogue.requirement import Requirement, must, should

ADMIN: tuple[Requirement, ...] = (
    must(
        "ADMIN-01",
        "Describing an unknown group",
        "An unknown group is described as Dead and without members: up to version 5 without an error, from "
        "version 6 on as GROUP_ID_NOT_FOUND with a message.",
        "DescribeGroupsRequestTest, GroupMetadataManagerTest, KIP-1043",
    ),
    must(
        "ADMIN-02",
        "State names",
        "A description names the states Empty, PreparingRebalance, CompletingRebalance, Stable and Dead exactly so.",
        "DescribeGroupsRequestTest",
    ),
    must(
        "ADMIN-03",
        "Describing a Stable group",
        "In Stable a description shows the type, the selected protocol and each member's id, client id, host, "
        "metadata and assignment.",
        "DescribeGroupsRequestTest",
    ),
    must(
        "ADMIN-04",
        "Describing a round in progress",
        "In PreparingRebalance and CompletingRebalance a description shows the members, but no protocol and no "
        "metadata.",
        "DescribeGroupsRequestTest, GroupMetadataManagerTest",
    ),
    must(
        "ADMIN-05",
        "Describing an Empty group",
        "An Empty group is described with its former protocol type, and a simple group with an empty one.",
        "Apache Kafka source, ListGroupsRequestTest",
    ),
    must(
        "ADMIN-06",
        "Instance ids described",
        "From version 4 on a description shows instance ids, null for dynamic members.",
        "DescribeGroupsRequestTest, GroupCoordinatorTest",
    ),
    must(
        "ADMIN-07",
        "One description per group",
        "Every group asked for gets one description.",
        "DescribeGroupsRequestTest",
    ),
    must(
        "ADMIN-08",
        "Authorized operations",
        "From version 3 on, authorized operations are -2147483648 unless they were asked for.",
        "KIP-430",
    ),
    must(
        "ADMIN-09",
        "Pending ids are not described",
        "Pending ids never show in a description.",
        "Apache Kafka source",
    ),
    must(
        "ADMIN-10",
        "Looking changes nothing",
        "Describing and listing groups changes nothing and extends no session.",
        "Apache Kafka source",
    ),
    must(
        "ADMIN-11",
        "Every group is listed",
        "A list contains every existing group of the node with its protocol type, Empty and simple ones too.",
        "ListGroupsRequestTest",
    ),
    must(
        "ADMIN-12",
        "State filter",
        "From version 4 on, a list shows states and honours a state filter, several values meaning any of them.",
        "KIP-518, ListGroupsRequestTest",
    ),
    must(
        "ADMIN-13",
        "Type filter",
        "From version 5 on, a list shows the type classic and honours a type filter.",
        "KIP-848, ListGroupsRequestTest",
    ),
    must(
        "ADMIN-14",
        "Unknown filter value",
        "An unknown state or type in a filter gives an empty list and no error.",
        "ListGroupsRequestTest",
    ),
    must(
        "ADMIN-15",
        "Gone groups are not listed",
        "Deleted and unknown groups are not listed.",
        "ListGroupsRequestTest",
    ),
    must(
        "ADMIN-16",
        "Deleting an unknown group",
        "Deleting an unknown group gives GROUP_ID_NOT_FOUND.",
        "GroupCoordinatorTest, ClassicGroupTest",
    ),
    must(
        "ADMIN-17",
        "Deleting an active group",
        "Deleting a group in PreparingRebalance, CompletingRebalance or Stable gives NON_EMPTY_GROUP and changes "
        "nothing.",
        "DeleteGroupsRequestTest, ClassicGroupTest",
    ),
    must(
        "ADMIN-18",
        "Deleting an Empty group",
        "Deleting an Empty group succeeds, after which it is described as Dead and its offsets are gone.",
        "DeleteGroupsRequestTest, GroupCoordinatorTest",
    ),
    must(
        "ADMIN-19",
        "One result per deleted group",
        "A deletion is answered per group.",
        "DeleteGroupsRequestTest",
    ),
    must(
        "ADMIN-20",
        "Deleting twice",
        "Deleting the same group twice gives success and then GROUP_ID_NOT_FOUND.",
        "Apache Kafka source",
    ),
    must(
        "ADMIN-21",
        "Deleting a simple group",
        "A simple group can be deleted, and so can the one with the empty id.",
        "GroupCoordinatorTest",
    ),
    must(
        "ADMIN-22",
        "Members of a deleted group",
        "After a deletion, a former member or pending id gets UNKNOWN_MEMBER_ID, and its commits ILLEGAL_GENERATION "
        "or GROUP_ID_NOT_FOUND.",
        "Apache Kafka source",
    ),
    must(
        "ADMIN-23",
        "Offset deletion without a group",
        "Deleting offsets gives INVALID_GROUP_ID for an empty group id and GROUP_ID_NOT_FOUND for an unknown group, "
        "at top level and without topics.",
        "OffsetDeleteRequestTest",
    ),
    must(
        "ADMIN-24",
        "Offset deletion in a foreign active group",
        'Deleting offsets of an active group whose type is not "consumer" gives NON_EMPTY_GROUP at top level.',
        "ClassicGroupTest, GroupCoordinatorTest",
    ),
    must(
        "ADMIN-25",
        "Offset deletion of a subscribed topic",
        "Deleting offsets of a topic that an active consumer group subscribes to gives GROUP_SUBSCRIBED_TO_TOPIC "
        "and deletes nothing.",
        "KIP-496, OffsetDeleteRequestTest",
    ),
    must(
        "ADMIN-26",
        "Offset deletion of another topic",
        "Deleting offsets of a topic that is not subscribed succeeds, in Stable too.",
        "KIP-496, GroupCoordinatorTest",
    ),
    must(
        "ADMIN-27",
        "Offset deletion in Empty",
        "Deleting offsets of an Empty group succeeds, whatever it subscribed to.",
        "OffsetDeleteRequestTest",
    ),
    must(
        "ADMIN-28",
        "Offset deletion without an offset",
        "Deleting the offset of a partition that has none succeeds.",
        "OffsetMetadataManagerTest",
    ),
    must(
        "ADMIN-29",
        "Offset deletion of an unknown partition",
        "Deleting offsets of a partition that the cluster does not have gives UNKNOWN_TOPIC_OR_PARTITION, unless "
        "there is a top-level error.",
        "OffsetDeleteRequestTest",
    ),
    must(
        "ADMIN-30",
        "Subscription that cannot be parsed",
        "While a consumer group with metadata that cannot be parsed is active, every topic counts as subscribed.",
        "GroupCoordinatorTest",
    ),
    must(
        "ADMIN-31",
        "Subscriptions add up",
        "The subscribed topics are the union over all members.",
        "ClassicGroupTest",
    ),
    must(
        "ADMIN-32",
        "Other groups are left alone",
        "A deletion of groups or offsets concerns the groups that it names and no other, also for the empty id.",
        "KIP-229, KIP-496",
        needs=("intrusive",),
    ),
    should(
        "ADMIN-33",
        "Filters without regard to case",
        "A filter on states or types should be honoured without regard to case.",
        "ListGroupsRequestTest",
        since=STATE_FILTER_CASE,
    ),
    must(
        "ADMIN-34",
        "Protocol type of pending ids",
        "A group that has issued member ids and never had a member is described and listed without a protocol type.",
        "Apache Kafka source",
    ),
    must(
        "ADMIN-35",
        "Groups with nothing to keep go away",
        "An Empty group without offsets and without an open transaction is removed by one of the next clean-up passes.",
        "GroupCoordinatorTest, GroupCoordinatorShardTest",
        needs=("retention",),
    ),
    must(
        "ADMIN-36",
        "Open transaction keeps the group",
        "An Empty group without offsets stays while a transaction that commits offsets of it is open, and they are "
        "there when the transaction has committed.",
        "KAFKA-14505, OffsetMetadataManagerTest, Apache Kafka source",
        needs=("retention", "transactions"),
    ),
)
