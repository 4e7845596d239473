"""Ingest of a Kafka topic into a corpus: Spark brings the records of each trace together, and workers read them.

A *section* is a header and the records that follow it under the same key, up to the next header or to a record without
a value. It is read like a file, once it is over: so each is ingested once. A later ingest goes on at the first section
that was not over.
"""

import io
import json
import pickle
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import IO, BinaryIO, NamedTuple, cast

import pyarrow as pa
from pyspark.sql import SparkSession

from fencepost.traces.message_fields import encodable_text
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, InputFile, InputRow
from fencepost.traces.pipeline.ingest import IngestResult, IngestSummary, write_input
from fencepost.traces.pipeline.parallel import StageProgress, as_pipeline_error, core_count, job_progress
from fencepost.traces.pipeline.rows import BadLine, RowReader
from fencepost.traces.pipeline.tables import INPUTS, QUARANTINE, TableWriter
from fencepost.traces.pipeline.topics import (
    OFFSET_GONE,
    SOURCE_NAME,
    OffsetRange,
    Topic,
    TopicRecord,
    is_header_line,
    offset_ranges,
    register_topics,
    topic_options,
)

HELD_BYTES = 32 << 20
"""Bytes of a section that are held in memory; longer ones go through a temporary file."""


class SectionSpan(NamedTuple):
    """Where a section is: the offsets of its first record, and of the record that ends it; -1 if it is not over."""

    partition: int
    key: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class TopicPosition:
    """Where the next ingest of a topic goes on: for each partition the first record that may not be in the corpus, and
    the keys of which more is in it, up to, but without, a record.

    It is committed with the rows of what was read, so both count or neither. A section may be longer than others that
    begin after it, so records of some keys beyond the position are in the corpus already.
    """

    next: Mapping[int, int] = field(default_factory=dict)
    taken: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    def is_new(self, record: TopicRecord) -> bool:
        """Whether a record may not be in the corpus."""
        return record.offset >= self.taken.get(record.partition, {}).get(record.key, 0)

    def advance(self, ranges: Iterable[OffsetRange], spans: Iterable[SectionSpan]) -> "TopicPosition":
        """The position after these ranges were read, with these sections in them."""
        next = {**self.next, **{each.partition: max(each.end, self.next.get(each.partition, 0)) for each in ranges}}
        found = list(spans)
        for each in found:
            if each.end < 0:
                next[each.partition] = min(next[each.partition], each.first)
        ends = [(each.partition, each.key, each.end) for each in found if each.first < next[each.partition]]
        ends += [(partition, key, end) for partition, mine in self.taken.items() for key, end in mine.items()]
        taken: dict[int, dict[str, int]] = {}
        for partition, key, end in ends:
            if end > next[partition]:
                mine = taken.setdefault(partition, {})
                mine[key] = max(end, mine.get(key, 0))
        return TopicPosition(next, taken)

    def row(self, topic: Topic) -> InputRow:
        """The row of the table of inputs that remembers the position."""
        told = {"next": self.next, "taken": self.taken}
        return InputRow(position_name(topic), 0, time.time_ns(), 0, 0, 0, 0, json.dumps(told, sort_keys=True))


def position_name(topic: Topic) -> str:
    """The name of the positions of a topic in the table of inputs; those of its sections begin with it."""
    return f"{topic.uri}/"


def known_position(topic: Topic, rows: Iterable[InputRow]) -> TopicPosition:
    """The furthest of the positions of a topic in the table of inputs, for each partition."""
    found = TopicPosition()
    for row in rows:
        if row.input == position_name(topic):
            told = json.loads(row.report or "{}")
            for partition, next in told["next"].items():
                number = int(partition)
                if next >= found.next.get(number, 0):
                    taken = told["taken"].get(partition, {})
                    found = TopicPosition({**found.next, number: next}, {**found.taken, number: taken})
    return found


