"""The logs that Structured Streaming keeps of a query: which files it has read, and which have committed results."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq

CHANGED_FILE = "the file changed when the watch had found it: write it elsewhere, and rename it into the folder"
EMPTY_FILE = "the file is empty: a trace begins with a header line"


class StreamLog:
    """A log of Spark's: a folder with a file for each batch, which is a version and then a line of JSON for each file.

    Every tenth holds all entries before it, and some time later those are deleted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last_batch = -1
        self.known: set[str] = set()

    def new_entries(self) -> list[tuple[Path, dict[str, Any]]]:
        """The files of which nothing was said at the last call, in order, each with all that the log has of it."""
        found = []
        batches = sorted((int(path.name.partition(".")[0]), path) for path in self.folder.glob("[0-9]*"))
        for batch, path in batches:
            if batch <= self.last_batch:
                continue
            try:
                lines = path.read_text(encoding="utf-8").splitlines()[1:]
            except FileNotFoundError:
                continue  # deleted: a later one holds its entries
            entries = {entry["path"]: entry for entry in map(json.loads, lines)}
            found += [(local_path(name), entries[name]) for name in entries if name not in self.known]
            self.known.update(entries)
        self.last_batch = max((batch for batch, _ in batches), default=-1)
        return found


def local_path(path: str) -> Path:
    """The local path in a file URL of Spark."""
    return Path(unquote(urlparse(path).path))


def input_log(output: Path) -> StreamLog:
    """The log of the files that the watch with this output has read."""
    return StreamLog(output / "checkpoint" / "sources" / "0")


def findings_log(output: Path) -> StreamLog:
    """The log of the files with findings in this output; files without an entry belong to a batch that did not end."""
    return StreamLog(output / "found" / "_spark_metadata")


def new_findings(log: StreamLog) -> Iterator[dict[str, Any]]:
    """Yield the findings that were committed since the log was read."""
    for path, _ in log.new_entries():
        yield from pq.ParquetFile(path).read().to_pylist()


def new_unread_files(log: StreamLog) -> Iterator[tuple[Path, str]]:
    """Yield the files that Spark has found since the log was read, and has not read as they are now, with the reason:
    it passes over an empty file for good, and reads none again."""
    for path, entry in log.new_entries():
        try:
            status = path.stat()
        except OSError:
            continue  # it is gone; whether it was read, nothing shows
        if not status.st_size:
            yield path, EMPTY_FILE
        elif status.st_mtime_ns // 1_000_000 > entry["timestamp"]:
            yield path, CHANGED_FILE
