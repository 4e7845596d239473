"""A server that is killed while schedules are played: acknowledged writes are kept, the stored generation counts, and a
server that loses a record is found."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.conformance.classic.schedules.cast import LONG, MemberRole
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.play import LoopLagMonitor
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.schedule import Move, Schedule, ScheduleScope
from fencepost.conformance.subject import ScenarioRun
from fencepost.traces.events import Kind
from tests.targets.running import RunningTarget

ROOT = Path(__file__).parents[3]
FORM_GROUP = (
    *(Move("join", who) for who in (0, 0, 1, 1)),
    Move("wait", 0, (("for", "answers"),)),
    Move("sync", 1),
    Move("sync", 0),
)
COMMITTED = Schedule(
    "committed",
    (MemberRole(), MemberRole()),
    (*FORM_GROUP, Move("commit", 0, (("offset", 7),)), Move("restart"), Move("heartbeat", 0), Move("fetch")),
)
PATIENT = MemberRole(rebalance=LONG)
"""Waits longer for SyncGroup than a kill takes."""
LOST_REBALANCE = Schedule(
    "lost round",
    (PATIENT, PATIENT),
    (
        *FORM_GROUP,
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
        *FORM_GROUP[:2],
        FORM_GROUP[4],
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
