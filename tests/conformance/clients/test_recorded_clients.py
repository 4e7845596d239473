"""Traces of clients that a check once took for faults, and what each would be blamed for: of Apache Kafka's Java
client, of franz-go, kafka-python, kafkajs and librdkafka."""

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from fencepost.model.assignors.consumer_protocol import encode_assignment
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.traces.classic.client.client import ClassicClient
from fencepost.traces.client_judge.judge import judge_client
from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.verdict import CheckStatus, TraceVerdict

DATA = Path(__file__).parent / "data"
Change = Callable[[list[Event]], Iterable[Event]]


def without(sees: Callable[[Event], bool]) -> Change:
    """Leave out the events that are seen so, and the responses to them."""

    def change(events: list[Event]) -> Iterable[Event]:
        gone = {event.sequence for event in events if sees(event)}
        return [event for event in events if event.sequence not in gone and event.of not in gone]

    return change


def is_late(event: Event) -> bool:
    """A commit, or a heartbeat whose error is that the member is not known."""
    return event.api == "OffsetCommit" or event.sequence in (141, 155, 170, 184, 207)


def claim_another_id(events: list[Event]) -> Iterable[Event]:
    """The last JoinGroup has an id that nobody was given."""
    last = next(event for event in reversed(events) if event.kind is Kind.REQUEST and event.api == "JoinGroup")
    return [evolve(each, body={**each.body, "member_id": "other"}) if each is last else each for each in events]


def refuse_the_join(events: list[Event]) -> Iterable[Event]:
    """JoinGroup has a response, with an error after which the client joins again."""
    join = next(event for event in events if event.kind is Kind.REQUEST and event.api == "JoinGroup")
    body = {"error_code": int(Error.REBALANCE_IN_PROGRESS), "generation_id": -1, "member_id": "", "members": []}
    for event in events:
        is_next = event.sequence == join.sequence + 1
        yield (
            evolve(join, sequence=event.sequence, kind=Kind.RESPONSE, body=body, of=join.sequence) if is_next else event
        )


def be_in_one_generation(events: list[Event]) -> Iterable[Event]:
    """The other members are assigned partitions in the generation that the client has."""
    generation = -1
    for event in events:
        if event.kind is Kind.RESPONSE and event.api == "JoinGroup" and event.member == "A":
            generation = event.body["generation_id"]
        is_foreign = event.kind is Kind.REQUEST and event.api == "SyncGroup" and event.member != "A"
        yield evolve(event, body={**event.body, "generation_id": generation}) if is_foreign else event


def carry_out_everything(events: list[Event]) -> Iterable[Event]:
    """The driver says that it has carried out what it does not know."""
    return [
        evolve(each, body={"done": each.body["of"]}) if each.body.get("error") == "unsupported" else each
        for each in events
    ]


def revoke_twice(events: list[Event]) -> Iterable[Event]:
    """The client calls lost partitions revoked, twice."""
    lost = next(event for event in events if event.api == "lost")
    for event in events:
        is_next = event.api == "revoked" and event.sequence > lost.sequence
        yield evolve(event, api="revoked", body=lost.body) if event is lost or is_next else event


def say_of_driver(**about: Any) -> Change:
    """The driver says something else of itself."""

    def change(events: list[Event]) -> Iterable[Event]:
        return [evolve(each, body={**each.body, **about}) if each.api == "driver" else each for each in events]

    return change


def have_longer_sessions(events: list[Event]) -> Iterable[Event]:
    """The client's sessions are longer than it has waited."""
    for event in events:
        is_join = event.kind is Kind.REQUEST and event.api == "JoinGroup"
        yield evolve(event, body={**event.body, "session_timeout_ms": 12_000}) if is_join else event


def commit_what_was_not_returned(events: list[Event]) -> Iterable[Event]:
    """The commit that had to wait while a partition was sought is ahead of all that was returned of that."""
    for event in events:
        is_late = event.kind is Kind.REQUEST and event.sequence == 164
        topics = (
            [
                {**topic, "partitions": [{**row, "committed_offset": 41} for row in topic["partitions"]]}
                for topic in event.body["topics"]
            ]
            if is_late
            else []
        )
        yield evolve(event, body={**event.body, "topics": topics}) if is_late else event


def have_longer_intervals(events: list[Event]) -> Iterable[Event]:
    """The client may go without polls for longer than it has."""
    for event in events:
        is_join = event.kind is Kind.REQUEST and event.api == "JoinGroup"
        yield evolve(event, body={**event.body, "rebalance_timeout_ms": 12_000}) if is_join else event


