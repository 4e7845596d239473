"""`fencepost pipeline judge` on two cores beside `fencepost judge` on one: times, with the start of Spark told apart.

The corpora are made in the folder that FENCEPOST_CORPORA names, if it names one, and used again: so a machine can be
calm for the measurement alone.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from fencepost.conformance.pipeline.shard_findings import shard_findings
from fencepost.conformance.pipeline.worker_daemon import DAEMON_CONF
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline.corpus import DATA, Corpus
from fencepost.traces.pipeline.ingest import ingest
from fencepost.traces.pipeline.query_corpus import query_corpus
from fencepost.traces.pipeline.results import find_unreadable, judge_corpus
from fencepost.traces.pipeline.shard_plan import plan_parts
from fencepost.traces.pipeline.spark_session import spark_session
from tests.acceptance.checks.conformance import command_environment
from tests.acceptance.crash_recovery import SPARK_CONFIG, ignore_progress
from tests.acceptance.framework import ROOT, Figure, MeasurementError, at_least, at_most, without_threshold
from tests.acceptance.process_tree import processor_seconds
from tests.acceptance.synthetic_corpus import make_corpus
from tests.support.corpus_tables import inputs_of
from tests.support.random_client import random_trace

LARGE_EVENTS, LARGE_FILES = 3_000_000, 16
PLAIN_FILES = {"large": 4, "fetches": 1}
"""Of these corpora, plain `judge` takes so many files, which are alike, and its time is counted for all by events."""
FETCH_EVENTS, FETCH_FILES, FETCHES_PER_EVENT = 1_000_000, 4, 9
SMALL_TRACES, SMALL_STEPS = 1_000, 11
PROCESSORS = "processor time, without the start"
CALM_SHARE = 0.9
"""On a machine that has more to do, one process falls behind two, and the ratio of both says little."""
FETCH: dict[str, object] = {
    **{"replica_id": -1, "max_wait_ms": 500, "min_bytes": 1, "max_bytes": 52_428_800, "isolation_level": 0},
    **{"session_id": 0, "session_epoch": -1, "forgotten_topics_data": [], "rack_id": ""},
    "topics": [{"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 9, "partition_max_bytes": 1_048_576}]}],
}
FETCHED = {"topic": "t", "partitions": [{"partition_index": 0, "error_code": 0, "high_watermark": 9}]}


def make_large(folder: Path) -> None:
    """Lives of groups, side by side."""
    make_corpus(folder, LARGE_EVENTS, 3_000, 100_000, LARGE_FILES)


def make_small(folder: Path) -> None:
    """Some 25,000 events in a thousand conformant traces."""
    for seed in range(SMALL_TRACES):
        write_trace(folder / f"{seed:04}.jsonl", *random_trace(random.Random(f"small {seed}"), SMALL_STEPS))


def make_fetches(folder: Path) -> None:
    """Lives of groups, and nine times as many requests and responses of Fetch between them."""
    plain = folder.with_name(f"{folder.name} plain")
    plain.mkdir()
    make_corpus(plain, FETCH_EVENTS // (FETCHES_PER_EVENT + 1), 110, 20_000, FETCH_FILES)
    for path in sorted(plain.iterdir()):
        with path.open() as lines, (folder / path.name).open("w") as out:
            out.write(next(lines))
            out.writelines(
                json.dumps(each, separators=(",", ":")) + "\n" for each in add_fetches(map(json.loads, lines))
            )


def add_fetches(events: Iterator[dict[str, object]]) -> Iterator[dict[str, object]]:
    """Yield the events, and fetches between them; all are numbered anew."""
    numbers: dict[object, int] = {}
    count, open_fetch = 0, -1
    for event in events:
        numbers[event["sequence"]] = count
        about = {"of": numbers[event["of"]]} if "of" in event else {}
        yield {**event, "sequence": count, **about}
        count += 1
        for _ in range(FETCHES_PER_EVENT):
            common = {"sequence": count, "time": event["time"], "connection": 10_000_000, "member": "F"}
            if open_fetch < 0:
                yield {**common, "kind": "request", "api": "Fetch", "version": 12, "body": FETCH}
                open_fetch = count
            else:
                body = {"responses": [FETCHED]}
                yield {**common, "kind": "response", "api": "Fetch", "version": 12, "body": body, "of": open_fetch}
                open_fetch = -1
            count += 1


CORPORA: Mapping[str, Callable[[Path], None]] = {"large": make_large, "small": make_small, "fetches": make_fetches}


def prepare(name: str, folder: Path) -> tuple[Path, Corpus]:
    """The traces and the corpus of a name, made if they are not there."""
    kept = os.environ.get("FENCEPOST_CORPORA")
    place = (Path(kept) if kept else folder) / name
    if not (place / "corpus" / DATA).exists():
        (place / "traces").mkdir(parents=True)
        CORPORA[name](place / "traces")
        run_stage("ingest", place)
    return place / "traces", Corpus.open(place / "corpus")


def run_stage(stage: str, place: Path) -> dict[str, float]:
    """Run a stage in a process of its own, and return the seconds that it told."""
    command = [sys.executable, "-m", "tests.acceptance.pipeline_speed", stage, str(place)]
    done = subprocess.run(command, env=command_environment(), cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def ingest_place(place: Path) -> dict[str, float]:
    """Ingest the traces of a place."""
    with spark_session("acceptance", "local[2]", SPARK_CONFIG) as spark:
        inputs = inputs_of(sorted((place / "traces").iterdir()))
        ingest(spark, Corpus.create(place / "corpus", 16), inputs, ignore_progress)
    return {}


def judge_place(place: Path) -> dict[str, float]:
    """Do what `pipeline judge` does; the seconds until Spark and a Python worker are there, and those after that."""
    begun = time.monotonic()
    size = Corpus.open(place / "corpus").size()
    with spark_session("acceptance", "local[2]", {**SPARK_CONFIG, **DAEMON_CONF}, size=size) as spark:

        def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from batches

        spark.range(2).mapInArrow(pass_on, "id long").collect()
        started, processors = time.monotonic(), processor_seconds(os.getpid())
        out = Path(tempfile.mkdtemp(dir=place))
        corpus = Corpus.open(place / "corpus").snapshot()
        find_unreadable(spark, corpus, out)
        parts = plan_parts(spark, corpus)
        judge_corpus(spark, corpus, parts, out, shard_findings, ignore_progress)
        judged = time.monotonic()
        query_corpus(spark, corpus, parts, out, ignore_progress)
        ended, processors = time.monotonic(), processor_seconds(os.getpid()) - processors
    seconds = {"start": started - begun, "judge": judged - started, "queries": ended - judged}
    return {**seconds, PROCESSORS: processors}


def judge_plainly(paths: list[Path]) -> tuple[float, float]:
    """The seconds that `fencepost judge` takes, and those of the processor."""
    begun, processors = time.monotonic(), processor_seconds(os.getpid())
    command = [sys.executable, "-m", "fencepost", "judge", *map(str, paths)]
    done = subprocess.run(command, env=command_environment(), cwd=ROOT, capture_output=True, text=True)
    seconds = time.monotonic() - begun
    if done.returncode not in (0, 1):
        raise MeasurementError(f"judge ends with {done.returncode}: {(done.stderr or done.stdout)[-300:]}")
    return seconds, processor_seconds(os.getpid()) - processors


@dataclass(frozen=True, slots=True)
class Times:
    """What a corpus takes: its events, the seconds of plain `judge`, and those of the pipeline's parts."""

    events: int
    plain: float
    plain_processors: float
    parts: Mapping[str, float]

    @property
    def busy(self) -> float:
        """The seconds of the pipeline without the start."""
        return self.parts["judge"] + self.parts["queries"]

    def figures(self) -> Iterator[Figure]:
        """The times as figures."""
        yield without_threshold("events", self.events)
        yield without_threshold("plain judge, one core: events a second", round(self.events / self.plain))
        yield without_threshold("pipeline judge, two cores: events a second", round(self.events / self.parts["judge"]))
        yield without_threshold("seconds of plain judge, one core", round(self.plain, 1))
        for part, seconds in self.parts.items():
            yield without_threshold(f"seconds of pipeline judge, two cores: {part}", round(seconds, 1))
        yield without_threshold("seconds of plain judge: processor time", round(self.plain_processors, 1))
        yield at_least("share of a core that plain judge got", round(self.plain_processors / self.plain, 2), CALM_SHARE)
        ratio = self.parts[PROCESSORS] / self.plain_processors
        yield without_threshold("times the processor time of plain judge, without the start", round(ratio, 2))


def measure_times(name: str, folder: Path) -> Times:
    """Measure both on a corpus."""
    traces, corpus = prepare(name, folder)
    events = {row.input: row.events for row in corpus.inputs()}
    total = sum(events.values())
    paths = sorted(traces.iterdir())[-PLAIN_FILES.get(name, 0) :]
    share = total / sum(events[str(path.resolve())] for path in paths)
    plain, processors = judge_plainly(paths)
    return Times(total, plain * share, processors * share, run_stage("judge", traces.parent))


def check_ratio(name: str, most: float, folder: Path) -> Iterator[Figure]:
    """The pipeline takes at most so many times as long as plain `judge` on a corpus."""
    times = measure_times(name, folder)
    yield from times.figures()
    yield at_most("times plain judge, without the start", round(times.busy / times.plain, 2), most)


def check_large(folder: Path) -> Iterator[Figure]:
    """Millions of events."""
    times = measure_times("large", folder)
    yield from times.figures()
    yield at_least("times as fast as plain judge, without the start", round(times.plain / times.busy, 2), 1.8)


if __name__ == "__main__":
    stage = {"ingest": ingest_place, "judge": judge_place}[sys.argv[1]]
    print(json.dumps(stage(Path(sys.argv[2]))))
