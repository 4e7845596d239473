"""The bars of the pipeline: what it finds, how fast, in how much memory, and what becomes of it when it is killed."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

from fencepost.conformance.pipeline.shard_findings import opinion
from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.pipeline.corpus import EVENTS, Corpus
from fencepost.traces.pipeline.ingest import ingest
from fencepost.traces.pipeline.judge_corpus import read
from fencepost.traces.pipeline.queries import INVARIANTS
from fencepost.traces.pipeline.results import Judged, judge_corpus
from fencepost.traces.pipeline.spark_session import session
from tests.acceptance.checks.conformance import passing, run_tests
from tests.acceptance.crash_recovery import CONF, killed, quiet
from tests.acceptance.framework import Bar, Figure, at_least, at_most, exactly, told
from tests.acceptance.recorded_sources import SOURCES
from tests.acceptance.synthetic_corpus import STALE, make
from tests.support.altered_traces import altered_trace, judged_alone

ALL = 10_000_000
GROUPS, BIG, FILES = 10_000, 1_000_000, 16
RANDOM_TRACES = 1_000
WARM = 3
DUCKDB = {
    "one-leader": """
        with ids as (select trace, "group", member_id id, min(coalesce('i ' || instance, 'm ' || member_id)) person
                     from joins group by all)
        select count(*) from (select count(distinct person) n from joins j
            join ids on ids.trace = j.trace and ids."group" = j."group" and ids.id = j.leader
            group by j.trace, j."group", j.life, j.generation) where n > 1""",
    "no-stale-commit": """
        with mixed as (select trace, "group", life, generation, sequence as place, false as commit from joins union all
                      select trace, "group", life, generation, "of", true from events
                      where intact and accepted and generation >= 0)
        select count(*) from (select *, max(case when not commit then generation end)
            over (partition by trace, "group", life order by place) given from mixed)
        where commit and generation < given""",
    "one-owner": """
        with ids as (select trace, "group", member_id id, min(coalesce('i ' || instance, 'm ' || member_id)) person
                     from joins group by all),
        granted as (select trace, "group", life, generation, member_id id, unnest(owned) part from events
                    where intact and api = 'SyncGroup' and owned is not null)
        select count(*) from (select count(distinct person) n from granted g
            join ids on ids.trace = g.trace and ids."group" = g."group" and ids.id = g.id
            group by g.trace, g."group", g.life, g.generation, g.part) where n > 1""",
}


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


class Memory:
    """Watches how much memory this process and all that it started have together, in MiB."""

    def __init__(self) -> None:
        self.peak = 0.0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self) -> None:
        """Look again and again."""
        while not self.ended.wait(1):
            self.peak = max(self.peak, sum(map(memory_of, family(os.getpid()))))

    def __enter__(self) -> "Memory":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()


def family(process: int) -> Iterator[int]:
    """A process and all that came of it."""
    yield process
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from family(int(child))


def memory_of(process: int) -> float:
    """Its memory in MiB; what it shares with others counts in part."""
    try:
        rows = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(row.split()[1]) for row in rows if row.startswith("Pss:")) / 1024


def elsewhere(work: Callable[..., Any], *arguments: Any) -> Any:
    """What comes of it in a process of its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def judged_by_one(path: str) -> tuple[int, float]:
    """A trace judged as `fencepost judge` does it: events, and seconds."""
    header, events = open_trace(path)
    begun = time.monotonic()
    verdict = Judge(header).read(events)
    return verdict.events, time.monotonic() - begun


