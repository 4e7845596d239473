"""The judge over a corpus: each shard is a stream of lines in order, in memory for one event, on any worker.

Spark sorts the lines of a part by shard and line, on disk if need be, and hands them over in batches. The findings of a
shard come from a `ShardAnalysis`, which is handed in.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.events import Event, Header
from fencepost.traces.files.jsonl import decode_event, decode_header
from fencepost.traces.operations import PairedEvent
from fencepost.traces.pipeline.arrow import to_record_batches
from fencepost.traces.pipeline.corpus import EVENTS, TRACES, Corpus
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.parallel import split_evenly
from fencepost.traces.pipeline.recordings import (
    RecordingFiles,
    TraceFile,
    describe_flaw,
    group_recordings,
    line_offsets,
)
from fencepost.traces.pipeline.row_reader import SHARED_BUCKET
from fencepost.traces.pipeline.shards import (
    LOOKUPS_SHARD,
    WHOLE_TRACE,
    ShardJudge,
    owns_no_group,
    pair_shard_operations,
)

DEFAULT_SPLIT_EVENTS = 50_000
"""A trace with more events is split into shards by bucket."""
EVENTS_PER_PART = 250_000
"""Target number of events that are sorted and judged in one task."""
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


FINDING_COLUMNS = "trace string, bucket int, kind string, sequence long, time long, `group` string, value string"
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

    `size` is its number of events. `flaw` is the place after which events of the trace are missing; only one shard of a
    trace has it, so that it is reported once.
    """

    trace: str
    bucket: int
    size: int
    flaw: str | None


ShardAnalysis: TypeAlias = Callable[[Shard, Header, ShardJudge, Iterator[PairedEvent]], Iterator[Finding]]
"""Has the events of a unit judged, and says what came of it."""


def corpus_findings(
    spark: SparkSession, corpus: Corpus, analyze: ShardAnalysis, split: int = DEFAULT_SPLIT_EVENTS
) -> DataFrame:
    """The findings in all shards, as a lazy data frame. Raises `PipelineError` if the corpus is empty."""
    wholes = group_recordings(corpus_files(spark, corpus))
    found = [unit for whole in wholes for unit in shards_of(whole, split)]
    lines = sorted_lines(spark, corpus, wholes, found)

    def shard_findings(batches: Iterator[pa.RecordBatch]) -> Iterator[Finding]:
        rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch), strict=True))
        for number, stream in groupby(rows, key=itemgetter(0)):
            yield from judge_shard(found[number], corpus, ((row[1], row[2]) for row in stream), analyze)

    def judge_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from to_record_batches(shard_findings(batches), FINDING_SCHEMA, FINDINGS_PER_BATCH)

    return lines.mapInArrow(judge_batches, FINDING_COLUMNS)


def judge_shard(
    shard: Shard, corpus: Corpus, lines: Iterable[tuple[int, bytes]], analyze: ShardAnalysis
) -> Iterator[Finding]:
    """Yield the findings of one shard; `lines` are the header's and those of its events, in order."""
    stream = iter(lines)
    header = decode_header(next(stream)[1])
    if shard.bucket == LOOKUPS_SHARD:
        judge = ShardJudge(header, owns_no_group)
    elif shard.bucket == WHOLE_TRACE:
        judge = ShardJudge(header)
    else:
        judge = ShardJudge(header, lambda group: corpus.bucket_of(group) == shard.bucket)

    def events() -> Iterator[tuple[int, Event]]:
        for number, text in stream:
            yield number, decode_event(text)

    yield from analyze(shard, header, judge, pair_shard_operations(events()))
    for _ in stream:
        pass  # an analysis that stopped early leaves lines, which the next shard must not see


def corpus_files(spark: SparkSession, corpus: Corpus) -> list[TraceFile]:
    """The trace files of a corpus. Raises `PipelineError` if it is empty."""
    found = []
    for row in read_table(spark, corpus, TRACES).drop("source", "order", "header", "quarantined").collect():
        fields = row.asDict()
        sizes = dict(zip(fields.pop("buckets"), fields.pop("sizes"), strict=True))
        found.append(TraceFile(**fields, sizes=sizes))
    return found


