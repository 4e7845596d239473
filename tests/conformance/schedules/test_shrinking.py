"""Shrinking keeps its time limit, however long runs take, and says whether it was cut short."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.classic.schedules.cast import MemberRole
from fencepost.conformance.classic.schedules.protocol import ClassicSchedules, generate_schedules
from fencepost.conformance.classic.schedules.shortcuts import outline_before_last, shortest_path
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.engine import Candidate, Confirmation, Replay, ScheduleEngine, ScheduleResult
from fencepost.conformance.run.engines import MIN_PATIENCE_SECONDS, ConcurrentEngine
from fencepost.conformance.run.play import target_bench
from fencepost.conformance.run.schedule import BatchSpec, Move, Schedule, ScheduleScope
from fencepost.conformance.subject import ScenarioRun
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.verdict import TraceVerdict, Violation
from tests.support.lease.protocol import LeaseSchedules

REQUIREMENT = "LEASE-01"
VIOLATION = Violation(1, "lease", "acquire", ("token",), "1", ("2",), "acquire.free", "", (REQUIREMENT,))
LONG = Schedule("long", (), (*(Move("renew", number % 2) for number in range(40)), Move("acquire")))
MIN_RENEWALS, SHORTEST = 8, 9
"""The moves that it takes to violate the requirement."""
Seconds = Callable[[Schedule], float]


def one_second_a_move(schedule: Schedule) -> float:
    """How long a run takes: a second for each move."""
    return len(schedule.moves)


def run_of(schedule: Schedule, seconds: float) -> ScenarioRun:
    """A run with an event for each move, which violates the requirement after some renewals."""
    kinds = Counter(move.kind for move in schedule.moves)
    failed = kinds["acquire"] and kinds["renew"] >= MIN_RENEWALS
    header = Header("test", Order.TOTAL, "wall", Settings(), 0)
    times = [round(1000 * min(seconds, 1_000))] * len(schedule.moves)
    events = tuple(Event(number, time, 0, "", Kind.REQUEST, "acquire", 0, {}) for number, time in enumerate(times, 1))
    verdict = TraceVerdict((VIOLATION,) if failed else (), (), {})
    return ScenarioRun(LeaseSchedules().scenario_of(schedule), header, events, verdict)


class SlowEngine(ScheduleEngine):
    """Runs that take their time, one after the other where shrinking asks for no more."""

    def __init__(self, seconds: Seconds) -> None:
        super().__init__(LeaseSchedules(), 0, 0, {})
        self.seconds = seconds
        self.played: list[Schedule] = []

    async def play(self, rounds: Iterator[list[BatchSpec]], on_result: Callable[[ScheduleResult], None]) -> None:
        """Play nothing."""

    async def replay(self, schedules: Sequence[Schedule]) -> list[ScenarioRun]:
        """As `ScheduleEngine.replay`."""
        self.played += schedules
        await asyncio.sleep(max(map(self.seconds, schedules)))
        return [run_of(schedule, self.seconds(schedule)) for schedule in schedules]


def found(seconds: float = one_second_a_move(LONG)) -> Confirmation:
    """A schedule that failed twice, in so many seconds."""
    run = run_of(LONG, seconds)
    return Confirmation(Candidate(LONG, run), Replay(LONG, run, seconds))


async def shrink(engine: ScheduleEngine, seconds: float, run_seconds: float = 41) -> tuple[int, bool, float]:
    """The moves of the schedule that is reported, whether it is minimal, and the seconds that it took."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    shrunk = await engine.shrink_violation(REQUIREMENT, found(run_seconds), seconds)
    assert shrunk.again == {REQUIREMENT}
    return len(shrunk.run.events), shrunk.is_minimal, loop.time() - begun


async def test_with_enough_time_nothing_is_left_to_try() -> None:
    engine = SlowEngine(one_second_a_move)
    engine.shrink_seconds = 1_000
    moves, is_minimal, _ = await shrink(engine, 1_000)
    assert (moves, is_minimal) == (SHORTEST, True)


async def test_seconds_are_kept_and_the_best_so_far_is_confirmed_within_them() -> None:
    results: list[tuple[int, bool]] = []
    for seconds in range(0, 600, 20):
        engine = SlowEngine(one_second_a_move)
        engine.shrink_seconds = 1_000
        moves, is_minimal, taken = await shrink(engine, seconds)
        assert taken <= seconds
        results.append((moves, is_minimal))
    assert results[0] == (len(LONG.moves), False)
    assert results[-1] == (SHORTEST, True)
    assert any(SHORTEST < moves < len(LONG.moves) and not is_minimal for moves, is_minimal in results)


async def test_a_run_that_does_not_end_is_given_up() -> None:
    hanging = SlowEngine(lambda schedule: math.inf if len(schedule.moves) < 30 else 1.0)
    moves, is_minimal, taken = await shrink(hanging, 9, run_seconds=1)
    assert (moves, is_minimal) == (len(LONG.moves), False)
    assert taken == 9 - 2 * 1  # the time to replay it twice is left over


async def test_without_seconds_nothing_is_played() -> None:
    engine = SlowEngine(one_second_a_move)
    assert await shrink(engine, 0) == (len(LONG.moves), False, 0)
    assert engine.played == []


async def test_what_no_replay_shows_is_not_shrunk() -> None:
    engine, candidate = SlowEngine(one_second_a_move), found().candidate
    shrunk = await engine.shrink_violation(REQUIREMENT, Confirmation(candidate, None), 90)
    assert (shrunk.again, engine.played) == (frozenset(), [])


