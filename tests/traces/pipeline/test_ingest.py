"""Ingest puts every line of its files into the tables once, also after a kill."""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.pipeline import ingest as module
from fencepost.traces.pipeline.corpus import Batch, Corpus, Counts, InputFile
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.ingest import ingest, make_ingest_task
from fencepost.traces.pipeline.parallel import split_evenly
from fencepost.traces.pipeline.row_reader import RowReader
from tests.support.corpus_tables import ProcessKilled, read_rows
from tests.support.random_client import random_trace


def quiet(done: int, total: int, doing: str) -> None:
    """Nobody wants to know."""


def traces(folder: Path, count: int = 6) -> list[Path]:
    """Traces, one of them compressed and one of them damaged."""
    paths = []
    for seed in range(count):
        path = folder / (f"{seed}.jsonl.gz" if seed == 0 else f"{seed}.jsonl")
        write_trace(path, *random_trace(random.Random(seed), 30))
        paths.append(path.resolve())
    spoiled = paths[-1].read_bytes().splitlines(keepends=True)
    paths[-1].write_bytes(b"".join([*spoiled[:20], b"?\n", *spoiled[21:]]))
    return paths


@pytest.mark.slow
def test_corpus_holds_every_line(spark: SparkSession, tmp_path: Path) -> None:
    paths = traces(tmp_path)
    corpus = Corpus.create(tmp_path / "c", 4)
    done = ingest(spark, corpus, paths, quiet)
    readers = [RowReader(str(path)) for path in paths]
    expected = [row for reader in readers for row in reader.rows()]
    assert len(read_rows(corpus, "events")) + len(read_rows(corpus, "quarantine")) == len(expected)
    assert done.counts.is_balanced and done.counts.lines == len(expected) + len(paths)
    assert done.counts.quarantined == sum(row[2] for row in read_rows(corpus, "quarantine")) > 0
    good = {row[0]: [] for row in read_rows(corpus, "traces")}  # type: ignore[var-annotated]
    for row in sorted(read_rows(corpus, "events"), key=lambda row: (row[0], row[1])):
        good[row[0]].append(row[12])
    for path in paths[:-1]:
        assert len(good[str(path)]) == sum(1 for _ in open_trace(path)[1])
    again = ingest(spark, corpus, paths, quiet)
    assert (again.inputs, again.already_ingested) == (0, len(paths))
    places = {Path(name).relative_to(corpus.folder).parts[1:4] for name in corpus.files("events")}
    assert all([part.partition("=")[0] for part in place] == ["source", "date", "bucket"] for place in places)


@pytest.mark.parametrize("commits", [0, 1, 2])
def test_a_killed_ingest_leaves_whole_batches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    paths = traces(tmp_path)
    undisturbed, corpus = Corpus.create(tmp_path / "u", 4), Corpus.create(tmp_path / "c", 4)
    # Workers as they are, without the detour over Spark.
    monkeypatch.setattr(
        module, "map_parallel", lambda _, items, work, told: [work(part) for part in split_evenly(items, 2)]
    )
    ingest(spark, undisturbed, paths, quiet)
    left, commit = [commits], Corpus.commit

    def dying(self: Corpus, batch: Batch) -> None:
        if not left[0]:
            raise ProcessKilled
        left[0] -= 1
        commit(self, batch)

    monkeypatch.setattr(Corpus, "commit", dying)
    with pytest.raises(ProcessKilled):
        ingest(spark, corpus, paths, quiet, batch=1)
    assert len(corpus.batches()) == commits
    monkeypatch.setattr(Corpus, "commit", commit)
    ingest(spark, corpus, paths, quiet, batch=40_000)
    for name in ("events", "quarantine", "traces"):
        assert read_rows(corpus, name) == read_rows(undisturbed, name)
    on_disk = {
        path for each in ("events", "quarantine", "traces") for path in (corpus.folder / each).rglob("*.parquet")
    }
    assert len(on_disk) == sum(len(batch.files) for batch in corpus.batches())


def test_a_file_that_has_changed_is_not_read_twice(spark: SparkSession, tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    paths = traces(tmp_path, 1)
    corpus.commit(Batch((InputFile(str(paths[0]), 1, 1),), ()))
    with pytest.raises(PipelineError, match="has changed since"):
        ingest(spark, corpus, paths, quiet)


def test_lost_lines_are_an_error(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "map_parallel", lambda *_: [module.IngestResult((), Counts(5, 1, 3, 0))])
    with pytest.raises(PipelineError, match="lines were lost"):
        ingest(spark, Corpus.create(tmp_path / "c", 4), traces(tmp_path, 1), quiet)


def test_a_worker_that_cannot_write_is_an_error_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    paths = traces(tmp_path, 2)
    corpus = Corpus.create(tmp_path / "c", 4)
    (corpus.folder / "events").rmdir()
    (corpus.folder / "events").symlink_to(tmp_path / "nowhere")
    with pytest.raises(PipelineError, match=r"^(FileExistsError|NotADirectoryError): .*events"):
        ingest(spark, corpus, paths, quiet)


def test_many_sources_do_not_keep_many_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.traces.pipeline.schema.MAX_OPEN_FILES", 1)
    paths = traces(tmp_path, 3)
    corpus = Corpus.create(tmp_path / "c", 2)
    inputs = [InputFile.from_path(path) for path in paths]
    receipt = make_ingest_task(corpus)(inputs)
    assert len(receipt.files) > len({Path(name).parent for name in receipt.files})
    corpus.commit(Batch(tuple(inputs), receipt.files, receipt.counts))
    assert len(read_rows(corpus, "events")) == receipt.counts.events
