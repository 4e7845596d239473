"""A corpus that is compacted or copied has the same rows; one that forgets an input has the others."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from fencepost.conformance.cli import main
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline import rewriting
from fencepost.traces.pipeline.corpus import Corpus, Counts
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.migration import migrate
from fencepost.traces.pipeline.rewriting import FileGroup, compact, forget, group_files
from fencepost.traces.pipeline.schema import INPUTS, TABLES, TableWriter, table_of
from tests.support.altered_traces import altered_trace
from tests.support.corpus_tables import ingest_here, read_rows

FORMATS = ["parquet", pytest.param("delta", marks=pytest.mark.extra("deltalake"))]
NO_SPARK: Any = None


def run_here(
    _: object, groups: list[FileGroup], work: Callable[[list[FileGroup]], dict[str, int]], told: object
) -> list[dict[str, int]]:
    """A worker as it is, without the detour over Spark."""
    return [work(groups)]


def tables(corpus: Corpus) -> dict[str, list[Any]]:
    return {name: read_rows(corpus, name) for name in TABLES}


def make_corpus(folder: Path, format: str = "parquet") -> Corpus:
    """A corpus of five traces, one of them damaged and one of them empty, each ingested on its own."""
    for seed in range(4):
        write_trace(folder / f"{seed}.jsonl", *altered_trace(seed))
    lines = (folder / "3.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "3.jsonl").write_bytes(b"".join([*lines[:9], b"?\n", *lines[10:]]))
    (folder / "4.jsonl").touch()
    corpus = Corpus.create(folder / "c", 3, format)
    for seed in range(5):
        ingest_here(corpus, [folder / f"{seed}.jsonl"])
    return corpus


@pytest.mark.parametrize("format", FORMATS)
def test_small_files_become_one_with_the_same_rows(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "map_parallel", run_here)
    corpus = make_corpus(tmp_path, format)
    before = tables(corpus)
    assert compact(NO_SPARK, corpus, lambda *_: None) == (5 + 4 + 4 + 2, 4)
    assert tables(corpus) == before and [len(corpus.files(name)) for name in TABLES] == [1, 1, 1, 1]
    assert compact(NO_SPARK, corpus, lambda *_: None) == (4, 4)


def test_of_two_that_rewrite_the_same_files_one_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, input = make_corpus(tmp_path), str(tmp_path / "1.jsonl")

    def rewrite_too_late(*arguments: Any) -> list[dict[str, int]]:
        forget(corpus, input)
        return run_here(*arguments)

    monkeypatch.setattr(rewriting, "map_parallel", rewrite_too_late)
    with corpus.read(), pytest.raises(PipelineError, match="another process has rewritten files"):
        compact(NO_SPARK, corpus, lambda *_: None)
    assert {row.input for row in corpus.inputs()} == {str(tmp_path / f"{seed}.jsonl") for seed in (0, 2, 3, 4)}


def test_files_are_grouped_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "FULL_FILE_BYTES", 10)
    sizes = {f"table=events/{name}": size for name, size in (("a", 4), ("b", 12), ("c", 7), ("d", 3))}
    found = [[Path(name).name for name in group.names] for group in group_files("events", sizes)]
    assert found == [["b"], ["a", "c"], ["d"]] and not list(group_files("traces", sizes))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", [1, 3, 4])
def test_an_input_is_forgotten_with_all_its_rows(format: str, seed: int, tmp_path: Path) -> None:
    corpus, name = make_corpus(tmp_path, format), str(tmp_path / f"{seed}.jsonl")
    before = tables(corpus)
    assert main(["pipeline", "forget", str(corpus.folder), name]) == 0
    assert tables(corpus) == {table: [row for row in rows if row[0] != name] for table, rows in before.items()}
    ingest_here(corpus, [Path(name)])
    assert tables(corpus) == before


def test_a_seed_is_forgotten_with_its_traces(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path)
    rows = tables(corpus)
    with corpus.write() as writer, TableWriter(corpus.data, writer.id) as writing:
        for name, seed in (("seed 1/a.jsonl", 1), ("seed 11/a.jsonl", 11)):
            writing.add_row("traces", (name, *rows["traces"][0][1:]))
            writing.add_row("inputs", (f"seed {seed}", 0, 0, 7, 1, 6, 0, "{}"))
        writing.close()
        assert not writer.append(["seed 1", "seed 11"], writing.files)
    assert forget(corpus, "seed 1") == Counts(7, 1, 6, 0)
    assert {row[0] for row in read_rows(corpus, "traces")} - {row[0] for row in rows["traces"]} == {"seed 11/a.jsonl"}
    assert {row.input for row in corpus.inputs()} - {row[0] for row in rows["inputs"]} == {"seed 11"}


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = Corpus.create(tmp_path / "c", 3)
    for arguments, line in (
        (["forget", "c", "x"], "has no input x: give its name as it was ingested, 'seed N', or a topic"),
        (["migrate", "c", "--to", "c"], "c already exists: give a new folder"),
        (["migrate", "d", "--to", "e"], "d is not a corpus: make one with fencepost pipeline ingest"),
    ):
        words = [str(tmp_path / word) if word in ("c", "d", "e") else word for word in arguments]
        assert main(["pipeline", *words]) == 2
        told = capsys.readouterr().err
        assert told.startswith("fencepost: ") and told.endswith(f"{line}\n") and told.count("\n") == 1
    assert not corpus.inputs()


def test_without_the_extra_a_delta_table_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Corpus.create(tmp_path / "c", 3)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    assert main(["pipeline", "migrate", str(tmp_path / "c"), "--to", str(tmp_path / "d"), "--format", "delta"]) == 2
    assert capsys.readouterr().err == "fencepost: the pipeline needs deltalake: pip install 'fencepost[delta]'\n"
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("format", FORMATS)
def test_a_copy_has_the_same_rows(format: str, tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path)
    arguments = ["pipeline", "migrate", str(corpus.folder), "--to", str(tmp_path / "d"), "--format", format]
    assert main(arguments) == 0
    copy = Corpus.open(tmp_path / "d")
    assert (copy.format, copy.buckets) == (format, corpus.buckets) and tables(copy) == tables(corpus)


def downgrade(corpus: Corpus, version: int) -> None:
    """Turn a corpus into one of an older format, with an event file for each day and bucket."""
    now = corpus.snapshot()
    assert now.committed is not None
    rows = now.inputs()
    files = []
    for name in now.committed.files:
        table = pq.read_table(Path(corpus.data) / name)
        kind = table_of(name)
        if kind == INPUTS:
            continue
        (Path(corpus.folder) / kind).mkdir(exist_ok=True)
        if kind != "events":
            files.append(f"{kind}/{Path(name).name}")
            pq.write_table(table, Path(corpus.folder) / files[-1])
            continue
        for bucket in sorted(set(table["bucket"].to_pylist())):
            mine = table.filter(pc.equal(table["bucket"], bucket))
            source = "source=s%2F1/" if version == 3 else ""
            files.append(f"events/{source}date={mine['date'][0]}/bucket={bucket}/{Path(name).name}")
            (Path(corpus.folder) / files[-1]).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(mine.drop_columns(["date", "bucket"]), Path(corpus.folder) / files[-1])
    shutil.rmtree(corpus.data)
    (Path(corpus.folder) / "manifest").mkdir()
    inputs = [{"path": row.input, "size": row.size, "changed": row.changed} for row in rows]
    batch = {"inputs": inputs, "files": files if version == 3 else dict.fromkeys(files, 1), "counts": {}}
    (Path(corpus.folder) / "manifest" / "00000001.json").write_text(json.dumps(batch))
    (Path(corpus.folder) / "corpus.json").write_text(
        json.dumps({"fencepost_corpus": version, "buckets": corpus.buckets})
    )


@pytest.mark.parametrize("version", [3, 4])
def test_an_older_corpus_is_copied_with_all_its_rows(version: int, tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path)
    before = tables(corpus)
    downgrade(corpus, version)
    with pytest.raises(PipelineError, match=f"has corpus format {version}; .* fencepost pipeline migrate"):
        Corpus.open(corpus.folder)
    assert migrate(corpus.folder, tmp_path / "d", None) == 5
    assert tables(Corpus.open(tmp_path / "d")) == before


def test_a_copy_is_whole_or_nothing(tmp_path: Path) -> None:
    """Of a corpus with a missing file there is none."""
    corpus = make_corpus(tmp_path)
    downgrade(corpus, 4)
    next((Path(corpus.folder) / "events").rglob("*.parquet")).unlink()
    with pytest.raises(PipelineError, match="is not there: ingest its inputs anew"):
        migrate(corpus.folder, tmp_path / "d", None)
    assert not (tmp_path / "d").exists()
