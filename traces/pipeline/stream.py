"""Judging while traces land in a folder: Structured Streaming, with the judge's state of groups kept by Spark.

A trace file is there as a whole (rename it into the folder). The parts of one recording go on where the part before
ended. An event is judged as soon as every request before it, of groups in its bucket, has its answer; or 4,096 events
later. A checkpoint holds what was read and all states, so that a watch that is killed loses and repeats nothing.
"""

import json
import pickle
from collections import deque
from collections.abc import Container, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, ValueState

from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.jsonl import decode_event, decode_header
from fencepost.traces.files.rotating_writer import recording_part_of
from fencepost.traces.judge.classic.failover import NOT_READY_ERRORS
from fencepost.traces.judge.judge import Judge
from fencepost.traces.operations import MAX_LOOKAHEAD, Lookahead, PairedEvent
from fencepost.traces.pipeline.arrow import to_record_batches
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.row_reader import BadLine, RowReader
from fencepost.traces.pipeline.shards import LOOKUPS_SHARD, ShardJudge, owns_no_group
from fencepost.traces.verdict import Violation

DEFAULT_FILES_PER_BATCH = 100
"""How many files are judged before what was found in them is told."""
TRACE_GLOB = "*.{jsonl,jsonl.gz}"
EVENT_COLUMNS = "trace string, bucket int, path string, part int, line long, kind string, text binary"
EVENT_SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("bucket", pa.int32()),
        ("path", pa.string()),
        ("part", pa.int32()),
        ("line", pa.int64()),
        ("kind", pa.string()),
        ("text", pa.binary()),
    ]
)
ROWS_PER_BATCH = 5_000
"""How many rows Spark is handed at once."""
NEWS_COLUMNS = "trace string, bucket int, path string, kind string, sequence long, `group` string, value string"
NEWS_COLUMN_NAMES = ("trace", "bucket", "path", "kind", "sequence", "group", "value")


@dataclass(frozen=True, slots=True)
class BucketFilter:
    """Which groups belong to a bucket."""

    buckets: int
    bucket: int

    def __call__(self, group: str) -> bool:
        return Corpus(Path(), self.buckets).bucket_of(group) == self.bucket


@dataclass(slots=True)
class ShardState:
    """The groups of one bucket of a trace, as far as it has landed."""

    judge: Judge
    part: int = 0
    last_sequence: int = -1
    ahead: Lookahead = field(default_factory=lambda: Lookahead(()))
    waiting: deque[tuple[int, PairedEvent]] = field(default_factory=deque)
    reported: dict[Violation, None] = field(default_factory=dict)

    @classmethod
    def begin(cls, header: Header, bucket: int, buckets: int) -> "ShardState":
        """A trace of which nothing was seen yet."""
        owns_group = owns_no_group if bucket == LOOKUPS_SHARD else BucketFilter(buckets, bucket)
        return cls(ShardJudge(header, owns_group).judge)

    def add_events(self, part: int, events: Iterable[tuple[int, Event]]) -> None:
        """Take in the events of one part, each with its place. What a part repeats of the one before is left out."""
        goes_on = part == self.part + 1 and self.last_sequence >= 0
        self.part = part
        for place, event in events:
            if goes_on and (event.sequence <= self.last_sequence or event.api == "continued"):
                continue
            while self.waiting and place > self.waiting[0][0] + MAX_LOOKAHEAD:
                self.judge_next()
            self.waiting.append((place, self.ahead.pair_event(event)))
            self.last_sequence = event.sequence
        while self.waiting and not self.is_awaiting_response(self.waiting[0][1]):
            self.judge_next()

    def is_awaiting_response(self, moment: PairedEvent) -> bool:
        """It is a request whose answer may still come. A coordinator answers over a connection that is gone, too."""
        if moment.event.kind is not Kind.REQUEST or moment.operation is None:
            return False
        gone = moment.operation.lost and self.judge.header.order is Order.INTERVALS
        return moment.event.sequence in self.ahead.open_operations and not gone

    def end(self) -> None:
        """Nothing more will come."""
        while self.waiting:
            self.judge_next()
        self.judge.finish()

    def judge_next(self) -> None:
        """Judge what has waited longest."""
        moment = self.waiting.popleft()[1]
        self.judge.on_event(moment.event, moment.operation)

    def new_findings(self) -> Iterator[tuple[str, Violation]]:
        """Faults found since last time; and those that were told and are withdrawn, as less is known than it seemed."""
        now = dict.fromkeys(self.judge.violations)
        for fault in now:
            if fault not in self.reported:
                yield "fault", fault
        for fault in self.reported:
            if fault not in now:
                yield "withdrawn", fault
        self.reported = now


