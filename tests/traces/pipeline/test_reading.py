"""The sections of CORPUS.md on reading a corpus are true: other tools see committed rows only."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import fencepost.traces.pipeline
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.ingest import make_ingest_task
from fencepost.traces.pipeline.rewriting import forget
from tests.support.altered_traces import altered_trace
from tests.support.corpus_tables import ingest_here, inputs_of, read_rows

PAGE = Path(fencepost.traces.pipeline.__file__).with_name("CORPUS.md")


def snippet(format: str) -> str:
    """The Python of CORPUS.md for a format."""
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    (code,) = (each for each in found if ("deltalake" in each) == (format == "delta"))
    return str(code)


def make_corpus(folder: Path, format: str) -> Corpus:
    """A corpus of two traces; one more was forgotten, and the rows of another are written and not committed."""
    paths = [folder / f"{seed}.jsonl" for seed in range(4)]
    for seed, path in enumerate(paths):
        write_trace(path, *altered_trace(seed))
    corpus = Corpus.create(folder / "c", 3, format)
    for path in paths[:3]:
        ingest_here(corpus, [path])
    with corpus.read():  # so that nobody sweeps
        forget(corpus, str(paths[0]))
        with corpus.write() as writer:
            make_ingest_task(corpus, writer.id)(inputs_of([paths[3]]))
    return corpus


def read_as_shown(corpus: Corpus, format: str) -> dict[str, Any]:
    """The results of the Python of CORPUS.md on a corpus."""
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        exec(snippet(format).replace("CORPUS/data", str(corpus.data)), names)
    return names


def check_duckdb_and_pandas(corpus: Corpus, found: dict[str, Any]) -> None:
    rows = read_rows(corpus, "events")
    assert len(rows) == len(found["in_pandas"]) > 0
    assert set(found["in_pandas"]["trace"]) == {row[0] for row in rows}
    intact = [row for row in rows if row[11]]
    assert dict(found["in_duckdb"].fetchall()) == {
        group: sum(row[10] == group for row in intact) for group in {row[10] for row in intact}
    }


@pytest.mark.extra("duckdb")
@pytest.mark.usefixtures("spark")
def test_plain_parquet_is_read_as_shown(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, "parquet")
    assert len(list(Path(corpus.data).glob("table=events/*"))) == 2 + 2, "files that count, and that do not"
    found = read_as_shown(corpus, "parquet")
    check_duckdb_and_pandas(corpus, found)
    assert found["in_spark"].count() == len(found["in_pandas"])


@pytest.mark.extra("duckdb")
@pytest.mark.extra("deltalake")
def test_a_delta_table_is_read_as_shown(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, "delta")
    assert len(list(Path(corpus.data).glob("table=events/*"))) == 2 + 2
    check_duckdb_and_pandas(corpus, read_as_shown(corpus, "delta"))
