"""Requirements of polls: which of the fetched records are returned, and when."""

from fencepost.model.catalogue.classic.client.constructors import may, must, should
from fencepost.model.catalogue.requirement import Requirement

POLL: tuple[Requirement, ...] = (
    must(
        "POLL-01",
        "Records of a poll",
        "A poll returns at most max.poll.records records, over all partitions together.",
        "KIP-41, KAFKA-15836, FetcherTest",
        incidental=True,
        needs=("driver",),
    ),
    must(
        "POLL-02",
        "Records that are left",
        "Records that were fetched and not returned are kept for later polls.",
        "KIP-41, FetcherTest",
        needs=("driver",),
    ),
    must(
        "POLL-03",
        "Order of offsets",
        "Records of a partition are returned in the order of their offsets, without gaps or repeats relative to "
        "the log.",
        "FetcherTest",
        incidental=True,
        needs=("driver",),
    ),
    should(
        "POLL-04",
        "Full polls",
        "A greedy client should return as many records as are allowed and buffered, in one pass.",
        "KIP-41",
        needs=("driver",),
    ),
    must(
        "POLL-05",
        "No starvation",
        "A partition with buffered records is served after a number of polls that only the other partitions' "
        "buffers, their number and the limit determine.",
        "KIP-41",
        incidental=True,
        needs=("driver",),
    ),
    must(
        "POLL-06",
        "Bound of the declared rule",
        "A partition waits no longer than the bound of the cursor rule that the client declares.",
        "KIP-41, theorems of this project",
        needs=("driver",),
    ),
    must(
        "POLL-07",
        "Bound despite refills",
        "The bound holds while other partitions are refilled as fast as the client asks.",
        "KIP-41",
        needs=("driver",),
    ),
    must(
        "POLL-08",
        "Cursor survives",
        "The place at which a poll stopped is remembered by the next poll.",
        "KIP-41",
        needs=("driver",),
    ),
    must(
        "POLL-09",
        "Paused partitions",
        "Paused partitions are neither returned nor fetched, and lose nothing when they are resumed.",
        "FetcherTest",
        needs=("driver",),
    ),
    must(
        "POLL-10",
        "Partitions no longer assigned",
        "Buffered records of a partition that is no longer assigned are never returned.",
        "FetcherTest",
        needs=("driver",),
    ),
    must(
        "POLL-11",
        "Records before a seek",
        "Records that do not begin at the current position are never returned.",
        "FetcherTest",
        needs=("driver",),
    ),
    must(
        "POLL-12",
        "Gaps and control records",
        "Gaps in the offsets and control records at the limit of a poll neither drop records nor have any fetched "
        "again.",
        "FetcherTest",
        needs=("driver",),
    ),
    must(
        "POLL-13",
        "Positions move with records",
        "A position moves when records are returned, or are skipped since they cannot be returned.",
        "FetcherTest",
        needs=("driver",),
    ),
    should(
        "POLL-14",
        "Errors of one partition",
        "An error of one partition should not discard the records that the same poll has gathered.",
        "FetcherTest",
        needs=("driver",),
    ),
    should(
        "POLL-15",
        "No waiting with data",
        "A poll with buffered records should return without waiting for the network.",
        "KIP-41, KafkaConsumerTest",
        needs=("driver",),
    ),
    may(
        "POLL-16",
        "Proportional polls",
        "A client may divide a poll equally among the partitions.",
        "KIP-41",
        needs=("driver",),
        untestable="a permission to choose another rule, which no poll can break",
    ),
    should(
        "POLL-17",
        "Limit and fetches",
        "The limit of a poll should have no influence on fetches beyond the prefetch rule.",
        "ConsumerConfig documentation",
        needs=("driver",),
        untestable="it takes a client with two configurations side by side",
    ),
    should(
        "POLL-18",
        "Topics that left",
        "A changed subscription should drop buffered records of topics that left it.",
        "Apache Kafka source",
        needs=("driver",),
    ),
    must(
        "POLL-19",
        "Partitions about to be revoked",
        "While an eager member commits before a revocation it returns no record of the partitions concerned.",
        "KAFKA-14196, FetcherTest",
        needs=(
            "driver",
            "auto-commit",
        ),
    ),
)