def join_with_the_old_id(events: list[Event]) -> Iterable[Event]:
    """The client that left in silence joins with the id that it had."""
    ids = [each.body["member_id"] for each in events if each.kind is Kind.REQUEST and each.api == "JoinGroup"]
    fresh = next(number for number in range(2, len(ids)) if not ids[number])
    changed = iter([*ids[:fresh], ids[fresh - 1], *ids[fresh + 1 :]])
    for event in events:
        is_join = event.kind is Kind.REQUEST and event.api == "JoinGroup"
        yield evolve(event, body={**event.body, "member_id": next(changed)}) if is_join else event


def join_as_nobody(events: list[Event]) -> Iterable[Event]:
    """The client that revokes its partitions joins without its id at once: so it had read that it is not known."""
    for event in events:
        is_next = event.sequence == 431
        yield evolve(event, body={**event.body, "member_id": ""}) if is_next else event


def have_longer_polls(events: list[Event]) -> Iterable[Event]:
    """No poll is over time."""
    for event in events:
        is_poll = event.api == "command" and event.body.get("do") == "poll"
        yield evolve(event, body={**event.body, "ms": 60_000}) if is_poll else event


def move_behind(events: list[Event], moved: Event, other: Event) -> Iterable[Event]:
    """An event comes behind another one, and at its time."""
    for event in events:
        if event is not moved:
            yield event
        if event is other:
            yield evolve(moved, time=other.time)


def call_back_at_once(events: list[Event]) -> Iterable[Event]:
    """The first callback comes with the response to SyncGroup."""
    callback = next(event for event in events if event.kind is Kind.CALLBACK)
    synced = next(event for event in events if event.kind is Kind.RESPONSE and event.api == "SyncGroup")
    return move_behind(events, callback, synced)


def learn_of_members_late(events: list[Event]) -> Iterable[Event]:
    """The trace in which JoinGroup is responded to later, when the client has read the Metadata before it."""
    for event in events:
        is_joined = event.kind is Kind.RESPONSE and event.api == "JoinGroup"
        yield evolve(event, time=event.time + 2_000) if is_joined else event


def commit_later(events: list[Event]) -> Iterable[Event]:
    """What the client sends once its application has assigned partitions comes later than it could be under way."""
    assigned = next(event.sequence for event in reversed(events) if event.body.get("do") == "assign")
    return [evolve(each, time=each.time + 1_000 * (each.sequence > assigned)) for each in events]


def assign(sequence: int, topic: str, number: int) -> Change:
    """The response to SyncGroup with this number assigns one partition of a topic that is subscribed."""

    def change(events: list[Event]) -> Iterable[Event]:
        for event in events:
            body = {**event.body, "assignment": encode_assignment([(topic, number)])}
            yield evolve(event, body=body) if event.sequence == sequence else event

    return change


def revoke_sooner(events: list[Event]) -> Iterable[Event]:
    """The callback about revoked partitions comes before the JoinGroup of the new subscription."""
    revoked = next(event for event in events if event.api == "revoked")
    for event in events:
        if event.sequence == 74:
            yield evolve(revoked, time=event.time)
        if event is not revoked:
            yield event


def is_refused(event: Event) -> bool:
    """A response to FindCoordinator with an error."""
    return any(row["error_code"] for row in event.body.get("coordinators") or ())


def join_later(events: list[Event]) -> Iterable[Event]:
    """JoinGroup comes 100 ms later than the callback."""
    return [evolve(each, time=each.time + 100) if each.sequence >= 501 else each for each in events]


def fetch_on_an_older_connection(events: list[Event]) -> Iterable[Event]:
    """A Fetch after partitions were revoked comes on a connection that had others."""
    return [evolve(each, connection=4) if each.sequence in (147, 149) else each for each in events]


def end_later(events: list[Event]) -> Iterable[Event]:
    """The trace ends seven seconds later, in which nothing happens."""
    return [*events[:-1], evolve(events[-1], time=events[-1].time + 7_000)]


def serve_others(events: list[Event]) -> Iterable[Event]:
    """The records of one partition are told of as those of another."""
    for event in events:
        told = event.body["records"] if event.kind is Kind.POLL else []
        records = [[topic, 1 if number == 2 else number, offset] for topic, number, offset in told]
        yield evolve(event, body={**event.body, "records": records}) if records else event


