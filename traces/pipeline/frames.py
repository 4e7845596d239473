"""Data frames over files that workers read and write themselves, by path or by URI: Spark needs no jar for them."""

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from fencepost.traces.pipeline.corpus import check_files
from fencepost.traces.pipeline.file_systems import (
    Location,
    file_sizes,
    find_files,
    join_location,
    open_parquet,
    open_parquet_output,
    remove_file,
)
from fencepost.traces.pipeline.parallel import Item, core_count, run_parts, split_evenly

Part = TypeVar("Part")
ROWS_PER_BATCH = 5_000
PARTS_PER_CORE = 3


@dataclass(frozen=True, slots=True)
class SizedFile:
    """A file by its location, with its size in bytes."""

    location: str
    size: int


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

    files = {row.name: row.size for row in frame.mapInArrow(write_part, "name string, size long").collect()}
    if not files and by is None:
        nothing = pa.RecordBatch.from_pylist([], schema=to_arrow_schema(frame.schema))
        files = write_batches([nothing], folder, table, job)
    check_written(folder, table, job, files)


def write_parts(
    spark: SparkSession,
    parts: Sequence[Part],
    make: Callable[[Part], Iterable[pa.RecordBatch]],
    folder: Location,
    table: str,
    by: str | None = None,
) -> None:
    """As `write_frame`, with the rows that workers make of some parts, each in one task."""
    job = uuid.uuid4().hex
    written = run_parts(spark, parts, lambda part: write_batches(make(part), folder, table, job, by))
    check_written(folder, table, job, {name: size for files in written for name, size in files.items()})


def write_batches(
    batches: Iterable[pa.RecordBatch], folder: Location, table: str, job: str, by: str | None = None
) -> dict[str, int]:
    """Write rows into new files whose names begin with `job`, and return these with their sizes in bytes."""
    with FrameWriter(folder, table, f"{job}-{uuid.uuid4().hex}.parquet", by) as out:
        for batch in batches:
            out.add_batch(batch)
    return out.files


def check_written(folder: Location, table: str, job: str, files: Mapping[str, int]) -> None:
    """Check the files of a job, and remove others that it left. Raises `PipelineError` if one is not there."""
    check_files(folder, files)
    for name, location in files_below(folder, table).items():
        if name.rpartition("/")[2].startswith(job) and name not in files:
            remove_file(location)


class FrameWriter:
    """Writes record batches into new Parquet files of a name, a folder for each value of the column `by`; `files` are
    those that are complete, with their sizes in bytes."""

    def __init__(self, folder: Location, table: str, name: str, by: str | None = None) -> None:
        self.folder = folder
        self.table = table
        self.name = name
        self.by = by
        self.writers: dict[str, pq.ParquetWriter] = {}
        self.files: dict[str, int] = {}

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch."""
        if self.by is None:
            self.write(f"{self.table}/{self.name}", batch)
            return
        for value in pc.unique(batch[self.by]).to_pylist():
            mine = batch.filter(pc.equal(batch[self.by], value)).drop_columns([self.by])
            self.write(f"{self.table}/{self.by}={value}/{self.name}", mine)

    def write(self, name: str, batch: pa.RecordBatch) -> None:
        """Write rows into a file."""
        if name not in self.writers:
            self.writers[name] = open_parquet_output(join_location(self.folder, name), batch.schema)
        self.writers[name].write_batch(batch)

    def __enter__(self) -> "FrameWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for writer in self.writers.values():
            writer.close()
        if kind is None:
            sizes = file_sizes(self.folder, self.writers)
            self.files = {name: size or 0 for name, size in zip(self.writers, sizes, strict=True)}


def files_below(folder: Location, table: str) -> Mapping[str, Location]:
    """The Parquet files of a table in a folder of results, by name, in order."""
    if isinstance(folder, Path):
        found = sorted((folder / table).rglob("*.parquet"))
        return {path.relative_to(folder).as_posix(): path for path in found}
    below = [each.uri for each in find_files(str(join_location(folder, table)), (".parquet",))]
    return {f"{table}/{unquote(uri.partition('?')[0]).rpartition(f'/{table}/')[2]}": uri for uri in below}
