"""Shortcuts: parts of a schedule that lead the model to the same state, and end where the schedule failed."""

from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.classic.schedules.cast import MemberRole
from fencepost.conformance.classic.schedules.protocol import ClassicSchedules, generate_schedules
from fencepost.conformance.classic.schedules.shortcuts import outline_before_last, shortest_path
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.play import target_bench
from fencepost.conformance.run.schedule import Move, Schedule, ScheduleScope
from fencepost.traces.events import Event, Kind

SCOPE = ScheduleScope(BUNDLED_SETTINGS)
PROTOCOL = ClassicSchedules(SCOPE)
BENCH = target_bench(PROTOCOL, lambda: InProcessTarget(BUNDLED_SETTINGS))
JOIN = (Move("join", 0), Move("join", 0), Move("wait", 0, (("for", "answers"),)), Move("sync", 0))
HEARTBEAT = Move("heartbeat", 0)


def events_of(schedule: Schedule) -> tuple[Event, ...]:
    """The trace of a schedule."""
    return BENCH.play(schedule).events


def requests(events: tuple[Event, ...], api: str) -> list[int]:
    """The requests of an API, by sequence number."""
    return [event.sequence for event in events if event.kind is Kind.REQUEST and event.api == api]


def test_path_leaves_loops_out() -> None:
    assert shortest_path("abcabd", [HEARTBEAT] * 5) == [0, 4]
    assert shortest_path("abcb", [HEARTBEAT] * 3) == [0]
    assert shortest_path("aaaa", [HEARTBEAT] * 3) == []


def test_path_avoids_waits() -> None:
    wait = Move("wait")
    assert shortest_path("abaccb", [wait, HEARTBEAT, HEARTBEAT, HEARTBEAT, HEARTBEAT]) == [2, 4]


def test_what_brought_the_group_back_is_left_out() -> None:
    again = (Move("join", 0), Move("sync", 0), HEARTBEAT, Move("commit", 0))
    schedule = Schedule("long", (MemberRole(), MemberRole()), (*JOIN, *again * 3, HEARTBEAT, HEARTBEAT))
    events = events_of(schedule)
    shortest = PROTOCOL.shortcuts(schedule, events, requests(events, "Heartbeat")[-1])[0]
    assert shortest.moves == (*JOIN, HEARTBEAT)


def test_offsets_count_in_a_longer_shortcut() -> None:
    schedule = Schedule("offsets", (MemberRole(),), (*JOIN, HEARTBEAT, Move("commit", 0), HEARTBEAT, Move("fetch", 0)))
    events = events_of(schedule)
    shortcuts = [each.moves for each in PROTOCOL.shortcuts(schedule, events, requests(events, "OffsetFetch")[0])]
    assert shortcuts[0] == (*JOIN, Move("fetch", 0))
    assert (*JOIN, Move("commit", 0), Move("fetch", 0)) in shortcuts


def test_other_groups_are_left_out() -> None:
    cast = (MemberRole(), MemberRole(group=1))
    others = tuple(Move(move.kind, 1, move.options) for move in JOIN)
    schedule = Schedule("groups", cast, (*others, *JOIN, Move("heartbeat", 1), HEARTBEAT))
    events = events_of(schedule)
    shortest = PROTOCOL.shortcuts(schedule, events, requests(events, "Heartbeat")[-1])[0]
    assert shortest.moves == (*JOIN, HEARTBEAT)


def test_shortcuts_of_generated_schedules_lead_the_model_to_the_same_state() -> None:
    same = tried = 0
    for drawn in generate_schedules(SCOPE, 3, 0, 4):
        schedule = drawn.schedule
        events = events_of(schedule)
        for sequence in requests(events, "Heartbeat")[-1:]:
            shortcuts = PROTOCOL.shortcuts(schedule, events, sequence)
            assert [len(each.moves) for each in shortcuts] == sorted(len(each.moves) for each in shortcuts)
            longest = shortcuts[-1].moves
            assert schedule.moves[: len(longest)] == longest
            assert all(each.moves[-1] == longest[-1] for each in shortcuts)
            assert longest[-1].kind in ("heartbeat", "again")
            same += outline_before_last(shortcuts[0], SCOPE) == outline_before_last(shortcuts[-1], SCOPE)
            tried += 1
            assert len(shortcuts[0].moves) <= len(schedule.moves) // 4
    assert tried == 4
    assert same == tried


def test_a_request_that_the_model_never_sends_has_no_shortcuts() -> None:
    schedule = Schedule("long", (MemberRole(),), (*JOIN, HEARTBEAT))
    asked = Event(900, 0, 0, "A", Kind.REQUEST, "LeaveGroup", 0, {})
    assert PROTOCOL.shortcuts(schedule, (asked,), 900) == ()
