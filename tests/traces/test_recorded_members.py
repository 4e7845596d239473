"""Members in recordings: what their requests to the coordinator show, and what they do not."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fencepost.conformance.cli import main
from fencepost.model.assignors.consumer_protocol import encode_subscription
from fencepost.model.assignors.group import Subscription, TopicPartition
from fencepost.model.errors import Error
from fencepost.traces.classic.client.client import MAX_MEMBERS, RecordedMembers
from fencepost.traces.classic.client.messages import error_in
from fencepost.traces.events import Event, Header, Kind, Lookahead, Order
from fencepost.traces.files.trace_files import TraceError, open_trace, write_trace
from fencepost.traces.importers.recordings import join_recordings
from fencepost.traces.judge.judge import judge
from fencepost.traces.pipeline.imports import import_location, recording_importer
from tests.support.altered_traces import altered_trace, write_in_parts
from tests.support.member_recording import RECORDED, T0, T1, T2, MemberRecording, record_stable_member


def test_a_member_that_does_as_it_should() -> None:
    recording = record_stable_member()
    recording.commit()
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.join(generation=2)
    recording.sync((T0, T1, T2), 2)
    recording.heartbeat(2)
    recording.leave("a")
    assert recording.kept() >= {"HBT-02", "MCOMMIT-03", "MEMBER-06", "MEMBER-08", "MEMBER-10", "WIRE-01"}


def test_a_heartbeat_of_a_generation_that_is_over() -> None:
    recording = record_stable_member()
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.join(generation=2)
    recording.sync((T0,), 2)
    recording.wait(2_000)
    recording.heartbeat(2)
    recording.wait(2_000)
    wrong = recording.heartbeat(1)
    ((found, events),) = recording.violations()
    assert (found.requirement, found.sequence) == ("HBT-02", wrong)
    assert found.group == "g" and found.title.startswith("A in group 'g': ")
    assert events[-1].sequence == wrong and events[0].api == "JoinGroup"


def test_a_member_id_that_the_coordinator_does_not_know_is_dropped() -> None:
    recording = record_stable_member()
    recording.heartbeat(error=Error.UNKNOWN_MEMBER_ID)
    recording.wait(2_000)
    wrong = recording.join(generation=2)
    assert recording.violated_requirements() == [("MEMBER-13", wrong)]


@pytest.mark.parametrize("error", [Error.NONE, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS])
def test_a_member_may_forget_its_id_for_a_reason_of_its_own(error: Error) -> None:
    recording = record_stable_member("cooperative-sticky")
    recording.heartbeat(error=error)
    recording.wait(2_000)
    recording.join("", generation=2)
    assert recording.violated_requirements() == []


def test_what_a_cooperative_member_has_is_in_its_join() -> None:
    recording = record_stable_member("cooperative-sticky")
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    wrong = recording.join(generation=2, owned=(T0,))
    assert recording.violated_requirements() == [("COOP-01", wrong)]


def test_a_member_may_have_refused_an_assignment_that_it_no_longer_wants() -> None:
    recording = MemberRecording("cooperative-sticky")
    recording.join(topics=("t", "u"))
    recording.sync((T0, ("u", 0)))
    recording.wait(2_000)
    recording.join(generation=2, topics=("t",))
    assert recording.violated_requirements() == []


def rejoin(recording: MemberRecording, **joined: Any) -> MemberRecording:
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.join(generation=2, **joined)
    return recording


B = encode_subscription(Subscription(("t",)))
PLANS = {
    "one that lacks a member": ({"a": (T0, T1)}, "MEMBER-08"),
    "one that gives a partition twice": ({"a": (T0, T1), "b": (T1, T2)}, "ASSIGN-02"),
    "one that is uneven": ({"a": (T0, T1, T2), "b": ()}, "RANGE-02"),
    "one that leaves a partition out": ({"a": (T0,), "b": (T2,)}, "ASSIGN-03"),
}


@pytest.mark.parametrize(("plan", "requirement"), PLANS.values(), ids=PLANS)
def test_a_plan(plan: Mapping[str, Sequence[TopicPartition]], requirement: str) -> None:
    recording = rejoin(record_stable_member(), others={"b": B})
    wrong = recording.sync((T0, T1), 2, plan=plan)
    assert (requirement, wrong) in recording.violated_requirements()


def test_the_partitions_that_a_leader_knows_are_those_that_it_gives_out() -> None:
    recording = rejoin(record_stable_member(), others={"b": B})
    recording.sync((T0, T1), 2, plan={"a": (T0, T1), "b": (T2,)})
    assert recording.kept() >= {"ASSIGN-03", "RANGE-01", "RANGE-02"}


def test_a_partition_is_withheld_from_others_while_a_member_claims_it() -> None:
    recording = rejoin(record_stable_member("cooperative-sticky"), owned=(T0, T1, T2), others={"b": B})
    recording.sync((T0, T1), 2, plan={"a": (T0, T1), "b": ()})
    assert recording.kept() >= {"COOP-09", "COOP-10"}


def test_nothing_is_said_of_a_plan_where_racks_count() -> None:
    rack = encode_subscription(Subscription(("t",), rack="r"))
    recording = rejoin(record_stable_member(), others={"b": rack})
    recording.sync((T0,), 2, plan={"a": (T0, T2), "b": (T1,)})
    assert "RANGE-01" not in recording.kept()


def test_a_member_that_is_told_to_join_and_only_sends_heartbeats() -> None:
    recording = record_stable_member("cooperative-sticky")
    rejoin(recording, owned=(T0, T1, T2), others={"b": B})
    recording.sync((T0, T1), 2, plan={"a": (T0, T1), "b": ()})
    recording.wait(15_000)
    recording.heartbeat(2)
    assert recording.violated_requirements() == []
    recording.wait(15_000)
    wrong = recording.heartbeat(2)
    assert recording.violated_requirements() == [("COOP-03", wrong)]


def test_a_member_that_is_heard_no_more_owes_nothing() -> None:
    recording = record_stable_member()
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.wait(600_000)
    recording.join("", generation=3, member="B", connection=2)
    assert recording.violated_requirements() == []


def test_a_member_is_followed_from_its_join_on() -> None:
    recording = MemberRecording()
    recording.heartbeat(4)
    recording.commit(3)
    recording.heartbeat(2)
    assert recording.violated_requirements() == []


@pytest.mark.parametrize("group", [None, "g"])
def test_nothing_is_known_after_a_gap(group: str | None) -> None:
    recording = record_stable_member()
    recording.lose_messages(group)
    recording.wait(5_000)
    recording.heartbeat(7)
    assert recording.violated_requirements() == []


def test_a_gap_in_another_group_does_not_matter() -> None:
    recording = record_stable_member()
    recording.lose_messages("another")
    recording.wait(5_000)
    wrong = recording.heartbeat(7)
    assert recording.violated_requirements() == [("HBT-02", wrong)]


def test_somebody_else_may_end_a_membership() -> None:
    recording = record_stable_member()
    recording.leave("a", connection=9)
    recording.wait(5_000)
    recording.commit()
    assert recording.violated_requirements() == []


def test_a_member_that_left_commits_nothing() -> None:
    recording = record_stable_member()
    recording.leave("a")
    recording.wait(5_000)
    wrong = recording.commit()
    assert recording.violated_requirements() == [("MCOMMIT-11", wrong)]


@pytest.mark.parametrize(
    ("error", "requirement"), [(Error.ILLEGAL_GENERATION, "MEMBER-12"), (Error.UNKNOWN_MEMBER_ID, "MEMBER-13")]
)
def test_a_member_that_goes_on_as_if_its_generation_were_not_over(error: Error, requirement: str) -> None:
    recording = record_stable_member()
    recording.heartbeat(error=error)
    for _ in range(6):
        recording.wait(1_000)
        recording.commit()
    assert {each for each, _ in recording.violated_requirements()} == {requirement}


def test_a_commit_of_nobody_is_none_of_a_member() -> None:
    recording = record_stable_member()
    recording.leave("a")
    recording.wait(5_000)
    recording.commit(-1, member_id="")
    assert recording.violated_requirements() == []


def test_other_kinds_of_groups_are_left_alone() -> None:
    recording = MemberRecording()
    recording.join(kind="connect", metadata=b"x")
    recording.wait(5_000)
    recording.heartbeat(7)
    assert recording.violated_requirements() == []


def test_a_message_that_cannot_be_read_ends_the_following() -> None:
    recording = record_stable_member()
    recording.add(Kind.REQUEST, "JoinGroup", 5, {"group_id": "g", "_findings": ["surplus bytes"], "_size": 9})
    recording.wait(5_000)
    recording.heartbeat(7)
    assert recording.violated_requirements() == []


def test_only_the_members_of_chosen_groups_are_followed() -> None:
    recording = record_stable_member()
    recording.wait(5_000)
    recording.heartbeat(7)
    assert len(list(recording.violations(RecordedMembers(RECORDED, lambda group: group == "g")))) == 1
    assert list(recording.violations(RecordedMembers(RECORDED, lambda group: group != "g"))) == []


def test_of_very_many_members_the_last_are_followed() -> None:
    first = record_stable_member()
    members, numbers = RecordedMembers(RECORDED), count(1)
    assert list(first.violations(members)) == []
    for _ in range(MAX_MEMBERS):
        (join,) = [event for event in first.events if event.sequence == 2]
        other = replace(join, member=f"other {next(numbers)}")
        for moment in Lookahead([other]).pair_operations():
            assert list(members.on_event(moment.event, moment.operation)) == []
    late = MemberRecording()
    late.wait(9_000)
    late.heartbeat(7)
    assert list(late.violations(members)) == []


def test_a_protocol_named_twice_is_seen_in_each_member() -> None:
    recording = record_stable_member()
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.strategy = "roundrobin"
    wrong = recording.join(generation=2)
    assert recording.violated_requirements() == [("MEMBER-04", wrong)]


# --- The errors of responses after which a client waits before it repeats a request.

ERROR = int(Error.UNSTABLE_OFFSET_COMMIT)
TOPICS = [{"name": "t", "partitions": [{"error_code": 0}, {"error_code": ERROR}]}]


@pytest.mark.parametrize(
    "body",
    [
        {"error_code": ERROR},
        {"topics": TOPICS},
        {"error_code": 0, "topics": TOPICS},
        {"groups": [{"group_id": "g", "error_code": ERROR, "topics": []}]},
        {"groups": [{"group_id": "g", "error_code": 0, "topics": TOPICS}]},
        {"coordinators": [{"key": "g", "error_code": ERROR}]},
    ],
)
def test_an_error_is_seen_wherever_a_version_of_a_response_has_it(body: dict[str, Any]) -> None:
    response = Event(sequence=1, time=0, connection=1, member="A", kind=Kind.RESPONSE, api="any", version=0, body=body)
    assert error_in(response) == ERROR


def test_a_response_without_an_error_has_none() -> None:
    body = {"error_code": 0, "topics": [{"name": "t", "partitions": [{"error_code": 0}]}]}
    response = Event(sequence=1, time=0, connection=1, member="A", kind=Kind.RESPONSE, api="any", version=0, body=body)
    assert error_in(response) == 0


# --- The recordings of several recorders are one trace: that of a recorder that sees everything.

BEGAN = datetime(2026, 1, 2, tzinfo=UTC)


def client_trace(seed: int) -> tuple[Header, Sequence[Event]]:
    """A trace as clients see it."""
    header, events = altered_trace(4 * seed + 3)
    assert header.order is Order.INTERVALS
    return header, events


def record_apart(folder: Path, header: Header, events: Sequence[Event], clocks: Sequence[int]) -> list[Path]:
    """The trace as several recorders see it, each some members, with clocks that are so many milliseconds fast."""
    members = sorted({event.member for event in events if event.kind is Kind.REQUEST})
    recorders: dict[int, int] = {}
    for event in events:
        known = recorders.get(-1 if event.of is None else event.of)
        mine = members.index(event.member) % len(clocks) if event.member in members else 0
        recorders[event.sequence] = mine if known is None else known
    return [
        write_recording(
            folder, header, [event for event in events if recorders[event.sequence] == number], number, clock
        )
        for number, clock in enumerate(clocks)
    ]


def write_recording(folder: Path, header: Header, events: Sequence[Event], number: int, clock: int) -> Path:
    """What one recorder writes."""
    first = events[0].time
    began = BEGAN + timedelta(milliseconds=first + clock)
    told = {"recording": f"r{number}", "part": "1", "began": began.isoformat(timespec="milliseconds")}
    path = folder / f"{number}.jsonl"
    shifted = [replace(event, time=event.time - first) for event in events]
    write_trace(path, replace(header, implementation=told), shifted)
    return path


def operations(events: Sequence[Event]) -> list[tuple[object, ...]]:
    """The requests with their responses, in the order of the requests."""
    responses = {event.of: event.body for event in events if event.kind is Kind.RESPONSE}
    requests = (event for event in events if event.kind is Kind.REQUEST)
    return sorted((repr((each.api, each.body, responses.get(each.sequence))),) for each in requests)


def test_joined_recordings_are_the_trace_of_one_recorder(tmp_path: Path) -> None:
    violations = Counter[str]()
    for seed in range(6):
        header, events = client_trace(seed)
        wrong = next(event for event in events if event.kind is Kind.RESPONSE and event.body.get("error_code") == 23)
        if seed % 2:
            fenced = replace(wrong, body={**wrong.body, "error_code": 82})
            events = [fenced if event is wrong else event for event in events]
        (tmp_path / str(seed)).mkdir()
        join_recordings(record_apart(tmp_path / str(seed), header, events, (0, 0)), tmp_path / f"{seed}.jsonl", 0)
        joined, lines = open_trace(tmp_path / f"{seed}.jsonl")
        found = list(lines)
        assert operations(found) == operations(events)
        assert [each.sequence for each in found] == list(range(len(found)))
        for name, verdict in (("joined", judge(joined, found)), ("whole", judge(header, list(events)))):
            violations.update(f"{name} {seed} {each.requirements}" for each in verdict.violations)
    told = {name.removeprefix("joined ") for name in violations if name.startswith("joined")}
    assert told == {name.removeprefix("whole ") for name in violations if name.startswith("whole")} and told


@pytest.mark.parametrize("seed", range(4))
def test_clocks_that_differ_make_no_violation(seed: int, tmp_path: Path) -> None:
    header, events = client_trace(seed)
    if judge(header, list(events)).violations:
        pytest.skip("the trace has violations")
    skew = random.Random(seed).randint(1, 5)
    join_recordings(record_apart(tmp_path, header, events, (0, skew)), tmp_path / "joined.jsonl", skew)
    joined, found = open_trace(tmp_path / "joined.jsonl")
    assert joined.grace == header.grace + 2 * (skew + 1)
    assert judge(joined, list(found)).violations == ()


def test_a_request_is_placed_early_and_a_response_late(tmp_path: Path) -> None:
    header, events = client_trace(0)
    join_recordings(record_apart(tmp_path, header, events, (0, 0)), tmp_path / "joined.jsonl", 7)
    joined = list(open_trace(tmp_path / "joined.jsonl")[1])
    lengths = []
    for found in (events, joined):
        sent = {event.sequence: event.time for event in found if event.kind is Kind.REQUEST}
        lengths.append(sorted(event.time - sent[event.of] for event in found if event.kind is Kind.RESPONSE))  # type: ignore[index]
    assert [each + 2 * (7 + 1) for each in lengths[0]] == lengths[1]


def test_rotated_parts_are_joined(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    header, events = client_trace(1)
    told = {"began": BEGAN.isoformat()}
    parts = write_in_parts(tmp_path, header, events, 3)
    for part in parts:
        found, lines = open_trace(part)
        kept = list(lines)
        write_trace(part, replace(found, implementation={**found.implementation, **told}), kept)
    made = import_location(recording_importer(), tmp_path, tmp_path_factory.mktemp("made"))
    assert operations(list(open_trace(made)[1])) == operations(events)
    with pytest.raises(TraceError, match="part 3 of a recording does not follow"):
        join_recordings([parts[0], parts[2]], tmp_path / "x.jsonl")


def test_what_cannot_be_joined_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, events = client_trace(0)
    one, other = record_apart(tmp_path, header, events, (0, 0))
    found = open_trace(other)[0]
    for implementation, line in (
        ({**found.implementation, "cluster": "x"}, "a recording of another cluster"),
        ({**found.implementation, "settings": "assumed"}, "give both the same profile"),
        ({"recording": "x"}, "does not tell when the recording began"),
        ({}, "these can be joined"),
    ):
        write_trace(other, replace(found, implementation=implementation), [])
        with pytest.raises(TraceError, match=line):
            join_recordings([one, other], tmp_path / "joined.jsonl")
    assert main(["import", "recordings", str(one), "-o", str(tmp_path / "out.jsonl")]) == 0
    assert "events from 1 recordings" in capsys.readouterr().err
