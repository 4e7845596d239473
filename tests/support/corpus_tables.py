"""Corpora in tests: an ingest without Spark, the rows of tables, and an exception that stands for a killed writer."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, InputFile, InputRow
from fencepost.traces.pipeline.file_systems import open_parquet
from fencepost.traces.pipeline.ingest import IngestResult, make_ingest_task
from fencepost.traces.pipeline.schema import INPUTS, TableWriter


def inputs_of(paths: Iterable[Path]) -> list[InputFile]:
    """The files as inputs."""
    return [InputFile.from_path(path) for path in paths]


def ingest_here(corpus: Corpus, paths: Iterable[Path]) -> IngestResult:
    """Ingest files in one batch, in this process."""
    return ingest_files(corpus, inputs_of(paths))


def ingest_files(corpus: Corpus, inputs: list[InputFile]) -> IngestResult:
    """Ingest inputs in one batch, in this process."""
    with corpus.write() as writer:
        result = make_ingest_task(corpus, writer.id)(inputs)
        assert not writer.append([each.name for each in inputs], result.files)
    return result


def read_rows(corpus: Corpus, name: str) -> list[tuple[Any, ...]]:
    """The rows of the table `name`, sorted."""
    rows = [row for file in corpus.files(name) for row in open_parquet(file).read().to_pylist()]
    return sorted((tuple(row.values()) for row in rows), key=repr)


class ProcessKilled(BaseException):
    """Raised where a test pretends that the process is killed: nothing catches it."""


def write_input(writer: CorpusWriter, *inputs: str) -> dict[str, int]:
    """Write a file with inputs that have no other rows, and return it with its size in bytes."""
    with TableWriter(writer.corpus.data, writer.id) as tables:
        for input in inputs:
            tables.add_row(INPUTS, InputRow(input, 1, 1, 0, 0, 0, 0))
    return tables.files


def commit_input(corpus: Corpus, input: str) -> None:
    """Commit an input without other rows, as another process would."""
    with corpus.write() as writer:
        assert not writer.append([input], write_input(writer, input))
