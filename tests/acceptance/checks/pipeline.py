"""Thresholds of the pipeline: violations found, throughput, memory, and recovery from kills."""

import json
import os
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from fencepost.conformance.pipeline.shard_findings import shard_findings
from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.ingest import ingest
from fencepost.traces.pipeline.results import CorpusResults, judge_corpus
from fencepost.traces.pipeline.shard_plan import HeaderRow, divide_work, plan_parts
from fencepost.traces.pipeline.spark_session import pack_environment, spark_session
from fencepost.traces.pipeline.tables import TABLES
from fencepost.traces.pipeline.trace_rows import Run, TraceFile
from tests.acceptance.checks.conformance import expect_passing, run_tests
from tests.acceptance.concurrent_pairs import PAIRS, check_pair
from tests.acceptance.crash_recovery import SPARK_CONFIG, check_killed, check_side_by_side, ignore_progress
from tests.acceptance.driver_growth import check_driver
from tests.acceptance.framework import Check, Figure, at_least, at_most, exactly, without_threshold
from tests.acceptance.pipeline_speed import check_large, check_ratio
from tests.acceptance.pipeline_verdicts import check_topic_verdicts, check_verdicts, check_watch_verdicts
from tests.acceptance.process_tree import memory_mib, process_tree
from tests.acceptance.query_speed import check_queries, compare_with_duckdb, measure_queries, measure_seconds
from tests.acceptance.recorded_sources import SOURCE_CHECKS
from tests.acceptance.stale_commit_queries import check_stale_commits
from tests.acceptance.synthetic_corpus import STALE_EVERY, make_corpus
from tests.support.altered_traces import altered_trace, judge_alone
from tests.support.corpus_tables import inputs_of

DEFAULT_EVENTS = 10_000_000
GROUPS, BIG_GROUP_EVENTS, FILES = 10_000, 1_000_000, 16
RANDOM_TRACES = 1_000
DRIVER_TRACES = (10_000, 100_000)
FILE_EVENTS = 4_000_000
"""The events in a file of a corpus, about."""
DRIVER_CORES = 1_600
"""The cores of the cluster that is planned for: 100 nodes of 16."""
CLUSTER_TESTS = (
    ("cluster", "test_a_corpus_in_a_shared_folder", "with traces on an object store"),
    ("cluster-uri", "test_a_corpus_at_a_uri", "with the corpus on an object store and no shared folder"),
)


class MemoryMonitor:
    """Watches how much memory this process and all that it started have together, in MiB."""

    def __init__(self) -> None:
        self.peak = 0.0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.poll, daemon=True)

    def poll(self) -> None:
        """Look again and again."""
        while not self.ended.wait(1):
            self.peak = max(self.peak, sum(map(memory_mib, process_tree(os.getpid()))))

    def __enter__(self) -> "MemoryMonitor":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()


