"""Parallel work on Spark: a list is split into parts, and a function runs on each part."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heapreplace
from typing import Protocol, TypeAlias, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.spark_session import first_error_line

Spark: TypeAlias = SparkSession
"""For modules that only pass a Spark session on."""
PartProgress = Callable[[int, int], None]
"""Called with the number of parts done and the number of parts in total."""
StageProgress = Callable[[int, int, str], None]
"""As `PartProgress`, with what is done."""
POLL_SECONDS = 0.5
"""Seconds between two queries of a job's progress."""


class HasSize(Protocol):
    """An item of work, which takes time in proportion to its size."""

    @property
    def size(self) -> int: ...


Item = TypeVar("Item", bound=HasSize)
Part = TypeVar("Part")
Result = TypeVar("Result")


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
