"""A corpus is written as a whole or not at all."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, InputFile
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.ingest import batch_by_size
from fencepost.traces.pipeline.schema import INPUTS, TABLE_COLUMN, open_parquet_writer
from fencepost.traces.pipeline.sources import trace_files
from tests.support.corpus_tables import commit_input, write_input

REQUESTS = Path(__file__).parents[1] / "data" / "kafka-4-requests.log.gz"
FORMATS = ["parquet", pytest.param("delta", marks=pytest.mark.extra("deltalake"))]


def files_on_disk(corpus: Corpus) -> set[str]:
    return {str(path) for path in Path(corpus.data).glob(f"{TABLE_COLUMN}=*/*")}


def test_uncommitted_files_do_not_count(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    open_parquet_writer(corpus.data, "table=events/dead-left.parquet").close()
    (Path(corpus.data) / "manifest" / "00000001.json.1.partial").touch()
    (Path(corpus.folder) / "writers").mkdir()
    (Path(corpus.folder) / "writers" / "dead.lock").touch()
    with corpus.write() as writer:
        files = write_input(writer, "p")
        assert not writer.append(["p"], files)
    again = Corpus.create(tmp_path / "c", 99)
    assert again.buckets == 4, "a corpus keeps its buckets"
    with again.write():
        pass
    assert files_on_disk(corpus) == {*again.files(INPUTS)} and len(files) == 1
    assert not list(Path(corpus.folder).rglob("*.partial")) and not [*(Path(corpus.folder) / "writers").iterdir()]


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
            (Path(corpus.data) / "table=events").mkdir()
            (Path(corpus.data) / "table=events" / "a.parquet").write_bytes(b"?" * size)
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
    with pytest.raises(PipelineError, match=r"^gopher://bucket/c: .*gopher"):
        Corpus.create(Path("gopher://bucket/c"), 4)
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


def test_workers_list_a_relative_path_wherever_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").touch()
    monkeypatch.chdir(tmp_path)
    (found,) = trace_files(spark, [Path("in")])
    assert found.path == str(tmp_path / "in" / "a.jsonl")


def test_folders_and_files_are_sources(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl.gz", "notes.txt", "deep/c.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = trace_files(spark, [tmp_path, tmp_path / "notes.txt", tmp_path / "b.jsonl"])
    assert [Path(each.path).name for each in found] == ["a.jsonl.gz", "b.jsonl", "c.jsonl", "notes.txt"]
    with pytest.raises(PipelineError, match="no such file"):
        trace_files(spark, [tmp_path / "none"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(PipelineError, match="no input found"):
        trace_files(spark, [tmp_path / "empty"])


def test_inputs_come_in_batches() -> None:
    sizes = [
        [each.size for each in batch] for batch in batch_by_size([InputFile(str(n), n, 0) for n in (5, 5, 20, 1)], 10)
    ]
    assert sizes == [[5, 5], [20], [1]]


def test_a_corpus_has_the_size_of_the_files_that_count(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 1)
    assert corpus.size() == 0
    commit_input(corpus, "a")
    assert corpus.size() == sum(Path(file).stat().st_size for file in corpus.files(INPUTS)) > 0
