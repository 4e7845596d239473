"""Targets of a test session: shared by its worker processes, and killed when the session ends, however it ends.

The process that began the session holds a lock on a file in the session's folder. A watchdog, started with the first
target, waits for that lock: it gets it when that process has ended, even by SIGKILL, and then kills what still lives.
`python -m tests.targets.session FOLDER` is the watchdog.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

from tests.targets.process import ProcessFolder

SESSION_VARIABLE = "FENCEPOST_TEST_SESSION"
"""The environment variable by which worker processes find the folder of their session."""
START_SECONDS = 20.0
"""How long a start command that outlives the session may take until it has launched its target."""
ROOT = Path(__file__).parents[2]


class TargetSession:
    """A session of this process. Its folder holds the session's lock and names the folders in which targets live."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fencepost-tests-"))
        # A record lock, not flock: processes forked from this one do not have it.
        self._alive = (self.folder / "alive").open("w")
        fcntl.lockf(self._alive, fcntl.LOCK_EX)
        os.environ[SESSION_VARIABLE] = str(self.folder)

    def end(self) -> None:
        """Kill the targets that still live and remove the folder."""
        kill_targets(self.folder)
        os.environ.pop(SESSION_VARIABLE, None)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._alive.close()


def session_folder() -> Path | None:
    """The folder of the session that this process belongs to, None outside of a session."""
    named = os.environ.get(SESSION_VARIABLE)
    return Path(named) if named else None


@contextmanager
def starting(run_folder: Path) -> Iterator[None]:
    """Have the block start a target that lives in `run_folder`: one process at a time, and watched over by the session.

    Outside of a session nobody watches.
    """
    run_folder.mkdir(parents=True, exist_ok=True)
    if (session := session_folder()) is not None:
        (session / "targets").mkdir(exist_ok=True)
        (session / "targets" / sha256(bytes(run_folder)).hexdigest()).write_text(str(run_folder))
        subprocess.run([sys.executable, "-m", "tests.targets.session", str(session)], cwd=ROOT, check=True)
    with (run_folder / "starting").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def hold_targets(names: Iterable[str]) -> Iterator[None]:
    """Hold these targets of the session for the block: other processes that want to hold one of them wait."""
    session = session_folder()
    with ExitStack() as stack:
        if session is not None:
            for name in sorted(names):
                fcntl.flock(stack.enter_context((session / f"{name}.held").open("w")), fcntl.LOCK_EX)
        yield


def kill_targets(session: Path) -> None:
    """Kill every target that was started in the session."""
    for named in (session / "targets").glob("*"):
        for lock in Path(named.read_text()).rglob("lock"):
            ProcessFolder(lock.parent).kill()


def watch(session: Path) -> None:
    """Wait for the end of the session's process, then kill its targets, also those that are about to start."""
    with (session / "watchdog").open("w") as only:
        try:
            fcntl.lockf(only, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with (session / "alive").open("r+") as alive:
                fcntl.lockf(alive, fcntl.LOCK_EX)
        except OSError:
            return  # there is a watchdog already, or the session has ended
        end = time.monotonic() + START_SECONDS
        while session.exists() and time.monotonic() < end:
            kill_targets(session)
            time.sleep(0.2)
        shutil.rmtree(session, ignore_errors=True)


def main(folder: str) -> int:
    """Leave the caller's process group and watch in the background."""
    if os.fork() == 0:
        os.setsid()
        with open(os.devnull, "r+") as nothing:
            for stream in range(3):
                os.dup2(nothing.fileno(), stream)
        watch(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
