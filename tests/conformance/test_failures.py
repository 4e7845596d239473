"""Failures lead with the wrong fields, name members by their labels and mark the wrong step."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.analysis.failures import (
    MemberLabels,
    Origin,
    build_failure,
    describe_text,
    describe_value,
    name_differences,
    schedule_lines,
)
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.scenarios.fetches import Producer
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Failure
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.play import play_scenario
from fencepost.conformance.subject import Scenario
from fencepost.model.errors import Error
from fencepost.traces.events import Event, Kind, Order
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import CheckResult, CheckStatus, FieldDifference, TraceVerdict, Violation, violations_in
from tests.support.faulty_coordinators import altering_coordinator, install
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


def test_a_check_of_a_field_shows_what_the_request_has_there() -> None:
    asked = {"group_id": "", "member_id": "nobody", "protocols": []}
    events = [
        Event(1, 0, 0, "A", Kind.REQUEST, "JoinGroup", 9, asked),
        Event(2, 1, 0, "A", Kind.RESPONSE, "JoinGroup", 9, {"error_code": 24, "member_id": "", "members": []}, of=1),
    ]
    check = CheckResult("JOIN-01", 1, CheckStatus.FAIL, "differs in member")
    failure = build_failure(events, check, ORIGIN, replayed=True)
    assert failure.title == "JoinGroup response has the wrong member_id"
    assert failure.differences == (FieldDifference("member_id", "'nobody'", "''"),)
    unknown = build_failure(events, replace(check, note="differs in generation"), ORIGIN, replayed=True)
    assert (unknown.title, unknown.differences) == ("differs in generation", ())


def test_a_check_of_a_field_that_only_responses_have_shows_the_row_without_it() -> None:
    partitions = [{"partition_index": 0, "metadata": "kept"}, {"partition_index": 1, "metadata": None}]
    body = {"error_code": 0, "topics": [{"name": "t", "partitions": partitions}]}
    events = [
        Event(1, 0, 0, "A", Kind.REQUEST, "OffsetFetch", 5, {"group_id": "g", "topics": None}),
        Event(2, 1, 0, "A", Kind.RESPONSE, "OffsetFetch", 5, body, of=1),
    ]
    check = CheckResult("COMMIT-16", 1, CheckStatus.FAIL, "differs in metadata")
    failure = build_failure(events, check, ORIGIN, replayed=True)
    assert failure.differences == (FieldDifference("metadata", "a text", "None"),)


def test_a_violation_without_values_shows_the_error_or_the_member_id() -> None:
    events = [
        Event(1, 0, 0, "A", Kind.REQUEST, "FindCoordinator", 4, {"key_type": 9}),
        Event(2, 1, 0, "A", Kind.RESPONSE, "FindCoordinator", 4, {"coordinators": [{"error_code": 0}]}, of=1),
    ]
    lookup = replace(VIOLATION, api="FindCoordinator", allowed=("INVALID_REQUEST",))
    failure = build_failure(
        events, CheckResult("FIND-07", 1, CheckStatus.FAIL, violation=lookup), ORIGIN, replayed=True
    )
    assert failure.title == "FindCoordinator response has the wrong error_code"
    assert failure.differences == (FieldDifference("error_code", "INVALID_REQUEST", "NONE"),)
    joined = replace(VIOLATION, api="JoinGroup", fields=("member",), allowed=("NONE, generation=1",))
    told = [replace(events[1], body={"error_code": 0, "member_id": "m"})]
    failure = build_failure(
        told, CheckResult("STATIC-24", 1, CheckStatus.FAIL, violation=joined), ORIGIN, replayed=True
    )
    assert failure.differences == (FieldDifference("member_id", "a new id", "'m'"),)


def test_metadata_that_is_no_subscription_is_shown() -> None:
    rows = [{"name": "range", "metadata": b"\0\0\0\0\0\0\xff\xff\xff\xff"}, {"name": "p", "metadata": b"\xff"}]
    assert describe_value("protocols", rows) == "[range, p with metadata 1 bytes ff]"


def test_a_response_that_is_late_and_wrong_is_told_by_what_is_wrong_in_it() -> None:
    late, other = FieldDifference("late", "100 ms at the latest", "900 ms"), FieldDifference("generation_id", "1", "0")
    check = CheckResult("GEN-01", 1, CheckStatus.FAIL, violation=replace(VIOLATION, differences=(late, other)))
    failure = build_failure([], check, ORIGIN, replayed=True)
    assert failure.title == "Heartbeat response has the wrong generation_id, and is too late"
    assert failure.differences == (other, late)


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


def test_a_static_member_that_others_are_told_of_has_its_label() -> None:
    join = {"group_id": "g", "member_id": "", "group_instance_id": "i"}
    listed = {"groups": [{"members": [{"member_id": "x-1", "group_instance_id": "i"}, {"member_id": "x-2"}]}]}
    events = [
        Event(1, 0, 0, "S", Kind.REQUEST, "JoinGroup", 5, join),
        Event(2, 5, 0, "", Kind.REQUEST, "DescribeGroups", 5, {"groups": ["g"]}),
        Event(3, 6, 0, "", Kind.RESPONSE, "DescribeGroups", 5, listed, of=2),
    ]
    assert MemberLabels(events).rename("members 'x-1', 'x-2'") == "members S, 'x-2'"


def test_a_schedule_has_the_fields_that_differ_from_their_defaults() -> None:
    protocols = [{"name": name, "metadata": b"\0\0\0\0\0\0\xff\xff\xff\xff"} for name in ("range", "sticky")]
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
        "at 40 ms A: ListGroups v4",
        "until 40 ms there is no response",
    )
    assert place == 5


def test_a_schedule_shows_the_fields_that_differ_between_its_requests() -> None:
    def heartbeat(sequence: int, group: str) -> tuple[Event, Event]:
        body = {"group_id": group, "member_id": "a", "generation_id": 0}
        asked = Event(sequence, sequence, 0, "A", Kind.REQUEST, "Heartbeat", 0, body)
        return asked, Event(sequence + 1, sequence, 0, "A", Kind.RESPONSE, "Heartbeat", 0, {"error_code": 0}, sequence)

    fetches = [
        Event(number, number, 0, "A", Kind.REQUEST, "OffsetFetch", 6, {"group_id": "g", "topics": topics})
        for number, topics in ((7, None), (8, []))
    ]
    row = {"partition_index": 0, "committed_offset": 7, "committed_leader_epoch": 5}
    commit = {"group_id": "g", "topics": [{"name": "t", "partitions": [row]}], "producer_epoch": 0}
    committed = Event(9, 9, 0, "A", Kind.REQUEST, "TxnOffsetCommit", 3, commit)
    events = [*heartbeat(1, "g"), *heartbeat(3, ""), *heartbeat(5, "h"), *fetches, committed]
    lines, _ = schedule_lines(events, 9, MemberLabels(events))
    assert [line.partition("A: ")[2] for line in lines] == [
        "Heartbeat v0 member_id='a', generation_id=0",
        "Heartbeat v0 member_id='a', group_id='', generation_id=0",
        "Heartbeat v0 member_id='a', group_id='h', generation_id=0",
        "OffsetFetch v6 topics=null",
        "OffsetFetch v6 topics=[]",
        "TxnOffsetCommit v3 topics=[t/0 at 7 of epoch 5], producer_epoch=0",
    ]


def test_a_failure_tells_nothing_of_other_groups() -> None:
    joins = [
        Event(number, number, number, "A", Kind.REQUEST, "JoinGroup", number, {"group_id": f"g-{number}"})
        for number in (1, 2)
    ]
    told = [
        Event(number + 2, number, number, "A", Kind.RESPONSE, "JoinGroup", number, {"member_id": f"a-{number}"}, number)
        for number in (1, 2)
    ]
    lookup = Event(5, 5, 3, "A", Kind.REQUEST, "FindCoordinator", 0, {"key": "g-2"})
    sync = Event(6, 6, 2, "A", Kind.REQUEST, "SyncGroup", 0, {"group_id": "g-2", "member_id": "a-2"})
    result = CheckResult("SYNC-11", 6, CheckStatus.FAIL, "wrong")
    failure = build_failure([*joins, *told, lookup, sync], result, Origin("", ""), replayed=True)
    assert [step.partition(" ms ")[2] for step in failure.schedule] == [
        "A: JoinGroup v2",
        "A: FindCoordinator v0 key='g-2'",
        "A: SyncGroup v0 member_id=A",
    ]
    assert failure.wrong_step == 3


def test_a_schedule_goes_on_to_the_response_of_a_request_that_waits() -> None:
    leave = Event(2, 50, 0, "B", Kind.REQUEST, "LeaveGroup", 0, {"group_id": "g", "member_id": "a"})
    parked = Event(1, 0, 0, "A", Kind.REQUEST, "SyncGroup", 0, {"group_id": "g", "member_id": "a"})
    answered = Event(3, 90, 0, "A", Kind.RESPONSE, "SyncGroup", 0, {"error_code": 25}, 1)
    later = Event(4, 95, 0, "B", Kind.REQUEST, "ListGroups", 0, {})
    lines, place = schedule_lines([parked, leave, answered, later], 1, MemberLabels([]))
    assert len(lines) == 2 and "LeaveGroup" in lines[1] and place == 1


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
    assert name_differences(VIOLATION.api, differences) == title


# --- Transactional offsets that a coordinator forgets long before their retention is over.

COMMITTED_AT_MS = 100_000
"""Long after the retention of an offset that was committed when the trace began."""
KEPT_MS = 600
"""How long the faulty coordinator keeps an offset of a transaction."""


class ForgetfulCoordinator(Coordinator):
    """Forgets the offsets of a group 600 ms after a transaction has ended."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.ended_at: int | None = None
        super().__init__(*given, **named)

    def handle(self, request: Request, now: int) -> list[Response]:
        if request.api == "EndTxn":
            self.ended_at = now
        elif self.ended_at is not None and now >= self.ended_at + KEPT_MS:
            for group in self._runtime.groups.values():
                group.offsets.clear()
        return super().handle(request, now)


