"""The judge over a corpus: every unit as a stream of lines in order, on whichever worker, in memory for one event.

Spark sorts the lines of a part by unit and line, on disk if need be, and hands them over a batch at a time. What a unit
shows is left to an opinion, which is handed in.
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

from fencepost.traces.events import Event, Header
from fencepost.traces.files.jsonl import read_event, read_header
from fencepost.traces.judge.classic.failover import NOT_READY
from fencepost.traces.operations import Moment
from fencepost.traces.pipeline.arrow import in_batches
from fencepost.traces.pipeline.corpus import EVENTS, TRACES, Corpus
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.parallel import in_parts
from fencepost.traces.pipeline.recordings import File, Whole, flaw_of, places, put_together
from fencepost.traces.pipeline.row_reader import SHARED
from fencepost.traces.pipeline.shards import LOOKUPS, WHOLE, LookupJudge, UnitJudge, moments

SPLIT = 50_000
"""From how many events on the groups of a trace are judged beside each other."""
PART = 250_000
"""About how many events are sorted and judged in one go."""
BATCH = 2_000
"""How many findings leave a worker at once."""


class Finding(NamedTuple):
    """Something found in a unit. `value` is JSON, and what it holds depends on the kind."""

    trace: str
    bucket: int
    kind: str
    sequence: int | None
    time: int | None
    group: str | None
    value: str


FINDINGS = "trace string, bucket int, kind string, sequence long, time long, `group` string, value string"
SCHEMA = pa.schema(
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
class Unit:
    """A unit: its trace, and the bucket of its groups, or `WHOLE`, or `LOOKUPS`. One of a trace tells its flaw, the
    place from which on something is missing."""

    trace: str
    bucket: int
    size: int
    flawed: str | None


Opinion: TypeAlias = Callable[[Unit, Header, UnitJudge | LookupJudge, Iterator[Moment]], Iterator[Finding]]
"""Has the events of a unit judged, and says what came of it."""


def findings(spark: SparkSession, corpus: Corpus, opinion: Opinion, split: int = SPLIT) -> DataFrame:
    """What is found in all units, to be computed by whoever writes it down or counts it."""
    wholes = put_together(files(spark, corpus))
    found = [unit for whole in wholes for unit in units_of(whole, split)]
    lines = sorted_lines(spark, corpus, wholes, found)

    def said(batches: Iterator[pa.RecordBatch]) -> Iterator[Finding]:
        rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch), strict=True))
        for number, stream in groupby(rows, key=itemgetter(0)):
            yield from judge_unit(found[number], corpus, ((row[1], row[2]) for row in stream), opinion)

    def judged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from in_batches(said(batches), SCHEMA, BATCH)

    return lines.mapInArrow(judged, FINDINGS)


def judge_unit(unit: Unit, corpus: Corpus, lines: Iterable[tuple[int, bytes]], opinion: Opinion) -> Iterator[Finding]:
    """What one unit shows: its lines are the header's and those of its events, in order."""
    stream = iter(lines)
    header = read_header(next(stream)[1])
    judge: UnitJudge | LookupJudge
    if unit.bucket == LOOKUPS:
        judge = LookupJudge(header)
    elif unit.bucket == WHOLE:
        judge = UnitJudge(header)
    else:
        judge = UnitJudge(header, lambda group: corpus.bucket(group) == unit.bucket)

    def events() -> Iterator[tuple[int, Event]]:
        for number, text in stream:
            yield number, read_event(text)

    yield from opinion(unit, header, judge, moments(events()))
    for _ in stream:
        pass  # whoever gave up early leaves the rest to nobody


def files(spark: SparkSession, corpus: Corpus) -> list[File]:
    """The trace files of a corpus."""
    found = []
    for row in read(spark, corpus, TRACES).drop("source", "order", "header", "quarantined").collect():
        fields = row.asDict()
        sizes = dict(zip(fields.pop("buckets"), fields.pop("sizes"), strict=True))
        found.append(File(**fields, sizes=sizes))
    return found


def units_of(whole: Whole, split: int) -> Iterator[Unit]:
    """The units of a trace: one, unless it is long and nothing in it is about all of it."""
    trace, flawed, events = whole[0].trace, flaw_of(whole), sum(file.events for file in whole)
    sizes: Counter[int] = Counter()
    for file in whole:
        sizes.update(file.sizes)
    if any(file.marked for file in whole) or events <= split or len(sizes) < 2:
        yield Unit(trace, WHOLE, events, flawed)
        return
    shared = events - sizes.total()
    for bucket, size in sizes.items():
        yield Unit(trace, bucket, size + shared, None)
    yield Unit(trace, LOOKUPS, shared, flawed)


def read(spark: SparkSession, corpus: Corpus, table: str) -> DataFrame:
    """A table of a corpus. Raises `PipelineError` if there is nothing in it."""
    files = corpus.files(table)
    if not files:
        raise PipelineError(f"{corpus.folder} has no {table}")
    return spark.read.option("basePath", str(Path(corpus.folder, table))).parquet(*files)


def sorted_lines(spark: SparkSession, corpus: Corpus, wholes: Sequence[Whole], found: Sequence[Unit]) -> DataFrame:
    """The lines of every unit, by its number, together and in order, the header's first."""
    cores = spark.sparkContext.defaultParallelism
    total = sum(unit.size for unit in found)
    numbers = {unit: number for number, unit in enumerate(found)}
    parts = in_parts(found, max(1, 3 * cores if len(found) >= 3 * cores else len(found), -(-total // PART)))
    by_name = {whole[0].trace: places(whole) for whole in wholes}
    rows = [
        (file.trace, bucket, numbers[unit], begins, before, part, unit.bucket == LOOKUPS and bucket != SHARED)
        for part, each in enumerate(parts)
        for unit in each
        for file, begins, before in by_name[unit.trace]
        for bucket in buckets_of(unit, corpus)
    ]
    columns = "file string, bucket int, unit int, begins long, before long, part int, partly boolean"
    where = spark.createDataFrame(rows, columns)
    begun = [(unit.trace, numbers[unit], part) for part, each in enumerate(parts) for unit in each]
    events = read(spark, corpus, EVENTS).where("intact").withColumnRenamed("trace", "file")
    told = (F.col("kind") == "answer") & F.col("error").isin(sorted(map(int, NOT_READY)))
    place = (F.col("line") - F.col("begins") + F.col("before")).alias("line")
    lines = (
        events.join(F.broadcast(where), ["file", "bucket"])
        .where(~F.col("partly") | told)
        .where("line > begins")
        .select("unit", place, "text", "part")
    )
    first = F.lit(1).cast("long").alias("line")
    headers = read(spark, corpus, TRACES).select("trace", first, F.col("header").alias("text"))
    each_unit = spark.createDataFrame(begun, "trace string, unit int, part int")
    firsts = headers.join(F.broadcast(each_unit), "trace").select("unit", "line", "text", "part")
    return (
        lines.unionByName(firsts)
        .repartitionById(len(parts), F.col("part"))
        .sortWithinPartitions("unit", "line")
        .select("unit", "line", "text")
    )


def buckets_of(unit: Unit, corpus: Corpus) -> Sequence[int]:
    """The buckets that hold lines of a unit."""
    if unit.bucket in (WHOLE, LOOKUPS):
        return range(SHARED, corpus.buckets)
    return (SHARED, unit.bucket)
