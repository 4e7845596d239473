"""A corpus is written as a whole or not at all."""

from pathlib import Path

import pytest

from fencepost.traces.files.trace_files import TraceError
from fencepost.traces.pipeline.corpus import Batch, Corpus, Counts, InputFile, batch_by_size, partition_path
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.sources import SOURCES, import_once, trace_files


def write_file(corpus: Corpus, name: str) -> dict[str, int | None]:
    (corpus.folder / name).parent.mkdir(exist_ok=True)
    (corpus.folder / name).write_bytes(b"rows")
    return {name: 4}


def test_uncommitted_files_do_not_count(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    write_file(corpus, "events/dead-left.parquet")
    (corpus.folder / "manifest" / "00000001.json.1.partial").touch()
    (corpus.folder / "writers").mkdir()
    (corpus.folder / "writers" / "dead.lock").touch()
    (corpus.folder / "staging" / "dead" / "7").mkdir(parents=True)
    with corpus.write() as writer:
        files = write_file(corpus, f"events/{writer.id}-a.parquet") | write_file(
            corpus, f"events/x=1/{writer.id}-b.parquet"
        )
        assert not writer.commit(Batch((InputFile("p", 1, 2),), files, Counts(3, 1, 2, 0)))
    again = Corpus.create(tmp_path / "c", 99)
    assert again.buckets == 4, "a corpus keeps its buckets"
    with again.write():
        pass
    assert {
        f"events/{path.relative_to(corpus.folder / 'events')}" for path in (corpus.folder / "events").rglob("*.parquet")
    } == {*files}
    assert [Path(each).name[-9:] for each in again.files("events")] == ["a.parquet", "b.parquet"]
    assert again.batches()[0].counts.is_balanced and not list(corpus.folder.rglob("*.partial"))
    assert not [*(corpus.folder / "staging").iterdir(), *(corpus.folder / "writers").iterdir()]


def test_a_sweep_leaves_what_a_living_writer_may_still_commit(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    with corpus.write() as slow:
        files = write_file(corpus, f"events/{slow.id}-a.parquet")
        slow.staging.mkdir(parents=True)
        with corpus.write() as quick:
            others = write_file(corpus, f"events/{quick.id}-b.parquet")
            quick.commit(Batch((InputFile("q", 1, 1),), others))
        assert slow.staging.exists()
        assert not slow.commit(Batch((InputFile("p", 1, 1),), files))
    assert len(corpus.files("events")) == 2 and all(Path(name).exists() for name in corpus.files("events"))


def test_an_input_is_committed_by_one_writer(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    mine, both = InputFile("p", 1, 1), InputFile("q", 1, 1)
    with corpus.write() as writer:
        files = write_file(corpus, f"events/{writer.id}-a.parquet")
        with corpus.write() as other:
            other.commit(Batch((both,), {}))
        assert writer.commit(Batch((mine, both), files)) == {both}
    assert len(corpus.batches()) == 1 and not list((corpus.folder / "events").iterdir())


@pytest.mark.parametrize(
    ("size", "reason"), [(None, "is not there: .* must be the same folder on all nodes"), (3, "has 3 bytes")]
)
def test_what_a_worker_wrote_must_be_there(size: int | None, reason: str, tmp_path: Path) -> None:
    """A worker on another node may have written below a folder of its own."""
    corpus = Corpus.create(tmp_path / "c", 4)
    with corpus.write() as writer:
        if size is not None:
            (corpus.folder / "events" / "a.parquet").write_bytes(b"?" * size)
        with pytest.raises(PipelineError, match=reason):
            writer.commit(Batch((), {"events/a.parquet": 4}))
    assert not corpus.batches()


def test_a_snapshot_has_the_batches_of_one_moment(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    before = corpus.snapshot()
    with corpus.write() as writer:
        writer.commit(Batch((InputFile("p", 1, 1),), {}))
    assert (len(before.batches()), len(corpus.batches())) == (0, 1)


def test_a_corpus_is_where_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given in (Path("c"), Path(f"file://{tmp_path}/c")):
        assert Corpus.create(given, 4).folder == tmp_path / "c"
    with pytest.raises(PipelineError, match=r"^s3a: is no file system that Fencepost writes to"):
        Corpus.create(Path("s3a://bucket/c"), 4)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_an_older_corpus_is_only_read(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    (corpus.folder / "corpus.json").write_text('{"fencepost_corpus": 3, "buckets": 4}')
    (corpus.folder / "manifest" / "00000001.json").write_text(
        '{"inputs": [], "files": ["events/a.parquet"], '
        '"counts": {"lines": 0, "headers": 0, "events": 0, "quarantined": 0}}'
    )
    old = Corpus.open(tmp_path / "c")
    assert old.files("events") == [str(tmp_path / "c" / "events/a.parquet")]
    with pytest.raises(PipelineError, match="format 3, which is only read"), old.write():
        pass


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
