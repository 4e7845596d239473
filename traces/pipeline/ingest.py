"""Ingest of trace files into a corpus: read strictly, written as Parquet, committed batch by batch."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from fencepost.model.errors import FencepostError
from fencepost.traces.events import Header
from fencepost.traces.files.rotating_writer import recording_part_of
from fencepost.traces.message_fields import encodable_text
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, Counts, InputFile, InputRow
from fencepost.traces.pipeline.files import Location, find_files, first_line, is_uri, resolve_location
from fencepost.traces.pipeline.parallel import HasSize, PartProgress, Spark, StageProgress, core_count, map_parallel
from fencepost.traces.pipeline.rows import (
    SHARED_BUCKET,
    UNRELATED_BUCKET,
    Row,
    RowReader,
    began_us,
)
from fencepost.traces.pipeline.tables import EVENTS, INPUTS, QUARANTINE, TRACES, TableWriter

BATCH_BYTES_PER_CORE = 1 << 28
"""Size of a batch in bytes of input for each core; a batch is committed as a whole."""
OpenInput: TypeAlias = Callable[[InputFile], AbstractContextManager[RowReader]]
"""Runs on a worker: makes an input a trace, for as long as its rows are read. Raises `FencepostError` and `OSError`."""
TRACE_SUFFIXES = (".jsonl", ".jsonl.gz")


@dataclass(frozen=True, slots=True)
class Source:
    """A kind of place that has inputs: `find` says which there are at a location, and raises `PipelineError` and
    `OSError`; `open` makes a trace of one. Both run on workers."""

    find: Callable[[Location], list[InputFile]]
    open: OpenInput


@dataclass(slots=True)
class IngestResult:
    """What a worker made of some inputs: files with their sizes in bytes, the names of the inputs in them, counts of
    lines, and for each input that could not be read, or not to its end, the place and the reason. Of the inputs that
    `failed`, each for a reason, there is nothing."""

    files: Mapping[str, int] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    flaws: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, other: "IngestResult") -> None:
        """Add what another worker made."""
        self.files = {**self.files, **other.files}
        self.inputs += other.inputs
        self.counts += other.counts
        self.flaws += other.flaws
        self.failed |= other.failed


class NamedInput(HasSize, Protocol):
    """An input, by its name in the table of inputs."""

    @property
    def name(self) -> str: ...


Input = TypeVar("Input", bound=NamedInput)
IngestTask: TypeAlias = Callable[[list[Input]], IngestResult]
"""Runs on a worker: writes the rows of some inputs."""


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """What came of an ingest: counts of lines, of new input files, and of files that the corpus had already. `flaws`
    name the files that could not be read, or not to their end, `changed` those that have changed since an ingest, and
    `failed` why some could not be imported. Of topics, `unended` are the traces that were left out because they are not
    over, and `records` is the number of records that were read."""

    counts: Counts = field(default_factory=Counts)
    inputs: int = 0
    already_ingested: int = 0
    flaws: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    unended: tuple[str, ...] = ()
    records: int = 0

    def __add__(self, other: "IngestSummary") -> "IngestSummary":
        return IngestSummary(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


def ingest(
    spark: Spark,
    corpus: Corpus,
    inputs: Sequence[InputFile],
    progress: StageProgress,
    batch: int | None = None,
    source: Source | None = None,
) -> IngestSummary:
    """Ingest the inputs that the corpus does not have yet, in batches of about `batch` bytes; by default there is
    `BATCH_BYTES_PER_CORE` for each core. Inputs are trace files, unless another `source` makes traces of them.

    `progress` is called with bytes done, bytes in total and a description. Raises `PipelineError`.
    """
    writer = corpus.start_writing()
    new, changed = new_inputs(corpus, inputs)
    task = make_ingest_task(corpus, writer.id, (source or TRACE_FILES).open)
    done, total, found = 0, sum(each.size for each in new), IngestResult()
    for some in batch_by_size(new, batch or BATCH_BYTES_PER_CORE * core_count(spark)):
        size, begun = sum(each.size for each in some), done

        def report_part(part: int, parts: int, size: int = size, begun: int = begun, count: int = len(some)) -> None:
            progress(begun + size * part // parts, total, f"{count} files")

        found.add(ingest_batch(spark, writer, some, task, report_part))
        done += size
        progress(done, total, f"{found.counts.events} events")
    known = len(inputs) - len(found.inputs) - len(changed) - len(found.failed)
    flaws, failed = tuple(found.flaws), tuple(found.failed.values())
    return IngestSummary(found.counts, len(found.inputs), known, flaws, changed, failed)


def ingest_batch(
    spark: Spark, writer: CorpusWriter, inputs: list[Input], task: IngestTask[Input], progress: PartProgress
) -> IngestResult:
    """Ingest some inputs and commit them. Those that another writer has committed meanwhile are left to it."""
    while inputs:
        found = IngestResult()
        for each in map_parallel(spark, inputs, task, progress):
            found.add(each)
        if not found.counts.is_balanced:
            raise PipelineError(f"lines were lost: {asdict(found.counts)}")
        taken = writer.append(found.inputs, found.files) if found.inputs else frozenset()
        if not taken:
            return found
        inputs = [each for each in inputs if each.name not in taken]
    return IngestResult()


def new_inputs(corpus: Corpus, inputs: Sequence[InputFile]) -> tuple[list[InputFile], tuple[str, ...]]:
    """The inputs that were not ingested yet, and the paths of those that have changed since they were."""
    known = {row.input: (row.size, row.changed) for row in corpus.inputs()}
    new = [each for each in inputs if each.name not in known]
    changed = (
        each.path for each in inputs if known.get(each.name, (each.size, each.changed)) != (each.size, each.changed)
    )
    return new, tuple(changed)


def make_ingest_task(corpus: Corpus, writer: str, open_input: OpenInput) -> IngestTask[InputFile]:
    """The function that a worker runs on its inputs; `writer` is the id in the names of its files."""

    def ingest_inputs(inputs: list[InputFile]) -> IngestResult:
        result = IngestResult()
        with TableWriter(corpus.data, writer) as tables:
            for each in inputs:
                with ExitStack() as stack:
                    try:
                        reader = stack.enter_context(open_input(each))
                    except (FencepostError, OSError) as error:
                        result.failed[each.name] = first_line(error)
                    else:
                        write_input(each, reader, corpus, tables, result)
        result.files = tables.files
        return result

    return ingest_inputs


def open_trace_file(input: InputFile) -> AbstractContextManager[RowReader]:
    """The trace that a file is."""
    return nullcontext(RowReader(input.path))


def write_input(input: InputFile, reader: RowReader, corpus: Corpus, tables: TableWriter, result: IngestResult) -> None:
    """Write the rows of an input, its own among them, and add what came of it to `result`."""
    write_rows(input, reader, corpus, tables)
    counts = counts_of(reader)
    tables.add_row(INPUTS, InputRow(input.name, input.size, input.changed, *astuple(counts)))
    result.inputs.append(input.name)
    result.counts += counts
    result.flaws += [reader.flaw] if reader.flaw else []


def write_rows(input: InputFile, reader: RowReader, corpus: Corpus, tables: TableWriter) -> None:
    """Write the rows of the trace that an input is."""
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


def counts_of(reader: RowReader) -> Counts:
    """The counts of the lines that were read."""
    return Counts(reader.lines, int(reader.header is not None), reader.events, reader.quarantined)


def trace_date(header: Header, input: InputFile) -> date:
    """The day of a trace: by `began` in its header, else by the last change of its file."""
    began = began_us(header)
    return datetime.fromtimestamp(input.changed // 10**9 if began is None else began // 10**6, UTC).date()


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


@dataclass(frozen=True, slots=True)
class Place:
    """A place that a worker lists, by its number; then also the inputs there, or why it cannot be listed."""

    number: int
    location: Location
    size: int = 1
    inputs: tuple[InputFile, ...] = ()
    flaw: str = ""


def find_inputs(spark: Spark, locations: Sequence[Location], source: Source | None = None) -> list[InputFile]:
    """The inputs at all locations, each once; workers list those that are no file of this machine. Raises
    `PipelineError` for a location without any."""
    check_inputs(locations)
    kind = source or TRACE_FILES

    def list_places(places: Sequence[Place]) -> list[Place]:
        listed = []
        for each in places:
            try:
                listed.append(replace(each, inputs=tuple(inputs_at(each.location, kind))))
            except (OSError, PipelineError) as error:
                listed.append(replace(each, flaw=first_line(error)))
        return listed

    places = [Place(number, resolve_location(each)) for number, each in enumerate(locations)]
    near = [each for each in places if isinstance(each.location, Path) and not each.location.is_dir()]
    far = [each for each in places if each not in near]
    listed = list_places(near)
    if far:
        listed += (each for part in map_parallel(spark, far, list_places, lambda *_: None) for each in part)
    found: dict[str, InputFile] = {}
    for place in sorted(listed, key=lambda each: each.number):
        if place.flaw:
            raise PipelineError(place.flaw)
        found.update((each.path, each) for each in place.inputs)
    return list(found.values())


def inputs_at(location: Location, source: Source) -> list[InputFile]:
    """The inputs at a location. Raises `PipelineError` if there is none, and `OSError`."""
    found = source.find(location)
    if not found:
        raise PipelineError(f"{location}: no input found")
    return found


def find_trace_files(location: Location) -> list[InputFile]:
    """The trace files at a location. Raises `PipelineError` and `OSError`."""
    every = find_files(location, TRACE_SUFFIXES)
    return [InputFile(*each) if is_uri(each.name) else InputFile.from_path(Path(each.name)) for each in every]


def check_inputs(paths: Sequence[Location]) -> None:
    """Raises `PipelineError` for a path of this machine that is not there."""
    for path in paths:
        if isinstance(path, Path) and not path.exists():
            raise PipelineError(f"{path}: there is no such file or folder")


TRACE_FILES = Source(find_trace_files, open_trace_file)
"""Files that are traces, or have them below."""
