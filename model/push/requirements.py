"""The requirements of the push coordinator, read from draft revision 19, as data."""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.requirement import Requirement, must

# Requirements of the push coordinator: election, startup, pings, topics, queues, the rebalance bit.


COORDINATOR: tuple[Requirement, ...] = (
    must(
        "PUSH-01",
        "One holder of the path",
        "At most one broker holds the coordinator path at any time.",
        "draft, sections ZK, 3",
        untestable="only ZooKeeper shows who holds the path",
    ),
    must(
        "PUSH-02",
        "A coordinator holds the path",
        "A broker acts as coordinator only while it holds the path in its current session.",
        "draft, sections 3, 8",
        incidental=True,
    ),
    must(
        "PUSH-03",
        "One successor",
        "When the path disappears every live broker tries again and exactly one wins.",
        "draft, section 3",
        incidental=True,
    ),
    must(
        "PUSH-04",
        "Startup once per election",
        "The startup procedure runs once per election, before the first registration is answered.",
        "draft, section 3",
        untestable="what a broker does before its first response shows to nobody",
    ),
    must(
        "PUSH-05",
        "Startup subscribes",
        "Startup subscribes to the topic list and to every existing topic's partitions.",
        "draft, sections 3 (2.1, 2.2)",
    ),
    must(
        "PUSH-06",
        "The listener is armed",
        "The session-expiry listener is armed for every session in which the broker may act.",
        "draft, sections 3 (5), 8 (2)",
        incidental=True,
    ),
    must(
        "PUSH-07",
        "Pings by thirds",
        "A ping is due every third of the consumer's own session timeout.",
        "draft, section 3-sched",
    ),
    must(
        "PUSH-08",
        "No ping early, none skipped",
        "No ping is sent before it is due and none is skipped when due on a free channel.",
        "draft, section 3-sched",
    ),
    must(
        "PUSH-09",
        "No ping on a held channel",
        "No ping is written on a channel held for a rebalance.",
        "draft, sections 3-sched 2.1, 2.2",
    ),
    must(
        "PUSH-10",
        "One watcher for each request",
        "Every ping and every restart request arms exactly one expiry watcher, and its response clears only that.",
        "draft, section 3",
        untestable="expiry watchers are in the coordinator's memory",
    ),
    must(
        "PUSH-11",
        "Silent consumers are removed",
        "A consumer that misses the configured number of responses is removed.",
        "draft, sections Config, 6",
    ),
    must(
        "PUSH-12",
        "Retries are numbered",
        "A ping retry carries the number of retries before it.",
        "draft, section 9-ping",
    ),
    must(
        "PUSH-13",
        "New topics",
        "A new topic leads to a rebalance of every group that names it or whose wildcard matches it.",
        "draft, section 4",
    ),
    must(
        "PUSH-14",
        "New partitions",
        "A partition change leads to a rebalance of every interested group and of no other.",
        "draft, section 4",
    ),
    must(
        "PUSH-15",
        "No change is lost",
        "A change that arrives while the group is being rebalanced is not lost.",
        "draft, sections 4, 6",
        incidental=True,
    ),
    must(
        "PUSH-16",
        "Compare and set",
        "All users of the rebalance bit change it by compare-and-set.",
        "draft, sections 6, 4",
        untestable="the bit is in the coordinator's memory",
    ),
    must(
        "PUSH-17",
        "One queue for a group",
        "Requests of one group always go to the same queue and are handled in order.",
        "draft, sections 3 (6,7), 4, 7",
    ),
    must(
        "PUSH-18",
        "One rebalance of a group",
        "At most one rebalance per group is in flight.",
        "draft, sections 3 (2), 7",
        incidental=True,
    ),
    must(
        "PUSH-19",
        "The bit is reset on success",
        "The rebalance bit is reset when the rebalance succeeds.",
        "draft, section 7",
        incidental=True,
    ),
    must(
        "PUSH-20",
        "The bit is reset on failure",
        "The bit is reset and the thread survives when the retries are used up.",
        "draft, section 7",
    ),
    must(
        "PUSH-21",
        "Bounded retries",
        "A failed rebalance is retried at most the configured number of times, with the configured back-off.",
        "draft, sections Config, 7",
    ),
)


# Requirements of the push coordinator: lookup, registration and removal of consumers.