# --- many at once -------------------------------------------------------------------------------------------------


class SlowConcurrentEngine(ConcurrentEngine):
    """Runs that take their time, all at once, without a target."""

    def __init__(self, seconds: Seconds) -> None:
        ScheduleEngine.__init__(self, LeaseSchedules(), 0, 0, {})
        self.seconds = seconds

    async def replay_each(self, schedules: Sequence[Schedule], on_run: Callable[[int, ScenarioRun], None]) -> None:
        """As `ConcurrentEngine.replay_each`."""

        async def replay_one(place: int, schedule: Schedule) -> None:
            await asyncio.sleep(self.seconds(schedule))
            on_run(place, run_of(schedule, self.seconds(schedule)))

        async with asyncio.TaskGroup() as tasks:
            for place, schedule in enumerate(schedules):
                tasks.create_task(replay_one(place, schedule))


async def test_all_violations_are_replayed_at_once() -> None:
    engine = SlowConcurrentEngine(one_second_a_move)
    begun = asyncio.get_running_loop().time()
    harmless = Schedule("harmless", (), (Move("renew"),) * 12)
    shown = await engine.first_failing({REQUIREMENT: [harmless, LONG], "LEASE-02": [harmless]})
    assert {each: replay.schedule for each, replay in shown.items()} == {REQUIREMENT: LONG}
    assert asyncio.get_running_loop().time() - begun == len(LONG.moves)


async def test_once_one_fails_the_others_have_as_long_again() -> None:
    engine = SlowConcurrentEngine(one_second_a_move)
    begun = asyncio.get_running_loop().time()
    candidates = [Schedule("some", (), LONG.moves[-length:]) for length in (30, 12, 5, 10)]
    failing = await engine.failing_replays(candidates, REQUIREMENT, begun + 100, usual_seconds=50)
    assert {place: replay.seconds for place, replay in failing.items()} == {1: 12, 3: 10}
    assert list(failing) == [1, 3]
    assert asyncio.get_running_loop().time() - begun == 20 + MIN_PATIENCE_SECONDS


async def test_what_hangs_is_given_up_at_the_deadline() -> None:
    engine = SlowConcurrentEngine(lambda schedule: math.inf)
    begun = asyncio.get_running_loop().time()
    assert await engine.failing_replays([LONG] * 3, REQUIREMENT, begun + 6, usual_seconds=50) == {}
    assert asyncio.get_running_loop().time() - begun == 6


async def test_what_takes_much_longer_than_what_it_replaces_is_given_up() -> None:
    engine = SlowConcurrentEngine(one_second_a_move)
    begun = asyncio.get_running_loop().time()
    assert await engine.failing_replays([LONG] * 3, REQUIREMENT, begun + 100, usual_seconds=20) == {}
    assert asyncio.get_running_loop().time() - begun == 2 * 20 + MIN_PATIENCE_SECONDS
    failing = await engine.failing_replays([LONG] * 3, REQUIREMENT, begun + 100, usual_seconds=21)
    assert list(failing) == [0, 1, 2]


async def test_once_every_violation_is_shown_the_rest_is_not_waited_for_longer() -> None:
    engine = SlowConcurrentEngine(lambda schedule: math.inf if schedule.name == "hangs" else len(schedule.moves))
    begun = asyncio.get_running_loop().time()
    hanging = replace(LONG, name="hangs")
    shown = await engine.first_failing({REQUIREMENT: [hanging, LONG, replace(LONG, name="other")]})
    assert {each: replay.schedule for each, replay in shown.items()} == {REQUIREMENT: LONG}
    assert asyncio.get_running_loop().time() - begun == 2 * 41 + MIN_PATIENCE_SECONDS


# --- the report ---------------------------------------------------------------------------------------------------


async def test_time_to_confirm_is_left_over_when_the_shortest_takes_longer_than_the_first() -> None:
    def slower_without(schedule: Schedule) -> float:
        return 1.0 if len(schedule.moves) == len(LONG.moves) else 3.0

    engine = SlowEngine(slower_without)
    moves, _, taken = await shrink(engine, 40, run_seconds=1)
    assert moves < len(LONG.moves)
    assert taken <= 40


async def test_without_time_to_confirm_the_run_is_reported_in_which_shrinking_began() -> None:
    shortcut = replace(LONG, moves=LONG.moves[-20:])
    engine = SlowEngine(lambda schedule: 100.0)
    begin = Confirmation(found().candidate, Replay(shortcut, run_of(shortcut, 1), 1))
    shrunk = await engine.shrink_violation(REQUIREMENT, begin, 9)
    assert engine.played[-2:] == [shortcut] * 2
    assert (len(shrunk.run.events), set(shrunk.again), shrunk.is_minimal) == (20, {REQUIREMENT}, False)


def test_schedules_that_restart_the_target_are_shrunk_alone() -> None:
    engine = SlowConcurrentEngine(one_second_a_move)
    calm, rough = found(), found()
    assert rough.replay is not None
    scenario = replace(rough.replay.run.scenario, needs=("restart",))
    rough = replace(rough, replay=replace(rough.replay, run=replace(rough.replay.run, scenario=scenario)))
    named = {f"LEASE-{number:02}": rough if number < 2 else calm for number in range(12)}
    groups = engine.group_for_shrinking(named)
    assert [len(group) for group in groups] == [8, 2, 1, 1]
    assert groups[-2:] == [["LEASE-00"], ["LEASE-01"]]


# --- Shortcuts: parts of a schedule that lead the model to the same state, and end where the schedule failed.

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
