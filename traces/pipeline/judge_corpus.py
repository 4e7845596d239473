"""The judge over a corpus: each shard is a stream of lines in order, in memory for one event, on any worker.

Spark sorts the lines of a part by shard and line, on disk if need be, and hands them over in batches. The findings of a
shard come from a `ShardAnalysis`, which is handed in.
"""

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, count, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.events import Event, Header
from fencepost.traces.files.event_decoder import EventDecoder
from fencepost.traces.files.jsonl import decode_header
from fencepost.traces.operations import PairedEvent
from fencepost.traces.pipeline.arrow import to_record_batches
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.file_systems import join_location, open_parquet
from fencepost.traces.pipeline.frames import ROWS_PER_BATCH, MakeBatches, SizedFile, read_files
from fencepost.traces.pipeline.parallel import split_evenly
from fencepost.traces.pipeline.recordings import (
    RecordingFiles,
    TraceFile,
    group_recordings,
    line_offsets,
)
from fencepost.traces.pipeline.row_reader import REPEATED_LINE, SHARED_BUCKET
from fencepost.traces.pipeline.schema import EVENTS, QUARANTINE, SCHEMAS, TRACES, table_of
from fencepost.traces.pipeline.shards import (
    LOOKUPS_SHARD,
    UNRELATED_APIS,
    UNRELATED_BUCKET,
    UNRELATED_KINDS,
    WHOLE_TRACE,
    ShardJudge,
    owns_no_group,
    pair_shard_operations,
)

UNREADABLE = "unreadable"
"""The kind of finding that says which file could not be read, or not to its end, and why."""
DEFAULT_SPLIT_EVENTS = 50_000
"""A trace with more events is split into shards by bucket."""
EVENTS_PER_PART = 250_000
"""Target number of events that are sorted and judged in one task."""
FILE_COLUMNS = (
    *("trace", "events", "lines", "flawed", "marked"),
    *("recording", "part", "continued", "buckets", "sizes"),
)
"""What the plan is made from, of the table of traces."""
LINE_COLUMNS = ("trace", "line", "kind", "api", "error", "bucket", "intact", "text")
"""What the judge reads, of the table of events."""
FILES_AT_ONCE = 16
"""How many files are read at once."""
WHERE_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("place", pa.int32()),
        ("shard", pa.int32()),
        ("begins", pa.int64()),
        ("before", pa.int64()),
        ("part", pa.int32()),
    ]
)
"""Where the lines of a file belong: in which shards, after which line, behind how many lines of other files."""
SHARD_SCHEMA = pa.schema([("trace", pa.string()), ("shard", pa.int32()), ("told", pa.binary()), ("part", pa.int32())])
SORTED_COLUMNS = "shard int, line long, text binary, own boolean, told binary"
FINDINGS_PER_BATCH = 2_000
"""Number of findings in a record batch."""


class Finding(NamedTuple):
    """A finding in a shard. `value` is JSON; its keys depend on `kind` (CORPUS.md lists the kinds)."""

    trace: str
    bucket: int
    kind: str
    sequence: int | None
    time: int | None
    group: str | None
    value: str