async def commit_in_a_transaction(group: ScenarioContext) -> None:
    """Commit an offset in a transaction late in the trace, and fetch it 600 ms later."""
    await group.sleep(COMMITTED_AT_MS)
    producer = Producer(group)
    await producer.begin()
    await producer.commit(0, 70)
    await producer.end(committed=True)
    await group.fetch(stable=True)
    await group.sleep(KEPT_MS)
    await group.fetch(stable=True)


def verdict_on(coordinator: type[Coordinator]) -> TraceVerdict:
    """The verdict on the scenario, played on a coordinator that keeps offsets for a minute."""

    async def play() -> TraceVerdict:
        target = InProcessTarget(BUNDLED_SETTINGS, make_coordinator=coordinator)
        scenario = Scenario("forgotten", (), commit_in_a_transaction)
        return (await play_scenario(scenario, target, await target.open(), "g", grace=0)).verdict

    return run_virtual(play())


def test_a_transactional_offset_forgotten_after_600_ms_is_a_violation() -> None:
    assert COMMITTED_AT_MS > BUNDLED_SETTINGS.offsets_retention > KEPT_MS
    (violation,) = verdict_on(ForgetfulCoordinator).violations
    assert (violation.api, violation.fields) == ("OffsetFetch", ("offset",))


def test_the_bundled_coordinator_keeps_it() -> None:
    verdict = verdict_on(Coordinator)
    assert (verdict.violations, verdict.inconclusive) == ((), ())
    assert verdict.rules["fetch.offsets"] == 2


