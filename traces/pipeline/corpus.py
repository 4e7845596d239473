"""A corpus: tables of Parquet files, and a Delta table whose log says which of them count.

Workers write the files, and the driver commits them: a change is made as a whole or not at all, even if its writer is
killed. Several writers may be at work at the same time: an input is committed by one of them. Files that do not count
stay for a week, so that none removes what another may still commit, or what a reader may still read.

A folder of the same Parquet files without a log is a corpus, too: all its files count, and it can be read only.
"""

import json
import re
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from deltalake import CommitProperties, DeltaTable, WriterProperties
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from fencepost.traces.message_fields import encodable_text
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.files import (
    Location,
    SizedFile,
    file_sizes,
    find_files,
    is_uri,
    join_location,
    name_below,
    open_parquet,
    remove_file,
    resolve_location,
)
from fencepost.traces.pipeline.rows import bucket_of
from fencepost.traces.pipeline.tables import (
    DELTA_SCHEMA,
    INPUTS,
    ROW_GROUP_SIZE,
    SCHEMAS,
    TABLE_COLUMN,
    TABLES,
    table_of,
)

CORPUS_FORMAT = 7
DATA = "data"
"""The folder of the tables and their log."""
MARK_PROPERTY = "fencepost.corpus"
"""The property of the Delta table with the format and the number of buckets of the corpus, as JSON."""
FULL_FILE_BYTES = 128 << 20
"""Size up to which small files are put together."""
REWRITTEN = WriterProperties(compression="ZSTD", max_row_group_size=ROW_GROUP_SIZE)
"""How Delta's library writes the files that it makes of others."""


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
        return Counts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

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

    @property
    def is_position(self) -> bool:
        """Whether the row is no input, but says where the next ingest of a topic goes on."""
        return self.report is not None and self.input.startswith("kafka://")

    @property
    def counts(self) -> Counts:
        """The counts of lines."""
        return Counts(self.lines, self.headers, self.events, self.quarantined)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files that count in one version of a corpus, by name, with their sizes in bytes."""

    version: int
    files: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus in a folder, or at a URI, with groups spread over `buckets` buckets; 0 stands for a folder without a
    log, whose buckets are not known. `committed` are the files of one version; None stands for the newest."""

    folder: Location
    buckets: int
    committed: Snapshot | None = None

    @classmethod
    def create(cls, folder: Location, buckets: int) -> "Corpus":
        """The corpus in `folder`, created if there is none. Raises `PipelineError`."""
        folder = resolve_location(folder)
        data = join_location(folder, DATA)
        if read_mark(folder) is None:
            if any(not name_below(each.name, folder).startswith(f"{DATA}/") for each in find_files(folder)):
                raise PipelineError(f"{folder} is neither empty nor a corpus")
            with as_delta_error(folder):
                if isinstance(data, Path):
                    data.mkdir(parents=True, exist_ok=True)
                DeltaTable.create(
                    str(data),
                    DELTA_SCHEMA,
                    mode="ignore",  # of two that create it at once, the first says how many buckets there are
                    partition_by=[TABLE_COLUMN],
                    configuration={MARK_PROPERTY: json.dumps({"format": CORPUS_FORMAT, "buckets": buckets})},
                    raise_if_key_not_exists=False,
                    storage_options=storage_options(data),
                )
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Location) -> "Corpus":
        """The corpus in `folder`. Raises `PipelineError`."""
        folder = resolve_location(folder)
        mark = read_mark(folder)
        if mark is None:
            files = {name_below(each.name, folder): each.size for each in find_files(folder, (".parquet",))}
            tables = {name: size for name, size in files.items() if table_of(name) in TABLES}
            if not tables:
                raise PipelineError(f"{folder} is not a corpus: make one with fencepost pipeline ingest")
            return cls(folder, 0, Snapshot(0, tables))
        if mark.get("format") != CORPUS_FORMAT:
            raise PipelineError(
                f"{folder} has corpus format {mark.get('format')}; this Fencepost reads {CORPUS_FORMAT}: "
                "ingest its inputs anew"
            )
        return cls(folder, mark["buckets"])

    @property
    def data(self) -> Location:
        """The folder of the tables."""
        return join_location(self.folder, DATA) if self.buckets else self.folder

    def snapshot(self) -> "Corpus":
        """The corpus as it is now, whatever is committed later."""
        return replace(self, committed=self.read_log())

    def read_log(self) -> Snapshot:
        """The files that count now. Raises `PipelineError` if the table has deletion vectors or renamed columns."""
        if not self.buckets:
            assert self.committed is not None
            return self.committed
        table = open_table(self.folder)
        if table.protocol().min_reader_version > 1:
            raise PipelineError(
                f"{self.folder} is a Delta table with features that Fencepost does not read (deletion vectors, column "
                "mapping): switch them off, and run REORG TABLE ... APPLY (PURGE)"
            )
        actions = table.get_add_actions(flatten=True)
        names, sizes = actions["path"].to_pylist(), actions["size_bytes"].to_pylist()
        return Snapshot(table.version(), dict(zip(names, sizes, strict=True)))

    def files(self, table: str) -> list[str]:
        """The locations of the files of a table."""
        return [each.location for each in self.sized_files(table)]

    def sized_files(self, table: str) -> list[SizedFile]:
        """The files of a table."""
        known = (self.committed or self.read_log()).files
        mine = {name: size for name, size in known.items() if table_of(name) == table}
        return [SizedFile(str(join_location(self.data, name)), size) for name, size in mine.items()]

    def size(self) -> int:
        """The size of the files of all tables in bytes."""
        return sum((self.committed or self.read_log()).files.values())

    def input_rows(self) -> Iterator[InputRow]:
        """Yield the rows of the table of inputs: the inputs, and where ingests of topics go on."""
        return (row for name in self.files(INPUTS) for row in read_inputs(name))

    def inputs(self) -> list[InputRow]:
        """The inputs that were ingested."""
        return [row for row in self.input_rows() if not row.is_position]

    def bucket_of(self, group: str) -> int:
        """The bucket of a group, from 0."""
        return bucket_of(group, self.buckets)

    def start_writing(self) -> "CorpusWriter":
        """A writer. Removes files that have not counted for a week: those of killed writers, too."""
        if not self.buckets:
            raise PipelineError(f"{self.folder} has no log: it can be judged, queried and extracted from only")
        with as_delta_error(self.folder):
            open_table(self.folder).vacuum(dry_run=False, full=True)
        return CorpusWriter(replace(self, committed=None), uuid.uuid4().hex)


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
            if self.commit(files, now):
                return frozenset()

    def commit(self, files: Mapping[str, int], after: Corpus) -> bool:
        """Make `files` count in the version that follows that of `after`. Returns False, and does nothing, if there is
        one already: on an object store a version is written only if there is none yet."""
        assert after.committed is not None
        now = int(time.time() * 1000)
        added: list[AddAction | RemoveAction] = [
            AddAction(name, size, {TABLE_COLUMN: table_of(name)}, now, True, "{}") for name, size in files.items()
        ]
        try:
            open_table(self.corpus.folder, after.committed.version).create_write_transaction(
                added,
                "append",
                DELTA_SCHEMA,
                [TABLE_COLUMN],
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except CommitFailedError:
            return False
        return True

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


def compact(corpus: Corpus) -> tuple[int, int]:
    """Put the small files of each table together, and return the numbers of files before and after. Raises
    `PipelineError`, also if another process has replaced some of them meanwhile."""
    writer = corpus.start_writing()
    before = writer.corpus.read_log()
    with as_delta_error(corpus.folder):
        open_table(corpus.folder, before.version).optimize.compact(
            target_size=FULL_FILE_BYTES, writer_properties=REWRITTEN
        )
    return len(before.files), len(writer.corpus.read_log().files)


def forget(corpus: Corpus, name: str) -> Counts:
    """Take an input with all its rows out of a corpus, and return the counts of its lines.

    Raises `PipelineError` if the corpus does not have it.
    """
    writer = corpus.start_writing()
    rows = list(writer.corpus.input_rows())
    text = find_name(str(encodable_text(name)), [row.input for row in rows])
    counts = [row.counts for row in rows if row.input == text or row.input.startswith(f"{text}/")]
    if not counts:
        raise PipelineError(f"{corpus.folder} has no input {name}: fencepost pipeline inputs lists them")
    quoted = text.replace("'", "''")
    mine = (f"{column} = '{quoted}' OR starts_with({column}, '{quoted}/')" for column in ("input", "trace"))
    with as_delta_error(corpus.folder):
        open_table(corpus.folder).delete(" OR ".join(mine), writer_properties=REWRITTEN)
    return sum(counts, Counts())


def find_name(given: str, known: Collection[str]) -> str:
    """The name that a corpus has for an input, or a trace, which may be given as its path was; else what was given."""
    whole = given if is_uri(given) else str(Path(given).resolve())
    alike = [name for name in known if whole in (name, name.rpartition("#")[0])]
    return given if given in known or len(alike) != 1 else alike[0]


def open_table(folder: Location, version: int | None = None) -> DeltaTable:
    """The Delta table of the corpus in a folder, as it was in a version. Raises `PipelineError`."""
    data = join_location(folder, DATA)
    with as_delta_error(folder):
        return DeltaTable(str(data), version=version, storage_options=storage_options(data))


def read_mark(folder: Location) -> dict[str, Any] | None:
    """The format and the number of buckets of the corpus in a folder; None if there is no Delta table. Raises
    `PipelineError`."""
    try:
        found = json.loads(open_table(folder).metadata().configuration.get(MARK_PROPERTY, "{}"))
    except TableNotFoundError:
        return None
    return dict(found)


def storage_options(place: Location) -> dict[str, str] | None:
    """What Delta's library has to know of a place beside the environment: the server that this names may do without
    TLS."""
    return {"AWS_ALLOW_HTTP": "true"} if is_uri(place) and str(place).startswith("s3://") else None


@contextmanager
def as_delta_error(folder: Location) -> Iterator[None]:
    """Turn errors of Delta's library in this block into `PipelineError`, but for a table that is not there."""
    try:
        yield
    except TableNotFoundError:
        raise
    except CommitFailedError:
        raise PipelineError(f"another process has changed {folder} meanwhile: try again") from None
    except (DeltaError, OSError) as error:
        raise PipelineError(f"{folder}: {plain_line(error)}") from None


def plain_line(error: BaseException) -> str:
    """The first line and the last of what Delta's library says of an error, which may be a chain in colours."""
    lines = [re.sub(r"\x1b\[[0-9;]*m|↳", "", line).strip() for line in str(error).splitlines()]
    told = list(dict.fromkeys(line for line in lines if line))
    return ": ".join([*told[:1], *told[1:][-1:]]) or type(error).__name__


def read_inputs(path: Location) -> Iterator[InputRow]:
    """Yield the rows of a file of the table of inputs."""
    for batch in open_parquet(path).iter_batches(columns=SCHEMAS[INPUTS].names):
        yield from (InputRow(**row) for row in batch.select(SCHEMAS[INPUTS].names).to_pylist())


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
