"""A corpus: tables of Parquet files in a folder, and a log that says which of them count.

A change of the log is made as a whole or not at all, even if its writer is killed; the next writer removes the files
left behind. Several writers may be at work at the same time: an input is committed by one of them, and none removes
what another may still commit, or what a reader may still read.
"""

import json
import uuid
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from fencepost.traces.message_fields import encodable_text
from fencepost.traces.pipeline.corpus_log import (
    DATA,
    LOGS,
    PARTIAL_SUFFIX,
    READERS,
    WRITERS,
    CorpusLog,
    FileChange,
    LogSnapshot,
    open_log,
    write_new,
)
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.file_systems import (
    Location,
    file_sizes,
    find_files,
    join_location,
    open_parquet,
    read_text,
    remove_file,
    resolve_location,
    write_text,
)
from fencepost.traces.pipeline.schema import INPUTS, SCHEMAS, table_of
from fencepost.traces.pipeline.writers import register_writer

CORPUS_FORMAT = 5
CORPUS_FILE = "corpus.json"


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file: path, size in bytes and time of change when it was ingested."""

    path: str
    size: int
    changed: int
    """Time of the last change, in nanoseconds since 1970."""

    @classmethod
    def from_path(cls, path: Path) -> "InputFile":
        """The file at `path` as it is now. Raises `OSError`."""
        status = path.stat()
        return cls(str(path.resolve()), status.st_size, status.st_mtime_ns)

    @property
    def name(self) -> str:
        """The name in the table of inputs."""
        return str(encodable_text(self.path))


@dataclass(frozen=True, slots=True)
class Counts:
    """Lines read, and of these headers, events and quarantined lines."""

    lines: int = 0
    headers: int = 0
    events: int = 0
    quarantined: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.lines + other.lines,
            self.headers + other.headers,
            self.events + other.events,
            self.quarantined + other.quarantined,
        )

    @property
    def is_balanced(self) -> bool:
        """Whether every line is a header, an event or quarantined."""
        return self.lines == self.headers + self.events + self.quarantined


class InputRow(NamedTuple):
    """A row of the table of inputs: an input as it was, and the counts of its lines; of a seed of a campaign, its
    report as JSON; of a topic, the position of its next ingest as JSON."""

    input: str
    size: int
    changed: int
    lines: int
    headers: int
    events: int
    quarantined: int
    report: str | None = None

    @classmethod
    def from_counts(cls, input: str, size: int, changed: int, counts: Counts, report: str | None = None) -> "InputRow":
        """The row of an input with these counts."""
        return cls(input, size, changed, counts.lines, counts.headers, counts.events, counts.quarantined, report)

    @property
    def is_position(self) -> bool:
        """Whether the row is no input, but says where the next ingest of a topic goes on."""
        return self.report is not None and self.input.startswith("kafka://")

    @property
    def counts(self) -> Counts:
        """The counts of lines."""
        return Counts(self.lines, self.headers, self.events, self.quarantined)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus in a folder, or at a URI, with groups spread over `buckets` buckets. `committed` are the files of one
    version of its log; None stands for the newest."""

    folder: Location
    buckets: int
    format: str = "parquet"
    committed: LogSnapshot | None = None

    @classmethod
    def create(cls, folder: Location, buckets: int, format: str | None = None) -> "Corpus":
        """The corpus in `folder`, created if there is none: by default as plain Parquet, and at a URI as a Delta table.
        Raises `PipelineError` and `OSError`."""
        folder = resolve_location(folder)
        is_local = isinstance(folder, Path)
        form = format or ("parquet" if is_local else "delta")
        if file_sizes(folder, [CORPUS_FILE]) == [None]:
            log = open_log(folder, form)
            if has_other_files(folder):
                raise PipelineError(f"{folder} is neither empty nor a corpus")
            mark = log.create({"fencepost_corpus": CORPUS_FORMAT, "buckets": buckets, "format": form})
            write_mark(folder, mark)
        found = cls.open(folder)
        if format not in (None, found.format):
            raise PipelineError(
                f"{folder} is a corpus in the format {found.format}: "
                f"copy it with fencepost pipeline migrate --format {format}"
            )
        return found

    @classmethod
    def open(cls, folder: Location) -> "Corpus":
        """The corpus in `folder`. Raises `PipelineError`."""
        folder = resolve_location(folder)
        mark = read_mark(folder)
        version = mark["fencepost_corpus"]
        if version != CORPUS_FORMAT:
            raise PipelineError(
                f"{folder} has corpus format {version}; this Fencepost reads {CORPUS_FORMAT}: "
                "copy it with fencepost pipeline migrate"
            )
        if mark["format"] not in LOGS:
            raise PipelineError(f"{folder} is a corpus in the format {mark['format']}, which is not known here")
        return cls(folder, mark["buckets"], mark["format"])

    @property
    def data(self) -> Location:
        """The folder of the tables."""
        return join_location(self.folder, DATA)

    @property
    def log(self) -> CorpusLog:
        """The record of the files that count, in the format of this corpus."""
        return open_log(self.folder, self.format)

    def snapshot(self) -> "Corpus":
        """The corpus as it is now, whatever is committed later."""
        return replace(self, committed=self.log.read())

    def files(self, table: str) -> list[str]:
        """The locations of the files of a table."""
        return [name for name, _ in self.sized_files(table)]

    def sized_files(self, table: str) -> list[tuple[str, int]]:
        """The locations of the files of a table, with their sizes in bytes."""
        known = (self.committed or self.log.read()).files
        return [(str(join_location(self.data, name)), size) for name, size in known.items() if table_of(name) == table]

    def size(self) -> int:
        """The size of the files of all tables in bytes."""
        return sum((self.committed or self.log.read()).files.values())

    def input_rows(self) -> Iterator[InputRow]:
        """Yield the rows of the table of inputs: the inputs, and where ingests of topics go on."""
        return (row for name in self.files(INPUTS) for row in read_inputs(name))

    def inputs(self) -> list[InputRow]:
        """The inputs that were ingested."""
        return [row for row in self.input_rows() if not row.is_position]

    def bucket_of(self, group: str) -> int:
        """The bucket of a group, from 0."""
        return zlib.crc32(group.encode("utf-8", "surrogatepass")) % self.buckets

    @contextmanager
    def read(self) -> Iterator["Corpus"]:
        """A snapshot whose files stay for as long as the block lasts."""
        with ExitStack() as stack:
            if isinstance(self.folder, Path):  # at a URI, a Delta table keeps its files for a week
                with suppress(PermissionError):  # then nobody sweeps it from here
                    stack.enter_context(register_writer(self.folder / READERS))
            yield self.snapshot()

    @contextmanager
    def write(self) -> Iterator["CorpusWriter"]:
        """A writer, for as long as the block lasts. Removes what killed writers left."""
        folder = self.folder
        with register_writer(folder / WRITERS) if isinstance(folder, Path) else nullcontext(uuid.uuid4().hex) as id:
            writer = CorpusWriter(replace(self, committed=None), id)
            writer.corpus.log.remove_abandoned()
            yield writer


