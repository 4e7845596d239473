"""The views of `views.sql` over a judged corpus, in Spark or in DuckDB."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from fencepost.traces.pipeline import PipelineError, story
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.files import Location, SizedFile, join_location, open_file_system
from fencepost.traces.pipeline.judge_corpus import read_table
from fencepost.traces.pipeline.parallel import as_pipeline_error, files_below, read_files
from fencepost.traces.pipeline.queries import EXAMINED, EXAMINED_SCHEMA, QUERIES
from fencepost.traces.pipeline.results import judged_folder
from fencepost.traces.pipeline.tables import SCHEMAS, TABLES
from fencepost.traces.pipeline.trace_rows import group_recordings, read_trace_files

WHOLE_TRACES = "whole_traces"
"""The table that says of each file which one is the first of its trace."""
WHOLE_SCHEMA = pa.schema([("trace", pa.string()), ("first_file", pa.string())])
RESULT_SCHEMAS: Mapping[str, pa.Schema] = {
    **story.SCHEMAS,
    **{name: query.schema for name, query in QUERIES.items()},
    EXAMINED: EXAMINED_SCHEMA,
}
"""The tables of a judged corpus that views read."""


@dataclass(frozen=True, slots=True)
class View:
    """A view: its name, the question that it answers, and the statement that makes it."""

    name: str
    question: str
    statement: str


@cache
def read_views() -> Sequence[View]:
    """The views in the order in which they are made."""
    text = resources.files(__package__).joinpath("views.sql").read_text(encoding="utf-8")
    found = re.finditer(r"^-- (.*)\n(CREATE OR REPLACE TEMPORARY VIEW (\w+) AS\n[^;]*);", text, re.MULTILINE)
    return [View(each[3], each[1], each[2]) for each in found]


def sql_of(query: str) -> str:
    """A query, which may be the name of a view or a table."""
    return f"SELECT * FROM {query.strip()}" if re.fullmatch(r"\s*\w+\s*", query) else query


@dataclass(frozen=True, slots=True)
class JudgedCorpus:
    """A corpus with the tables that a judge made of it in a folder, both as they are now."""

    corpus: Corpus
    folder: Location

    @classmethod
    def open(cls, corpus: Corpus, judged: Location | None = None) -> "JudgedCorpus":
        """The corpus, and the results in the folder that `judge` writes or in another. Raises `PipelineError`."""
        return cls(corpus.snapshot(), judged_folder(judged or join_location(corpus.folder, "judged")))

    def files(self) -> Iterator[tuple[str, pa.Schema, Sequence[SizedFile]]]:
        """Yield each table, with its columns and its files."""
        for name in TABLES:
            yield name, SCHEMAS[name], self.corpus.sized_files(name)
        for name, schema in RESULT_SCHEMAS.items():
            yield name, schema, list(files_below(self.folder, name).values())

    def whole_traces(self) -> pa.Table:
        """The first file of the trace of each file."""
        files = [file for file, _ in read_trace_files(self.corpus)]
        pairs = [(each.trace, whole[0].trace) for whole in group_recordings(files) for each in whole]
        return pa.Table.from_pylist([dict(zip(WHOLE_SCHEMA.names, pair, strict=True)) for pair in pairs], WHOLE_SCHEMA)


def plain_name(name: str) -> str:
    """The name of a table or a column as SQL has it without quotes."""
    return name.replace("-", "_")


def make_spark_views(spark: SparkSession, tables: Mapping[str, DataFrame], views: Sequence[View] | None = None) -> None:
    """Give a session these tables by their plain names, and the views over them."""
    for name, frame in tables.items():
        frame.toDF(*map(plain_name, frame.columns)).createOrReplaceTempView(plain_name(name))
    for view in read_views() if views is None else views:
        spark.sql(view.statement)


def query_in_spark(spark: SparkSession, judged: JudgedCorpus, query: str) -> pa.Table:
    """The rows of a query on the tables and views of a judged corpus. Raises `PipelineError`."""
    with as_pipeline_error():
        tables = {
            name: read_table(spark, judged.corpus, name) if name in SCHEMAS else read_files(spark, files, schema)
            for name, schema, files in judged.files()
        }
        tables[WHOLE_TRACES] = spark.createDataFrame(judged.whole_traces())
        make_spark_views(spark, tables)
        return spark.sql(sql_of(query)).toArrow()


def make_duckdb_views(connection: Any, tables: Mapping[str, Any]) -> None:
    """Give a connection of DuckDB these tables by their plain names, and the views over them."""
    connection.execute("SET TimeZone = 'UTC'")
    for name, table in tables.items():
        connection.register(f"{plain_name(name)}_files", table)
        columns = ", ".join(f'"{each}" AS "{plain_name(each)}"' for each in table.schema.names)
        connection.execute(f"CREATE VIEW {plain_name(name)} AS SELECT {columns} FROM {plain_name(name)}_files")
    for view in read_views():
        connection.execute(view.statement)


def query_in_duckdb(judged: JudgedCorpus, query: str) -> pa.Table:
    """As `query_in_spark`, in DuckDB."""
    try:
        import duckdb
    except ModuleNotFoundError:
        raise PipelineError("DuckDB is not installed: pip install duckdb, or leave --duckdb out") from None
    with duckdb.connect() as connection:
        tables: dict[str, Any] = {name: arrow_table(schema, files) for name, schema, files in judged.files()}
        try:
            make_duckdb_views(connection, {**tables, WHOLE_TRACES: judged.whole_traces()})
            return connection.sql(sql_of(query)).to_arrow_table()
        except duckdb.Error as error:
            raise PipelineError(f"DuckDB: {error}".splitlines()[0]) from None


def arrow_table(schema: pa.Schema, files: Sequence[SizedFile]) -> Any:
    """The rows of Parquet files, which are read as they are asked for."""
    if not files:
        return schema.empty_table()
    system, _ = open_file_system(files[0].location)
    return ds.dataset([open_file_system(each.location)[1] for each in files], schema=schema, filesystem=system)


MAX_LINES = 1_000
"""How many rows are printed; CSV has all of them."""


def to_lines(rows: pa.Table) -> list[str]:
    """Rows in columns under their names, and how many more there are."""
    shown = rows.slice(0, MAX_LINES).to_pylist()
    cells = [rows.column_names, *([print_cell(row[name]) for name in rows.column_names] for row in shown)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    left_out = rows.num_rows - len(shown)
    return [*lines, *([f"and {left_out:,} more: --csv prints them"] if left_out else [])]


def to_csv(rows: pa.Table) -> str:
    """All rows as CSV."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    write(rows.column_names)
    for row in rows.to_pylist():
        write(print_cell(row[name]) for name in rows.column_names)
    return out.getvalue()


def print_cell(value: object) -> str:
    """A value of a row as text; instants are in UTC."""
    if isinstance(value, datetime):
        return value.isoformat(" ", "milliseconds").removesuffix("+00:00")
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
