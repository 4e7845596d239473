"""Corpora in tests: the rows of their tables, and an exception that stands for a killed writer."""

from typing import Any

import pyarrow.parquet as pq

from fencepost.traces.pipeline.corpus import Corpus


def read_rows(corpus: Corpus, name: str) -> list[tuple[Any, ...]]:
    """The rows of the table `name`, sorted."""
    rows = [row for file in corpus.files(name) for row in pq.ParquetFile(file).read().to_pylist()]
    return sorted((tuple(row.values()) for row in rows), key=repr)


class ProcessKilled(BaseException):
    """Raised where a test pretends that the process is killed: nothing catches it."""