@dataclass(frozen=True, slots=True)
class CorpusWriter:
    """A process that writes to a corpus. The names of its files begin with `id`."""

    corpus: Corpus
    id: str
    known: dict[str, frozenset[str]] = field(default_factory=dict)
    """The inputs in each file of the table of inputs, as far as they were read."""

    def append(self, inputs: Collection[str], files: Mapping[str, int], needed: Collection[str] = ()) -> frozenset[str]:
        """Commit files with the rows of some inputs, unless another writer has committed some of these: then remove
        the files.

        Returns these inputs. Raises `PipelineError` if a file is not there as it was written, or if one of the inputs
        that are `needed` was taken out.
        """
        check_files(self.corpus.data, files)
        while True:
            now = self.corpus.snapshot()
            known = self.committed_inputs(now)
            if not known.issuperset(needed):
                self.remove_files(files)
                raise PipelineError(f"{', '.join(needed)} was taken out of {self.corpus.folder} meanwhile: try again")
            taken = known.intersection(inputs)
            if taken:
                self.remove_files(files)
                return taken
            if self.commit(FileChange(files), now):
                return frozenset()

    def replace(self, removed: Collection[str], added: Mapping[str, int], *, is_rewrite: bool) -> bool:
        """Commit files in the place of others. Returns False, and removes them, if another writer has replaced some of
        those meanwhile."""
        while True:
            now = self.corpus.snapshot()
            if now.committed is None or not now.committed.files.keys() >= set(removed):
                self.remove_files(added)
                return False
            if self.commit(FileChange(added, removed, is_rewrite), now):
                return True

    def commit(self, change: FileChange, after: Corpus) -> bool:
        """Append a change to the log, unless there is another one after `after`."""
        assert after.committed is not None
        return self.corpus.log.append(change, after.committed.version)

    def committed_inputs(self, corpus: Corpus) -> frozenset[str]:
        """The names of the inputs of a snapshot."""
        names = corpus.files(INPUTS)
        for name in names:
            if name not in self.known:
                self.known[name] = frozenset(row.input for row in read_inputs(name))
        return frozenset().union(*(self.known[name] for name in names))

    def remove_files(self, names: Collection[str]) -> None:
        """Remove files that were not committed."""
        for name in names:
            remove_file(join_location(self.corpus.data, name))


