"""What a process uses while nobody asks it anything."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
MAX_IDLE_CPU_SHARE = 0.5
"""The share of a core that a target may use while it is idle."""
MIN_SPINNING_SHARE = 0.8
"""A thread that runs, or waits for a core, for so much of the time does not rest: on a busy machine it gets less."""
MIN_SPINNING_CPU_SHARE = 0.1
MAX_IDLE_OUTPUT_BYTES_S = 1_000_000
"""How much a target may write to stdout and stderr while it is idle, in bytes per second."""


@dataclass(frozen=True, slots=True)
class ThreadUse:
    """How long a thread ran so far, and how long it waited for a core, in seconds."""

    ran_s: float
    waited_s: float


@dataclass(frozen=True, slots=True)
class IdleUse:
    """What a process and its children used in so many seconds: seconds of CPU, seconds for which the busiest thread ran
    or waited for a core, and bytes written to their output."""

    seconds: float
    cpu_s: float
    busiest_s: float
    output_bytes: int

    def describe_excess(self) -> str:
        """What is too much for an idle target, with the numbers; "" if nothing is."""
        excesses = []
        spins = self.busiest_s > MIN_SPINNING_SHARE * self.seconds
        if self.cpu_s > (MIN_SPINNING_CPU_SHARE if spins else MAX_IDLE_CPU_SHARE) * self.seconds:
            share = self.cpu_s / self.seconds
            excesses.append(f"used {self.cpu_s:.1f} s of CPU ({share:.2f} s a second)")
        if self.output_bytes > MAX_IDLE_OUTPUT_BYTES_S * self.seconds:
            excesses.append(f"wrote {self.output_bytes / 1_000_000:.1f} MB of output")
        return f"{' and '.join(excesses)} in {self.seconds:.1f} s without a request" if excesses else ""


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What processes used so far: each thread, by the path that names it, and the bytes of their output."""

    threads: Mapping[str, ThreadUse]
    output_bytes: int


def process_folders(proc: Path) -> Iterator[Path]:
    """The folder of each process; none where the system has no /proc."""
    return proc.glob("[0-9]*")


def processes_of_session(session: int) -> frozenset[int]:
    """The processes of a session; none where the system does not tell (it has no /proc)."""
    return frozenset(int(folder.name) for folder in process_folders(PROC) if _session_of(folder) == session)


def thread_use_of(processes: Iterable[int]) -> dict[str, ThreadUse]:
    """What each thread of the processes used, by the path that names it."""
    found = {}
    for process in processes:
        for thread in (PROC / str(process)).glob("task/*"):
            use = _use_of(thread)
            if use is not None:
                found[str(thread)] = use
    return found


def output_size_of(processes: Iterable[int]) -> int:
    """The bytes in the files to which the processes write their stdout and stderr; what is no file has none."""
    sizes: dict[tuple[int, int], int] = {}
    for process in processes:
        for stream in ("1", "2"):
            try:
                status = (PROC / str(process) / "fd" / stream).stat()
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                sizes[status.st_dev, status.st_ino] = status.st_size
    return sum(sizes.values())


def compare_use(before: ProcessUse, after: ProcessUse, seconds: float) -> IdleUse:
    """What was used between two looks. A file that was emptied meanwhile counts as unchanged."""
    nothing = ThreadUse(0.0, 0.0)
    former = before.threads
    ran = [use.ran_s - former.get(name, nothing).ran_s for name, use in after.threads.items()]
    waited = [use.waited_s - former.get(name, nothing).waited_s for name, use in after.threads.items()]
    busiest = max((run + wait for run, wait in zip(ran, waited, strict=True)), default=0.0)
    return IdleUse(seconds, sum(ran), busiest, max(0, after.output_bytes - before.output_bytes))


def stat_fields(folder: Path) -> list[str]:
    """The fields of a `stat` behind the name of the program, which may hold anything; none if it has ended."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _session_of(process: Path) -> int | None:
    fields = stat_fields(process)
    return int(fields[3]) if fields else None


def _use_of(thread: Path) -> ThreadUse | None:
    try:
        ran, waited, _ = (thread / "schedstat").read_text().split()
        return ThreadUse(int(ran) / 1e9, int(waited) / 1e9)
    except (OSError, ValueError):
        fields = stat_fields(thread)
        ticks = int(fields[11]) + int(fields[12]) if fields else None
        return None if ticks is None else ThreadUse(ticks / os.sysconf("SC_CLK_TCK"), 0.0)
