"""A server that is killed while schedules are played: acknowledged writes are kept, the stored generation counts, and a
server that loses a record is found."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.adapters.address import parse_target
from fencepost.adapters.classic.log import MemoryLog, SlowLog
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.serve import server
from fencepost.adapters.target import Description
from fencepost.adapters.virtual_clock import VirtualClock
from fencepost.adapters.wire.target import KafkaTarget
from fencepost.conformance.classic.protocol import CLASSIC
from fencepost.conformance.classic.schedules.cast import LONG, MemberRole
from fencepost.conformance.classic.schedules.moves import scenario_of
from fencepost.conformance.classic.schedules.protocol import ClassicSchedules, generate_schedules
from fencepost.conformance.cli import main
from fencepost.conformance.plan import Plan, ReplayOutcome, ReplayResult
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.engines import start_delays
from fencepost.conformance.run.play import LoopLagMonitor, play_scenario, target_bench
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.replay import NEVER_FAILED, replay_trace
from fencepost.conformance.run.schedule import GeneratedSchedule, Move, Schedule, ScheduleScope
from fencepost.conformance.subject import ScenarioRun
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.verdict import violations_in
from tests.support.served_coordinator import FAST_SETTINGS, serve_in_thread
from tests.targets.running import RunningTarget

ROOT = Path(__file__).parents[3]
FORM_PAIR = (
    *(Move("join", who) for who in (0, 0, 1, 1)),
    Move("wait", 0, (("for", "answers"),)),
    Move("sync", 1),
    Move("sync", 0),
)
COMMITTED = Schedule(
    "committed",
    (MemberRole(), MemberRole()),
    (*FORM_PAIR, Move("commit", 0, (("offset", 7),)), Move("restart"), Move("heartbeat", 0), Move("fetch")),
)
PATIENT = MemberRole(rebalance=LONG)
"""Waits longer for SyncGroup than a kill takes."""
LOST_REBALANCE = Schedule(
    "lost round",
    (PATIENT, PATIENT),
    (
        *FORM_PAIR,
        Move("join", 0, (("metadata", 1),)),
        Move("join", 1),
        Move("wait", 0, (("for", "answers"),)),
        Move("restart"),
        Move("commit", 0, (("offset", 3),)),
        Move("heartbeat", 0, (("generation", -1),)),
        Move("sync", 0),
        Move("fetch"),
    ),
)
CUT = Schedule(
    "cut",
    (MemberRole(),),
    (
        *FORM_PAIR[:2],
        FORM_PAIR[4],
        Move("sync", 0),
        Move("commit", 0, (("offset", 5), ("sent", 100))),
        Move("restart"),
        Move("fetch"),
    ),
)


def replay_on_server(schedules: list[Schedule], address: str, profile: Profile) -> list[ScenarioRun]:
    """The schedules side by side on a running server; one kill for all of them."""

    async def performance() -> list[ScenarioRun]:
        remote = RemoteRun(Plan(f"kafka://{address}"), profile)
        try:
            pool = remote.scenario_pool(await remote.target.open(), LoopLagMonitor())
            remote.judges.start()
            return await remote.schedule_engine(pool, ScheduleScope(pool.description.settings), {}).replay(schedules)
        finally:
            await remote.target.close()
            remote.judges.close()

    return asyncio.run(performance())


def replay_on_losing_server(
    schedules: list[Schedule], folder: Path, loses: str, monkeypatch: pytest.MonkeyPatch
) -> list[ScenarioRun]:
    """The schedules on a server that loses records of some kinds."""
    monkeypatch.setenv("FENCEPOST_LOSES", loses)
    command = [sys.executable, "-m", "tests.targets.serve.careless"]
    start, kill = ((*command, action, "--data", str(folder)) for action in ("start", "kill"))
    address = subprocess.run(start, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    try:
        return replay_on_server(schedules, address, Profile(ROOT, start, kill, grace=4_000))
    finally:
        subprocess.run(kill, cwd=ROOT, check=True)


def errors(one: ScenarioRun, api: str) -> list[int]:
    """The errors of all answers to an API."""
    return [event.body["error_code"] for event in one.events if event.kind is Kind.RESPONSE and event.api == api]


def check_nothing_lost(found: list[ScenarioRun]) -> None:
    """Each was seen to lose nothing, of what was committed and of the generation that is stored."""
    for one in found:
        assert (one.verdict.violated, one.verdict.inconclusive, one.blocked) == (frozenset(), (), "")
        assert [event.api for event in one.events if event.api == "restart"] == ["restart"]
    assert errors(found[0], "Heartbeat") == [0]
    assert errors(found[1], "Heartbeat") == [0]  # the generation before the one that nobody synced
    assert errors(found[1], "SyncGroup")[-1] == 22


@pytest.mark.slow
def test_what_is_acknowledged_outlives_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_nothing_lost(replay_on_losing_server([COMMITTED, LOST_REBALANCE, CUT], tmp_path, "", monkeypatch))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("kafka4", marks=pytest.mark.kafka4),
        pytest.param("kafka3", marks=[pytest.mark.kafka3, pytest.mark.acceptance]),
    ],
)
def test_what_apache_kafka_acknowledged_outlives_a_kill(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    target: RunningTarget = request.getfixturevalue(name)
    monkeypatch.setenv("FENCEPOST_RUN", str(target.folder))
    check_nothing_lost(replay_on_server([COMMITTED, LOST_REBALANCE, CUT], target.bootstrap, target.profile))


@pytest.mark.slow
@pytest.mark.parametrize("loses", [pytest.param("OffsetRecord", marks=pytest.mark.acceptance), "GroupRecord"])
def test_a_server_that_loses_what_it_acknowledged_is_found_out(
    loses: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = replay_on_losing_server([COMMITTED], tmp_path, loses, monkeypatch)
    assert one.verdict.violated


# --- Connections that are cut while a request is sent: part of a request has no effect, a whole one may have.

FORM_GROUP = (Move("join", 0), Move("join", 0), Move("wait", 0, (("for", "answers"),)), Move("sync", 0))


def leaving(sent: int) -> Schedule:
    """A member leaves, but its connection is cut; then it shows whether it is still there."""
    moves = (*FORM_GROUP, Move("leave", 0, (("sent", sent),)), Move("wait", 0, (("ms", 300),)), Move("heartbeat", 0))
    return Schedule("leaving", (MemberRole(),), moves)


def heartbeat(events: tuple[Event, ...]) -> int:
    """The error that the last Heartbeat got."""
    responses = [event for event in events if event.kind is Kind.RESPONSE and event.api == "Heartbeat"]
    return int(responses[-1].body["error_code"])


def over_the_wire(schedule: Schedule) -> ScenarioRun:
    """The schedule on a server of our own."""

    async def performance(bootstrap: str) -> ScenarioRun:
        target = KafkaTarget(parse_target(f"kafka://{bootstrap}"))
        description: Description = await target.open()
        try:
            return await play_scenario(scenario_of(schedule), target, description, schedule.name, grace=2_000)
        finally:
            await target.close()

    with serve_in_thread(FAST_SETTINGS) as bootstrap:
        return asyncio.run(performance(bootstrap))


def in_process(schedule: Schedule) -> ScenarioRun:
    """The schedule on virtual time."""
    protocol = ClassicSchedules(ScheduleScope(BUNDLED_SETTINGS))
    return target_bench(protocol, lambda: InProcessTarget(BUNDLED_SETTINGS)).play(schedule)


@pytest.mark.parametrize("run", [in_process, over_the_wire])
@pytest.mark.parametrize(("sent", "error"), [(5, 0), (60, 0), (99, 0), (100, 25)])
def test_of_a_part_nothing_comes_and_of_the_whole_all(
    run: Callable[[Schedule], ScenarioRun], sent: int, error: int
) -> None:
    played = run(leaving(sent))
    assert (played.verdict.violated, played.verdict.inconclusive) == (frozenset(), ())
    assert heartbeat(played.events) == error
    torn = [event for event in played.events if event.api == "torn"]
    assert [event.body["share"] for event in torn] == ([sent] if sent < 100 else [])
    asked = [event for event in played.events if event.kind is Kind.REQUEST and event.api == "LeaveGroup"]
    assert len(asked) == (sent == 100)


def test_a_server_that_makes_up_the_rest_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def generous(reader: asyncio.StreamReader) -> bytes | None:
        try:
            length = int.from_bytes(await reader.readexactly(4))
            return await reader.readexactly(length)
        except asyncio.IncompleteReadError as end:
            return end.partial + bytes(length - len(end.partial)) if end.expected != 4 else None

    monkeypatch.setattr(server, "_read_frame", generous)
    played = over_the_wire(leaving(99))
    assert heartbeat(played.events) == Error.UNKNOWN_MEMBER_ID
    assert played.verdict.violated


def test_a_part_of_a_request_is_sent_again_by_a_replay(tmp_path: Path) -> None:
    played, file = over_the_wire(leaving(60)), tmp_path / "t.jsonl"
    write_trace(file, played.header, played.events)
    assert asyncio.run(replay_trace(file, "bundled", Profile())) == ReplayResult(
        ReplayOutcome.INCONCLUSIVE, note=NEVER_FAILED
    )


@pytest.mark.slow
def test_schedules_with_cuts_are_drawn_only_where_they_are_wanted() -> None:
    def shares(scope: ScheduleScope) -> set[int | str]:
        drawn = [each.schedule for chunk in range(4) for each in generate_schedules(scope, 1, chunk, 10)]
        return {move.get("sent") for schedule in drawn for move in schedule.moves} - {""}

    assert shares(ScheduleScope(BUNDLED_SETTINGS)) == set()
    assert 100 in shares(ScheduleScope(BUNDLED_SETTINGS, cuts=True))
    assert shares(ScheduleScope(BUNDLED_SETTINGS, cuts=True)) & {5, 60, 99}


def test_the_bundled_coordinator_keeps_to_the_model_whatever_is_cut() -> None:
    for chunk in range(2):
        for drawn in generate_schedules(ScheduleScope(BUNDLED_SETTINGS, cuts=True), 5, chunk, 10):
            played = in_process(drawn.schedule)
            assert (played.verdict.violated, played.verdict.inconclusive, played.blocked) == (frozenset(), (), "")


# --- Restart batches: start delays, and the predicted times of restarts.

WITHOUT_RESTART = GeneratedSchedule(Schedule("calm", (), ()), {}, duration=3_000)
WITH_RESTART = GeneratedSchedule(Schedule("rough", (), ()), {}, duration=9_000, restart_at=1_000)


def test_all_are_ready_for_the_restart_at_the_same_time() -> None:
    assert start_delays([WITHOUT_RESTART, WITH_RESTART, replace(WITH_RESTART, restart_at=4_000)]) == [0, 3_000, 0]
    assert start_delays([WITHOUT_RESTART, WITH_RESTART]) == [0, 2_000]
    assert start_delays([WITHOUT_RESTART]) == [0]
    assert start_delays([]) == []


def test_schedules_predict_their_restart_and_their_end() -> None:
    drawn = [each for chunk in range(3) for each in generate_schedules(ScheduleScope(BUNDLED_SETTINGS), 1, chunk, 10)]
    rough = [each for each in drawn if any(move.kind == "restart" for move in each.schedule.moves)]
    assert rough
    assert all(0 < each.restart_at <= max(1, each.duration) for each in rough)
    assert not any(each.restart_at for each in drawn if each not in rough)


def test_a_target_on_real_time_is_not_waited_for_as_long() -> None:
    hasty = ScheduleScope(BUNDLED_SETTINGS, virtual_time=False, grace=2_000)
    drawn = [each for chunk in range(2) for each in generate_schedules(hasty, 1, chunk, 10)]
    # Every request may be waited for a little, however often the target did not answer in time.
    assert max(each.duration for each in drawn) < 60_000


# --- Slow storage: answers come later and in no other order, and a target is blamed only for more than its grace.

SLOW_MS, GRACE_MS = 40, 2_000
SETTINGS = Settings(min_session_timeout=300, initial_rebalance_delay=100, offsets_partitions=2)


def jump_clock() -> None:
    """Time passes while the coordinator waits for its log."""
    clock = asyncio.get_running_loop()
    assert isinstance(clock, VirtualClock)
    clock.jump(SLOW_MS / 1000)


def slow_target() -> InProcessTarget:
    """The bundled coordinator on virtual storage that is slow."""
    return InProcessTarget(BUNDLED_SETTINGS, log=SlowLog(MemoryLog(), jump_clock))


def play_schedules(make_target: Callable[[], InProcessTarget], grace: int) -> list[ScenarioRun]:
    """Some schedules on it."""
    protocol = ClassicSchedules(ScheduleScope(BUNDLED_SETTINGS))
    return [target_bench(protocol, make_target, grace).play(each.schedule) for each in protocol.generate(3, 0, 15)]


def test_slow_storage_is_no_fault_within_the_grace() -> None:
    for one in play_schedules(slow_target, GRACE_MS):
        assert (one.verdict.violated, one.verdict.inconclusive, one.blocked) == (frozenset(), (), "")


def test_without_grace_the_late_answers_are_seen_and_nothing_else() -> None:
    found = [each for one in play_schedules(slow_target, 0) for each in violations_in(one.verdict)]
    assert found
    assert {name for each in found if each.violation for name in each.violation.fields} == {"time"}


@pytest.mark.acceptance
def test_a_server_on_slow_storage_keeps_the_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.conformance.run.registry.DEFAULT_PROTOCOL", replace(CLASSIC, scenarios=()))
    with serve_in_thread(SETTINGS, storage_delay_ms=SLOW_MS) as bootstrap:
        assert main(["test", f"kafka://{bootstrap}", "--schedules", "2", "--seed", "2"]) == 3
