"""A corpus on disk: tables of Parquet files, and a manifest of the batches that were committed.

Only files that a manifest names count. So a batch is committed as a whole or not at all, even if its writer is killed;
the next writer removes the files left behind. Several writers may be at work at the same time: an input is committed by
one of them, and none removes what another may still commit.
"""

import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.writers import hold_lock, living_writers, register_writer, writer_of

CORPUS_FORMAT = 4
READABLE_FORMATS = (3, CORPUS_FORMAT)
"""Format 3 has the source of a trace in the path of its events; it is read, and not written to."""
CORPUS_FILE = "corpus.json"
MANIFEST, WRITERS = "manifest", "writers"
COMMIT_LOCK = "commit.lock"
STAGING = "staging"
"""Folders of this name hold what writers do not keep, each under the writer's id."""
EVENTS, QUARANTINE, TRACES = "events", "quarantine", "traces"
TABLES = (EVENTS, QUARANTINE, TRACES)


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


@dataclass(frozen=True, slots=True)
class Batch:
    """Input files, and the files of the corpus that hold their rows, with their sizes in bytes."""

    inputs: tuple[InputFile, ...]
    files: Mapping[str, int | None]
    """By name; the size is None in corpora of older versions."""
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus in a folder; `buckets` is the number of buckets that groups are spread over. A snapshot has the
    `committed` batches of one moment."""

    folder: Path
    buckets: int
    committed: tuple[Batch, ...] | None = None
    format: int = CORPUS_FORMAT

    @classmethod
    def create(cls, folder: Path, buckets: int) -> "Corpus":
        """The corpus in `folder`, created if there is none. Raises `PipelineError` and `OSError`."""
        folder = resolve_folder(folder)
        if not (folder / CORPUS_FILE).exists():
            if folder.exists() and any(each.name not in (MANIFEST, WRITERS, *TABLES) for each in folder.iterdir()):
                raise PipelineError(f"{folder} is neither empty nor a corpus")
            for table in (MANIFEST, *TABLES):
                (folder / table).mkdir(parents=True, exist_ok=True)
            with hold_lock(folder / MANIFEST / COMMIT_LOCK):
                if not (folder / CORPUS_FILE).exists():
                    write_atomically(folder / CORPUS_FILE, {"fencepost_corpus": CORPUS_FORMAT, "buckets": buckets})
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> "Corpus":
        """The corpus in `folder`. Raises `PipelineError`."""
        folder = resolve_folder(folder)
        try:
            found = json.loads((folder / CORPUS_FILE).read_text(encoding="utf-8"))
            version, buckets = found["fencepost_corpus"], int(found["buckets"])
        except FileNotFoundError:
            raise PipelineError(f"{folder} is not a corpus: make one with fencepost pipeline ingest") from None
        except (ValueError, KeyError, TypeError):
            raise PipelineError(f"{folder / CORPUS_FILE} is damaged") from None
        if version not in READABLE_FORMATS:
            formats = " and ".join(map(str, READABLE_FORMATS))
            raise PipelineError(f"{folder} has corpus format {version}; this Fencepost reads {formats}")
        return cls(folder, buckets, format=version)

    def batches(self) -> Sequence[Batch]:
        """The committed batches, in order."""
        if self.committed is not None:
            return self.committed
        found = []
        for path in sorted((self.folder / MANIFEST).glob("*.json")):
            row = json.loads(path.read_text(encoding="utf-8"))
            inputs = tuple(InputFile(**each) for each in row["inputs"])
            sizes = row["files"] if isinstance(row["files"], dict) else dict.fromkeys(row["files"])
            found.append(Batch(inputs, sizes, Counts(**row["counts"])))
        return found

    def snapshot(self) -> "Corpus":
        """The corpus as it is now, whatever is committed later."""
        return replace(self, committed=tuple(self.batches()))

    def files(self, table: str) -> list[str]:
        """The paths of the committed files of a table."""
        names = (name for batch in self.batches() for name in batch.files)
        return [str(self.folder / name) for name in names if name.startswith(f"{table}/")]

    def bucket_of(self, group: str) -> int:
        """The bucket of a group, from 0."""
        return zlib.crc32(group.encode("utf-8", "surrogatepass")) % self.buckets

    @contextmanager
    def write(self) -> Iterator["CorpusWriter"]:
        """A writer, for as long as the block lasts. Removes what killed writers left. Raises `PipelineError` for a
        corpus of an older format."""
        if self.format != CORPUS_FORMAT:
            raise PipelineError(
                f"{self.folder} has corpus format {self.format}, which is only read: ingest its traces into another"
            )
        with register_writer(self.folder / WRITERS) as id:
            writer = CorpusWriter(replace(self, committed=None), id)
            writer.remove_abandoned()
            try:
                yield writer
            finally:
                shutil.rmtree(writer.staging, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class CorpusWriter:
    """A process that writes to a corpus. The names of its files begin with `id`."""

    corpus: Corpus
    id: str

    @property
    def staging(self) -> Path:
        """A folder for files that are not kept; the caller makes it."""
        return self.corpus.folder / STAGING / self.id

    def commit(self, batch: Batch) -> frozenset[InputFile]:
        """Commit a batch, unless another writer has committed some of its inputs: then remove its files.

        Returns these inputs. Raises `PipelineError` if a file of the batch is not there as it was written.
        """
        folder = self.corpus.folder
        for name, size in batch.files.items():
            check_file(folder, name, size)
        with hold_lock(folder / MANIFEST / COMMIT_LOCK):
            known = {each.path for other in self.corpus.batches() for each in other.inputs}
            taken = frozenset(each for each in batch.inputs if each.path in known)
            if not taken:
                number = 1 + max((int(path.stem) for path in (folder / MANIFEST).glob("*.json")), default=0)
                write_atomically(folder / MANIFEST / f"{number:08}.json", asdict(batch), only_new=True)
        if taken:
            for name in batch.files:
                (folder / name).unlink(missing_ok=True)
        return taken

    def remove_abandoned(self) -> None:
        """Remove files that no manifest names and no living writer may still commit."""
        folder = self.corpus.folder
        # In this order: what is written or committed meanwhile is that of a living writer, or named.
        found = [path for table in TABLES for path in (folder / table).rglob("*") if path.is_file()]
        found += (folder / STAGING).glob("*")
        alive = living_writers(folder / WRITERS)
        named = {name for batch in self.corpus.batches() for name in batch.files}
        for path in found:
            if writer_of(path) not in alive and path.relative_to(folder).as_posix() not in named:
                remove_path(path)
        with hold_lock(folder / MANIFEST / COMMIT_LOCK):
            for path in (folder / MANIFEST).glob("*.partial"):
                path.unlink(missing_ok=True)


def resolve_folder(folder: Path) -> Path:
    """The absolute path of a folder, given as a path or a `file:` URI. Raises `PipelineError` for other URIs."""
    scheme, colon, rest = str(folder).partition(":")
    if colon and rest.startswith("/") and re.fullmatch(r"[a-z][a-z0-9+.-]+", scheme):
        if scheme != "file":
            raise PipelineError(
                f"{scheme}: is no file system that Fencepost writes to: give a folder that all nodes share"
            )
        folder = Path(unquote(rest))
    return folder.resolve()


def check_file(folder: Path, name: str, size: int | None) -> None:
    """Raises `PipelineError` if a file that a worker wrote is not there, or has another size."""
    try:
        found = (folder / name).stat().st_size
    except OSError:
        raise PipelineError(
            f"{folder / name}, which a worker wrote, is not there: {folder} must be the same folder on all nodes"
        ) from None
    if size is not None and found != size:
        raise PipelineError(f"{folder / name} has {found} bytes; the worker that wrote it says {size}")


def remove_path(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def partition_path(table: str, values: Sequence[tuple[str, Any]]) -> str:
    """The folder of a partition, as Hive names it."""
    return "/".join((table, *(f"{name}={quote(str(value), safe='') or '_'}" for name, value in values)))


def write_atomically(path: Path, value: Any, *, only_new: bool = False) -> None:
    """Write `value` as JSON to `path`, as a whole and synced, or not at all.

    With `only_new`, raises `PipelineError` if the file exists.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    with partial.open("w", encoding="utf-8") as out:
        json.dump(value, out, indent=1)
        out.write("\n")
        out.flush()
        os.fsync(out.fileno())
    if not only_new:
        partial.replace(path)
        return
    try:
        os.link(partial, path)
    except FileExistsError:
        raise PipelineError(f"another process is writing to {path.parent.parent}") from None
    finally:
        partial.unlink(missing_ok=True)


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
