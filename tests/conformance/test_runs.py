"""Whole runs through the command line: saved failures and reports, and the results after Ctrl-C."""

import asyncio
import json
import os
import re
import shlex
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.target import Description
from fencepost.adapters.wire.target import KafkaTarget
from fencepost.conformance.classic.protocol import CLASSIC
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.cli import main
from fencepost.conformance.cli.console import Console
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.crashes import CrashMonitor
from fencepost.conformance.run.play import LoopLagMonitor
from fencepost.conformance.run.pool import RestartBarrier, ScenarioPool
from fencepost.conformance.subject import Scenario
from fencepost.model.settings import Settings
from fencepost.traces.events import Order
from tests.support.faulty_coordinators import FORGIVING, install
from tests.support.served_coordinator import serve_in_thread

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
STABLE = next(scenario for scenario in ALL if scenario.name == "heartbeat-in-stable")
TIMEOUT_SECONDS = 30
"""Seconds; what usually takes less than one."""


def press_ctrl_c() -> None:
    """As from a terminal: the signal is for the process, and so for its main thread."""
    os.kill(os.getpid(), signal.SIGINT)


def requirement(report: Path, id: str) -> dict[str, Any]:
    """What a saved report says of a requirement."""
    document = json.loads(report.read_text())
    found: dict[str, Any] = next(one for one in document["requirements"] if one["id"] == id)
    return found


# --- what is saved


