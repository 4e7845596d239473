"""The judge over a corpus: each shard is a stream of lines in order, in memory for a row group, on any worker.

The driver plans which shards are one task, and where in the table of events their rows are. A worker reads them there.
The findings of a shard come from a `ShardAnalysis`, which is handed in.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import merge
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.client_judge.judge import is_recording
from fencepost.traces.events import MAX_LOOKAHEAD, Event, Header, Kind, Lookahead, PairedEvent, collect_rarely
from fencepost.traces.files.jsonl import decode_header
from fencepost.traces.files.trace_files import EventDecoder
from fencepost.traces.history.builder import MemberSpan, TakeStory, TimelineRebalance, TraceObserver
from fencepost.traces.history.recorder import NoHistory, make_recorder
from fencepost.traces.judge.judge import Judge, UnknownProtocol
from fencepost.traces.pipeline import story
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.files import Location, make_schema
from fencepost.traces.pipeline.parallel import read_files
from fencepost.traces.pipeline.rows import (
    LOOKUPS_SHARD,
    REPEATED_LINE,
    SHARED_BUCKET,
    UNRELATED_APIS,
    UNRELATED_BUCKET,
    UNRELATED_KINDS,
    WHOLE_TRACE,
    bucket_of,
)
from fencepost.traces.pipeline.shard_plan import Shard, ShardRows
from fencepost.traces.pipeline.tables import QUARANTINE, SCHEMAS, TRACES, TableWriter
from fencepost.traces.pipeline.trace_rows import Run, RunReader

UNREADABLE = "unreadable"
"""The kind of finding that says which file could not be read, or not to its end, and why."""
WHOLE_COLUMNS = ("line", "intact", "bucket", "text")
"""What the judge of a whole trace reads, of the table of events."""
SHARD_COLUMNS = (*WHOLE_COLUMNS, "kind", "api", "error")
NOT_READY = pa.array(sorted(map(int, COORDINATOR_NOT_READY)), pa.int32())
MESSAGES = pa.array(["request", "response"])
APIS = pa.array(sorted(UNRELATED_APIS))
KINDS = pa.array(sorted(UNRELATED_KINDS))
REPORT_FOLDER = "report"
"""The folder with the findings that a report is made of."""
REPORT_SCHEMA = make_schema("trace string, bucket int32, sequence int64, time int64, group string, value string")
ShardLine: TypeAlias = tuple[int, bytes, bool]
"""A line of a shard: its number in the trace, the line, and whether it belongs to no other shard."""


class ShardJudge:
    """The judge of one shard, and the story of its groups while they are judged. Raises `UnknownProtocol`.

    A shard is a trace, or the groups of some buckets of a long trace with the events about all groups. Groups are
    independent of each other, so the verdict on a group does not depend on the other groups in its shard. Lookups
    concern all groups, and have a shard of their own.

    `owns_group` says which groups are in the shard; None is all of them. What concerns no single group is in the shard
    of the whole trace, or in that of lookups.
    """

    def __init__(self, header: Header, owns_group: Callable[[str], bool] | None = None) -> None:
        self.story: list[tuple[str, TimelineRebalance | MemberSpan]] = []
        """What was told since somebody took it."""
        self.recorder = None if owns_group is owns_no_group else recorder_of(header, self.add_story)
        self.owns_group = owns_group
        self.own_events = 0
        """The number of events that were read and belong to no other shard."""
        self.judge = Judge(
            header,
            only=owns_group,
            is_shared_judged=owns_group in (None, owns_no_group),
            on_step=self.recorder.on_step if self.recorder is not None else None,
        )

    def add_story(self, group: str, told: TimelineRebalance | MemberSpan) -> None:
        """Keep a rebalance or a membership of a group."""
        self.story.append((group, told))

    def take_story(self) -> list[tuple[str, TimelineRebalance | MemberSpan]]:
        """The rebalances and memberships that were told since the last call, with their groups."""
        told = list(self.story)
        self.story.clear()
        return told


def recorder_of(header: Header, take: TakeStory) -> TraceObserver | None:
    """What tells the story of a trace to `take`; None for a protocol that has none."""
    with suppress(NoHistory):
        return make_recorder("", header, [], take)
    return None


def owns_no_group(group: str) -> bool:
    """No group is in the shard of lookups."""
    return False


def pair_shard_operations(events: Iterable[tuple[int, Event]]) -> Iterator[PairedEvent]:
    """As `Lookahead.pair_operations`, for a part of the events of a trace, each with its place in the whole trace.

    The lookahead is counted in places of the whole trace, so that the verdict is the same.
    """
    ahead = Lookahead(())
    waiting: deque[tuple[int, PairedEvent]] = deque()
    for place, event in events:
        while waiting and place > waiting[0][0] + MAX_LOOKAHEAD:
            yield waiting.popleft()[1]
        waiting.append((place, ahead.pair_event(event)))
    for _, moment in waiting:
        yield moment


class FoundInShard(NamedTuple):
    """A finding in a shard. `value` is JSON; its keys depend on `kind` (CORPUS.md lists the kinds)."""

    trace: str
    bucket: int
    kind: str
    sequence: int | None
    time: int | None
    group: str | None
    value: str


Found: TypeAlias = FoundInShard | story.TableRow
ShardAnalysis: TypeAlias = Callable[[Shard, Header, ShardJudge, Iterator[PairedEvent]], Iterator[Found]]
"""Has the events of a shard judged, and says what came of it."""


def place_of_found(table: str) -> tuple[str, pa.Schema]:
    """Where the files are of a table of results, or of a kind of findings that a report is made of; and its columns."""
    return (table, story.SCHEMAS[table]) if table in story.SCHEMAS else (f"{REPORT_FOLDER}/kind={table}", REPORT_SCHEMA)


def make_judge(
    corpus: Corpus, analyze: ShardAnalysis, folder: Location, job: str
) -> Callable[[Sequence[ShardRows]], Mapping[str, int]]:
    """The function that writes what is found in the shards of a part into new files below `folder`, whose names begin
    with `job`; it returns these with their sizes in bytes."""
    buckets = corpus.buckets

    def judge_part(part: Sequence[ShardRows]) -> Mapping[str, int]:
        with collect_rarely(), TableWriter(folder, job, place_of_found) as tables:
            for shard, lines in read_shards(part):
                for row in judge_shard(shard, buckets, lines, analyze):
                    if isinstance(row, story.TableRow):
                        tables.add_row(*row)
                    else:
                        tables.add_row(row.kind, (row.trace, row.bucket, *row[3:]))
        return tables.files

    return judge_part


def read_shards(part: Iterable[ShardRows]) -> Iterator[tuple[Shard, Iterator[ShardLine]]]:
    """Yield shards with their lines, the first of which is the header's. They are read in this order."""
    headers, wholes, shards = RunReader(("header",)), RunReader(WHOLE_COLUMNS), RunReader(SHARD_COLUMNS)
    for each in part:
        (row,) = headers.batches(Run(each.header.file, each.header.row, 1, 0))
        header, shard = row["header"][0].as_py(), each.shard
        if shard.bucket == WHOLE_TRACE and is_recording(decode_header(header)):
            shard = replace(shard, unread=0)  # members are judged by what they fetch, too
        reader = wholes if shard.bucket == WHOLE_TRACE else shards
        yield shard, chain([(1, header, False)], event_lines(reader, each.files, shard))


