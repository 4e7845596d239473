"""Judging of traces as they come, in a folder or a Kafka topic: Structured Streaming, with the state of judges kept by
Spark.

Trace files must appear as a whole (rename them into the folder). A part of a recording continues the part before. An
event is judged as soon as all earlier requests of groups in its bucket have their responses, or 4,096 events later. A
checkpoint holds what was read and all states, so that a watch that is killed loses and repeats nothing.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, ValueState

from fencepost import __version__
from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.events import CLASSIC, Header
from fencepost.traces.files.jsonl import decode_event
from fencepost.traces.files.rotating_writer import recording_part_of
from fencepost.traces.pipeline.arrow import to_record_batches
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.corpus_log import write_atomically
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.row_reader import BadLine, RowReader
from fencepost.traces.pipeline.shard_state import (
    BAD,
    END,
    EVENT,
    HEADER,
    MALFORMED,
    UNJUDGED,
    NewLine,
    News,
    ShardAdvance,
    StoredState,
    decode_state,
    encode_state,
    malformed_reason,
    store_state,
)
from fencepost.traces.pipeline.shards import LOOKUPS_SHARD, WHOLE_TRACE, is_unrelated
from fencepost.traces.pipeline.stream_log import local_path
from fencepost.traces.pipeline.topic_source import SOURCE_NAME, register_topics, topic_options
from fencepost.traces.pipeline.topics import OffsetRange, Topic, TopicRecord, is_header_line, read_records

DEFAULT_FILES_PER_BATCH = 100
"""Maximum number of files in one micro-batch."""
WATCH_FORMAT = 2
WATCH_FILE = "watch.json"
TRACE_GLOB = "*.{jsonl,jsonl.gz}"
EVENT_COLUMNS = "trace string, bucket int, part int, path string, line long, kind string, text binary"
EVENT_SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("bucket", pa.int32()),
        ("part", pa.int32()),
        ("path", pa.string()),
        ("line", pa.int64()),
        ("kind", pa.string()),
        ("text", pa.binary()),
    ]
)
ROWS_PER_BATCH = 5_000
"""Number of rows in a record batch."""
NEWS_COLUMNS = "trace string, bucket int, path string, kind string, sequence long, `group` string, value string"
NEWS_COLUMN_NAMES = ("trace", "bucket", *News._fields)


def file_rows(path: str, buckets: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a file for each bucket: its header, the events up to the first flaw, bad lines, and its end."""
    reader = RowReader(path)
    corpus = Corpus(Path(), buckets)

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
            for bucket in shared if each.group is None else (corpus.bucket_of(each.group),):
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


@dataclass(frozen=True, slots=True)
class LineSource:
    """Where a watch reads: a folder, or a topic. It reads lines again if a state has to be made anew."""

    buckets: int
    topic: Topic | None = None

    def read_again(self, trace: str, bucket: int, stored: StoredState) -> Iterator[NewLine]:
        """Yield the lines that a state was made from. Raises `PipelineError` and `OSError`."""
        if self.topic is None:
            for path, _ in stored.places:
                with open(path, "rb"):
                    pass  # a reader would say that it is gone in a row
                rows = sorted(row[2:] for row in file_rows(path, self.buckets) if row[1] == bucket)
                yield from (NewLine(*row) for row in rows)
            return
        for where, first in stored.places:
            partition = int(where.rpartition("/")[2])
            records = read_records(self.topic, OffsetRange(partition, first, stored.last + 1))
            yield from (NewLine(*row[2:]) for row in record_rows(self.topic.uri, records) if row[0] == trace)


class ShardProcessor(StatefulProcessor):
    """The stateful processor that Spark calls with new rows of one bucket of one trace."""

    def __init__(self, source: LineSource) -> None:
        self.source = source

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
        found, after = advance_shard(trace, bucket, self.source, known, sorted(lines))
        if after is None:
            self.state.clear()
        else:
            self.state.update((after,))
        news = [(trace, bucket, *each) for each in found]
        yield pd.DataFrame(news, columns=list(NEWS_COLUMN_NAMES)).astype({"sequence": "Int64"})

    def close(self) -> None:
        """Nothing to close."""


