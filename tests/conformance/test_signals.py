"""Commands with worker processes end soon after a signal, tell what they know, and leave no process behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc"),
]
MAX_END_S = 3.0
"""How long a command may take to end; it takes half a second on a calm machine."""
PATIENCE_S = 60.0
COMMANDS = {
    "prove": ["prove", "--slots", "4"],
    "zoo": ["zoo", "--jobs", "2"],
    "zoo of clients": ["zoo", "--jobs", "2", "--only", "BUG-58", "BUG-6*"],
    "many schedules": ["test", "bundled", "--only", "SYNC-*", "--schedules", "100000"],
}
WORKERS = 2


def live_processes(session: int) -> set[int]:
    """The processes of a session that have not ended."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session, *_ = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(its_session) == session and state not in "ZX":
            found.add(int(stat.parent.name))
    return found


def wait_for_processes(session: int, count: int) -> None:
    """Wait until a session has this many processes, or none of them if that is 0."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := len(live_processes(session))) < count or (not count and found):
        assert time.monotonic() < deadline, f"{found} processes instead of {count}"
        time.sleep(0.02)


@contextmanager
def start(arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A command with a session of its own, which has started its workers."""
    command = [sys.executable, "-m", "fencepost", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            wait_for_processes(process.pid, WORKERS + 2)  # the command, its workers, and Python's resource tracker
            yield process
        finally:
            if live_processes(process.pid):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_ends_soon_after_a_signal_and_leaves_no_process(name: str, number: signal.Signals) -> None:
    """Ctrl-C goes to all processes of a terminal, SIGTERM to the one that is to end."""
    with start(COMMANDS[name]) as process:
        begun = time.monotonic()
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        output, errors = process.communicate(timeout=PATIENCE_S)
        assert time.monotonic() - begun < MAX_END_S
        assert process.returncode == 3
        assert "Traceback" not in output + errors and "interrupted" in output + errors
        wait_for_processes(process.pid, 0)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_worker_outlives_a_command_that_is_killed(name: str) -> None:
    with start(COMMANDS[name]) as process:
        process.kill()
        process.wait(PATIENCE_S)
        wait_for_processes(process.pid, 0)


def test_prove_tells_what_is_proved_so_far(tmp_path: Path) -> None:
    saved = tmp_path / "proof.json"
    with start([*COMMANDS["prove"], "--json", str(saved)]) as process:
        assert process.stdout is not None and process.stdout.readline().startswith("proved  draining.")
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3
    assert output.splitlines()[-1].startswith("interrupted: ")
    proof = json.loads(saved.read_text())
    assert proof["cut_short"] and {one["verdict"] for one in proof["theorems"]} == {"proved"}
