"""Assignors: what all of them promise, and range, roundrobin, sticky and cooperative-sticky each.

`fencepost.model.catalogue.notation` explains the notation.
"""

REQUIREMENTS = """
# Every assignor
ASSIGN-01 MUST: Valid assignments; needs assignor; in passing
  Every assigned partition exists, and its member subscribes to its topic.
  [AbstractStickyAssignorTest, RangeAssignorTest]
ASSIGN-02 MUST: One owner; needs assignor; in passing
  No partition is assigned to two members. [AbstractStickyAssignorTest]
ASSIGN-03 MUST: Complete assignments; needs assignor; in passing
  Every partition of a subscribed topic that exists is assigned, or withheld by a cooperative assignor.
  [client-side assignment proposal, AbstractStickyAssignorTest]
ASSIGN-04 MUST: Every member appears; needs assignor; in passing
  Every member of the input is in the output, if only with nothing. [ConsumerPartitionAssignor documentation]
ASSIGN-05 MUST: Missing topics; needs assignor
  A topic without metadata or partitions is left out, and is no error. [RangeAssignorTest, RoundRobinAssignorTest]
ASSIGN-06 MUST: Nothing but the input; needs assignor
  The result of range and roundrobin depends on metadata and subscriptions alone, and not on their order.
  [client-side assignment proposal]
ASSIGN-07 MUST: Unreadable user data; needs assignor
  User data that cannot be read never makes an assignment fail. [StickyAssignorTest, CooperativeStickyAssignorTest]
ASSIGN-08 MUST: Versions of subscriptions; needs assignor
  An assignor accepts subscriptions of the versions 0 to 3, and newer ones by the part that it knows.
  [ConsumerProtocolTest, StickyAssignorTest]

# The assignor range
RANGE-01 MUST: Contiguous blocks; needs range
  The subscribers of a topic get contiguous blocks of its partitions in their order. [RangeAssignorTest]
RANGE-02 MUST: Remainder; needs range
  With n partitions and k subscribers the first n mod k members get one partition more. [RangeAssignorTest]
RANGE-03 MUST: Topics stand alone; needs range
  Each topic is divided by itself among those that subscribe to it. [RangeAssignorTest]
RANGE-04 MUST: Static members first; needs range
  Static members come before dynamic ones, in the order of their instance ids. [RangeAssignorTest]
RANGE-05 MUST: Stable for static members; needs range
  Other member ids of the same static members leave what each instance is assigned unchanged. [RangeAssignorTest]
RANGE-06 MUST: Co-partitioning; needs range
  Topics with equal partition counts and equal subscribers are divided alike. [RangeAssignorTest]
RANGE-07 MUST: Order of names; needs range
  Member ids are compared character by character, not as numbers. [RangeAssignor documentation]
RANGE-08 SHOULD: Racks come last; needs range, racks
  Assignments with racks should keep the balance of each topic and co-partitioning before they keep partitions local.
  [KIP-881, RangeAssignorTest]
RANGE-09 MUST: Racks without effect; needs range, racks
  Racks are ignored where each holds a replica of every partition, or where no member's rack holds any.
  [KIP-881, RangeAssignorTest]
RANGE-10 MAY: Skew over topics; needs range
  The totals of two members may differ by any number over many topics.
  [Kafka: The Definitive Guide] untestable: a permission to be unbalanced, which no assignment can break

# The assignor roundrobin
RR-01 MUST: Dealing in a circle; needs roundrobin
  Partitions by topic and number are dealt to the members in their order, one after the other. [RoundRobinAssignorTest]
RR-02 MUST: Members that do not subscribe; needs roundrobin
  A member that does not subscribe to the topic is passed over, and the dealing goes on behind the one that got the
  partition. [RoundRobinAssignorTest]
RR-03 MUST: The circle goes on; needs roundrobin
  The next topic begins where the dealing of the last one ended. [RoundRobinAssignor documentation]
RR-04 MUST: Balance for equal subscriptions; needs roundrobin
  For equal subscriptions the totals of two members differ by one at most. [RoundRobinAssignor documentation]
RR-05 MUST: Static members come first; needs roundrobin
  Static members are dealt to before dynamic ones, in the order of their instance ids. [RoundRobinAssignorTest]
RR-06 MUST: Stable for static members; needs roundrobin
  Other member ids of the same static members leave what is dealt to each instance unchanged. [RoundRobinAssignorTest]
RR-07 MAY: Skew for different subscriptions; needs roundrobin
  For different subscriptions a member may get nothing while another has three partitions.
  [AbstractStickyAssignorTest] untestable: a permission to be unbalanced, which no assignment can break

# The sticky assignors
STICKY-01 MUST: Balance for equal subscriptions; needs sticky
  For equal subscriptions every member gets the quotient of partitions and members or one more, and as many get one more
  as the remainder says. [KIP-54, AbstractStickyAssignorTest]
STICKY-02 MUST: Balance for different subscriptions; needs sticky
  For different subscriptions no partition could move to a subscriber that has at least two partitions fewer.
  [KIP-54, StickyAssignor documentation]
STICKY-03 SHOULD: Claims that are kept; needs sticky
  For equal subscriptions without conflicts and racks, as many claims should be kept as the balance allows. [KIP-54]
STICKY-04 MUST: Balanced assignments stay; needs sticky
  A previous assignment that is valid, complete and balanced is returned unchanged. [KIP-54, AbstractStickyAssignorTest]
STICKY-05 MUST: A member leaves; needs sticky
  For equal subscriptions the partitions of a member that leaves are spread, and the others keep theirs.
  [AbstractStickyAssignorTest]
STICKY-06 SHOULD: What is shed; needs sticky
  Surplus partitions should be shed from the highest number on, evenly over the topics.
  [KAFKA-16277, AbstractStickyAssignorTest]
STICKY-07 MUST: Newer claims win; needs sticky
  Of two claims to a partition the one of the higher generation counts.
  [KIP-341, KAFKA-14639, AbstractStickyAssignorTest]
STICKY-08 MUST: Equal claims cancel; needs sticky
  Where two members claim a partition in the same generation, neither claim counts.
  [KAFKA-12984, AbstractStickyAssignorTest]
STICKY-09 SHOULD: Old claims; needs sticky
  A claim of an old generation should count if nobody contests it. [KAFKA-14639, AbstractStickyAssignorTest]
STICKY-10 MUST: Claims come from user data; needs sticky
  The assignor sticky takes claims from user data alone. [StickyAssignorTest]
STICKY-11 MUST: User data without a generation; needs sticky
  User data of the old schema counts as a claim without a generation. [StickyAssignorTest]
STICKY-12 MUST: Vanished topics; needs sticky
  Claims to topics that have vanished or are no longer subscribed do not count. [AbstractStickyAssignorTest]
STICKY-13 SHOULD: Vanished partitions; needs sticky
  Claims to partition numbers that do not exist should not count. [our own requirement; Apache Kafka breaks it]
STICKY-14 SHOULD: Previous claimants; needs sticky
  A partition should not go back to a previous claimant that no longer subscribes to its topic.
  [our own requirement; Apache Kafka breaks it]
STICKY-15 SHOULD: No failure on valid input; needs sticky
  Different subscriptions should not make the assignment fail. [our own requirement; Apache Kafka breaks it]
STICKY-16 SHOULD: No exchange within a topic; needs sticky
  In one run no partitions of a topic should move from one member to another while others move back.
  [KIP-54, AbstractStickyAssignorTest]
STICKY-17 MAY: Instance ids do not matter; needs sticky
  Sticky assignments may ignore instance ids.
  [Apache Kafka source] untestable: a permission to ignore what every assignment may also respect
STICKY-18 SHOULD: Memory of sticky members; needs sticky
  A member with the assignor sticky should send its last assignment and the generation of it in its next JoinGroup.
  [StickyAssignorTest, KIP-341]
STICKY-19 SHOULD: Racks and stickiness; needs sticky, racks
  Assignments with racks should keep the balance, and may move an owned partition to a rack that has a replica.
  [KIP-881, AbstractStickyAssignorTest]

# Cooperative rebalancing: the member and its assignor
COOP-01 MUST: Owned partitions are declared; needs cooperative
  A cooperative member keeps its partitions through JoinGroup and declares them there as owned. [KIP-429]
COOP-02 MUST: What is given up; needs cooperative, driver
  When the assignment arrives, a cooperative member gives up exactly what it owns and was not assigned. [KIP-429]
COOP-03 MUST: Rejoin after giving up; needs cooperative
  A cooperative member that gave up partitions joins again of its own accord. [KIP-429]
COOP-04 MUST: Revoked partitions are not claimed; needs cooperative
  The JoinGroup after a revocation does not declare the revoked partitions as owned. [KIP-429]
COOP-05 SHOULD: No rejoin without a loss; needs cooperative
  A member that gave up nothing should not ask for another rebalance. [KIP-429]
COOP-06 SHOULD: Records during a rebalance; needs cooperative, driver
  A cooperative member should fetch and return records of owned partitions during a rebalance.
  [KIP-429, KafkaConsumerTest, FetcherTest]
COOP-07 MUST: Retained partitions; needs cooperative, driver
  Retained partitions keep position, pause and buffered records, and only added ones get a start position. [FetcherTest]
COOP-08 SHOULD: Generation of claims; needs cooperative
  Owned partitions should be declared with a generation that is not older than the assignment they come from. [KIP-792]
COOP-09 MUST: Safe hand-over; needs cooperative-sticky; in passing
  A partition is given to a member that does not own it only where no other member validly owns it.
  [KIP-429, CooperativeStickyAssignorTest]
COOP-10 MUST: Free partitions at once; needs cooperative-sticky
  Partitions that nobody owns are assigned in the same round. [KIP-429]
COOP-11 MUST: What is withheld; needs cooperative-sticky
  Of the target only what may not be given yet is withheld. [CooperativeStickyAssignorTest]
COOP-12 MUST: Convergence; needs cooperative-sticky
  With stable membership the rounds end at the sticky target: after two for equal subscriptions, after five at most for
  others. [CooperativeStickyAssignorTest]
COOP-13 MUST: Everyone joins every round; needs cooperative
  Every member joins in every round, whether it gave something up or not. [KIP-429]
COOP-14 SHOULD: Check of other assignors; needs cooperative, driver
  A leader should refuse an assignment of a cooperative assignor that adds a partition while it takes it away.
  [ConsumerCoordinatorTest] untestable: it takes an assignor of its own in the client
COOP-15 MUST: Mixed lists are eager; needs driver
  A member that lists an assignor without cooperative support behaves eagerly. [KIP-429, ConsumerCoordinatorTest]
COOP-16 MUST: Double claims; needs cooperative-sticky
  A partition that two members claim in the same generation is taken from both before anyone gets it.
  [KAFKA-12984, CooperativeStickyAssignorTest]
COOP-17 SHOULD: Nothing owned without a generation; needs cooperative
  A member that lost its generation should declare nothing as owned. [KAFKA-12983, ConsumerCoordinatorTest]
COOP-18 SHOULD: Stale claims; needs cooperative-sticky
  What is withheld should depend on valid claims, so that no stale claimant gets what the valid owner still holds.
  [our own requirement; Apache Kafka breaks it]
"""