def event_lines(
    reader: RunReader, files: Iterable[tuple[Sequence[Run], int, int]], shard: Shard
) -> Iterator[ShardLine]:
    """Yield the lines of the events of a shard, in order."""
    for runs, begins, before in files:
        readers = [reader] if len(runs) < 2 else [RunReader(reader.columns) for _ in runs]
        lines = (run_lines(each, run, shard, begins, before) for each, run in zip(readers, runs, strict=False))
        yield from merge(*lines, key=itemgetter(0))


def run_lines(reader: RunReader, run: Run, shard: Shard, begins: int, before: int) -> Iterator[ShardLine]:
    """Yield the lines of a run that are of a shard, behind `before` others, if they come after line `begins`."""
    for batch in reader.batches(run):
        mine = batch.filter(pc.and_(pc.and_(batch["intact"], pc.greater(batch["line"], begins)), is_in(batch, shard)))
        numbers = pc.add(mine["line"], before - begins)
        yield from zip(numbers.to_pylist(), mine["text"].to_pylist(), is_own(mine, shard).to_pylist(), strict=True)


def judge_shard(shard: Shard, buckets: int, lines: Iterable[ShardLine], analyze: ShardAnalysis) -> Iterator[Found]:
    """Yield the findings of one shard; `lines` are the header's and those of its events, in order."""
    stream = iter(lines)
    header = decode_header(next(stream)[1])
    try:
        judge = make_shard_judge(header, shard.buckets, buckets)
    except UnknownProtocol as error:
        yield FoundInShard(
            shard.trace, shard.bucket, UNREADABLE, None, None, None, unreadable_value(shard, 1, str(error))
        )
        return
    judge.own_events = shard.unread
    decoder = EventDecoder()

    def events() -> Iterator[tuple[int, Event]]:
        for number, text, is_own in stream:
            judge.own_events += is_own
            yield number, decoder.decode(text)

    yield from analyze(shard, header, judge, pair_shard_operations(events()))


