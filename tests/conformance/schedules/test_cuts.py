"""Connections that are cut while a request is sent: part of a request has no effect, a whole one may have."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.adapters.address import parse_target
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.serve import server
from fencepost.adapters.target import Description
from fencepost.adapters.wire.target import KafkaTarget
from fencepost.conformance.classic.schedules.cast import MemberRole
from fencepost.conformance.classic.schedules.moves import scenario_of
from fencepost.conformance.classic.schedules.protocol import ClassicSchedules, generate_schedules
from fencepost.conformance.plan import ReplayOutcome, ReplayResult
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.play import play_scenario, target_bench
from fencepost.conformance.run.replay import NEVER_FAILED, replay_trace
from fencepost.conformance.run.schedule import Move, Schedule, ScheduleScope
from fencepost.conformance.subject import ScenarioRun
from fencepost.model.errors import Error
from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import write_trace
from tests.support.served_coordinator import FAST_SETTINGS, serve_in_thread

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
