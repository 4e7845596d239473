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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import IO, BinaryIO, NamedTuple, cast

import pyarrow as pa
from pyspark.sql import SparkSession

from fencepost.traces.message_fields import encodable_text
from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, Counts, InputFile, InputRow
from fencepost.traces.pipeline.ingest import IngestSummary, counts_of, write_rows
from fencepost.traces.pipeline.parallel import as_pipeline_error, core_count, job_progress
from fencepost.traces.pipeline.row_reader import BadLine, RowReader
from fencepost.traces.pipeline.schema import INPUTS, QUARANTINE, TableWriter
from fencepost.traces.pipeline.topic_position import (
    SectionSpan,
    TopicPosition,
    known_position,
    lost_ranges,
    position_name,
    unread_ranges,
)
from fencepost.traces.pipeline.topic_source import SOURCE_NAME, register_topics, topic_options
from fencepost.traces.pipeline.topics import (
    OFFSET_GONE,
    OffsetRange,
    Topic,
    TopicRecord,
    is_header_line,
    offset_ranges,
)

HELD_BYTES = 32 << 20
"""Bytes of a section that are held in memory; longer ones go through a temporary file."""


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
    """What a worker made of its part of a topic: files with their sizes in bytes, the sections in them, counts, flaws,
    how many sections the corpus had, the sections that are not over, where all are that were read, and how many records
    these have."""

    files: dict[str, int] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    flaws: list[str] = field(default_factory=list)
    known: int = 0
    unended: list[str] = field(default_factory=list)
    spans: list[SectionSpan] = field(default_factory=list)
    records: int = 0

    def add(self, other: "TopicPart") -> None:
        """Add what came of another part."""
        self.files |= other.files
        self.inputs += other.inputs
        self.counts += other.counts
        self.flaws += other.flaws
        self.known += other.known
        self.unended += other.unended
        self.spans += other.spans
        self.records += other.records


class TopicSummary(NamedTuple):
    """What came of the ingest of a topic, the sections that were left out because they are not over, and how many
    records were read."""

    ingested: IngestSummary
    unended: tuple[str, ...]
    records: int


def ingest_topic(
    spark: SparkSession,
    corpus: Corpus,
    topic: Topic,
    progress: Callable[[int, int, str], None],
    *,
    takes_unended: bool = False,
) -> TopicSummary:
    """Ingest the sections of a topic that the corpus does not have yet, as one change with the position at which the
    next ingest goes on; with `takes_unended`, those that are not over as they are now.

    Raises `PipelineError`.
    """
    with corpus.write() as writer:
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
            assert whole.counts.is_balanced
            after = position.advance(ranges, whole.spans)
            whole.flaws += write_position(writer, topic, position, after, there, whole)
            needed = [position_name(topic)] if position.next else []
            if not whole.files or not writer.append(whole.inputs, whole.files, needed):
                break  # else another writer has committed some of them meanwhile
    done = IngestSummary(whole.counts, len(whole.inputs), whole.known, tuple(sorted(whole.flaws)))
    return TopicSummary(done, tuple(sorted(whole.unended)), whole.records)


def write_position(
    writer: CorpusWriter,
    topic: Topic,
    before: TopicPosition,
    after: TopicPosition,
    there: Sequence[OffsetRange],
    whole: TopicPart,
) -> list[str]:
    """Write the position after an ingest, if it is another, and what the topic had lost meanwhile, to the quarantine.
    Returns what was lost."""
    lost = [
        (f"{topic.uri}/{each.partition}", OFFSET_GONE % (each.start, each.end - 1, each.partition))
        for each in lost_ranges(before, there)
    ]
    with TableWriter(writer.corpus.data, writer.id) as tables:
        if after != before:
            tables.add_row(INPUTS, after.row(topic))
            for trace, reason in lost:
                tables.add_row(QUARANTINE, BadLine(trace, 0, 0, reason, b""))
    whole.files |= tables.files
    return [f"{trace}: {reason}" for trace, reason in lost]


SectionTask = Callable[[Iterator[TopicRecord]], TopicPart]


def map_sections(
    spark: SparkSession,
    topic: Topic,
    ranges: Sequence[OffsetRange],
    task: SectionTask,
    progress: Callable[[int, int, str], None],
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
        with TableWriter(corpus.data, id) as tables:
            new = (record for record in count_records(records, part) if position.is_new(record))
            for section in sections_of(uri, new):
                part.spans.append(section.span(takes_unended=takes_unended))
                if section.name in known:
                    part.known += 1
                elif section.is_over or takes_unended:
                    write_section(section, corpus, tables, part)
                else:
                    part.unended.append(section.name)
                section.lines.close()
        part.files = tables.files
        return part

    return ingest_sections


def count_records(records: Iterator[TopicRecord], part: TopicPart) -> Iterator[TopicRecord]:
    """Yield the records, and count them in `part`."""
    for record in records:
        part.records += 1
        yield record


def write_section(section: Section, corpus: Corpus, tables: TableWriter, part: TopicPart) -> None:
    """Write the rows of a section."""
    now = time.time_ns()
    input = InputFile(section.name, section.size, now)
    reader = write_rows(input, corpus, tables, section.name, RowReader(section.name, open_file=section.open))
    counts = counts_of(reader)
    tables.add_row(INPUTS, InputRow.from_counts(section.name, section.size, now, counts))
    part.inputs.append(section.name)
    part.counts += counts
    part.flaws += [reader.flaw] if reader.flaw else []


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
