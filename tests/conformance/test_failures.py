"""Failures lead with the wrong fields, name members by their labels and mark the wrong step."""

from dataclasses import replace

import pytest

from fencepost.conformance.analysis.failures import (
    MemberLabels,
    Origin,
    build_failure,
    describe_text,
    describe_violation,
    schedule_lines,
)
from fencepost.conformance.results import Failure
from fencepost.traces.events import Event, Kind, Order
from fencepost.traces.verdict import FieldDifference, Violation, violations_in
from tests.support.trace_builder import OneMemberTrace, sync_response

ORIGIN = Origin("t.jsonl", "")
VIOLATION = Violation(1, "g", "Heartbeat", ("error",), "", (), "heartbeat.stable", "", ("HB-05",))


def failures_of(trace: OneMemberTrace) -> list[Failure]:
    return [build_failure(trace.events, each, ORIGIN, replayed=False) for each in violations_in(trace.verdict())]


def test_a_wrong_error_shows_both_errors_and_the_guard_that_is_false() -> None:
    trace = OneMemberTrace(Order.TOTAL).form_stable_group()
    trace.heartbeat(100, 22)
    (failure,) = failures_of(trace)
    assert failure.title == "Heartbeat response has the wrong error_code"
    assert failure.differences == (FieldDifference("error_code", "NONE", "ILLEGAL_GENERATION"),)
    assert failure.guard == "the generation is not the group's"
    assert failure.rule == "heartbeat.stable: the group is stable"
    assert failure.state == "Stable, generation 1, members A, leader A"
    assert failure.schedule[failure.wrong_step - 1] == "at 100 ms A: Heartbeat v1 member_id=A, generation_id=1"


def test_a_wrong_value_shows_the_field_alone() -> None:
    trace = OneMemberTrace(Order.TOTAL)
    trace.join(10, 1)
    trace.sync(20, 1, sync_response(b"another"))
    (failure, *_) = failures_of(trace)
    assert failure.title == "SyncGroup response has the wrong assignment"
    assert [each.name for each in failure.differences] == ["assignment"]
    assert failure.guard == ""


def test_a_response_that_comes_too_late_says_by_how_much() -> None:
    trace = OneMemberTrace(Order.TOTAL).form_stable_group()
    request = trace.send_request(100, "Heartbeat", {"generation_id": 1, "member_id": "a"}, 1)
    trace.send_response(900, request, {"error_code": 0})
    (failure, *_) = failures_of(trace)
    assert failure.title == "Heartbeat response is too late"
    assert failure.differences == (FieldDifference("late", "100 ms at the latest", "900 ms, 800 ms late"),)


def test_members_have_their_labels_and_a_second_id_a_number() -> None:
    events = [
        Event(1, 0, 0, "B", Kind.REQUEST, "JoinGroup", 4, {"group_id": "g", "member_id": ""}),
        Event(2, 0, 0, "B", Kind.RESPONSE, "JoinGroup", 4, {"error_code": 79, "member_id": "x-1"}, of=1),
        Event(3, 9, 0, "B", Kind.REQUEST, "JoinGroup", 4, {"group_id": "g", "member_id": ""}),
        Event(4, 9, 0, "B", Kind.RESPONSE, "JoinGroup", 4, {"error_code": 79, "member_id": "x-2"}, of=3),
    ]
    topics = Event(0, 0, 0, "", Kind.INTERNAL, "topics", 0, {"topics": {"t": 1}, "ids": {"t": "0f-1"}})
    labels = MemberLabels([topics, *events])
    assert labels.rename("topics=[0f-1/0]") == "topics=[t/0]"
    assert labels.rename("members 'x-1', 'x-2', 'x-3'; B's id") == "members B, B.2, 'x-3'; B's id"
    assert labels.rename("FreshId(handle=4)") == "a new id for B"


def test_a_schedule_has_the_fields_that_differ_from_their_defaults() -> None:
    protocols = [{"name": "range", "metadata": b"m"}, {"name": "sticky", "metadata": b"m"}]
    join = {
        "group_id": "g",
        "session_timeout_ms": 900,
        "rebalance_timeout_ms": 5,
        "member_id": "",
        "protocols": protocols,
    }
    partitions = [{"partition_index": 3, "committed_offset": 7, "committed_metadata": "note"}]
    commit = {"group_id": "g", "member_id": "", "topics": [{"name": "t", "partitions": partitions}]}
    leave = {"group_id": "g", "members": [{"member_id": "a", "group_instance_id": "i"}]}
    events = [
        Event(1, 0, 0, "A", Kind.REQUEST, "JoinGroup", 5, {**join, "group_instance_id": "i"}),
        Event(2, 5, 0, "", Kind.FAULT, "restart", 0, {}),
        Event(3, 10, 0, "", Kind.REQUEST, "OffsetCommit", 6, commit),
        Event(4, 20, 0, "A", Kind.REQUEST, "LeaveGroup", 3, leave),
        Event(5, 30, 0, "A", Kind.REQUEST, "ListGroups", 4, {"states_filter": ["Empty"]}),
        Event(6, 40, 0, "A", Kind.REQUEST, "ListGroups", 4, {}),
    ]
    lines, place = schedule_lines(events, 5, MemberLabels(events))
    assert lines == (
        "at 0 ms A: JoinGroup v5 member_id='', group_instance_id='i', session_timeout_ms=900, "
        "rebalance_timeout_ms=5, protocols=[range, sticky]",
        "at 5 ms restart",
        "at 10 ms OffsetCommit v6 member_id='', topics=[t/3 at 7 with metadata 'note']",
        "at 20 ms A: LeaveGroup v3 members=[{member_id='a', group_instance_id='i'}]",
        "at 30 ms A: ListGroups v4 states_filter=['Empty']",
    )
    assert place == 5


def test_a_long_text_is_told_by_its_beginning() -> None:
    assert describe_text("m" * 40) == repr("m" * 40)
    assert describe_text("m" * 4_097) == "'mmmmmmmmmmmmmmmm'... (4,097 characters)"


@pytest.mark.parametrize(
    ("names", "title"),
    [
        ((), "Heartbeat has a wrong response"),
        (("response",), "Heartbeat has no response"),
        (("early", "error_code"), "Heartbeat response is too early"),
        (("late",), "Heartbeat response is too late"),
        (("error_code", "error_code"), "Heartbeat response has the wrong error_code"),
        (("member_id", "leader"), "Heartbeat response has the wrong member_id and leader"),
    ],
)
def test_titles(names: tuple[str, ...], title: str) -> None:
    differences = tuple(FieldDifference(name, "x", "y", str(n)) for n, name in enumerate(names))
    assert describe_violation(replace(VIOLATION, differences=differences)) == title