def advance_shard(
    trace: str, bucket: int, source: LineSource, known: bytes | None, lines: Iterable[NewLine]
) -> tuple[list[News], bytes | None]:
    """What is found in new lines of a bucket of a trace, and the state after them; None if the trace is over."""
    advance = ShardAdvance(bucket, source.buckets)
    if known is not None:
        restore_shard(trace, source, decode_state(known), advance)
    advance.take_lines(lines)
    if advance.state is not None:
        return advance.found, encode_state(store_state(advance.state, advance.last))
    return advance.found, encode_state(StoredState(is_lost=True)) if advance.is_lost else None


def restore_shard(trace: str, source: LineSource, stored: StoredState, advance: ShardAdvance) -> None:
    """Go on from a stored state: as it is, or, if another version wrote it, by judging its lines again."""
    advance.is_lost = stored.is_lost
    if stored.is_lost:
        return
    advance.state = stored.restore()
    if advance.state is not None:
        return
    again = ShardAdvance(advance.bucket, advance.buckets)
    try:
        again.take_lines(source.read_again(trace, advance.bucket, stored))
        reason = "they have no header now"
    except (OSError, PipelineError) as error:
        reason = str(error)
    if again.state is not None:
        again.state.reported = dict(stored.reported)
        advance.state = again.state
        return
    advance.is_lost = True
    where = stored.places[-1][0]
    told = {"reason": f"its lines cannot be judged again by Fencepost {__version__}: {reason}"}
    advance.found.append(News(where, UNJUDGED, None, None, json.dumps(told)))


def check_same_watch(output: Path, buckets: int, source: str) -> None:
    """Raises `PipelineError` if `output` belongs to a watch with other options: of another folder or topic, or with the
    states of judges in other buckets."""
    mine = {"fencepost_watch": WATCH_FORMAT, "buckets": buckets, "source": source}
    mark = output / WATCH_FILE
    if not mark.exists():
        write_atomically(mark, mine)
        return
    try:
        found = json.loads(mark.read_text(encoding="utf-8"))
        version = found["fencepost_watch"]
        known = {name: found.get(name) for name in ("buckets", "source")}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PipelineError(f"{mark} is damaged") from None
    if version != WATCH_FORMAT:
        raise PipelineError(
            f"{output} belongs to a watch of Fencepost {version}, whose state {__version__} cannot read: "
            "give another folder"
        )
    if known["buckets"] != buckets:
        raise PipelineError(
            f"{output} belongs to a watch with --buckets {known['buckets']}: give the same, or another folder"
        )
    if known["source"] != source:
        raise PipelineError(f"{output} belongs to a watch of {known['source']}: give the same, or another folder")


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

    return start_watch(files, rows, LineSource(buckets), output, once=once)


def watch_topic(spark: SparkSession, topic: Topic, output: Path, *, once: bool) -> StreamingQuery:
    """Start a query that judges the traces in a topic, from its first record on; with `once`, it ends after those that
    are there. Else as `watch_folder`."""
    register_topics(spark)
    records = spark.readStream.format(SOURCE_NAME).options(**topic_options(topic)).load()

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
        for batch in batches:
            columns = (column.to_pylist() for column in batch.select(list(TopicRecord._fields)))
            yield from record_rows(topic.uri, (TopicRecord(*row) for row in zip(*columns, strict=True)))

    return start_watch(records, rows, LineSource(1, topic), output, once=once)


def start_watch(
    source: DataFrame,
    rows: Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[Any, ...]]],
    lines: LineSource,
    output: Path,
    *,
    once: bool,
) -> StreamingQuery:
    """Start a query that judges the rows that `rows` makes of a stream."""

    def row_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from to_record_batches(rows(batches), EVENT_SCHEMA, ROWS_PER_BATCH)

    frame = source.mapInArrow(row_batches, EVENT_COLUMNS)
    found = frame.groupBy("trace", "bucket").transformWithStateInPandas(
        ShardProcessor(lines), NEWS_COLUMNS, outputMode="Append", timeMode="None"
    )
    writer = (
        found.writeStream.format("parquet")
        .outputMode("append")
        .option("checkpointLocation", str(output / "checkpoint"))
    )
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime="1 second")
    return writer.start(str(output / "found"))
