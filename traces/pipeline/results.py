"""The tables with the results of judging a corpus: a folder that is written as a whole or not at all.

At a URI there is a folder for each run, and a file that names the newest of them.
"""

import json
import pickle
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import escape
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from fencepost.traces.pipeline import PipelineError, story
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.files import (
    Location,
    find_files,
    join_location,
    make_schema,
    name_below,
    open_parquet,
    read_text,
    remove_file,
    resolve_location,
    to_record_batches,
    write_text,
)
from fencepost.traces.pipeline.judge_corpus import (
    REPORT_FOLDER,
    FoundInShard,
    ShardAnalysis,
    make_judge,
    unreadable_files,
)
from fencepost.traces.pipeline.parallel import (
    ROWS_PER_BATCH,
    StageProgress,
    as_pipeline_error,
    check_written,
    core_count,
    files_below,
    job_progress,
    make_rows,
    run_parts,
    write_frame,
)
from fencepost.traces.pipeline.queries import EXAMINED, PERIOD_VIEWS, POLL_SHARES, QUERIES
from fencepost.traces.pipeline.shard_plan import ShardRows
from fencepost.traces.pipeline.tables import QUARANTINE

RESULTS_FILE = "judged.json"
RUN_PREFIX = "run-"
PARTIAL = ".partial-"
ABANDONED_SECONDS = 7 * 86_400
"""The age at which what killed processes left is removed."""
Value = TypeVar("Value")
QUERY_TABLES = frozenset({*QUERIES, *PERIOD_VIEWS, POLL_SHARES, EXAMINED, *story.SCHEMAS})
ROW_SCHEMA = make_schema("trace string, bucket int32, kind string, value string")
"""What is folded of a row."""
PARTS_PER_CORE = 2
MAX_PARTS = 256
"""How many values are merged by one worker."""


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
        write_text(partial / RESULTS_FILE, json.dumps({"fencepost_judged": 1}) + "\n")


@contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, which takes the place of `folder` at the end of the block, unless this raises.

    Of two processes that replace it at the same time the later one wins. Removes what killed ones left a week ago.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left in folder.parent.glob(f"{escape(folder.name)}{PARTIAL}*"):
        if left.is_dir() and left.stat().st_mtime < time.time() - ABANDONED_SECONDS:
            shutil.rmtree(left, ignore_errors=True)
    partial = folder.with_name(f"{folder.name}{PARTIAL}{uuid.uuid4().hex}")
    new = partial / "new"
    new.mkdir(parents=True)
    try:
        yield new
        while new.exists():
            with suppress(FileNotFoundError):
                folder.rename(partial / uuid.uuid4().hex)
            try:
                new.rename(folder)
            except OSError:  # another process may have been quicker
                if not folder.exists():
                    raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def publish_run(place: str) -> Iterator[Location]:
    """Yield the folder of a new run below a URI, and name it there at the end of the block. Removes the run before it,
    and old ones that were never named. Raises `PipelineError` if the place holds something else."""
    mark = join_location(place, RESULTS_FILE)
    try:
        before = json.loads(read_text(mark))["run"]
    except FileNotFoundError:
        before = None
        if any(not run_of(each.name, place).startswith(RUN_PREFIX) for each in find_files(place)):
            raise PipelineError(f"{place} already exists and was not created by this command") from None
    run = f"{RUN_PREFIX}{uuid.uuid4().hex}"
    yield join_location(place, run)
    write_text(mark, json.dumps({"fencepost_judged": 1, "run": run}) + "\n")
    old = time.time_ns() - ABANDONED_SECONDS * 10**9
    for each in find_files(place):
        name = run_of(each.name, place)
        if name == before or (name.startswith(RUN_PREFIX) and name != run and each.changed < old):
            remove_file(each.name)


def judged_folder(folder: Location) -> Location:
    """The folder with the tables that a judge made; at a URI that of the newest run. Raises `PipelineError`."""
    folder = resolve_location(folder)
    try:
        run = json.loads(read_text(join_location(folder, RESULTS_FILE))).get("run")
    except FileNotFoundError:
        raise PipelineError(f"{folder} has no tables yet: make them with fencepost pipeline judge") from None
    return folder if run is None else join_location(folder, run)


def run_of(file: str, place: str) -> str:
    """The first part of the path of a file below a place."""
    return name_below(file, place).partition("/")[0]


