"""The tables of a corpus: their schemas, the names of their files, and a writer of rows into files."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.traces.pipeline.file_systems import Location, file_sizes, join_location, open_parquet_output

EVENTS, QUARANTINE, TRACES, INPUTS = "events", "quarantine", "traces", "inputs"
TABLE_COLUMN = "table"
"""The column that says which table a row is in; it is in the path of the file, as Hive has it."""
OFFSETS = pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]))
POLL_COUNTS = pa.list_(pa.struct([("partition", pa.string()), ("buffered", pa.int64()), ("returned", pa.int64())]))
SCHEMAS: Mapping[str, pa.Schema] = {
    EVENTS: pa.schema(
        [
            ("trace", pa.string()),
            ("line", pa.int64()),
            ("sequence", pa.int64()),
            ("time", pa.int64()),
            ("connection", pa.int64()),
            ("member", pa.string()),
            ("kind", pa.string()),
            ("api", pa.string()),
            ("version", pa.int32()),
            ("of", pa.int64()),
            ("group", pa.string()),
            ("intact", pa.bool_()),
            ("text", pa.binary()),
            ("incarnation", pa.int64()),
            ("sent", pa.int64()),
            ("error", pa.int32()),
            ("member_id", pa.string()),
            ("instance", pa.string()),
            ("generation", pa.int32()),
            ("leader", pa.string()),
            ("accepted", pa.bool_()),
            ("owned", pa.list_(pa.string())),
            ("double_assigned", pa.list_(pa.string())),
            ("offsets", OFFSETS),
            ("poll_counts", POLL_COUNTS),
            ("date", pa.date32()),
            ("bucket", pa.int32()),
        ]
    ),
    QUARANTINE: pa.schema(
        [
            ("trace", pa.string()),
            ("line", pa.int64()),
            ("lines", pa.int64()),
            ("reason", pa.string()),
            ("text", pa.binary()),
        ]
    ),
    TRACES: pa.schema(
        [
            ("trace", pa.string()),
            ("source", pa.string()),
            ("order", pa.string()),
            ("header", pa.binary()),
            ("events", pa.int64()),
            ("lines", pa.int64()),
            ("quarantined", pa.int64()),
            ("flawed", pa.int64()),
            ("marked", pa.bool_()),
            ("recording", pa.string()),
            ("part", pa.int64()),
            ("continued", pa.int64()),
            ("buckets", pa.list_(pa.int32())),
            ("sizes", pa.list_(pa.int64())),
        ]
    ),
    INPUTS: pa.schema(
        [
            ("input", pa.string()),
            ("size", pa.int64()),
            ("changed", pa.int64()),
            ("lines", pa.int64()),
            ("headers", pa.int64()),
            ("events", pa.int64()),
            ("quarantined", pa.int64()),
            ("report", pa.string()),
        ]
    ),
}
TABLES = tuple(SCHEMAS)
DELTA_SCHEMA = pa.unify_schemas([pa.schema([(TABLE_COLUMN, pa.string())]), *SCHEMAS.values()])
"""All columns, as a Delta table has them: one table is one partition."""
ROW_GROUP_SIZE = 16_384
"""Number of rows in a row group."""
ROW_GROUP_BYTES = 1 << 28
"""Maximum number of bytes of text in a row group, by about a line; an Arrow array has at most 2 GiB."""


def new_file_name(table: str, writer: str) -> str:
    """A new name of a file in a table. It begins with the id of its writer."""
    return f"{TABLE_COLUMN}={table}/{writer}-{uuid.uuid4().hex}.parquet"


def table_of(name: str) -> str:
    """The table that a file belongs to, by its name."""
    return name.partition("/")[0].removeprefix(f"{TABLE_COLUMN}=")


def open_parquet_writer(folder: Location, name: str) -> pq.ParquetWriter:
    """A writer of a new file in the corpus in `folder`."""
    return open_parquet_output(join_location(folder, name), SCHEMAS[table_of(name)])


@dataclass(slots=True)
class ParquetFileWriter:
    """One Parquet file that is being written."""

    name: str
    schema: pa.Schema
    writer: pq.ParquetWriter
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    held_bytes: int = 0
    """Bytes of text in `rows`."""

    def add_row(self, row: tuple[Any, ...]) -> None:
        """Buffer a row, and write the buffer if it is full."""
        self.rows.append(row)
        text = self.schema.get_field_index("text")
        self.held_bytes += len(row[text]) if text >= 0 else 0
        if len(self.rows) >= ROW_GROUP_SIZE or self.held_bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered rows."""
        if self.rows:
            columns = zip(*self.rows, strict=True)
            arrays = [pa.array(column, each.type) for column, each in zip(columns, self.schema, strict=True)]
            self.writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
            self.rows.clear()
            self.held_bytes = 0


class TableWriter:
    """Writes rows into new files of a corpus, one for each table. `files` are those that are complete, with their sizes
    in bytes."""

    def __init__(self, folder: Location, writer: str) -> None:
        self.folder = folder
        self.writer = writer
        self.files: dict[str, int] = {}
        self.open_files: dict[str, ParquetFileWriter] = {}

    def add_row(self, table: str, row: tuple[Any, ...]) -> None:
        """Write a row into a table."""
        if table not in self.open_files:
            name = new_file_name(table, self.writer)
            self.open_files[table] = ParquetFileWriter(name, SCHEMAS[table], open_parquet_writer(self.folder, name))
        self.open_files[table].add_row(row)

    def close(self) -> None:
        """Write the buffered rows, and close all files."""
        for each in self.open_files.values():
            each.flush()
            each.writer.close()
        names = [each.name for each in self.open_files.values()]
        self.files |= {name: size or 0 for name, size in zip(names, file_sizes(self.folder, names), strict=True)}
        self.open_files.clear()

    def __enter__(self) -> "TableWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