def poll_instead_of_closing(events: list[Event]) -> Iterable[Event]:
    """The last command is to poll."""
    for event in events:
        yield evolve(event, body={**event.body, "do": "poll"}) if event.body.get("do") == "close" else event


CASES: list[tuple[str, str, Change]] = [
    ("no-coordinator", "HBT-01", without(lambda event: event.api == "FindCoordinator")),
    ("doubled-response", "HBT-01", without(lambda event: event.api == "doubled")),
    ("idle-static-member", "MEMBER-14", claim_another_id),
    ("silent-coordinator", "PREFETCH-03", without(lambda event: event.api in ("Heartbeat", "OffsetFetch"))),
    ("static-unsubscribe", "COOP-01", without(lambda event: event.body.get("do") == "unsubscribe")),
    ("offsets-by-topic-id", "MCOMMIT-19", without(lambda event: event.api == "OffsetFetch")),
    ("unsupported-command", "CALLBACK-11", carry_out_everything),
    ("fetch-during-a-seek", "POLL-02", without(lambda event: event.body.get("offset") == 45)),
    ("expired-session", "CALLBACK-14", be_in_one_generation),
    ("late-errors", "MEMBER-12", without(is_late)),
    ("silent-leave", "COOP-01", join_with_the_old_id),
    ("reset-while-joining", "MEMBER-34", without(lambda event: event.sequence == 140)),
    ("reset-while-joining", "CALLBACK-05", without(lambda event: event.body.get("do") == "subscribe")),
    ("subscribed-after-a-failed-heartbeat", "HBT-17", without(lambda event: event.body.get("do") == "subscribe")),
    ("overtaken-error", "MEMBER-12", without(lambda event: event.sequence in (264, 265))),
    ("error-of-an-older-generation", "MEMBER-13", without(lambda event: event.sequence in (119, 136))),
    ("seek-out-of-range", "POLL-11", without(lambda event: event.sequence == 249)),
    ("two-errors-of-one-membership", "CALLBACK-10", revoke_twice),
    ("seek-during-a-commit", "MCOMMIT-05", without(lambda event: event.api == "OffsetCommit")),
    ("fenced-in-an-older-generation", "HBT-10", without(lambda event: event.sequence in (272, 274))),
    ("unanswered-metadata", "PREFETCH-03", without(lambda event: event.sequence == 159)),
    ("commit-that-had-to-wait", "MCOMMIT-02", without(lambda event: event.sequence == 572)),
    ("hang-up-behind-a-fetch", "POLL-02", without(lambda event: event.api == "hangup")),
    ("without-callbacks", "POLL-10", say_of_driver(callbacks=["assigned"])),
    ("without-callbacks", "HBT-09", say_of_driver(poll_interval=True)),
    ("session-that-ran-out", "MEMBER-14", have_longer_sessions),
    ("fenced-while-joining", "MEMBER-08", without(lambda event: event.sequence == 244)),
    ("reset-before-the-callback", "MEMBER-07", without(lambda event: event.sequence == 256)),
    ("reset-and-a-lost-join", "MEMBER-14", without(lambda event: event.sequence == 277)),
    ("fenced-beside-a-reset", "MEMBER-12", without(lambda event: event.sequence == 38)),
    ("revoked-before-the-error", "CALLBACK-05", join_as_nobody),
    ("unread-error", "MEMBER-08", without(lambda event: event.sequence == 214)),
    ("late-leave", "HBT-09", have_longer_intervals),
    ("fenced-as-nobody", "MEMBER-08", without(lambda event: event.sequence == 78)),
    ("commit-from-before-a-seek", "MCOMMIT-01", commit_what_was_not_returned),
    ("unanswered-lookup", "HBT-05", without(lambda event: event.api == "FindCoordinator" and event.member == "A")),
    ("leave-behind-a-subscription", "HBT-09", without(lambda event: event.body.get("do") == "unsubscribe")),
    ("hang-up-of-full-buffers", "PREFETCH-03", without(lambda event: event.sequence == 84)),
    ("leave-without-a-connection", "HBT-06", without(lambda event: event.api == "drop")),
    ("expired-while-joining", "MEMBER-13", have_longer_sessions),
    ("unread-topic", "ASSIGN-03", learn_of_members_late),
    ("failed-unsubscribe", "PREFETCH-03", without(lambda event: event.body.get("do") == "unsubscribe")),
    ("commit-behind-an-assignment", "MCOMMIT-12", commit_later),
    ("unread-assignment", "COOP-01", without(lambda event: event.api == "hangup" and event.connection == 2)),
    ("revoked-beside-a-subscription", "CALLBACK-02", without(lambda event: event.sequence == 142)),
    ("metadata-beside-a-join", "MEMBER-08", without(lambda event: event.sequence == 79)),
    ("growth-told-while-joining", "MEMBER-21", without(lambda event: event.sequence == 52)),
    ("lost-behind-a-join", "MEMBER-13", join_later),
    ("offsets-refused-before-a-join", "MEMBER-38", without(lambda event: event.sequence in (403, 413, 439))),
    (
        "found-before-the-end",
        "PREFETCH-03",
        without(lambda event: event.api == "FindCoordinator" and is_refused(event)),
    ),
    ("held-up-in-a-poll", "HBT-09", have_longer_polls),
    ("read-nothing-before-a-poll", "MEMBER-13", without(lambda event: event.sequence == 101)),
    ("heartbeat-of-a-held-up-client", "MEMBER-12", without(lambda event: event.sequence == 532)),
    ("reset-after-a-refused-sync", "COOP-01", without(lambda event: event.sequence in (112, 121))),
    ("planned-before-more-metadata", "COOP-10", without(lambda event: event.sequence == 191)),
    ("offsets-of-the-same-generation", "MCOMMIT-19", without(lambda event: event.sequence == 342)),
    ("closed-after-a-long-poll", "CALLBACK-11", have_longer_polls),
    ("unknown-as-nobody", "MEMBER-07", without(lambda event: event.sequence == 324)),
    ("error-on-a-former-connection", "MEMBER-13", without(lambda event: event.sequence == 59)),
    ("revoked-before-an-error-is-read", "CALLBACK-05", without(lambda event: event.sequence == 82)),
    ("closed-while-joining", "CALLBACK-11", without(lambda event: event.sequence in (102, 104))),
    ("told-before-the-callback", "MEMBER-10", call_back_at_once),
    ("unsure-of-its-membership", "MEMBER-08", without(lambda event: event.sequence == 585)),
    ("refused-on-a-former-connection", "MEMBER-18", without(lambda event: event.sequence in (210, 223))),
    ("closed-without-a-join", "CALLBACK-11", without(lambda event: event.sequence == 325)),
    ("revoked-once-more", "CALLBACK-10", without(lambda event: event.sequence == 62)),
    ("idle-after-a-long-poll", "MEMBER-10", have_longer_polls),
    ("delivered-during-a-seek", "PREFETCH-03", without(lambda event: event.sequence == 546)),
    ("heartbeats-of-a-long-poll", "HBT-05", without(lambda event: event.sequence == 149)),
    ("outgrown-plan", "HBT-17", without(lambda event: event.sequence == 50)),
    ("led-before", "MEMBER-21", without(lambda event: event.sequence == 280)),
    (
        "outgrown-plan-of-a-leader",
        "CALLBACK-05",
        without(lambda event: event.api == "Metadata" and event.sequence > 30),
    ),
    ("left-after-a-long-poll", "HBT-09", have_longer_polls),
    ("static-in-a-long-poll", "MEMBER-10", have_longer_polls),
    ("static-rejoin-after-a-long-poll", "MEMBER-14", have_longer_polls),
    ("reset-beside-an-offset-fetch", "POLL-11", without(lambda event: event.sequence == 348)),
    ("sought-before-a-connection", "POLL-02", without(lambda event: event.sequence == 318)),
    ("idle-while-joining", "HBT-12", without(lambda event: event.sequence in (306, 312))),
    ("revoked-before-a-connection", "PREFETCH-08", fetch_on_an_older_connection),
    ("lost-beside-a-commit", "CALLBACK-07", without(lambda event: event.sequence == 85)),
    ("closed-beside-a-commit", "CALLBACK-07", poll_instead_of_closing),
    ("drained-one-by-one", "POLL-06", serve_others),
    ("returned-bit-by-bit", "POLL-05", end_later),
    ("drained-until-the-end", "PREFETCH-03", end_later),
    ("paused-while-others-are-drained", "PREFETCH-03", end_later),
    ("buffered-through-a-rebalance", "MCOMMIT-19", without(lambda event: event.kind is Kind.POLL)),
    ("subscribed-beside-a-lost-join", "MEMBER-27", refuse_the_join),
    ("growing-backoff", "PREFETCH-03", without(lambda event: event.api == "OffsetFetch" and event.time > 2_000)),
]
"""The name of a trace, the requirement that it seemed to violate, and the change after which it does."""


