"""The rules of the reference client: one row for each branch of its handlers and of the proved member's.

A rule named `member.` is a branch of the proved member, a rule named `client.` one of what stands around it. No code
interprets the table to run the client.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.specification import Rule


def rule(name: str, guard: str, requirements: str) -> Rule:
    """A row of the table; requirements are given as one string. A client's rules have no error to answer with."""
    return Rule(name, "", None, guard, tuple(requirements.split()))


LOOKUP_RULES = (
    rule("client.lookup.send", "the coordinator is unknown, and it is time to ask for it", "MEMBER-01"),
    rule("client.lookup.waiting", "the coordinator is unknown, and a lookup is unanswered", "MEMBER-01"),
    rule(
        "client.lookup.backoff",
        "the coordinator is unknown, and the backoff after a failed lookup is not over",
        "MEMBER-17",
    ),
    rule("client.lookup.found", "a lookup names the coordinator", "MEMBER-01 MEMBER-14"),
    rule(
        "client.lookup.failed",
        "a lookup fails with an error that may pass, or is unanswered for too long",
        "MEMBER-17",
    ),
    rule("client.lookup.fatal", "a lookup fails with any other error", "MEMBER-18 MEMBER-38"),
    rule(
        "client.coordinator.lost",
        "the connection is lost, or a response says that the coordinator is elsewhere",
        "MEMBER-14 MEMBER-39",
    ),
    rule("client.request.timeout", "a request is unanswered for longer than its timeout", "MEMBER-14 MEMBER-32"),
    rule(
        "client.response.late",
        "the response belongs to no request that the client still waits for",
        "MEMBER-15 MEMBER-16",
    ),
)
"""Finding and losing the coordinator."""
POLL_RULES = (
    rule("client.poll", "the application polls", "HBT-15 MCOMMIT-16"),
    rule("client.poll.closed", "the application uses a client that is closing or closed", "MEMBER-22"),
    rule("client.poll.in-callback", "a callback runs", "CALLBACK-01"),
    rule("client.poll.raise", "an error waits for the application", "MEMBER-18 MEMBER-19 HBT-10 MCOMMIT-15"),
    rule("client.poll.no-subscription", "the client subscribes to nothing", "MEMBER-26"),
    rule(
        "client.rejoin.subscription",
        "the subscription is not the one that the last JoinGroup carried",
        "MEMBER-27 MEMBER-28",
    ),
    rule("client.rejoin.metadata", "the leader sees other partition counts than it planned with", "MEMBER-21"),
    rule("member.rejoin", "the application asks for a rebalance", "MEMBER-37"),
)
"""The beginning of a poll, and the reasons to join."""
PREPARE_RULES = (
    rule(
        "client.prepare.hold-back",
        "auto-commit is on, and the member gives everything up before it joins",
        "MCOMMIT-05 POLL-19",
    ),
    rule(
        "client.prepare.commit",
        "auto-commit is on, and the member is about to join",
        "MCOMMIT-05 MCOMMIT-06 CALLBACK-07",
    ),
    rule("client.prepare.committing", "the commit before JoinGroup is unanswered", "CALLBACK-07 MCOMMIT-06"),
    rule(
        "client.prepare.commit-too-late",
        "the commit before JoinGroup has taken as long as a rebalance may",
        "MCOMMIT-06",
    ),
    rule("client.prepare.nothing", "the member has no generation, and owns nothing", "CALLBACK-17"),
    rule(
        "client.prepare.lost",
        "the member has no generation, and partitions are assigned",
        "CALLBACK-05 CALLBACK-15 CALLBACK-06 HBT-08 COOP-17",
    ),
    rule(
        "client.prepare.revoke-all",
        "an eager member with a generation is about to join",
        "CALLBACK-02 CALLBACK-06 CALLBACK-16",
    ),
    rule(
        "client.prepare.keep",
        "a cooperative member joins, and every partition's topic is still subscribed",
        "COOP-01 CALLBACK-04 CALLBACK-19",
    ),
    rule(
        "client.prepare.revoke-unsubscribed",
        "a cooperative member joins, and topics have left its subscription",
        "CALLBACK-04 COOP-04",
    ),
    rule("client.prepare.given-up", "the callback before JoinGroup returns", "CALLBACK-02 CALLBACK-06"),
    rule("client.prepare.raised", "the callback before JoinGroup raises", "CALLBACK-12 CALLBACK-13"),
)
"""The step before JoinGroup."""
JOIN_RULES = (
    rule("client.join.backoff", "the backoff after a failed exchange is not over", "MEMBER-17"),
    rule("client.join.waiting", "JoinGroup or SyncGroup is unanswered", "MEMBER-06"),
    rule(
        "member.join",
        "the member has to join, and waits for nothing",
        "MEMBER-02 MEMBER-03 MEMBER-04 MEMBER-33 MEMBER-35 MEMBER-36 WIRE-01 WIRE-03 WIRE-04 "
        "WIRE-05 WIRE-06 STICKY-18 COOP-01 COOP-04 COOP-08 COOP-13 COOP-15",
    ),
    rule("member.join.answered", "JoinGroup succeeds", "MEMBER-07 HBT-16"),
    rule("member.join.id-required", "JoinGroup is answered MEMBER_ID_REQUIRED", "MEMBER-05"),
    rule("member.join.unknown-member", "JoinGroup is answered UNKNOWN_MEMBER_ID", "MEMBER-13"),
    rule("client.join.rebalance", "JoinGroup is answered REBALANCE_IN_PROGRESS or ILLEGAL_GENERATION", "MEMBER-34"),
    rule(
        "client.join.moved",
        "JoinGroup is answered NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE",
        "MEMBER-14 MEMBER-17",
    ),
    rule("client.join.loading", "JoinGroup is answered COORDINATOR_LOAD_IN_PROGRESS", "MEMBER-14 MEMBER-17"),
    rule("client.join.fenced", "JoinGroup is answered FENCED_INSTANCE_ID", "MEMBER-19"),
    rule(
        "client.join.fatal",
        "JoinGroup is answered with any other error, or for another protocol type",
        "MEMBER-18 MEMBER-31",
    ),
    rule(
        "member.late-answer",
        "the member has been reset since it sent the request, or has another generation",
        "MEMBER-15 MEMBER-29 MEMBER-30",
    ),
    rule("member.lost", "JoinGroup or SyncGroup is unanswered when the coordinator is lost", "MEMBER-14 MEMBER-16"),
)
"""JoinGroup and its responses."""
SYNC_RULES = (
    rule("client.sync.as-follower", "JoinGroup succeeds, and another member leads", "MEMBER-07 WIRE-05"),
    rule("client.sync.as-leader", "JoinGroup succeeds, and the member leads", "MEMBER-08 COOP-09 COOP-16 WIRE-05"),
    rule("client.sync.skip-assignment", "JoinGroup succeeds, and the member leads but need not plan", "MEMBER-09"),
    rule("client.sync.assigned", "SyncGroup brings an assignment", "WIRE-02 CALLBACK-01"),
    rule("client.sync.unreadable", "SyncGroup brings bytes that are no assignment", "WIRE-02"),
    rule("client.sync.wrong-protocol", "SyncGroup succeeds for another protocol than JoinGroup", "MEMBER-31"),
    rule("client.sync.rebalance", "SyncGroup is answered REBALANCE_IN_PROGRESS", "MEMBER-11 MEMBER-16 CALLBACK-10"),
    rule(
        "client.sync.moved",
        "SyncGroup is answered NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE",
        "MEMBER-14 MEMBER-16",
    ),
    rule("client.sync.fenced", "SyncGroup is answered FENCED_INSTANCE_ID", "MEMBER-19"),
    rule("client.sync.fatal", "SyncGroup is answered with any other error", "MEMBER-16 MEMBER-18"),
    rule("member.sync.illegal-generation", "SyncGroup is answered ILLEGAL_GENERATION", "MEMBER-12 MEMBER-16"),
    rule("member.sync.unknown-member", "SyncGroup is answered UNKNOWN_MEMBER_ID", "MEMBER-13 MEMBER-16"),
)
"""SyncGroup and its responses."""
COMPLETE_RULES = (
    rule("client.complete.foreign-topic", "the assignment names a topic outside the subscription", "MEMBER-20"),
    rule("member.sync.answered", "the poll takes the assignment", "COOP-02 COOP-03 COOP-05"),
    rule(
        "client.complete.revoke",
        "the assignment lacks partitions that the member owns",
        "CALLBACK-08 COOP-02 CALLBACK-06",
    ),
    rule(
        "client.complete.commit-given-up",
        "auto-commit is on, and the assignment takes partitions with a position away",
        "CALLBACK-16 MCOMMIT-03",
    ),
    rule("client.complete.revoked", "the callback about what is taken away returns", "CALLBACK-08"),
    rule("client.complete.assign", "the assignment is installed", "CALLBACK-03 CALLBACK-06 CALLBACK-09 COOP-07"),
    rule("client.complete.done", "the callback about what was added returns", "CALLBACK-09 COOP-03"),
    rule("client.complete.raised", "a callback after SyncGroup raises", "CALLBACK-12"),
)
"""The end of a rebalance."""
WORKER_RULES = (
    rule("client.worker.off", "the client assigns its partitions itself, is closing or closed", "MEMBER-26 MEMBER-22"),
    rule("client.worker.idle", "the member is in no group, or waits for the response to JoinGroup", "HBT-04"),
    rule("client.worker.in-poll", "nothing but a poll sends heartbeats", "HBT-01"),
    rule("client.worker.lookup", "the coordinator is unknown", "HBT-11"),
    rule("client.worker.session-expired", "no heartbeat has succeeded for a session timeout", "HBT-11"),
    rule(
        "client.worker.poll-expired",
        "the application has not polled for longer than the poll interval",
        "HBT-06 HBT-07 HBT-09",
    ),
    rule("client.worker.sleep", "no heartbeat is due", "HBT-01"),
    rule("member.heartbeat", "a heartbeat is due", "HBT-01 HBT-02 HBT-03 HBT-05 HBT-12 WIRE-05"),
    rule("client.heartbeat.asked", "the application asks for a heartbeat by itself", "HBT-02"),
    rule("member.nothing", "the proved member sends nothing in this state", "HBT-04"),
    rule("member.heartbeat.answered", "Heartbeat succeeds", "HBT-01"),
    rule(
        "member.heartbeat.rebalance",
        "Heartbeat is answered REBALANCE_IN_PROGRESS, and the member is stable",
        "MEMBER-10 HBT-05",
    ),
    rule(
        "client.heartbeat.already-joining",
        "Heartbeat is answered REBALANCE_IN_PROGRESS, and the member is joining",
        "MEMBER-10",
    ),
    rule("member.heartbeat.fenced", "Heartbeat is answered FENCED_INSTANCE_ID", "HBT-10"),
    rule("client.heartbeat.moved", "Heartbeat is answered NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE", "MEMBER-14"),
    rule("client.heartbeat.failed", "Heartbeat is answered with any other error", "HBT-14 HBT-17"),
    rule(
        "member.illegal-generation",
        "Heartbeat or OffsetCommit is answered ILLEGAL_GENERATION",
        "MEMBER-12 MCOMMIT-10",
    ),
    rule("member.unknown-member", "Heartbeat or OffsetCommit is answered UNKNOWN_MEMBER_ID", "MEMBER-13 MCOMMIT-10"),
)
"""Heartbeats and the clocks of the worker."""
COMMIT_RULES = (
    rule("member.commit", "a stable member commits", "MCOMMIT-01 MCOMMIT-02 MCOMMIT-03 MCOMMIT-18 WIRE-05"),
    rule("client.commit.manual", "a client that assigns its partitions itself commits", "MCOMMIT-12"),
    rule("client.commit.empty", "no partition to commit has a position", "MCOMMIT-18"),
    rule("client.commit.rebalancing", "the member is joining", "MCOMMIT-08"),
    rule("client.commit.not-joined", "the member is in no group", "MCOMMIT-11"),
    rule("client.commit.waiting", "the coordinator is unknown", "MCOMMIT-14"),
    rule("client.commit.still-fenced", "an asynchronous commit was fenced before", "MCOMMIT-15"),
    rule(
        "client.auto-commit.due",
        "the interval of auto-commit is over, and the application polls",
        "MCOMMIT-04 MCOMMIT-17 MCOMMIT-22",
    ),
    rule("client.auto-commit.soon", "an auto-commit fails with an error that may pass", "MCOMMIT-17"),
    rule("client.commit.done", "OffsetCommit succeeds", "MCOMMIT-01"),
    rule("member.commit.rebalance", "OffsetCommit is answered REBALANCE_IN_PROGRESS", "MCOMMIT-09"),
    rule("client.commit.late", "OffsetCommit of an older generation is refused", "MCOMMIT-13 MEMBER-15"),
    rule("client.commit.fenced", "OffsetCommit is answered FENCED_INSTANCE_ID", "MCOMMIT-15"),
    rule("client.commit.retriable", "OffsetCommit is answered with an error that may pass", "MCOMMIT-14"),
    rule(
        "client.commit.moved",
        "OffsetCommit is answered NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE or REQUEST_TIMED_OUT",
        "MCOMMIT-14 MEMBER-14",
    ),
    rule("client.commit.refused", "OffsetCommit is answered with any other error", "MCOMMIT-14"),
    rule(
        "client.commit.retry",
        "a commit that the application waits for failed, and its deadline is not over",
        "MCOMMIT-14",
    ),
    rule("client.commit.given-up", "a commit has waited until its deadline, or its lookup failed", "MCOMMIT-14"),
)
"""OffsetCommit."""
POSITIONS_RULES = (
    rule("client.offsets.fetch", "assigned partitions have no position, and were not asked for", "MCOMMIT-19 COOP-07"),
    rule("client.offsets.backoff", "assigned partitions have no position, and it is too early to ask", "MCOMMIT-20"),
    rule("client.offsets.committed", "OffsetFetch succeeds", "MCOMMIT-19"),
    rule("client.offsets.reset", "partitions have no committed offset, and there is a reset policy", "MCOMMIT-19"),
    rule("client.offsets.no-policy", "partitions have no committed offset, and there is no reset policy", "MCOMMIT-19"),
    rule("client.offsets.start", "ListOffsets succeeds", "MCOMMIT-19"),
    rule("client.offsets.unstable", "OffsetFetch says that an offset is unstable", "MCOMMIT-20"),
    rule("client.offsets.retry", "OffsetFetch or ListOffsets fails in a way that may pass", "MCOMMIT-20"),
    rule("client.offsets.moved", "OffsetFetch is answered NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE", "MEMBER-14"),
    rule("client.offsets.fatal", "OffsetFetch is answered with any other error", "MCOMMIT-19 MEMBER-38"),
    rule("client.offsets.late", "OffsetFetch is answered, and every position has changed since", "POLL-11"),
    rule("client.position.seek", "the application sets the position of an assigned partition", "POLL-11"),
    rule("client.position.pause", "the application pauses or resumes an assigned partition", "POLL-09 COOP-07"),
    rule("client.position.not-assigned", "the application means a partition that is not assigned", "POLL-10"),
    rule(
        "client.records.returned",
        "the poll returns records from the position on",
        "COOP-06 POLL-03 POLL-13 MCOMMIT-02",
    ),
    rule(
        "client.records.dropped",
        "the records do not begin at the position, or their partition may not be returned",
        "POLL-09 POLL-10 POLL-11 POLL-18 POLL-19",
    ),
)
"""Positions and records."""
APPLICATION_RULES = (
    rule("client.subscribe", "the application subscribes", "MEMBER-27"),
    rule("client.assign", "the application assigns partitions itself", "MEMBER-26 CALLBACK-18"),
    rule("client.metadata", "the client learns the partition counts", "MEMBER-21"),
    rule("client.metadata.pattern", "the client learns which topics match its pattern", "MEMBER-28"),
    rule("client.callback.none", "a callback returns that nobody called", "CALLBACK-01"),
    rule("client.unsubscribe", "the application unsubscribes", "MEMBER-22"),
    rule("client.close", "the application closes the client", "MEMBER-22"),
    rule("client.close.again", "the application closes the client once more", "MEMBER-25"),
    rule("client.close.commit", "the application closes a client with auto-commit that may commit", "MCOMMIT-07"),
    rule("client.leave.revoke", "a stable member leaves, and owns partitions", "CALLBACK-11"),
    rule("client.leave.lose", "a member leaves that is not stable, and owns partitions", "CALLBACK-11 CALLBACK-15"),
    rule("client.leave.nothing-owned", "a client leaves that owns nothing", "CALLBACK-11"),
    rule("client.leave.given-up", "the callback before LeaveGroup returns", "MEMBER-22"),
    rule("client.leave.raised", "the callback before LeaveGroup raises", "CALLBACK-12"),
    rule("client.close.leave", "the client closes, and has no callback to wait for", "MEMBER-22 MEMBER-23 MEMBER-24"),
    rule(
        "client.unsubscribe.leave",
        "the client unsubscribes, and has no callback to wait for",
        "MEMBER-22 MEMBER-23 MEMBER-24",
    ),
    rule(
        "client.leave.send",
        "the member is dynamic and has an id, and the coordinator is known",
        "MEMBER-22 MEMBER-24 HBT-06",
    ),
    rule(
        "client.leave.silent",
        "the member is static, has no id, or does not know the coordinator",
        "MEMBER-23 HBT-07",
    ),
    rule("client.leave.answered", "LeaveGroup is answered", "MEMBER-25"),
    rule("member.leave", "a member with an id leaves", "MEMBER-22 HBT-06"),
    rule("member.leave.unjoined", "a member leaves that is in no group", "MEMBER-23"),
    rule("member.restart", "the process ends without a word and starts again", "MEMBER-36"),
)
"""What the application asks for, leaving and closing."""

_TABLES = (
    LOOKUP_RULES,
    POLL_RULES,
    PREPARE_RULES,
    JOIN_RULES,
    SYNC_RULES,
    COMPLETE_RULES,
    WORKER_RULES,
    COMMIT_RULES,
    POSITIONS_RULES,
    APPLICATION_RULES,
)
MEMBER_RULES: Mapping[str, Rule] = MappingProxyType({row.name: row for table in _TABLES for row in table})
"""Every rule of a client by name."""