def run_in_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """What comes of it in a process of its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def judge_in_one_process(path: str) -> tuple[int, float]:
    """A trace judged as `fencepost judge` does it: events, and seconds."""
    header, events = open_trace(path)
    begun = time.monotonic()
    verdict = Judge(header).judge_events(events)
    return verdict.events, time.monotonic() - begun


def check_volume(folder: Path) -> Iterator[Figure]:
    """Millions of events with seeded violations."""
    events = int(os.environ.get("FENCEPOST_EVENTS", DEFAULT_EVENTS))
    groups = max(FILES, GROUPS * events // DEFAULT_EVENTS)
    expected = seeded_traces(Path(os.environ.get("FENCEPOST_CORPORA", folder)) / f"volume-{events}", events, groups)
    paths = [Path(path) for path in expected]
    corpus = Corpus.create(folder / "corpus", 16)
    out = folder / "out"
    out.mkdir()
    with MemoryMonitor() as memory, spark_session("acceptance", "local[2]", SPARK_CONFIG) as spark:
        took = measure_seconds(lambda: ingest(spark, corpus, inputs_of(paths), ignore_progress))
        count = sum(row.events for row in corpus.inputs())
        yield without_threshold("events", count)
        yield without_threshold("seeded violations", sum(map(len, expected.values())))
        yield without_threshold("ingest: events a second", round(count / took))
        size = sum(Path(file).stat().st_size for name in TABLES for file in corpus.files(name))
        yield without_threshold("bytes of Parquet an event", round(size / count, 1))
        yield exactly("ingest: in quarantine", sum(row.quarantined for row in corpus.inputs()), 0)
        took = measure_seconds(partial(judge_here, spark, corpus, out))
        together = count / took
        speed = measure_queries(spark, corpus)
    yield at_most("MiB of driver and workers together", round(memory.peak), 4_096)
    yield from compare_with_seeded(CorpusResults(out), expected)
    alone, one = run_in_process(judge_in_one_process, str(paths[-1]))
    yield from compare_rates(together, alone / one)
    yield from compare_with_duckdb(corpus, count, speed)
    stale = speed.queries["no-stale-commit"].rows
    yield at_least("stale commits found by the query", stale, (groups - 1) // STALE_EVERY)


def judge_here(spark: SparkSession, corpus: Corpus, out: Path) -> None:
    """Judge a corpus."""
    judge_corpus(spark, corpus, plan_parts(spark, corpus), out, shard_findings, ignore_progress)


def seeded_traces(folder: Path, events: int, groups: int) -> dict[str, list[int]]:
    """Traces with seeded violations, which are made if the folder does not have them: by file, the requests."""
    mark = folder / "seeded.json"
    if not mark.exists():
        (folder / "traces").mkdir(parents=True)
        big = BIG_GROUP_EVENTS * events // DEFAULT_EVENTS
        mark.write_text(json.dumps(run_in_process(make_corpus, folder / "traces", events, groups, big, FILES)))
    found: dict[str, list[int]] = json.loads(mark.read_text())
    return found


def compare_rates(together: float, alone: float) -> Iterator[Figure]:
    """The judge on two cores beside one process."""
    yield without_threshold("judge: events a second, one plain process", round(alone))
    yield without_threshold("judge: events a second, in all", round(together))
    yield at_least("judge: times one process", round(together / alone, 2), 1.8)


def compare_with_seeded(judged: CorpusResults, expected: dict[str, list[int]]) -> Iterator[Figure]:
    """All that was seeded, and nothing else."""
    missing, others = Counter[str](), Counter[str]()
    found: dict[str, set[int]] = {}
    for row in judged.findings("violation", ("trace", "sequence")):
        found.setdefault(row["trace"], set()).add(row["sequence"])
    for trace, seeded in expected.items():
        missing[trace] = len(set(seeded) - found.get(trace, set()))
        others[trace] = len(found.get(trace, set()) - set(seeded))
    yield exactly("seeded violations not found", missing.total(), 0)
    yield exactly("violations found that were not seeded", others.total(), 0)
    yield exactly("left undecided", sum(1 for _ in judged.findings("inconclusive")), 0)


def check_identical(folder: Path) -> Iterator[Figure]:
    """Random traces, judged by the pipeline as far apart as it goes, and one by one."""
    for seed in range(RANDOM_TRACES):
        write_trace(folder / f"{seed}.jsonl", *altered_trace(seed))
    paths = sorted(folder.glob("*.jsonl"))
    corpus, out = Corpus.create(folder / "corpus", 3), folder / "out"
    out.mkdir()
    with spark_session("acceptance", "local[2]", SPARK_CONFIG) as spark:
        ingest(spark, corpus, inputs_of(paths), ignore_progress)
        judge_corpus(spark, corpus, plan_parts(spark, corpus, 0), out, shard_findings, ignore_progress)
    found: dict[str, Counter[str]] = {}
    for row in CorpusResults(out).finding_values("violation"):
        found.setdefault(row.pop("trace"), Counter())[repr(sorted(row.items()))] += 1
    different = faulty = 0
    for path in paths:
        header, events = open_trace(path)
        alone = judge_alone(header, list(events))[0]
        faulty += bool(alone)
        fields = (
            {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(each).items()}
            for each in alone.elements()
        )
        different += Counter(repr(sorted(each.items())) for each in fields) != found.get(str(path.resolve()), Counter())
    yield without_threshold("random traces", len(paths))
    yield without_threshold("of them with faults", faulty)
    yield exactly("with another verdict than the judge's", different, 0)


def check_plan(folder: Path) -> Iterator[Figure]:
    """What the driver of a judge holds of each trace in Python, and how long it plans: files, shards, and rows."""
    by_events: dict[int, float] = {}
    for events in (1_000, 100_000, 1_000_000):
        peaks: dict[int, float] = {}
        seconds: dict[int, float] = {}
        few, many = DRIVER_TRACES
        for count in DRIVER_TRACES:
            seconds[count] = measure_seconds(partial(plan_judging, count, events))
            peaks[count] = peak_of_planning(count, events) / (1 << 20)
        yield without_threshold(f"MiB of plan for {many} traces of {events} events", round(peaks[many], 1))
        yield without_threshold(f"seconds of planning for {many} traces of {events} events", round(seconds[many], 1))
        for what, found in (("MiB", peaks), ("seconds", seconds)):
            line = found[many] + (1_000_000 - many) * (found[many] - found[few]) / (many - few)
            yield without_threshold(f"{what} for 10^6 traces of {events} events, on this line", round(line))
        by_events[events] = peaks[many]
    growth = by_events[1_000_000] / by_events[100_000]
    yield at_most("times the plan of traces of 10^5 events, for those of 10^6", round(growth, 2), 1.05)


def peak_of_planning(count: int, events: int) -> int:
    """The most bytes that the driver's Python holds while it plans the judging of so many traces."""
    tracemalloc.start()
    plan_judging(count, events)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def plan_judging(count: int, events: int) -> None:
    """Plan the judging of so many traces as the driver does."""
    sizes = dict.fromkeys(range(16), events // 16)
    names = [f"s3://bucket/traces/{number:09}.jsonl" for number in range(count)]
    files = [TraceFile(name, events, events + 1, None, False, dict(sizes)) for name in names]
    headers = {name: HeaderRow("s3://bucket/corpus/traces.parquet", number) for number, name in enumerate(names)}
    rows = (at * events % FILE_EVENTS for at in range(count))
    runs = {
        name: [Run("s3://bucket/corpus/events.parquet", row, events, 2)] for name, row in zip(names, rows, strict=True)
    }
    divide_work(files, headers, runs, DRIVER_CORES)


def check_cluster(test: str, folder: Path) -> Iterator[Figure]:
    """A standalone cluster on loopback does what one machine does."""
    yield from expect_passing(run_tests(folder, [f"tests/traces/pipeline/test_cluster.py::{test}"], "-m", "cluster"))


def check_archives(folder: Path) -> Iterator[Figure]:
    """The same with workers whose Python has no package, and what a packed environment is like."""
    seconds = measure_seconds(lambda: pack_environment(folder / "packed.tar.gz"))
    yield without_threshold("MiB of the packed environment", (folder / "packed.tar.gz").stat().st_size >> 20)
    yield without_threshold("seconds to pack it", round(seconds, 1))
    yield from check_cluster("test_workers_that_lack_fencepost", folder)


def check_bad_input(folder: Path) -> Iterator[Figure]:
    """Lines that are none, folders that are no corpus, places where nothing can be written."""
    tests = "tests/traces/pipeline"
    yield from expect_passing(
        run_tests(folder, [f"{tests}/test_row_reader.py", f"{tests}/test_corpus.py", f"{tests}/test_ingest.py"])
    )


CHECKS = (
    *SOURCE_CHECKS,
    Check("volume", "millions of events: everything found, quickly, in little memory", check_volume),
    Check("identical", "the pipeline's verdicts are the judge's", check_identical),
    Check("verdicts", "the commands report what `fencepost judge` does, through files", check_verdicts),
    Check("watch-verdicts", "a watch of files finds what `fencepost judge` does", check_watch_verdicts),
    Check(
        "topic-verdicts", "the commands report what `fencepost judge` does, through a Kafka topic", check_topic_verdicts
    ),
    Check(
        "killed", "an ingest, watch or campaign that is killed and started again leaves the same tables", check_killed
    ),
    Check(
        "side-by-side",
        "ingests and judges of one corpus at the same time, killed and started again, leave the same tables",
        check_side_by_side,
    ),
    *(
        Check(
            name.replace(" ", "-"),
            f"{name} at the same time on one corpus, each killed at ten moments",
            partial(check_pair, name),
        )
        for name in PAIRS
    ),
    Check(
        "stale-commits", "the query finds hidden stale commits, and charges no conformant trace", check_stale_commits
    ),
    Check(
        "speed-fetches",
        "nine in ten events are fetches: no slower than plain `judge`",
        partial(check_ratio, "fetches", 1),
    ),
    Check(
        "speed-small", "25,000 events in 1,000 traces: at most twice plain `judge`", partial(check_ratio, "small", 2)
    ),
    Check("speed-large", "3,000,000 events: 1.8 times as fast as plain `judge`", check_large),
    Check("speed-queries", "the queries on 3,000,000 events, beside DuckDB on the same files", check_queries),
    Check("driver", "what the driver plans grows with traces, not with their events", check_plan),
    Check("driver-growth", "what the driver takes for 10^5 traces, and for 10^6 on a line", check_driver),
    *(
        Check(
            name,
            f"a standalone cluster of a master and two workers does the same, {what}",
            partial(check_cluster, test),
        )
        for name, test, what in CLUSTER_TESTS
    ),
    Check("cluster-archives", "workers of a cluster that lack Fencepost get it by --archives", check_archives),
    Check(
        "bad-input",
        "what cannot be read is in quarantine, what cannot be used is refused with one clear line",
        check_bad_input,
    ),
)
