"""The section of CORPUS.md on reading a corpus is true: other tools see committed rows only."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import fencepost.traces.pipeline
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline.corpus import Corpus, forget
from fencepost.traces.pipeline.ingest import make_ingest_task, open_trace_file
from tests.support.altered_traces import altered_trace
from tests.support.corpus_tables import ingest_here, inputs_of, read_rows

PAGE = Path(fencepost.traces.pipeline.__file__).with_name("CORPUS.md")


def make_corpus(folder: Path) -> Corpus:
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
    corpus = make_corpus(tmp_path)
    assert len(list(Path(corpus.data).glob("table=events/*"))) == 2 + 2, "files that count, and that do not"
    found = read_as_shown(corpus)
    rows = read_rows(corpus, "events")
    assert len(rows) == len(found["in_pandas"]) == found["in_spark"].count() > 0
    assert set(found["in_pandas"]["trace"]) == {row[0] for row in rows}
    intact = [row for row in rows if row[11]]
    assert dict(found["in_duckdb"].fetchall()) == {
        group: sum(row[10] == group for row in intact) for group in {row[10] for row in intact}
    }
