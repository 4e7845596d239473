"""The tables of a corpus: their schemas, the names of their files, and a writer of rows into files."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from fencepost.traces.pipeline.files import Location, ParquetFiles, make_schema, to_record_batches

EVENTS, QUARANTINE, TRACES, INPUTS = "events", "quarantine", "traces", "inputs"
TABLE_COLUMN = "table"
"""The column that says which table a row is in; it is in the path of the file, as Hive has it."""
OFFSETS = pa.list_(pa.struct(list(make_schema("topic string, partition int32, offset int64"))))
POLL_COUNTS = pa.list_(pa.struct(list(make_schema("partition string, buffered int64, returned int64"))))
SCHEMAS: Mapping[str, pa.Schema] = {
    EVENTS: pa.schema(
        [
            *make_schema(
                "trace string, line int64, sequence int64, time int64, connection int64, member string, kind string, "
                "api string, version int32, of int64, group string, intact bool, text binary, incarnation int64, "
                "sent int64, error int32, member_id string, instance string, generation int32, leader string, "
                "accepted bool, owned [string], double_assigned [string]"
            ),
            ("offsets", OFFSETS),
            ("poll_counts", POLL_COUNTS),
            *make_schema("at instant, library string, library_version string, date date32, bucket int32"),
        ]
    ),
    QUARANTINE: make_schema("trace string, line int64, lines int64, reason string, text binary"),
    TRACES: make_schema(
        "trace string, source string, order string, header binary, events int64, lines int64, quarantined int64, "
        "flawed int64, marked bool, recording string, part int64, continued int64, buckets [int32], sizes [int64]"
    ),
    INPUTS: make_schema(
        "input string, size int64, changed int64, lines int64, headers int64, events int64, quarantined int64, "
        "report string"
    ),
}
TABLES = tuple(SCHEMAS)
TEXT_PLACE = SCHEMAS[EVENTS].get_field_index("text")
DELTA_SCHEMA = pa.unify_schemas([make_schema(f"{TABLE_COLUMN} string"), *SCHEMAS.values()])
"""All columns, as a Delta table has them: one table is one partition."""
ROW_GROUP_SIZE = 16_384
"""Number of rows in a row group."""
ROW_GROUP_BYTES = 1 << 28
"""Maximum number of bytes of text in a row group, by about a line; an Arrow array has at most 2 GiB."""


def table_of(name: str) -> str:
    """The table that a file belongs to, by its name."""
    return name.partition("/")[0].removeprefix(f"{TABLE_COLUMN}=")


def place_in_corpus(table: str) -> tuple[str, pa.Schema]:
    """Where the files of a table of a corpus are, and its columns."""
    return f"{TABLE_COLUMN}={table}", SCHEMAS[table]


class TableWriter:
    """Writes rows into new files, one for each table: those of a corpus, unless `place` says otherwise. `files` are
    those that are complete, with their sizes in bytes."""

    def __init__(
        self, folder: Location, writer: str, place: Callable[[str], tuple[str, pa.Schema]] = place_in_corpus
    ) -> None:
        self.writer = writer
        self.place = place
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
        # The name of a file begins with the id of its writer.
        folder, schema = self.place(table)
        name = self.names.setdefault(table, f"{folder}/{self.writer}-{uuid.uuid4().hex}.parquet")
        for batch in to_record_batches(self.rows.pop(table), schema, ROW_GROUP_SIZE):
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
