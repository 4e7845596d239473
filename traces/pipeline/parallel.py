"""Parallel work on Spark: a list is split into parts, and a function runs on each part."""

import pickle
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import heapreplace
from typing import Protocol, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.corpus import check_files
from fencepost.traces.pipeline.files import (
    Location,
    ParquetFiles,
    SizedFile,
    find_files,
    join_location,
    name_below,
    open_parquet,
    remove_file,
)
from fencepost.traces.pipeline.spark_session import first_error_line

Spark: TypeAlias = SparkSession
"""For modules that only pass a Spark session on."""
PartProgress = Callable[[int, int], None]
"""Called with the number of parts done and the number of parts in total."""
StageProgress = Callable[[int, int, str], None]
"""As `PartProgress`, with what is done."""
POLL_SECONDS = 0.5
"""Seconds between two queries of a job's progress."""
Part = TypeVar("Part")
Result = TypeVar("Result")
ROWS_PER_BATCH = 5_000
PARTS_PER_CORE = 3


class HasSize(Protocol):
    """An item of work, which takes time in proportion to its size."""

    @property
    def size(self) -> int: ...


Item = TypeVar("Item", bound=HasSize)


def core_count(spark: Spark) -> int:
    """The number of parts that run at once."""
    return spark.sparkContext.defaultParallelism


def map_parallel(
    spark: SparkSession,
    items: Sequence[Item],
    work: Callable[[list[Item]], Result],
    progress: PartProgress,
    parts_per_core: int = 2,
) -> list[Result]:
    """Run `work` on the items in parts of about the same size, and return its results.

    There are at most `parts_per_core` parts for each core. Raises `PipelineError` with the last line of a worker's
    traceback.
    """
    parts = split_evenly(items, parts_per_core * core_count(spark))
    with job_progress(spark, len(parts), progress), as_pipeline_error():
        return run_parts(spark, parts, work)


def run_parts(spark: SparkSession, parts: Sequence[Part], work: Callable[[Part], Result]) -> list[Result]:
    """Run `work` on each part in a task of its own, and return its results; tasks start in this order."""
    if not parts:
        return []
    return spark.sparkContext.parallelize(parts, len(parts)).map(work).collect()


def split_evenly(items: Sequence[Item], max_parts: int) -> list[list[Item]]:
    """The items in at most `max_parts` parts of about the same total size."""
    parts: list[list[Item]] = [[] for _ in range(min(max_parts, len(items)))]
    smallest = [(0, place) for place in range(len(parts))]
    for item in sorted(items, key=lambda each: -each.size):
        size, place = smallest[0]
        parts[place].append(item)
        heapreplace(smallest, (size + max(1, item.size), place))
    return parts


