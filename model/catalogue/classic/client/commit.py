"""Requirements of commits as the client makes them, and of start positions."""

from fencepost.model.catalogue.classic.client.constructors import must, should
from fencepost.model.catalogue.requirement import Requirement

MCOMMIT: tuple[Requirement, ...] = (
    must(
        "MCOMMIT-01",
        "Position, not fetch",
        "Commits without offsets use the position after the last record that was returned, whatever else is buffered.",
        "KIP-41, FetcherTest",
        incidental=True,
        needs=("driver",),
    ),
    must(
        "MCOMMIT-02",
        "Next offset",
        "A committed offset is the one of the next record to read.",
        "FetcherTest, KafkaConsumerTest",
        incidental=True,
        needs=("driver",),
    ),
    must(
        "MCOMMIT-03",
        "Fields of commits",
        "A group member's OffsetCommit carries its generation, member id and instance id.",
        "Kafka: The Definitive Guide",
        incidental=True,
    ),
    must(
        "MCOMMIT-04",
        "Auto-commit comes before records",
        "A periodic auto-commit covers no record of the poll that triggers it.",
        "KafkaConsumerTest",
        needs=(
            "driver",
            "auto-commit",
        ),
    ),
    must(
        "MCOMMIT-05",
        "Eager commit before JoinGroup",
        "With auto-commit an eager member commits its positions under the old generation before JoinGroup, and "
        "returns no record after that.",
        "KAFKA-14196, KafkaConsumerTest",
        needs=(
            "driver",
            "auto-commit",
        ),
    ),
    should(
        "MCOMMIT-06",
        "Patience with that commit",
        "The commit before JoinGroup should be repeated on errors that may pass, for a rebalance timeout at most, "
        "and given up on others.",
        "ConsumerCoordinatorTest",
        needs=("auto-commit",),
    ),
    should(
        "MCOMMIT-07",
        "Commit on closing",
        "With auto-commit a client should commit before it leaves on closing, whatever comes of the commit.",
        "ConsumerCoordinatorTest",
        needs=("auto-commit",),
    ),
    must(
        "MCOMMIT-08",
        "No commit while joining",
        "While a member joins it sends no OffsetCommit, and tells a caller to let the rebalance finish.",
        "ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    must(
        "MCOMMIT-09",
        "Commit during a rebalance",
        "REBALANCE_IN_PROGRESS in answer to a commit keeps generation and member id, asks for a rejoin, and leads "
        "to no blind retry.",
        "ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    must(
        "MCOMMIT-10",
        "Commit of a member that is out",
        "ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID in answer to a commit is a definite failure for the caller, and "
        "the member joins again.",
        "ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    must(
        "MCOMMIT-11",
        "No commit without a generation",
        "A subscribed client without a valid generation sends no commit.",
        "ConsumerCoordinatorTest, Apache Kafka source",
        needs=("driver",),
    ),
    must(
        "MCOMMIT-12",
        "Commit of a manual assignment",
        "A client with a manual assignment commits with generation -1, an empty member id and no instance id.",
        "ConsumerCoordinatorTest",
        needs=("manual-assignment",),
    ),
    must(
        "MCOMMIT-13",
        "Late commit error",
        "A commit error about an older generation does not reset the generation that the client has meanwhile.",
        "ConsumerCoordinatorTest",
        needs=("driver",),
        untestable="responses on a connection come in order, so that none of an older generation comes late",
    ),
    should(
        "MCOMMIT-14",
        "Retries of commits",
        "Where an error may pass, a synchronous commit should be repeated until its deadline and an asynchronous "
        "one reported once.",
        "ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    must(
        "MCOMMIT-15",
        "Fenced commit",
        "FENCED_INSTANCE_ID in answer to a commit reaches the application.",
        "ConsumerCoordinatorTest",
        needs=(
            "static-membership",
            "driver",
        ),
    ),
    should(
        "MCOMMIT-16",
        "Order of reports",
        "Callbacks of earlier asynchronous commits should run before a later synchronous commit returns.",
        "ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    should(
        "MCOMMIT-17",
        "Auto-commit interval",
        "Periodic commits should come once in each interval at most, and after a failure that may pass again after "
        "the backoff.",
        "ConsumerCoordinatorTest",
        needs=("auto-commit",),
    ),
    must(
        "MCOMMIT-18",
        "Only valid positions",
        "No commit covers a partition that is not assigned or has no valid position.",
        "Apache Kafka source",
        incidental=True,
    ),
    must(
        "MCOMMIT-19",
        "Start of a partition",
        "A newly assigned partition starts at its committed offset, or by the reset policy if there is none.",
        "ConsumerCoordinatorTest, KafkaConsumerTest",
        needs=("driver",),
    ),
    should(
        "MCOMMIT-20",
        "Unstable offsets",
        "A client should repeat an OffsetFetch that says that an offset is unstable.",
        "KIP-447, ConsumerCoordinatorTest",
    ),
    must(
        "MCOMMIT-21",
        "Commits follow records",
        "In the group as a whole a committed offset never passes a record that no member returned.",
        "KIP-41, Kafka: The Definitive Guide",
        incidental=True,
        needs=("driver",),
    ),
    must(
        "MCOMMIT-22",
        "Only commits that are asked for",
        "Without auto-commit a client sends no OffsetCommit that its application has not asked for.",
        "Kafka: The Definitive Guide, Apache Kafka source",
        needs=("driver",),
    ),
)
