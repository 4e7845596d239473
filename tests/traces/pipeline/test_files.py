"""Traces are read where they are: on an object store as on this machine."""

import gzip
import socket
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from fencepost.conformance.cli.options import location
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.files import (
    find_files,
    open_input,
    open_parquet,
    open_parquet_output,
)
from fencepost.traces.pipeline.ingest import TRACE_FILES, inputs_at
from fencepost.traces.pipeline.rows import RowReader
from fencepost.traces.pipeline.tables import EVENTS, SCHEMAS, TABLES
from fencepost.traces.pipeline.trace_rows import extract_trace
from tests.support.altered_traces import altered_trace
from tests.support.corpus_tables import ingest_files, read_rows
from tests.support.object_store import ObjectStore, run_object_store

pytestmark = pytest.mark.extra("moto")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with run_object_store() as running:
        yield running


@pytest.fixture
def bucket(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
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


def test_a_bucket_holds_the_same_traces_as_a_folder(bucket: str, tmp_path: Path) -> None:
    inputs = [*inputs_at(f"s3a://{bucket}/in", TRACE_FILES), *inputs_at(tmp_path / "in" / "deep", TRACE_FILES)]
    assert [each.path for each in inputs[:3]] == [
        f"s3://{bucket}/in/{name}" for name in ("0.jsonl.gz", "cut.jsonl.gz", "deep/1%20%25%3F%23%C3%A9.jsonl")
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


def test_a_file_may_be_named_by_itself(bucket: str) -> None:
    (found,) = find_files(f"s3://{bucket}/in/notes.txt", (".jsonl",))
    assert found.size == 0 and found.changed > 0 and open_input(found.name).read() == b""


def test_errors_are_one_line(bucket: str, tmp_path: Path) -> None:
    for place, line in (
        (f"s3://{bucket}/none", r"none: no input found$"),
        ("s3://no-such-bucket-here/x", r"^s3://no-such-bucket-here/x: no input found$"),
        ("gopher://x/y", r"^gopher://x/y: .*gopher"),
    ):
        with pytest.raises(PipelineError, match=line) as told:
            inputs_at(place, TRACE_FILES)
        assert "\n" not in str(told.value)
    reader = RowReader(f"s3://{bucket}/in/gone.jsonl")
    (bad,) = reader.rows()
    assert "cannot be read: " in reader.flaw and bad.line == 0


def test_a_server_that_is_gone_is_an_error_in_one_line(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{probe.getsockname()[1]}")
    with pytest.raises(PipelineError, match=f"^s3://{bucket}/in: .*"):
        list(find_files(f"s3://{bucket}/in", (".jsonl",)))


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
