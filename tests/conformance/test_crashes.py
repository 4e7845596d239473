"""What brings a target down is a finding, with the request that does it; and a run on such a target ends."""

import asyncio
import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.address import TargetError
from fencepost.adapters.target import Description, Exchange, TraceBuilder
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.cli import main
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import WENT_DOWN
from fencepost.conformance.run import crashes
from fencepost.conformance.run.crashes import (
    Crash,
    CrashMonitor,
    CutRequest,
    TargetGone,
    describe_unexplained,
    failures_of,
)
from fencepost.conformance.run.play import LoopLagMonitor
from fencepost.conformance.run.pool import RestartBarrier, ScenarioPool, play_together
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.run_state import RunState
from fencepost.conformance.run.stream import RunLimits, TraceSaver
from fencepost.conformance.subject import Scenario, ScenarioRun, select_scenarios
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Event, Header, Kind, Order
from fencepost.traces.verdict import TraceVerdict
from tests.support.fake_broker import FakeBroker, serve_brokers

ROOT = Path(__file__).parents[2]
DESCRIPTION = Description("target", Order.INTERVALS, "monotonic", {}, Settings(), "topic")
Requests = list[tuple[str, Body]]


async def play_nothing(context: object) -> None:
    """Send nothing."""


@dataclass
class Fragile:
    """A target that goes down when it gets a request that is `deadly`; it parks the others."""

    deadly: Callable[[str, Body], bool]
    is_up: bool = False
    asked: Requests = field(default_factory=list)
    starts: int = 0

    async def is_alive(self) -> bool:
        return self.is_up

    async def restart(self) -> None:
        self.is_up = True
        self.starts += 1

    def channel(self, recorder: TraceBuilder) -> "Fragile":
        return self

    def send(self, api: str, version: int, body: Body, options: object) -> Exchange:
        self.asked.append((api, body))
        self.is_up = self.is_up and not self.deadly(api, body)
        response: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
        if not self.is_up:
            response.set_result(None)
        return Exchange(None, response, lambda: None)

    async def close(self) -> None:
        pass


def run_with(name: str, *requests: tuple[str, Body], answered: int = 0) -> ScenarioRun:
    """A run with requests one after the other, the last of which were unanswered when the target went down."""
    events = [
        Event(number, number, number, "A", Kind.REQUEST, api, 5, body) for number, (api, body) in enumerate(requests)
    ]
    events += [
        Event(len(requests) + number, 99, number, "A", *outcome, {}, of=number)
        for number in range(len(requests))
        for outcome in [(Kind.RESPONSE, requests[number][0], 5) if number < answered else (Kind.FAULT, "closed", 0)]
    ]
    header = Header(name, Order.INTERVALS, "wall", Settings(), 0)
    return ScenarioRun(Scenario(name, (), play_nothing), header, tuple(events), TraceVerdict((), (), {}))


JOIN, WORKER = {"group_id": "g", "protocol_type": "consumer"}, {"group_id": "h", "protocol_type": "worker"}
RUNS = (
    run_with("first", ("Heartbeat", {"group_id": "f"}), ("JoinGroup", JOIN), answered=1),
    run_with("second", ("JoinGroup", {**JOIN, "group_id": "other"}), ("JoinGroup", WORKER), ("SyncGroup", {})),
)


async def crash(target: Any, times: int = 1, *, can_restart: bool = True) -> CrashMonitor:
    """Have a target go down that often while the runs are under way."""
    monitor = CrashMonitor(target, can_restart=can_restart)
    for _ in range(times):
        target.is_up = False
        for run in RUNS:
            assert await monitor.went_down(run)
        try:
            await monitor.revive()
        except TargetGone:
            break
    return monitor


def test_the_request_that_brings_the_target_down_is_found_by_sending_each_alone() -> None:
    target = Fragile(lambda api, body: body.get("protocol_type") == "worker")
    monitor = run_virtual(crash(target))
    assert target.asked == [("SyncGroup", {}), ("JoinGroup", JOIN), ("JoinGroup", WORKER)]
    assert not monitor.is_down and target.starts == 2
    (failure,) = failures_of(monitor.crashes, {})
    assert failure.title == "the target went down by one request: JoinGroup v5 group_id='h', protocol_type='worker'"
    assert failure.replayed and failure.trace == "second" and len(failure.schedule) == 1
    assert describe_unexplained(monitor.crashes) == ()


def test_what_differs_in_its_sender_alone_is_sent_once() -> None:
    target = Fragile(lambda api, body: False)
    run_virtual(crash(target))
    assert [api for api, _ in target.asked] == ["SyncGroup", "JoinGroup", "JoinGroup"]


@pytest.mark.parametrize("times", [1, 2])
def test_what_no_request_alone_shows_again_is_told_by_those_unanswered(times: int) -> None:
    monitor = run_virtual(crash(Fragile(lambda api, body: False), times))
    failures, left_open = failures_of(monitor.crashes, {}), describe_unexplained(monitor.crashes)
    assert (len(failures), len(left_open)) == ((0, 3) if times == 1 else (1, 0))
    told = left_open[1] if times == 1 else failures[0].title
    assert told.startswith(WENT_DOWN)


def test_without_a_start_command_the_requests_are_named() -> None:
    monitor = run_virtual(crash(Fragile(lambda api, body: True), can_restart=False))
    assert failures_of(monitor.crashes, {}) == ()
    told = "the target went down while JoinGroup v5 group_id='h', protocol_type='worker' of second was unanswered"
    assert told in describe_unexplained(monitor.crashes)


