"""From trace files to a corpus: read strictly, written as Parquet, committed batch by batch."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from fencepost.traces.events import Header
from fencepost.traces.files.rotating_writer import part_of
from fencepost.traces.pipeline.corpus import (
    EVENTS,
    QUARANTINE,
    TRACES,
    Batch,
    Corpus,
    Counts,
    Input,
    by_size,
    partition,
)
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.message_fields import text
from fencepost.traces.pipeline.parallel import fan_out
from fencepost.traces.pipeline.row_reader import SHARED, Reader, Row
from fencepost.traces.pipeline.schema import Writer

BATCH = 1 << 30
"""About how many bytes of input are committed at once."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of some input: the files written, and the lines."""

    files: tuple[str, ...]
    counts: Counts


@dataclass(frozen=True, slots=True)
class Ingested:
    """What an ingest did: what was new, what was there before, and how many lines a reason was given for."""

    counts: Counts
    inputs: int
    known: int


def ingest(
    spark: SparkSession,
    corpus: Corpus,
    paths: Sequence[Path],
    tell: Callable[[int, int, str], None],
    batch: int = BATCH,
) -> Ingested:
    """Read trace files that the corpus does not have yet. `tell` hears of bytes done, bytes in all, and what is read.

    Raises `PipelineError`.
    """
    corpus.sweep()
    new = unknown(corpus, [Input.of(path) for path in paths])
    total, done, counts = sum(each.size for each in new), 0, Counts()
    for inputs in by_size(new, batch):
        base = done

        def told(part: int, parts: int, base: int = base, inputs: list[Input] = inputs) -> None:
            size = sum(each.size for each in inputs)
            tell(base + size * part // parts, total, f"{len(inputs)} files")

        receipts = fan_out(spark, inputs, reads(corpus), told)
        found = sum((each.counts for each in receipts), Counts())
        if not found.balanced:
            raise PipelineError(f"lines were lost: {asdict(found)}")
        files = tuple(name for each in receipts for name in each.files)
        corpus.commit(Batch(tuple(inputs), files, found))
        counts += found
        done += sum(each.size for each in inputs)
        tell(done, total, f"{counts.events} events")
    return Ingested(counts, len(new), len(paths) - len(new))


def unknown(corpus: Corpus, inputs: Sequence[Input]) -> list[Input]:
    """Those that were not read yet. Raises `PipelineError` for one that was and is not what it was."""
    known = {each.path: each for batch in corpus.batches() for each in batch.inputs}
    for each in inputs:
        if each.path in known and known[each.path] != each:
            raise PipelineError(f"{each.path} was ingested before, and has changed since")
    return [each for each in inputs if each.path not in known]


def reads(corpus: Corpus) -> Callable[[list[Input]], Receipt]:
    """What a worker does with its files."""

    def read(inputs: list[Input]) -> Receipt:
        counts = Counts()
        with Writer(corpus.folder) as writer:
            for each in inputs:
                counts += written(each, corpus, writer)
                writer.rest()
        return Receipt(tuple(writer.files), counts)

    return read


def written(input: Input, corpus: Corpus, writer: Writer) -> Counts:
    """Write all that a file says."""
    reader = Reader(input.path)
    places: dict[str | None, str] = {}
    for row in reader.rows():
        if isinstance(row, Row):
            place = places.get(row.group)
            if place is None:
                assert reader.header is not None
                bucket = SHARED if row.group is None else corpus.bucket(row.group)
                values = (("source", reader.header.source), ("date", day(reader.header, input)), ("bucket", bucket))
                place = places[row.group] = partition(EVENTS, values)
            writer.add(place, row)
        else:
            writer.add(QUARANTINE, row)
    if reader.header is not None:
        writer.add(TRACES, summary(reader, corpus))
    return Counts(reader.lines, int(reader.header is not None), reader.events, reader.quarantined)


def day(header: Header, input: Input) -> str:
    """The day of a trace: when it began, if its header says so, else when its file was last written."""
    try:
        return datetime.fromisoformat(header.implementation.get("began", "")).date().isoformat()
    except ValueError:
        return datetime.fromtimestamp(input.changed // 10**9, UTC).date().isoformat()


def summary(reader: Reader, corpus: Corpus) -> tuple[Any, ...]:
    """The row of a trace."""
    assert reader.header is not None
    header = reader.header
    sizes: Counter[int] = Counter()
    for group, events in reader.groups.items():
        sizes[corpus.bucket(group)] += events
    buckets = sorted(sizes)
    recording, part = part_of(header)
    return (
        reader.trace,
        text(header.source),
        header.order.value,
        reader.header_line,
        reader.events,
        reader.lines,
        reader.quarantined,
        reader.flawed,
        reader.marked,
        text(recording),
        part,
        reader.continued,
        buckets,
        [sizes[bucket] for bucket in buckets],
    )
