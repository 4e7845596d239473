"""The log of a corpus: which files count, from one version to the next.

There are two forms of it: JSON files in a folder (plain Parquet), and the transaction log of Delta Lake.
"""

import json
import os
import re
import time
import uuid
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.file_systems import Location, join_location, storage_options
from fencepost.traces.pipeline.schema import DELTA_SCHEMA, TABLE_COLUMN, table_of
from fencepost.traces.pipeline.writers import living_writers, writer_of

if TYPE_CHECKING:
    from deltalake import DeltaTable

DATA = "data"
"""The folder of the tables and the log."""
WRITERS, READERS = "writers", "readers"
MANIFEST = "manifest"
PARTIAL_SUFFIX = ".partial"
MARK_PROPERTY = "fencepost.corpus"
"""The property of a Delta table with what corpus.json says."""


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """The files that count in one version of a log, by name, with their sizes in bytes."""

    version: int
    files: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FileChange:
    """Files that count from now on, with their sizes in bytes, and files that no longer do. `is_rewrite` if both have
    the same rows."""

    added: Mapping[str, int] = field(default_factory=dict)
    removed: Collection[str] = ()
    is_rewrite: bool = False


class CorpusLog(Protocol):
    """The log of a corpus. A change is one version of it, whoever else is writing."""

    def create(self, mark: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create the log, if there is none yet. Returns the mark of the corpus: this one, or that of who was first."""

    def read(self) -> LogSnapshot:
        """The newest version."""

    def append(self, change: FileChange, after: int) -> bool:
        """Make `change` the version that follows `after`. Returns False, and does nothing, if there is one already."""

    def remove_abandoned(self) -> None:
        """Remove files that do not count, unless somebody may still commit or read them."""


@dataclass(frozen=True, slots=True)
class ManifestLog:
    """A log of JSON files: data/manifest/N.json has what version N changes."""

    folder: Path

    def create(self, mark: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create the folder of the log, if there is none yet."""
        (self.folder / DATA / MANIFEST).mkdir(parents=True, exist_ok=True)
        return mark

    def read(self) -> LogSnapshot:
        """The newest version. Raises `PipelineError` if a file of the log is damaged."""
        files: dict[str, int] = {}
        version = 0
        for path in sorted((self.folder / DATA / MANIFEST).glob("*.json")):
            try:
                entry = json.loads(path.read_text(encoding="utf-8"))
                version = int(path.stem)
                for name in entry["removed"]:
                    del files[name]
                files |= entry["added"]
            except (ValueError, KeyError, TypeError):
                raise PipelineError(f"{path} is damaged") from None
        return LogSnapshot(version, files)

    def append(self, change: FileChange, after: int) -> bool:
        """Make `change` the version that follows `after`; False if there is one already."""
        entry = {"added": dict(change.added), "removed": sorted(change.removed)}
        return write_new(self.folder / DATA / MANIFEST / f"{after + 1:08}.json", entry)

    def remove_abandoned(self) -> None:
        """Remove files that do not count and no living writer may still commit, unless somebody reads."""
        # In this order: what is written or committed meanwhile is that of a living writer, or counts; and a reader who
        # begins meanwhile reads what counts.
        data = self.folder / DATA
        found = list(data.glob(f"{TABLE_COLUMN}=*/*.parquet"))
        alive = living_writers(self.folder / WRITERS)
        counting = self.read().files
        if living_writers(self.folder / READERS):
            return
        for path in found:
            if writer_of(path) not in alive and path.relative_to(data).as_posix() not in counting:
                path.unlink(missing_ok=True)
        for path in (data / MANIFEST).glob(f"*{PARTIAL_SUFFIX}"):
            path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class DeltaLog:
    """The transaction log of a Delta table, whose partitions are the tables of the corpus; on an object store a version
    is written only if there is none yet."""

    folder: Location

    @property
    def place(self) -> str:
        """Where the table is, without options."""
        table = join_location(self.folder, DATA)
        return str(table) if isinstance(table, Path) else table.partition("?")[0]

    def open(self, version: int | None = None) -> "DeltaTable":
        """The table, as it was in a version. Raises `PipelineError`."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            return DeltaTable(self.place, version=version, storage_options=storage_options(str(self.folder)))
        except (DeltaError, OSError) as error:
            raise PipelineError(f"{self.folder}: {plain_line(error)}") from None

    def create(self, mark: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create the Delta table, if there is none yet; the mark is one of its properties. Raises `PipelineError`."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        if isinstance(self.folder, Path):
            (self.folder / DATA).mkdir(parents=True, exist_ok=True)
        with suppress(DeltaError, OSError):  # another may have been first; what else is wrong shows next
            DeltaTable.create(
                self.place,
                DELTA_SCHEMA,
                mode="ignore",
                partition_by=[TABLE_COLUMN],
                configuration={MARK_PROPERTY: json.dumps(mark)},
                raise_if_key_not_exists=False,
                storage_options=storage_options(str(self.folder)),
            )
        known = self.open().metadata().configuration.get(MARK_PROPERTY)
        return mark if known is None else dict(json.loads(known))

    def read(self) -> LogSnapshot:
        """The newest version. Raises `PipelineError` if the table has deletion vectors or renamed columns."""
        table = self.open()
        if table.protocol().min_reader_version > 1:
            raise PipelineError(
                f"{self.folder} is a Delta table with features that Fencepost does not read (deletion vectors, column "
                "mapping): switch them off, and run REORG TABLE ... APPLY (PURGE)"
            )
        actions = table.get_add_actions(flatten=True)
        names, sizes = actions["path"].to_pylist(), actions["size_bytes"].to_pylist()
        return LogSnapshot(table.version(), dict(zip(names, sizes, strict=True)))

    def append(self, change: FileChange, after: int) -> bool:
        """Make `change` the version that follows `after`; False if there is one already."""
        from deltalake import CommitProperties
        from deltalake.exceptions import CommitFailedError
        from deltalake.transaction import AddAction, RemoveAction

        now = int(time.time() * 1000)
        is_new = not change.is_rewrite
        added = [
            AddAction(name, size, {TABLE_COLUMN: table_of(name)}, now, is_new, "{}")
            for name, size in change.added.items()
        ]
        removed = [
            RemoveAction(name, is_new, now, partition_values={TABLE_COLUMN: table_of(name)}) for name in change.removed
        ]
        try:
            self.open(after).create_write_transaction(
                [*added, *removed],
                "append",
                DELTA_SCHEMA,
                [TABLE_COLUMN],
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except CommitFailedError:
            return False
        return True

    def remove_abandoned(self) -> None:
        """Remove files that have not counted for as long as the table keeps them: a week, unless it says otherwise."""
        self.open().vacuum(dry_run=False, full=True)


LOGS = ("parquet", "delta")
"""The forms of a log by the name of their format."""


def open_log(folder: Location, format: str) -> CorpusLog:
    """The log of the corpus in `folder`. Raises `PipelineError` if it cannot be there in this format."""
    if format == "delta":
        return DeltaLog(folder)
    if not isinstance(folder, Path):
        raise PipelineError(
            f"{folder}: plain Parquet needs a folder with locks and hard links; at a URI a corpus is a Delta table: "
            "--format delta"
        )
    return ManifestLog(folder)


def plain_line(error: BaseException) -> str:
    """The first line and the last of what Delta's library says of an error, which may be a chain in colours."""
    lines = [re.sub(r"\x1b\[[0-9;]*m|↳", "", line).strip() for line in str(error).splitlines()]
    told = list(dict.fromkeys(line for line in lines if line))
    return ": ".join([*told[:1], *told[1:][-1:]]) or type(error).__name__


def write_new(path: Path, value: object) -> bool:
    """Write `value` as JSON to a new file, as a whole and synced, or not at all. Returns False if the file exists."""
    while True:
        partial = write_partial(path, value)
        try:
            os.link(partial, path)
        except FileExistsError:
            return False
        except FileNotFoundError:
            continue  # another writer took it for what a killed one left
        finally:
            partial.unlink(missing_ok=True)
        return True


def write_atomically(path: Path, value: object) -> None:
    """Write `value` as JSON to `path`, as a whole and synced, or not at all."""
    write_partial(path, value).replace(path)


def write_partial(path: Path, value: object) -> Path:
    """The path of a new file beside `path` with `value` as JSON, which is on disk."""
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}{PARTIAL_SUFFIX}")
    with partial.open("w", encoding="utf-8") as out:
        json.dump(value, out, indent=1)
        out.write("\n")
        out.flush()
        os.fsync(out.fileno())
    return partial