MEMBERSHIP: tuple[Requirement, ...] = (
    must(
        "PUSH-22",
        "Bootstrap round robin",
        "The consumer tries the bootstrap brokers round robin, without end, until shut down.",
        "draft, section 5 (1-1.3)",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-23",
        "Metadata names the coordinator",
        "The metadata answer names the live brokers and the elected coordinator, or an error when there is none.",
        "draft, section 5-meta",
    ),
    must(
        "PUSH-24",
        "Any broker tells",
        "Any broker answers a metadata request.",
        "draft, section 5-meta",
    ),
    must(
        "PUSH-25",
        "One registration per channel",
        "Exactly one register request is sent per channel and it is answered.",
        "draft, sections 5 (4), 5-reg",
    ),
    must(
        "PUSH-26",
        "Ids are unique in a group",
        "A registration with an id already live in the group is refused and its channel closed.",
        "draft, section 5-reg",
    ),
    must(
        "PUSH-27",
        "Session timeout above the minimum",
        "A registration whose session timeout is not above the minimum is refused.",
        "draft, section 5-reg",
    ),
    must(
        "PUSH-28",
        "A refused consumer starts over",
        "A refused consumer starts over from the lookup.",
        "draft, section 5 (5)",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-29",
        "A registration rebalances",
        "Every accepted registration triggers a rebalance of its group.",
        "draft, section 5-reg",
    ),
    must(
        "PUSH-30",
        "Interest of a new group",
        "A new group is entered for each of its topics, existing or not, and in the wildcard list if it has a pattern.",
        "draft, section 5-newgroup",
    ),
    must(
        "PUSH-31",
        "Consumers only respond",
        "After registering, the consumer never sends a request, only responses.",
        "draft, sections Overview, 5",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-32",
        "A silent coordinator is left",
        "A consumer without any request for its configured time stops its fetchers before it looks for a coordinator.",
        "draft, section Overview",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-33",
        "The last member",
        "Removing the last member does not start a rebalance.",
        "draft, section 6 (2.1)",
    ),
)


# Requirements of the push coordinator: assignment, Stop and Start, owners, failover.


REBALANCING: tuple[Requirement, ...] = (
    must(
        "PUSH-34",
        "The assignment is a partition",
        "The assignment covers all partitions of all interested topics and is disjoint.",
        "draft, sections 7 (1), Overview",
        incidental=True,
    ),
    must(
        "PUSH-35",
        "Each its own part",
        "Each Start contains only the partitions of its addressee.",
        "draft, sections Overview, 9-start",
    ),
    must(
        "PUSH-36",
        "Skipping needs a true map",
        "A rebalance is skipped only if every member really runs the recorded assignment.",
        "draft, section 7 (3)",
        incidental=True,
    ),
    must(
        "PUSH-37",
        "Stop before Start",
        "Within one attempt each member gets Stop before Start on the same channel.",
        "draft, sections 7 (4.1, 4.2)",
    ),
    must(
        "PUSH-38",
        "All stop before one starts",
        "No member starts before all members of the attempt have stopped.",
        "draft, sections 9-start, 9-stop",
    ),
    must(
        "PUSH-39",
        "All responses of the attempt",
        "The attempt completes only with the responses of all its members to its own Start.",
        "draft, section 7 (4.3)",
    ),
    must(
        "PUSH-40",
        "Owners are recorded last",
        "Ownership is written only after all responses and equals the started fetchers.",
        "draft, section 7 (5)",
        untestable="only ZooKeeper shows the recorded owners",
    ),
    must(
        "PUSH-41",
        "A timed-out attempt",
        "A timed-out attempt leaves ownership unwritten and the next attempt sends Stop to every member again.",
        "draft, section 7 (5)",
    ),
    must(
        "PUSH-42",
        "Nothing given away after a failover",
        "After a failover no partition is given away while a consumer of the old coordinator may still fetch it.",
        "draft, sections 8, Open 3",
        incidental=True,
    ),
    must(
        "PUSH-43",
        "Groups recover after a failover",
        "After a failover every group whose members return is fetched again.",
        "draft, section 8",
        incidental=True,
    ),
    must(
        "PUSH-44",
        "A new session forgets",
        "A new session discards all in-memory state of the old one, including the bits, running handlers and channels.",
        "draft, section 8 (1)",
        incidental=True,
    ),
)


# Requirements of the push coordinator: offsets, the consumer's handlers, the bytes of messages.


CONSUMERS: tuple[Requirement, ...] = (
    must(
        "PUSH-45",
        "Offsets in a ping response",
        "A ping response contains one offset per consumed partition with auto-commit, and no fields without.",
        "draft, section 9-ping",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-46",
        "Offsets of the next owner",
        "The next owner begins neither beyond what the application consumed nor before the last recorded offset.",
        "draft, sections 9-ping, 9-start",
        incidental=True,
    ),
    must(
        "PUSH-47",
        "Stop closes every fetcher",
        "Stop closes every running fetcher and empties its queues whatever the flag says.",
        "draft, section 9-stop",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-48",
        "Start needs a Stop",
        "A Start for a consumer that has not been stopped is refused with an error, and no legal schedule has one.",
        "draft, section 9-start (3)",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-49",
        "Registry, fetchers and flag agree",
        "After a successful Start registry, running fetchers and flag agree.",
        "draft, section 9-start (4-6)",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-50",
        "Messages round-trip",
        "Every message round-trips through the encoder with the sizes of section 2; size excludes itself.",
        "draft, sections 5, 9 formats",
    ),
    must(
        "PUSH-51",
        "Responses can be told apart",
        "A response can be told apart from every other response on the same channel.",
        "draft, section 9",
    ),
    must(
        "PUSH-52",
        "A slow group delays boundedly",
        "One slow group delays another group of the same queue at most (retries+1) times the wait plus back-off.",
        "draft, sections 7, Open 2",
        incidental=True,
    ),
)


# The requirements of the push coordinator, read from draft revision 19, and the holes of that draft, as data.


PUSH_CATALOGUE: Mapping[str, Requirement] = MappingProxyType(
    {each.id: each for family in (COORDINATOR, MEMBERSHIP, REBALANCING, CONSUMERS) for each in family}
)
"""Every requirement by its id."""
