"""Requirements of OffsetFetch: the offsets read back, by any client and in every state of the group."""

from fencepost.model.catalogue.requirement import Requirement, must

FETCH: tuple[Requirement, ...] = (
    must(
        "FETCH-01",
        "Last commit is returned",
        "A fetch of a committed partition returns the offset, metadata and leader epoch that were accepted last.",
        "OffsetFetchRequestTest",
    ),
    must(
        "FETCH-02",
        "Uncommitted partition",
        "A fetch of an uncommitted partition returns offset -1, empty metadata and no error, even if the topic does "
        "not exist; from version 10 on an id that no topic has gets UNKNOWN_TOPIC_ID.",
        "OffsetFetchRequestTest",
    ),
    must(
        "FETCH-03",
        "Fetch from an unknown group",
        "A fetch from an unknown group returns uncommitted partitions without an error, and never GROUP_ID_NOT_FOUND.",
        "OffsetFetchRequestTest, OffsetMetadataManagerTest",
    ),
    must(
        "FETCH-04",
        "Fetch everything",
        "From version 2 on, a null topic list returns every committed partition and nothing else.",
        "KIP-88, OffsetFetchRequestTest",
    ),
    must(
        "FETCH-05",
        "Fetch nothing",
        "An empty topic list returns no topics.",
        "OffsetFetchRequestTest",
    ),
    must(
        "FETCH-06",
        "Several groups",
        "From version 8 on, every requested group gets its own entry and its own error.",
        "KIP-709, OffsetFetchRequestTest",
    ),
    must(
        "FETCH-07",
        "No membership needed",
        "A fetch needs neither membership nor a generation, and works in every state.",
        "OffsetFetchRequestTest, Apache Kafka source",
    ),
    must(
        "FETCH-08",
        "Fetch does not extend a session",
        "A fetch does not extend any session.",
        "Apache Kafka source",
    ),
    must(
        "FETCH-09",
        "Member fields are ignored",
        "In version 9 the member id and epoch are ignored for classic groups.",
        "OffsetFetchRequestTest",
    ),
    must(
        "FETCH-10",
        "Stable fetch with a pending transaction",
        "From version 7 on, a fetch that requires stable offsets answers UNSTABLE_OFFSET_COMMIT and offset -1 for a "
        "partition with a pending transactional commit, and the others normally.",
        "KIP-447, OffsetMetadataManagerTest",
        needs=("transactions",),
    ),
    must(
        "FETCH-11",
        "Pending value is invisible",
        "A fetch that does not require stable offsets returns the last committed value and never a pending one.",
        "KIP-447, OffsetMetadataManagerTest",
        needs=("transactions",),
    ),
    must(
        "FETCH-12",
        "End of the transaction",
        "After a transaction commits its offset is returned, and after it aborts the old one.",
        "OffsetMetadataManagerTest, GroupCoordinatorTest",
        needs=("transactions",),
    ),
    must(
        "FETCH-13",
        "Deleted offsets are gone",
        "After its offset or its group was deleted, a partition returns offset -1.",
        "GroupCoordinatorTest",
    ),
    must(
        "FETCH-14",
        "Old versions",
        "A fetch of version 0 may be refused with UNSUPPORTED_VERSION, and version 1 has no top-level error.",
        "Kafka message schema",
    ),
    must(
        "FETCH-15",
        "Fetch creates nothing",
        "A fetch does not create a group.",
        "OffsetFetchRequestTest",
    ),
    must(
        "FETCH-16",
        "Stable again after a transaction",
        "Soon after the end of a transaction was accepted, a fetch that requires stable offsets no longer gets "
        "UNSTABLE_OFFSET_COMMIT because of it.",
        "KIP-447, OffsetMetadataManagerTest",
        needs=("transactions",),
    ),
)