FINDING_SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("bucket", pa.int32()),
        ("kind", pa.string()),
        ("sequence", pa.int64()),
        ("time", pa.int64()),
        ("group", pa.string()),
        ("value", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Shard:
    """A unit of work: a trace, and the bucket of its groups, or `WHOLE_TRACE`, or `LOOKUPS_SHARD`.

    `size` is its number of events, without those that other shards have too. `files` is the number of the trace's
    files, and `unread` that of events which no shard has; only one shard of a trace counts them.
    """

    trace: str
    bucket: int
    size: int
    files: int
    unread: int = 0


class ShardLine(NamedTuple):
    """A line of a shard: its number in the trace, and whether it belongs to no other shard."""

    number: int
    text: bytes
    is_own: bool


Parts: TypeAlias = Sequence[Sequence[Shard]]
"""The shards of each task."""
ShardAnalysis: TypeAlias = Callable[[Shard, Header, ShardJudge, Iterator[PairedEvent]], Iterator[Finding]]
"""Has the events of a unit judged, and says what came of it."""


def corpus_lines(spark: SparkSession, corpus: Corpus, split: int = DEFAULT_SPLIT_EVENTS) -> DataFrame:
    """The lines of all shards of a corpus, as `sorted_lines` has them."""
    recordings = group_recordings(corpus_files(corpus))
    return sorted_lines(spark, corpus, recordings, [each for whole in recordings for each in shards_of(whole, split)])


def make_line_judge(corpus: Corpus, analyze: ShardAnalysis) -> MakeBatches:
    """The function that makes findings, in the columns of `FINDING_SCHEMA`, of the lines of shards."""
    groups = replace(corpus, committed=None)

    def shard_findings(batches: Iterator[pa.RecordBatch]) -> Iterator[Finding]:
        rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch), strict=True))
        for _, stream in groupby(rows, key=itemgetter(0)):
            first = next(stream)
            lines = (ShardLine(*row[1:4]) for row in chain((first,), stream))
            yield from judge_shard(pickle.loads(first[4]), groups, lines, analyze)

    return lambda batches: to_record_batches(shard_findings(batches), FINDING_SCHEMA, FINDINGS_PER_BATCH)


def judge_shard(shard: Shard, corpus: Corpus, lines: Iterable[ShardLine], analyze: ShardAnalysis) -> Iterator[Finding]:
    """Yield the findings of one shard; `lines` are the header's and those of its events, in order."""
    stream = iter(lines)
    header = decode_header(next(stream).text)
    if shard.bucket == LOOKUPS_SHARD:
        judge = ShardJudge(header, owns_no_group)
    elif shard.bucket == WHOLE_TRACE:
        judge = ShardJudge(header)
    else:
        judge = ShardJudge(header, lambda group: corpus.bucket_of(group) == shard.bucket)
    judge.own_events = shard.unread
    decoder = EventDecoder()

    def events() -> Iterator[tuple[int, Event]]:
        for number, text, is_own in stream:
            judge.own_events += is_own
            yield number, decoder.decode(text)

    yield from analyze(shard, header, judge, pair_shard_operations(events()))
    for _ in stream:
        pass  # an analysis that stopped early leaves lines, which the next shard must not see


def corpus_files(corpus: Corpus) -> list[TraceFile]:
    """The trace files of a corpus, read without Spark: all of them have to come here."""
    found = []
    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        for table in pool.map(lambda name: open_parquet(name).read(FILE_COLUMNS), corpus.files(TRACES)):
            for row in table.to_pylist():
                sizes = dict(zip(row.pop("buckets"), row.pop("sizes"), strict=True))
                found.append(TraceFile(**row, sizes=sizes))
    return found


def shards_of(files: RecordingFiles, split: int) -> Iterator[Shard]:
    """The shards of a trace: a single one if it has checks, one bucket, or at most `split` events."""
    trace, events = files[0].trace, sum(file.events for file in files)
    sizes: Counter[int] = Counter()
    for file in files:
        sizes.update(file.sizes)
    if any(file.marked for file in files) or events <= split or len(sizes) < 2:
        yield Shard(trace, WHOLE_TRACE, events, len(files))
        return
    unread = sizes.pop(UNRELATED_BUCKET, 0)
    for bucket, size in sizes.items():
        yield Shard(trace, bucket, size, 0)
    yield Shard(trace, LOOKUPS_SHARD, events - sizes.total() - unread, len(files), unread)


def read_table(spark: SparkSession, corpus: Corpus, table: str, columns: Sequence[str] | None = None) -> DataFrame:
    """A table of a corpus, with all its columns or some of them."""
    schema = pa.schema([each for each in SCHEMAS[table] if columns is None or each.name in columns])
    known = corpus.committed or corpus.log.read()
    sizes = {name: size for name, size in known.files.items() if table_of(name) == table}
    files = [SizedFile(str(join_location(corpus.data, name)), size) for name, size in sizes.items()]
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


