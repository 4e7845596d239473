"""Ingest puts every line of its files into the tables once, also after a kill."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fencepost.traces.events import Event
from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline import ingest as module
from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, Counts, InputFile
from fencepost.traces.pipeline.ingest import IngestResult, ingest
from fencepost.traces.pipeline.parallel import split_evenly
from fencepost.traces.pipeline.rows import SHARED_BUCKET, Row, RowReader
from fencepost.traces.pipeline.tables import TABLES
from tests.support.corpus_tables import ProcessKilled, commit_input, ingest_here, inputs_of, quiet, read_rows
from tests.support.random_client import random_trace


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


def run_here(
    _: object, items: list[InputFile], work: Callable[[list[InputFile]], IngestResult], told: object
) -> list[IngestResult]:
    """Workers as they are, without the detour over Spark."""
    return [work(part) for part in split_evenly(items, 2)]


@pytest.mark.slow
def test_corpus_holds_every_line(spark: SparkSession, tmp_path: Path) -> None:
    paths = traces(tmp_path)
    corpus = Corpus.create(tmp_path / "c", 4)
    done = ingest(spark, corpus, inputs_of(paths), quiet)
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
    again = ingest(spark, corpus, inputs_of(paths), quiet)
    assert (again.inputs, again.already_ingested) == (0, len(paths))
    for row in read_rows(corpus, "events"):
        assert row[-1] == (SHARED_BUCKET if row[10] is None else corpus.bucket_of(row[10]))


@pytest.mark.parametrize("commits", [0, 1, 2])
def test_a_killed_ingest_leaves_whole_batches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    paths = traces(tmp_path)
    undisturbed, corpus = Corpus.create(tmp_path / "u", 4), Corpus.create(tmp_path / "c", 4)
    # Workers as they are, without the detour over Spark.
    monkeypatch.setattr(module, "map_parallel", run_here)
    ingest(spark, undisturbed, inputs_of(paths), quiet)
    left, append = [commits], CorpusWriter.append

    def dying(self: CorpusWriter, inputs: set[str], files: dict[str, int]) -> frozenset[str]:
        if not left[0]:
            raise ProcessKilled
        left[0] -= 1
        return append(self, inputs, files)

    monkeypatch.setattr(CorpusWriter, "append", dying)
    with pytest.raises(ProcessKilled):
        ingest(spark, corpus, inputs_of(paths), quiet, batch=1)
    assert len(corpus.inputs()) == commits
    monkeypatch.setattr(CorpusWriter, "append", append)
    ingest(spark, corpus, inputs_of(paths), quiet, batch=40_000)
    for name in TABLES:
        assert read_rows(corpus, name) == read_rows(undisturbed, name)
    assert {str(path) for path in Path(corpus.data).rglob("*.parquet")} >= {
        file for name in TABLES for file in corpus.files(name)
    }


def test_a_file_that_has_changed_is_named_and_stops_no_other(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "map_parallel", run_here)
    corpus, paths = Corpus.create(tmp_path / "c", 4), traces(tmp_path, 2)
    commit_input(corpus, str(paths[0]))
    done = ingest(spark, corpus, inputs_of(paths), quiet)
    assert (done.changed, done.inputs, done.already_ingested) == ((str(paths[0]),), 1, 0)


def test_lost_lines_are_an_error(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "map_parallel", lambda *_: [module.IngestResult(counts=Counts(5, 1, 3, 0))])
    with pytest.raises(PipelineError, match="lines were lost"):
        ingest(spark, Corpus.create(tmp_path / "c", 4), inputs_of(traces(tmp_path, 1)), quiet)


def test_a_worker_that_cannot_write_is_an_error_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    paths = traces(tmp_path, 2)
    corpus = Corpus.create(tmp_path / "c", 4)
    (Path(corpus.data) / "table=events").symlink_to(tmp_path / "nowhere")
    with pytest.raises(PipelineError, match=r"^FileExistsError: .*events"):
        ingest(spark, corpus, inputs_of(paths), quiet)


def test_two_ingests_at_the_same_time_commit_each_file_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins while the first has written its rows and not committed them, sweeps, and takes some of its
    inputs."""
    paths = traces(tmp_path)
    alone, corpus = Corpus.create(tmp_path / "a", 4), Corpus.create(tmp_path / "c", 4)
    monkeypatch.setattr(module, "map_parallel", run_here)
    ingest(spark, alone, inputs_of(paths), quiet)
    others = [paths[1:3], paths[2:5]]

    def overtaken(
        _: object, items: list[InputFile], work: Callable[[list[InputFile]], IngestResult], told: object
    ) -> list[IngestResult]:
        written = run_here(_, items, work, told)
        if others:
            ingest(spark, corpus, inputs_of(others.pop()), quiet)
        return written

    monkeypatch.setattr(module, "map_parallel", overtaken)
    done = ingest(spark, corpus, inputs_of(paths), quiet)
    assert not others and 0 < done.inputs < len(paths) == done.inputs + done.already_ingested
    for name in TABLES:
        assert read_rows(corpus, name) == read_rows(alone, name)
    on_disk = {str(path) for path in Path(corpus.data).glob("table=*/*")}
    assert on_disk == {file for name in TABLES for file in corpus.files(name)}


