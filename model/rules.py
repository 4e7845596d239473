"""The rules by which the reference coordinator acts: one row for each branch of its handlers.

The handlers name a rule with every step; nobody runs the protocol from this table. Explanations, coverage and
documents read it. `guard` says when the rule applies; `requirements` are those it answers to, and `fields` those that
speak of one field of the answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fencepost.model.errors import Error

UNKNOWN, ILLEGAL, REBALANCE, FENCED = (
    Error.UNKNOWN_MEMBER_ID,
    Error.ILLEGAL_GENERATION,
    Error.REBALANCE_IN_PROGRESS,
    Error.FENCED_INSTANCE_ID,
)
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Rule:
    """One branch of a handler. `api` is empty for what the coordinator does by itself; `error` is what it answers,
    None if it parks the request or answers per entry."""

    name: str
    api: str
    error: Error | None
    guard: str
    requirements: tuple[str, ...]
    fields: Mapping[str, str] = field(default_factory=lambda: NOTHING)

    def blamed(self, fields: frozenset[str]) -> tuple[str, ...]:
        """The requirements that a difference in these fields breaks."""
        named = tuple(dict.fromkeys(self.fields[name] for name in sorted(fields) if name in self.fields))
        return named or self.requirements[:1]


def rule(
    name: str, api: str, error: Error | None, guard: str, requirements: str, fields: Mapping[str, str] = NOTHING
) -> Rule:
    """A row of the table; requirements are given as one string."""
    return Rule(name, api, error, guard, tuple(requirements.split()), fields)


ROUND = MappingProxyType(
    {
        "generation": "GEN-02",
        "leader": "GEN-05",
        "protocol": "GEN-09",
        "protocol_type": "GEN-12",
        "members": "JOIN-37",
        "instances": "JOIN-55",
        "member": "JOIN-39",
        "skip_assignment": "STATIC-12",
    }
)
"""Which requirement speaks of each field of a JoinGroup success."""
RESENT = MappingProxyType({**ROUND, "generation": "JOIN-29"})
GRANTED = MappingProxyType({"assignment": "SYNC-12", "protocol": "SYNC-21", "protocol_type": "SYNC-21"})

JOIN = (
    rule("join.invalid-group", "JoinGroup", Error.INVALID_GROUP_ID, "the group id is empty", "JOIN-01"),
    rule(
        "join.invalid-session-timeout",
        "JoinGroup",
        Error.INVALID_SESSION_TIMEOUT,
        "the session timeout lies outside the target's bounds",
        "JOIN-02 JOIN-03",
    ),
    rule(
        "join.unknown-group",
        "JoinGroup",
        UNKNOWN,
        "the group does not exist and the request carries a member id",
        "JOIN-05 JOIN-13",
    ),
    rule(
        "join.full",
        "JoinGroup",
        Error.GROUP_MAX_SIZE_REACHED,
        "the group is at its size limit and the request is not from a member that has its place",
        "JOIN-46 JOIN-48 STATIC-26",
    ),
    rule(
        "join.evicted",
        "JoinGroup",
        Error.GROUP_MAX_SIZE_REACHED,
        "a member rejoins after the limit's number of others did",
        "JOIN-48 JOIN-49",
    ),
    rule(
        "join.unsupported-protocols",
        "JoinGroup",
        Error.INCONSISTENT_GROUP_PROTOCOL,
        "the protocol type differs or no offered protocol is offered by every member",
        "JOIN-17 JOIN-15 JOIN-16 JOIN-19 JOIN-20",
    ),
    rule(
        "join.id-required",
        "JoinGroup",
        Error.MEMBER_ID_REQUIRED,
        "a dynamic member without an id asks with version 4 or later",
        "JOIN-07 JOIN-09",
        MappingProxyType({"member": "JOIN-10"}),
    ),
    rule(
        "join.new",
        "JoinGroup",
        None,
        "a dynamic member without an id asks with a version below 4",
        "JOIN-08 JOIN-24",
        ROUND,
    ),
    rule(
        "join.new-static",
        "JoinGroup",
        None,
        "a static member without an id comes with an instance id not in use",
        "STATIC-01 STATIC-23",
        ROUND,
    ),
    rule(
        "join.pending",
        "JoinGroup",
        None,
        "the member id was handed out with MEMBER_ID_REQUIRED and is still good",
        "JOIN-11 JOIN-24",
        ROUND,
    ),
    rule(
        "join.pending-with-instance",
        "JoinGroup",
        Error.UNKNOWN_SERVER_ERROR,
        "an id handed out to a dynamic member comes with an instance id",
        "JOIN-14",
    ),
    rule(
        "join.unknown-member",
        "JoinGroup",
        UNKNOWN,
        "the member id is neither a member nor pending, or the instance id is not in use",
        "JOIN-23 JOIN-45 STATIC-07",
    ),
    rule(
        "join.fenced",
        "JoinGroup",
        FENCED,
        "the instance id belongs to another member id",
        "STATIC-03 STATIC-06",
    ),
    rule("join.preparing", "JoinGroup", None, "a member rejoins during the join phase", "JOIN-26 JOIN-27", ROUND),
    rule(
        "join.completing.same-protocols",
        "JoinGroup",
        Error.NONE,
        "a member asks again in the sync phase with the same protocols",
        "JOIN-29",
        RESENT,
    ),
    rule(
        "join.completing.changed-protocols",
        "JoinGroup",
        None,
        "a member asks in the sync phase with other protocols",
        "JOIN-30",
        ROUND,
    ),
    rule("join.stable.leader", "JoinGroup", None, "the leader rejoins a stable group", "JOIN-31", ROUND),
    rule(
        "join.stable.same-protocols",
        "JoinGroup",
        Error.NONE,
        "a follower rejoins a stable group with the same protocols",
        "JOIN-32",
        MappingProxyType({**ROUND, "generation": "JOIN-32"}),
    ),
    rule(
        "join.stable.changed-protocols",
        "JoinGroup",
        None,
        "a follower rejoins a stable group with other protocols",
        "JOIN-33 JOIN-34",
        ROUND,
    ),
    rule(
        "join.replace.preparing",
        "JoinGroup",
        None,
        "a known instance id comes back without a member id during the join phase",
        "STATIC-16 STATIC-02",
        ROUND,
    ),
    rule(
        "join.replace.completing",
        "JoinGroup",
        None,
        "a known instance id comes back without a member id during the sync phase",
        "STATIC-15 STATIC-02",
        ROUND,
    ),
    rule(
        "join.replace.stable",
        "JoinGroup",
        Error.NONE,
        "a known instance id comes back to a stable group and the vote stays the same",
        "STATIC-08 STATIC-02",
        MappingProxyType(
            {
                **ROUND,
                "generation": "STATIC-08",
                "member": "STATIC-24",
                "leader": "STATIC-12",
                "members": "STATIC-12",
                "skip_assignment": "STATIC-10",
            }
        ),
    ),
    rule(
        "join.replace.stable.changed-vote",
        "JoinGroup",
        None,
        "a known instance id comes back to a stable group and the vote changes",
        "STATIC-14",
        ROUND,
    ),
)
SYNC = (
    rule(
        "sync.incomplete",
        "SyncGroup",
        Error.INCONSISTENT_GROUP_PROTOCOL,
        "protocol type or name is null in version 5 or later",
        "SYNC-06",
    ),
    rule("sync.invalid-group", "SyncGroup", Error.INVALID_GROUP_ID, "the group id is empty", "SYNC-01"),
    rule("sync.unknown-group", "SyncGroup", UNKNOWN, "the group does not exist", "SYNC-02"),
    rule("sync.empty", "SyncGroup", UNKNOWN, "the group has no members", "SYNC-02"),
    rule("sync.unknown-member", "SyncGroup", UNKNOWN, "the member id or instance id is not in the group", "SYNC-03"),
    rule("sync.fenced", "SyncGroup", FENCED, "the instance id belongs to another member id", "STATIC-03"),
    rule(
        "sync.other-generation",
        "SyncGroup",
        ILLEGAL,
        "the generation is not the group's",
        "SYNC-04 SYNC-20 GEN-15",
    ),
    rule(
        "sync.other-protocol",
        "SyncGroup",
        Error.INCONSISTENT_GROUP_PROTOCOL,
        "protocol type or name differ from the group's",
        "SYNC-05",
        MappingProxyType({"protocol": "SYNC-05", "assignment": "SYNC-22"}),
    ),
    rule("sync.preparing", "SyncGroup", REBALANCE, "the join phase of a rebalance is under way", "SYNC-09"),
    rule("sync.follower", "SyncGroup", None, "a follower syncs before the leader did", "SYNC-10 SYNC-15", GRANTED),
    rule(
        "sync.leader",
        "SyncGroup",
        Error.NONE,
        "the leader brings the assignments",
        "SYNC-11",
        MappingProxyType({**GRANTED}),
    ),
    rule(
        "sync.stable",
        "SyncGroup",
        Error.NONE,
        "the group is stable, so the stored assignment is handed out",
        "SYNC-16 SYNC-17",
        MappingProxyType({**GRANTED, "assignment": "SYNC-16"}),
    ),
)
HEARTBEAT = (
    rule("heartbeat.invalid-group", "Heartbeat", Error.INVALID_GROUP_ID, "the group id is empty", "HB-01"),
    rule("heartbeat.unknown-group", "Heartbeat", UNKNOWN, "the group does not exist", "HB-02"),
    rule("heartbeat.empty", "Heartbeat", UNKNOWN, "the group has no members", "HB-02 HB-08"),
    rule(
        "heartbeat.unknown-member",
        "Heartbeat",
        UNKNOWN,
        "the member id or instance id is not in the group",
        "HB-03 HB-08",
    ),
    rule("heartbeat.fenced", "Heartbeat", FENCED, "the instance id belongs to another member id", "HB-14"),
    rule("heartbeat.other-generation", "Heartbeat", ILLEGAL, "the generation is not the group's", "HB-04 GEN-15"),
    rule(
        "heartbeat.preparing",
        "Heartbeat",
        REBALANCE,
        "the join phase of a rebalance is under way",
        "HB-06 HB-11",
    ),
    rule("heartbeat.completing", "Heartbeat", Error.NONE, "the group waits for its leader's assignments", "HB-07"),
    rule("heartbeat.stable", "Heartbeat", Error.NONE, "the group is stable", "HB-05"),
)
LEAVE = (
    rule("leave.invalid-group", "LeaveGroup", Error.INVALID_GROUP_ID, "the group id is empty", "LEAVE-01"),
    rule("leave.unknown-group", "LeaveGroup", Error.NONE, "the group does not exist", "LEAVE-02"),
    rule("leave.member", "LeaveGroup", Error.NONE, "some entry names a member or a pending id", "LEAVE-04 LEAVE-11"),
    rule("leave.nobody", "LeaveGroup", Error.NONE, "no entry names a member or a pending id", "LEAVE-03"),
)
COMMIT = (
    rule(
        "commit.nothing-to-ask",
        "OffsetCommit",
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        "no partition named exists",
        "COMMIT-14 COMMIT-13",
    ),
    rule(
        "commit.unknown-group",
        "OffsetCommit",
        ILLEGAL,
        "the group does not exist and the commit claims a generation",
        "COMMIT-11",
    ),
    rule(
        "commit.empty",
        "OffsetCommit",
        Error.NONE,
        "the commit claims no generation and the group has no members",
        "COMMIT-07 COMMIT-08",
        MappingProxyType({"partitions": "COMMIT-22"}),
    ),
    rule(
        "commit.simple-in-active",
        "OffsetCommit",
        UNKNOWN,
        "the commit claims neither generation nor member and the group has members",
        "COMMIT-09",
    ),
    rule(
        "commit.unknown-member",
        "OffsetCommit",
        UNKNOWN,
        "the member id or instance id is not in the group",
        "COMMIT-05 COMMIT-29",
    ),
    rule("commit.fenced", "OffsetCommit", FENCED, "the instance id belongs to another member id", "COMMIT-21"),
    rule(
        "commit.other-generation",
        "OffsetCommit",
        ILLEGAL,
        "the generation is not the group's",
        "COMMIT-04 COMMIT-10 GEN-15",
    ),
    rule(
        "commit.completing",
        "OffsetCommit",
        REBALANCE,
        "the group waits for its leader's assignments",
        "COMMIT-03",
    ),
    rule(
        "commit.version-0",
        "OffsetCommit",
        Error.UNSUPPORTED_VERSION,
        "the commit is of version 0, whose offsets lived elsewhere",
        "COMMIT-27",
    ),
    rule("commit.preparing", "OffsetCommit", Error.NONE, "a member commits during the join phase", "COMMIT-02"),
    rule("commit.stable", "OffsetCommit", Error.NONE, "a member commits in a stable group", "COMMIT-01"),
    rule(
        "transaction.nothing-to-ask",
        "TxnOffsetCommit",
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        "no partition named exists",
        "COMMIT-13",
    ),
    rule("transaction.invalid-group", "TxnOffsetCommit", Error.INVALID_GROUP_ID, "the group id is empty", "FETCH-10"),
    rule(
        "transaction.unknown-group",
        "TxnOffsetCommit",
        ILLEGAL,
        "the group does not exist and the commit claims a generation",
        "FETCH-10",
    ),
    rule(
        "transaction.simple",
        "TxnOffsetCommit",
        Error.NONE,
        "the commit claims neither generation nor member",
        "FETCH-10",
    ),
    rule("transaction.member", "TxnOffsetCommit", Error.NONE, "a member commits in its generation", "FETCH-10"),
    rule("transaction.fenced", "TxnOffsetCommit", UNKNOWN, "the member or its generation is not current", "FETCH-10"),
    rule("transaction.end", "EndTxn", Error.NONE, "a transaction ends", "FETCH-12"),
)
FETCHED = MappingProxyType(
    {
        "error": "FETCH-10",
        "offset": "FETCH-01",
        "metadata": "FETCH-01",
        "epoch": "COMMIT-18",
        "partitions": "FETCH-04",
        "groups": "FETCH-06",
    }
)
FETCH = (
    rule(
        "fetch.version-0",
        "OffsetFetch",
        Error.UNSUPPORTED_VERSION,
        "the fetch is of version 0, whose offsets lived elsewhere",
        "FETCH-14",
    ),
    rule(
        "fetch.unknown-group",
        "OffsetFetch",
        Error.NONE,
        "the group does not exist",
        "FETCH-03 FETCH-15",
        MappingProxyType({"epoch": "COMMIT-18", "groups": "FETCH-06"}),
    ),
    rule("fetch.offsets", "OffsetFetch", Error.NONE, "the group exists", "FETCH-01 FETCH-07", FETCHED),
)
ADMIN = (
    rule("describe.unknown-group", "DescribeGroups", Error.NONE, "the group does not exist", "ADMIN-01"),
    rule(
        "describe.group",
        "DescribeGroups",
        Error.NONE,
        "the group exists and is not stable",
        "ADMIN-02 ADMIN-04",
        MappingProxyType(
            {"members": "ADMIN-04", "protocol": "ADMIN-04", "groups": "ADMIN-07", "instances": "ADMIN-06"}
        ),
    ),
    rule(
        "describe.stable",
        "DescribeGroups",
        Error.NONE,
        "the group is stable",
        "ADMIN-03",
        MappingProxyType({"state": "ADMIN-02", "groups": "ADMIN-07", "instances": "ADMIN-06"}),
    ),
    rule("list.unknown-group", "ListGroups", Error.NONE, "the group does not exist", "ADMIN-15"),
    rule("list.filtered", "ListGroups", Error.NONE, "a filter leaves the group out", "ADMIN-12 ADMIN-13 ADMIN-14"),
    rule(
        "list.group",
        "ListGroups",
        Error.NONE,
        "the group exists and passes the filters",
        "ADMIN-11",
        MappingProxyType({"state": "ADMIN-12", "type": "ADMIN-13"}),
    ),
    rule("delete.unknown-group", "DeleteGroups", Error.GROUP_ID_NOT_FOUND, "the group does not exist", "ADMIN-16"),
    rule("delete.active", "DeleteGroups", Error.NON_EMPTY_GROUP, "the group has members", "ADMIN-17"),
    rule("delete.empty", "DeleteGroups", Error.NONE, "the group has no members", "ADMIN-18 ADMIN-20 ADMIN-21"),
    rule("offset-delete.invalid-group", "OffsetDelete", Error.INVALID_GROUP_ID, "the group id is empty", "ADMIN-23"),
    rule(
        "offset-delete.unknown-group",
        "OffsetDelete",
        Error.GROUP_ID_NOT_FOUND,
        "the group does not exist",
        "ADMIN-23",
    ),
    rule(
        "offset-delete.active",
        "OffsetDelete",
        Error.NON_EMPTY_GROUP,
        "the group has members and is not of type consumer",
        "ADMIN-24",
    ),
    rule(
        "offset-delete.partitions",
        "OffsetDelete",
        Error.NONE,
        "the group is empty or of type consumer",
        "ADMIN-26 ADMIN-25 ADMIN-27",
    ),
)
INTERNAL = (
    rule("timer.pending-id", "", None, "a pending id was not used for its session timeout", "TIMER-08 JOIN-28", ROUND),
    rule("timer.new-member", "", None, "a first JoinGroup was parked too long", "TIMER-06"),
    rule("timer.session", "", None, "a member was silent for its session timeout", "TIMER-01 TIMER-02", ROUND),
    rule("timer.parked", "", None, "a session ran out while a request was parked", "TIMER-03 TIMER-04"),
    rule("timer.rebalance", "", None, "the rebalance timeout is over", "JOIN-44 TIMER-09", ROUND),
    rule("timer.initial-delay", "", None, "the initial delay is over", "TIMER-16", ROUND),
    rule("timer.initial-delay-grows", "", None, "somebody was added during the initial delay", "TIMER-17"),
    rule("timer.sync", "", None, "a member did not sync for the rebalance timeout", "TIMER-11 TIMER-13"),
    rule("timer.sync-idle", "", None, "everyone synced in time", "TIMER-15"),
    rule("transaction.marker", "", None, "the end of a transaction reaches the group", "FETCH-12"),
    rule("clean-up", "", None, "a clean-up pass finds offsets or a group that are over", "COMMIT-26"),
    rule("load.nothing", "", None, "the log knows nothing of the group", "FAILOVER-15 FAILOVER-08"),
    rule("load.group", "", None, "the group is loaded from the log", "FAILOVER-02 FAILOVER-14"),
    rule("load.oversized", "", None, "the group loaded is above the size limit", "FAILOVER-17"),
    rule("unload", "", None, "the group moves to another node", "FAILOVER-11"),
    rule("timer.not-due", "", None, "a timer is not due", "TIMER-01"),
)
UNAVAILABLE, ELSEWHERE, LOADING = (
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
)
GATE = (
    rule("gate.not-running", "", UNAVAILABLE, "the coordinator is not running", "FAILOVER-01"),
    rule("gate.elsewhere", "", ELSEWHERE, "the group is on another node", "FAILOVER-01 FAILOVER-18"),
    rule("gate.elsewhere.list", "", Error.NONE, "the group listed is on another node", "FAILOVER-01"),
    rule("gate.loading", "", LOADING, "the group is being loaded", "FAILOVER-01"),
    rule("gate.loading.heartbeat", "", Error.NONE, "a member is heard while the group is loaded", "HB-12 FAILOVER-01"),
    rule(
        "gate.loading.sync",
        "",
        REBALANCE,
        "a member asks for its assignment while the group is being loaded",
        "FAILOVER-01",
    ),
    rule("gate.not-ready", "", None, "the coordinator is not ready around a failover", "FAILOVER-01 HB-12"),
)
FAILURE = (
    rule("failure.creation", "JoinGroup", None, "the record of a new group is not taken", "FAILOVER-01"),
    rule("failure.replacement", "JoinGroup", None, "the record of a replacement is not taken", "STATIC-28"),
    rule("failure.assignment", "SyncGroup", None, "the record of the assignment is not taken", "SYNC-25 FAILOVER-06"),
    rule("failure.commit", "", None, "the records of the offsets are not taken", "FAILOVER-12"),
    rule("failure.stable-fetch", "OffsetFetch", None, "the records waited for are not taken", "FAILOVER-12"),
    rule("failure.deletion", "DeleteGroups", None, "the record of the deletion is not taken", "FAILOVER-15"),
    rule("failure.offset-deletion", "OffsetDelete", None, "the records of the deletion are not taken", "FAILOVER-12"),
)
"""Requests whose write fails (coordinator.md 5.4)."""

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        row.name: row
        for table in (JOIN, SYNC, HEARTBEAT, LEAVE, COMMIT, FETCH, ADMIN, INTERNAL, GATE, FAILURE)
        for row in table
    }
)
"""Every rule by name."""