def file_rows(path: str, buckets: int) -> Iterator[tuple[Any, ...]]:
    """A file as rows for each bucket: its header, its events up to the first flaw, what is bad, and its end."""
    reader = RowReader(path)
    corpus = Corpus(Path(), buckets)
    every = (LOOKUPS_SHARD, *range(buckets))

    def row(bucket: int, line: int, kind: str, text: bytes) -> tuple[Any, ...]:
        recording, part = ("", 0) if reader.header is None else recording_part_of(reader.header)
        return (recording or path, bucket, path, part, line, kind, text)

    for each in reader.rows():
        if isinstance(each, BadLine):
            yield row(LOOKUPS_SHARD, each.line, "bad", each.reason.encode())
        elif each.intact:
            for bucket in every if each.group is None else (corpus.bucket_of(each.group),):
                yield row(bucket, each.line, "event", each.text)
            if each.group is not None and each.kind == "response" and each.error in NOT_READY_ERRORS:
                yield row(LOOKUPS_SHARD, each.line, "event", each.text)
    if reader.header is not None:
        is_over = not recording_part_of(reader.header)[0] or reader.flawed is not None
        for bucket in every:
            yield row(bucket, 0, "header", reader.header_line)
            if is_over:
                yield row(bucket, reader.lines + 1, "end", b"")


class ShardProcessor(StatefulProcessor):
    """What Spark calls with the news of one bucket of one trace."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Ask for the state."""
        self.state: ValueState = handle.getValueState("watched", "watched binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Go on with a trace."""
        trace, bucket = str(key[0]), int(key[1])
        known = self.state.get() if self.state.exists() else None
        watched: ShardState | None = pickle.loads(known[0]) if known is not None else None
        news = [
            row for frame in rows for row in frame[["part", "path", "line", "kind", "text"]].itertuples(index=False)
        ]
        found: list[tuple[Any, ...]] = []
        watched = advance_shard(trace, bucket, self.buckets, watched, sorted(news), found)
        if watched is None:
            self.state.clear()
        else:
            self.state.update((pickle.dumps(watched),))
        yield pd.DataFrame(found, columns=list(NEWS_COLUMN_NAMES)).astype({"sequence": "Int64"})

    def close(self) -> None:
        """Nothing is open."""


def advance_shard(
    trace: str,
    bucket: int,
    buckets: int,
    shard: ShardState | None,
    news: Iterable[tuple[int, str, int, str, bytes]],
    found: list[tuple[Any, ...]],
) -> ShardState | None:
    """Take in news of a bucket of a trace, in order; says what is known then, None if the trace is over."""
    parts: dict[tuple[int, str], list[tuple[int, str, bytes]]] = {}
    for part, path, line, kind, text in news:
        parts.setdefault((part, path), []).append((line, kind, bytes(text)))
    for (part, path), rows in parts.items():
        for line, _, text in (row for row in rows if row[1] == "bad"):
            reason = {"line": line, "reason": text.decode()}
            found.append((trace, bucket, path, "quarantine", None, None, json.dumps(reason)))
        headers = [text for _, kind, text in rows if kind == "header"]
        if not headers:
            continue
        if shard is None:
            shard = ShardState.begin(decode_header(headers[0]), bucket, buckets)
        events = ((line, decode_event(text)) for line, kind, text in rows if kind == "event")
        over = any(kind == "end" for _, kind, _ in rows)
        shard.add_events(part, events)
        if over:
            shard.end()
        for kind, fault in shard.new_findings():
            found.append((trace, bucket, path, kind, fault.sequence, fault.group, json.dumps(asdict(fault))))
        shard = None if over else shard
    return shard


def watch_folder(
    spark: SparkSession,
    landing: Path,
    output: Path,
    buckets: int,
    *,
    once: bool,
    files_per_batch: int = DEFAULT_FILES_PER_BATCH,
) -> StreamingQuery:
    """Begin to watch a folder. What is found goes to `output`/found as Parquet; the checkpoint is beside it. If much
    has landed, so many files are taken `files_per_batch`."""
    files = (
        spark.readStream.format("binaryFile")
        .schema("path string, modificationTime timestamp, length long, content binary")
        .option("pathGlobFilter", TRACE_GLOB)
        .option("recursiveFileLookup", "true")
        .option("maxFilesPerTrigger", str(files_per_batch))
        .load(str(landing))
        .select("path")
    )

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column("path").to_pylist():
                yield from to_record_batches(file_rows(local_path(path), buckets), EVENT_SCHEMA, ROWS_PER_BATCH)

    frame: DataFrame = files.mapInArrow(rows, EVENT_COLUMNS)
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


def local_path(path: str) -> str:
    """The file behind Spark's name for it."""
    return unquote(urlparse(path).path)


def read_findings(output: Path, skip: Container[str] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """What was found so far, as far as it was committed, but for some files: the file, and the row."""
    for file in committed_files(output / "found"):
        if file.name not in skip:
            for row in pq.ParquetFile(file).read().to_pylist():
                yield file.name, row


def committed_files(folder: Path) -> list[Path]:
    """The files that Spark's log of the folder names; others are of a batch that was not finished."""
    names: dict[str, None] = {}
    for log in (folder / "_spark_metadata").glob("[0-9]*"):
        for line in log.read_text(encoding="utf-8").splitlines()[1:]:
            names[local_path(json.loads(line)["path"])] = None
    return sorted(Path(name) for name in names)
