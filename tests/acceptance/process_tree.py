"""A process and all that came of it: memory and processor time."""

import os
from collections.abc import Iterator
from pathlib import Path


def process_tree(process: int) -> Iterator[int]:
    """A process and all that came of it."""
    yield process
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from process_tree(int(child))


def memory_mib(process: int) -> float:
    """Its memory in MiB; what it shares with others counts in part."""
    try:
        rows = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(row.split()[1]) for row in rows if row.startswith("Pss:")) / 1024


def processor_seconds(process: int) -> float:
    """The processor time of a process and of all that came of it, also of what has ended and was waited for."""
    ticks = 0
    for each in process_tree(process):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
