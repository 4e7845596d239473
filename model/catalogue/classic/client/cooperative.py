"""Requirements of cooperative rebalancing: the member and its assignor."""

from fencepost.model.catalogue.classic.client.constructors import must, should
from fencepost.model.catalogue.requirement import Requirement

COOP: tuple[Requirement, ...] = (
    must(
        "COOP-01",
        "Owned partitions are declared",
        "A cooperative member keeps its partitions through JoinGroup and declares them there as owned.",
        "KIP-429",
        needs=("cooperative",),
    ),
    must(
        "COOP-02",
        "What is given up",
        "When the assignment arrives, a cooperative member gives up exactly what it owns and was not assigned.",
        "KIP-429",
        needs=(
            "cooperative",
            "driver",
        ),
    ),
    must(
        "COOP-03",
        "Rejoin after giving up",
        "A cooperative member that gave up partitions joins again of its own accord.",
        "KIP-429",
        needs=("cooperative",),
    ),
    must(
        "COOP-04",
        "Revoked partitions are not claimed",
        "The JoinGroup after a revocation does not declare the revoked partitions as owned.",
        "KIP-429",
        needs=("cooperative",),
    ),
    should(
        "COOP-05",
        "No rejoin without a loss",
        "A member that gave up nothing should not ask for another rebalance.",
        "KIP-429",
        needs=("cooperative",),
    ),
    should(
        "COOP-06",
        "Records during a rebalance",
        "A cooperative member should fetch and return records of owned partitions during a rebalance.",
        "KIP-429, KafkaConsumerTest, FetcherTest",
        needs=(
            "cooperative",
            "driver",
        ),
    ),
    must(
        "COOP-07",
        "Retained partitions",
        "Retained partitions keep position, pause and buffered records, and only added ones get a start position.",
        "FetcherTest",
        needs=(
            "cooperative",
            "driver",
        ),
    ),
    should(
        "COOP-08",
        "Generation of claims",
        "Owned partitions should be declared with a generation that is not older than the assignment they come from.",
        "KIP-792",
        needs=("cooperative",),
    ),
    must(
        "COOP-09",
        "Safe hand-over",
        "A partition is given to a member that does not own it only where no other member validly owns it.",
        "KIP-429, CooperativeStickyAssignorTest",
        incidental=True,
        needs=("cooperative-sticky",),
    ),
    must(
        "COOP-10",
        "Free partitions at once",
        "Partitions that nobody owns are assigned in the same round.",
        "KIP-429",
        needs=("cooperative-sticky",),
    ),
    must(
        "COOP-11",
        "What is withheld",
        "Of the target only what may not be given yet is withheld.",
        "CooperativeStickyAssignorTest",
        needs=("cooperative-sticky",),
    ),
    must(
        "COOP-12",
        "Convergence",
        "With stable membership the rounds end at the sticky target: after two for equal subscriptions, after five "
        "at most for others.",
        "CooperativeStickyAssignorTest",
        needs=("cooperative-sticky",),
    ),
    must(
        "COOP-13",
        "Everyone joins every round",
        "Every member joins in every round, whether it gave something up or not.",
        "KIP-429",
        needs=("cooperative",),
    ),
    should(
        "COOP-14",
        "Check of other assignors",
        "A leader should refuse an assignment of a cooperative assignor that adds a partition while it takes it away.",
        "ConsumerCoordinatorTest",
        needs=(
            "cooperative",
            "driver",
        ),
    ),
    must(
        "COOP-15",
        "Mixed lists are eager",
        "A member that lists an assignor without cooperative support behaves eagerly.",
        "KIP-429, ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    must(
        "COOP-16",
        "Double claims",
        "A partition that two members claim in the same generation is taken from both before anyone gets it.",
        "KAFKA-12984, CooperativeStickyAssignorTest",
        needs=("cooperative-sticky",),
    ),
    should(
        "COOP-17",
        "Nothing owned without a generation",
        "A member that lost its generation should declare nothing as owned.",
        "KAFKA-12983, ConsumerCoordinatorTest",
        needs=("cooperative",),
    ),
    should(
        "COOP-18",
        "Stale claims",
        "What is withheld should depend on valid claims, so that no stale claimant gets what the valid owner still "
        "holds.",
        "our own requirement; Apache Kafka breaks it",
        needs=("cooperative-sticky",),
    ),
)
