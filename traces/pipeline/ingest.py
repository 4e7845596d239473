"""Ingest of trace files into a corpus: read strictly, written as Parquet, committed batch by batch."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
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
    """The files written for some inputs, and the counts of lines."""

    files: tuple[str, ...]
    counts: Counts


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """Counts of an ingest: lines, new input files, and input files that the corpus had already."""

    counts: Counts
    inputs: int
    already_ingested: int


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
    corpus.remove_uncommitted()
    new = new_inputs(corpus, [InputFile.from_path(path) for path in paths])
    total, done, counts = sum(each.size for each in new), 0, Counts()
    for inputs in batch_by_size(new, batch):
        base = done

        def report_part(part: int, parts: int, base: int = base, inputs: list[InputFile] = inputs) -> None:
            size = sum(each.size for each in inputs)
            progress(base + size * part // parts, total, f"{len(inputs)} files")

        receipts = map_parallel(spark, inputs, make_ingest_task(corpus), report_part)
        found = sum((each.counts for each in receipts), Counts())
        if not found.is_balanced:
            raise PipelineError(f"lines were lost: {asdict(found)}")
        files = tuple(name for each in receipts for name in each.files)
        corpus.commit(Batch(tuple(inputs), files, found))
        counts += found
        done += sum(each.size for each in inputs)
        progress(done, total, f"{counts.events} events")
    return IngestSummary(counts, len(new), len(paths) - len(new))


def new_inputs(corpus: Corpus, inputs: Sequence[InputFile]) -> list[InputFile]:
    """The inputs that were not ingested yet. Raises `PipelineError` for one that has changed since it was."""
    known = {each.path: each for batch in corpus.batches() for each in batch.inputs}
    for each in inputs:
        if each.path in known and known[each.path] != each:
            raise PipelineError(f"{each.path} was ingested before, and has changed since")
    return [each for each in inputs if each.path not in known]


def make_ingest_task(corpus: Corpus) -> Callable[[list[InputFile]], IngestResult]:
    """The function that a worker runs on its input files."""

    def ingest_files(inputs: list[InputFile]) -> IngestResult:
        counts = Counts()
        with TableWriter(corpus.folder) as writer:
            for each in inputs:
                counts += write_rows(each, corpus, writer)
                writer.close_if_many()
        return IngestResult(tuple(writer.files), counts)

    return ingest_files


def write_rows(input: InputFile, corpus: Corpus, writer: TableWriter) -> Counts:
    """Write the rows of one file to `writer`, and return its counts."""
    reader = RowReader(input.path)
    places: dict[str | None, str] = {}
    for row in reader.rows():
        if isinstance(row, Row):
            place = places.get(row.group)
            if place is None:
                assert reader.header is not None
                bucket = SHARED_BUCKET if row.group is None else corpus.bucket_of(row.group)
                values = (
                    ("source", reader.header.source),
                    ("date", trace_date(reader.header, input)),
                    ("bucket", bucket),
                )
                place = places[row.group] = partition_path(EVENTS, values)
            writer.add_row(place, row)
        else:
            writer.add_row(QUARANTINE, row)
    if reader.header is not None:
        writer.add_row(TRACES, trace_row(reader, corpus))
    return Counts(reader.lines, int(reader.header is not None), reader.events, reader.quarantined)


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
        reader.trace,
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