def volume(folder: Path) -> Iterator[Figure]:
    """Millions of events with seeded violations."""
    events = int(os.environ.get("FENCEPOST_EVENTS", ALL))
    groups, big = max(FILES, GROUPS * events // ALL), BIG * events // ALL
    (folder / "traces").mkdir()
    expected: dict[str, list[int]] = elsewhere(make, folder / "traces", events, groups, big, FILES)
    paths = [Path(path) for path in expected]
    corpus = Corpus.create(folder / "corpus", 16)
    out = folder / "out"
    out.mkdir()
    with Memory() as memory, session("bars", "local[2]", CONF) as spark:
        took = seconds(lambda: ingest(spark, corpus, paths, quiet))
        count = sum(batch.counts.events for batch in corpus.batches())
        yield told("events", count)
        yield told("seeded violations", sum(map(len, expected.values())))
        yield told("ingest: events a second", round(count / took))
        yield exactly("ingest: in quarantine", sum(batch.counts.quarantined for batch in corpus.batches()), 0)
        took = seconds(lambda: judge_corpus(spark, corpus, out, opinion, quiet))
        together = count / took
        rates = list(queried(spark, corpus, count))
    yield at_most("MiB of driver and workers together", round(memory.peak), 4_096)
    yield from found_as_seeded(Judged(out), expected)
    alone, one = elsewhere(judged_by_one, str(paths[-1]))
    yield from compared(together, alone / one)
    yield from beside_duckdb(corpus, count, rates)
    stale = next(rows for name, _, _, rows in rates if name == "no-stale-commit")
    yield at_least("stale commits found by the query", stale, (groups - 1) // STALE)


def compared(together: float, alone: float) -> Iterator[Figure]:
    """The judge on two cores beside one process."""
    yield told("judge: events a second, one plain process", round(alone))
    yield told("judge: events a second, in all", round(together))
    ratio = together / alone
    fast = ratio >= 1.6 or together >= 60_000
    yield Figure("judge: times one process", round(ratio, 2), "at least 1.6, or 60,000 events a second", fast)


def found_as_seeded(judged: Judged, expected: dict[str, list[int]]) -> Iterator[Figure]:
    """All that was seeded, and nothing else."""
    missing, others = Counter[str](), Counter[str]()
    found: dict[str, set[int]] = {}
    for row in judged.findings("fault", ("trace", "sequence")):
        found.setdefault(row["trace"], set()).add(row["sequence"])
    for trace, seeded in expected.items():
        missing[trace] = len(set(seeded) - found.get(trace, set()))
        others[trace] = len(found.get(trace, set()) - set(seeded))
    yield exactly("seeded violations not found", missing.total(), 0)
    yield exactly("violations found that were not seeded", others.total(), 0)
    yield exactly("left undecided", sum(1 for _ in judged.findings("inconclusive")), 0)


def queried(spark: SparkSession, corpus: Corpus, count: int) -> Iterator[tuple[str, int, int, int]]:
    """Each query: events of the corpus a second, cold and warm, and how many rows it finds."""
    events = read(spark, corpus, EVENTS)
    for name, query in INVARIANTS.items():

        def run(query: Any = query) -> None:
            query(events).write.format("noop").mode("overwrite").save()

        cold = seconds(run)
        warm = min(seconds(run) for _ in range(WARM))
        yield name, round(count / cold), round(count / warm), query(events).count()


def beside_duckdb(corpus: Corpus, count: int, rates: list[tuple[str, int, int, int]]) -> Iterator[Figure]:
    """The queries by Spark, and the same by DuckDB over the same files."""
    connection = duckdb.connect()
    connection.execute("set threads = 2")
    files = ", ".join(f"'{name}'" for name in corpus.files(EVENTS))
    connection.execute(f"create view events as select * from read_parquet([{files}])")
    connection.execute(
        "create view joins as select * from events where intact and api = 'JoinGroup' and kind = 'answer' "
        "and error = 0 and life is not null"
    )
    for name, cold, warm, rows in rates:
        query = partial(connection.execute, DUCKDB[name])
        (theirs,) = query().fetchone() or (0,)
        rate = count / min(seconds(query) for _ in range(WARM))
        yield told(f"{name}: events a second, cold", cold)
        yield at_least(f"{name}: events a second, warm", warm, 500_000)
        yield told(f"{name}: events a second, DuckDB, warm", round(rate))
        yield exactly(f"{name}: found", rows, theirs)


def identical(folder: Path) -> Iterator[Figure]:
    """Random traces, judged by the pipeline as far apart as it goes, and one by one."""
    for seed in range(RANDOM_TRACES):
        write_trace(folder / f"{seed}.jsonl", *altered_trace(seed))
    paths = sorted(folder.glob("*.jsonl"))
    corpus, out = Corpus.create(folder / "corpus", 3), folder / "out"
    out.mkdir()
    with session("bars", "local[2]", CONF) as spark:
        ingest(spark, corpus, paths, quiet)
        judge_corpus(spark, corpus, out, opinion, quiet, split=0)
    found: dict[str, Counter[str]] = {}
    for row in Judged(out).values("fault"):
        found.setdefault(row.pop("trace"), Counter())[repr(sorted(row.items()))] += 1
    different = faulty = 0
    for path in paths:
        header, events = open_trace(path)
        alone = judged_alone(header, list(events))[0]
        faulty += bool(alone)
        fields = (
            {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(each).items()}
            for each in alone.elements()
        )
        different += Counter(repr(sorted(each.items())) for each in fields) != found.get(str(path.resolve()), Counter())
    yield told("random traces", len(paths))
    yield told("of them with faults", faulty)
    yield exactly("with another verdict than the judge's", different, 0)


def cluster(folder: Path) -> Iterator[Figure]:
    """A standalone cluster on loopback does what one machine does."""
    yield from passing(run_tests(folder, ["tests/traces/pipeline/test_cluster.py"], "-m", "cluster"))


def bad_input(folder: Path) -> Iterator[Figure]:
    """Lines that are none, folders that are no corpus, places where nothing can be written."""
    tests = "tests/traces/pipeline"
    yield from passing(
        run_tests(folder, [f"{tests}/test_reading.py", f"{tests}/test_corpus.py", f"{tests}/test_ingest.py"])
    )


BARS = (
    *SOURCES,
    Bar("volume", "millions of events: everything found, quickly, in little memory", volume),
    Bar("identical", "the pipeline's verdicts are the judge's", identical),
    Bar("killed", "an ingest, watch or campaign that is killed and started again leaves the same tables", killed),
    Bar("cluster", "a standalone cluster of a master and two workers does the same", cluster),
    Bar(
        "bad-input",
        "what cannot be read is in quarantine, what cannot be used is refused with one clear line",
        bad_input,
    ),
)
