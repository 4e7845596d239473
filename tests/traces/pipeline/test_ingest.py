"""Ingest puts every line of its files into the tables once, also after a kill; workers make traces of other files."""

import gzip
import json
import os
import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import TraceError, open_trace, write_trace
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline import ingest as module
from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, Counts, InputFile
from fencepost.traces.pipeline.files import Location
from fencepost.traces.pipeline.imports import (
    LOG_IMPORTER,
    Importer,
    import_location,
    import_source,
    list_location,
    recording_importer,
    request_log_importer,
)
from fencepost.traces.pipeline.ingest import IngestResult, ingest, make_ingest_task
from fencepost.traces.pipeline.parallel import split_evenly
from fencepost.traces.pipeline.rows import SHARED_BUCKET, Row, RowReader
from fencepost.traces.pipeline.tables import TABLES
from fencepost.traces.pipeline.trace_rows import extract_trace
from tests.support.corpus_tables import ProcessKilled, commit_input, ingest_here, inputs_of, quiet, read_rows
from tests.support.object_store import run_object_store
from tests.support.random_client import random_trace

# --- Ingest puts every line of its files into the tables once, also after a kill.


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


# --- Imports by workers: a location of logs or captures is one trace, wherever it is.

REQUESTS = Path(__file__).parents[1] / "data" / "kafka-4-requests.log.gz"
IMPORTER = request_log_importer(Settings(initial_rebalance_delay=600))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with the rotated parts of one broker, and the log of another."""
    rows = gzip.decompress(REQUESTS.read_bytes()).splitlines(keepends=True)
    (tmp_path / "logs" / "broker 1").mkdir(parents=True)
    (tmp_path / "logs" / "broker 1" / "requests.log.1").write_bytes(b"".join(rows[:40]))
    (tmp_path / "logs" / "broker-2.log").write_bytes(b"".join(rows[40:]))
    return tmp_path / "logs"


@pytest.fixture
def bucket(logs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of a bucket with the same folder."""
    with run_object_store() as store:
        for name, value in store.variables.items():
            monkeypatch.setenv(name, value)
        yield store.make_bucket("logs", logs).replace("s3a:", "s3:")


def import_here(corpus: Corpus, importer: Importer, *locations: Location) -> IngestResult:
    """Import locations in this process, as a worker does."""
    writer, inputs = corpus.start_writing(), [each for place in locations for each in list_location(importer, place)]
    result = make_ingest_task(corpus, writer.id, import_source(importer).open)(inputs)
    writer.append(result.inputs, result.files)
    return result


def test_request_logs_of_a_folder_are_one_trace(logs: Path, tmp_path: Path) -> None:
    made = import_location(IMPORTER, logs, tmp_path)
    header, events = open_trace(made)
    assert header.settings.initial_rebalance_delay == 600
    assert Counter(event.kind for event in events if event.api == "JoinGroup") == {Kind.REQUEST: 12, Kind.RESPONSE: 12}


@pytest.mark.extra("moto")
def test_logs_on_an_object_store_are_the_same_trace(logs: Path, bucket: str, tmp_path: Path) -> None:
    here, there = Corpus.create(tmp_path / "h", 3), Corpus.create(tmp_path / "t", 3)
    assert import_here(here, IMPORTER, logs).counts == import_here(there, IMPORTER, f"{bucket}/in").counts
    for table in TABLES[:2]:
        mine, theirs = ([row[1:] for row in read_rows(each, table)] for each in (here, there))
        assert [row[:-2] for row in mine] == [row[:-2] for row in theirs], "but for the days of the files"
    (row,) = there.inputs()
    assert row.input.startswith(f"{bucket}/in#request-logs-") and row.size == here.inputs()[0].size
    assert extract_trace(there, row.input, tmp_path / "t.jsonl") == row.events > 0
    single = import_here(there, IMPORTER, f"{bucket}/in/broker-2.log")
    assert single.counts.events and not single.failed


def test_a_driver_learns_as_much_of_many_files_as_of_one(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / "in" / str(number)).mkdir(parents=True)
        (tmp_path / "in" / str(number) / "server.log").write_text("x")
    (many,), (one,) = (list_location(LOG_IMPORTER, tmp_path / place) for place in ("in", "in/7"))
    assert (many.size, one.size) == (50, 1)
    assert len(pickle.dumps(many)) <= len(pickle.dumps(one))


def test_what_cannot_be_imported_stops_nothing_else(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "odd.log").write_text("nothing of the kind\n")
    corpus = Corpus.create(tmp_path / "c", 3)
    result = import_here(corpus, IMPORTER, tmp_path / "odd.log", logs)
    assert [row.input for row in corpus.inputs()] == [IMPORTER.name_of(logs)]
    (reason,) = result.failed.values()
    assert reason.startswith(f"{tmp_path}/odd.log: no line of a request log")
    with pytest.raises(TraceError):
        import_location(LOG_IMPORTER, tmp_path / "odd.log", tmp_path)
    (tmp_path / "empty").mkdir()
    assert not list_location(IMPORTER, tmp_path / "empty")


def test_other_options_make_another_trace(logs: Path) -> None:
    assert IMPORTER.name_of(logs) == request_log_importer(Settings(initial_rebalance_delay=600)).name_of(logs)
    assert IMPORTER.name_of(logs) != request_log_importer().name_of(logs)
    assert LOG_IMPORTER.name_of(logs) == f"{logs}#logs"
    assert recording_importer().name_of("s3://b/c").startswith("s3://b/c#recordings-")