def test_a_saved_failure_names_the_command_that_runs_it_again(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    install(monkeypatch, FORGIVING)
    folder, report, profile = tmp_path / "my failures", tmp_path / "r.json", tmp_path / "p.toml"
    profile.write_text("")
    options = ["--save", str(folder), "--json", str(report), "--profile", str(profile)]
    assert main(["test", "bundled", "--only", "HB-04", *options]) == 1
    (failure, *_) = requirement(report, "HB-04")["failures"]
    assert (Path(failure["trace"]).parent, failure["replayed"]) == (folder, True)
    words = shlex.split(failure["replay"])
    assert words == ["fencepost", "replay", failure["trace"], "bundled", "--profile", str(profile)]
    capsys.readouterr()
    assert main(words[1:]) == 1
    assert capsys.readouterr().out.endswith("STILL FAILS\n")


def test_a_failure_that_is_not_saved_is_found_again_by_its_requirements(tmp_path: Path, monkeypatch: Patch) -> None:
    install(monkeypatch, FORGIVING)
    report = tmp_path / "r.json"
    assert main(["test", "bundled", "--only", "HB-04", "--json", str(report)]) == 1
    words = shlex.split(requirement(report, "HB-04")["failures"][0]["replay"])
    assert words[:4] == ["fencepost", "test", "bundled", "--only"]
    assert "HB-04" in words[4:]
    assert main(words[1:]) == 1


# --- Ctrl-C


@pytest.fixture
def stuck(monkeypatch: Patch) -> Iterator[None]:
    """After the first scenario, the bundled run comes to one that interrupts it and does not end by itself."""
    released = threading.Event()

    async def play(context: ScenarioContext) -> None:
        press_ctrl_c()
        released.wait(TIMEOUT_SECONDS)

    scenarios = (STABLE, Scenario("interrupted", ("HB-02",), play))
    monkeypatch.setattr("fencepost.conformance.run.registry.DEFAULT_PROTOCOL", replace(CLASSIC, scenarios=scenarios))
    yield
    released.set()


@pytest.mark.usefixtures("stuck")
def test_ctrl_c_in_a_bundled_run(tmp_path: Path, capsys: Capture) -> None:
    report = tmp_path / "r.json"
    assert main(["test", "bundled", "--json", str(report), "--traces", str(tmp_path)]) == 3
    assert capsys.readouterr().out.endswith("INCONCLUSIVE: the run was cut short.\n")
    assert requirement(report, "HB-05")["verdict"] == "pass"
    assert (tmp_path / "heartbeat-in-stable.jsonl").exists()


@pytest.mark.usefixtures("stuck")
def test_a_failure_that_could_not_be_replayed_any_more(tmp_path: Path, monkeypatch: Patch) -> None:
    install(monkeypatch, FORGIVING)
    report = tmp_path / "r.json"
    assert main(["test", "bundled", "--json", str(report), "--save", str(tmp_path)]) == 3
    found = requirement(report, "HB-04")
    assert found["verdict"] == "inconclusive"
    assert re.fullmatch(r"failed once, see \S+; the run was cut short before it could be replayed", found["note"])
    assert (tmp_path / "heartbeat-in-stable.jsonl").exists()


def test_ctrl_c_in_a_run_on_the_wire(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    async def play(context: ScenarioContext) -> None:
        while not (tmp_path / "heartbeat-in-stable.jsonl").exists():
            await context.sleep(20)
        press_ctrl_c()
        await asyncio.Event().wait()

    scenarios = (STABLE, Scenario("interrupted", ("HB-02",), play))
    monkeypatch.setattr("fencepost.conformance.run.registry.DEFAULT_PROTOCOL", replace(CLASSIC, scenarios=scenarios))
    report = tmp_path / "r.json"
    with serve_in_thread(
        Settings(min_session_timeout=500, initial_rebalance_delay=200, offsets_partitions=2)
    ) as bootstrap:
        options = ["--json", str(report), "--traces", str(tmp_path)]
        assert main(["test", f"kafka://{bootstrap}", *options]) == 3
    output = capsys.readouterr()
    assert output.out.endswith("INCONCLUSIVE: the run was cut short.\n")
    assert "Traceback" not in output.err
    assert requirement(report, "HB-05")["verdict"] == "pass"


def test_a_run_that_is_cut_short_restarts_nothing(monkeypatch: Patch) -> None:
    """One of two scenarios waits for the restart, the other is on its way, when both are cancelled."""
    restarts = 0
    arrived = asyncio.Event()

    async def restart(self: KafkaTarget) -> None:
        nonlocal restarts
        restarts += 1

    class WaitingPool(ScenarioPool):
        async def play(self, scenario: Scenario, attempt: str, restart: Any = None, *, alone: bool = True) -> Any:
            if scenario.name == "first":
                arrived.set()
                await restart()
            await asyncio.Event().wait()

    async def story() -> None:
        target = KafkaTarget(("127.0.0.1", 1))
        description = Description("target", Order.INTERVALS, "monotonic", {}, Settings(), "topic")
        monitor = CrashMonitor(target, can_restart=True)
        pool = WaitingPool(target, description, monitor, LoopLagMonitor(), None, "token", 0)
        rough = [Scenario(name, (), STABLE.play, needs=("restart",)) for name in ("first", "second")]
        task = asyncio.get_running_loop().create_task(pool.play_all(rough, "run", print))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    monkeypatch.setattr(KafkaTarget, "restart", restart)
    asyncio.run(story())
    assert restarts == 0


def test_all_who_are_left_go_on_after_one_restart() -> None:
    restarts = []

    async def restart() -> None:
        restarts.append(1)

    async def story() -> None:
        meeting = RestartBarrier(3, restart)
        first = asyncio.get_running_loop().create_task(meeting.wait())
        second = asyncio.get_running_loop().create_task(meeting.wait())
        await asyncio.sleep(0)
        assert not restarts
        await meeting.leave()
        await asyncio.gather(first, second)

    asyncio.run(story())
    assert restarts == [1]


# --- serve


def test_serve_says_where_it_listens_and_ends_on_ctrl_c(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    said: list[str] = []

    def announce(_: Console, bootstrap: str) -> None:
        said.append(bootstrap)
        press_ctrl_c()

    monkeypatch.setattr(Console, "print_line", announce)
    assert main(["serve", "--port", "0", "--storage", str(tmp_path)]) == 0
    assert capsys.readouterr().err == "fencepost: stopped\n"
    (bootstrap,) = said
    assert bootstrap.startswith("127.0.0.1:")


def test_a_port_that_is_taken(capsys: Capture) -> None:
    with serve_in_thread() as bootstrap:
        assert main(["serve", "--port", bootstrap.rpartition(":")[2]]) == 2
    assert capsys.readouterr().err == (
        f"fencepost: {bootstrap}: cannot listen: Address already in use; "
        "choose another port, 0 for any, or another host\n"
    )


@pytest.mark.parametrize(("name", "content"), [("coordinator.log", "no frames at all"), ("topics.json", "[1]")])
def test_damaged_storage(name: str, content: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / name).write_text(content)
    assert main(["serve", "--port", "0", "--storage", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fencepost: {tmp_path}/{name}: ")