@dataclass(frozen=True, slots=True)
class BucketFilter:
    """A predicate: whether a group belongs to some `chosen` buckets, out of `buckets`."""

    buckets: int
    chosen: tuple[int, ...]

    def __call__(self, group: str) -> bool:
        return bucket_of(group, self.buckets) in self.chosen


def make_shard_judge(header: Header, chosen: tuple[int, ...], buckets: int) -> ShardJudge:
    """The judge of the shard with these buckets, of so many. Raises `UnknownProtocol`."""
    if WHOLE_TRACE in chosen:
        return ShardJudge(header)
    return ShardJudge(header, owns_no_group if LOOKUPS_SHARD in chosen else BucketFilter(buckets, chosen))


def unreadable_value(shard: Shard, line: int, reason: str, rank: int = 0) -> str:
    """The value of a finding that a trace cannot be judged: a line of it, the reason, and its place among others."""
    told = {"line": line, "reason": reason, "files": shard.files, "malformed": True, "rank": rank}
    return json.dumps(told)


def read_table(spark: SparkSession, corpus: Corpus, table: str, columns: Sequence[str] | None = None) -> DataFrame:
    """A table of a corpus, with all its columns or some of them."""
    schema = pa.schema([each for each in SCHEMAS[table] if columns is None or each.name in columns])
    files = corpus.sized_files(table)
    if not files:
        return spark.createDataFrame([], from_arrow_schema(schema))
    if not isinstance(corpus.folder, Path):
        return read_files(spark, files, schema)
    return spark.read.schema(from_arrow_schema(schema)).parquet(*(each.location for each in files))


def unreadable_files(spark: SparkSession, corpus: Corpus) -> DataFrame:
    """A finding for each file that could not be read, or not to its end, with the first reason."""
    flaws = read_table(spark, corpus, QUARANTINE).where(F.col("reason") != REPEATED_LINE)
    first = flaws.groupBy("trace").agg(F.min("line").alias("line"), F.min_by("reason", "line").alias("reason"))
    known = read_table(spark, corpus, TRACES).select("trace", F.lit(0).alias("files"))
    files = F.coalesce("files", F.lit(1)).alias("files")  # a file without a header is in no trace
    value = F.to_json(F.struct("line", "reason", files, F.lit(False).alias("malformed")))
    return first.join(known, "trace", "left").select(
        "trace",
        F.lit(WHOLE_TRACE).alias("bucket"),
        F.lit(UNREADABLE).alias("kind"),
        F.lit(None).cast("long").alias("sequence"),
        F.lit(None).cast("long").alias("time"),
        F.lit(None).cast("string").alias("group"),
        value.alias("value"),
    )


def is_in(batch: pa.RecordBatch, shard: Shard) -> pa.Array:
    """Whether each of these events is one of a shard."""
    bucket = batch["bucket"]
    if shard.bucket == WHOLE_TRACE:
        return pc.or_(pc.not_equal(bucket, UNRELATED_BUCKET), shard.unread == 0)
    is_mine, is_shared = is_own(batch, shard), pc.equal(bucket, SHARED_BUCKET)
    if shard.bucket == LOOKUPS_SHARD:
        is_told = pc.is_in(batch["error"], NOT_READY)
        return pc.or_(is_mine, pc.and_(pc.equal(batch["kind"], Kind.RESPONSE), is_told))
    messages = pc.and_(pc.is_in(batch["kind"], MESSAGES), pc.is_in(batch["api"], APIS))
    is_unrelated = pc.or_(pc.is_in(batch["kind"], KINDS), messages)
    return pc.or_(is_mine, pc.and_(is_shared, pc.invert(is_unrelated)))


def is_own(batch: pa.RecordBatch, shard: Shard) -> pa.Array:
    """Whether each of these events of a shard is in no other."""
    if shard.bucket == WHOLE_TRACE:
        return pa.repeat(True, batch.num_rows)
    return pc.is_in(batch["bucket"], pa.array(shard.buckets, pa.int32()))
