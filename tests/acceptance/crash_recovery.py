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

from fencepost.conformance.cli import main
from fencepost.conformance.pipeline.campaign import find_reports, read_reports, run_seeds
from fencepost.conformance.plan import Plan
from fencepost.conformance.reports.json_report import to_json
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline.corpus import DATA, Corpus
from fencepost.traces.pipeline.ingest import ingest
from fencepost.traces.pipeline.results import CorpusResults
from fencepost.traces.pipeline.spark_session import spark_session
from fencepost.traces.pipeline.stream import findings_log, new_findings, watch_folder
from fencepost.traces.pipeline.tables import TABLES
from tests.acceptance.checks.conformance import command_environment
from tests.acceptance.framework import Figure, MeasurementError, at_least, exactly, without_threshold
from tests.support.altered_traces import altered_trace
from tests.support.corpus_tables import inputs_of, read_rows

MASTER = "local[2]"
SPARK_CONFIG = {"spark.driver.memory": "1500m"}
KILLS, CONCURRENT_KILLS = 6, 10
TRACE_COUNT, DAMAGED_EVERY, SEED_COUNT = 60, 10, 16
PLAN = Plan("bundled", patterns=("HB-0*",), smoke=True, schedules=10)

Rows = Mapping[str, list[Any]]


def ignore_progress(done: int, total: int, doing: str) -> None:
    """Nobody wants to know."""


def ingest_stage(traces: Path, to: Path) -> None:
    """Ingest, with many commits."""
    with spark_session("acceptance", MASTER, SPARK_CONFIG) as spark:
        inputs = inputs_of(sorted(traces.glob("*.jsonl")))
        ingest(spark, Corpus.create(to, 4), inputs, ignore_progress, batch=20_000)


def watch_stage(traces: Path, to: Path) -> None:
    """Watch, a few files at a time."""
    with spark_session("acceptance", MASTER, SPARK_CONFIG) as spark:
        watch_folder(spark, traces, to, 2, once=True, files_per_batch=4).awaitTermination()


def campaign_stage(_: Path, to: Path) -> None:
    """A campaign, with many commits."""
    with spark_session("acceptance", MASTER, SPARK_CONFIG) as spark:
        run_seeds(spark, Corpus.create(to, 2), PLAN, range(1, SEED_COUNT + 1), ignore_progress, at_once=2)


def judge_stage(_: Path, to: Path) -> None:
    """Judge a corpus, if there is one yet."""
    if (to / DATA / "_delta_log").exists():
        settings = [word for each in SPARK_CONFIG.items() for word in ("--conf", "=".join(each))]
        if main(["pipeline", "judge", str(to), "--master", MASTER, *settings]) == 2:
            sys.exit(2)


def judge_tables(to: Path) -> Rows:
    """What a judge found, but for failures: how short their schedules become depends on the machine."""
    results = CorpusResults(to / "judged")
    kinds = ("violation", "check", "inconclusive", "state", "rebalance", "stuck", "verdict")
    return {kind: sorted((tuple(row.values()) for row in results.findings(kind)), key=repr) for kind in kinds}


def ingest_tables(to: Path) -> Rows:
    """The tables of a corpus."""
    return {name: read_rows(Corpus.open(to), name) for name in TABLES}


def watch_tables(to: Path) -> Rows:
    """What a watch found."""
    return {"found": sorted((tuple(row.values()) for row in new_findings(findings_log(to))), key=repr)}


def campaign_tables(to: Path) -> Rows:
    """The events of a campaign, each without the folder its trace was in, and its report without the time it took."""
    corpus = Corpus.open(to)
    reports = read_reports([place for _, place in sorted(find_reports(corpus).items())])
    rows = sorted(((Path(str(row[0])).name, *row[1:3], row[12]) for row in read_rows(corpus, "events")), key=repr)
    return {
        "events": rows,
        "report": to_json(replace(reports, seconds=0, provenance=None)).splitlines(),
    }


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """A stage, run in a process of its own, and the tables that it leaves."""

    run: Callable[[Path, Path], None]
    tables: Callable[[Path], Rows]


STAGES: Mapping[str, PipelineStage] = {
    "ingest": PipelineStage(ingest_stage, ingest_tables),
    "judge": PipelineStage(judge_stage, judge_tables),
    "watch": PipelineStage(watch_stage, watch_tables),
    "campaign": PipelineStage(campaign_stage, campaign_tables),
}


