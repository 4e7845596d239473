"""Faulty driven clients: one for each requirement that takes an application to be seen.

Some of the messages of the driver are replaced, as a client with the fault would have it say them.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from fencepost.model.classic.member.settings import COOPERATIVE_STICKY, RANGE, ClientSettings
from fencepost.model.frozen import evolve
from tests.support.client_scenarios import COOPERATIVE, EAGER
from tests.support.faulty_clients import (
    FOREIGN_FETCH,
    Body,
    FaultyClient,
    change_rows,
    drop,
    guess_coordinator,
    make_client,
    old_id,
    replace_in,
    resubscribe,
    send_leave,
)
from tests.support.faulty_clients import set_field as set_request_field
from tests.support.wire_client import Tamper, Tell, WireClient, send_as_it_is, tell_as_it_is

Message = dict[str, Any]
MIXED = evolve(EAGER, strategies=(RANGE, COOPERATIVE_STICKY))


def rewrite(name: str, change: Callable[[WireClient, Message], list[Message]]) -> Tell:
    """Replace the messages with this key, or this name of a callback."""

    def tell(client: WireClient, message: Message) -> list[Message]:
        return change(client, message) if name in message or message.get("event") == name else [message]

    return tell


def hide(name: str) -> Tell:
    """Leave out messages."""
    return rewrite(name, lambda client, message: [])


def repeat(name: str) -> Tell:
    """Say messages twice."""
    return rewrite(name, lambda client, message: [message, message])


def set_field(name: str, key: str, value: Any) -> Tell:
    """Say another value in a field."""
    return rewrite(name, lambda client, message: [{**message, key: value}])


def leave_out_one(name: str) -> Tell:
    """Say all partitions but the first."""
    return rewrite(name, lambda client, message: [{**message, "partitions": message["partitions"][1:]}])


def shift_records(by: int, after: int = 0) -> Tell:
    """Say other offsets, once the client has sent so many SyncGroups."""

    def change(client: WireClient, message: Message) -> list[Message]:
        moved = by if client.count("SyncGroup") >= after else 0
        return [{"records": [[topic, number, offset + moved] for topic, number, offset in message["records"]]}]

    return rewrite("records", change)


def change_records(change: Callable[[list[Any]], list[Any]]) -> Tell:
    """Return other records."""
    return rewrite("records", lambda client, message: [{"records": change(message["records"])}])


def add_record(number: int) -> Tell:
    """Return a record of a partition with each others."""
    return change_records(lambda rows: [*rows, [rows[0][0], number, 999]])


def say_after_call(name: str) -> Tell:
    """Say a callback when the call is over in which it came."""
    held: list[Message] = []

    def tell(client: WireClient, message: Message) -> list[Message]:
        if message.get("event") == name:
            held.append(message)
            return []
        said = [message, *held] if "done" in message else [message]
        if "done" in message:
            held.clear()
        return said

    return tell


def return_first(client: WireClient, message: Message) -> list[Message]:
    """The first record of each partition, and nothing more."""
    told = [tuple(each[:2]) for each in client.late]
    rows = [row for row in message["records"] if tuple(row[:2]) not in told]
    first = [row for number, row in enumerate(rows) if row[:2] not in [each[:2] for each in rows[:number]]]
    client.late += first
    return [{"records": first}] if first else []


def return_late(client: WireClient, message: Message) -> list[Message]:
    """Records one poll later than they were returned."""
    if "records" in message:
        client.late.append(message)
        return []
    if "done" not in message or not client.late or not client.is_held:
        client.is_held = bool(client.late)
        return [message]
    late, client.late, client.is_held = client.late, [], False
    return [*late, message]


def hide_while_joining(client: WireClient, message: Message) -> list[Message]:
    """No records while a JoinGroup has no response."""
    return [] if is_waiting(client, "JoinGroup") else [message]


def is_waiting(client: WireClient, api: str) -> bool:
    """Whether a request to the coordinator has no response."""
    return any(one.api == api for one in client.link(client.coordinator).waiting.values())


def everything(client: WireClient) -> list[list[Any]]:
    """All partitions of the client's topic."""
    return [[client.topic, number] for number in range(4)]


