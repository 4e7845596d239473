"""Judging of traces as they come, in a folder or a Kafka topic: Structured Streaming, with the state of judges kept by
Spark.

Trace files must appear as a whole (rename them into the folder). A part of a recording continues the part before. An
event is judged as soon as all earlier requests of groups in its bucket have their responses, or 4,096 events later. A
checkpoint holds what was read and all states, so that a watch that is killed loses and repeats nothing.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, ValueState

from fencepost import __version__
from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.events import CLASSIC, Header
from fencepost.traces.files.jsonl import decode_event
from fencepost.traces.files.rotating_writer import recording_part_of
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.files import claim_folder, make_schema, to_record_batches
from fencepost.traces.pipeline.rows import (
    LOOKUPS_SHARD,
    WHOLE_TRACE,
    BadLine,
    RowReader,
    bucket_of,
    is_unrelated,
)
from fencepost.traces.pipeline.shard_state import (
    BAD,
    END,
    EVENT,
    HEADER,
    MALFORMED,
    NewLine,
    News,
    advance_shard,
    malformed_reason,
)
from fencepost.traces.pipeline.topics import (
    SOURCE_NAME,
    Topic,
    TopicRecord,
    is_header_line,
    register_topics,
    topic_options,
)

DEFAULT_FILES_PER_BATCH = 100
"""Maximum number of files in one micro-batch."""
WATCH_FILE = "watch.json"
TRACE_GLOB = "*.{jsonl,jsonl.gz}"
EVENT_SCHEMA = make_schema("trace string, bucket int32, part int32, path string, line int64, kind string, text binary")
ROWS_PER_BATCH = 5_000
"""Number of rows in a record batch."""
NEWS_COLUMNS = "trace string, bucket int, path string, kind string, sequence long, `group` string, value string"
NEWS_COLUMN_NAMES = ("trace", "bucket", *News._fields)
CHANGED_FILE = "the file changed when the watch had found it: write it elsewhere, and rename it into the folder"
EMPTY_FILE = "the file is empty: a trace begins with a header line"


def file_rows(path: str, buckets: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a file for each bucket: its header, the events up to the first flaw, bad lines, and its end."""
    reader = RowReader(path)

    def row(bucket: int, line: int, kind: str, text: bytes) -> tuple[Any, ...]:
        recording, part = ("", 0) if reader.header is None else recording_part_of(reader.header)
        return (recording or path, bucket, part, path, line, kind, text)

    malformed: tuple[int, bytes] | None = None
    for each in reader.rows():
        if isinstance(each, BadLine):
            yield row(shards_in(reader.header, buckets)[0], each.line, BAD, each.reason.encode())
        elif each.intact:
            if each.kind == "request" and (reason := malformed_reason(decode_event(each.text))):
                malformed = malformed or (each.line, reason.encode())
            every = shards_in(reader.header, buckets)
            shared = every[:1] if is_unrelated(each.kind, each.api) else every
            for bucket in shared if each.group is None else (bucket_of(each.group, buckets),):
                yield row(bucket, each.line, EVENT, each.text)
            if each.group is not None and each.kind == "response" and each.error in COORDINATOR_NOT_READY:
                yield row(LOOKUPS_SHARD, each.line, EVENT, each.text)
    if reader.header is not None:
        is_over = not recording_part_of(reader.header)[0] or reader.flawed is not None
        for bucket in shards_in(reader.header, buckets):
            yield row(bucket, 0, HEADER, reader.header_line)
            if malformed is not None:
                yield row(bucket, malformed[0], MALFORMED, malformed[1])
            if is_over:
                yield row(bucket, reader.lines + 1, END, b"")


def shards_in(header: Header | None, buckets: int) -> tuple[int, ...]:
    """The shards that a trace is judged in; the first one tells what concerns all of it."""
    is_whole = header is not None and header.protocol != CLASSIC
    return (WHOLE_TRACE,) if is_whole else (LOOKUPS_SHARD, *range(buckets))


