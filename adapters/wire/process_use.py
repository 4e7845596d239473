"""What a process uses while nobody asks it anything."""

import os
from collections.abc import Mapping
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
            excesses.append(f"used {self.cpu_s:.1f} s of CPU")
        if self.output_bytes > MAX_IDLE_OUTPUT_BYTES_S * self.seconds:
            excesses.append(f"wrote {self.output_bytes / 1_000_000:.1f} MB of output")
        return f"{' and '.join(excesses)} in {self.seconds:.1f} s without a request" if excesses else ""


def thread_use_of(session: int) -> dict[str, ThreadUse]:
    """What each thread of a session's processes used, by the path that names it; none where the system does not tell
    (it has no /proc)."""
    found = {}
    for process in PROC.glob("[0-9]*"):
        if _session_of(process) == session:
            for thread in process.glob("task/*"):
                use = _use_of(thread)
                if use is not None:
                    found[str(thread)] = use
    return found


def compare_use(
    before: Mapping[str, ThreadUse], after: Mapping[str, ThreadUse], seconds: float, output_bytes: int
) -> IdleUse:
    """What was used between two looks at the threads."""
    nothing = ThreadUse(0.0, 0.0)
    ran = [use.ran_s - before.get(name, nothing).ran_s for name, use in after.items()]
    waited = [use.waited_s - before.get(name, nothing).waited_s for name, use in after.items()]
    busiest = max((run + wait for run, wait in zip(ran, waited, strict=True)), default=0.0)
    return IdleUse(seconds, sum(ran), busiest, output_bytes)


def _stat_fields(folder: Path) -> list[str]:
    """The fields of a `stat` behind the name of the program, which may hold anything; none if it has ended."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _session_of(process: Path) -> int | None:
    fields = _stat_fields(process)
    return int(fields[3]) if fields else None


def _use_of(thread: Path) -> ThreadUse | None:
    try:
        ran, waited, _ = (thread / "schedstat").read_text().split()
        return ThreadUse(int(ran) / 1e9, int(waited) / 1e9)
    except (OSError, ValueError):
        fields = _stat_fields(thread)
        ticks = int(fields[11]) + int(fields[12]) if fields else None
        return None if ticks is None else ThreadUse(ticks / os.sysconf("SC_CLK_TCK"), 0.0)
