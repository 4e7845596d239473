"""Requirements of the rebalance listener."""

from fencepost.model.catalogue.classic.client.constructors import must, should
from fencepost.model.catalogue.requirement import Requirement

CALLBACK: tuple[Requirement, ...] = (
    must(
        "CALLBACK-01",
        "Thread of callbacks",
        "Callbacks run on the application's thread of control, inside poll, unsubscribe or close.",
        "KIP-429, ConsumerRebalanceListener documentation",
        incidental=True,
        needs=("driver",),
    ),
    must(
        "CALLBACK-02",
        "Eager members revoke first",
        "An eager member sends JoinGroup after its callback has revoked every assigned partition.",
        "ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    must(
        "CALLBACK-03",
        "Eager members are assigned everything",
        "An eager member's callback is told of the whole new assignment.",
        "ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    must(
        "CALLBACK-04",
        "Cooperative members keep",
        "Before JoinGroup a cooperative member revokes only partitions of topics that it no longer subscribes to.",
        "KIP-429, KafkaConsumerTest",
        needs=(
            "driver",
            "cooperative",
        ),
    ),
    must(
        "CALLBACK-05",
        "Lost partitions",
        "Where the generation was reset, all assigned partitions are reported as lost before JoinGroup, and none "
        "as revoked.",
        "ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    must(
        "CALLBACK-06",
        "Assignment during callbacks",
        "A listener sees the old assignment while partitions are revoked or lost, and the new one when they are "
        "assigned.",
        "KafkaConsumerTest, Apache Kafka source",
        needs=("driver",),
    ),
    must(
        "CALLBACK-07",
        "Commit before revocation",
        "With auto-commit an eager member has finished or given up its commit before its callback revokes.",
        "KAFKA-14024, ConsumerCoordinatorTest",
        needs=(
            "driver",
            "auto-commit",
        ),
    ),
    must(
        "CALLBACK-08",
        "Order in a cooperative rebalance",
        "A cooperative rebalance calls back about what is taken away before it calls back about what is added.",
        "KIP-429, ConsumerCoordinatorTest",
        needs=(
            "driver",
            "cooperative",
        ),
    ),
    should(
        "CALLBACK-09",
        "Assigned once",
        "A completed rebalance should call assigned exactly once, with the empty set if nothing was added.",
        "ConsumerRebalanceListener documentation, ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    must(
        "CALLBACK-10",
        "Failed attempts",
        "A failed JoinGroup or SyncGroup that costs no generation repeats no callback.",
        "AbstractCoordinatorTest",
        needs=("driver",),
    ),
    must(
        "CALLBACK-11",
        "Callbacks on leaving",
        "Unsubscribing and closing call revoked in a stable member, and lost where the generation was reset or a "
        "rebalance is under way.",
        "ConsumerCoordinatorTest, KafkaConsumerTest",
        needs=("driver",),
    ),
    should(
        "CALLBACK-12",
        "Listener that raises",
        "A failure of a listener should reach the application after the other callbacks ran and the assignment was "
        "installed.",
        "ConsumerCoordinatorTest, KafkaConsumerTest",
        needs=("driver",),
    ),
    should(
        "CALLBACK-13",
        "Revoked once",
        "A listener that raises while it is told of revoked partitions should not be called again for the same "
        "rebalance.",
        "Apache Kafka source",
        needs=("driver",),
    ),
    must(
        "CALLBACK-14",
        "Hand-over between members",
        "Among members that are not fenced, the old owner's callback has revoked a partition before the new "
        "owner's is assigned it.",
        "ConsumerRebalanceListener documentation, KIP-429",
        incidental=True,
        needs=("driver",),
    ),
    should(
        "CALLBACK-15",
        "Lost falls back to revoked",
        "An application that handles only revoked partitions should be told there of lost ones.",
        "KIP-429",
        needs=("driver",),
    ),
    must(
        "CALLBACK-16",
        "Commits in callbacks",
        "A commit in a callback about revoked partitions is sent under the old generation before JoinGroup and "
        "under the new one after SyncGroup.",
        "PlaintextConsumerPollTest",
        needs=("driver",),
    ),
    should(
        "CALLBACK-17",
        "First join",
        "The first join of a client should report no partition as revoked or lost.",
        "ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    must(
        "CALLBACK-18",
        "No callbacks for manual assignment",
        "A manual assignment calls no callback.",
        "ConsumerRebalanceListener documentation",
        needs=(
            "driver",
            "manual-assignment",
        ),
    ),
    should(
        "CALLBACK-19",
        "No empty revocation",
        "A cooperative member should call back about revoked or lost partitions only where there are some.",
        "KIP-429",
        needs=(
            "driver",
            "cooperative",
        ),
    ),
)
