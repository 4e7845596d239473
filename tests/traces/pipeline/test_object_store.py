"""Traces, corpora and results on an object store: the same rows, findings and errors as in a folder."""

import gzip
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fencepost.conformance.cli import main
from fencepost.conformance.cli.options import location
from fencepost.conformance.pipeline.campaign import check_same_campaign
from fencepost.conformance.plan import Plan
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline import PipelineError, story
from fencepost.traces.pipeline import corpus as corpus_module
from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, compact, forget
from fencepost.traces.pipeline.files import find_files, open_input, open_parquet, open_parquet_output, resolve_location
from fencepost.traces.pipeline.ingest import TRACE_FILES, inputs_at
from fencepost.traces.pipeline.results import create_folder
from fencepost.traces.pipeline.rows import RowReader
from fencepost.traces.pipeline.tables import EVENTS, INPUTS, QUARANTINE, SCHEMAS, TABLES, TRACES, TableWriter
from fencepost.traces.pipeline.trace_rows import extract_trace
from tests.support.altered_traces import altered_trace
from tests.support.corpus_tables import CorpusResults, commit_input, ingest_files, ingest_here, read_rows, write_input
from tests.support.object_store import ObjectStore, run_object_store

# --- Traces are read where they are: on an object store as on this machine.

pytestmark = pytest.mark.extra("moto")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with run_object_store() as running:
        yield running


@pytest.fixture
def source_bucket(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a bucket with the traces in `tmp_path`/in: one compressed, one damaged and one with an odd name."""
    for name, value in store.variables.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    write_trace(folder / "0.jsonl.gz", *altered_trace(0))
    write_trace(folder / "deep" / "1 %?#é.jsonl", *altered_trace(1))
    write_trace(folder / "cut.jsonl.gz", *altered_trace(2))
    (folder / "cut.jsonl.gz").write_bytes((folder / "cut.jsonl.gz").read_bytes()[:-9])
    (folder / "notes.txt").touch()
    name = f"b-{tmp_path.name.replace('_', '-').lower()}"[:60].rstrip("-")
    store.make_bucket(name, folder)
    return name


def test_a_bucket_holds_the_same_traces_as_a_folder(source_bucket: str, tmp_path: Path) -> None:
    inputs = [*inputs_at(f"s3a://{source_bucket}/in", TRACE_FILES), *inputs_at(tmp_path / "in" / "deep", TRACE_FILES)]
    assert [each.path for each in inputs[:3]] == [
        f"s3://{source_bucket}/in/{name}" for name in ("0.jsonl.gz", "cut.jsonl.gz", "deep/1%20%25%3F%23%C3%A9.jsonl")
    ]
    here, there = Corpus.create(tmp_path / "h", 3), Corpus.create(tmp_path / "t", 3)
    ingest_files(here, inputs_at(tmp_path / "in", TRACE_FILES))
    result = ingest_files(there, inputs[:3])
    assert result.flaws and result.counts.is_balanced
    for table in TABLES[:3]:
        mine, theirs = (sorted((row[1:4] for row in read_rows(each, table)), key=repr) for each in (here, there))
        assert table == "traces" or mine == theirs
    assert [row.size for row in there.inputs()] == [
        (tmp_path / "in" / name).stat().st_size for name in ("0.jsonl.gz", "cut.jsonl.gz", "deep/1 %?#é.jsonl")
    ]
    assert extract_trace(there, f"{inputs[0].path}:0", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == gzip.decompress((tmp_path / "in" / "0.jsonl.gz").read_bytes())


def test_a_file_may_be_named_by_itself(source_bucket: str) -> None:
    (found,) = find_files(f"s3://{source_bucket}/in/notes.txt", (".jsonl",))
    assert found.size == 0 and found.changed > 0 and open_input(found.name).read() == b""


def test_errors_of_reading_are_one_line(source_bucket: str, tmp_path: Path) -> None:
    for place, line in (
        (f"s3://{source_bucket}/none", r"none: no input found$"),
        ("s3://no-such-bucket-here/x", r"^s3://no-such-bucket-here/x: no input found$"),
        ("gopher://x/y", r"^gopher://x/y: .*gopher"),
    ):
        with pytest.raises(PipelineError, match=line) as told:
            inputs_at(place, TRACE_FILES)
        assert "\n" not in str(told.value)
    reader = RowReader(f"s3://{source_bucket}/in/gone.jsonl")
    (bad,) = reader.rows()
    assert "cannot be read: " in reader.flaw and bad.line == 0


def test_a_server_that_is_gone_is_an_error_in_one_line(source_bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{probe.getsockname()[1]}")
    with pytest.raises(PipelineError, match=f"^s3://{source_bucket}/in: .*"):
        list(find_files(f"s3://{source_bucket}/in", (".jsonl",)))


def test_a_location_is_a_path_or_a_uri() -> None:
    assert [location(text) for text in ("a b", "file:///a%20b", "s3a://b/c")] == [
        Path("a b"),
        Path("/a b"),
        "s3a://b/c",
    ]


def test_numbers_that_rise_are_written_as_differences(tmp_path: Path) -> None:
    schema = SCHEMAS[EVENTS]
    row = dict.fromkeys(schema.names) | {"line": 7, "of": 3, "owned": ["t-0"], "offsets": [("t", 0, 9)]}
    with open_parquet_output(tmp_path / "events.parquet", schema) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist([row], schema))
    file = open_parquet(tmp_path / "events.parquet")
    group = file.metadata.row_group(0)
    encodings = {each.path_in_schema: each.encodings for each in map(group.column, range(group.num_columns))}
    assert "DELTA_BINARY_PACKED" in encodings["line"]
    for name in ("group", "owned.list.element", "offsets.list.element.topic"):
        assert "RLE_DICTIONARY" in encodings[name]
    [found] = file.read().to_pylist()
    assert (found["line"], found["of"], found["sent"], found["owned"]) == (7, 3, None, ["t-0"])


# --- A corpus on an object store: the same rows, findings and errors as in a folder.

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def bucket(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URI of a new bucket, and in `tmp_path`/in three traces, of which one is damaged."""
    for name, value in store.variables.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "in").mkdir()
    for seed in (0, 1, 5):
        write_trace(tmp_path / "in" / f"{seed}.jsonl", *altered_trace(seed))
    (tmp_path / "in" / "0.jsonl").write_bytes((tmp_path / "in" / "0.jsonl").read_bytes()[:-9])
    return store.make_bucket(f"b-{tmp_path.name.replace('_', '-').lower()}"[:60].rstrip("-"))


