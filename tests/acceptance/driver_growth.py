"""What the driver of an ingest and of a judge takes for many small traces: memory and processor time of its Python, and
the memory of Java, in which executors are, too, on one machine."""

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from fencepost.conformance.pipeline.overview import SUMMARY
from fencepost.conformance.pipeline.shard_findings import shard_findings
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.ingest import ingest, trace_files
from fencepost.traces.pipeline.query_corpus import query_corpus
from fencepost.traces.pipeline.results import find_unreadable, fold_on_workers, judge_corpus
from fencepost.traces.pipeline.shard_plan import plan_parts
from fencepost.traces.pipeline.spark_session import spark_session
from tests.acceptance.checks.conformance import command_environment
from tests.acceptance.crash_recovery import SPARK_CONFIG, ignore_progress
from tests.acceptance.framework import ROOT, Figure, at_most, without_threshold
from tests.acceptance.process_tree import memory_mib, process_tree
from tests.support.random_client import random_trace

TEMPLATES = 50
FEW, MANY, PLANNED = 10_000, 100_000, 1_000_000
STEPS, MORE_STEPS = 3, 15
"""The steps of random clients in a short trace, and in a longer one."""
JAVA, MEMORY, SECONDS = "MiB of Java", "MiB of Python", "processor seconds of Python"
Measured = Mapping[str, float]


def make_traces(folder: Path, count: int, steps: int) -> None:
    """Write small traces, of which some are alike."""
    texts = []
    for seed in range(TEMPLATES):
        header, found = random_trace(random.Random(f"driver {seed}"), steps)
        write_trace(folder / "template", replace(header, source="driver"), found)
        texts.append((folder / "template").read_bytes())
    (folder / "template").unlink()
    for number in range(count):
        (folder / f"{number:07}.jsonl").write_bytes(texts[number % TEMPLATES])


def ingest_traces(place: Path) -> None:
    """Ingest the traces of a place."""
    with spark_session("acceptance", "local[2]", SPARK_CONFIG) as spark:
        corpus = Corpus.create(place / "corpus", 16)
        ingest(spark, corpus, trace_files(spark, [place / "traces"]), ignore_progress)
        report_driver()


def judge_traces(place: Path) -> None:
    """Do what `pipeline judge` does on a large corpus."""
    out = place / "out"
    out.mkdir()
    with spark_session("acceptance", "local[2]", SPARK_CONFIG) as spark:
        corpus = Corpus.open(place / "corpus").snapshot()
        find_unreadable(spark, corpus, out)
        parts = plan_parts(spark, corpus)
        judge_corpus(spark, corpus, parts, out, shard_findings, ignore_progress)
        query_corpus(spark, corpus, parts, out, ignore_progress)
        report = fold_on_workers(spark, out, SUMMARY).report.build_report(0)
        assert report.schedules == len(corpus.inputs())
        report_driver()


def report_driver() -> None:
    """Print what this process and its Java have taken so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    java = max(map(memory_mib, list(process_tree(os.getpid()))[1:]), default=0)
    seconds = used.ru_utime + used.ru_stime
    print(json.dumps({MEMORY: used.ru_maxrss / 1024, SECONDS: seconds, JAVA: java}))


STAGES: Mapping[str, Callable[[Path], None]] = {"ingest": ingest_traces, "judge": judge_traces}


def measure_stage(stage: str, place: Path) -> tuple[Measured, float]:
    """What the driver of a stage takes, in a process of its own, and the seconds by the clock."""
    command = [sys.executable, "-m", "tests.acceptance.driver_growth", stage, str(place)]
    begun = time.monotonic()
    done = subprocess.run(command, env=command_environment(), cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found, time.monotonic() - begun


def measure_drivers(folder: Path, count: int, steps: int) -> Iterator[tuple[str, Measured, float]]:
    """Yield each stage, what its driver takes for so many traces, and the seconds by the clock."""
    place = folder / f"{count}-{steps}"
    (place / "traces").mkdir(parents=True)
    make_traces(place / "traces", count, steps)
    for stage in STAGES:
        yield stage, *measure_stage(stage, place)


def check_driver(folder: Path) -> Iterator[Figure]:
    """Drivers for few and many traces, the lines through both, and a driver for longer traces."""
    few = {stage: found for stage, found, _ in measure_drivers(folder, FEW, STEPS)}
    for stage, found, _ in measure_drivers(folder, FEW, MORE_STEPS):
        for what in (MEMORY, SECONDS):
            growth = round(found[what] / few[stage][what], 2)
            yield at_most(f"{stage}: times the {what} for {FEW} traces, for as many longer ones", growth, 1.25)
    for stage, found, seconds in measure_drivers(folder, MANY, STEPS):
        yield without_threshold(f"{stage}: seconds by the clock for {MANY} traces", round(seconds))
        for what, value in found.items():
            yield without_threshold(f"{stage}: {what} for {FEW} traces", round(few[stage][what]))
            yield without_threshold(f"{stage}: {what} for {MANY} traces", round(value))
        for what in (MEMORY, SECONDS):
            line = found[what] + (PLANNED - MANY) * (found[what] - few[stage][what]) / (MANY - FEW)
            yield without_threshold(f"{stage}: {what} for 10^6 traces, on this line", round(line))


if __name__ == "__main__":
    STAGES[sys.argv[1]](Path(sys.argv[2]))
