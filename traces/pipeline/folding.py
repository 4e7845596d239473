"""The rows of a judged corpus, folded into one value: by workers, each with the rows of some traces, or here.

What is folded and how is handed in. The driver gets one value, whatever the number of rows and of traces.
"""

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from fencepost.traces.pipeline.arrow import to_record_batches
from fencepost.traces.pipeline.file_systems import Location, file_sizes, join_location, open_parquet
from fencepost.traces.pipeline.frames import ROWS_PER_BATCH, files_below, make_rows
from fencepost.traces.pipeline.judge_corpus import Finding
from fencepost.traces.pipeline.ownership_queries import PERIOD_QUERIES, POLL_SHARES
from fencepost.traces.pipeline.parallel import as_pipeline_error, core_count
from fencepost.traces.pipeline.queries import EXAMINED, QUERIES

Value = TypeVar("Value")
FINDINGS_FOLDER = "findings"
QUERY_TABLES = frozenset({*QUERIES, *PERIOD_QUERIES, POLL_SHARES, EXAMINED})
ROW_SCHEMA = pa.schema([("trace", pa.string()), ("bucket", pa.int32()), ("kind", pa.string()), ("value", pa.string())])
"""What is folded of a row."""
PARTS_PER_CORE = 2
MAX_PARTS = 256
"""How many values are merged by one worker."""


@dataclass(frozen=True, slots=True)
class Folding(Generic[Value]):
    """How rows of some `kinds` become a value: `fold` makes it of rows of which those of a trace follow each other, and
    `merge` of the values of different traces."""

    kinds: Sequence[str]
    fold: Callable[[Iterable[Finding]], Value]
    merge: Callable[[Iterable[Value]], Value]


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file of results, with the kind of the rows in it and its size in bytes."""

    kind: str
    location: Location
    size: int

    def rows(self) -> Iterator[Finding]:
        """Yield the rows; the `value` of a query's row has its columns."""
        is_query = self.kind in QUERY_TABLES
        columns = None if is_query else [each for each in ROW_SCHEMA.names if each != "kind"]
        for batch in open_parquet(self.location).iter_batches(ROWS_PER_BATCH, columns=columns):
            for row in batch.to_pylist():
                value = json.dumps(row) if is_query else row["value"]
                yield Finding(row.get("trace", ""), row.get("bucket", 0), self.kind, None, None, None, value)


def result_files(folder: Location, kinds: Iterable[str]) -> list[ResultFile]:
    """The files of results with rows of these kinds."""
    found: list[ResultFile] = []
    for kind in kinds:
        names = files_below(folder, kind if kind in QUERY_TABLES else f"{FINDINGS_FOLDER}/kind={kind}")
        for name, size in zip(names, file_sizes(folder, names), strict=True):
            found.append(ResultFile(kind, join_location(folder, name), size or 0))
    return found


def fold_here(folder: Location, folding: Folding[Value]) -> Value:
    """The value of all rows in a folder of results, which memory has room for."""
    rows = (row for file in result_files(folder, folding.kinds) for row in file.rows())
    return folding.fold(sorted(rows, key=attrgetter("trace")))


def fold_on_workers(spark: SparkSession, folder: Location, folding: Folding[Value]) -> Value:
    """The same by workers, in memory for the rows of one trace that are not yet folded. Raises `PipelineError`."""

    def rows_of(file: ResultFile) -> Iterator[pa.RecordBatch]:
        rows = ((row.trace, row.bucket, row.kind, row.value) for row in file.rows())
        return to_record_batches(rows, ROW_SCHEMA, ROWS_PER_BATCH)

    def fold_part(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        found = (Finding(sequence=None, time=None, group=None, **row) for row in rows)
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
