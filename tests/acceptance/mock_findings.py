"""Known failures of librdkafka's mock cluster, by the requirement that it violates.

Each was judged by hand, from the trace and the sentence of the requirement. A run that reports another failure, or
misses one of these, shows a change: of a newer mock, or of the kit.
"""

from collections.abc import Mapping
from types import MappingProxyType

KNOWN_FAILURES: Mapping[str, str] = MappingProxyType(
    {
        "FIND-07": "an unknown key type gets a node",
        "JOIN-01": "the empty group id makes a group",
        "JOIN-05": "a made-up id makes a group",
        "JOIN-07": "a newcomer is let in without an id",
        "JOIN-15": "an empty protocol type is let in; an empty protocol list ends the process (SIGSEGV)",
        "JOIN-16": "another protocol type is let in",
        "JOIN-17": "members without a common protocol: the process ends at the election (SIGABRT)",
        "JOIN-23": "a made-up id joins under that id",
        "JOIN-27": "a round in which all are back ends a second before the session, not at once",
        "JOIN-29": "the same again in the sync phase begins a round",
        "JOIN-32": "a follower that asks again begins a round",
        "JOIN-44": "a round ends a second before the session, not at the rebalance timeout",
        "SYNC-01": "the empty group id gets GROUP_ID_NOT_FOUND",
        "SYNC-02": "an unknown group gets GROUP_ID_NOT_FOUND; version 4 is advertised and not answered",
        "SYNC-13": "no assignments get INVALID_PARTITIONS; if one is missing, all wait and are sent to rejoin",
        "SYNC-15": "a follower that brings assignments gets NOT_LEADER_OR_FOLLOWER",
        "SYNC-16": "a SyncGroup in Stable gets INVALID_REQUEST",
        "HB-01": "the empty group id gets GROUP_ID_NOT_FOUND",
        "HB-02": "an unknown group gets GROUP_ID_NOT_FOUND",
        "HB-07": "heartbeats in the sync phase get REBALANCE_IN_PROGRESS",
        "LEAVE-02": "an unknown group gets GROUP_ID_NOT_FOUND; versions 3 and 4 are advertised and misread",
        "LEAVE-09": "the parked JoinGroup of a member that leaves is never answered",
        "COMMIT-02": "a commit in the join phase gets REBALANCE_IN_PROGRESS",
        "COMMIT-08": "a simple commit to an emptied group gets UNKNOWN_MEMBER_ID",
        "COMMIT-11": "a commit with a generation to an unknown group is stored",
        "COMMIT-14": "a commit of what does not exist gets an error of the group, once its member is gone",
        "COMMIT-16": "null metadata comes back as null",
        "COMMIT-18": "an epoch is refused with UNKNOWN_LEADER_EPOCH; none comes back as 0",
        "COMMIT-19": "a member that only commits expires",
        "FETCH-02": "an unknown topic gets UNKNOWN_TOPIC_OR_PARTITION",
        "FETCH-04": "a null topic list gets null, not everything",
        "STATIC-06": "the instance id of another member is not looked at",
        "STATIC-07": "an unknown instance id is not looked at",
        "STATIC-08": "a static member that restarts is another member, and all rebalance",
        "TIMER-03": "a session runs out while its JoinGroup is parked, which is never answered",
        "TIMER-12": "a follower that never fetches its assignment stays",
        "TIMER-24": "the session timeout of the last joiner applies to all",
        "GEN-01": "the first generation is 2",
        "GEN-02": "a round that ends empty does not count",
        "GEN-09": "members that offer the same in another order: the process ends at the election (SIGABRT)",
    }
)
"""A few words of evidence by requirement."""
KNOWN_CRASHES = ("GEN-09", "JOIN-15", "JOIN-17")
"""Those that end its process."""
