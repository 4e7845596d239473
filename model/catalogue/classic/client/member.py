"""Requirements of membership: the requests of a member, and its reaction to each response."""

from fencepost.model.catalogue.classic.client.constructors import may, must, should
from fencepost.model.catalogue.requirement import Requirement

MEMBER: tuple[Requirement, ...] = (
    must(
        "MEMBER-01",
        "Coordinator lookup",
        "Before its first group request a client finds the coordinator of its group with FindCoordinator.",
        "AbstractCoordinatorTest, Kafka: The Definitive Guide",
    ),
    must(
        "MEMBER-02",
        "First JoinGroup",
        "The first JoinGroup of a client carries an empty member id.",
        "AbstractCoordinatorTest",
    ),
    must(
        "MEMBER-03",
        "Timeouts in JoinGroup",
        "JoinGroup carries the configured session timeout and, from version 1 on, the poll interval as rebalance "
        "timeout.",
        "KIP-62",
    ),
    must(
        "MEMBER-04",
        "Protocols in JoinGroup",
        "JoinGroup lists each configured assignor once, the most preferred first, under the protocol type consumer.",
        "client-side assignment proposal, ConsumerCoordinatorTest",
    ),
    must(
        "MEMBER-05",
        "Required member id",
        "A client that is answered MEMBER_ID_REQUIRED joins again with the id it was given and runs no callback in "
        "between.",
        "KIP-394, AbstractCoordinatorTest",
    ),
    must(
        "MEMBER-06",
        "One exchange at a time",
        "A client has at most one JoinGroup or SyncGroup unanswered, and continues an exchange that its "
        "application interrupted.",
        "AbstractCoordinatorTest",
    ),
    must(
        "MEMBER-07",
        "SyncGroup of a follower",
        "A follower answers a successful JoinGroup with a SyncGroup of that generation and member id and no "
        "assignments.",
        "ConsumerCoordinatorTest",
    ),
    must(
        "MEMBER-08",
        "SyncGroup of a leader",
        "A leader brings an assignment for every member it was told of, from the assignor that the coordinator chose.",
        "ConsumerCoordinatorTest, client-side assignment proposal",
    ),
    must(
        "MEMBER-09",
        "Leader that skips the assignment",
        "A leader that is told to skip the assignment sends an empty list and goes on watching metadata.",
        "KIP-814, ConsumerCoordinatorTest",
        needs=("static-membership",),
    ),
    must(
        "MEMBER-10",
        "Rebalance told by a heartbeat",
        "A stable member whose Heartbeat is answered REBALANCE_IN_PROGRESS joins with the same member id in its "
        "next poll.",
        "KafkaConsumerTest",
    ),
    must(
        "MEMBER-11",
        "Rebalance told by SyncGroup",
        "A client whose SyncGroup is answered REBALANCE_IN_PROGRESS joins again with the same member id.",
        "ConsumerCoordinatorTest",
    ),
    must(
        "MEMBER-12",
        "Generation that is over",
        "ILLEGAL_GENERATION for the current generation makes a client drop the generation and keep its member id.",
        "KAFKA-13419, ConsumerCoordinatorTest",
    ),
    must(
        "MEMBER-13",
        "Membership that is over",
        "UNKNOWN_MEMBER_ID for the current generation makes a client drop generation and member id, and join with "
        "an empty one.",
        "ConsumerCoordinatorTest, AbstractCoordinatorTest",
    ),
    must(
        "MEMBER-14",
        "Coordinator that moves or loads",
        "A lost connection and NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE or COORDINATOR_LOAD_IN_PROGRESS cost a "
        "client neither generation nor member id.",
        "AbstractCoordinatorTest",
    ),
    must(
        "MEMBER-15",
        "Late errors",
        "ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID about a request of an older generation "
        "changes nothing.",
        "AbstractCoordinatorTest",
        needs=("driver", "static-membership"),
    ),
    must(
        "MEMBER-16",
        "No second SyncGroup",
        "After a SyncGroup that failed a client begins again with JoinGroup.",
        "AbstractCoordinatorTest",
    ),
    should(
        "MEMBER-17",
        "Backoff",
        "A client should wait before it repeats what failed with any error but the four that concern generation "
        "and member id.",
        "AbstractCoordinatorTest",
    ),
    must(
        "MEMBER-18",
        "Fatal errors of JoinGroup",
        "A JoinGroup that is refused for its group, protocols, session timeout, authorization or the size of the "
        "group reaches the application.",
        "AbstractCoordinatorTest, ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    must(
        "MEMBER-19",
        "Fenced while joining",
        "FENCED_INSTANCE_ID in answer to JoinGroup or SyncGroup reaches the application and is not followed by a "
        "silent retry.",
        "KIP-345, AbstractCoordinatorTest",
        needs=(
            "static-membership",
            "driver",
        ),
    ),
    must(
        "MEMBER-20",
        "Assignment outside the subscription",
        "An assignment with a topic that is not subscribed is not applied, and the client joins again.",
        "ConsumerCoordinatorTest",
    ),
    must(
        "MEMBER-21",
        "Growth of topics",
        "When the partition count of any topic of the group changes, the leader joins again, and no follower does.",
        "ConsumerCoordinatorTest",
    ),
    should(
        "MEMBER-22",
        "Leaving",
        "A dynamic member should send LeaveGroup when it closes or unsubscribes, after its callback.",
        "ConsumerCoordinatorTest",
    ),
    must(
        "MEMBER-23",
        "Static members stay",
        "A static member sends no LeaveGroup of its own accord: not on closing, unsubscribing or exceeding the "
        "poll interval.",
        "KIP-345, AbstractCoordinatorTest",
        needs=("static-membership",),
    ),
    should(
        "MEMBER-24",
        "Pending id leaves",
        "A client that has nothing but an id from MEMBER_ID_REQUIRED should leave with that id.",
        "ConsumerCoordinatorTest",
    ),
    must(
        "MEMBER-25",
        "LeaveGroup that fails",
        "A LeaveGroup that fails or is never answered neither blocks closing nor makes it fail.",
        "AbstractCoordinatorTest, ConsumerCoordinatorTest",
    ),
    must(
        "MEMBER-26",
        "Manual assignment",
        "A client whose application assigns partitions sends no JoinGroup, SyncGroup, Heartbeat or LeaveGroup.",
        "ConsumerCoordinatorTest, KafkaConsumerTest",
        needs=("manual-assignment",),
    ),
    must(
        "MEMBER-27",
        "Changed subscription",
        "A changed subscription leads to a JoinGroup that carries it, and the assignment stays as it is until then.",
        "client-side assignment proposal, KafkaConsumerTest",
        needs=("driver",),
    ),
    must(
        "MEMBER-28",
        "Pattern subscription",
        "A client that subscribes to a pattern joins again when other topics match it, whether it leads or not.",
        "ConsumerCoordinatorTest",
        needs=("pattern",),
    ),
    must(
        "MEMBER-29",
        "Late JoinGroup response",
        "A JoinGroup response that arrives after the member left or was reset is not followed by a SyncGroup.",
        "Apache Kafka source",
        needs=("driver",),
    ),
    must(
        "MEMBER-30",
        "Late SyncGroup response",
        "A SyncGroup response that arrives after the generation was reset is not applied.",
        "AbstractCoordinatorTest, ConsumerCoordinatorTest",
        needs=(
            "driver",
            "poll-interval",
        ),
    ),
    should(
        "MEMBER-31",
        "Contradicting protocol",
        "A client should treat a protocol type or name in a response that contradicts its request as an error.",
        "KIP-559, AbstractCoordinatorTest",
        needs=("driver",),
    ),
    should(
        "MEMBER-32",
        "Patience with JoinGroup",
        "A client should wait for the response to JoinGroup for longer than the rebalance timeout.",
        "AbstractCoordinatorTest",
    ),
    may(
        "MEMBER-33",
        "Reasons",
        "JoinGroup from version 8 and LeaveGroup from version 5 on may carry a reason of at most 255 characters.",
        "KIP-800, AbstractCoordinatorTest",
    ),
    must(
        "MEMBER-34",
        "Rebalance told by JoinGroup",
        "A client whose JoinGroup is answered REBALANCE_IN_PROGRESS joins again with the same member id.",
        "AbstractCoordinatorTest",
    ),
    must(
        "MEMBER-35",
        "Choice of the rebalance protocol",
        "A client uses the highest rebalance protocol that all its assignors support, and refuses a configuration "
        "in which they have none in common.",
        "KIP-429, ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    must(
        "MEMBER-36",
        "Restart of a static member",
        "A static member that restarts joins with its instance id and an empty member id.",
        "KIP-345",
        needs=(
            "static-membership",
            "restart",
        ),
    ),
    may(
        "MEMBER-37",
        "Enforced rebalance",
        "An application may ask for a rebalance, and the next poll joins.",
        "KIP-568, KafkaConsumerTest",
        needs=("driver",),
    ),
    must(
        "MEMBER-38",
        "Fatal errors of lookups",
        "A FindCoordinator before the first JoinGroup, or an OffsetFetch, that is refused for authorization to the "
        "group reaches the application.",
        "ConsumerCoordinatorTest",
        needs=("driver",),
    ),
    should(
        "MEMBER-39",
        "Former coordinator",
        "A client that is told that another node coordinates its group should look for the coordinator before it "
        "sends another request of the group.",
        "AbstractCoordinatorTest, ConsumerCoordinatorTest",
    ),
)
