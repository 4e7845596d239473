"""Corpora in tests: an ingest without Spark, the rows of tables, and an exception that stands for a killed writer."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from fencepost.traces.pipeline.corpus import Batch, Corpus, InputFile
from fencepost.traces.pipeline.ingest import IngestResult, make_ingest_task


def ingest_here(corpus: Corpus, paths: Iterable[Path]) -> IngestResult:
    """Ingest files in one batch, in this process."""
    inputs = tuple(map(InputFile.from_path, paths))
    with corpus.write() as writer:
        result = make_ingest_task(writer)(list(inputs))
        assert not writer.commit(Batch(inputs, result.files, result.counts))
    return result


def read_rows(corpus: Corpus, name: str) -> list[tuple[Any, ...]]:
    """The rows of the table `name`, sorted."""
    rows = [row for file in corpus.files(name) for row in pq.ParquetFile(file).read().to_pylist()]
    return sorted((tuple(row.values()) for row in rows), key=repr)


class ProcessKilled(BaseException):
    """Raised where a test pretends that the process is killed: nothing catches it."""
