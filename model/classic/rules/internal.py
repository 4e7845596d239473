"""The rules of the coordinator's actions without a request, of its gate, and of writes that fail."""

from fencepost.model.classic.rules.fields import JOIN_RESPONSE_FIELDS
from fencepost.model.classic.rules.rule import REBALANCE, rule
from fencepost.model.errors import Error

INTERNAL = (
    rule(
        "timer.pending-id",
        "",
        None,
        "a pending id was not used for its session timeout",
        "TIMER-08 JOIN-28",
        JOIN_RESPONSE_FIELDS,
    ),
    rule("timer.new-member", "", None, "a first JoinGroup was parked too long", "TIMER-06"),
    rule(
        "timer.session",
        "",
        None,
        "a member was silent for its session timeout",
        "TIMER-01 TIMER-02",
        JOIN_RESPONSE_FIELDS,
    ),
    rule("timer.parked", "", None, "a session ran out while a request was parked", "TIMER-03 TIMER-04"),
    rule(
        "timer.rebalance", "", None, "the rebalance timeout is over", "JOIN-44 TIMER-09 TIMER-27", JOIN_RESPONSE_FIELDS
    ),
    rule("timer.initial-delay", "", None, "the initial delay is over", "TIMER-16", JOIN_RESPONSE_FIELDS),
    rule("timer.initial-delay-grows", "", None, "somebody was added during the initial delay", "TIMER-17"),
    rule("timer.sync", "", None, "a member did not sync for the rebalance timeout", "TIMER-11 TIMER-13"),
    rule("timer.sync-idle", "", None, "everyone synced in time", "TIMER-15"),
    rule("transaction.marker", "", None, "the end of a transaction reaches the group", "FETCH-12"),
    rule("clean-up", "", None, "clean-up removes expired offsets or an expired group", "COMMIT-26"),
    rule(
        "clean-up.overdue",
        "",
        None,
        "the group has been Empty, without offsets and transactions, for several clean-up intervals",
        "ADMIN-35",
    ),
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
