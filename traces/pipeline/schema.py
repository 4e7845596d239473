"""The Arrow schemas of the tables of a corpus, and a writer of rows into Parquet files."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.traces.pipeline.corpus import EVENTS, QUARANTINE, TRACES

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
}
PARTITION_COLUMNS = pa.schema([("date", pa.date32()), ("bucket", pa.int32())])
"""The columns of events that are in the paths of the files."""
ROW_GROUP_SIZE = 16_384
"""Number of rows in a row group."""
ROW_GROUP_BYTES = 1 << 28
"""Maximum number of bytes of text in a row group, by about a line; an Arrow array has at most 2 GiB."""
MAX_HELD_ROWS = 32_768
"""Maximum number of buffered rows of all partitions; beyond it the longest row group is written as it is."""
MAX_OPEN_FILES = 200
"""Maximum number of files kept open from one trace to the next."""


@dataclass(slots=True)
class ParquetFileWriter:
    """One Parquet file that is being written."""

    name: str
    schema: pa.Schema
    writer: pq.ParquetWriter
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    held_bytes: int = 0
    """Bytes of text in `rows`."""

    def add_row(self, row: tuple[Any, ...]) -> bool:
        """Buffer a row; returns whether the buffer is full."""
        self.rows.append(row)
        text = self.schema.get_field_index("text")
        self.held_bytes += len(row[text]) if text >= 0 else 0
        return len(self.rows) >= ROW_GROUP_SIZE or self.held_bytes >= ROW_GROUP_BYTES

    def flush(self) -> None:
        """Write the buffered rows."""
        if self.rows:
            columns = zip(*self.rows, strict=True)
            arrays = [pa.array(column, each.type) for column, each in zip(columns, self.schema, strict=True)]
            self.writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
            self.rows.clear()
            self.held_bytes = 0


class TableWriter:
    """Writes rows into new files of a corpus, one for each partition. The names of the files begin with the id of their
    writer; `files` are those that are complete, with their sizes in bytes."""

    def __init__(self, folder: Path, writer: str) -> None:
        self.folder = folder
        self.writer = writer
        self.files: dict[str, int] = {}
        self.open_files: dict[str, ParquetFileWriter] = {}
        self.held_rows = 0

    def add_row(self, partition: str, row: tuple[Any, ...]) -> None:
        """Write a row into a partition: the name of a table, or a folder in it."""
        sheet = self.open_files.get(partition) or self.open_file(partition)
        self.held_rows += 1
        if sheet.add_row(row):
            self.flush_file(sheet)
        elif self.held_rows >= MAX_HELD_ROWS:
            self.flush_file(max(self.open_files.values(), key=lambda each: len(each.rows)))

    def open_file(self, partition: str) -> ParquetFileWriter:
        """Open a new file in a partition."""
        schema = SCHEMAS[partition.partition("/")[0]]
        name = f"{partition}/{self.writer}-{uuid.uuid4().hex}.parquet"
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self.open_files[partition] = ParquetFileWriter(name, schema, pq.ParquetWriter(path, schema, compression="zstd"))
        return self.open_files[partition]

    def flush_file(self, sheet: ParquetFileWriter) -> None:
        """Write the buffered rows of a file."""
        self.held_rows -= len(sheet.rows)
        sheet.flush()

    def close_if_many(self) -> None:
        """Close all files if more than `MAX_OPEN_FILES` are open; later rows go into new files."""
        if len(self.open_files) > MAX_OPEN_FILES:
            self.close()

    def close(self) -> None:
        """Write the buffered rows, and close all files."""
        for sheet in self.open_files.values():
            self.flush_file(sheet)
            sheet.writer.close()
            self.files[sheet.name] = (self.folder / sheet.name).stat().st_size
        self.open_files.clear()

    def __enter__(self) -> "TableWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
