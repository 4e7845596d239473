"""A corpus is written as a whole or not at all, and keeps its rows when files are put together or an input is taken
out."""

import os
import re
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import fencepost.traces.pipeline
from fencepost.conformance.cli import main
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, Counts, InputFile, compact, forget, open_table
from fencepost.traces.pipeline.ingest import batch_by_size, find_inputs, make_ingest_task, open_trace_file
from fencepost.traces.pipeline.results import replace_folder
from fencepost.traces.pipeline.tables import INPUTS, TABLE_COLUMN, TABLES, TableWriter
from tests.support.altered_traces import altered_trace
from tests.support.corpus_tables import commit_input, ingest_here, inputs_of, read_rows, write_input


def files_on_disk(corpus: Corpus) -> set[str]:
    return {str(path) for path in Path(corpus.data).glob(f"{TABLE_COLUMN}=*/*")}


def tables(corpus: Corpus) -> dict[str, list[Any]]:
    return {name: read_rows(corpus, name) for name in TABLES}


def make_corpus(folder: Path) -> Corpus:
    """A corpus of five traces, one of them damaged and one of them empty, each ingested on its own."""
    for seed in range(4):
        write_trace(folder / f"{seed}.jsonl", *altered_trace(seed))
    lines = (folder / "3.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "3.jsonl").write_bytes(b"".join([*lines[:9], b"?\n", *lines[10:]]))
    (folder / "4.jsonl").touch()
    corpus = Corpus.create(folder / "c", 3)
    for seed in range(5):
        ingest_here(corpus, [folder / f"{seed}.jsonl"])
    return corpus


def test_uncommitted_files_do_not_count_and_are_removed_later(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    killed, slow = corpus.start_writing(), corpus.start_writing()
    write_input(killed, "dead")
    files = write_input(slow, "p")
    commit_input(corpus, "q")
    assert not slow.append(["p"], files), "a writer leaves what another one may still commit"
    again = Corpus.create(tmp_path / "c", 99)
    assert again.buckets == 4, "a corpus keeps its buckets"
    assert {row.input for row in corpus.inputs()} == {"p", "q"} and len(files_on_disk(corpus)) == 3
    open_table(corpus.folder).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert files_on_disk(corpus) == {*corpus.files(INPUTS)}


def test_an_input_is_committed_by_one_writer(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    writer = corpus.start_writing()
    files = write_input(writer, "p", "q")
    commit_input(corpus, "q")
    assert writer.append(["p", "q"], files) == {"q"}
    assert [row.input for row in corpus.inputs()] == ["q"] and files_on_disk(corpus) == {*corpus.files(INPUTS)}


def test_a_writer_that_is_overtaken_between_reading_and_committing_looks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, commit = Corpus.create(tmp_path / "c", 4), CorpusWriter.commit
    others, slow = ["q", "p"], corpus.start_writing()

    def commit_too_late(self: CorpusWriter, files: Mapping[str, int], after: Corpus) -> bool:
        if others and self is slow:
            commit_input(corpus, others.pop(0))
        return commit(self, files, after)

    monkeypatch.setattr(CorpusWriter, "commit", commit_too_late)
    assert slow.append(["p"], write_input(slow, "p")) == {"p"}
    assert not others and {row.input for row in corpus.inputs()} == {"p", "q"}


@pytest.mark.parametrize(
    ("size", "reason"), [(None, "is not there: .* must be the same folder on all nodes"), (3, "has 3 bytes")]
)
def test_what_a_worker_wrote_must_be_there(size: int | None, reason: str, tmp_path: Path) -> None:
    """A worker on another node may have written below a folder of its own."""
    corpus = Corpus.create(tmp_path / "c", 4)
    if size is not None:
        (Path(corpus.data) / "table=events").mkdir()
        (Path(corpus.data) / "table=events" / "a.parquet").write_bytes(b"?" * size)
    with pytest.raises(PipelineError, match=reason):
        corpus.start_writing().append([], {"table=events/a.parquet": 4})
    assert not corpus.inputs()


def test_a_snapshot_has_the_inputs_of_one_moment(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 4)
    commit_input(corpus, "p")
    before = corpus.snapshot()
    commit_input(corpus, "q")
    forget(corpus, "p")
    assert [row.input for row in before.inputs()] == ["p"], "its files are still there"
    assert [row.input for row in corpus.inputs()] == ["q"]


def test_a_corpus_is_where_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given in (Path("c"), Path(f"file://{tmp_path}/c")):
        assert Corpus.create(given, 4).folder == tmp_path / "c"
    with pytest.raises(PipelineError, match=r"^gopher://bucket/c: .*gopher"):
        Corpus.create(Path("gopher://bucket/c"), 4)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PipelineError, match="is not a corpus"):
        Corpus.open(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match="neither empty nor a corpus"):
        Corpus.create(tmp_path, 4)
    DeltaTable.create(str(tmp_path / "d" / "data"), open_table(Corpus.create(tmp_path / "c", 4).folder).schema())
    with pytest.raises(PipelineError, match="has corpus format None; this Fencepost reads 7: ingest its inputs anew"):
        Corpus.open(tmp_path / "d")
    assert main(["pipeline", "forget", str(tmp_path / "c"), "x"]) == 2
    told = capsys.readouterr().err
    assert told.endswith("has no input x: fencepost pipeline inputs lists them\n")
    assert told.count("\n") == 1


def test_a_folder_of_parquet_files_without_a_log_is_read_only(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path)
    for table in TABLES:
        for file in corpus.files(table):
            (tmp_path / "plain" / f"table={table}").mkdir(parents=True, exist_ok=True)
            shutil.copy(file, tmp_path / "plain" / f"table={table}")
    (tmp_path / "plain" / "judged").mkdir()
    (tmp_path / "plain" / "judged" / "other.parquet").touch()
    plain = Corpus.open(tmp_path / "plain")
    assert tables(plain) == tables(corpus) == tables(plain.snapshot()) and plain.size() == corpus.size()
    with pytest.raises(PipelineError, match="has no log: it can be judged, queried and extracted from only"):
        plain.start_writing()
    with pytest.raises(PipelineError, match="neither empty nor a corpus"):
        Corpus.create(tmp_path / "plain", 3)


def test_workers_list_a_relative_path_wherever_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").touch()
    monkeypatch.chdir(tmp_path)
    (found,) = find_inputs(spark, [Path("in")])
    assert found.path == str(tmp_path / "in" / "a.jsonl")


def test_folders_and_files_are_sources(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl.gz", "notes.txt", "deep/c.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = find_inputs(spark, [tmp_path, tmp_path / "notes.txt", tmp_path / "b.jsonl"])
    assert [Path(each.path).name for each in found] == ["a.jsonl.gz", "b.jsonl", "c.jsonl", "notes.txt"]
    with pytest.raises(PipelineError, match="no such file"):
        find_inputs(spark, [tmp_path / "none"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(PipelineError, match="no input found"):
        find_inputs(spark, [tmp_path / "empty"])


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


def test_small_files_become_one_with_the_same_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = make_corpus(tmp_path)
    before = tables(corpus)
    assert main(["pipeline", "compact", str(corpus.folder)]) == 0
    assert f"{5 + 4 + 4 + 2} files are 4 now" in capsys.readouterr().out
    assert tables(corpus) == before and [len(corpus.files(name)) for name in TABLES] == [1, 1, 1, 1]
    assert compact(corpus) == (4, 4)


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_an_input_is_forgotten_with_all_its_rows(seed: int, tmp_path: Path) -> None:
    corpus, name = make_corpus(tmp_path), str(tmp_path / f"{seed}.jsonl")
    before = tables(corpus)
    assert main(["pipeline", "forget", str(corpus.folder), name]) == 0
    assert tables(corpus) == {table: [row for row in rows if row[0] != name] for table, rows in before.items()}
    ingest_here(corpus, [Path(name)])
    assert tables(corpus) == before


def test_a_seed_is_forgotten_with_its_traces(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path)
    rows, writer = tables(corpus), corpus.start_writing()
    with TableWriter(corpus.data, writer.id) as writing:
        for name, seed in (("seed 1/it's.jsonl", 1), ("seed 11/a.jsonl", 11)):
            writing.add_row("traces", (name, *rows["traces"][0][1:]))
            writing.add_row("inputs", (f"seed {seed}", 0, 0, 7, 1, 6, 0, "{}"))
    assert not writer.append(["seed 1", "seed 11"], writing.files)
    assert forget(corpus, "seed 1") == Counts(7, 1, 6, 0)
    assert {row[0] for row in read_rows(corpus, "traces")} - {row[0] for row in rows["traces"]} == {"seed 11/a.jsonl"}
    assert {row.input for row in corpus.inputs()} - {row[0] for row in rows["inputs"]} == {"seed 11"}


def test_names_with_quotes_are_forgotten(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 1)
    for name in ("it's", "it''s", 'it"s'):
        commit_input(corpus, name)
    forget(corpus, "it's")
    assert {row.input for row in corpus.inputs()} == {"it''s", 'it"s'}


def fill(folder: Path, text: str) -> None:
    (folder / "rows").write_text(text)


def test_of_two_that_replace_a_folder_at_the_same_time_the_later_one_wins(tmp_path: Path) -> None:
    target = tmp_path / "judged"
    with replace_folder(target) as slow:
        fill(slow, "slow")
        with replace_folder(target) as quick:
            fill(quick, "quick")
        assert (target / "rows").read_text() == "quick" and (slow / "rows").read_text() == "slow"
    assert (target / "rows").read_text() == "slow"
    assert [path.name for path in tmp_path.iterdir()] == ["judged"] and [path.name for path in target.iterdir()] == [
        "rows"
    ]


def test_an_error_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    with replace_folder(tmp_path / "judged") as folder:
        fill(folder, "before")
    with pytest.raises(KeyError), replace_folder(tmp_path / "judged") as folder:
        fill(folder, "after")
        raise KeyError
    assert (tmp_path / "judged" / "rows").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["judged"]


def test_what_a_killed_process_left_is_removed_after_a_week(tmp_path: Path) -> None:
    for name in ("judged.partial-dead", "judged.partial-living", "other.partial-dead"):
        (tmp_path / name / "new").mkdir(parents=True)
    (tmp_path / "judged.partial-notes.txt").touch()
    for name in ("judged.partial-dead", "judged.partial-notes.txt", "other.partial-dead"):
        os.utime(tmp_path / name, (0, 0))
    with replace_folder(tmp_path / "judged"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "judged",
        "judged.partial-living",
        "judged.partial-notes.txt",
        "other.partial-dead",
    ]


PAGE = Path(fencepost.traces.pipeline.__file__).with_name("CORPUS.md")


def make_uneven_corpus(folder: Path) -> Corpus:
    """A corpus of two traces; one more was forgotten, and the rows of another are written and not committed."""
    paths = [folder / f"{seed}.jsonl" for seed in range(4)]
    for seed, path in enumerate(paths):
        write_trace(path, *altered_trace(seed))
    corpus = Corpus.create(folder / "c", 3)
    for path in paths[:3]:
        ingest_here(corpus, [path])
    forget(corpus, str(paths[0]))
    make_ingest_task(corpus, corpus.start_writing().id, open_trace_file)(inputs_of([paths[3]]))
    return corpus


def read_as_shown(corpus: Corpus) -> dict[str, Any]:
    """The results of the Python of CORPUS.md on a corpus."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        exec(code.replace("CORPUS/data", str(corpus.data)), names)
    return names


@pytest.mark.extra("duckdb")
@pytest.mark.usefixtures("spark")
def test_a_corpus_is_read_as_shown(tmp_path: Path) -> None:
    corpus = make_uneven_corpus(tmp_path)
    assert len(list(Path(corpus.data).glob("table=events/*"))) == 2 + 2, "files that count, and that do not"
    found = read_as_shown(corpus)
    rows = read_rows(corpus, "events")
    assert len(rows) == len(found["in_pandas"]) == found["in_spark"].count() > 0
    assert set(found["in_pandas"]["trace"]) == {row[0] for row in rows}
    intact = [row for row in rows if row[11]]
    assert dict(found["in_duckdb"].fetchall()) == {
        group: sum(row[10] == group for row in intact) for group in {row[10] for row in intact}
    }
