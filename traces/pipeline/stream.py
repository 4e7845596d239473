"""Judging of traces as they land in a folder: Structured Streaming, with the state of judges kept by Spark.

Trace files must appear as a whole (rename them into the folder). A part of a recording continues the part before. An
event is judged as soon as all earlier requests of groups in its bucket have their responses, or 4,096 events later. A
checkpoint holds the names of read files and all states, so that a watch that is killed loses and repeats nothing.
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

from fencepost import __version__
from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.jsonl import decode_event, decode_header
from fencepost.traces.files.rotating_writer import recording_part_of
from fencepost.traces.judge.judge import Judge
from fencepost.traces.operations import MAX_LOOKAHEAD, Lookahead, PairedEvent
from fencepost.traces.pipeline.arrow import to_record_batches
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.corpus_log import write_atomically
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.row_reader import BadLine, RowReader
from fencepost.traces.pipeline.shards import LOOKUPS_SHARD, ShardJudge, is_unrelated, owns_no_group
from fencepost.traces.verdict import Violation

DEFAULT_FILES_PER_BATCH = 100
"""Maximum number of files in one micro-batch."""
WATCH_FILE = "watch.json"
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
"""Number of rows in a record batch."""
NEWS_COLUMNS = "trace string, bucket int, path string, kind string, sequence long, `group` string, value string"
NEWS_COLUMN_NAMES = ("trace", "bucket", "path", "kind", "sequence", "group", "value")


@dataclass(frozen=True, slots=True)
class BucketFilter:
    """A predicate: whether a group belongs to `bucket` out of `buckets`."""

    buckets: int
    bucket: int

    def __call__(self, group: str) -> bool:
        return Corpus(Path(), self.buckets).bucket_of(group) == self.bucket


@dataclass(slots=True)
class ShardState:
    """The state of judging one shard of a trace: its judge, the events that wait, and the violations reported."""

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
        """Judge the events of one part, each with its place; skip those that repeat the part before."""
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
        """Whether `moment` is a request whose response may still come.

        In a totally ordered trace a coordinator may respond although the connection is gone.
        """
        if moment.event.kind is not Kind.REQUEST or moment.operation is None:
            return False
        gone = moment.operation.lost and self.judge.header.order is Order.INTERVALS
        return moment.event.sequence in self.ahead.open_operations and not gone

    def end(self) -> None:
        """Judge the waiting events at the end of the trace."""
        while self.waiting:
            self.judge_next()
        self.judge.finish()

    def judge_next(self) -> None:
        """Judge the event that has waited longest."""
        moment = self.waiting.popleft()[1]
        self.judge.on_event(moment.event, moment.operation)

    def new_findings(self) -> Iterator[tuple[str, Violation]]:
        """Yield ("violation", v) for each new violation, and ("withdrawn", v) for each reported one that the judge took
        back, because the response may depend on members that the trace does not show."""
        now = dict.fromkeys(self.judge.violations)
        for violation in now:
            if violation not in self.reported:
                yield "violation", violation
        for violation in self.reported:
            if violation not in now:
                yield "withdrawn", violation
        self.reported = now


def file_rows(path: str, buckets: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a file for each bucket: its header, the events up to the first flaw, bad lines, and its end."""
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
            shared = (LOOKUPS_SHARD,) if is_unrelated(each.kind, each.api) else every
            for bucket in shared if each.group is None else (corpus.bucket_of(each.group),):
                yield row(bucket, each.line, "event", each.text)
            if each.group is not None and each.kind == "response" and each.error in COORDINATOR_NOT_READY:
                yield row(LOOKUPS_SHARD, each.line, "event", each.text)
    if reader.header is not None:
        is_over = not recording_part_of(reader.header)[0] or reader.flawed is not None
        for bucket in every:
            yield row(bucket, 0, "header", reader.header_line)
            if is_over:
                yield row(bucket, reader.lines + 1, "end", b"")


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
        """Nothing to close."""


def advance_shard(
    trace: str,
    bucket: int,
    buckets: int,
    shard: ShardState | None,
    news: Iterable[tuple[int, str, int, str, bytes]],
    found: list[tuple[Any, ...]],
) -> ShardState | None:
    """Judge new rows of a bucket of a trace, in order, and append findings to `found`.

    Returns the new state; None if the trace is over.
    """
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
        for kind, violation in shard.new_findings():
            value = json.dumps(asdict(violation))
            found.append((trace, bucket, path, kind, violation.sequence, violation.group, value))
        shard = None if over else shard
    return shard


def check_same_watch(output: Path, buckets: int) -> None:
    """Raises `PipelineError` if `output` belongs to a watch with other options or of another version: the state of its
    judges is in other buckets, or in a form of its own."""
    mine = {"fencepost_watch": __version__, "buckets": buckets}
    mark = output / WATCH_FILE
    if not mark.exists():
        write_atomically(mark, mine)
        return
    try:
        found = json.loads(mark.read_text(encoding="utf-8"))
        version, known = found["fencepost_watch"], found["buckets"]
    except (ValueError, KeyError, TypeError):
        raise PipelineError(f"{mark} is damaged") from None
    if known != buckets:
        raise PipelineError(f"{output} belongs to a watch with --buckets {known}: give the same, or another folder")
    if version != __version__:
        raise PipelineError(
            f"{output} belongs to a watch of Fencepost {version}, whose state {__version__} cannot read: "
            "give another folder"
        )


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
    """The local path in a file URL of Spark."""
    return unquote(urlparse(path).path)


def read_findings(output: Path, skip: Container[str] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the committed findings, each with the name of its file, except those of files in `skip`."""
    for file in committed_files(output / "found"):
        if file.name not in skip:
            for row in pq.ParquetFile(file).read().to_pylist():
                yield file.name, row


def committed_files(folder: Path) -> list[Path]:
    """The files that Spark's log of the folder names; others belong to a batch that was not finished."""
    names: dict[str, None] = {}
    for log in (folder / "_spark_metadata").glob("[0-9]*"):
        for line in log.read_text(encoding="utf-8").splitlines()[1:]:
            names[local_path(json.loads(line)["path"])] = None
    return sorted(Path(name) for name in names)