def sorted_lines(
    spark: SparkSession, corpus: Corpus, recordings: Sequence[RecordingFiles], shards: Sequence[Shard]
) -> DataFrame:
    """The lines of all shards (number of the shard, line, text, whether it is the shard's own): each shard in one task
    and in order, its header first, which brings the `Shard` itself, pickled."""
    if not shards:
        return spark.createDataFrame([], SORTED_COLUMNS)
    cores = spark.sparkContext.defaultParallelism
    total = sum(shard.size for shard in shards)
    parts = split_evenly(
        shards, max(1, 3 * cores if len(shards) >= 3 * cores else len(shards), -(-total // EVENTS_PER_PART))
    )
    where = spark.createDataFrame(plan_table(place_rows(recordings, parts), WHERE_SCHEMA))
    events = read_table(spark, corpus, EVENTS, LINE_COLUMNS).where("intact").withColumnRenamed("trace", "file")
    if all(shard.bucket != WHOLE_TRACE for shard in shards):
        events = events.where(F.col("bucket") != UNRELATED_BUCKET)
    joined = events.join(F.broadcast(where), (events["file"] == where["file"]) & is_in_shard())
    place = (F.col("line") - F.col("begins") + F.col("before")).alias("line")
    own = (F.col("place") == WHOLE_TRACE) | (F.col("place") == F.col("bucket"))
    nothing = F.lit(None).cast("binary").alias("told")
    lines = joined.where("line > begins").select("shard", place, "text", own.alias("own"), nothing, "part")
    first = F.lit(1).cast("long").alias("line")
    headers = read_table(spark, corpus, TRACES, ["trace", "header"]).select(
        "trace", first, F.col("header").alias("text")
    )
    each_shard = spark.createDataFrame(plan_table(shard_rows(parts), SHARD_SCHEMA))
    firsts = headers.join(F.broadcast(each_shard), "trace").select(
        "shard", "line", "text", F.lit(False).alias("own"), "told", "part"
    )
    return (
        lines.unionByName(firsts)
        .repartitionById(len(parts), F.col("part"))
        .sortWithinPartitions("shard", "line")
        .select("shard", "line", "text", "own", "told")
    )


def place_rows(recordings: Iterable[RecordingFiles], parts: Parts) -> Iterator[tuple[Any, ...]]:
    """Yield a row of `WHERE_SCHEMA` for each file of each shard."""
    by_name = {whole[0].trace: line_offsets(whole) for whole in recordings}
    for part, number, shard in number_shards(parts):
        for file, begins, before in by_name[shard.trace]:
            yield file.trace, shard.bucket, number, begins, before, part


def shard_rows(parts: Parts) -> Iterator[tuple[Any, ...]]:
    """Yield a row of `SHARD_SCHEMA` for each shard."""
    for part, number, shard in number_shards(parts):
        yield shard.trace, number, pickle.dumps(shard), part


def number_shards(parts: Parts) -> Iterator[tuple[int, int, Shard]]:
    """Yield each shard with the number of its part, and with its own."""
    numbers = count()
    return ((part, next(numbers), shard) for part, shards in enumerate(parts) for shard in shards)


def plan_table(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Rows of a plan as a table, which takes less memory than they."""
    return pa.Table.from_batches(to_record_batches(rows, schema, ROWS_PER_BATCH), schema)


def is_in_shard() -> Column:
    """Whether an event with its `bucket` belongs to the shard with the bucket `place`."""
    told = (F.col("kind") == "response") & F.col("error").isin(sorted(map(int, COORDINATOR_NOT_READY)))
    unrelated = F.col("kind").isin(sorted(UNRELATED_KINDS)) | (
        F.col("kind").isin("request", "response") & F.col("api").isin(sorted(UNRELATED_APIS))
    )
    is_shared, place = F.col("bucket") == SHARED_BUCKET, F.col("place")
    return (
        (place == WHOLE_TRACE)
        | (place == F.col("bucket"))
        | ((place == LOOKUPS_SHARD) & F.coalesce(told, F.lit(False)))
        | ((place >= 0) & is_shared & ~unrelated)
    )