def has_other_files(folder: Location) -> bool:
    """Whether a folder has files that no corpus begins with. Raises `PipelineError`."""
    if isinstance(folder, Path):
        return folder.exists() and any(each.name != DATA and each.suffix != PARTIAL_SUFFIX for each in folder.iterdir())
    tables = f"{folder.partition('?')[0]}/{DATA}/"
    return any(not unquote(each.uri).startswith(unquote(tables)) for each in find_files(folder))


def write_mark(folder: Location, mark: Mapping[str, Any]) -> None:
    """Write corpus.json, unless another has. At a URI each writes what the log says, so all write the same."""
    if isinstance(folder, Path):
        write_new(folder / CORPUS_FILE, mark)
    else:
        write_text(join_location(folder, CORPUS_FILE), f"{json.dumps(mark, indent=1)}\n")


def read_mark(folder: Location) -> dict[str, Any]:
    """What corpus.json says. Raises `PipelineError`."""
    path = join_location(folder, CORPUS_FILE)
    try:
        found = json.loads(read_text(path))
        mark = {"fencepost_corpus": found["fencepost_corpus"], "buckets": int(found["buckets"])}
        mark["format"] = found.get("format", "parquet")
    except FileNotFoundError:
        raise PipelineError(f"{folder} is not a corpus: make one with fencepost pipeline ingest") from None
    except (ValueError, KeyError, TypeError):
        raise PipelineError(f"{path} is damaged") from None
    return mark


def read_inputs(path: Location) -> Iterator[InputRow]:
    """Yield the rows of a file of the table of inputs."""
    for batch in open_parquet(path).iter_batches(columns=SCHEMAS[INPUTS].names):
        yield from (InputRow(**row) for row in batch.to_pylist())


def check_files(folder: Location, files: Mapping[str, int]) -> None:
    """Raises `PipelineError` if a file that a worker wrote is not there, or has another size."""
    for (name, size), found in zip(files.items(), file_sizes(folder, files), strict=True):
        path = join_location(folder, name)
        if found is None:
            raise PipelineError(
                f"{path}, which a worker wrote, is not there: {folder} must be the same folder on all nodes"
            )
        if found != size:
            raise PipelineError(f"{path} has {found} bytes; the worker that wrote it says {size}")