@pytest.mark.parametrize(("name", "requirement", "change"), CASES, ids=[f"{name}-{id}" for name, id, _ in CASES])
def test_what_a_client_did_is_no_violation(name: str, requirement: str, change: Change) -> None:
    header, stream = open_trace(DATA / f"{name}.jsonl.gz")
    events = list(stream)
    assert judge_client(header, events, "A", ClassicClient).violations == ()
    assert requirement in judge_client(header, change(events), "A", ClassicClient).violated


@pytest.mark.parametrize("error", [Error.FENCED_INSTANCE_ID, Error.NONE])
def test_a_commit_is_reported_unless_polls_tell_that_it_is_fenced(error: Error) -> None:
    header, stream = open_trace(DATA / "fenced-unawaited-commit.jsonl.gz")
    events = [each if each.api != "OffsetCommit" else with_commit_error(each, error) for each in stream]
    verdict = judge_client(header, events, "A", ClassicClient)
    assert ("MCOMMIT-14" in unusual_in(verdict)) is (error is Error.NONE)


def claim_later(events: list[Event]) -> Iterable[Event]:
    """JoinGroup comes two seconds later than it did."""
    return [evolve(each, time=each.time + 2_000) if each.sequence >= 167 else each for each in events]


def be_told_after_the_callback(events: list[Event]) -> Iterable[Event]:
    """The client is told of a rebalance only when it has called back."""
    told, called_back = (event for event in events if event.sequence in (263, 268))
    return move_behind(events, told, called_back)