def call_back(name: str, when: Callable[[WireClient, Message], bool]) -> Tell:
    """Call back about all partitions, before the end of the first call for which that is so."""
    called: list[WireClient] = []

    def change(client: WireClient, message: Message) -> list[Message]:
        if client in called or not when(client, message):
            return [message]
        called.append(client)
        return [{"event": name, "partitions": everything(client)}, message]

    return rewrite("done", change)


def call_back_during_commit(client: WireClient, message: Message) -> list[Message]:
    """revoked while a commit has no response."""
    body = next(body for api, body in reversed(client.sent) if api == "OffsetCommit")
    client.transmit("OffsetCommit", body, 0, client.coordinator)
    assert client.application is not None
    asyncio.get_running_loop().call_soon(client.application.receive, message)
    return []


def hide_failure(client: WireClient, message: Message) -> list[Message]:
    """Success in the place of a failure."""
    return [{"done": message["of"]}]


def fail_commits(client: WireClient, message: Message) -> list[Message]:
    """Failure of a commit after the second request."""
    return [message] if client.count("OffsetCommit") < 3 else [{"error": "LOADING", "of": message["done"]}]


def return_what_was_left(client: WireClient, message: Message) -> list[Message]:
    """Records of the old topic after a new subscription."""
    return [message, {"records": [[client.topic, 0, 20]]}] if client.topic not in client.topics else [message]


def shift_commits(by: int) -> Callable[[WireClient, Body], Body]:
    """Commit other offsets."""
    return change_rows(lambda rows: [{**row, "committed_offset": row["committed_offset"] + by} for row in rows])


def leave_in_poll(client: WireClient, body: Body) -> Body:
    """LeaveGroup in the middle of a long poll."""
    if client.count("Metadata") == 5:
        send_leave(client, next(row for api, row in reversed(client.sent) if api == "SyncGroup"))
    return body


def heartbeat_of_nobody(client: WireClient, body: Body) -> Body:
    """Heartbeats when the application assigns the partitions."""
    if client.client.is_manual:
        last = next(row for api, row in reversed(client.sent) if api == "Heartbeat")
        client.transmit("Heartbeat", last, 0, client.coordinator)
    return body


def keep_first_topic(client: WireClient, body: Body) -> Body:
    """JoinGroup with the first subscription."""
    return resubscribe(lambda one: evolve(one, topics=(client.topic,)))(client, body)


def make_driver(
    requirement: str,
    scenario: str,
    tell: Tell = tell_as_it_is,
    tamper: Tamper = send_as_it_is,
    settings: ClientSettings = EAGER,
) -> FaultyClient:
    """A faulty client with a driver."""
    return make_client(requirement, scenario, tamper, settings, tell)


