"""Work for many workers: a list goes out in parts, and what comes of each part comes back."""

import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeAlias, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.spark_session import first_error_line

Spark: TypeAlias = SparkSession
"""For rooms that know no more of Spark than that they hand it on."""
PartProgress = Callable[[int, int], None]
"""Hears how many parts are done, of how many."""
POLL_SECONDS = 0.5
"""Seconds between two looks at how far a job is."""


class HasSize(Protocol):
    """Something that takes about as long as it is big."""

    @property
    def size(self) -> int:
        """How big it is."""
        ...


Item = TypeVar("Item", bound=HasSize)
Result = TypeVar("Result")


def core_count(spark: Spark) -> int:
    """How many parts are worked on at once."""
    return spark.sparkContext.defaultParallelism


def map_parallel(
    spark: SparkSession,
    items: Sequence[Item],
    work: Callable[[list[Item]], Result],
    progress: PartProgress,
    parts_per_core: int = 2,
) -> list[Result]:
    """Have workers do some work on the items, and bring home what came of it.

    There are at most `parts_per_core` parts for each core. Raises `PipelineError` with the last line of what a
    worker said.
    """
    parts = split_evenly(items, parts_per_core * core_count(spark))
    rows = [(number, bytearray(pickle.dumps(part))) for number, part in enumerate(parts)]

    def run_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column("part").to_pylist():
                yield pa.RecordBatch.from_pydict({"result": [pickle.dumps(work(pickle.loads(part)))]})

    with job_progress(spark, len(rows), progress), as_pipeline_error():
        frame = spark.createDataFrame(rows, "number int, part binary").repartitionById(max(1, len(rows)), "number")
        results = frame.mapInArrow(run_parts, "result binary").collect()
    return [pickle.loads(row.result) for row in results]


def split_evenly(items: Sequence[Item], max_parts: int) -> list[list[Item]]:
    """The items in at most so many parts of about the same size, the biggest items first."""
    parts: list[list[Item]] = [[] for _ in range(min(max_parts, len(items)))]
    sizes = [0] * len(parts)
    for item in sorted(items, key=lambda each: -each.size):
        place = sizes.index(min(sizes))
        parts[place].append(item)
        sizes[place] += max(1, item.size)
    return parts


@contextmanager
def job_progress(spark: SparkSession, parts: int, progress: PartProgress) -> Iterator[None]:
    """Tell from time to time how far the jobs of this block are, as tasks of all stages that are known."""
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
    """What goes wrong in Spark or in a worker is a `PipelineError` of one line."""
    try:
        yield
    except (PySparkException, Py4JError) as cause:
        raise PipelineError(error_line(cause)) from None


def error_line(cause: BaseException) -> str:
    """The last line of what a worker said, else the first of what Spark says."""
    text = str(cause)
    if "Traceback (most recent call last)" in text:
        said = text.rpartition("Traceback (most recent call last)")[2].splitlines()[1:]
        last = [line for line in said if line and not line.startswith((" ", "\t"))]
        if last:
            return last[0].strip()
    return first_error_line(cause)
