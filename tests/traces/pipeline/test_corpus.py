"""A corpus is written as a whole or not at all."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fencepost.model.settings import Settings
from fencepost.traces.events import Kind
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, InputFile
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.ingest import batch_by_size
from fencepost.traces.pipeline.schema import INPUTS, TABLE_COLUMN, open_parquet_writer
from fencepost.traces.pipeline.sources import SOURCES, import_once, request_log_source, trace_files
from tests.support.corpus_tables import commit_input, write_input

REQUESTS = Path(__file__).parents[1] / "data" / "kafka-4-requests.log.gz"
FORMATS = ["parquet", pytest.param("delta", marks=pytest.mark.extra("deltalake"))]


def files_on_disk(corpus: Corpus) -> set[str]:
    return {str(path) for path in corpus.data.glob(f"{TABLE_COLUMN}=*/*")}


def test_uncommitted_files_do_not_count(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    open_parquet_writer(corpus.data, "table=events/dead-left.parquet").close()
    (corpus.data / "manifest" / "00000001.json.1.partial").touch()
    (corpus.folder / "writers").mkdir()
    (corpus.folder / "writers" / "dead.lock").touch()
    with corpus.write() as writer:
        files = write_input(writer, "p")
        assert not writer.append(["p"], files)
    again = Corpus.create(tmp_path / "c", 99)
    assert again.buckets == 4, "a corpus keeps its buckets"
    with again.write():
        pass
    assert files_on_disk(corpus) == {*again.files(INPUTS)} and len(files) == 1
    assert not list(corpus.folder.rglob("*.partial")) and not [*(corpus.folder / "writers").iterdir()]


def test_a_sweep_leaves_what_a_living_writer_may_still_commit(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    with corpus.write() as slow:
        files = write_input(slow, "p")
        commit_input(corpus, "q")
        assert not slow.append(["p"], files)
    assert {row.input for row in corpus.inputs()} == {"p", "q"}


def test_a_sweep_leaves_what_somebody_may_still_read(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    commit_input(corpus, "p")
    with corpus.read() as before:
        with corpus.write() as writer:
            assert writer.replace([f"table=inputs/{Path(*before.files(INPUTS)).name}"], {}, is_rewrite=False)
        commit_input(corpus, "q")
        assert [row.input for row in before.inputs()] == ["p"]
    assert [row.input for row in corpus.inputs()] == ["q"]
    commit_input(corpus, "r")
    assert files_on_disk(corpus) == {*corpus.files(INPUTS)}


@pytest.mark.parametrize("format", FORMATS)
def test_an_input_is_committed_by_one_writer(format: str, tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4, format)
    with corpus.write() as writer:
        files = write_input(writer, "p", "q")
        commit_input(corpus, "q")
        assert writer.append(["p", "q"], files) == {"q"}
    assert [row.input for row in corpus.inputs()] == ["q"] and files_on_disk(corpus) == {*corpus.files(INPUTS)}


@pytest.mark.parametrize("format", FORMATS)
def test_a_writer_that_is_overtaken_between_reading_and_committing_looks_again(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, commit = Corpus.create(tmp_path / "c", 4, format), CorpusWriter.commit
    others = ["q", "p"]

    def commit_too_late(self: CorpusWriter, change: Any, after: Corpus) -> bool:
        if others and self is slow:
            commit_input(corpus, others.pop(0))
        return commit(self, change, after)

    monkeypatch.setattr(CorpusWriter, "commit", commit_too_late)
    with corpus.write() as slow:
        assert slow.append(["p"], write_input(slow, "p")) == {"p"}
    assert not others and {row.input for row in corpus.inputs()} == {"p", "q"}


@pytest.mark.parametrize(
    ("size", "reason"), [(None, "is not there: .* must be the same folder on all nodes"), (3, "has 3 bytes")]
)
def test_what_a_worker_wrote_must_be_there(size: int | None, reason: str, tmp_path: Path) -> None:
    """A worker on another node may have written below a folder of its own."""
    corpus = Corpus.create(tmp_path / "c", 4)
    with corpus.write() as writer:
        if size is not None:
            (corpus.data / "table=events").mkdir()
            (corpus.data / "table=events" / "a.parquet").write_bytes(b"?" * size)
        with pytest.raises(PipelineError, match=reason):
            writer.append([], {"table=events/a.parquet": 4})
    assert not corpus.inputs()


@pytest.mark.parametrize("format", FORMATS)
def test_a_snapshot_has_the_inputs_of_one_moment(format: str, tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4, format)
    before = corpus.snapshot()
    commit_input(corpus, "p")
    assert (len(before.inputs()), len(corpus.inputs())) == (0, 1)


def test_a_corpus_is_where_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given in (Path("c"), Path(f"file://{tmp_path}/c")):
        assert Corpus.create(given, 4).folder == tmp_path / "c"
    with pytest.raises(PipelineError, match=r"^s3a: is no file system that Fencepost writes to"):
        Corpus.create(Path("s3a://bucket/c"), 4)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


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
    with pytest.raises(PipelineError, match="format 1; this Fencepost reads 5: copy it"):
        Corpus.open(tmp_path)
    (tmp_path / "corpus.json").write_text('{"fencepost_corpus": 5, "buckets": 1, "format": "x"}')
    with pytest.raises(PipelineError, match="in the format x, which is not known here"):
        Corpus.open(tmp_path)
    Corpus.create(tmp_path / "c", 4)
    with pytest.raises(PipelineError, match=r"is a corpus in the format parquet: copy it with .* --format delta"):
        Corpus.create(tmp_path / "c", 4, "delta")
    (tmp_path / "c" / "data" / "manifest" / "00000001.json").write_text("{")
    with pytest.raises(PipelineError, match=r"00000001\.json is damaged"):
        Corpus.open(tmp_path / "c").snapshot()


def test_folders_and_files_are_sources(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl.gz", "notes.txt", "deep/c.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = trace_files([tmp_path, tmp_path / "notes.txt", tmp_path / "b.jsonl"], tmp_path)
    assert [Path(each.path).name for each in found] == ["a.jsonl.gz", "b.jsonl", "c.jsonl", "notes.txt"]
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


def test_request_logs_of_a_folder_are_one_trace(tmp_path: Path) -> None:
    rows = gzip.decompress(REQUESTS.read_bytes()).splitlines(keepends=True)
    (tmp_path / "logs" / "broker-1").mkdir(parents=True)
    (tmp_path / "logs" / "broker-1" / "requests.log.1").write_bytes(b"".join(rows[:40]))
    (tmp_path / "logs" / "broker-2.log").write_bytes(b"".join(rows[40:]))
    source = request_log_source(Settings(initial_rebalance_delay=600))
    (made,) = trace_files([tmp_path / "logs"], tmp_path / "made", source)
    header, events = open_trace(made.path)
    assert header.settings.initial_rebalance_delay == 600
    assert Counter(event.kind for event in events if event.api == "JoinGroup") == {Kind.REQUEST: 12, Kind.RESPONSE: 12}


def test_inputs_come_in_batches() -> None:
    sizes = [
        [each.size for each in batch] for batch in batch_by_size([InputFile(str(n), n, 0) for n in (5, 5, 20, 1)], 10)
    ]
    assert sizes == [[5, 5], [20], [1]]
