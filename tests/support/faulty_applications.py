"""More faulty driven clients: one for each requirement of polls, fetches, listeners, clocks and fenced members."""

from math import inf
from typing import Any

from fencepost.conformance.clients.stage import RECORDS
from fencepost.model.assignors.consumer_protocol import encode_assignment
from fencepost.model.frozen import evolve
from tests.support.client_scenarios import COOPERATIVE, EAGER
from tests.support.faulty_clients import STATIC, Body, change_rows, drop, leave_too, replace_in, send_leave
from tests.support.faulty_clients import set_field as set_request_field
from tests.support.faulty_drivers import (
    FAULTY_DRIVERS,
    Message,
    change_records,
    hide,
    hide_failure,
    is_waiting,
    make_driver,
    repeat,
    rewrite,
    shift_commits,
)
from tests.support.wire_client import Tell, WireClient


def plan_for_itself(client: WireClient, body: Body) -> Body:
    """SyncGroup with an assignment."""
    return {**body, "assignments": [{"member_id": body["member_id"], "assignment": encode_assignment(())}]}


def send_last(client: WireClient, api: str) -> None:
    """Send the last request to an API again."""
    earlier = [body for each, body in client.sent if each == api]
    if earlier:
        client.transmit(api, earlier[-1], 0, client.coordinator)


def join_at_rest(client: WireClient, body: Body) -> Body:
    """JoinGroup beside a late heartbeat."""
    if client.count("JoinGroup") == 4 and client.cluster.now() - client.joined_at > 1_500:
        send_last(client, "JoinGroup")
    return body


def sync_after_leaving(client: WireClient, body: Body) -> Body:
    """SyncGroup once the client has left."""
    if client.count("LeaveGroup") == 1 and client.count("SyncGroup") == 1 and not is_waiting(client, "JoinGroup"):
        send_last(client, "SyncGroup")
    return body


def heartbeat_anyway(client: WireClient, body: Body) -> Body:
    """Heartbeats beside Metadata, whatever has become of the membership."""
    send_last(client, "Heartbeat")
    return body


def look_up_again(client: WireClient, body: Body) -> Body:
    """FindCoordinator once more."""
    send_last(client, "FindCoordinator")
    return body


def leave_in_outage(client: WireClient, body: Body) -> Body:
    """LeaveGroup while the coordinator cannot be found."""
    if client.cluster.now() > 8_000 and client.count("LeaveGroup") == 0:
        send_leave(client, next(row for api, row in reversed(client.sent) if api == "SyncGroup"))
    return body


def join_instead_of_commit(client: WireClient, body: Body) -> Body | None:
    """JoinGroup in the place of a commit after the client was told of a rebalance."""
    if not client.rebalances or client.is_told:
        return body
    client.is_told = True
    send_last(client, "JoinGroup")
    return None


def without_partition(number: int) -> Any:
    """Fetch without one partition."""
    return change_rows(lambda rows: [row for row in rows if row["partition"] != number])


def fetch_buffered(place: int | None) -> Any:
    """Fetch what is buffered as well: from the record at this place in the buffer, or from its end."""

    def change(client: WireClient, body: Body) -> Body:
        rows = [
            {
                "partition": completed.partition[1],
                "fetch_offset": completed.following if place is None else completed.offsets[place],
                "partition_max_bytes": 1_000,
            }
            for completed in client.fetcher.queue
            if completed.offsets
        ]
        first, *rest = body["topics"]
        return {**body, "topics": [{**first, "partitions": [*first["partitions"], *rows]}, *rest]}

    return change


SORTED = change_rows(lambda rows: sorted(rows, key=lambda row: int(row["partition"])))
"""Fetch with its partitions in one order."""


def fetch_no_more(client: WireClient, body: Body) -> Body | None:
    """No Fetch once the first records after the beginning have come."""
    return body if max(client.buffered_ends.values(), default=0) <= RECORDS else None


def assign_late(client: WireClient, body: Body) -> Body:
    """The assignment of a membership that is over."""
    if 10_500 < client.cluster.now() < 11_050 and not client.is_told:
        client.is_told = True
        client.say({"event": "assigned", "partitions": [[client.topic, 0]]})
    return body


def be_lazy(client: WireClient, body: Body) -> Body:
    """A client whose polls always take as long as they may."""
    client.long_poll_ms = inf
    return body


def hide_partition(number: int) -> Tell:
    """Never return records of a partition but the first ones."""
    return change_records(lambda rows: [row for row in rows if row[1] != number or row[2] < RECORDS])


def favour_others(client: WireClient, message: Message) -> list[Message]:
    """Return twice as much of other partitions, and none of the one that comes last; the limit is high."""
    if "ready" in message:
        return [{"ready": {**message["ready"], "max_poll_records": 500}}]
    if "records" not in message:
        return [message]
    (kept,) = hide_partition(3)(client, message)
    return [{"records": kept["records"] * 2}]


def drop_offset(offset: int) -> Tell:
    """Never return records at an offset."""
    return change_records(lambda rows: [row for row in rows if row[2] != offset])


