"""A target's process and the folder it lives in, which outlasts it.

The process inherits a lock on a file in its folder. So whether it is alive is asked of the lock, and waiting for
its end is waiting for the lock: a stale process id can never be mistaken for a live target.
"""

import ctypes
import fcntl
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

PR_SET_PDEATHSIG = 1
EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
FIRST_PORT = 10_240
"""The lowest port of a target: below are those of well-known servers, such as Kafka's 9092."""


class StartError(Exception):
    """The target did not start; the message is one clear line, or one line and the end of a log."""


class MissingDependencyError(Exception):
    """A program or package that the target needs is missing; the message is one line, with the remedy if known."""


@dataclass(frozen=True, slots=True)
class ProcessFolder:
    """Where one target keeps its data, its process id and its output."""

    path: Path

    @property
    def log(self) -> Path:
        """Everything the process writes to stdout and stderr, over all its starts."""
        return self.path / "target.log"

    def _lock(self) -> int:
        self.path.mkdir(parents=True, exist_ok=True)
        return os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)

    def launch(self, command: Sequence[str], stale: Sequence[Path] = ()) -> subprocess.Popen[bytes] | None:
        """Start `command` in a session of its own; None if a process already lives in this folder.

        `stale` are files that a former process has left and the new one will write again.
        """
        lock = self._lock()
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        for file in stale:
            file.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock,),
                start_new_session=True,
            )
        os.close(lock)
        (self.path / "pid").write_text(str(process.pid))
        return process

    def kill(self) -> bool:
        """Kill the process without warning and wait for its end; False if none was alive."""
        lock = self._lock()
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            os.kill(int((self.path / "pid").read_text()), signal.SIGKILL)
            fcntl.flock(lock, fcntl.LOCK_EX)
            return True
        finally:
            os.close(lock)

    def wait_until_serving(
        self, process: subprocess.Popen[bytes] | None, is_serving: Callable[[], bool], timeout: float
    ) -> None:
        """Return once the target serves. Raises StartError if `process` ends first or `timeout` seconds pass."""
        deadline = time.monotonic() + timeout
        while not is_serving():
            if process is not None and process.poll() is not None:
                end = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
                raise StartError(f"the target ended early; see {self.log}\n{end}")
            if time.monotonic() > deadline:
                raise StartError(f"the target did not answer within {timeout} s; see {self.log}")
            time.sleep(0.02)


def die_with_parent() -> None:
    """Have this process killed when its parent ends; for `preexec_fn`. Only Linux knows how."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def cache_folder() -> Path:
    """Where downloads are kept, outside the repository."""
    return Path(os.environ.get("FENCEPOST_CACHE", Path.home() / ".cache" / "fencepost"))


def run_folder() -> Path:
    """Where targets live unless told otherwise; give each of several concurrent runs its own."""
    return Path(os.environ.get("FENCEPOST_RUN", cache_folder() / "run"))


def print_address(start: Callable[[], str]) -> int:
    """Print the address that `start` returns; the exit code is 0, 1 for a failed start, 2 for a missing need."""
    try:
        print(start(), flush=True)
    except (StartError, MissingDependencyError) as error:
        print(f"fencepost target: {error}", file=sys.stderr)
        return 2 if isinstance(error, MissingDependencyError) else 1
    return 0


def free_ports(count: int) -> list[int]:
    """Distinct ports of 127.0.0.1 that nobody listens on at present, and that no outgoing connection is given.

    A target takes its port some seconds later, and again after each kill. A port of the range from which the system
    serves outgoing connections may be in use by then.
    """
    candidates = range(FIRST_PORT, first_ephemeral_port()) or range(FIRST_PORT, 65536)
    shuffled = random.sample(candidates, len(candidates))
    return list(islice(filter(is_free, shuffled), count))


def first_ephemeral_port() -> int:
    """The lowest port of outgoing connections: the one that Linux is set to, else the one that IANA recommends."""
    if EPHEMERAL_PORTS.exists():
        return int(EPHEMERAL_PORTS.read_text().split()[0])
    return 49152


def is_free(port: int) -> bool:
    """Whether nobody listens on this port of 127.0.0.1."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def chosen_ports(folder: Path, count: int, first: int | None = None) -> list[int]:
    """The ports that the target in `folder` had before, else `count` free ones, which it keeps."""
    file = folder / "ports"
    if not file.exists() or len(file.read_text().split()) < count:
        folder.mkdir(parents=True, exist_ok=True)
        free = free_ports(count)
        file.write_text(" ".join(map(str, [first or free[0], *free[1:]])))
    return list(map(int, file.read_text().split()))
