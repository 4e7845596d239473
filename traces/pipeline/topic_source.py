"""Kafka topics as a data source of Spark, in batches and as a stream.

Spark's own source for Kafka is a jar that is not published for every Spark; this one needs none. Executors read ranges
of offsets where the brokers are, and Spark keeps the offsets of a stream in its checkpoint.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.parallel import Spark
from fencepost.traces.pipeline.topics import OFFSET_GONE, OffsetRange, Topic, TopicRecord, offset_ranges, read_records

SOURCE_NAME = "fencepost-topic"
RECORD_COLUMNS = "partition int, offset long, key string, value binary"
RECORD_SCHEMA = pa.schema(
    [("partition", pa.int32()), ("offset", pa.int64()), ("key", pa.string()), ("value", pa.binary())]
)
RECORDS_PER_TASK = 500_000
DEFAULT_RECORDS_PER_BATCH = 200_000
"""Maximum number of records in one micro-batch of a stream."""
ROWS_PER_BATCH = 5_000
TOPIC_OPTION = "secret.topic"
"""The option with the topic as JSON; Spark leaves options with such a name out of what it logs."""


class RangePartition(InputPartition):
    """The records that one task reads."""

    def __init__(self, where: OffsetRange) -> None:
        super().__init__(tuple(where))


class TopicSource(DataSource):
    """A topic as a table of records."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return SOURCE_NAME

    def schema(self) -> str:
        """The columns of a record."""
        return RECORD_COLUMNS

    def topic(self) -> Topic:
        """The topic that the options name."""
        return Topic(**json.loads(self.options[TOPIC_OPTION]))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of what the topic has now."""
        ranges = self.options.get("ranges")
        return TopicReader(
            self.topic(), None if ranges is None else [OffsetRange(*each) for each in json.loads(ranges)]
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A reader of the topic as it grows."""
        return TopicStreamReader(self.topic(), int(self.options.get("records", DEFAULT_RECORDS_PER_BATCH)))


class TopicReader(DataSourceReader):
    """Reads what a topic has at the beginning of a query, or some ranges of it."""

    def __init__(self, source: Topic, ranges: Sequence[OffsetRange] | None = None) -> None:
        self.source = source
        self.ranges = ranges

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of at most `RECORDS_PER_TASK` records."""
        ranges = offset_ranges(self.source) if self.ranges is None else self.ranges
        return [RangePartition(part) for where in ranges for part in split_range(where)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range."""
        return record_batches(self.source, partition)


class TopicStreamReader(DataSourceStreamReader):
    """Reads a topic from its beginning on. An offset of the stream has the next record of each partition.

    A partition that is new begins at its first record.
    """

    def __init__(self, source: Topic, records: int) -> None:
        self.source = source
        self.records = records

    def initialOffset(self) -> dict[str, int]:
        """The first records that the topic still has."""
        return {str(each.partition): each.start for each in offset_ranges(self.source)}

    # Spark asks for a limit from 4.2 on, and calls without arguments before.
    def latestOffset(self, start: Mapping[str, int] | None = None, limit: object = None) -> dict[str, int]:
        """The end of the next micro-batch: at most `records` further on. Raises `PipelineError` for records that are
        gone before they were read."""
        found = offset_ranges(self.source)
        if start is None:
            return {str(each.partition): each.end for each in found}
        for each in found:
            next = start.get(str(each.partition), each.start)
            if next < each.start:
                raise PipelineError(f"{self.source.uri}: {OFFSET_GONE % (next, each.start - 1, each.partition)}")
        return dict(start) | limit_offsets(start, found, self.records)

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        """The ranges of a micro-batch."""
        wheres = (OffsetRange(int(number), start.get(number, 0), last) for number, last in end.items())
        return [RangePartition(part) for where in wheres for part in split_range(where)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range."""
        return record_batches(self.source, partition)


def limit_offsets(start: Mapping[str, int], found: Iterable[OffsetRange], records: int) -> dict[str, int]:
    """The offsets to read up to: of each partition the same number of records, and at most `records` in all."""
    waiting = [OffsetRange(each.partition, start.get(str(each.partition), each.start), each.end) for each in found]
    left, reached = records, {}
    for place, each in enumerate(sorted(waiting, key=lambda each: each.end - each.start)):
        count = min(each.end - each.start, max(1, left // (len(waiting) - place)))
        reached[str(each.partition)] = each.start + count
        left -= count
    return reached


def split_range(where: OffsetRange) -> Iterator[OffsetRange]:
    """Yield a range in parts of at most `RECORDS_PER_TASK` offsets."""
    for start in range(where.start, where.end, RECORDS_PER_TASK):
        yield OffsetRange(where.partition, start, min(where.end, start + RECORDS_PER_TASK))


def record_batches(source: Topic, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the records of one task."""
    records = read_records(source, OffsetRange(*partition.value))
    while rows := list(islice(records, ROWS_PER_BATCH)):
        yield to_batch(rows)


def to_batch(rows: Sequence[TopicRecord]) -> pa.RecordBatch:
    """The records as Arrow has them."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, RECORD_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORD_SCHEMA)


def register_topics(spark: Spark) -> None:
    """Make topics known to a session."""
    spark.dataSource.register(TopicSource)


def topic_options(topic: Topic, **more: Any) -> dict[str, str]:
    """The options of the source for a topic."""
    return {TOPIC_OPTION: json.dumps(asdict(topic))} | {key: str(value) for key, value in more.items()}
