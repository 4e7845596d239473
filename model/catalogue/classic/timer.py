"""Timers: sessions, the rebalance timeout, the sync timeout, the initial delay. None fires early."""

from fencepost.model.catalogue.classic.changes import SYNC_TIMEOUT, TIMEOUTS_OF_A_REJOIN
from fencepost.model.catalogue.requirement import Requirement, must, should

TIMER: tuple[Requirement, ...] = (
    must(
        "TIMER-01",
        "Session expiry",
        "A member with nothing parked is removed once its session timeout has passed without a request that extends "
        "the session, and not earlier.",
        "KIP-62, GroupMetadataManagerTest",
    ),
    must(
        "TIMER-02",
        "Expiry starts a rebalance",
        "An expiry in Stable or CompletingRebalance starts a rebalance for the others; that of the last member "
        "leaves the group Empty with the next generation.",
        "GroupMetadataManagerTest",
    ),
    must(
        "TIMER-03",
        "Parked join protects the session",
        "A member that has completed a round does not expire while its JoinGroup is parked.",
        "GroupMetadataManagerTest",
    ),
    must(
        "TIMER-04",
        "Parked sync protects the session",
        "A follower does not expire while its SyncGroup is parked.",
        "ClassicGroupMemberTest",
    ),
    must(
        "TIMER-05",
        "Full session after a phase",
        "A full session is granted from the end of the join phase and from the answer to a parked SyncGroup.",
        "GroupMetadataManagerTest",
    ),
    must(
        "TIMER-06",
        "New-member timeout",
        "A new member that has been parked for 300 s is answered UNKNOWN_MEMBER_ID and dropped, whatever its "
        "session timeout.",
        "KAFKA-7610, GroupMetadataManagerTest",
        needs=("slow",),
    ),
    must(
        "TIMER-07",
        "New member needs no session",
        "A new member's session timeout does not apply while its first JoinGroup is parked.",
        "GroupMetadataManagerTest",
    ),
    must(
        "TIMER-08",
        "Pending id expires",
        "A pending id is dropped after the session timeout of its request, which completes the join phase if it was "
        "the last obstacle.",
        "GroupMetadataManagerTest, GroupCoordinatorTest",
    ),
    must(
        "TIMER-09",
        "Longest rebalance timeout",
        "The rebalance timeout of a round is the longest among the members at its start.",
        "KIP-62, ClassicGroupTest",
    ),
    must(
        "TIMER-10",
        "Later joiners do not extend",
        "Members that join during a round do not extend its rebalance timeout.",
        "Apache Kafka source",
    ),
    must(
        "TIMER-11",
        "Sync timeout",
        "Members that do not sync within the rebalance timeout after the join phase are removed and a rebalance "
        "starts, even while they heartbeat.",
        "KAFKA-12890, GroupMetadataManagerTest, GroupCoordinatorTest",
        since=SYNC_TIMEOUT,
    ),
    must(
        "TIMER-12",
        "Sync timeout in Stable",
        "The sync timeout applies to followers also after the group is Stable, and the rest are then told to rejoin.",
        "GroupMetadataManagerTest",
    ),
    must(
        "TIMER-13",
        "Leader misses the sync timeout",
        "If the leader is the one that does not sync in time, parked SyncGroups are answered REBALANCE_IN_PROGRESS.",
        "GroupMetadataManagerTest",
    ),
    must(
        "TIMER-14",
        "Nobody syncs",
        "If nobody syncs in time the group ends Empty.",
        "GroupMetadataManagerTest",
    ),
    must(
        "TIMER-15",
        "All sync in time",
        "If all members sync in time, nothing happens at the sync timeout.",
        "GroupMetadataManagerTest",
    ),
    must(
        "TIMER-16",
        "Initial delay",
        "The first member of an Empty group is answered after the initial delay and not before.",
        "KIP-134, GroupMetadataManagerTest",
        needs=("initial-delay",),
    ),
    should(
        "TIMER-17",
        "Initial delay is extended",
        "A member added during the initial delay should extend it by a whole step, up to the first joiner's "
        "rebalance timeout.",
        "KIP-134, GroupMetadataManagerTest",
        needs=("initial-delay",),
    ),
    must(
        "TIMER-18",
        "Initial delay is not cut short",
        "The initial delay does not end early because all known members have joined.",
        "GroupMetadataManagerTest",
        needs=("initial-delay",),
    ),
    must(
        "TIMER-19",
        "Initial delay after emptying",
        "The initial delay applies again when an emptied group is joined.",
        "KIP-134",
        needs=("initial-delay",),
    ),
    must(
        "TIMER-20",
        "Pending id and initial delay",
        "A pending id does not lengthen the initial delay.",
        "Apache Kafka source",
        needs=("initial-delay",),
    ),
    must(
        "TIMER-21",
        "Expiry during the join phase",
        "In PreparingRebalance, a member that neither heartbeats nor rejoins is removed at its session timeout, "
        "which completes the join phase if it was the last obstacle.",
        "GroupMetadataManagerTest",
    ),
    must(
        "TIMER-22",
        "Sessions are independent",
        "Requests of one member do not extend the session of another.",
        "Apache Kafka source",
    ),
    should(
        "TIMER-23",
        "No initial delay",
        "With an initial delay of 0 a lone member should be answered at once.",
        "Apache Kafka source",
        needs=("no-initial-delay",),
    ),
    must(
        "TIMER-24",
        "Session timeout per member",
        "Every member has its own session timeout.",
        "Kafka message schema",
    ),
    must(
        "TIMER-25",
        "Timers of members that are gone",
        "A timer of a member that was dropped, removed or has left has no effect.",
        "KAFKA-7196",
    ),
    must(
        "TIMER-26",
        "Join timer ends with its phase",
        "A join timer has no effect once its join phase is complete.",
        "Redpanda source",
    ),
    must(
        "TIMER-27",
        "Timeout of the latest join",
        "The rebalance timeout of a member is the one that its latest JoinGroup named.",
        "KAFKA-14009, GroupCoordinatorTest",
        since=TIMEOUTS_OF_A_REJOIN,
    ),
)
