"""A corpus is written as a whole or not at all."""

from pathlib import Path

import pytest

from fencepost.traces.files.trace_files import TraceError
from fencepost.traces.pipeline.corpus import Batch, Corpus, Counts, InputFile, batch_by_size, partition_path
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.sources import SOURCES, import_once, trace_files


def test_uncommitted_files_do_not_count(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    for name in ("events/a.parquet", "events/x=1/b.parquet", "events/left.parquet"):
        (corpus.folder / name).parent.mkdir(exist_ok=True)
        (corpus.folder / name).touch()
    (corpus.folder / "manifest" / "00000001.json.1.partial").touch()
    corpus.commit(Batch((InputFile("p", 1, 2),), ("events/a.parquet", "events/x=1/b.parquet"), Counts(3, 1, 2, 0)))
    again = Corpus.create(tmp_path / "c", 99)
    assert again.buckets == 4, "a corpus keeps its buckets"
    again.remove_uncommitted()
    assert sorted(each.name for each in (tmp_path / "c" / "events").rglob("*.parquet")) == ["a.parquet", "b.parquet"]
    assert [Path(each).name for each in again.files("events")] == ["a.parquet", "b.parquet"]
    assert again.batches()[0].counts.is_balanced and not list(corpus.folder.rglob("*.partial"))


def test_two_writers_do_not_both_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    batch = Batch((), ())
    corpus.commit(batch)
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    with pytest.raises(PipelineError, match="another process is writing"):
        corpus.commit(batch)


def test_errors_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="is not a corpus"):
        Corpus.open(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match="neither empty nor a corpus"):
        Corpus.create(tmp_path, 4)
    (tmp_path / "corpus.json").write_text("{")
    with pytest.raises(PipelineError, match="damaged"):
        Corpus.open(tmp_path)
    (tmp_path / "corpus.json").write_text('{"fencepost_corpus": 1, "buckets": 1}')
    with pytest.raises(PipelineError, match="format 1"):
        Corpus.open(tmp_path)


def test_folders_and_files_are_sources(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl.gz", "notes.txt", "deep/c.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = trace_files([tmp_path, tmp_path / "notes.txt", tmp_path / "b.jsonl"], tmp_path)
    assert [each.name for each in found] == ["a.jsonl.gz", "b.jsonl", "c.jsonl", "notes.txt"]
    with pytest.raises(PipelineError, match="no such file"):
        trace_files([tmp_path / "none"], tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(PipelineError, match="no input found"):
        trace_files([tmp_path / "empty"], tmp_path)


def test_imported_traces_are_written_once(tmp_path: Path) -> None:
    source, calls = tmp_path / "server.log", []
    source.write_text("one")

    def make(output: Path) -> None:
        calls.append(output)
        output.write_text("made")

    first = import_once([source], tmp_path / "made", make)
    assert import_once([source], tmp_path / "made", make) == first and len(calls) == 1
    source.write_text("another")
    assert import_once([source], tmp_path / "made", make) != first and len(calls) == 2
    assert sorted(each.suffix for each in (tmp_path / "made").iterdir()) == [".jsonl", ".jsonl"]


def test_a_file_without_log_lines_is_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("nothing of the kind\n")
    with pytest.raises(TraceError):
        trace_files([tmp_path / "server.log"], tmp_path / "made", SOURCES["logs"])


def test_inputs_come_in_batches() -> None:
    sizes = [
        [each.size for each in batch] for batch in batch_by_size([InputFile(str(n), n, 0) for n in (5, 5, 20, 1)], 10)
    ]
    assert sizes == [[5, 5], [20], [1]]


def test_names_of_partitions_are_safe() -> None:
    assert partition_path("events", [("source", "kafka://h:1/../x"), ("bucket", -1)]) == (
        "events/source=kafka%3A%2F%2Fh%3A1%2F..%2Fx/bucket=-1"
    )
    assert partition_path("events", [("source", "")]) == "events/source=_"
