"""Ways to end a run, each at three moments: the report is there, complete as far as judged, and says why.

The moments are the first scenario, the middle of the run, and the replay of the first failure. Each run tests a
coordinator that breaks a requirement, so that there is something to lose.
"""

import asyncio
import errno
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fencepost.adapters.address import TargetError
from fencepost.adapters.wire.target import KafkaTarget
from fencepost.conformance.analysis.failures import Origin
from fencepost.conformance.analysis.report_builder import Consequence, ReportBuilder
from fencepost.conformance.analysis.root_cause import Attribution
from fencepost.conformance.classic.protocol import CLASSIC
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.cli import main
from fencepost.conformance.reports.json_report import from_json
from fencepost.conformance.reports.words import describe_ending
from fencepost.conformance.results import Ending, EndKind, Report, Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.crashes import ConnectionLosses, TargetGone
from fencepost.conformance.run.registry import DEFAULT_PROTOCOL
from fencepost.conformance.run.requests import Blocked
from fencepost.conformance.run.run_state import RunState
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.model.settings import Settings
from fencepost.traces.events import Header, Order
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.verdict import CheckResult, CheckStatus, TraceVerdict
from tests.support.faulty_coordinators import FORGIVING, install
from tests.support.sample_reports import JOIN_29
from tests.support.served_coordinator import serve_in_thread

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
ONLY = ("--only", "HB-*")
BROKEN = "HB-04"
"""What the tested coordinator breaks."""
MOMENTS = {"first scenario": ("run", 1), "middle": ("run", 12), "replay": ("replay", 1)}
STABLE = next(scenario for scenario in ALL if scenario.name == "heartbeat-in-stable")
SETTINGS = Settings(min_session_timeout=500, initial_rebalance_delay=200, offsets_partitions=2)


@dataclass(frozen=True)
class Way:
    """A way to end a run: what happens while a scenario is played, and how the report tells it."""

    happens: Callable[[RunState], None]
    kind: EndKind
    reason: str
    detail: str = ""


def send(*signals: signal.Signals) -> Callable[[RunState], None]:
    """Send signals to this process, one after the other."""

    def happen(state: RunState) -> None:
        for each in signals:
            signal.raise_signal(each)

    return happen


def fail(error: Exception) -> Callable[[RunState], None]:
    """Raise an error."""

    def happen(state: RunState) -> None:
        raise error

    return happen


def let_time_pass(state: RunState) -> None:
    """The seconds of the run are over."""
    assert state.limits.timeout is not None
    state.limits.timeout.reschedule(asyncio.get_running_loop().time())


GONE = "the target stopped answering: connection refused since"
OOPS = "an error in Fencepost itself: ZeroDivisionError: oops"
KILLED = "A child process terminated abruptly"
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "traces/x.jsonl")
WAYS = {
    "Ctrl-C": Way(send(signal.SIGINT), EndKind.INTERRUPTED, "interrupted by Ctrl-C"),
    "Ctrl-C twice": Way(send(signal.SIGINT, signal.SIGINT), EndKind.INTERRUPTED, "interrupted by Ctrl-C"),
    "SIGTERM": Way(send(signal.SIGTERM), EndKind.INTERRUPTED, "interrupted by SIGTERM"),
    "SIGHUP": Way(send(signal.SIGHUP), EndKind.INTERRUPTED, "interrupted by SIGHUP"),
    "time limit": Way(let_time_pass, EndKind.STOPPED, "the time is up: --seconds 3600"),
    "target gone": Way(fail(TargetGone(GONE, [ConnectionLosses(0.0, "x", "")])), EndKind.TARGET_DOWN, GONE),
    "start command": Way(fail(TargetError("start command 'x': no")), EndKind.TARGET_DOWN, "start command 'x': no"),
    "disk full": Way(fail(FULL), EndKind.HARNESS_FAILED, "cannot write traces/x.jsonl: No space left on device"),
    "error of the kit": Way(fail(ZeroDivisionError("oops")), EndKind.HARNESS_FAILED, OOPS, "Traceback"),
    "judge killed": Way(
        fail(BrokenProcessPool(KILLED)),
        EndKind.HARNESS_FAILED,
        f"an error in Fencepost itself: BrokenProcessPool: {KILLED}",
        "Traceback",
    ),
}


