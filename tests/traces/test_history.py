"""The history of groups: from the model, from messages alone and from logs, equal where these show the same."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost import run
from fencepost.traces.classic.history import HistoryRecorder, StateHistory
from fencepost.traces.events import Event, Header, Kind, Lookahead, Order
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.history.builder import (
    MAX_PAST_MEMBERS,
    MAX_REBALANCES,
    CauseKind,
    ChangeCause,
    GroupTimeline,
    HoldKind,
    LongestKept,
    TimelineBuilder,
    TraceHistory,
)
from fencepost.traces.importers.broker_log import import_log
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.search.configuration import Path as ModelPath
from tests.support.trace_builder import GRACE, SETTINGS, OneMemberTrace, join_body

DATA = Path(__file__).parent / "data"
MOVING = ("Preparing", "Completing")
SCENARIOS = ["JOIN-31", "JOIN-4?", "SYNC-1?", "LEAVE-0?", "TIMER-*", "STATIC-02", "HB-*"]
MakeRecorder = Callable[[str, Header], HistoryRecorder]


class MessagesAlone(HistoryRecorder):
    """Tells everything by messages, as if the model followed no group."""

    def note_following(self, name: str, judge: Judge) -> None:
        self.history_of(name)

    def on_step(self, group: str, step: ModelPath) -> None:
        pass


def tell(header: Header, events: Sequence[Event], make: MakeRecorder = HistoryRecorder) -> TraceHistory:
    return tell_with_states(header, events, make)[0]


def tell_with_states(
    header: Header, events: Sequence[Event], make: MakeRecorder = HistoryRecorder
) -> tuple[TraceHistory, StateHistory]:
    recorder, states = make("a trace", header), StateHistory()
    judge = Judge(header, on_step=recorder.on_step, on_advance=states.record_state)
    for moment in Lookahead(events).pair_operations():
        recorder.before_event(moment, judge)
        judge.on_event(moment.event, moment.operation)
        recorder.after_event(moment, judge)
    judge.finish()
    return recorder.build(), states


def only_group(history: TraceHistory) -> GroupTimeline:
    (timeline,) = history.groups
    return timeline


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Header, list[Event]]]:
    """The traces of scenarios of the bundled coordinator, by name."""
    folder = tmp_path_factory.mktemp("traces")
    run("bundled", only=SCENARIOS, traces=folder)
    opened = {path.stem: open_trace(path) for path in sorted(folder.iterdir())}
    return {name: (header, list(events)) for name, (header, events) in opened.items()}


def settled(timeline: GroupTimeline) -> list[tuple[int | None, int | None]]:
    return [(each.generation, each.members) for each in timeline.rebalances if each.phase == "Stable"]


def test_histories_have_the_rebalances_that_the_judge_sees(traces: dict[str, tuple[Header, list[Event]]]) -> None:
    seen = 0
    for name, (header, events) in traces.items():
        history, states = tell_with_states(header, events)
        for timeline in history.groups:
            changes = [each for each in states.state_changes if each.group == timeline.group]
            expected = [each for before, each in pairwise(changes) if each.phase == "Stable" and before.phase in MOVING]
            assert settled(timeline) == [(each.generation, each.members) for each in expected], name
            seen += len(expected)
    assert seen > 50


def test_times_are_in_order_and_within_the_trace(traces: dict[str, tuple[Header, list[Event]]]) -> None:
    for name, (header, events) in traces.items():
        for timeline in tell(header, events).groups:
            for each in timeline.rebalances:
                ended = timeline.last if each.ended is None else each.ended
                joined = ended if each.joined is None else each.joined
                assert timeline.first <= each.began <= joined <= ended <= events[-1].time, name
                assert all(each.began <= time <= joined for _, time in each.back), name


def test_times_hold_although_steps_are_settled_late(traces: dict[str, tuple[Header, list[Event]]]) -> None:
    """Seen by clients, much stays possible for long; a step still has the time of its request, or of its timer."""
    same = 0
    for name in ("silence-ends-a-session", "leader-rejoins-in-stable", "rebalance-timeout-drops-the-absent"):
        header, events = traces[name]
        seen_by_clients = replace(header, order=Order.INTERVALS, clock="wall", grace=100)
        told = {each.group: each for each in tell(seen_by_clients, events).groups}
        for timeline in tell(header, events).groups:
            for one, other in zip(timeline.rebalances, told[timeline.group].rebalances, strict=True):
                assert abs(one.began - other.began) <= 100, name
                assert one.ended is None or other.ended is None or abs(one.ended - other.ended) <= 100, name
                same += 1
    assert same == 6


def test_a_capture_of_real_clients_has_exact_times(tmp_path: Path) -> None:
    from fencepost.traces.importers.packet_capture import CaptureSource, import_capture

    import_capture(CaptureSource([DATA / "kafka.pcap"], frozenset({9092})), tmp_path / "trace.jsonl")
    header, events = open_trace(tmp_path / "trace.jsonl")
    told = only_group(tell(header, list(events)))
    assert [(each.generation, each.began, each.ended) for each in told.rebalances] == [
        (1, 68, 1_328),
        (2, 3_612, 3_816),
        (3, 3_980, 4_060),
    ]
    assert [each.cause.kind for each in told.rebalances] == [CauseKind.NOT_SHOWN, CauseKind.LEFT, CauseKind.CAME]
    assert {(each.topic, each.committed, each.lag) for each in told.partitions} == {("orders", 25, None)}


def test_messages_alone_tell_the_same_rebalances(traces: dict[str, tuple[Header, list[Event]]]) -> None:
    """Generations that begin anew after a restart are out of their reach: without the model nothing tells of it."""
    same = 0
    for name, (header, events) in traces.items():
        if any(event.api == "restart" for event in events):
            continue
        told = {each.group: each for each in tell(header, events, MessagesAlone).groups}
        for timeline in tell(header, events).groups:
            generations = [each.generation for each in timeline.rebalances if each.joined is not None]
            if generations:
                others = told[timeline.group].rebalances
                assert [each.generation for each in others if each.joined is not None] == generations, name
                same += 1
    assert same > 50


def test_a_member_that_falls_silent_is_named_with_its_timeout(traces: dict[str, tuple[Header, list[Event]]]) -> None:
    timeline = only_group(tell(*traces["silence-ends-a-session"]))
    first, second = timeline.rebalances
    (member,) = timeline.past_members
    assert first.cause.kind is CauseKind.CAME and first.came == (member.member,)
    assert second.cause == ChangeCause(CauseKind.SESSION, (member.member,), 1_500) == member.end
    assert (second.phase, timeline.phase, timeline.members) == ("Empty", "Empty", ())
    assert timeline.departures == ((CauseKind.SESSION, 1),)


def test_a_member_that_does_not_come_back_holds_the_join_phase_up(
    traces: dict[str, tuple[Header, list[Event]]],
) -> None:
    timeline = only_group(tell(*traces["rebalance-timeout-drops-the-absent"]))
    (absent,) = timeline.past_members
    rebalance = timeline.rebalances[-1]
    assert rebalance.join_hold is not None and rebalance.joined is not None
    assert (rebalance.join_hold.kind, rebalance.join_hold.members) == (HoldKind.GONE, (absent.member,))
    assert rebalance.join_hold.waited == rebalance.joined - rebalance.began == 4_000
    assert absent.end == ChangeCause(CauseKind.NOT_BACK, (absent.member,), 4_000)


def test_the_last_to_join_and_a_silent_leader_are_named(traces: dict[str, tuple[Header, list[Event]]]) -> None:
    timeline = only_group(tell(*traces["leader-rejoins-in-stable"]))
    leader, follower = (each.member for each in timeline.members)
    rebalance = timeline.rebalances[-1]
    assert rebalance.cause == ChangeCause(CauseKind.REJOINED, (leader,))
    assert rebalance.join_hold is not None and rebalance.sync_hold is not None
    assert (rebalance.join_hold.kind, rebalance.join_hold.members) == (HoldKind.LAST_TO_JOIN, (follower,))
    assert rebalance.ended is None and timeline.open_rebalance == rebalance
    assert (rebalance.sync_hold.kind, rebalance.sync_hold.members) == (HoldKind.AWAITED, (leader,))


def test_the_initial_delay_of_the_broker_is_no_members_fault(traces: dict[str, tuple[Header, list[Event]]]) -> None:
    first, *_ = only_group(tell(*traces["leader-rejoins-in-stable"])).rebalances
    assert first.join_hold is not None and first.join_hold.kind is HoldKind.INITIAL_DELAY


def test_a_static_member_that_comes_back_is_replaced_and_not_gone(
    traces: dict[str, tuple[Header, list[Event]]],
) -> None:
    timeline = only_group(tell(*traces["replacement-has-a-new-id"]))
    (before,), (after,) = timeline.past_members, timeline.members
    assert before.end == ChangeCause(CauseKind.REPLACED, (before.member,))
    assert before.instance == after.instance is not None and before.member != after.member


# --- what a trace does not show ---------------------------------------------------------------------------------


def test_a_gap_ends_what_is_known() -> None:
    trace = OneMemberTrace(Order.INTERVALS).form_stable_group()
    trace.add_event(Kind.INTERNAL, 5_000, "unknown", {"reason": "bytes are missing"})
    trace.heartbeat(6_000, 0)
    timeline = only_group(tell(Header("test", trace.order, "wall", SETTINGS, GRACE), trace.events))
    assert (5_000, "bytes are missing") in timeline.limits
    assert [(span.phase, span.until) for span in timeline.spans if not span.phase] == [("", 6_001)]
    assert (timeline.phase, timeline.generation) == ("Stable", 1)  # the heartbeat shows it again


def test_a_trace_from_the_middle_says_who_has_not_come_back() -> None:
    """The model does not know the group; the messages show who was told to join again and did not."""
    trace = OneMemberTrace(Order.INTERVALS)
    trace.add_event(Kind.INTERNAL, 0, "unknown", {"reason": "the recording begins"})
    for time, member in ((10, "a"), (20, "b"), (30, "c")):
        trace.heartbeat(time, 0, generation=7, member=member)
    trace.send_request(1_000, "JoinGroup", join_body("a"), 2)
    trace.heartbeat(1_200, 27, generation=7, member="b")
    trace.heartbeat(1_300, 27, generation=7, member="c")
    trace.send_request(1_400, "JoinGroup", join_body("c"), 2)
    trace.heartbeat(4_200, 27, generation=7, member="b")
    history = tell(Header("test", trace.order, "wall", SETTINGS, GRACE), trace.events)
    rebalance = only_group(history).open_rebalance
    assert rebalance is not None and rebalance.join_hold is not None
    assert (rebalance.began, rebalance.old_generation) == (1_000, 7)
    assert rebalance.cause == ChangeCause(CauseKind.REJOINED, ("a",))
    assert (rebalance.join_hold.kind, rebalance.join_hold.members) == (HoldKind.AWAITED, ("b",))
    assert any("begins in the middle" in limit for limit in history.limits)


def test_a_group_that_the_judge_gives_up_is_told_on_by_its_messages() -> None:
    trace = OneMemberTrace(Order.INTERVALS).form_stable_group()
    unanswered = trace.send_request(100, "Heartbeat", {"generation_id": 1, "member_id": "a"}, 1)
    trace.add_event(Kind.FAULT, 110, "closed", {}, of=unanswered)
    trace.join(5_000, 2, "a")
    trace.sync(5_020, 2, {"error_code": 0, "assignment": b"plan"})
    header = Header("test", trace.order, "wall", SETTINGS, GRACE)
    timeline = only_group(tell(header, trace.events))
    assert any("told by its messages alone" in limit for _, limit in timeline.limits)
    assert settled(timeline) == [(1, 1), (2, 1)]


def test_the_header_says_how_a_trace_was_seen() -> None:
    trace = OneMemberTrace(Order.INTERVALS).form_stable_group()
    header = Header("test", trace.order, "wall", SETTINGS, GRACE, {"began": "2026-11-22T05:19:02.802+00:00"})
    history = tell(header, trace.events)
    assert (history.kind, history.began) == ("clients", "2026-11-22T05:19:02.802+00:00")
    assert any("connections that were recorded" in limit for limit in history.limits)
    assert tell(replace(header, order=Order.TOTAL), trace.events).kind == "coordinator"


# --- logs ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["kafka-3.log", "kafka-4.log"])
def logged(request: pytest.FixtureRequest, tmp_path: Path) -> TraceHistory:
    import_log([DATA / request.param], tmp_path / "trace.jsonl")
    header, events = open_trace(tmp_path / "trace.jsonl")
    return tell(header, list(events))


def group_named(history: TraceHistory, start: str) -> GroupTimeline:
    return next(each for each in history.groups if each.group.startswith(start))


def test_a_log_tells_generations_and_who_came_and_left(logged: TraceHistory) -> None:
    demo = group_named(logged, "demo-")
    assert logged.kind == "log" and (demo.rebalance_count, demo.generation) == (6, 6)
    causes = [each.cause.kind for each in demo.rebalances]
    assert causes == [CauseKind.CAME, CauseKind.LEFT, CauseKind.CAME, *[CauseKind.LEFT] * 3]
    assert [each.members for each in demo.rebalances][:5] == [3, 2, 3, 2, 1]
    assert demo.departures == ((CauseKind.LEFT, 4),) and demo.members == ()
    assert {each.end.kind for each in demo.past_members if each.end is not None} == {CauseKind.LEFT}


def test_a_log_tells_sessions_and_who_held_a_rebalance_up(logged: TraceHistory) -> None:
    group = group_named(logged, "leave-in-stable")
    assert sorted(group.departures) == [(CauseKind.LEFT, 1), (CauseKind.SESSION, 1)]
    hold = group.rebalances[-1].join_hold
    assert hold is not None and hold.kind is HoldKind.GONE and len(hold.members) == 1
    unsynced = group_named(logged, "static-member-joins-in-one-step").rebalances[0].sync_hold
    assert unsynced is not None and (unsynced.kind, len(unsynced.members)) == (HoldKind.NO_SYNC, 1)


def tell_lines(
    lines: list[str], folder: Path, coordinator: str = "[GroupCoordinator 1]:", seconds: int = 0
) -> GroupTimeline:
    """The history of the only group in these lines of a log, so many seconds apart; each of them is known."""
    log = folder / "server.log"
    log.write_text(
        "".join(f"[2026-11-22 03:56:{n * seconds:02},000] INFO {coordinator} {line}\n" for n, line in enumerate(lines))
    )
    assert import_log([log], folder / "trace.jsonl").unknown == 0
    header, events = open_trace(folder / "trace.jsonl")
    return only_group(tell(header, list(events)))


@pytest.mark.parametrize(
    ("coordinator", "names"), [("[GroupCoordinator 1]:", "Set(a-1, b-2)"), ("[GroupCoordinator id=1]", "[a-1, b-2]")]
)
def test_lines_name_those_that_did_not_come_back(coordinator: str, names: str, tmp_path: Path) -> None:
    reason = "removing member z on heartbeat expiration" + ("." if "id=" in coordinator else "")
    tail = " " if "id=" in coordinator else " (__consumer_offsets-1) "
    end = "." if "id=" in coordinator else ""
    lines = [
        f"Preparing to rebalance group g in state X with old generation 4{tail}(reason: {reason}){end}",
        f"Group g removed dynamic members who haven't joined: {names}",
        f"Stabilized group g generation 5{tail}with 2 members{end}",
    ]
    (rebalance,) = tell_lines(lines, tmp_path, coordinator, seconds=20).rebalances
    assert rebalance.cause == ChangeCause(CauseKind.SESSION, ("z",))
    assert rebalance.join_hold is not None and rebalance.join_hold.waited == 40_000
    assert (rebalance.join_hold.kind, rebalance.join_hold.members) == (HoldKind.GONE, ("a-1", "b-2"))
    assert [cause.kind for _, cause in rebalance.gone] == [CauseKind.NOT_BACK] * 2


def test_a_group_has_no_members_though_the_last_one_is_removed_a_line_later(tmp_path: Path) -> None:
    preparing = "Preparing to rebalance group g in state PreparingRebalance with old generation"
    old, none = "(__consumer_offsets-1)", "client reason: not provided"
    lines = [
        "Dynamic member with unknown member id joins group g in Empty state. Created a new member id a-1 and request "
        "the member to rejoin with this id.",
        f"{preparing} 3 {old} (reason: Adding new member a-1 with group instance id None; {none})",
        f"Stabilized group g generation 4 {old} with 2 members",
        f"{preparing} 4 {old} (reason: Removing member b-2 on LeaveGroup; {none})",
        f"Group g with generation 5 is now empty {old}",
        "Member MemberMetadata(memberId=a-1, groupInstanceId=None, clientId=a, sessionTimeoutMs=6000) has left group g "
        f"through explicit `LeaveGroup`; {none}",
    ]
    history = tell_lines(lines, tmp_path)
    assert [(each.generation, each.members, each.phase) for each in history.rebalances][-1] == (5, None, "Empty")
    assert [(each.member, each.end) for each in history.past_members] == [
        ("a-1", ChangeCause(CauseKind.LEFT, ("a-1",)))
    ]


# --- offsets ------------------------------------------------------------------------------------------------------


def commit_events(trace: OneMemberTrace) -> None:
    rows = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 25, "committed_metadata": None}]}]
    accepted = [{"name": "t", "partitions": [{"partition_index": 0, "error_code": 0}]}]
    body = {"generation_id_or_member_epoch": 1, "member_id": "a", "topics": rows}
    trace.exchange(50, "OffsetCommit", body, {"topics": accepted}, 5)


def test_lag_is_told_where_the_end_of_the_log_is_known() -> None:
    trace = OneMemberTrace(Order.INTERVALS).form_stable_group()
    commit_events(trace)
    header = Header("test", trace.order, "wall", SETTINGS, GRACE)
    (partition,) = only_group(tell(header, trace.events)).partitions
    assert (partition.committed, partition.log_end, partition.lag) == (25, None, None)
    row = {"partition_index": 0, "error_code": 0, "high_watermark": 40}
    asked = {"topics": [{"topic": "t", "partitions": [{"partition": 0}]}]}
    trace.exchange(60, "Fetch", asked, {"responses": [{"topic": "t", "partitions": [row]}]}, 11)
    (partition,) = only_group(tell(header, trace.events)).partitions
    assert (partition.topic, partition.committed, partition.log_end, partition.lag) == ("t", 25, 40, 15)


# --- bounds -------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 20)))
def test_the_longest_are_kept_in_their_order(lengths: list[int]) -> None:
    kept: LongestKept[int] = LongestKept(5)
    for place, length in enumerate(lengths):
        kept.add(length, place)
    best = sorted(range(len(lengths)), key=lambda place: (-lengths[place], place))[:5]
    assert kept.values() == sorted(best)
    assert (kept.count, kept.total) == (len(lengths), sum(lengths))


def test_a_long_life_takes_bounded_memory_and_keeps_the_longest_rebalance() -> None:
    builder = TimelineBuilder("g", 0)
    for number in range(5 * MAX_REBALANCES):
        start = number * 10_000
        builder.begin_rebalance(start, ChangeCause(CauseKind.CAME, (f"m{number}",)))
        builder.add_member(start, f"m{number}")
        builder.mark_back(start + 5, f"m{number}")
        builder.end_join_phase(start + (7_000 if number == 7 else 10), number + 1)
        builder.end_rebalance(start + (8_000 if number == 7 else 20), "Stable")
        builder.remove_member(start + 9_000, f"m{number}", ChangeCause(CauseKind.LEFT, (f"m{number}",)))
    timeline = builder.build(builder.now)
    assert timeline.rebalance_count == 5 * MAX_REBALANCES and len(timeline.rebalances) == MAX_REBALANCES
    assert timeline.longest == 8_000 and len(timeline.past_members) == MAX_PAST_MEMBERS
    assert timeline.departures == ((CauseKind.LEFT, 5 * MAX_REBALANCES),)