def damage_line(path: Path, source: random.Random) -> None:
    """Damage a line of a trace, but not its header."""
    lines = path.read_bytes().splitlines(keepends=True)
    lines[source.randrange(1, len(lines))] = b"?\n"
    path.write_bytes(b"".join(lines))


def start_stage(name: str, traces: Path, to: Path) -> subprocess.Popen[bytes]:
    """Start the stage `name` as a process that reads the folder `traces` and writes to `to`, without output."""
    command = [sys.executable, "-m", "tests.acceptance.crash_recovery", name, str(traces), str(to)]
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, env=command_environment(), stdout=nothing, stderr=nothing)


def run_stage(name: str, traces: Path, to: Path) -> None:
    """Run a stage that nobody kills to its end. Raises `MeasurementError` if it fails."""
    code = start_stage(name, traces, to).wait()
    if code:
        raise MeasurementError(f"{name}, which nobody killed, ended with exit code {code}")


def check_killed(folder: Path) -> Iterator[Figure]:
    """Each stage, killed at random and started again."""
    traces, source = folder / "traces", random.Random(0)
    traces.mkdir()
    for seed in range(TRACE_COUNT):
        write_trace(traces / f"{seed}.jsonl", *altered_trace(seed))
        if seed % DAMAGED_EVERY == 0:
            damage_line(traces / f"{seed}.jsonl", source)
    for name in ("ingest", "watch", "campaign"):
        stage = STAGES[name]
        undisturbed, disturbed = (folder / f"{name} {how}" for how in ("undisturbed", "disturbed"))
        begun = time.monotonic()
        run_stage(name, traces, undisturbed)
        whole, kills = time.monotonic() - begun, 0
        for _ in range(KILLS):
            process = start_stage(name, traces, disturbed)
            try:
                process.wait(source.uniform(0.3, 0.8) * whole)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
        run_stage(name, traces, disturbed)
        yield at_least(f"{name}: kills", kills, 1)
        wanted, found = stage.tables(undisturbed), stage.tables(disturbed)
        for what, rows in wanted.items():
            yield without_threshold(f"{name}: rows of {what}", len(rows))
            yield exactly(f"{name}: the same {what}", "yes" if rows == found[what] and rows else "no", "yes")


def check_side_by_side(folder: Path) -> Iterator[Figure]:
    """Two ingests that share inputs, and two judges of their corpus, all at the same time, killed and started again."""
    traces, source = folder / "traces", random.Random(0)
    for part, seeds in (("one", range(40)), ("other", range(20, TRACE_COUNT))):
        (traces / part).mkdir(parents=True)
        for seed in seeds:  # the shared traces are links to the same files
            path = traces / "one" / f"{seed}.jsonl"
            if path.exists():
                (traces / part / path.name).symlink_to(path)
            else:
                write_trace(traces / part / path.name, *altered_trace(seed))
    alone = folder / "alone"
    for part in ("one", "other"):
        run_stage("ingest", traces / part, alone)
    run_stage("judge", traces, alone)
    wanted = {**ingest_tables(alone), **judge_tables(alone)}
    corpus = Corpus.create(folder / "together", 4)
    kills = kill_side_by_side(Path(corpus.folder), traces, source)
    yield at_least("kills", kills, 1)
    files = {Path(file) for name in TABLES for file in corpus.files(name)}
    yield exactly("files of the log that are not there", sum(not file.exists() for file in files), 0)
    found = {**ingest_tables(Path(corpus.folder)), **judge_tables(Path(corpus.folder))}
    for what, rows in wanted.items():
        yield without_threshold(f"rows of {what}", len(rows))
        yield exactly(f"the same {what}", "yes" if rows == found[what] else "no", "yes")


def kill_side_by_side(corpus: Path, traces: Path, source: random.Random) -> int:
    """Two ingests and two judges at the same time, killed and started again; returns the number of kills."""
    names = [("ingest", "one"), ("ingest", "other"), ("judge", "one"), ("judge", "other")]
    running = [start_stage(name, traces / part, corpus) for name, part in names]
    kills = 0
    for _ in range(CONCURRENT_KILLS):
        time.sleep(source.uniform(0.5, 3))
        place = source.randrange(len(names))
        kills += running[place].poll() is None
        running[place].kill()
        running[place].wait()
        running[place] = start_stage(names[place][0], traces / names[place][1], corpus)
    for process in running:
        process.wait()
    run_stage("judge", traces, corpus)
    return kills


if __name__ == "__main__":
    STAGES[sys.argv[1]].run(Path(sys.argv[2]), Path(sys.argv[3]))
