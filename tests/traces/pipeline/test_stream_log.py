"""The logs of Structured Streaming: each entry is read once, and files that Spark passes over are named."""

import json
import os
from pathlib import Path

from fencepost.traces.pipeline.stream import CHANGED_FILE, EMPTY_FILE, StreamLog, input_log, new_unread_files


def write_batch(folder: Path, name: str, *files: Path) -> None:
    """A file of a log, as Spark writes it."""
    lines = ["v1", *(json.dumps({"path": file.as_uri(), "timestamp": 1_000}) for file in files)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(lines))


def write_file(path: Path, text: str, seconds: float) -> Path:
    """A file that was written then."""
    path.write_text(text)
    os.utime(path, (seconds, seconds))
    return path


def test_each_entry_is_read_once(tmp_path: Path) -> None:
    log, files = StreamLog(tmp_path / "log"), [tmp_path / f"a b{number}" for number in range(4)]
    assert log.new_entries() == []
    write_batch(log.folder, "8", files[0])
    assert [path for path, _ in log.new_entries()] == files[:1]
    write_batch(log.folder, "9.compact", *files[:2])
    (log.folder / "8").unlink()
    write_batch(log.folder, "10", files[2])
    assert [path for path, _ in log.new_entries()] == files[1:3]
    write_batch(log.folder, "9.compact", *files)
    assert log.new_entries() == [], "a batch that was read is not read again"


def test_files_that_spark_passes_over_are_named_once_it_has_found_them(tmp_path: Path) -> None:
    log = input_log(tmp_path / "to")
    whole = write_file(tmp_path / "whole.jsonl", "?", 1)
    empty = write_file(tmp_path / "empty.jsonl", "", 1)
    late = write_file(tmp_path / "late.jsonl", "?", 1.5)
    assert not list(new_unread_files(log)), "a writer may just have opened it"
    write_batch(log.folder, "0", whole, empty, late, tmp_path / "gone.jsonl")
    assert list(new_unread_files(log)) == [(empty, EMPTY_FILE), (late, CHANGED_FILE)]
    assert not list(new_unread_files(log)), "and only once"
