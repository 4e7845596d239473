"""Who has which partitions, and for how long, as a recording shows it."""

from dataclasses import replace
from typing import Any

import pytest

from fencepost.model.assignors.consumer_protocol import encode_subscription
from fencepost.model.assignors.group import Subscription
from fencepost.model.errors import Error
from fencepost.traces.classic.client.plans import OwnershipHistory
from fencepost.traces.events import Kind, Lookahead
from fencepost.traces.history.recordings import Ownership, OwnershipEnd
from tests.support.member_recording import T0, T1, T2, MemberRecording, record_stable_member

B = encode_subscription(Subscription(("t",)))


def periods(recording: MemberRecording, history: OwnershipHistory | None = None) -> list[Ownership]:
    history = history or OwnershipHistory()
    found = [
        each
        for moment in Lookahead(recording.events).pair_operations()
        for each in history.on_event(moment.event, moment.operation)
    ]
    return [*found, *history.finish()]


def ends(recording: MemberRecording) -> list[tuple[tuple[str, ...], OwnershipEnd]]:
    return [(each.partitions, each.end) for each in periods(recording)]


ALL = ("t/0", "t/1", "t/2")


def test_an_eager_member_gives_everything_up_when_it_joins() -> None:
    recording = record_stable_member()
    brought = next(event for event in recording.events if event.api == "SyncGroup" and event.of is not None)
    joined = recording.join(generation=2)
    recording.sync((T0,), 2)
    first, second = periods(recording)
    assert first == Ownership(
        "g", "a", 1, ALL, brought.time, recording.events[joined].time, OwnershipEnd.JOINED, brought.sequence
    )
    assert (second.partitions, second.end, second.until) == (("t/0",), OwnershipEnd.TRACE, recording.now)


def test_a_cooperative_member_keeps_what_it_has_while_it_joins() -> None:
    recording = record_stable_member("cooperative-sticky")
    recording.join(generation=2, owned=(T0, T1, T2))
    synced = recording.sync((T0,), 2)
    first, second = periods(recording)
    assert (first.partitions, first.until, first.end) == (ALL, second.since, OwnershipEnd.REASSIGNED)
    assert second.since == recording.events[synced + 1].time


@pytest.mark.parametrize("error", [Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID])
def test_a_membership_that_is_over(error: Error) -> None:
    recording = record_stable_member("cooperative-sticky")
    recording.heartbeat(error=error)
    assert ends(recording) == [(ALL, OwnershipEnd.OVER)]


def test_a_rebalance_alone_ends_nothing() -> None:
    recording = record_stable_member()
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    assert ends(recording) == [(ALL, OwnershipEnd.TRACE)]


def test_a_member_that_leaves() -> None:
    recording = record_stable_member()
    recording.leave("a")
    assert ends(recording) == [(ALL, OwnershipEnd.LEFT)]


def test_a_member_that_a_generation_begins_without_had_it_until_it_was_heard_last() -> None:
    recording = record_stable_member()
    heard = recording.events[-2].time
    recording.wait(60_000)
    other: dict[str, Any] = {"member": "B", "connection": 2}
    body = {"member_id": "b", "protocols": [{"name": "range", "metadata": B}]}
    members = [{"member_id": "b", "metadata": B}]
    recording.exchange("JoinGroup", 5, body, {"error_code": 0, "member_id": "b", "members": members}, **other)
    (first,) = periods(recording)
    assert (first.until, first.end) == (heard, OwnershipEnd.EXPELLED)


def test_a_static_member_that_another_client_has_become() -> None:
    recording = record_stable_member()
    recording.events = [
        replace(event, body={**event.body, "group_instance_id": "i"}) if event.kind is Kind.REQUEST else event
        for event in recording.events
    ]
    body = {"member_id": "", "group_instance_id": "i", "protocols": [{"name": "range", "metadata": B}]}
    recording.exchange("JoinGroup", 5, body, {"error_code": 0, "member_id": "b", "members": []}, member="B")
    assert ends(recording) == [(ALL, OwnershipEnd.REPLACED)]


def test_only_chosen_groups_are_followed() -> None:
    recording = record_stable_member()
    assert periods(recording, OwnershipHistory(lambda group: group != "g")) == []
    assert len(periods(recording, OwnershipHistory(lambda group: group == "g"))) == 1


@pytest.mark.parametrize(("group", "end"), [(None, "gap"), ("g", "gap"), ("another", "trace")])
def test_a_gap(group: str | None, end: str) -> None:
    recording = record_stable_member()
    recording.lose_messages(group)
    assert ends(recording) == [(ALL, end)]


def test_an_assignment_without_partitions_is_no_ownership() -> None:
    recording = MemberRecording()
    recording.join()
    recording.sync(())
    assert periods(recording) == []
