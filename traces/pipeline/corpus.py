"""A corpus on disk: tables of Parquet files, and a manifest of the batches that were committed.

A file counts if a manifest names it. So a batch is there as a whole or not at all, whenever a writer is killed; what it
left is swept away by the next one.
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
    """A file as it was when it was read."""

    path: str
    size: int
    changed: int
    """When it was last written, in nanoseconds since 1970."""

    @classmethod
    def from_path(cls, path: Path) -> "InputFile":
        """The file as it is. Raises `OSError`."""
        status = path.stat()
        return cls(str(path.resolve()), status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class Counts:
    """Lines read, and what became of them: headers, events, quarantined."""

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
        """Nothing was lost and nothing was added."""
        return self.lines == self.headers + self.events + self.quarantined


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that were read, and the files of the corpus that hold what was in them."""

    inputs: tuple[InputFile, ...]
    files: tuple[str, ...]
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus in a folder; `buckets` is over how many buckets groups are spread."""

    folder: Path
    buckets: int

    @classmethod
    def create(cls, folder: Path, buckets: int) -> "Corpus":
        """The corpus in this folder, a new one if there is none. Raises `PipelineError` and `OSError`."""
        if not (folder / CORPUS_FILE).exists():
            if folder.exists() and any(folder.iterdir()):
                raise PipelineError(f"{folder} is neither empty nor a corpus")
            for table in (MANIFEST, *TABLES):
                (folder / table).mkdir(parents=True, exist_ok=True)
            write_atomically(folder / CORPUS_FILE, {"fencepost_corpus": CORPUS_FORMAT, "buckets": buckets})
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> "Corpus":
        """The corpus in this folder. Raises `PipelineError`."""
        try:
            found = json.loads((folder / CORPUS_FILE).read_text(encoding="utf-8"))
            version, buckets = found["fencepost_corpus"], int(found["buckets"])
        except FileNotFoundError:
            raise PipelineError(f"{folder} is no corpus: fencepost pipeline ingest makes one") from None
        except (ValueError, KeyError, TypeError):
            raise PipelineError(f"{folder / CORPUS_FILE} is damaged") from None
        if version != CORPUS_FORMAT:
            raise PipelineError(f"{folder} has corpus format {version}; this Fencepost reads {CORPUS_FORMAT}")
        return cls(folder, buckets)

    def batches(self) -> list[Batch]:
        """What was committed, in order."""
        found = []
        for path in sorted((self.folder / MANIFEST).glob("*.json")):
            row = json.loads(path.read_text(encoding="utf-8"))
            inputs = tuple(InputFile(**each) for each in row["inputs"])
            found.append(Batch(inputs, tuple(row["files"]), Counts(**row["counts"])))
        return found

    def files(self, table: str) -> list[str]:
        """The files of a table."""
        names = (name for batch in self.batches() for name in batch.files)
        return [str(self.folder / name) for name in names if name.startswith(f"{table}/")]

    def commit(self, batch: Batch) -> None:
        """Make a batch part of the corpus. Raises `PipelineError` if somebody else did so at the same time."""
        number = 1 + max((int(path.stem) for path in (self.folder / MANIFEST).glob("*.json")), default=0)
        write_atomically(self.folder / MANIFEST / f"{number:08}.json", asdict(batch), only_new=True)

    def remove_uncommitted(self) -> None:
        """Remove what no manifest names."""
        named = {name for batch in self.batches() for name in batch.files}
        for table in TABLES:
            for path in (self.folder / table).rglob("*"):
                if path.is_file() and path.relative_to(self.folder).as_posix() not in named:
                    path.unlink(missing_ok=True)
        for path in (self.folder / MANIFEST).glob("*.partial"):
            path.unlink(missing_ok=True)

    def bucket_of(self, group: str) -> int:
        """Where a group belongs."""
        return zlib.crc32(group.encode("utf-8", "surrogatepass")) % self.buckets


def partition_path(table: str, values: Sequence[tuple[str, Any]]) -> str:
    """The folder of a partition, as Hive names it."""
    return "/".join((table, *(f"{name}={quote(str(value), safe='') or '_'}" for name, value in values)))


def write_atomically(path: Path, value: Any, *, only_new: bool = False) -> None:
    """Write a file that is there as a whole, on disk, or not at all."""
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
    """The inputs in batches of about so many bytes."""
    batch: list[InputFile] = []
    for each in inputs:
        if batch and sum(one.size for one in batch) + each.size > limit:
            yield batch
            batch = []
        batch.append(each)
    if batch:
        yield batch