@contextmanager
def job_progress(spark: SparkSession, parts: int, progress: PartProgress) -> Iterator[None]:
    """Report the tasks done and known of the jobs in this block, every `POLL_SECONDS`."""
    group = f"fencepost-{time.monotonic_ns()}"
    spark.sparkContext.setJobGroup(group, "fencepost")
    tracker = spark.sparkContext.statusTracker()
    ended = threading.Event()

    def poll_jobs() -> None:
        while not ended.wait(POLL_SECONDS):
            jobs = [tracker.getJobInfo(each) for each in tracker.getJobIdsForGroup(group)]
            stages = [tracker.getStageInfo(each) for job in jobs if job is not None for each in job.stageIds]
            known = [each for each in stages if each is not None]
            done, total = sum(each.numCompletedTasks for each in known), sum(each.numTasks for each in known)
            if total:
                progress(done, max(total, parts))

    thread = threading.Thread(target=poll_jobs, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


@contextmanager
def as_pipeline_error() -> Iterator[None]:
    """Turn errors of Spark and of workers in this block into `PipelineError`."""
    try:
        yield
    except (PySparkException, Py4JError) as cause:
        raise PipelineError(error_line(cause)) from None


def error_line(cause: BaseException) -> str:
    """The last line of a worker's traceback, else the first line of Spark's message."""
    text = str(cause)
    if "Traceback (most recent call last)" in text:
        said = text.rpartition("Traceback (most recent call last)")[2].splitlines()[1:]
        last = [line for line in said if line and not line.startswith((" ", "\t"))]
        if last:
            return last[0].strip()
    return first_error_line(cause)


def read_files(spark: SparkSession, files: Sequence[SizedFile], schema: pa.Schema) -> DataFrame:
    """The rows of Parquet files, which workers open, in the columns of `schema`."""

    def read_file(file: SizedFile) -> Iterator[pa.RecordBatch]:
        for each in open_parquet(file.location).iter_batches(ROWS_PER_BATCH, columns=schema.names):
            yield each.select(schema.names).cast(schema)

    return make_rows(spark, files, read_file, schema)


def make_rows(
    spark: SparkSession, items: Sequence[Item], make: Callable[[Item], Iterable[pa.RecordBatch]], schema: pa.Schema
) -> DataFrame:
    """The rows that workers make of some items, in the columns of `schema`."""
    parts = split_evenly(items, PARTS_PER_CORE * core_count(spark))
    rows = [(number, bytearray(pickle.dumps(part))) for number, part in enumerate(parts)]

    def make_part(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column("part").to_pylist():
                for item in pickle.loads(part):
                    yield from make(item)

    frame = spark.createDataFrame(rows, "number int, part binary").repartitionById(max(1, len(rows)), "number")
    return frame.mapInArrow(make_part, from_arrow_schema(schema))


def write_frame(frame: DataFrame, folder: Location, table: str, by: str | None = None) -> None:
    """Write a frame into new files of `folder`/`table`, in a folder of its own for each value of the column `by`.

    Workers write the files. Raises `PipelineError` if one of them is not there afterwards; those of tasks that failed
    are removed.
    """
    job = uuid.uuid4().hex

    def write_part(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = write_batches(batches, folder, table, job, by)
        yield pa.RecordBatch.from_pydict({"name": list(files), "size": list(files.values())})

    written = frame.mapInArrow(write_part, "name string, size long").collect()
    files: Mapping[str, int] = {row.name: row.size for row in written}
    if not files and by is None:
        nothing = pa.RecordBatch.from_pylist([], schema=frame.limit(0).toArrow().schema)
        files = write_batches([nothing], folder, table, job)
    check_written(folder, table, job, files)


def write_batches(
    batches: Iterable[pa.RecordBatch], folder: Location, table: str, job: str, by: str | None = None
) -> Mapping[str, int]:
    """Write rows into new files whose names begin with `job`, and return these with their sizes in bytes."""
    file = f"{job}-{uuid.uuid4().hex}.parquet"
    with ParquetFiles(folder) as out:
        for batch in batches:
            if by is None:
                out.add(f"{table}/{file}", batch)
            else:
                for value in pc.unique(batch[by]).to_pylist():
                    mine = batch.filter(pc.equal(batch[by], value)).drop_columns([by])
                    out.add(f"{table}/{by}={value}/{file}", mine)
    return out.sizes


def check_written(folder: Location, table: str, job: str, files: Mapping[str, int]) -> None:
    """Check the files of a job, and remove others that it left. Raises `PipelineError` if one is not there."""
    check_files(folder, files)
    for name, file in files_below(folder, table).items():
        if name.rpartition("/")[2].startswith(job) and name not in files:
            remove_file(file.location)


def files_below(folder: Location, table: str) -> Mapping[str, SizedFile]:
    """The Parquet files of a table in a folder of results, by name, in order."""
    found = find_files(join_location(folder, table), (".parquet",))
    named = ((name_below(each.name, folder), each.size) for each in found)
    return {name: SizedFile(str(join_location(folder, name)), size) for name, size in named}
