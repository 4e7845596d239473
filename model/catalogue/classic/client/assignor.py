"""Requirements of every assignor, of range and of roundrobin."""

from fencepost.model.catalogue.classic.client.constructors import may, must, should
from fencepost.model.catalogue.requirement import Requirement

ASSIGN: tuple[Requirement, ...] = (
    must(
        "ASSIGN-01",
        "Valid assignments",
        "Every assigned partition exists, and its member subscribes to its topic.",
        "AbstractStickyAssignorTest, RangeAssignorTest",
        incidental=True,
        needs=("assignor",),
    ),
    must(
        "ASSIGN-02",
        "One owner",
        "No partition is assigned to two members.",
        "AbstractStickyAssignorTest",
        incidental=True,
        needs=("assignor",),
    ),
    must(
        "ASSIGN-03",
        "Complete assignments",
        "Every partition of a subscribed topic that exists is assigned, or withheld by a cooperative assignor.",
        "client-side assignment proposal, AbstractStickyAssignorTest",
        incidental=True,
        needs=("assignor",),
    ),
    must(
        "ASSIGN-04",
        "Every member appears",
        "Every member of the input is in the output, if only with nothing.",
        "ConsumerPartitionAssignor documentation",
        incidental=True,
        needs=("assignor",),
    ),
    must(
        "ASSIGN-05",
        "Missing topics",
        "A topic without metadata or partitions is left out, and is no error.",
        "RangeAssignorTest, RoundRobinAssignorTest",
        needs=("assignor",),
    ),
    must(
        "ASSIGN-06",
        "Nothing but the input",
        "The result of range and roundrobin depends on metadata and subscriptions alone, and not on their order.",
        "client-side assignment proposal",
        needs=("assignor",),
    ),
    must(
        "ASSIGN-07",
        "Unreadable user data",
        "User data that cannot be read never makes an assignment fail.",
        "StickyAssignorTest, CooperativeStickyAssignorTest",
        needs=("assignor",),
    ),
    must(
        "ASSIGN-08",
        "Versions of subscriptions",
        "An assignor accepts subscriptions of the versions 0 to 3, and newer ones by the part that it knows.",
        "ConsumerProtocolTest, StickyAssignorTest",
        needs=("assignor",),
    ),
)

RANGE: tuple[Requirement, ...] = (
    must(
        "RANGE-01",
        "Contiguous blocks",
        "The subscribers of a topic get contiguous blocks of its partitions in their order.",
        "RangeAssignorTest",
        needs=("range",),
    ),
    must(
        "RANGE-02",
        "Remainder",
        "With n partitions and k subscribers the first n mod k members get one partition more.",
        "RangeAssignorTest",
        needs=("range",),
    ),
    must(
        "RANGE-03",
        "Topics stand alone",
        "Each topic is divided by itself among those that subscribe to it.",
        "RangeAssignorTest",
        needs=("range",),
    ),
    must(
        "RANGE-04",
        "Static members first",
        "Static members come before dynamic ones, in the order of their instance ids.",
        "RangeAssignorTest",
        needs=("range",),
    ),
    must(
        "RANGE-05",
        "Stable for static members",
        "Other member ids of the same static members leave what each instance is assigned unchanged.",
        "RangeAssignorTest",
        needs=("range",),
    ),
    must(
        "RANGE-06",
        "Co-partitioning",
        "Topics with equal partition counts and equal subscribers are divided alike.",
        "RangeAssignorTest",
        needs=("range",),
    ),
    must(
        "RANGE-07",
        "Order of names",
        "Member ids are compared character by character, not as numbers.",
        "RangeAssignor documentation",
        needs=("range",),
    ),
    should(
        "RANGE-08",
        "Racks come last",
        "Assignments with racks should keep the balance of each topic and co-partitioning before they keep "
        "partitions local.",
        "KIP-881, RangeAssignorTest",
        needs=(
            "range",
            "racks",
        ),
    ),
    must(
        "RANGE-09",
        "Racks without effect",
        "Racks are ignored where each holds a replica of every partition, or where no member's rack holds any.",
        "KIP-881, RangeAssignorTest",
        needs=(
            "range",
            "racks",
        ),
    ),
    may(
        "RANGE-10",
        "Skew over topics",
        "The totals of two members may differ by any number over many topics.",
        "Kafka: The Definitive Guide",
        needs=("range",),
        untestable="a permission to be unbalanced, which no assignment can break",
    ),
)

RR: tuple[Requirement, ...] = (
    must(
        "RR-01",
        "Dealing in a circle",
        "Partitions by topic and number are dealt to the members in their order, one after the other.",
        "RoundRobinAssignorTest",
        needs=("roundrobin",),
    ),
    must(
        "RR-02",
        "Members that do not subscribe",
        "A member that does not subscribe to the topic is passed over, and the dealing goes on behind the one that "
        "got the partition.",
        "RoundRobinAssignorTest",
        needs=("roundrobin",),
    ),
    must(
        "RR-03",
        "The circle goes on",
        "The next topic begins where the dealing of the last one ended.",
        "RoundRobinAssignor documentation",
        needs=("roundrobin",),
    ),
    must(
        "RR-04",
        "Balance for equal subscriptions",
        "For equal subscriptions the totals of two members differ by one at most.",
        "RoundRobinAssignor documentation",
        needs=("roundrobin",),
    ),
    must(
        "RR-05",
        "Static members come first",
        "Static members are dealt to before dynamic ones, in the order of their instance ids.",
        "RoundRobinAssignorTest",
        needs=("roundrobin",),
    ),
    must(
        "RR-06",
        "Stable for static members",
        "Other member ids of the same static members leave what is dealt to each instance unchanged.",
        "RoundRobinAssignorTest",
        needs=("roundrobin",),
    ),
    may(
        "RR-07",
        "Skew for different subscriptions",
        "For different subscriptions a member may get nothing while another has three partitions.",
        "AbstractStickyAssignorTest",
        needs=("roundrobin",),
        untestable="a permission to be unbalanced, which no assignment can break",
    ),
)