def send_older_subscription(events: list[Event]) -> Iterable[Event]:
    """A JoinGroup has the subscription of one before it."""
    protocols = next(event for event in events if event.sequence == 345).body["protocols"]
    for event in events:
        yield evolve(event, body={**event.body, "protocols": protocols}) if event.sequence == 410 else event


REMARKS: list[tuple[str, str, Change]] = [
    ("claimed-before-the-error-is-read", "COOP-17", claim_later),
    ("refused-lookup-of-a-commit", "MCOMMIT-14", without(lambda event: event.sequence == 155)),
    ("told-of-a-rebalance-while-joining", "MCOMMIT-06", be_told_after_the_callback),
    ("found-by-an-earlier-lookup", "MEMBER-39", without(lambda event: event.sequence in (207, 210))),
    ("sticky-after-a-long-sync", "STICKY-18", send_older_subscription),
    ("told-on-a-former-connection", "MCOMMIT-06", without(lambda event: event.sequence == 350)),
    ("fenced-commit-of-a-dynamic-member", "MEMBER-24", without(lambda event: 33 < event.sequence < 871)),
    ("planned-by-older-metadata", "STICKY-03", without(lambda event: event.sequence == 330)),
]
"""The name of a trace, the recommendation that seemed not to be kept, and the change after which it is not."""


@pytest.mark.parametrize(("name", "requirement", "change"), REMARKS, ids=[row[0] for row in REMARKS])
def test_what_a_client_did_is_recommended(name: str, requirement: str, change: Change) -> None:
    header, stream = open_trace(DATA / f"{name}.jsonl.gz")
    events = list(stream)
    told, changed = (judge_client(header, each, "A", ClassicClient) for each in (events, list(change(events))))
    assert requirement not in unusual_in(told)
    assert requirement in unusual_in(changed)


def unusual_in(verdict: TraceVerdict) -> set[str]:
    """The recommendations that a client does not keep."""
    return {each.requirement for each in verdict.check_results if each.status is CheckStatus.UNUSUAL}


def with_commit_error(event: Event, error: Error) -> Event:
    """A response to OffsetCommit with this error, a request as it is."""
    if event.kind is not Kind.RESPONSE:
        return event
    topics = [
        {**topic, "partitions": [{**row, "error_code": int(error)} for row in topic["partitions"]]}
        for topic in event.body["topics"]
    ]
    return evolve(event, body={**event.body, "topics": topics})


def sync_another_generation(events: list[Event]) -> Iterable[Event]:
    """The second SyncGroup is for a generation of which no JoinGroup told."""
    for event in events:
        body = {**event.body, "generation_id": 2}
        yield evolve(event, body=body) if event.sequence == 41 else event


