"""Thresholds of the judge: repeated steps change nothing, and it is quick."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from tests.acceptance.framework import Check, Figure, MeasurementError, at_least, exactly, without_threshold
from tests.acceptance.runs import command_environment
from tests.support.calm_traces import altered_calm_trace
from tests.support.repetition_comparison import RepetitionComparison, compare_repetitions

ROOT = Path(__file__).parents[3]
JOBS = 2
"""How many processes judge."""
MIN_ALTERED_EVENTS = 1_000_000
SEEDS_AT_ONCE = 50


def compare_altered(seeds: Sequence[int]) -> RepetitionComparison:
    """`compare_repetitions` for a pool."""
    return compare_repetitions(map(altered_calm_trace, seeds))


def check_repetitions(folder: Path) -> Iterator[Figure]:
    """Altered traces of calm groups."""
    altered = RepetitionComparison()
    with get_context("spawn").Pool(JOBS) as pool:
        for first in count(step=SEEDS_AT_ONCE * JOBS):
            chunks = [range(first + job, first + SEEDS_AT_ONCE * JOBS, JOBS) for job in range(JOBS)]
            for each in pool.imap(compare_altered, chunks):
                altered.include(each)
            if altered.events >= MIN_ALTERED_EVENTS:
                break
    yield at_least("altered events", altered.events, MIN_ALTERED_EVENTS)
    yield at_least("requests among them that repeat a step", altered.repeated, 10_000)
    yield at_least("altered traces with a violation", altered.with_violations, 100)
    yield exactly("altered traces that are judged differently", altered.different, 0)


def check_benchmark(folder: Path) -> Iterator[Figure]:
    """The judge on long traces of a busy group."""
    file = folder / "benchmark.json"
    command = [sys.executable, "-m", "tests.benchmarks.judge", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, env=command_environment(), stdout=subprocess.DEVNULL)
    if not file.exists():
        raise MeasurementError(f"tests.benchmarks.judge: exit code {done.returncode}")
    figures = json.loads(file.read_text())
    for order, events, rate in (("total", 1_000_000, 20_000), ("intervals", 1, 2_000)):
        measured = figures[order]
        yield at_least(f"{order}: events", measured["events"], events)
        yield at_least(f"{order}: events a second", measured["events_per_second"], rate)
        yield exactly(f"{order}: faults and doubts", measured["faults"] + measured["inconclusive"], 0)
        yield without_threshold(f"{order}: MiB at most", measured["peak_mib"])
        yield without_threshold(f"{order}: MiB that the second half adds", measured["grown_mib_in_second_half"])
        yield exactly(f"{order}: memory is flat", "yes" if measured["flat"] else "no", "yes")


CHECKS = (
    Check("repetitions", "what calm groups repeat is what is found when it is handled anew", check_repetitions),
    Check("benchmark", "the judge keeps up with long traces in little memory", check_benchmark),
)