FAULTY_DRIVERS = [
    make_driver("POLL-05", "a-poll-that-takes-long", rewrite("records", return_first)),
    make_driver("CALLBACK-01", "a-client-alone", say_after_call("assigned")),
    make_driver("CALLBACK-02", "a-leader-of-two", hide("revoked")),
    make_driver("CALLBACK-02", "a-leader-of-two", leave_out_one("revoked")),
    make_driver("CALLBACK-03", "a-leader-of-two", leave_out_one("assigned")),
    make_driver(
        "CALLBACK-04",
        "a-leader-of-two",
        call_back("revoked", lambda client, message: client.count("OffsetFetch") == 1),
        settings=COOPERATIVE,
    ),
    make_driver(
        "CALLBACK-05",
        "a-heartbeat-of-a-forgotten-member",
        rewrite("lost", lambda client, message: [{**message, "event": "revoked"}]),
    ),
    make_driver("CALLBACK-05", "an-application-that-stops-polling", hide("lost")),
    make_driver("CALLBACK-06", "a-leader-of-two", set_field("revoked", "assignment", [])),
    make_driver("CALLBACK-07", "a-leader-of-two", rewrite("revoked", call_back_during_commit)),
    make_driver("CALLBACK-08", "a-leader-of-two", hide("revoked"), settings=COOPERATIVE),
    make_driver("CALLBACK-09", "a-client-alone", repeat("assigned")),
    make_driver("CALLBACK-09", "a-topic-that-grows", hide("assigned")),
    make_driver("CALLBACK-10", "a-leader-of-two", repeat("revoked")),
    make_driver("CALLBACK-11", "an-application-that-unsubscribes", hide("revoked")),
    make_driver(
        "CALLBACK-11",
        "an-application-that-unsubscribes",
        rewrite("revoked", lambda client, message: [{**message, "event": "lost"}]),
    ),
    make_driver("CALLBACK-17", "a-client-alone", call_back("revoked", lambda client, message: True)),
    make_driver(
        "CALLBACK-18",
        "partitions-that-the-application-assigns",
        call_back("assigned", lambda client, message: client.client.is_manual and client.count("Fetch") > 7),
    ),
    make_driver(
        "CALLBACK-19",
        "a-leader-of-two",
        rewrite("assigned", lambda client, message: [{"event": "revoked", "partitions": []}, message]),
        settings=COOPERATIVE,
    ),
    make_driver("COOP-02", "a-leader-of-two", leave_out_one("revoked"), settings=COOPERATIVE),
    make_driver("COOP-06", "records-during-a-rebalance", rewrite("records", hide_while_joining), settings=COOPERATIVE),
    make_driver("COOP-07", "records-during-a-rebalance", shift_records(-1, 2), settings=COOPERATIVE),
    make_driver("COOP-15", "a-leader-of-two", hide("revoked"), settings=MIXED),
    make_driver("MEMBER-35", "a-leader-of-two", hide("revoked"), settings=MIXED),
    make_driver("HBT-06", "an-application-that-stops-polling", tamper=drop("LeaveGroup")),
    make_driver("HBT-08", "an-application-that-stops-polling", tamper=replace_in("JoinGroup", old_id, 2)),
    make_driver("HBT-09", "a-poll-that-takes-long", tamper=replace_in("Metadata", leave_in_poll)),
    make_driver(
        "HBT-17",
        "a-heartbeat-that-is-refused",
        call_back("lost", lambda client, message: 6 < client.count("Heartbeat") < 9),
    ),
    make_driver("MCOMMIT-01", "a-commit-of-the-application", tamper=replace_in("OffsetCommit", shift_commits(5))),
    make_driver("MCOMMIT-02", "a-commit-of-the-application", tamper=replace_in("OffsetCommit", shift_commits(-1))),
    make_driver("MCOMMIT-04", "many-records", return_late, settings=evolve(EAGER, auto_commit_interval=50)),
    make_driver("MCOMMIT-05", "a-leader-of-two", tamper=replace_in("OffsetCommit", shift_commits(-1))),
    make_driver("MCOMMIT-07", "a-client-alone", tamper=replace_in("OffsetCommit", shift_commits(-1))),
    make_driver("MCOMMIT-10", "a-commit-that-is-fenced", rewrite("error", hide_failure)),
    make_driver(
        "MCOMMIT-12",
        "partitions-that-the-application-assigns",
        tamper=set_request_field("OffsetCommit", "member_id", "x"),
    ),
    make_driver("MCOMMIT-14", "a-commit-of-the-application", rewrite("done", fail_commits)),
    make_driver("MCOMMIT-19", "a-leader-of-two", shift_records(1, 2)),
    make_driver("MEMBER-18", "a-refused-join", rewrite("error", hide_failure)),
    make_driver(
        "MEMBER-39",
        "a-coordinator-that-moves-while-starts-are-asked",
        tamper=replace_in("FindCoordinator", guess_coordinator, 1),
    ),
    make_driver("MEMBER-38", "offsets-that-are-refused-for-good", rewrite("error", hide_failure)),
    make_driver(
        "MEMBER-26", "partitions-that-the-application-assigns", tamper=replace_in("Metadata", heartbeat_of_nobody)
    ),
    make_driver("MEMBER-27", "another-subscription", tamper=replace_in("JoinGroup", keep_first_topic, 2)),
    make_driver("MEMBER-27", "another-subscription", tamper=drop("JoinGroup", 2)),
    make_driver(
        "POLL-01", "many-records", set_field("ready", "ready", {"callbacks": ["lost"], "max_poll_records": 10})
    ),
    make_driver("POLL-03", "many-records", change_records(lambda rows: [*rows[:1], *rows[2:]])),
    make_driver("POLL-09", "partitions-that-are-paused", tamper=replace_in("Fetch", FOREIGN_FETCH, 3)),
    make_driver("POLL-09", "partitions-that-are-paused", add_record(0)),
    make_driver("POLL-10", "a-client-alone", add_record(99)),
    make_driver("POLL-11", "a-seek-backwards", shift_records(1)),
    make_driver("POLL-18", "another-subscription", rewrite("done", return_what_was_left)),
]
"""Every faulty driven client."""
