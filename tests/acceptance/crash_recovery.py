"""Stages of the pipeline, killed at random points and started again: in the end their tables are the same."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fencepost.conformance.plan import Plan
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.run.campaign import campaign, finished, merged, report_file
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline.corpus import TABLES, Corpus
from fencepost.traces.pipeline.ingest import ingest
from fencepost.traces.pipeline.spark_session import session
from fencepost.traces.pipeline.stream import found_in, watch
from tests.acceptance.checks.conformance import environment
from tests.acceptance.framework import Figure, at_least, exactly, told
from tests.support.altered_traces import altered_trace
from tests.traces.pipeline.test_ingest import table

CONF = {"spark.driver.memory": "1500m"}
KILLS = 6
TRACES, SPOILED, SEEDS = 60, 10, 16
PLAN = Plan("bundled", patterns=("HB-0*",), smoke=True, schedules=10)

Rows = Mapping[str, list[Any]]


def quiet(done: int, total: int, doing: str) -> None:
    """Nobody wants to know."""


def ingest_stage(traces: Path, to: Path) -> None:
    """Ingest, with many commits."""
    with session("bars", "local[2]", CONF) as spark:
        ingest(spark, Corpus.create(to, 4), sorted(traces.glob("*.jsonl")), quiet, batch=100_000)


def watch_stage(traces: Path, to: Path) -> None:
    """Watch, a few files at a time."""
    with session("bars", "local[2]", CONF) as spark:
        watch(spark, traces, to, 2, once=True, at_once=4).awaitTermination()


def campaign_stage(_: Path, to: Path) -> None:
    """A campaign, with many commits."""
    with session("bars", "local[2]", CONF) as spark:
        campaign(spark, Corpus.create(to, 2), PLAN, range(1, SEEDS + 1), quiet, at_once=2)


def ingested(to: Path) -> Rows:
    """The tables of a corpus."""
    return {name: table(Corpus.open(to), name) for name in TABLES}


def seen(to: Path) -> Rows:
    """What a watch found."""
    return {"found": sorted((tuple(row.values()) for _, row in found_in(to)), key=repr)}


def won(to: Path) -> Rows:
    """The events of a campaign, each without the folder its trace was in, and its report without the time it took."""
    corpus = Corpus.open(to)
    reports = (from_json(report_file(corpus, each).read_text(encoding="utf-8")) for each in sorted(finished(corpus)))
    rows = sorted(((Path(str(row[0])).name, *row[1:3], row[12]) for row in table(corpus, "events")), key=repr)
    return {"events": rows, "report": to_json(replace(merged(reports), seconds=0)).splitlines()}


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage, run in a process of its own, and the tables that it leaves."""

    run: Callable[[Path, Path], None]
    tables: Callable[[Path], Rows]


STAGES: Mapping[str, Stage] = {
    "ingest": Stage(ingest_stage, ingested),
    "watch": Stage(watch_stage, seen),
    "campaign": Stage(campaign_stage, won),
}


def spoil(path: Path, source: random.Random) -> None:
    """Damage a line of a trace, but not its header."""
    lines = path.read_bytes().splitlines(keepends=True)
    lines[source.randrange(1, len(lines))] = b"?\n"
    path.write_bytes(b"".join(lines))


def started(name: str, traces: Path, to: Path) -> subprocess.Popen[bytes]:
    """Start a stage."""
    command = [sys.executable, "-m", "tests.acceptance.crash_recovery", name, str(traces), str(to)]
    return subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL)


def killed(folder: Path) -> Iterator[Figure]:
    """Each stage, killed at random and started again."""
    traces, source = folder / "traces", random.Random(0)
    traces.mkdir()
    for seed in range(TRACES):
        write_trace(traces / f"{seed}.jsonl", *altered_trace(seed))
        if seed % SPOILED == 0:
            spoil(traces / f"{seed}.jsonl", source)
    for name, stage in STAGES.items():
        undisturbed, disturbed = (folder / f"{name} {how}" for how in ("undisturbed", "disturbed"))
        begun = time.monotonic()
        started(name, traces, undisturbed).wait()
        whole, kills = time.monotonic() - begun, 0
        for _ in range(KILLS):
            process = started(name, traces, disturbed)
            try:
                process.wait(source.uniform(0.3, 0.8) * whole)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
        started(name, traces, disturbed).wait()
        yield at_least(f"{name}: kills", kills, 1)
        wanted, found = stage.tables(undisturbed), stage.tables(disturbed)
        for what, rows in wanted.items():
            yield told(f"{name}: rows of {what}", len(rows))
            yield exactly(f"{name}: the same {what}", "yes" if rows == found[what] and rows else "no", "yes")


if __name__ == "__main__":
    STAGES[sys.argv[1]].run(Path(sys.argv[2]), Path(sys.argv[3]))