def unread_ranges(topic: Topic, position: TopicPosition, ranges: Iterable[OffsetRange]) -> Iterator[OffsetRange]:
    """Yield what is to be read of the records that a topic has. Raises `PipelineError` for a topic that has fewer
    records than were read."""
    for each in ranges:
        next = position.next.get(each.partition, each.start)
        if next > each.end:
            raise PipelineError(
                f"{topic.uri}: partition {each.partition} ends before record {next}, where the last ingest stopped: it "
                f"is another topic of this name; take the first out with fencepost pipeline forget CORPUS {topic.uri}"
            )
        yield OffsetRange(each.partition, max(each.start, next), each.end)


@dataclass(slots=True)
class Section:
    """The lines of one trace, or of one part of a recording, as they come."""

    topic: str
    first: TopicRecord
    has_header: bool
    end: int = -1
    """The offset after which it is over."""
    last: int = -1
    """The offset of its last line."""
    lines: IO[bytes] = field(default_factory=lambda: tempfile.SpooledTemporaryFile(HELD_BYTES))  # noqa: SIM115
    size: int = 0

    @property
    def name(self) -> str:
        """The name in the corpus: the topic, and where the section begins; if the topic does not have its beginning any
        more, where it ends."""
        where = self.first.offset if self.has_header else f"before {self.end}"
        name = f"{self.topic}/{self.first.partition}/{where}"
        return str(encodable_text(f"{name}/{self.first.key}" if self.first.key else name))

    @property
    def is_over(self) -> bool:
        """Whether its end was seen."""
        return self.end >= 0

    def span(self, *, takes_unended: bool) -> SectionSpan:
        """Where it is in the topic; with `takes_unended`, it ends after its last record."""
        end = self.last + 1 if takes_unended and not self.is_over else self.end
        return SectionSpan(self.first.partition, self.first.key, self.first.offset, end)

    def add(self, line: bytes) -> None:
        """Add a line."""
        whole = line if line.endswith(b"\n") else line + b"\n"
        self.lines.write(whole)
        self.size += len(whole)

    def open(self, _: str) -> BinaryIO:
        """The lines as a file."""
        self.lines.seek(0)
        return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, self.lines)))


@dataclass(slots=True)
class TopicPart:
    """What a worker made of its part of a topic: what it wrote, how many sections the corpus had, the sections that are
    not over, where all are that were read, and how many records these have."""

    written: IngestResult = field(default_factory=IngestResult)
    known: int = 0
    unended: list[str] = field(default_factory=list)
    spans: list[SectionSpan] = field(default_factory=list)
    records: int = 0

    def add(self, other: "TopicPart") -> None:
        """Add what came of another part."""
        self.written.add(other.written)
        self.known += other.known
        self.unended += other.unended
        self.spans += other.spans
        self.records += other.records


def ingest_topic(
    spark: SparkSession,
    corpus: Corpus,
    topic: Topic,
    progress: StageProgress,
    *,
    takes_unended: bool = False,
) -> IngestSummary:
    """Ingest the sections of a topic that the corpus does not have yet, as one change with the position at which the
    next ingest goes on; with `takes_unended`, those that are not over as they are now.

    Raises `PipelineError`.
    """
    writer = corpus.start_writing()
    while True:
        rows = list(corpus.input_rows())
        position = known_position(topic, rows)
        there = offset_ranges(topic)
        ranges = list(unread_ranges(topic, position, there))
        known = {row.input for row in rows if row.input.startswith(f"{topic.uri}/")}
        task = section_task(writer, topic, known, position, takes_unended)
        whole = TopicPart()
        for part in map_sections(spark, topic, ranges, task, progress):
            whole.add(part)
        written = whole.written
        assert written.counts.is_balanced
        after = position.advance(ranges, whole.spans)
        written.add(write_position(writer, topic, position, after, there))
        needed = [position_name(topic)] if position.next else []
        if not written.files or not writer.append(written.inputs, written.files, needed):
            break  # else another writer has committed some of them meanwhile
    return IngestSummary(
        written.counts,
        len(written.inputs),
        whole.known,
        tuple(sorted(written.flaws)),
        unended=tuple(sorted(whole.unended)),
        records=whole.records,
    )