CONSEQUENCES: list[tuple[str, str, str, Change]] = [
    ("assigned-by-hand-while-joining", "MCOMMIT-12", "MCOMMIT-18", without(lambda event: event.sequence == 232)),
    ("joined-before-the-callback", "CALLBACK-02", "MCOMMIT-18", revoke_sooner),
    ("two-joins-at-once", "MEMBER-06", "MEMBER-08", without(lambda event: event.sequence == 178)),
    ("joined-with-a-lost-id", "MEMBER-13", "MEMBER-29", without(lambda event: event.api == "lost")),
    ("synced-twice", "MEMBER-16", "MCOMMIT-18", sync_another_generation),
    ("fetches-beside-a-foreign-topic", "CALLBACK-11", "PREFETCH-08", assign(290, "topic-5a7e4266", 0)),
]
"""The name of a trace, the requirement that it violates, another that seemed to be violated for that reason, and the
change after which it is."""


@pytest.mark.parametrize(
    ("name", "violated", "requirement", "change"), CONSEQUENCES, ids=[row[0] for row in CONSEQUENCES]
)
def test_a_consequence_is_no_violation(name: str, violated: str, requirement: str, change: Change) -> None:
    header, stream = open_trace(DATA / f"{name}.jsonl.gz")
    events = list(stream)
    assert judge_client(header, events, "A", ClassicClient).violated == {violated}
    assert requirement in judge_client(header, change(events), "A", ClassicClient).violated


def test_whoever_applies_a_wrong_assignment_in_part_returns_records_of_what_it_was_assigned() -> None:
    header, stream = open_trace(DATA / "applied-in-part.jsonl.gz")
    events = list(stream)
    assert judge_client(header, events, "A", ClassicClient).violated == set()
    assigned_another = assign(25, "topic-5a81ea06", 1)
    assert judge_client(header, assigned_another(events), "A", ClassicClient).violated == {"POLL-10"}


def test_who_names_nobody_is_told_of_no_membership() -> None:
    """A heartbeat without an id is refused beside the JoinGroup that gets one."""
    header, stream = open_trace(DATA / "heartbeat-as-nobody.jsonl.gz")
    events = list(stream)
    found, claimed = (
        judge_client(header, each, "A", ClassicClient).violated - {"ASSIGN-01", "PREFETCH-03"}  # records are left out
        for each in (events, claim_another_id(events))
    )
    assert found == {"HBT-02"} and {each for each in claimed if each.startswith("MEMBER-")}


@pytest.mark.parametrize(("late_ms", "is_excused"), [(0, True), (2_000, False)])
def test_a_join_is_dropped_for_an_error_that_was_under_way(late_ms: int, is_excused: bool) -> None:
    header, stream = open_trace(DATA / "late-errors.jsonl.gz")
    # Without the commands no poll shows that the client is held up.
    events = list(without(lambda event: event.api in ("OffsetCommit", "command"))(list(stream)))
    reset = next(event for event in events if event.body.get("error_code") == Error.ILLEGAL_GENERATION)
    member_id = next(event for event in events if event.sequence == reset.of).body["member_id"]
    joins = (event for event in events if event.api == "JoinGroup" and event.sequence > reset.sequence)
    join, joined = islice(joins, 2)
    join = evolve(join, time=join.time + late_ms, body={**join.body, "member_id": member_id})
    joined = evolve(joined, time=join.time)
    again = evolve(join, sequence=joined.sequence + 1)
    told = [event for event in events if event.sequence < join.sequence]
    verdict = judge_client(header, (*told, join, joined, again), "A", ClassicClient)
    assert ("MEMBER-08" not in verdict.violated) is is_excused


def test_two_joins_at_once_show_by_their_syncs() -> None:
    """Also where the second SyncGroup comes when the first one has its response."""
    header, stream = open_trace(DATA / "two-joins-at-once.jsonl.gz")
    events = list(stream)
    second = next(event for event in events if event.sequence == 178)
    kept = list(without(lambda event: event is second)(events))
    assert any(event.kind is Kind.RESPONSE and event.api == "SyncGroup" for event in kept[-10:])
    late = evolve(second, sequence=kept[-1].sequence + 1, time=kept[-1].time)
    assert judge_client(header, [*kept, late], "A", ClassicClient).violated == {"MEMBER-06"}