def have_it_end(patch: Patch, way: Way, attempt: str, number: int) -> list[str]:
    """Have a run on a faulty coordinator end in some way while scenario `number` of an attempt is played; the names of
    all that were played to their end."""
    install(patch, FORGIVING)
    play_now, begun, played = BundledRun.play_now, Counter[str](), list[str]()

    async def play_or_end(run: BundledRun, scenario: Scenario, to: str, state: RunState) -> ScenarioRun:
        begun[to] += 1
        if (to, begun[to]) == (attempt, number):
            state.work.playing.add(scenario.name)
            way.happens(state)
            await asyncio.Event().wait()
        played.append(scenario.name)
        return await play_now(run, scenario, to, state)

    patch.setattr(BundledRun, "play_now", play_or_end)
    return played


def read_report(folder: Path) -> Report:
    """The report that a run left as JSON, after a look at the one in JUnit's format."""
    report = from_json((folder / "r.json").read_text())
    junit = ElementTree.parse(folder / "r.xml").getroot()
    assert report.ended is not None
    (case,) = junit.findall("testsuite[@name='run']/testcase/error")
    assert case.get("message") == describe_ending(report.ended)
    assert case.get("type") == report.ended.kind
    assert junit.get("failures") == str(len(report.failed_results()))
    return report