def shards_of(files: RecordingFiles, split: int) -> Iterator[Shard]:
    """The shards of a trace: a single one if it has checks, one group bucket, or at most `split` events."""
    trace, flawed, events = files[0].trace, describe_flaw(files), sum(file.events for file in files)
    sizes: Counter[int] = Counter()
    for file in files:
        sizes.update(file.sizes)
    if any(file.marked for file in files) or events <= split or len(sizes) < 2:
        yield Shard(trace, WHOLE_TRACE, events, flawed)
        return
    shared = events - sizes.total()
    for bucket, size in sizes.items():
        yield Shard(trace, bucket, size + shared, None)
    yield Shard(trace, LOOKUPS_SHARD, shared, flawed)


def read_table(spark: SparkSession, corpus: Corpus, table: str) -> DataFrame:
    """A table of a corpus. Raises `PipelineError` if it is empty."""
    files = corpus.files(table)
    if not files:
        raise PipelineError(f"{corpus.folder} has no {table}")
    return spark.read.option("basePath", str(Path(corpus.folder, table))).parquet(*files)


def sorted_lines(
    spark: SparkSession, corpus: Corpus, recordings: Sequence[RecordingFiles], shards: Sequence[Shard]
) -> DataFrame:
    """The lines of all shards (number of the shard, line, text): each shard in one task and in order, header first."""
    cores = spark.sparkContext.defaultParallelism
    total = sum(unit.size for unit in shards)
    numbers = {unit: number for number, unit in enumerate(shards)}
    parts = split_evenly(
        shards, max(1, 3 * cores if len(shards) >= 3 * cores else len(shards), -(-total // EVENTS_PER_PART))
    )
    by_name = {whole[0].trace: line_offsets(whole) for whole in recordings}
    rows = [
        (
            file.trace,
            bucket,
            numbers[unit],
            begins,
            before,
            part,
            unit.bucket == LOOKUPS_SHARD and bucket != SHARED_BUCKET,
        )
        for part, each in enumerate(parts)
        for unit in each
        for file, begins, before in by_name[unit.trace]
        for bucket in buckets_of(unit, corpus)
    ]
    columns = "file string, bucket int, unit int, begins long, before long, part int, partly boolean"
    where = spark.createDataFrame(rows, columns)
    begun = [(unit.trace, numbers[unit], part) for part, each in enumerate(parts) for unit in each]
    events = read_table(spark, corpus, EVENTS).where("intact").withColumnRenamed("trace", "file")
    told = (F.col("kind") == "response") & F.col("error").isin(sorted(map(int, COORDINATOR_NOT_READY)))
    place = (F.col("line") - F.col("begins") + F.col("before")).alias("line")
    lines = (
        events.join(F.broadcast(where), ["file", "bucket"])
        .where(~F.col("partly") | told)
        .where("line > begins")
        .select("unit", place, "text", "part")
    )
    first = F.lit(1).cast("long").alias("line")
    headers = read_table(spark, corpus, TRACES).select("trace", first, F.col("header").alias("text"))
    each_unit = spark.createDataFrame(begun, "trace string, unit int, part int")
    firsts = headers.join(F.broadcast(each_unit), "trace").select("unit", "line", "text", "part")
    return (
        lines.unionByName(firsts)
        .repartitionById(len(parts), F.col("part"))
        .sortWithinPartitions("unit", "line")
        .select("unit", "line", "text")
    )


def buckets_of(shard: Shard, corpus: Corpus) -> Sequence[int]:
    """The buckets that hold lines of a shard."""
    if shard.bucket in (WHOLE_TRACE, LOOKUPS_SHARD):
        return range(SHARED_BUCKET, corpus.buckets)
    return (SHARED_BUCKET, shard.bucket)