def go_back(client: WireClient, message: Message) -> list[Message]:
    """After a poll that emptied one partition and began another, records of the former."""
    before, client.last_numbers = client.last_numbers, [number for _, number, _ in message["records"]]
    if len(set(before)) < 2 or client.count("OffsetFetch") > 1:
        return [message]
    topic = message["records"][0][0]
    return [{"records": [[topic, before[0], 999]]}]


def return_during_commit(client: WireClient, message: Message) -> list[Message]:
    """Records while the commit before JoinGroup has no response."""
    if client.rebalances and is_waiting(client, "OffsetCommit"):
        return [{"records": [[client.topic, 0, 999]]}, message]
    return [message]


def say_ready(**changes: Any) -> Tell:
    """Say other things of the client at first."""
    return rewrite("ready", lambda client, message: [{"ready": {**message["ready"], **changes}}])


def move_positions(client: WireClient, message: Message) -> list[Message]:
    """Other positions."""
    return [{**message, "positions": [[topic, number, at + 5] for topic, number, at in message["positions"]]}]


def commit_elsewhere(client: WireClient, body: Body) -> Body:
    """The commits of a listener under another generation."""
    return {**body, "generation_id_or_member_epoch": 99} if client.is_calling_back else body


def commit_unasked(client: WireClient, body: Body) -> Body:
    """OffsetCommit of a client without auto-commit beside its heartbeats, until it joins again."""
    if client.fetcher.turns and client.count("OffsetCommit") < 3:
        joined = next(row for api, row in reversed(client.sent) if api == "SyncGroup")
        rows = [{"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}]
        commit = {
            "group_id": joined["group_id"],
            "generation_id_or_member_epoch": joined["generation_id"],
            "member_id": joined["member_id"],
            "group_instance_id": None,
            "topics": [{"name": client.topic, "partitions": rows}],
        }
        client.transmit("OffsetCommit", commit, 0, client.coordinator)
    return body


def commit_again(client: WireClient, body: Body) -> Body:
    """OffsetCommit again beside a heartbeat, when one got an error that may pass."""
    if client.count("OffsetCommit") == 1 and not is_waiting(client, "OffsetCommit"):
        send_last(client, "OffsetCommit")
    return body


def report_after_commit(client: WireClient, message: Message) -> list[Message]:
    """Reports of commits that nobody waits for, once the commit has returned that is waited for."""
    if "committed" in message:
        client.late.append(message)
        return []
    late: list[Message] = []
    if "done" in message and client.count("OffsetCommit") > 2 and not is_waiting(client, "OffsetCommit"):
        late, client.late = list(client.late), []
    return [message, *late]


def hide_failure_of_report(client: WireClient, message: Message) -> list[Message]:
    """Success in the place of the failure of a commit that nobody waits for."""
    return [{"committed": message["committed"]}]


UNAWAITED, REFUSED = "commits-that-nobody-waits-for", "commits-that-fail-unawaited"
BY_HAND = evolve(EAGER, auto_commit=False)
HASTY = evolve(EAGER, retry_backoff=0, max_retry_backoff=0)
MANY, REFILLED, SLOW = "partitions-with-many-records", "a-partition-that-is-refilled", "an-application-that-is-slow"
FAULTY_APPLICATIONS = [
    make_driver("MEMBER-03", "a-client-alone", tamper=set_request_field("JoinGroup", "session_timeout_ms", 7_000)),
    make_driver("MEMBER-09", "a-leader-that-is-told-to-skip", tamper=replace_in("SyncGroup", plan_for_itself)),
    make_driver("MEMBER-09", "a-leader-that-is-told-to-skip", tamper=drop("JoinGroup", 2)),
    make_driver("MEMBER-19", "a-join-that-is-fenced", rewrite("error", hide_failure), settings=STATIC),
    make_driver("MEMBER-19", "a-sync-that-is-fenced", rewrite("error", hide_failure), settings=STATIC),
    make_driver("MEMBER-28", "a-topic-that-matches-a-pattern", tamper=drop("JoinGroup", 4)),
    make_driver(
        "MEMBER-29", "an-application-that-unsubscribes-while-joining", tamper=replace_in("Metadata", sync_after_leaving)
    ),
    make_driver("MEMBER-30", "an-assignment-that-comes-too-late", tamper=replace_in("Metadata", assign_late)),
    make_driver("MEMBER-31", "a-join-with-another-protocol-type", rewrite("error", hide_failure)),
    make_driver("MEMBER-37", "a-rebalance-that-the-application-asks-for", tamper=drop("JoinGroup", 2)),
    make_driver(
        "HBT-07", "a-static-member-that-stops-polling", tamper=replace_in("Metadata", heartbeat_anyway), settings=STATIC
    ),
    make_driver("HBT-10", "a-heartbeat-that-is-fenced", rewrite("error", hide_failure), settings=STATIC),
    make_driver("HBT-12", SLOW, tamper=drop("Heartbeat", 6)),
    make_driver(
        "HBT-14", "a-heartbeat-that-is-refused", settings=evolve(EAGER, retry_backoff=3_000, max_retry_backoff=3_000)
    ),
    make_driver("HBT-15", "polls-without-a-coordinator", tamper=replace_in("Metadata", leave_in_outage)),
    make_driver("HBT-16", "a-parked-join", tamper=replace_in("SyncGroup", leave_too, 2)),
    make_driver("CALLBACK-12", "a-listener-that-raises", rewrite("error", hide_failure)),
    make_driver("CALLBACK-13", "a-listener-that-raises", repeat("revoked")),
    make_driver("CALLBACK-14", "a-leader-of-two", hide("revoked")),
    make_driver("CALLBACK-15", "a-listener-for-revoked-partitions", hide("revoked")),
    make_driver("CALLBACK-16", "a-listener-that-commits", tamper=replace_in("OffsetCommit", commit_elsewhere)),
    make_driver(
        "MCOMMIT-06",
        "a-commit-before-a-rebalance-that-fails",
        tamper=replace_in("OffsetCommit", join_instead_of_commit),
    ),
    make_driver("MCOMMIT-10", REFUSED, rewrite("committed", hide_failure_of_report), settings=BY_HAND),
    make_driver("MCOMMIT-14", UNAWAITED, repeat("committed")),
    make_driver("MCOMMIT-14", UNAWAITED, hide("committed"), settings=BY_HAND),
    make_driver("MCOMMIT-14", REFUSED, rewrite("committed", hide_failure_of_report), settings=BY_HAND),
    make_driver("MCOMMIT-14", REFUSED, tamper=replace_in("Heartbeat", commit_again), settings=BY_HAND),
    make_driver("MCOMMIT-16", UNAWAITED, report_after_commit, settings=BY_HAND),
    make_driver("MCOMMIT-22", "a-leader-of-two", tamper=replace_in("Heartbeat", commit_unasked), settings=BY_HAND),
    make_driver("MEMBER-17", "offsets-that-cannot-be-told", settings=HASTY),
    make_driver("MEMBER-17", "a-coordinator-that-is-not-available", settings=HASTY),
    make_driver("MCOMMIT-15", "a-commit-of-a-fenced-member", rewrite("error", hide_failure), settings=STATIC),
    make_driver(
        "MCOMMIT-17", "many-records", say_ready(auto_commit_ms=1_000), settings=evolve(EAGER, auto_commit_interval=100)
    ),
    make_driver("MCOMMIT-21", "commits-that-fail-unawaited", tamper=replace_in("OffsetCommit", shift_commits(5))),
    make_driver(
        "COOP-05",
        "a-rebalance-that-changes-nothing",
        tamper=replace_in("Heartbeat", join_at_rest),
        settings=COOPERATIVE,
    ),
    make_driver("COOP-13", "a-rebalance-that-changes-nothing", tamper=drop("JoinGroup", 3), settings=COOPERATIVE),
    make_driver("WIRE-02", "an-assignment-of-a-version-to-come", tamper=drop("Fetch")),
    make_driver("POLL-02", MANY, tamper=replace_in("Fetch", fetch_buffered(0))),
    make_driver("POLL-04", MANY, say_ready(max_poll_records=500)),
    make_driver("POLL-05", MANY, hide_partition(3)),
    make_driver("POLL-06", MANY, hide_partition(3)),
    make_driver("POLL-07", REFILLED, favour_others),
    make_driver("POLL-08", MANY, rewrite("records", go_back)),
    make_driver("POLL-12", "offsets-without-records", drop_offset(24)),
    make_driver("POLL-13", "positions-of-the-application", rewrite("positions", move_positions)),
    make_driver("POLL-14", "an-error-of-one-partition", tamper=replace_in("Fetch", fetch_buffered(0))),
    make_driver("POLL-15", "a-broker-that-falls-silent", tamper=replace_in("Metadata", be_lazy)),
    make_driver("POLL-19", "a-commit-before-a-rebalance-that-fails", rewrite("done", return_during_commit)),
    make_driver("PREFETCH-03", "a-coordinator-that-falls-silent", tamper=replace_in("Fetch", without_partition(3), 3)),
    make_driver("PREFETCH-04", MANY, tamper=replace_in("Fetch", fetch_buffered(-1))),
    make_driver("PREFETCH-07", SLOW, tamper=replace_in("Fetch", fetch_no_more)),
    make_driver("PREFETCH-09", MANY, hide_partition(3), replace_in("Fetch", fetch_buffered(None))),
    make_driver("PREFETCH-10", "records-of-one-partition-at-a-time", tamper=replace_in("Fetch", SORTED)),
]
"""Every one of them."""
WITNESSED_BY_DRIVERS = frozenset(
    requirement for faulty in [*FAULTY_DRIVERS, *FAULTY_APPLICATIONS] for requirement in faulty.fault.breaks
)
"""The requirements that a faulty driven client violates."""
