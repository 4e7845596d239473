"""Runs on push targets: reports, saved failures, replays, diagrams; over the network too."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.adapters.push.broker import BrokerSettings, PushBroker
from fencepost.adapters.push.target import BundledPushTarget
from fencepost.adapters.push.zookeeper import MemoryZookeeper
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.cli import main
from fencepost.conformance.plan import Plan, ReplayOutcome
from fencepost.conformance.profile import Profile
from fencepost.conformance.push.protocol import PUSH
from fencepost.conformance.push.scenarios import ALL
from fencepost.conformance.push.schedules import BundledPushSchedules
from fencepost.conformance.reports.drawings import to_text
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.reports.sequence import draw_excerpt, read_excerpt
from fencepost.conformance.results import Report, Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.play import Counterexample, falsify, target_bench
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.replay import replay_whole
from fencepost.conformance.run.stream import TraceSaver, consume, stream_events
from fencepost.model.push.specification import PUSH as SPECIFICATION
from tests.support.push.faults import FAULTS
from tests.support.push.requirements import NOT_ON_THE_WIRE

Capture = pytest.CaptureFixture[str]


def activate(name: str) -> AbstractContextManager[None]:
    """Have this process carry a fault, none for ""."""
    return FAULTS[name].activate() if name else nullcontext()


def run_push(name: str, folder: Path, *patterns: str, schedules: int = 0) -> Report:
    """The report of a run on a coordinator with this fault, "" for none."""
    plan = Plan("push://bundled", patterns, schedules=schedules, save=folder)
    run = BundledRun(plan, Profile(), lambda settings: BundledPushTarget(), can_configure=False, protocol=PUSH)
    chosen = [each for each in SPECIFICATION.requirements.values() if not patterns or each.id in patterns]
    with activate(name):
        return asyncio.run(consume(stream_events(lambda emit: run.run(chosen, emit)), TraceSaver(folder)))


def test_bundled_coordinator_fails_nothing(tmp_path: Path) -> None:
    report = run_push("", tmp_path, schedules=30)
    verdicts = {result.id: result.verdict for result in report.results}
    assert {id for id, verdict in verdicts.items() if verdict is not Verdict.PASS} == NOT_ON_THE_WIRE
    assert Verdict.FAIL not in verdicts.values() and Verdict.INCONCLUSIVE not in verdicts.values()
    assert (report.schedules, [*tmp_path.iterdir()]) == (len(ALL) + 30, [])
    assert from_json(to_json(report)) == report


def test_failure_is_saved_drawn_and_replayed(tmp_path: Path) -> None:
    report = run_push("start_before_all_stopped", tmp_path, "PUSH-38")
    (result,) = (result for result in report.results if result.verdict is Verdict.FAIL)
    assert result.id == "PUSH-38"
    failure = result.failures[0]
    excerpt = read_excerpt(failure)
    assert excerpt is not None
    lines = to_text(draw_excerpt(excerpt, failure.step))
    (wrong,) = (line for line in lines if line.endswith("<-- WRONG"))
    assert "Start" in wrong and "\N{BLACK LEFT-POINTING SMALL TRIANGLE}" in wrong
    trace = next(tmp_path.iterdir())

    def replay(name: str) -> ReplayOutcome:
        with activate(name):
            return run_virtual(replay_whole(trace, PUSH, BundledPushTarget(), "replay", 0)).outcome

    assert (replay("start_before_all_stopped"), replay("leave_last_out"), replay("")) == (
        ReplayOutcome.STILL_FAILS,
        ReplayOutcome.DIFFERENT,
        ReplayOutcome.FIXED,
    )


def test_counterexample_is_shrunk() -> None:
    with activate("accept_duplicates"):
        found = falsify(target_bench(BundledPushSchedules(), BundledPushTarget), seed=1, seconds=60)
    assert isinstance(found, Counterexample)
    assert found.requirement == "PUSH-26"
    assert [move.kind.partition("-")[0] for move in found.shrunk.moves] == ["join", "join"]


def test_command_line_on_the_bundled_coordinator(tmp_path: Path, capsys: Capture) -> None:
    traces, report = tmp_path / "traces", tmp_path / "report.json"
    words = ["test", "push://bundled", "--only", "PUSH-3*", "--traces", str(traces), "--json", str(report), "-q"]
    assert main(words) == 0
    document = json.loads(report.read_text())
    assert document["subject"] == "push coordinator"
    assert {row["id"][:6] for row in document["requirements"]} == {"PUSH-3"}
    capsys.readouterr()
    assert main(["judge", str(traces)]) == 0
    assert "PUSH" in capsys.readouterr().out
    trace = str(next(traces.iterdir()))
    assert main(["replay", trace, "push://bundled"]) == 3
    assert "nothing fails in the trace" in capsys.readouterr().out
    assert main(["replay", trace, "bundled"]) == 2
    assert main(["test", "push://nowhere", "-q"]) == 2
    assert "write push://host:port, or push://bundled" in capsys.readouterr().err


@asynccontextmanager
async def serving(settings: BrokerSettings) -> AsyncIterator[str]:
    zookeeper = MemoryZookeeper({"fencepost": [f"0-{number}" for number in range(4)]})
    broker = PushBroker(0, zookeeper, settings)
    host, port = await broker.start()
    try:
        yield f"push://{host}:{port}"
    finally:
        await broker.close()


@pytest.mark.slow
@pytest.mark.real_time
async def test_run_over_the_network() -> None:
    settings = BrokerSettings(maximum_session_timeout_ms=2_000)
    limits = {"session_timeout_ms": 600, "min_session_timeout": 100, "max_session_timeout": 2_000}
    async with serving(settings) as address:
        plan = Plan(address, ("PUSH-25", "PUSH-26", "PUSH-27"))
        run = RemoteRun(plan, replace(Profile(), limits=limits, grace=1_000), protocol=PUSH)
        chosen = [SPECIFICATION.requirements[id] for id in plan.patterns]
        report = await consume(stream_events(lambda emit: run.run(chosen, emit)), TraceSaver())
    assert {result.id: result.verdict for result in report.results} == dict.fromkeys(plan.patterns, Verdict.PASS)
