"""A corpus on disk: tables of Parquet files, and a manifest of the batches that were committed.

Only files that a manifest names count. So a batch is committed as a whole or not at all, even if its writer is killed;
the next writer removes the files left behind.
"""

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fencepost.traces.pipeline.errors import PipelineError

CORPUS_FORMAT = 3
CORPUS_FILE = "corpus.json"
MANIFEST = "manifest"
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
    """Input files, and the files of the corpus that hold their rows."""

    inputs: tuple[InputFile, ...]
    files: tuple[str, ...]
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus in a folder; `buckets` is the number of buckets that groups are spread over."""

    folder: Path
    buckets: int

    @classmethod
    def create(cls, folder: Path, buckets: int) -> "Corpus":
        """The corpus in `folder`, created if there is none. Raises `PipelineError` and `OSError`."""
        if not (folder / CORPUS_FILE).exists():
            if folder.exists() and any(folder.iterdir()):
                raise PipelineError(f"{folder} is neither empty nor a corpus")
            for table in (MANIFEST, *TABLES):
                (folder / table).mkdir(parents=True, exist_ok=True)
            write_atomically(folder / CORPUS_FILE, {"fencepost_corpus": CORPUS_FORMAT, "buckets": buckets})
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> "Corpus":
        """The corpus in `folder`. Raises `PipelineError`."""
        try:
            found = json.loads((folder / CORPUS_FILE).read_text(encoding="utf-8"))
            version, buckets = found["fencepost_corpus"], int(found["buckets"])
        except FileNotFoundError:
            raise PipelineError(f"{folder} is not a corpus: make one with fencepost pipeline ingest") from None
        except (ValueError, KeyError, TypeError):
            raise PipelineError(f"{folder / CORPUS_FILE} is damaged") from None
        if version != CORPUS_FORMAT:
            raise PipelineError(f"{folder} has corpus format {version}; this Fencepost reads {CORPUS_FORMAT}")
        return cls(folder, buckets)

    def batches(self) -> list[Batch]:
        """The committed batches, in order."""
        found = []
        for path in sorted((self.folder / MANIFEST).glob("*.json")):
            row = json.loads(path.read_text(encoding="utf-8"))
            inputs = tuple(InputFile(**each) for each in row["inputs"])
            found.append(Batch(inputs, tuple(row["files"]), Counts(**row["counts"])))
        return found

    def files(self, table: str) -> list[str]:
        """The paths of the committed files of a table."""
        names = (name for batch in self.batches() for name in batch.files)
        return [str(self.folder / name) for name in names if name.startswith(f"{table}/")]

    def commit(self, batch: Batch) -> None:
        """Commit a batch. Raises `PipelineError` if another process commits one at the same time."""
        number = 1 + max((int(path.stem) for path in (self.folder / MANIFEST).glob("*.json")), default=0)
        write_atomically(self.folder / MANIFEST / f"{number:08}.json", asdict(batch), only_new=True)

    def remove_uncommitted(self) -> None:
        """Remove files that no manifest names."""
        named = {name for batch in self.batches() for name in batch.files}
        for table in TABLES:
            for path in (self.folder / table).rglob("*"):
                if path.is_file() and path.relative_to(self.folder).as_posix() not in named:
                    path.unlink(missing_ok=True)
        for path in (self.folder / MANIFEST).glob("*.partial"):
            path.unlink(missing_ok=True)

    def bucket_of(self, group: str) -> int:
        """The bucket of a group, from 0."""
        return zlib.crc32(group.encode("utf-8", "surrogatepass")) % self.buckets


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
    for each in inputs:
        if batch and sum(one.size for one in batch) + each.size > limit:
            yield batch
            batch = []
        batch.append(each)
    if batch:
        yield batch
