"""A trace comes out of a corpus as it went in."""

from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from fencepost.traces.files.rotating_writer import RecordingReader
from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.pipeline.corpus import Corpus
from tests.support.altered_traces import altered_trace, write_in_parts
from tests.support.corpus_tables import ingest_here


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Two traces, one of them with a bad line, and a recording in parts."""
    (tmp_path / "in").mkdir()
    for seed in (1, 2):
        write_trace(tmp_path / "in" / f"{seed}.jsonl", *altered_trace(seed))
    lines = (tmp_path / "in" / "2.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "in" / "2.jsonl").write_bytes(b"".join([*lines[:20], b"?\n", *lines[20:]]))
    write_in_parts(tmp_path / "in", *altered_trace(14), 3)
    corpus = Corpus.create(tmp_path / "c", 3)
    ingest_here(corpus, sorted((tmp_path / "in").iterdir()))
    return corpus


def extract(corpus: Corpus, finding: str, output: Path) -> int:
    return main(["pipeline", "extract", str(corpus.folder), "--finding", finding, "-o", str(output)])


@pytest.mark.parametrize("event", ["", ":0", ", event 0"])
def test_a_trace_is_what_it_was(corpus: Corpus, tmp_path: Path, event: str) -> None:
    source = tmp_path / "in" / "1.jsonl"
    assert extract(corpus, f"{source}{event}", tmp_path / "out.jsonl") == 0
    assert (tmp_path / "out.jsonl").read_bytes() == source.read_bytes()


def test_what_comes_after_a_bad_line_is_left_out(corpus: Corpus, tmp_path: Path) -> None:
    source = tmp_path / "in" / "2.jsonl"
    assert extract(corpus, str(source), tmp_path / "out.jsonl") == 0
    assert (tmp_path / "out.jsonl").read_bytes().splitlines() == source.read_bytes().splitlines()[:20]


def test_parts_make_one_trace(corpus: Corpus, tmp_path: Path) -> None:
    parts = sorted((tmp_path / "in").glob("r.*"))
    assert extract(corpus, str(parts[1]), tmp_path / "out.jsonl") == 0
    ((_, _, events),) = ((path, header, list(events)) for path, header, events in RecordingReader(parts).traces())
    assert list(open_trace(tmp_path / "out.jsonl")[1]) == events


def test_errors_are_one_line(corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(tmp_path / "in" / "1.jsonl")
    (tmp_path / "there.jsonl").touch()
    for finding, output, line in (
        (
            "none.jsonl:3",
            "out.jsonl",
            f"{corpus.folder} has no trace none.jsonl: give TRACE:EVENT as a report has them",
        ),
        (f"{source}:99999", "out.jsonl", f"{source} has no event 99999 in {corpus.folder}"),
        (source, "there.jsonl", f"{tmp_path}/there.jsonl: File exists"),
    ):
        assert extract(corpus, finding, tmp_path / output) == 2
        assert capsys.readouterr().err == f"fencepost: {line}\n"
    assert not (tmp_path / "out.jsonl").exists()
