"""Rewriting of a corpus: small files are put together, and an input is taken out."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.traces.message_fields import encodable_text
from fencepost.traces.pipeline.corpus import Corpus, Counts, InputRow
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.file_systems import (
    Location,
    file_sizes,
    join_location,
    open_parquet,
    remove_file,
)
from fencepost.traces.pipeline.parallel import PartProgress, Spark, map_parallel
from fencepost.traces.pipeline.schema import (
    INPUTS,
    ROW_GROUP_BYTES,
    ROW_GROUP_SIZE,
    SCHEMAS,
    TABLES,
    new_file_name,
    open_parquet_writer,
    table_of,
)

FULL_FILE_BYTES = 128 << 20
"""Files of this size are left as they are; smaller ones are put together up to it."""
Keep: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files of one table that become one; `size` is in bytes."""

    table: str
    names: tuple[str, ...]
    size: int


def compact(spark: Spark, corpus: Corpus, progress: PartProgress) -> tuple[int, int]:
    """Put the small files of each table together, and return the numbers of files before and after.

    Raises `PipelineError` if another process has replaced some of them meanwhile.
    """
    with corpus.write() as writer:
        before = corpus.log.read().files
        groups = [group for table in TABLES for group in group_files(table, before) if len(group.names) > 1]
        data, id = corpus.data, writer.id

        def merge(groups: list[FileGroup]) -> Mapping[str, int]:
            return {
                name: size
                for group in groups
                for name, size in rewrite_files(data, data, id, group.table, group.names).items()
            }

        added = {name: size for each in map_parallel(spark, groups, merge, progress) for name, size in each.items()}
        removed = [name for group in groups for name in group.names]
        if removed and not writer.replace(removed, added, is_rewrite=True):
            raise PipelineError(f"another process has rewritten files of {corpus.folder} meanwhile: try again")
    return len(before), len(before) - len(removed) + len(added)


def group_files(table: str, files: Mapping[str, int]) -> Iterator[FileGroup]:
    """Yield the files of a table in groups of about `FULL_FILE_BYTES`. A file of that size is a group of its own."""
    names: list[str] = []
    size = 0
    for name, bytes in files.items():
        if table_of(name) != table:
            continue
        if bytes >= FULL_FILE_BYTES:
            yield FileGroup(table, (name,), bytes)
            continue
        names.append(name)
        size += bytes
        if size >= FULL_FILE_BYTES:
            yield FileGroup(table, tuple(names), size)
            names, size = [], 0
    if names:
        yield FileGroup(table, tuple(names), size)


def forget(corpus: Corpus, name: str) -> Counts:
    """Take an input with all its rows out of a corpus, and return the counts of its lines.

    Raises `PipelineError` if the corpus does not have it.
    """
    with corpus.write() as writer:
        while True:
            now = corpus.snapshot()
            counts = [row.counts for row in now.input_rows() if is_row_of(row, str(encodable_text(name)))]
            if not counts:
                raise PipelineError(
                    f"{corpus.folder} has no input {name}: give its name as it was ingested, 'seed N', or a topic"
                )
            assert now.committed is not None
            added: dict[str, int] = {}
            removed = []
            for file in now.committed.files:
                column = "input" if table_of(file) == INPUTS else "trace"
                if pc.any(
                    is_of_input(open_parquet(join_location(corpus.data, file)).read([column])[column], name)
                ).as_py():
                    keep = rows_of_others(column, name)
                    added |= rewrite_files(corpus.data, corpus.data, writer.id, table_of(file), [file], keep)
                    removed.append(file)
            if writer.replace(removed, added, is_rewrite=False):
                return sum(counts, Counts())


def is_row_of(row: InputRow, name: str) -> bool:
    """Whether a row of the table of inputs is that of an input, or of a section or the position of a topic."""
    return row.input == name or (name.startswith("kafka://") and row.input.startswith(f"{name}/"))


def is_of_input(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Whether each of these names of traces is that of an input, or of a trace in it."""
    text = encodable_text(name)
    return pc.or_(pc.equal(column, text), pc.starts_with(column, f"{text}/"))


def rows_of_others(column: str, name: str) -> Keep:
    """A filter that leaves the rows of an input out."""
    return lambda batch: batch.filter(pc.invert(is_of_input(batch[column], name)))


def rewrite_files(
    source: Location, data: Location, writer: str, table: str, names: Iterable[str], keep: Keep = lambda batch: batch
) -> dict[str, int]:
    """Write the rows of files in `source` that `keep` leaves into a new file in `data`, and return its name with its
    size in bytes; nothing if there are none."""
    new = new_file_name(table, writer)
    held: list[pa.RecordBatch] = []
    written = 0
    with open_parquet_writer(data, new) as out:

        def flush() -> None:
            out.write_table(pa.Table.from_batches(held, SCHEMAS[table]), ROW_GROUP_SIZE)
            held.clear()

        for name in names:
            for batch in open_parquet(join_location(source, name)).iter_batches(ROW_GROUP_SIZE):
                held.append(keep(fit_schema(batch, table, name)))
                written += held[-1].num_rows
                if sum(each.num_rows for each in held) >= ROW_GROUP_SIZE or held_bytes(held) >= ROW_GROUP_BYTES:
                    flush()
        flush()
    if not written:
        remove_file(join_location(data, new))
        return {}
    (size,) = file_sizes(data, [new])
    assert size is not None
    return {new: size}


def held_bytes(batches: Iterable[pa.RecordBatch]) -> int:
    """The number of bytes that batches take."""
    return sum(int(each.nbytes) for each in batches)


def fit_schema(batch: pa.RecordBatch, table: str, name: str) -> pa.RecordBatch:
    """The rows of a file with the columns of its table. What it lacks is in its path, or null."""
    in_path = dict(part.split("=", 1) for part in Path(name).parts if "=" in part)

    def column(field: pa.Field) -> pa.Array:
        if field.name in batch.schema.names:
            return batch[field.name].cast(field.type)
        return pa.repeat(pa.scalar(in_path.get(field.name), pa.string()), batch.num_rows).cast(field.type)

    schema = SCHEMAS[table]
    return pa.RecordBatch.from_arrays([column(field) for field in schema], schema=schema)
