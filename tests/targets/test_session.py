"""A test session's targets: one for all its processes, and none after it, however it ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import indent

from tests.targets.background import is_serving
from tests.targets.running import load_target

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 30
BEGIN = "from tests.targets.session import TargetSession; session = TargetSession()"
SHARE = "from tests.targets.running import shared_target; print(shared_target('serve').port, flush=True)"
WAIT = "input()"


def run_python(*lines: str) -> subprocess.Popen[str]:
    """A Python process of its own that runs `lines`."""
    command = [sys.executable, "-c", "\n".join(lines)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def read_port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until `holds` is true. Raises AssertionError after TIMEOUT_S seconds."""
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_killed_session_leaves_no_target() -> None:
    with run_python(BEGIN, SHARE, WAIT) as process:
        port = read_port(process)
        assert is_serving(port)
        process.kill()
    wait_until(lambda: not is_serving(port))


def test_processes_of_a_session_share_a_target() -> None:
    fork = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SHARE!r}])"
    with run_python(BEGIN, SHARE, fork, WAIT, "session.end()", WAIT) as process:
        port = read_port(process)
        assert read_port(process) == port and is_serving(port), "a process that ends takes its target with it"
        process.communicate("\n\n", TIMEOUT_S)
    assert not is_serving(port)


def test_a_target_is_held_by_one_process_at_a_time() -> None:
    held = "import fcntl; fcntl.flock(open(session.folder / 'x.held', 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    hold = "from tests.targets.session import hold_targets"
    attempt = f"""
try:
    {held}
    print(1)
except BlockingIOError:
    print(0)
"""
    with run_python(
        BEGIN, hold, f"with hold_targets(['x']):{indent(attempt, '    ')}", attempt, "session.end()"
    ) as process:
        assert [read_port(process), read_port(process)] == [0, 1]


def test_a_target_started_from_a_shell_stays(tmp_path: Path) -> None:
    target = load_target("serve", tmp_path)
    env = {name: value for name, value in os.environ.items() if name != "FENCEPOST_TEST_SESSION"}
    env |= {"FENCEPOST_RUN": str(tmp_path), "PYTHON": sys.executable}
    done = subprocess.run(target.profile.start, cwd=target.profile.folder, env=env, capture_output=True, text=True)
    target.bootstrap = done.stdout.strip()
    try:
        assert is_serving(target.port)
    finally:
        target.kill()
    assert not is_serving(target.port)


def test_ctrl_c_is_heard_where_the_shell_ignores_it() -> None:
    test = "tests/adapters/test_serve_wire.py::test_it_runs_until_interrupted"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", test]
    ignoring = ["sh", "-c", f"trap '' {signal.SIGINT.value}; exec \"$@\"", "sh", *command]
    done = subprocess.run(ignoring, cwd=ROOT, capture_output=True, text=True, timeout=4 * TIMEOUT_S)
    assert done.returncode == 0, done.stdout