def record_rows(topic: str, records: Iterable[TopicRecord]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of records. A trace in a topic is judged as a whole: whose response it is shows later."""
    for partition, offset, key, value in records:
        kind = END if value is None else HEADER if is_header_line(value) else EVENT
        where = f"{topic}/{partition}"
        yield (f"{where}/{key}", WHOLE_TRACE, 0, where, offset, kind, value or b"")


class ShardProcessor(StatefulProcessor):
    """The stateful processor that Spark calls with new rows of one bucket of one trace."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of the key."""
        self.state: ValueState = handle.getValueState("watched", "watched binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Judge new rows, yield findings, and store the state."""
        trace, bucket = str(key[0]), int(key[1])
        stored = self.state.get() if self.state.exists() else None
        known = None if stored is None else bytes(stored[0])
        lines = [
            NewLine(part, path, line, kind, bytes(text))
            for frame in rows
            for part, path, line, kind, text in frame[list(NewLine._fields)].itertuples(index=False, name=None)
        ]
        found, after = advance_shard(bucket, self.buckets, known, sorted(lines))
        if after is None:
            self.state.clear()
        else:
            self.state.update((after,))
        news = [(trace, bucket, *each) for each in found]
        yield pd.DataFrame(news, columns=list(NEWS_COLUMN_NAMES)).astype({"sequence": "Int64"})

    def close(self) -> None:
        """Nothing to close."""


def check_same_watch(output: Path, buckets: int, source: str) -> None:
    """Raises `PipelineError` if `output` belongs to a watch with other options: of another folder or topic, or with the
    states of judges in other buckets."""
    mine = {"fencepost_watch": __version__, "buckets": buckets, "source": source}
    known = {**mine, **claim_folder(output / WATCH_FILE, mine)}
    told = {
        "fencepost_watch": f"of Fencepost {known['fencepost_watch']}, whose state {__version__} cannot read: "
        "give another folder",
        "buckets": f"with --buckets {known['buckets']}: give the same, or another folder",
        "source": f"of {known['source']}: give the same, or another folder",
    }
    for key, whose in told.items():
        if known[key] != mine[key]:
            raise PipelineError(f"{output} belongs to a watch {whose}")


def watch_folder(
    spark: SparkSession,
    landing: Path,
    output: Path,
    buckets: int,
    *,
    once: bool,
    files_per_batch: int = DEFAULT_FILES_PER_BATCH,
) -> StreamingQuery:
    """Start a query that judges the traces in `landing`, at most `files_per_batch` files at a time.

    Findings go to `output`/found as Parquet, the checkpoint to `output`/checkpoint. With `once`, the query ends after
    the files that are present.
    """
    files = (
        spark.readStream.format("binaryFile")
        .schema("path string, modificationTime timestamp, length long, content binary")
        .option("pathGlobFilter", TRACE_GLOB)
        .option("recursiveFileLookup", "true")
        .option("maxFilesPerTrigger", str(files_per_batch))
        .load(str(landing))
        .select("path")
    )

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
        for batch in batches:
            for path in batch.column("path").to_pylist():
                yield from file_rows(str(local_path(path)), buckets)

    return start_watch(files, rows, buckets, output, once=once)


def watch_topic(spark: SparkSession, topic: Topic, output: Path, *, once: bool) -> StreamingQuery:
    """Start a query that judges the traces in a topic, from its first record on; with `once`, it ends after those that
    are there. Else as `watch_folder`."""
    register_topics(spark)
    records = spark.readStream.format(SOURCE_NAME).options(**topic_options(topic)).load()

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
        for batch in batches:
            columns = (column.to_pylist() for column in batch.select(list(TopicRecord._fields)))
            yield from record_rows(topic.uri, (TopicRecord(*row) for row in zip(*columns, strict=True)))

    return start_watch(records, rows, 1, output, once=once)


def start_watch(
    source: DataFrame,
    rows: Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[Any, ...]]],
    buckets: int,
    output: Path,
    *,
    once: bool,
) -> StreamingQuery:
    """Start a query that judges the rows that `rows` makes of a stream, in a number of buckets."""
    frame = source.mapInArrow(
        lambda batches: to_record_batches(rows(batches), EVENT_SCHEMA, ROWS_PER_BATCH), from_arrow_schema(EVENT_SCHEMA)
    )
    found = frame.groupBy("trace", "bucket").transformWithStateInPandas(
        ShardProcessor(buckets), NEWS_COLUMNS, outputMode="Append", timeMode="None"
    )
    writer = (
        found.writeStream.format("parquet")
        .outputMode("append")
        .option("checkpointLocation", str(output / "checkpoint"))
    )
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime="1 second")
    return writer.start(str(output / "found"))


class StreamLog:
    """A log of Spark's: a folder with a file for each batch, which is a version and then a line of JSON for each file.

    Every tenth holds all entries before it, and some time later those are deleted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last_batch = -1
        self.known: set[str] = set()

    def new_entries(self) -> list[tuple[Path, dict[str, Any]]]:
        """The files of which nothing was said at the last call, in order, each with all that the log has of it."""
        found = []
        batches = sorted((int(path.name.partition(".")[0]), path) for path in self.folder.glob("[0-9]*"))
        for batch, path in batches:
            if batch <= self.last_batch:
                continue
            try:
                lines = path.read_text(encoding="utf-8").splitlines()[1:]
            except FileNotFoundError:
                continue  # deleted: a later one holds its entries
            entries = {entry["path"]: entry for entry in map(json.loads, lines)}
            found += [(local_path(name), entries[name]) for name in entries if name not in self.known]
            self.known.update(entries)
        self.last_batch = max((batch for batch, _ in batches), default=-1)
        return found


def local_path(path: str) -> Path:
    """The local path in a file URL of Spark."""
    return Path(unquote(urlparse(path).path))


def input_log(output: Path) -> StreamLog:
    """The log of the files that the watch with this output has read."""
    return StreamLog(output / "checkpoint" / "sources" / "0")


def findings_log(output: Path) -> StreamLog:
    """The log of the files with findings in this output; files without an entry belong to a batch that did not end."""
    return StreamLog(output / "found" / "_spark_metadata")


def new_findings(log: StreamLog) -> Iterator[dict[str, Any]]:
    """Yield the findings that were committed since the log was read."""
    for path, _ in log.new_entries():
        yield from pq.ParquetFile(path).read().to_pylist()


def new_unread_files(log: StreamLog) -> Iterator[tuple[Path, str]]:
    """Yield the files that Spark has found since the log was read, and has not read as they are now, with the reason:
    it passes over an empty file for good, and reads none again."""
    for path, entry in log.new_entries():
        try:
            status = path.stat()
        except OSError:
            continue  # it is gone; whether it was read, nothing shows
        if not status.st_size:
            yield path, EMPTY_FILE
        elif status.st_mtime_ns // 1_000_000 > entry["timestamp"]:
            yield path, CHANGED_FILE
