"""The tables with the results of judging a corpus: a folder that is written as a whole or not at all.

At a URI there is a folder for each run, and a file that names the newest of them.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.corpus_log import write_atomically
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.file_systems import (
    Location,
    file_sizes,
    find_files,
    join_location,
    open_parquet,
    read_text,
    remove_file,
    resolve_location,
    write_text,
)
from fencepost.traces.pipeline.folding import FINDINGS_FOLDER
from fencepost.traces.pipeline.frames import SizedFile, files_below, read_files, write_frame, write_parts
from fencepost.traces.pipeline.joined_parts import (
    PART_COLUMNS,
    continued_parts,
    join_incarnations,
    placed_events,
)
from fencepost.traces.pipeline.judge_corpus import (
    FINDING_SCHEMA,
    Finding,
    ShardAnalysis,
    make_judge,
    read_table,
    unreadable_files,
)
from fencepost.traces.pipeline.ownership_queries import PERIOD_QUERIES, POLL_SHARES, poll_shares, read_periods
from fencepost.traces.pipeline.parallel import as_pipeline_error, job_progress
from fencepost.traces.pipeline.queries import EXAMINED, INVARIANTS, VIEWS, count_examined, examined_events
from fencepost.traces.pipeline.schema import EVENTS, QUARANTINE, SCHEMAS, TRACES
from fencepost.traces.pipeline.shard_plan import plan_parts
from fencepost.traces.pipeline.writers import replace_folder

OWNERSHIP = "ownership"
"""The kind of findings that say who had which partitions."""
OWNERSHIP_SCHEMA = pa.schema([FINDING_SCHEMA.field(name) for name in ("trace", "group", "sequence", "value")])
LONGEST_WAIT = "longest-wait"
RESULTS_FILE = "judged.json"
QUERIES_AT_ONCE = 2
"""While one is planned, another is at work."""
StageProgress = Callable[[int, int, str], None]


RUN_PREFIX = "run-"
ABANDONED_SECONDS = 7 * 86_400
"""The age at which the files of a run at a URI that was not published are removed."""


@contextmanager
def create_folder(folder: Location) -> Iterator[Location]:
    """Yield a temporary folder, which takes the place of `folder` at the end; at a URI, a folder below it, which is
    named there at the end. Raises `PipelineError` if `folder` is no result."""
    folder = resolve_location(folder)
    if not isinstance(folder, Path):
        with publish_run(folder) as run:
            yield run
        return
    if folder.exists() and not (folder / RESULTS_FILE).exists():
        raise PipelineError(f"{folder} already exists and was not created by this command")
    with replace_folder(folder) as partial:
        yield partial
        write_atomically(partial / RESULTS_FILE, {"fencepost_judged": 1})


@contextmanager
def publish_run(place: str) -> Iterator[Location]:
    """Yield the folder of a new run below a URI, and name it there at the end of the block. Removes the run before it,
    and old ones that were never named. Raises `PipelineError` if the place holds something else."""
    mark = join_location(place, RESULTS_FILE)
    try:
        before = json.loads(read_text(mark))["run"]
    except FileNotFoundError:
        before = None
        if any(not run_of(each.uri, place).startswith(RUN_PREFIX) for each in find_files(place)):
            raise PipelineError(f"{place} already exists and was not created by this command") from None
    run = f"{RUN_PREFIX}{uuid.uuid4().hex}"
    yield join_location(place, run)
    write_text(mark, json.dumps({"fencepost_judged": 1, "run": run}) + "\n")
    old = time.time_ns() - ABANDONED_SECONDS * 10**9
    for each in find_files(place):
        name = run_of(each.uri, place)
        if name == before or (name.startswith(RUN_PREFIX) and name != run and each.changed < old):
            remove_file(each.uri)


def run_of(uri: str, place: str) -> str:
    """The first part of the path of a file below a place."""
    return unquote(uri).removeprefix(f"{unquote(place.partition('?')[0])}/").partition("/")[0]


def judge_corpus(
    spark: SparkSession,
    corpus: Corpus,
    folder: Location,
    analyze: ShardAnalysis,
    progress: StageProgress,
    split: int | None = None,
) -> None:
    """Judge a corpus, and write the findings into `folder` by kind. Traces with more than `split` events are split, by
    default those that would keep one core busy for long. Raises `PipelineError`."""
    with as_pipeline_error():
        parts = plan_parts(spark, corpus, split)
        with job_progress(spark, len(parts), lambda done, total: progress(done, total, "judging")):
            write_parts(spark, parts, make_judge(corpus, analyze), folder, FINDINGS_FOLDER, "kind")


def find_unreadable(spark: SparkSession, corpus: Corpus, folder: Location) -> None:
    """Write a finding into `folder` for each file of a corpus that could not be read. Raises `PipelineError`."""
    if not any(True for _ in corpus.files(QUARANTINE)):
        return
    with as_pipeline_error():
        found = unreadable_files(spark, corpus)
        write_frame(found, folder, FINDINGS_FOLDER, "kind")


def query_corpus(spark: SparkSession, corpus: Corpus, folder: Location, progress: StageProgress) -> None:
    """Run all queries on a corpus, and write their rows into `folder`. Raises `PipelineError`."""
    invariants = {**INVARIANTS, EXAMINED: count_examined}
    with as_pipeline_error():
        events = read_table(spark, corpus, EVENTS, [each for each in SCHEMAS[EVENTS].names if each != "text"])
        if not has_recordings(corpus):
            shared = [examined_events(events).persist()]
        else:
            parts = continued_parts(read_table(spark, corpus, TRACES, PART_COLUMNS))
            placed = placed_events(events, parts).persist()
            shared = [placed, join_incarnations(placed).persist()]
        examined = shared[-1]
        queries = [(name, query(examined)) for name, query in invariants.items()]
        queries += [(name, query(events)) for name, query in VIEWS.items()]
        write_queries(spark, queries, folder, progress)
        for each in shared:
            each.unpersist()
        write_queries(spark, list(further_queries(spark, folder, events)), folder, progress)


def further_queries(spark: SparkSession, folder: Location, events: DataFrame) -> Iterator[tuple[str, DataFrame]]:
    """Yield the queries about members in recordings and about polls, if the corpus shows any, by name."""
    findings = files_below(folder, f"{FINDINGS_FOLDER}/kind={OWNERSHIP}")
    if findings:
        sizes = file_sizes(folder, findings)
        files = [
            SizedFile(str(join_location(folder, name)), size or 0) for name, size in zip(findings, sizes, strict=True)
        ]
        periods = read_periods(read_files(spark, files, OWNERSHIP_SCHEMA))
        yield from ((name, query(periods)) for name, query in PERIOD_QUERIES.items())
    if any(open_parquet(file).metadata.num_rows for file in files_below(folder, LONGEST_WAIT).values()):
        yield POLL_SHARES, poll_shares(events)


def write_queries(
    spark: SparkSession, queries: Sequence[tuple[str, DataFrame]], folder: Location, progress: StageProgress
) -> None:
    """Write the rows of each query into a table of its name. If one fails, the others are given up."""
    with ThreadPoolExecutor(QUERIES_AT_ONCE) as pool:
        written = [pool.submit(write_frame, rows, folder, name) for name, rows in queries]
        try:
            for number, (done, (name, _)) in enumerate(zip(written, queries, strict=True)):
                progress(number, len(queries), f"querying {name}")
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            spark.sparkContext.cancelAllJobs()
            raise


def has_recordings(corpus: Corpus) -> bool:
    """Whether a trace of a corpus may be a part of a recording."""
    names = (open_parquet(file).read(["recording"])["recording"] for file in corpus.files(TRACES))
    return any(name != "" for column in names for name in column.unique().to_pylist())


@dataclass(frozen=True, slots=True)
class CorpusResults:
    """Reads the tables of a judged corpus, without Spark."""

    folder: Location

    def findings(self, kind: str, columns: Sequence[str] = Finding._fields) -> Iterator[dict[str, Any]]:
        """Yield the findings of one kind, with these columns."""
        for file in files_below(self.folder, f"{FINDINGS_FOLDER}/kind={kind}").values():
            for batch in open_parquet(file).iter_batches(columns=[each for each in columns if each != "kind"]):
                for row in batch.to_pylist():
                    yield {**row, "kind": kind}

    def finding_values(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the decoded values of the findings of one kind, each with its trace."""
        for row in self.findings(kind, ("trace", "value")):
            yield {**json.loads(row["value"]), "trace": row["trace"]}

    def examined_counts(self) -> dict[str, int]:
        """The number of responses that each invariant looked at, by its name, and of assignments that name no partition
        as `unnamed`."""
        return next(self.query_rows(EXAMINED))

    def query_rows(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a query."""
        for file in files_below(self.folder, name).values():
            for batch in open_parquet(file).iter_batches():
                yield from batch.to_pylist()
