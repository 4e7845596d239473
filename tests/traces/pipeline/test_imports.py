"""Imports by workers: a location of logs or captures is one trace, wherever it is."""

import gzip
import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.model.settings import Settings
from fencepost.traces.events import Kind
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.pipeline.corpus import Corpus
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
from fencepost.traces.pipeline.ingest import IngestResult, make_ingest_task
from fencepost.traces.pipeline.tables import TABLES
from fencepost.traces.pipeline.trace_rows import extract_trace
from tests.support.corpus_tables import read_rows
from tests.support.object_store import run_object_store

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
