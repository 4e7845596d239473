"""The tables of a corpus: their schemas, the names of their files, and a writer of rows into files."""

import uuid
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from fencepost.traces.pipeline.files import Location, ParquetFiles, to_record_batches

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
TEXT_PLACE = SCHEMAS[EVENTS].get_field_index("text")
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


class TableWriter:
    """Writes rows into new files of a corpus, one for each table. `files` are those that are complete, with their sizes
    in bytes."""

    def __init__(self, folder: Location, writer: str) -> None:
        self.writer = writer
        self.output = ParquetFiles(folder)
        self.names: dict[str, str] = {}
        self.rows: dict[str, list[tuple[Any, ...]]] = {}
        """The rows that are not written yet, by table."""
        self.text_bytes = 0
        """Bytes of text in those of the table of events."""

    @property
    def files(self) -> Mapping[str, int]:
        """The files that are complete, with their sizes in bytes."""
        return self.output.sizes

    def add_row(self, table: str, row: tuple[Any, ...]) -> None:
        """Write a row into a table; the table's rows are on disk when a row group is full."""
        held = self.rows.setdefault(table, [])
        held.append(row)
        if table == EVENTS:
            self.text_bytes += len(row[TEXT_PLACE])
        if len(held) >= ROW_GROUP_SIZE or (table == EVENTS and self.text_bytes >= ROW_GROUP_BYTES):
            self.flush(table)

    def flush(self, table: str) -> None:
        """Write the buffered rows of a table."""
        name = self.names.setdefault(table, new_file_name(table, self.writer))
        for batch in to_record_batches(self.rows.pop(table), SCHEMAS[table], ROW_GROUP_SIZE):
            self.output.add(name, batch)
        if table == EVENTS:
            self.text_bytes = 0

    def __enter__(self) -> "TableWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:
            for table in list(self.rows):
                self.flush(table)
        self.output.__exit__(kind, *error)