# --- An instance id that is let pass is charged to the requirement about it, by each rule that refuses it.

Patch = pytest.MonkeyPatch
Alteration = Callable[[Request, Response], Response]


def first_violation(patch: Patch, change: Alteration, scenario: str) -> Violation:
    """The first violation in a scenario on an altering coordinator, as if no scenario had checked anything."""
    install(patch, altering_coordinator(change))
    [chosen] = (each for each in ALL if each.name == scenario)
    run = run_virtual(BundledRun(Plan(BUNDLED), Profile()).play(chosen, "run"))
    return judge(run.header, [event for event in run.events if event.api != "check"]).violations[0]


def let_leave(refused: Error) -> Alteration:
    """An entry of LeaveGroup that is refused with this error succeeds."""

    def change(request: Request, response: Response) -> Response:
        if request.api != "LeaveGroup":
            return response
        rows = response.body.get("members") or ()
        changed = [{**row, "error_code": 0} if row["error_code"] == refused else row for row in rows]
        return replace(response, body={**response.body, "members": changed})

    return change


@pytest.mark.parametrize("error", [Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID])
def test_an_entry_with_the_wrong_instance_id(error: Error, monkeypatch: Patch) -> None:
    found = first_violation(monkeypatch, let_leave(error), "leave-with-another-instance-id")
    assert (found.api, found.fields, found.requirements) == ("LeaveGroup", ("entries",), ("LEAVE-15",))


def test_an_entry_without_an_instance_id_is_no_matter_of_instance_ids(monkeypatch: Patch) -> None:
    found = first_violation(monkeypatch, let_leave(Error.UNKNOWN_MEMBER_ID), "batch-names-a-member-twice")
    assert "LEAVE-15" not in found.requirements


def ignore_instance_ids(request: Request, response: Response) -> Response:
    """A Heartbeat with an instance id that is refused with UNKNOWN_MEMBER_ID succeeds."""
    is_named = request.api == "Heartbeat" and request.body.get("group_instance_id")
    if not is_named or response.body["error_code"] != Error.UNKNOWN_MEMBER_ID:
        return response
    return replace(response, body={**response.body, "error_code": 0})


def test_a_heartbeat_with_an_unknown_instance_id(monkeypatch: Patch) -> None:
    found = first_violation(monkeypatch, ignore_instance_ids, "unknown-instance-id")
    assert (found.rule, found.requirements) == ("heartbeat.unknown-member", ("STATIC-07",))


def refuse_old_leaders(request: Request, response: Response) -> Response:
    """A leader that asks in a version without instance ids is refused, as Apache Kafka before 3.3.2 does."""
    if request.api != "JoinGroup" or request.version >= 5 or not response.body["members"]:
        return response
    refusal = {"error_code": Error.UNSUPPORTED_VERSION, "generation_id": -1, "members": []}
    return replace(response, body={**response.body, **refusal, "protocol_name": "", "leader": ""})


def test_an_old_leader_of_a_static_member(monkeypatch: Patch) -> None:
    found = first_violation(monkeypatch, refuse_old_leaders, "old-leader-of-a-static-member")
    assert (found.api, found.requirements) == ("JoinGroup", ("JOIN-55",))