def judge_corpus(
    spark: SparkSession,
    corpus: Corpus,
    parts: Sequence[Sequence[ShardRows]],
    folder: Location,
    analyze: ShardAnalysis,
    progress: StageProgress,
) -> None:
    """Judge the parts of a corpus, and write what is found into tables below `folder`. Raises `PipelineError`."""
    job = uuid.uuid4().hex
    with as_pipeline_error(), job_progress(spark, len(parts), lambda done, total: progress(done, total, "judging")):
        written = run_parts(spark, parts, make_judge(corpus, analyze, folder, job))
        files = {name: size for each in written for name, size in each.items()}
        for table in (REPORT_FOLDER, *story.SCHEMAS):
            mine = {name: size for name, size in files.items() if name.startswith(f"{table}/")}
            check_written(folder, table, job, mine)


def find_unreadable(spark: SparkSession, corpus: Corpus, folder: Location) -> None:
    """Write a finding into `folder` for each file of a corpus that could not be read. Raises `PipelineError`."""
    if not any(True for _ in corpus.files(QUARANTINE)):
        return
    with as_pipeline_error():
        found = unreadable_files(spark, corpus)
        write_frame(found, folder, REPORT_FOLDER, "kind")


@dataclass(frozen=True, slots=True)
class Folding(Generic[Value]):
    """How rows of some `kinds` become a value: `fold` makes it of rows of which those of a trace follow each other, and
    `merge` of the values of different traces."""

    kinds: Sequence[str]
    fold: Callable[[Iterable[FoundInShard]], Value]
    merge: Callable[[Iterable[Value]], Value]


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file of results, with the kind of the rows in it and its size in bytes."""

    kind: str
    location: str
    size: int

    def rows(self) -> Iterator[FoundInShard]:
        """Yield the rows; the `value` of a query's row has its columns."""
        is_query = self.kind in QUERY_TABLES
        columns = None if is_query else [each for each in ROW_SCHEMA.names if each != "kind"]
        for batch in open_parquet(self.location).iter_batches(ROWS_PER_BATCH, columns=columns):
            for row in batch.to_pylist():
                value = json.dumps(row, default=str) if is_query else row["value"]
                yield FoundInShard(row.get("trace", ""), row.get("bucket", 0), self.kind, None, None, None, value)


def result_files(folder: Location, kinds: Iterable[str]) -> list[ResultFile]:
    """The files of results with rows of these kinds."""
    folders = {kind: kind if kind in QUERY_TABLES else f"{REPORT_FOLDER}/kind={kind}" for kind in kinds}
    return [ResultFile(kind, *file) for kind, table in folders.items() for file in files_below(folder, table).values()]


def fold_here(folder: Location, folding: Folding[Value]) -> Value:
    """The value of all rows in a folder of results, which memory has room for."""
    rows = (row for file in result_files(folder, folding.kinds) for row in file.rows())
    return folding.fold(sorted(rows, key=attrgetter("trace")))


def fold_on_workers(spark: SparkSession, folder: Location, folding: Folding[Value]) -> Value:
    """The value of all rows in a folder of results, folded by workers, each with one trace in memory. Raises
    `PipelineError`."""

    def rows_of(file: ResultFile) -> Iterator[pa.RecordBatch]:
        rows = ((row.trace, row.bucket, row.kind, row.value) for row in file.rows())
        return to_record_batches(rows, ROW_SCHEMA, ROWS_PER_BATCH)

    def fold_part(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        found = (FoundInShard(sequence=None, time=None, group=None, **row) for row in rows)
        yield as_batch(folding.fold(found))

    def merge_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield as_batch(folding.merge(pickle.loads(value) for batch in batches for value in batch["value"].to_pylist()))

    parts = min(MAX_PARTS, PARTS_PER_CORE * core_count(spark))
    with as_pipeline_error():
        rows = make_rows(spark, result_files(folder, folding.kinds), rows_of, ROW_SCHEMA)
        folded = rows.repartition(parts, "trace").sortWithinPartitions("trace").mapInArrow(fold_part, "value binary")
        (merged,) = folded.repartition(1).mapInArrow(merge_parts, "value binary").collect()
    value: Value = pickle.loads(merged.value)
    return value


def as_batch(value: Any) -> pa.RecordBatch:
    """A record batch of one row with the value."""
    return pa.RecordBatch.from_pydict({"value": [pickle.dumps(value)]})