def test_a_target_is_not_started_again_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crashes, "MAX_REVIVALS", 7)
    target = Fragile(lambda api, body: False)
    monitor = run_virtual(crash(target, 100))
    assert target.starts == 7 and len(monitor.crashes) == 8 and monitor.is_down


def test_nobody_waits_for_a_restart_that_nobody_asks_for() -> None:
    async def leave_one_after_the_other() -> int:
        restarts = 0

        async def restart() -> None:
            nonlocal restarts
            restarts += 1

        barrier = RestartBarrier(2, restart)
        await barrier.leave()
        assert not barrier.done.is_set()
        await barrier.leave()
        await barrier.done.wait()
        return restarts

    assert run_virtual(leave_one_after_the_other()) == 0


# --- preparing a target


async def mark_on(broker: FakeBroker) -> None:
    async with asyncio.timeout(20), serve_brokers(broker):
        run = RemoteRun(Plan(f"kafka://127.0.0.1:{broker.port}"), Profile(settings={"offsets_partitions": 1}))
        try:
            await run.open_target()
        finally:
            await run.target.close()


def test_a_broker_that_creates_what_exists_is_prepared() -> None:
    broker = FakeBroker()
    broker.responses["CreateTopics"] = lambda _: {"topics": [{"name": "fencepost", "error_code": 0}]}
    asyncio.run(mark_on(broker))
    assert "CreateTopics" not in broker.requested_apis()


async def open_within(broker: FakeBroker, seconds: float) -> None:
    async with asyncio.timeout(20), serve_brokers(broker):
        run = RemoteRun(Plan(f"kafka://127.0.0.1:{broker.port}"), Profile())
        try:
            await run.within(RunLimits(seconds), run.open_target())
        finally:
            await run.target.close()


def test_preparing_a_target_heeds_the_seconds_of_the_run() -> None:
    broker = FakeBroker()
    broker.responses["FindCoordinator"] = lambda _: broker.coordinator_response(broker, error=15)
    with pytest.raises(TargetError, match=r"could not be prepared within --seconds 0\.2"):
        asyncio.run(open_within(broker, 0.2))


def test_the_trace_of_what_brought_a_target_down_is_saved(tmp_path: Path) -> None:
    nothing = select_scenarios([], [], frozenset(), smoke=False)
    state = RunState(Plan("kafka://127.0.0.1:1", save=tmp_path), nothing, TraceSaver(tmp_path))
    remote = RemoteRun(state.plan, Profile())
    culprit = CutRequest(RUNS[0], RUNS[0].events[1], 0.0)
    try:
        remote.tell_crashes(state, [Crash((culprit,), culprit)])
    finally:
        remote.judges.close()
    (failure,) = state.harm
    assert Path(failure.trace).is_file()


def test_a_target_that_is_down_when_a_limit_ends_the_scenarios_is_started_again_for_the_replays() -> None:
    target: Any = Fragile(lambda api, body: False)
    remote = RemoteRun(Plan(""), Profile(start=("start",)))
    state = RunState(remote.plan, select_scenarios([], [], frozenset(), smoke=False), lambda _: None)
    monitor = CrashMonitor(target, can_restart=True)
    pool = ScenarioPool(target, DESCRIPTION, monitor, LoopLagMonitor(), None, "token", 0)
    try:
        run_virtual(remote.replay_failures(state, pool, RUNS[0]))
    finally:
        remote.judges.close()
    assert (target.starts, monitor.is_down) == (1, False)


# --- whole runs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("manner", "options", "value"),
    [
        ("dies-of-workers", ["--only", "JOIN-37"], "protocol_type='worker'"),
        ("dies-of-schedules", ["--only", "JOIN-06", "--schedules", "2"], "group_id='schedule-"),
    ],
)
def test_a_target_that_dies_of_a_request_fails_for_that(
    manner: str, options: list[str], value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    path = f"PYTHONPATH={ROOT / '.src'}:{ROOT}"
    words = ["env", path, sys.executable, "-m", "tests.support.foreground_broker", str(tmp_path), manner]
    profile, report = tmp_path / "p.toml", tmp_path / "r.json"
    profile.write_text(f"[target]\nstart = {json.dumps(shlex.join(words))}\n")
    files = ["--json", str(report), "--save", str(tmp_path / "saved")]
    assert main(["test", "--profile", str(profile), *options, *files, "--seconds", "300"]) == 1
    document = json.loads(report.read_text())
    assert "ended" not in document
    (failure,) = document["unclassified"]
    assert failure["title"].startswith("the target went down by one request: JoinGroup") and value in failure["title"]
    assert Path(failure["trace"]).is_file()
    assert {"title": failure["title"], "requirements": [], "harm": "target down"} in document["causes"]
    assert "UNCLASSIFIED no request may bring a target down" in capsys.readouterr().out


async def test_what_is_cancelled_ends_as_it_wants() -> None:
    """The first that has ended wakes who waits for all: the others are not cancelled a second time."""
    ended = list[str]()

    async def play(name: str, takes: float) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(takes)
            ended.append(name)

    playing = asyncio.create_task(play_together([play("quick", 0), play("slow", 1)]))
    await asyncio.sleep(1)
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    assert ended == ["quick", "slow"]
