"""Kafka topics of trace lines: where their records are, and reading them, with librdkafka (`confluent-kafka`).

The value of a record is a line of a trace, its key the name of the trace; a record without a value ends it. Records
without a key are one trace for each partition.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.files import make_schema, to_record_batches
from fencepost.traces.pipeline.parallel import Spark

if TYPE_CHECKING:
    from confluent_kafka import Consumer


SCHEME = "kafka://"
REQUEST_SECONDS = 30.0
"""How long a broker may take to tell of a topic."""
SILENCE_SECONDS = 60.0
"""How long records that are known to be there may keep a reader waiting."""
RECORDS_PER_POLL, FILL_SECONDS = 5_000, 0.05
"""How many records are taken from the client at once at most, and how long it may gather them."""
FIXED_SETTINGS = {
    "group.id": "fencepost",  # librdkafka asks for one; nothing joins it, and nothing is committed
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
    "log_level": 0,
}
OFFSET_GONE = "records %s to %s of partition %s were removed from the topic before they were read"
SOURCE_NAME = "fencepost-topic"
RECORD_SCHEMA = make_schema("partition int32, offset int64, key string, value binary")
RECORDS_PER_TASK = 500_000
DEFAULT_RECORDS_PER_BATCH = 200_000
"""Maximum number of records in one micro-batch of a stream."""
ROWS_PER_BATCH = 5_000
TOPIC_OPTION = "secret.topic"
"""The option with the topic as JSON; Spark leaves options with such a name out of what it logs."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic, the brokers to ask for it, further settings of the client by librdkafka's names, and the id of the
    cluster."""

    servers: str
    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    cluster: str = ""

    @property
    def uri(self) -> str:
        """The URI of the topic, which is the same whatever brokers were asked."""
        return f"{SCHEME}{self.cluster or self.servers}/{quote(self.name)}"


class TopicRecord(NamedTuple):
    """A record; `key` is empty, and `value` None, if it has none."""

    partition: int
    offset: int
    key: str
    value: bytes | None


class OffsetRange(NamedTuple):
    """The records of a partition from `start` up to, but without, `end`."""

    partition: int
    start: int
    end: int


def is_topic(place: object) -> bool:
    """Whether a location is the URI of a topic."""
    return isinstance(place, str) and place.startswith(SCHEME)


def find_topic(uri: str, settings: Mapping[str, str]) -> Topic:
    """The topic at kafka://HOST:PORT[,HOST:PORT...]/TOPIC, as its cluster knows it. Raises `PipelineError`."""
    servers, _, name = uri.removeprefix(SCHEME).rstrip("/").partition("/")
    if not servers or not name or "/" in name:
        raise PipelineError(f"{uri}: a topic is given as kafka://HOST:PORT/TOPIC")
    for key in settings:
        if key in FIXED_SETTINGS:
            raise PipelineError(f"--kafka {key}: Fencepost sets this one itself")
    topic = Topic(servers, unquote(name), settings)
    with open_consumer(topic) as consumer:
        return replace(topic, cluster=describe_topic(consumer, topic)[0])


def describe_topic(consumer: "Consumer", topic: Topic) -> tuple[str, list[int]]:
    """The id of a topic's cluster, and its partitions. Raises `PipelineError` if there is no such topic."""
    found = consumer.list_topics(topic.name, REQUEST_SECONDS)
    mine = found.topics[topic.name]
    if mine.error is not None:
        raise PipelineError(f"{topic.uri}: {mine.error.str()}")
    return found.cluster_id or "", sorted(mine.partitions)


@contextmanager
def open_consumer(topic: Topic) -> Iterator["Consumer"]:
    """A client for as long as the block lasts. Raises `PipelineError`."""
    from confluent_kafka import Consumer, KafkaException

    settings = {**topic.settings, **FIXED_SETTINGS, "bootstrap.servers": topic.servers}
    try:
        consumer = Consumer(settings)
    except KafkaException as error:
        raise PipelineError(f"{topic.uri}: {error_text(error)}") from None
    try:
        yield consumer
    except KafkaException as error:
        raise PipelineError(f"{topic.uri}: {error_text(error)}") from None
    finally:
        consumer.close()


