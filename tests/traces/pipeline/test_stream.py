"""A watch finds the violations of the whole trace once, also in parts and after a restart."""

import json
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.stream import (
    CHANGED_FILE,
    EMPTY_FILE,
    StreamLog,
    check_same_watch,
    findings_log,
    input_log,
    new_findings,
    new_unread_files,
    watch_folder,
)
from fencepost.traces.verdict import initial_violations
from tests.support.altered_traces import altered_trace

BUCKETS = 2


def rows(to: Path) -> list[tuple[str, str, int]]:
    return sorted((Path(row["path"]).name, row["kind"], row["sequence"] or 0) for row in new_findings(findings_log(to)))


def test_a_watch_goes_on_with_the_options_that_it_began_with(tmp_path: Path) -> None:
    check_same_watch(tmp_path, 4, "a")
    check_same_watch(tmp_path, 4, "a")
    with pytest.raises(PipelineError, match="belongs to a watch with --buckets 4"):
        check_same_watch(tmp_path, 5, "a")
    with pytest.raises(PipelineError, match="belongs to a watch of a: give the same"):
        check_same_watch(tmp_path, 4, "b")
    (tmp_path / "watch.json").write_text('{"fencepost_watch": "0.0.9", "buckets": 4}')
    with pytest.raises(PipelineError, match=r"of Fencepost 0\.0\.9, whose state .* cannot read"):
        check_same_watch(tmp_path, 4, "a")
    (tmp_path / "watch.json").write_text("{")
    with pytest.raises(PipelineError, match="is damaged"):
        check_same_watch(tmp_path, 4, "a")


@pytest.mark.slow
def test_a_watch_loses_and_repeats_nothing(spark: SparkSession, tmp_path: Path) -> None:
    landing, to = tmp_path / "landing", tmp_path / "to"
    landing.mkdir()
    (landing / "empty.jsonl").touch()
    expected: list[tuple[str, str, int]] = []
    for batch in ((1, 2), (5, 6)):
        for seed in batch:
            path = landing / f"{seed}.jsonl"
            write_trace(path, *altered_trace(seed))
            header, events = open_trace(path)
            violations = Judge(header).judge_events(list(events)).violations
            first = initial_violations(violations)
            expected += [
                (path.name, "violation" if violation in first else "following", violation.sequence)
                for violation in violations
            ]
        (landing / "bad.jsonl").write_bytes(b"?\n")
        watch_folder(spark, landing, to, BUCKETS, once=True).awaitTermination()
    assert len(expected) > 2
    assert rows(to) == sorted([*expected, ("bad.jsonl", "quarantine", 0)])
    assert {(path.name, reason) for path, reason in new_unread_files(input_log(to))} == {
        ("bad.jsonl", CHANGED_FILE),
        ("empty.jsonl", EMPTY_FILE),
    }


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
