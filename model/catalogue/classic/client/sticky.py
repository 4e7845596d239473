"""Requirements of the sticky assignors."""

from fencepost.model.catalogue.classic.client.constructors import may, must, should
from fencepost.model.catalogue.requirement import Requirement

STICKY: tuple[Requirement, ...] = (
    must(
        "STICKY-01",
        "Balance for equal subscriptions",
        "For equal subscriptions every member gets the quotient of partitions and members or one more, and as many "
        "get one more as the remainder says.",
        "KIP-54, AbstractStickyAssignorTest",
        needs=("sticky",),
    ),
    must(
        "STICKY-02",
        "Balance for different subscriptions",
        "For different subscriptions no partition could move to a subscriber that has at least two partitions fewer.",
        "KIP-54, StickyAssignor documentation",
        needs=("sticky",),
    ),
    should(
        "STICKY-03",
        "Claims that are kept",
        "For equal subscriptions without conflicts and racks, as many claims should be kept as the balance allows.",
        "KIP-54",
        needs=("sticky",),
    ),
    must(
        "STICKY-04",
        "Balanced assignments stay",
        "A previous assignment that is valid, complete and balanced is returned unchanged.",
        "KIP-54, AbstractStickyAssignorTest",
        needs=("sticky",),
    ),
    must(
        "STICKY-05",
        "A member leaves",
        "For equal subscriptions the partitions of a member that leaves are spread, and the others keep theirs.",
        "AbstractStickyAssignorTest",
        needs=("sticky",),
    ),
    should(
        "STICKY-06",
        "What is shed",
        "Surplus partitions should be shed from the highest number on, evenly over the topics.",
        "KAFKA-16277, AbstractStickyAssignorTest",
        needs=("sticky",),
    ),
    must(
        "STICKY-07",
        "Newer claims win",
        "Of two claims to a partition the one of the higher generation counts.",
        "KIP-341, KAFKA-14639, AbstractStickyAssignorTest",
        needs=("sticky",),
    ),
    must(
        "STICKY-08",
        "Equal claims cancel",
        "Where two members claim a partition in the same generation, neither claim counts.",
        "KAFKA-12984, AbstractStickyAssignorTest",
        needs=("sticky",),
    ),
    should(
        "STICKY-09",
        "Old claims",
        "A claim of an old generation should count if nobody contests it.",
        "KAFKA-14639, AbstractStickyAssignorTest",
        needs=("sticky",),
    ),
    must(
        "STICKY-10",
        "Claims come from user data",
        "The assignor sticky takes claims from user data alone.",
        "StickyAssignorTest",
        needs=("sticky",),
    ),
    must(
        "STICKY-11",
        "User data without a generation",
        "User data of the old schema counts as a claim without a generation.",
        "StickyAssignorTest",
        needs=("sticky",),
    ),
    must(
        "STICKY-12",
        "Vanished topics",
        "Claims to topics that have vanished or are no longer subscribed do not count.",
        "AbstractStickyAssignorTest",
        needs=("sticky",),
    ),
    should(
        "STICKY-13",
        "Vanished partitions",
        "Claims to partition numbers that do not exist should not count.",
        "our own requirement; Apache Kafka breaks it",
        needs=("sticky",),
    ),
    should(
        "STICKY-14",
        "Previous claimants",
        "A partition should not go back to a previous claimant that no longer subscribes to its topic.",
        "our own requirement; Apache Kafka breaks it",
        needs=("sticky",),
    ),
    should(
        "STICKY-15",
        "No failure on valid input",
        "Different subscriptions should not make the assignment fail.",
        "our own requirement; Apache Kafka breaks it",
        needs=("sticky",),
    ),
    should(
        "STICKY-16",
        "No exchange within a topic",
        "In one run no partitions of a topic should move from one member to another while others move back.",
        "KIP-54, AbstractStickyAssignorTest",
        needs=("sticky",),
    ),
    may(
        "STICKY-17",
        "Instance ids do not matter",
        "Sticky assignments may ignore instance ids.",
        "Apache Kafka source",
        needs=("sticky",),
        untestable="a permission to ignore what every assignment may also respect",
    ),
    should(
        "STICKY-18",
        "Memory of sticky members",
        "A member with the assignor sticky should send its last assignment and the generation of it in its next "
        "JoinGroup.",
        "StickyAssignorTest, KIP-341",
        needs=("sticky",),
    ),
    should(
        "STICKY-19",
        "Racks and stickiness",
        "Assignments with racks should keep the balance, and may move an owned partition to a rack that has a replica.",
        "KIP-881, AbstractStickyAssignorTest",
        needs=(
            "sticky",
            "racks",
        ),
    ),
)