@pytest.fixture
def signals_are_heard() -> Iterator[None]:
    """SIGHUP has its usual meaning, also where the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("signals_are_heard")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", WAYS)
def test_whatever_ends_a_run_it_is_reported(
    name: str, moment: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    way, folder = WAYS[name], tmp_path
    played = have_it_end(monkeypatch, way, *MOMENTS[moment])
    outputs = ["--json", str(folder / "r.json"), "--junit", str(folder / "r.xml"), "--save", str(folder / "saved")]
    assert main(["test", "bundled", *ONLY, *outputs, "--seconds", "3600"]) == 3
    output, report = capsys.readouterr(), read_report(folder)
    assert report.ended is not None
    assert (report.ended.kind, report.ended.reason) == (way.kind, way.reason)
    assert report.ended.during
    assert way.detail in report.ended.detail and ("Traceback" in output.err) == bool(way.detail)
    assert " ".join(describe_ending(report.ended).split()) in " ".join(output.out.split())
    assert output.out.endswith("INCONCLUSIVE: the run was cut short.\n")
    assert report.schedules == len(played)
    saved = {path.stem for path in (folder / "saved").iterdir()}
    assert report.result(BROKEN).verdict is (Verdict.INCONCLUSIVE if saved else Verdict.NOT_OBSERVED)
    assert bool(saved) == (moment != "first scenario")
    if moment == "first scenario":
        assert {result.note for result in report.results} == {f"not played: {way.reason}"}
    else:
        assert report.summary()[Verdict.PASS] > 0


@pytest.mark.parametrize("number", [1, 2])
def test_a_violation_that_was_confirmed_before_the_end_is_one(
    number: int, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    install(monkeypatch, FORGIVING)
    confirm_run = RunState.confirm_run

    def confirm_and_fail(state: RunState, run: ScenarioRun) -> None:
        confirm_run(state, run)
        raise ZeroDivisionError

    monkeypatch.setattr(RunState, "confirm_run", confirm_and_fail)
    only = [BROKEN, "HB-05"][:number]
    assert main(["test", "bundled", "--only", *only, "--json", str(tmp_path / "r.json")]) == 1
    report = from_json((tmp_path / "r.json").read_text())
    assert report.result(BROKEN).verdict is Verdict.FAIL
    assert capsys.readouterr().out.endswith("checked (selected). The run was cut short.\n")


# --- nothing that was saved has passed


@pytest.mark.parametrize(
    ("causes", "replayed", "ended", "verdict"),
    [
        (frozenset({"HB-01"}), False, None, Verdict.PASS),
        (frozenset({"HB-01"}), False, Ending(EndKind.INTERRUPTED, "x"), Verdict.INCONCLUSIVE),
        (frozenset({"HB-01"}), True, None, Verdict.INCONCLUSIVE),
        (frozenset(), True, None, Verdict.INCONCLUSIVE),
        (frozenset({"HB-02"}), True, Ending(EndKind.INTERRUPTED, "x"), Verdict.PASS),
    ],
)
def test_a_consequence_whose_cause_did_not_fail_is_no_pass(
    causes: frozenset[str], replayed: bool, ended: Ending | None, verdict: Verdict
) -> None:
    """HB-02 failed, HB-01 did not, and HB-05 passed nearly everywhere."""
    builder = ReportBuilder(("HB-01", "HB-02", "HB-05"))
    builder.add_check("HB-05", CheckStatus.PASS, "")
    builder.consequences["HB-05"] = [Consequence("saved/x.jsonl", causes, replayed)]
    builder.deviations = {"HB-02": "known"}
    builder.findings["HB-02"].failures.append(JOIN_29)
    result = builder.build(schedules=1, events=1, seconds=0.0, target={"name": "t"}, ended=ended).result("HB-05")
    assert result.verdict is verdict
    assert ("saved/x.jsonl" in result.note) == (verdict is Verdict.INCONCLUSIVE)


def test_a_deviation_that_is_gone_is_told() -> None:
    builder = ReportBuilder(("HB-01", "HB-05"), deviations={"HB-05": "issue 7"})
    for id in ("HB-01", "HB-05"):
        builder.add_check(id, CheckStatus.PASS, "")
    report = builder.build(schedules=1, events=1, seconds=0.0, target={"name": "t"})
    assert report.result("HB-01").note == ""
    assert report.result("HB-05").note == "declared a deviation, and kept: take it out of [known]"


@pytest.mark.parametrize(("replayed", "name"), [(True, "HB-05"), (False, "HB-05"), (True, "")])
def test_a_run_that_is_cut_short_after_its_replays_doubts_schedules_alone(replayed: bool, name: str) -> None:
    """HB-05 passed, and is violated in a scenario or schedule as a consequence of HB-01, which did not fail."""
    builder = ReportBuilder(("HB-01", "HB-05"), are_scenarios_replayed=replayed)
    builder.add_check("HB-05", CheckStatus.PASS, "")
    scenario = replace(ALL[0], requirements=(name,) if name else ())
    run = ScenarioRun(scenario, Header("s", Order.TOTAL, "virtual", Settings(), 0), (), TraceVerdict((), ()))
    violation = Attribution(CheckResult("HB-05", 1, CheckStatus.FAIL), run, frozenset({"HB-01"}))
    builder.add_attribution(violation, DEFAULT_PROTOCOL.subject, {}, Origin("t", ""))
    ended = Ending(EndKind.STOPPED, "the time is up")
    report = builder.build(schedules=1, events=1, seconds=0.0, target={"name": "t"}, ended=ended)
    is_done = replayed and bool(name)
    assert report.result("HB-05").verdict is (Verdict.PASS if is_done else Verdict.INCONCLUSIVE)


# --- files


@pytest.mark.parametrize(("option", "number"), [("--traces", 1), ("--traces", 3), ("--save", 1)])
def test_a_disk_that_is_full_ends_the_run_but_not_the_report(
    option: str, number: int, tmp_path: Path, monkeypatch: Patch
) -> None:
    install(monkeypatch, FORGIVING)
    written = Counter[str]()

    def write_to_full_disk(path: Path, *trace: Any) -> None:
        written["traces"] += 1
        if written["traces"] >= number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_trace(path, *trace)

    monkeypatch.setattr("fencepost.conformance.run.stream.write_trace", write_to_full_disk)
    words = ["test", "bundled", "--only", "HB-0*", option, str(tmp_path / "t"), "--json", str(tmp_path / "r.json")]
    code = main(words)
    report = from_json((tmp_path / "r.json").read_text())
    assert report.ended is not None and report.ended.kind is EndKind.HARNESS_FAILED
    assert report.ended.reason.startswith(f"cannot write {tmp_path}/t/")
    assert report.ended.reason.endswith(".jsonl: No space left on device")
    assert written["traces"] == number
    assert code == report.exit_code() != 0


def test_a_target_that_cannot_be_used_is_told_in_every_format(tmp_path: Path, capsys: Capture) -> None:
    outputs = ["--json", str(tmp_path / "r.json"), "--junit", str(tmp_path / "r.xml")]
    assert main(["test", "kafka://127.0.0.1:1", *ONLY, *outputs]) == 2
    output, report = capsys.readouterr(), read_report(tmp_path)
    assert output.out == ""
    assert report.ended is not None and report.ended.kind is EndKind.NOT_STARTED
    assert output.err == f"fencepost: {report.ended.reason}\n"
    assert report.exit_code() == 2


# --- over the network


@pytest.mark.slow
@pytest.mark.parametrize(
    ("requests", "reason"), [(1, "it responds on no new connection"), (4, "connection refused since")]
)
def test_a_target_that_goes_away_is_the_finding(
    requests: int, reason: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    """The server ends while one scenario is under way, after another one was judged."""

    async def play(context: ScenarioContext) -> None:
        while not (tmp_path / "heartbeat-in-stable.jsonl").exists():
            await context.sleep(20)
        server.__exit__(None, None, None)
        for _ in range(requests):
            with suppress(Blocked):
                await context.heartbeat(context.member("A"))

    monkeypatch.setattr(
        "fencepost.conformance.run.registry.DEFAULT_PROTOCOL",
        replace(CLASSIC, scenarios=(STABLE, Scenario("last-words", ("HB-02",), play))),
    )
    server = serve_in_thread(SETTINGS)
    bootstrap = server.__enter__()
    outputs = ["--json", str(tmp_path / "r.json"), "--junit", str(tmp_path / "r.xml"), "--traces", str(tmp_path)]
    assert main(["test", f"kafka://{bootstrap}", *outputs]) == 3
    report = read_report(tmp_path)
    assert report.ended is not None and report.ended.kind is EndKind.TARGET_DOWN
    assert report.ended.reason == f"the target stopped answering: {reason}"
    assert report.ended.during == "last-words"
    assert report.ended.last_sign is not None and 0 < report.ended.last_sign <= report.ended.seconds
    assert "during last-words: the target stopped answering" in " ".join(capsys.readouterr().out.split())
    assert report.result("HB-05").verdict is Verdict.PASS


@pytest.mark.parametrize("failing", ["kill", "start"])
def test_a_command_that_fails_costs_nothing_that_was_found(
    failing: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    """A scenario that needs a restart is blocked: with a failing kill command the target goes on, and with a failing
    start command it is gone (it only seems so here)."""
    commands = {"start": "true", "kill": "true", failing: "false"}
    profile = tmp_path / "p.toml"
    profile.write_text(f'[target]\nstart = "{commands["start"]}"\nkill = "{commands["kill"]}"\n')
    alive = KafkaTarget.is_alive

    async def is_alive(target: KafkaTarget) -> bool:
        return failing == "kill" and await alive(target)

    async def play(context: ScenarioContext) -> None:
        await context.restart()

    restarting = Scenario("restarting", ("FAILOVER-02",), play)
    monkeypatch.setattr(KafkaTarget, "is_alive", is_alive)
    monkeypatch.setattr(
        "fencepost.conformance.run.registry.DEFAULT_PROTOCOL", replace(CLASSIC, scenarios=(STABLE, restarting))
    )
    with serve_in_thread(SETTINGS) as bootstrap:
        words = ["test", f"kafka://{bootstrap}", "--profile", str(profile), "--schedules", "0"]
        assert main([*words, "--json", str(tmp_path / "r.json")]) == 3
    report = from_json((tmp_path / "r.json").read_text())
    told = f"{failing} command 'false': exit code 1: nothing on stderr"
    assert report.result("HB-05").verdict is Verdict.PASS
    if failing == "kill":
        assert report.ended is None
        assert report.result("FAILOVER-02").note == told
    else:
        assert report.ended is not None and report.ended.kind is EndKind.TARGET_DOWN
        assert report.ended.reason == f"the target could not be restarted: {told}"


def test_a_second_ctrl_c_does_not_wait_for_the_target(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    """The run ends by the first one; closing the target takes for ever."""
    close = KafkaTarget.close

    async def close_slowly(target: KafkaTarget) -> None:
        await close(target)
        if (tmp_path / "heartbeat-in-stable.jsonl").exists():
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()

    async def play(context: ScenarioContext) -> None:
        while not (tmp_path / "heartbeat-in-stable.jsonl").exists():
            await context.sleep(20)
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()

    monkeypatch.setattr(KafkaTarget, "close", close_slowly)
    monkeypatch.setattr(
        "fencepost.conformance.run.registry.DEFAULT_PROTOCOL",
        replace(CLASSIC, scenarios=(STABLE, Scenario("interrupted", ("HB-02",), play))),
    )
    with serve_in_thread(SETTINGS) as bootstrap:
        assert main(["test", f"kafka://{bootstrap}", "--traces", str(tmp_path)]) == 3
    assert capsys.readouterr().out.endswith("INCONCLUSIVE: the run was cut short.\n")
