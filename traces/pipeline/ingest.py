"""Ingest of trace files into a corpus: read strictly, written as Parquet, committed batch by batch."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from fencepost.traces.events import Header
from fencepost.traces.files.rotating_writer import recording_part_of
from fencepost.traces.message_fields import encodable_text
from fencepost.traces.pipeline.corpus import (
    EVENTS,
    QUARANTINE,
    TRACES,
    Batch,
    Corpus,
    CorpusWriter,
    Counts,
    InputFile,
    batch_by_size,
    partition_path,
)
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.parallel import map_parallel
from fencepost.traces.pipeline.row_reader import SHARED_BUCKET, Row, RowReader
from fencepost.traces.pipeline.schema import TableWriter

DEFAULT_BATCH_BYTES = 1 << 30
"""Size of a batch in bytes of input."""


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The files written for some inputs with their sizes in bytes, the counts of lines, and for each input that could
    not be read, or not to its end, the place and the reason."""

    files: Mapping[str, int]
    counts: Counts
    flaws: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """What came of an ingest: counts of lines, of new input files, and of files that the corpus had already. `flaws`
    name the files that could not be read, or not to their end, `changed` those that have changed since an ingest."""

    counts: Counts
    inputs: int
    already_ingested: int
    flaws: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def ingest(
    spark: SparkSession,
    corpus: Corpus,
    paths: Sequence[Path],
    progress: Callable[[int, int, str], None],
    batch: int = DEFAULT_BATCH_BYTES,
) -> IngestSummary:
    """Ingest the files in `paths` that the corpus does not have yet, in batches of about `batch` bytes.

    `progress` is called with bytes done, bytes in total and a description. Raises `PipelineError`.
    """
    with corpus.write() as writer:
        new, changed = new_inputs(corpus, [InputFile.from_path(path) for path in paths])
        job = IngestJob(spark, writer, sum(each.size for each in new), progress)
        for inputs in batch_by_size(new, batch):
            job.ingest_batch(inputs)
    read = job.inputs
    return IngestSummary(job.counts, read, len(paths) - read - len(changed), tuple(job.flaws), changed)


@dataclass(slots=True)
class IngestJob:
    """An ingest while it goes on; `total` is in bytes."""

    spark: SparkSession
    writer: CorpusWriter
    total: int
    progress: Callable[[int, int, str], None]
    done: int = 0
    counts: Counts = field(default_factory=Counts)
    inputs: int = 0
    flaws: list[str] = field(default_factory=list)

    def ingest_batch(self, inputs: list[InputFile]) -> None:
        """Ingest some files and commit them. Those that another writer has committed meanwhile are left to it."""
        size = sum(each.size for each in inputs)

        def report_part(part: int, parts: int) -> None:
            self.progress(self.done + size * part // parts, self.total, f"{len(inputs)} files")

        while inputs:
            results = map_parallel(self.spark, inputs, make_ingest_task(self.writer), report_part)
            found = sum((each.counts for each in results), Counts())
            if not found.is_balanced:
                raise PipelineError(f"lines were lost: {asdict(found)}")
            files = {name: bytes for each in results for name, bytes in each.files.items()}
            taken = self.writer.commit(Batch(tuple(inputs), files, found))
            if not taken:
                self.counts += found
                self.inputs += len(inputs)
                self.flaws += (flaw for each in results for flaw in each.flaws)
                break
            inputs = [each for each in inputs if each not in taken]
        self.done += size
        self.progress(self.done, self.total, f"{self.counts.events} events")


def new_inputs(corpus: Corpus, inputs: Sequence[InputFile]) -> tuple[list[InputFile], tuple[str, ...]]:
    """The inputs that were not ingested yet, and the paths of those that have changed since they were."""
    known = {each.path: each for batch in corpus.batches() for each in batch.inputs}
    new = [each for each in inputs if each.path not in known]
    return new, tuple(each.path for each in inputs if known.get(each.path, each) != each)


def make_ingest_task(
    writer: CorpusWriter, name_trace: Callable[[str], str] = str
) -> Callable[[list[InputFile]], IngestResult]:
    """The function that a worker runs on its input files; `name_trace` gives the name of a trace by the path of its
    file."""

    def ingest_files(inputs: list[InputFile]) -> IngestResult:
        counts, flaws = Counts(), []
        with TableWriter(writer.corpus.folder, writer.id) as tables:
            for each in inputs:
                reader = write_rows(each, writer.corpus, tables, name_trace(each.path))
                counts += Counts(reader.lines, int(reader.header is not None), reader.events, reader.quarantined)
                flaws += [reader.flaw] if reader.flaw else []
                tables.close_if_many()
        return IngestResult(tables.files, counts, tuple(flaws))

    return ingest_files


def write_rows(input: InputFile, corpus: Corpus, tables: TableWriter, name: str) -> RowReader:
    """Write the rows of one file to `tables`, and return its reader; `name` is that of the trace."""
    reader = RowReader(name, input.path)
    places: dict[str | None, str] = {}
    for row in reader.rows():
        if isinstance(row, Row):
            place = places.get(row.group)
            if place is None:
                assert reader.header is not None
                bucket = SHARED_BUCKET if row.group is None else corpus.bucket_of(row.group)
                values = (("date", trace_date(reader.header, input)), ("bucket", bucket))
                place = places[row.group] = partition_path(EVENTS, values)
            tables.add_row(place, row)
        else:
            tables.add_row(QUARANTINE, row)
    if reader.header is not None:
        tables.add_row(TRACES, trace_row(reader, corpus))
    return reader


def trace_date(header: Header, input: InputFile) -> str:
    """The day of a trace (ISO 8601): by `began` in its header, else by the last change of its file."""
    try:
        return datetime.fromisoformat(header.implementation.get("began", "")).date().isoformat()
    except ValueError:
        return datetime.fromtimestamp(input.changed // 10**9, UTC).date().isoformat()


def trace_row(reader: RowReader, corpus: Corpus) -> tuple[Any, ...]:
    """The row of a trace that was read, for the table of traces."""
    assert reader.header is not None
    header = reader.header
    sizes: Counter[int] = Counter()
    for group, events in reader.groups.items():
        sizes[corpus.bucket_of(group)] += events
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