def write_position(
    writer: CorpusWriter, topic: Topic, before: TopicPosition, after: TopicPosition, there: Sequence[OffsetRange]
) -> IngestResult:
    """Write the position after an ingest, if it is another, and to the quarantine what the topic had lost meanwhile."""
    lost = [
        (f"{topic.uri}/{each.partition}", OFFSET_GONE % (next, each.start - 1, each.partition))
        for each in there
        if (next := before.next.get(each.partition, each.start)) < each.start
    ]
    with TableWriter(writer.corpus.data, writer.id) as tables:
        if after != before:
            tables.add_row(INPUTS, after.row(topic))
            for trace, reason in lost:
                tables.add_row(QUARANTINE, BadLine(trace, 0, 0, reason, b""))
    return IngestResult(tables.files, flaws=[f"{trace}: {reason}" for trace, reason in lost])


SectionTask = Callable[[Iterator[TopicRecord]], TopicPart]


def map_sections(
    spark: SparkSession,
    topic: Topic,
    ranges: Sequence[OffsetRange],
    task: SectionTask,
    progress: StageProgress,
) -> list[TopicPart]:
    """The results of `task` on the records of some ranges, in parts: those of a key are in one part, and in order."""
    if all(each.start >= each.end for each in ranges):
        return []  # Spark reads a source without partitions as one that is None
    register_topics(spark)

    def run_part(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        columns = (batch.select(["partition", "offset", "key", "value"]) for batch in batches)
        rows = (TopicRecord(*row) for each in columns for row in zip(*(c.to_pylist() for c in each), strict=True))
        yield pa.RecordBatch.from_pydict({"result": [pickle.dumps(task(rows))]})

    with job_progress(spark, 1, lambda done, total: progress(done, total, topic.uri)), as_pipeline_error():
        records = spark.read.format(SOURCE_NAME).options(**topic_options(topic, ranges=json.dumps(ranges))).load()
        by_key = records.repartition(2 * core_count(spark), "partition", "key")
        ordered = by_key.sortWithinPartitions("partition", "key", "offset")
        return [pickle.loads(row.result) for row in ordered.mapInArrow(run_part, "result binary").collect()]


def section_task(
    writer: CorpusWriter, topic: Topic, known: set[str], position: TopicPosition, takes_unended: bool
) -> SectionTask:
    """The function that a worker runs on its records."""
    corpus, id, uri = writer.corpus, writer.id, topic.uri

    def ingest_sections(records: Iterator[TopicRecord]) -> TopicPart:
        part = TopicPart()

        def count_records() -> Iterator[TopicRecord]:
            for record in records:
                part.records += 1
                if position.is_new(record):
                    yield record

        with TableWriter(corpus.data, id) as tables:
            for section in sections_of(uri, count_records()):
                part.spans.append(section.span(takes_unended=takes_unended))
                if section.name in known:
                    part.known += 1
                elif section.is_over or takes_unended:
                    input = InputFile(section.name, section.size, time.time_ns())
                    reader = RowReader(section.name, open_file=section.open)
                    write_input(input, reader, corpus, tables, part.written)
                else:
                    part.unended.append(section.name)
                section.lines.close()
        part.written.files = tables.files
        return part

    return ingest_sections


def sections_of(topic: str, records: Iterable[TopicRecord]) -> Iterator[Section]:
    """Yield the sections in the records of some keys, which are in order."""
    for _, mine in groupby(records, key=lambda each: (each.partition, each.key)):
        section: Section | None = None
        for record in mine:
            is_header = record.value is not None and is_header_line(record.value)
            if section is not None and (is_header or record.value is None):
                section.end = record.offset
                yield section
                section = None
            if record.value is not None:
                section = section or Section(topic, record, is_header)
                section.add(record.value)
                section.last = record.offset
        if section is not None:
            yield section