@pytest.fixture
def running(spark: SparkSession, store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session of the tests in the place of one of its own; its workers know the server."""

    @contextmanager
    def here(*_: Any, **__: Any) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("fencepost.traces.pipeline.spark_session.spark_session", here)
    for name, value in store.variables.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)


def tables_of(corpus: Corpus) -> dict[str, object]:
    """The rows of a corpus."""
    return {table: read_rows(corpus, table) for table in TABLES}


def test_rows_are_the_same_as_in_a_folder(bucket: str, tmp_path: Path) -> None:
    there, here = Corpus.create(f"{bucket}/c", 3), Corpus.create(tmp_path / "c", 3)
    assert there.folder == f"s3://{bucket.partition('://')[2]}/c"
    for corpus in (there, here):
        ingest_here(corpus, sorted((tmp_path / "in").iterdir()))
    assert tables_of(there) == tables_of(here) and all(tables_of(there).values())
    name = str(tmp_path / "in" / "1.jsonl")
    assert extract_trace(there, name, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "in" / "1.jsonl").read_bytes()
    assert forget(there, name) == forget(here, name)
    assert tables_of(there) == tables_of(here)
    assert compact(there) == compact(here)
    assert tables_of(there) == tables_of(here)


def test_an_input_is_committed_once(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, others = Corpus.create(f"{bucket}/c", 3), ["p"]
    commit = CorpusWriter.commit

    def commit_too_late(self: CorpusWriter, files: Mapping[str, int], after: Corpus) -> bool:
        if others and self is slow:
            commit_input(corpus, others.pop())
        return commit(self, files, after)

    monkeypatch.setattr(CorpusWriter, "commit", commit_too_late)
    slow = corpus.start_writing()
    files = write_input(slow, "p")
    assert slow.append(["p"], files) == {"p"}
    assert [row.input for row in corpus.inputs()] == ["p"]
    assert not any(each.name.endswith(next(iter(files))) for each in find_files(str(corpus.folder)))


def test_the_first_of_two_creators_says_how_many_buckets_there_are(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither sees the other's table."""
    place = str(resolve_location(f"{bucket}/c"))
    assert Corpus.create(place, 7).buckets == 7
    known = corpus_module.read_mark(place)
    marks = [None, known]
    monkeypatch.setattr(corpus_module, "read_mark", lambda _: marks.pop(0))
    assert Corpus.create(place, 9).buckets == 7


def test_what_a_worker_wrote_must_be_there(bucket: str) -> None:
    corpus = Corpus.create(f"{bucket}/c", 3)
    writer = corpus.start_writing()
    with pytest.raises(PipelineError, match="which a worker wrote, is not there"):
        writer.append([], {"table=events/a.parquet": 4})
    with pytest.raises(PipelineError, match=r"the worker that wrote it says 1$"):
        writer.append([], dict.fromkeys(write_input(writer, "p"), 1))


def test_errors_are_one_line(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, line in (
        ("s3a://no-such-bucket-here/c", "^s3://no-such-bucket-here/c: .+"),
        ("gopher://x/c", "^gopher://x/c: .+"),
    ):
        with pytest.raises(PipelineError, match=line) as told:
            Corpus.create(place, 3)
        assert "\n" not in str(told.value) and "\x1b" not in str(told.value)
    with pytest.raises(PipelineError, match="is not a corpus"):
        Corpus.open(f"{bucket}/c")
    with TableWriter(f"{bucket}/other", "w") as tables:
        tables.add_row(QUARANTINE, ("t", 1, 1, "r", b""))
    with pytest.raises(PipelineError, match="is neither empty nor a corpus"):
        Corpus.create(f"{bucket}/other", 3)
    with pytest.raises(PipelineError, match="was not created by this command"), create_folder(f"{bucket}/other"):
        pass


def test_a_place_for_results_names_the_newest_run(bucket: str) -> None:
    runs = []
    for number in range(2):
        with create_folder(f"{bucket}/judged") as run, TableWriter(run, str(number)) as tables:
            tables.add_row(INPUTS, ("i", 1, 1, 1, 1, 1, 1, None))
        runs.append(str(run))
    with pytest.raises(ZeroDivisionError), create_folder(f"{bucket}/judged") as run:
        raise ZeroDivisionError
    left = [each.name for each in find_files(f"{bucket}/judged")]
    assert len(left) == 2 and left[0].endswith("/judged.json") and left[1].startswith(runs[1])


def test_campaigns_with_different_options_do_not_mix(bucket: str) -> None:
    corpus = Corpus.create(f"{bucket}/c", 3)
    for _ in range(2):
        check_same_campaign(corpus.folder, Plan("bundled", schedules=3))
    with pytest.raises(PipelineError, match="a campaign with a different target or options"):
        check_same_campaign(corpus.folder, Plan("bundled", schedules=4))


@pytest.mark.slow
@pytest.mark.usefixtures("running")
def test_commands_do_the_same_as_in_a_folder(bucket: str, tmp_path: Path, capsys: Capture) -> None:
    told: list[dict[str, object]] = []
    for place in (f"{bucket}/c", str(tmp_path / "c")):
        report = tmp_path / "report.json"
        assert main(["pipeline", "ingest", str(tmp_path / "in"), "--to", place, "--buckets", "2"]) == 3
        assert main(["pipeline", "ingest", str(tmp_path / "in"), "--to", place]) == 0
        assert "0 files read, 3 known already" in capsys.readouterr().out
        assert main(["pipeline", "compact", place]) == 0
        assert main(["pipeline", "judge", place, "--json", str(report)]) == 1
        output = capsys.readouterr().out
        found = json.loads(report.read_text())
        results = CorpusResults(resolve_location(output.splitlines()[-1].partition("The tables are in ")[2]))
        rows = sorted(repr(sorted(row.items())) for table in story.SCHEMAS for row in results.query_rows(table))
        lines = [line for line in output.splitlines() if "examined" in line]
        parts = ("requirements", "causes", "undecided", "rules")
        told.append({**{part: found[part] for part in parts}, "rows": rows, "lines": lines})
        assert main(["pipeline", "judge", place, "--queries"]) in (0, 3)
        assert "Invariants, queried" in capsys.readouterr().out
    for part, value in told[0].items():
        assert value == told[1][part], part
    tables = [Corpus.open(place) for place in (f"{bucket}/c", str(tmp_path / "c"))]
    for table in (EVENTS, QUARANTINE, TRACES):
        assert read_rows(tables[0], table) == read_rows(tables[1], table)


@pytest.mark.acceptance
@pytest.mark.usefixtures("running")
def test_a_campaign_has_its_corpus_there(bucket: str, tmp_path: Path, capsys: Capture) -> None:
    command = ["pipeline", "campaign", "bundled", "--seeds", "1", "--schedules", "1", "--to", f"{bucket}/c"]
    for _ in range(2):
        assert main(command) == 0
    assert f"The corpus is {bucket}/c" in capsys.readouterr().out
    (row,) = Corpus.open(f"{bucket}/c").inputs()
    assert row.input == "seed 1" and row.events


def test_a_watch_is_kept_in_a_folder(bucket: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["pipeline", "watch", str(tmp_path), "--to", f"{bucket}/w"]) == 2
    assert "Spark keeps the state of a watch in a folder" in capsys.readouterr().err