POISON = {
    "a source that is no text": {"source": "x\ud800"},
    "a long source": {"source": "\u6f22" * 300},
    "a part without end": {"implementation": {"recording": "r", "part": "9" * 5_000}},
    "a recording that is no text": {"implementation": {"recording": "\ud800", "part": "1"}},
}


@pytest.mark.parametrize("name", POISON)
def test_no_header_stops_an_ingest(name: str, tmp_path: Path) -> None:
    paths = traces(tmp_path, 2)
    first, *lines = paths[1].read_bytes().splitlines(keepends=True)
    odd = tmp_path / "odd.jsonl"
    odd.write_bytes(json.dumps(json.loads(first) | POISON[name]).encode() + b"\n" + b"".join(lines))
    corpus = Corpus.create(tmp_path / "c", 4)
    result = ingest_here(corpus, [*paths, odd])
    assert result.counts.is_balanced and {row[0] for row in read_rows(corpus, "traces")} == {*map(str, [*paths, odd])}


def test_a_file_with_an_odd_name_stops_no_ingest(tmp_path: Path) -> None:
    odd = traces(tmp_path, 2)[0].rename(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl.gz")))
    corpus = Corpus.create(tmp_path / "c", 4)
    assert ingest_here(corpus, [odd]).counts.is_balanced and len(read_rows(corpus, "traces")) == 1


def test_a_line_that_no_row_can_be_made_of_goes_to_the_quarantine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = traces(tmp_path, 2)
    event_row = RowReader.event_row

    def failing(self: RowReader, number: int, line: bytes, event: Event) -> Row:
        if self.trace == str(paths[0]) and number == 7:
            raise KeyError("odd")
        return event_row(self, number, line, event)

    monkeypatch.setattr(RowReader, "event_row", failing)
    corpus = Corpus.create(tmp_path / "c", 4)
    result = ingest_here(corpus, paths)
    reason = "no row can be made of it, and the rest is not read: KeyError: 'odd'"
    assert result.counts.is_balanced and f"{paths[0]}:7: {reason}" in result.flaws
    assert (str(paths[0]), 7, 1, reason, b"") in read_rows(corpus, "quarantine")


def test_files_that_could_not_be_read_are_named(tmp_path: Path) -> None:
    bad = traces(tmp_path, 2)[-1]
    (tmp_path / "empty.jsonl").touch()
    flaws = ingest_here(Corpus.create(tmp_path / "c", 4), sorted(tmp_path.glob("*.jsonl*"))).flaws
    assert sorted(flaw.partition(": ")[0] for flaw in flaws) == [f"{bad}:21", f"{tmp_path}/empty.jsonl:1"]