def error_text(error: Exception) -> str:
    """What a client says went wrong, in one line."""
    cause = error.args[0] if error.args else error
    said = getattr(cause, "str", None)
    return next(iter(str(said() if callable(said) else cause).splitlines()), type(error).__name__)


def offset_ranges(topic: Topic) -> list[OffsetRange]:
    """The records that a topic has now, by partition. Raises `PipelineError`."""
    from confluent_kafka import TopicPartition

    with open_consumer(topic) as consumer:
        ranges = []
        for partition in describe_topic(consumer, topic)[1]:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic.name, partition), REQUEST_SECONDS)
            ranges.append(OffsetRange(partition, low, high))
        return ranges


def read_records(topic: Topic, where: OffsetRange) -> Iterator[TopicRecord]:
    """Yield the records of a range in order.

    Raises `PipelineError`, also if its beginning was removed from the topic, or its end does not come.
    """
    from confluent_kafka import KafkaError, TopicPartition

    if where.start >= where.end:
        return
    with open_consumer(topic) as consumer:
        place = TopicPartition(topic.name, where.partition, where.start)
        consumer.assign([place])
        reached = where.start
        while reached < where.end:
            # The first call returns what is there soon, the second waits for a single record.
            messages = consumer.consume(RECORDS_PER_POLL, FILL_SECONDS) or consumer.consume(1, SILENCE_SECONDS)
            if not messages:
                raise PipelineError(f"{topic.uri}: record {reached} of partition {where.partition} does not come")
            for message in messages:
                error, offset = message.error(), message.offset()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    reached = max(reached, offset or 0)
                    continue
                if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
                    low, _ = consumer.get_watermark_offsets(place, REQUEST_SECONDS)
                    raise PipelineError(f"{topic.uri}: {OFFSET_GONE % (where.start, low - 1, where.partition)}")
                if error is not None:
                    raise PipelineError(f"{topic.uri}: {error.str()}")
                assert offset is not None
                reached = offset + 1
                if offset < where.end:
                    key = message.key() or ""
                    text = key.decode("utf-8", "backslashreplace") if isinstance(key, bytes) else key
                    yield TopicRecord(where.partition, offset, text, message.value())


def is_header_line(line: bytes) -> bool:
    """Whether a line begins a trace. No event has the header's first key, unless deep in a body."""
    return line.lstrip()[:64].replace(b" ", b"").startswith(b'{"fencepost_trace":')


class TopicSource(DataSource):
    """A topic as a table of records, in batches and as a stream. Spark's own source for Kafka is a jar that is not
    published for every Spark; this one needs none."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return SOURCE_NAME

    def schema(self) -> StructType:
        """The columns of a record."""
        return from_arrow_schema(RECORD_SCHEMA)

    def topic(self) -> Topic:
        """The topic that the options name."""
        return Topic(**json.loads(self.options[TOPIC_OPTION]))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the ranges that the options name."""
        return TopicReader(self.topic(), [OffsetRange(*each) for each in json.loads(self.options["ranges"])])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A reader of the topic as it grows."""
        return TopicStreamReader(self.topic(), int(self.options.get("records", DEFAULT_RECORDS_PER_BATCH)))


class TopicReader(DataSourceReader):
    """Reads some ranges of a topic."""

    def __init__(self, source: Topic, ranges: Sequence[OffsetRange]) -> None:
        self.source = source
        self.ranges = ranges

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of at most `RECORDS_PER_TASK` records."""
        return [InputPartition(tuple(part)) for where in self.ranges for part in split_range(where)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range."""
        return to_record_batches(
            read_records(self.source, OffsetRange(*partition.value)), RECORD_SCHEMA, ROWS_PER_BATCH
        )


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
        return [InputPartition(tuple(part)) for where in wheres for part in split_range(where)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range."""
        return to_record_batches(
            read_records(self.source, OffsetRange(*partition.value)), RECORD_SCHEMA, ROWS_PER_BATCH
        )


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


def register_topics(spark: Spark) -> None:
    """Make topics known to a session."""
    spark.dataSource.register(TopicSource)


def topic_options(topic: Topic, **more: Any) -> dict[str, str]:
    """The options of the source for a topic."""
    return {TOPIC_OPTION: json.dumps(asdict(topic))} | {key: str(value) for key, value in more.items()}
