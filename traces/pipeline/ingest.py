"""Ingest of trace files into a corpus: read strictly, written as Parquet, committed batch by batch."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from fencepost.traces.events import Header
from fencepost.traces.files.rotating_writer import recording_part_of
from fencepost.traces.message_fields import encodable_text
from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, Counts, InputFile, InputRow
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.parallel import core_count, map_parallel
from fencepost.traces.pipeline.row_reader import SHARED_BUCKET, Row, RowReader
from fencepost.traces.pipeline.schema import EVENTS, INPUTS, QUARANTINE, TRACES, TableWriter
from fencepost.traces.pipeline.shards import UNRELATED_BUCKET

BATCH_BYTES_PER_CORE = 1 << 28
"""Size of a batch in bytes of input for each core; a batch is committed as a whole."""


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The files written for some inputs with their sizes in bytes, the counts of lines, and for each input that could
    not be read, or not to its end, the place and the reason. Of the inputs that `failed`, each for a reason, there is
    nothing."""

    files: Mapping[str, int]
    counts: Counts
    flaws: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


IngestTask: TypeAlias = Callable[[list[InputFile]], IngestResult]
"""Runs on a worker: writes the rows of some inputs."""


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """What came of an ingest: counts of lines, of new input files, and of files that the corpus had already. `flaws`
    name the files that could not be read, or not to their end, `changed` those that have changed since an ingest, and
    `failed` why some could not be imported."""

    counts: Counts = field(default_factory=Counts)
    inputs: int = 0
    already_ingested: int = 0
    flaws: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    def __add__(self, other: "IngestSummary") -> "IngestSummary":
        return IngestSummary(
            self.counts + other.counts,
            self.inputs + other.inputs,
            self.already_ingested + other.already_ingested,
            self.flaws + other.flaws,
            self.changed + other.changed,
            self.failed + other.failed,
        )


def ingest(
    spark: SparkSession,
    corpus: Corpus,
    inputs: Sequence[InputFile],
    progress: Callable[[int, int, str], None],
    batch: int | None = None,
    make_task: Callable[[Corpus, str], IngestTask] | None = None,
) -> IngestSummary:
    """Ingest the inputs that the corpus does not have yet, in batches of about `batch` bytes; by default there is
    `BATCH_BYTES_PER_CORE` for each core. `make_task` makes the function that workers run, by default for trace files.

    `progress` is called with bytes done, bytes in total and a description. Raises `PipelineError`.
    """
    with corpus.write() as writer:
        new, changed = new_inputs(corpus, inputs)
        job = IngestJob(spark, writer, sum(each.size for each in new), progress, make_task or make_ingest_task)
        size = batch or BATCH_BYTES_PER_CORE * core_count(spark)
        for each in batch_by_size(new, size):
            job.ingest_batch(each)
    known = len(inputs) - job.inputs - len(changed) - len(job.failed)
    return IngestSummary(job.counts, job.inputs, known, tuple(job.flaws), changed, tuple(job.failed))


@dataclass(slots=True)
class IngestJob:
    """An ingest while it goes on; `total` is in bytes."""

    spark: SparkSession
    writer: CorpusWriter
    total: int
    progress: Callable[[int, int, str], None]
    make_task: Callable[[Corpus, str], IngestTask]
    done: int = 0
    counts: Counts = field(default_factory=Counts)
    inputs: int = 0
    flaws: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def ingest_batch(self, inputs: list[InputFile]) -> None:
        """Ingest some files and commit them. Those that another writer has committed meanwhile are left to it."""
        size = sum(each.size for each in inputs)

        def report_part(part: int, parts: int) -> None:
            self.progress(self.done + size * part // parts, self.total, f"{len(inputs)} files")

        while inputs:
            task = self.make_task(self.writer.corpus, self.writer.id)
            results = map_parallel(self.spark, inputs, task, report_part)
            found = sum((each.counts for each in results), Counts())
            if not found.is_balanced:
                raise PipelineError(f"lines were lost: {asdict(found)}")
            files = {name: bytes for each in results for name, bytes in each.files.items()}
            failed = {name: reason for each in results for name, reason in each.failed.items()}
            read = [each.name for each in inputs if each.name not in failed]
            taken = self.writer.append(read, files) if read else frozenset()
            if not taken:
                self.counts += found
                self.inputs += len(read)
                self.flaws += (flaw for each in results for flaw in each.flaws)
                self.failed += failed.values()
                break
            inputs = [each for each in inputs if each.name not in taken]
        self.done += size
        self.progress(self.done, self.total, f"{self.counts.events} events")


def new_inputs(corpus: Corpus, inputs: Sequence[InputFile]) -> tuple[list[InputFile], tuple[str, ...]]:
    """The inputs that were not ingested yet, and the paths of those that have changed since they were."""
    known = {row.input: (row.size, row.changed) for row in corpus.inputs()}
    new = [each for each in inputs if each.name not in known]
    changed = (
        each.path for each in inputs if known.get(each.name, (each.size, each.changed)) != (each.size, each.changed)
    )
    return new, tuple(changed)


def make_ingest_task(corpus: Corpus, writer: str) -> IngestTask:
    """The function that a worker runs on its input files; `writer` is the id in the names of its files."""

    def ingest_files(inputs: list[InputFile]) -> IngestResult:
        counts, flaws = Counts(), []
        with TableWriter(corpus.data, writer) as tables:
            for each in inputs:
                reader = write_rows(each, corpus, tables, each.path)
                mine = counts_of(reader)
                tables.add_row(INPUTS, InputRow.from_counts(each.name, each.size, each.changed, mine))
                counts += mine
                flaws += [reader.flaw] if reader.flaw else []
        return IngestResult(tables.files, counts, tuple(flaws))

    return ingest_files


def write_rows(
    input: InputFile, corpus: Corpus, tables: TableWriter, name: str, reader: RowReader | None = None
) -> RowReader:
    """Write the rows of one input to `tables`, and return its reader; `name` is that of the trace."""
    reader = reader or RowReader(name, input.path)
    day: date | None = None
    buckets: dict[str | None, int] = {None: SHARED_BUCKET}
    for row in reader.rows():
        if isinstance(row, Row):
            if day is None:
                assert reader.header is not None
                day = trace_date(reader.header, input)
            if row.group not in buckets:
                assert row.group is not None
                buckets[row.group] = corpus.bucket_of(row.group)
            *columns, is_unrelated = row
            tables.add_row(EVENTS, (*columns, day, UNRELATED_BUCKET if is_unrelated else buckets[row.group]))
        else:
            tables.add_row(QUARANTINE, row)
    if reader.header is not None:
        tables.add_row(TRACES, trace_row(reader, corpus))
    return reader


def counts_of(reader: RowReader) -> Counts:
    """The counts of the lines that were read."""
    return Counts(reader.lines, int(reader.header is not None), reader.events, reader.quarantined)


def trace_date(header: Header, input: InputFile) -> date:
    """The day of a trace: by `began` in its header, else by the last change of its file."""
    try:
        return datetime.fromisoformat(header.implementation.get("began", "")).date()
    except ValueError:
        return datetime.fromtimestamp(input.changed // 10**9, UTC).date()


def trace_row(reader: RowReader, corpus: Corpus) -> tuple[Any, ...]:
    """The row of a trace that was read, for the table of traces."""
    assert reader.header is not None
    header = reader.header
    sizes = bucket_sizes(reader, corpus)
    buckets = sorted(sizes)
    recording, part = recording_part_of(header)
    return (
        encodable_text(reader.trace),
        encodable_text(header.source),
        header.order.value,
        reader.header_line,
        reader.events,
        reader.lines,
        reader.quarantined,
        reader.flawed,
        reader.marked,
        encodable_text(recording),
        part,
        reader.continued,
        buckets,
        [sizes[bucket] for bucket in buckets],
    )


def bucket_sizes(reader: RowReader, corpus: Corpus) -> Counter[int]:
    """The number of events in each bucket, of those that concern one group or are unrelated to all."""
    sizes: Counter[int] = Counter()
    for group, events in reader.groups.items():
        sizes[corpus.bucket_of(group)] += events
    if reader.unrelated:
        sizes[UNRELATED_BUCKET] = reader.unrelated
    return sizes


def batch_by_size(inputs: Sequence[InputFile], limit: int) -> Iterator[list[InputFile]]:
    """Yield the inputs in batches of at most `limit` bytes; a larger input is a batch of its own."""
    batch: list[InputFile] = []
    size = 0
    for each in inputs:
        if batch and size + each.size > limit:
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += each.size
    if batch:
        yield batch
