"""Corpora in tests: an ingest without Spark, the rows of tables, and an exception that stands for a killed writer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter, InputFile, InputRow
from fencepost.traces.pipeline.files import Location, open_parquet
from fencepost.traces.pipeline.ingest import IngestResult, make_ingest_task, open_trace_file
from fencepost.traces.pipeline.judge_corpus import REPORT_FOLDER, FoundInShard
from fencepost.traces.pipeline.parallel import files_below
from fencepost.traces.pipeline.queries import EXAMINED
from fencepost.traces.pipeline.tables import INPUTS, SCHEMAS, TableWriter

FETCH: dict[str, object] = {
    **{"replica_id": -1, "max_wait_ms": 500, "min_bytes": 1, "max_bytes": 52_428_800, "isolation_level": 0},
    **{"session_id": 0, "session_epoch": -1, "forgotten_topics_data": [], "rack_id": ""},
    "topics": [{"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 9, "partition_max_bytes": 1_048_576}]}],
}
"""The body of a Fetch, which is about no group."""


def quiet(done: int, total: int, doing: str) -> None:
    """Nobody wants to know of the progress."""


def inputs_of(paths: Iterable[Path]) -> list[InputFile]:
    """The files as inputs."""
    return [InputFile.from_path(path) for path in paths]


def ingest_here(corpus: Corpus, paths: Iterable[Path]) -> IngestResult:
    """Ingest files in one batch, in this process."""
    return ingest_files(corpus, inputs_of(paths))


def ingest_files(corpus: Corpus, inputs: list[InputFile]) -> IngestResult:
    """Ingest inputs in one batch, in this process."""
    writer = corpus.start_writing()
    result = make_ingest_task(corpus, writer.id, open_trace_file)(inputs)
    assert not writer.append([each.name for each in inputs], result.files)
    return result


def read_rows(corpus: Corpus, name: str) -> list[tuple[Any, ...]]:
    """The rows of the table `name`, sorted."""
    columns = SCHEMAS[name].names
    rows = [row for file in corpus.files(name) for row in open_parquet(file).read(columns).select(columns).to_pylist()]
    return sorted((tuple(row.values()) for row in rows), key=repr)


class ProcessKilled(BaseException):
    """Raised where a test pretends that the process is killed: nothing catches it."""


def write_input(writer: CorpusWriter, *inputs: str) -> Mapping[str, int]:
    """Write a file with inputs that have no other rows, and return it with its size in bytes."""
    with TableWriter(writer.corpus.data, writer.id) as tables:
        for input in inputs:
            tables.add_row(INPUTS, InputRow(input, 1, 1, 0, 0, 0, 0))
    return tables.files


def commit_input(corpus: Corpus, input: str) -> None:
    """Commit an input without other rows, as another process would."""
    writer = corpus.start_writing()
    assert not writer.append([input], write_input(writer, input))


@dataclass(frozen=True, slots=True)
class CorpusResults:
    """Reads the tables of a judged corpus, without Spark."""

    folder: Location

    def findings(self, kind: str, columns: Sequence[str] = FoundInShard._fields) -> Iterator[dict[str, Any]]:
        """Yield the findings of one kind, with these columns."""
        for file in files_below(self.folder, f"{REPORT_FOLDER}/kind={kind}").values():
            for batch in open_parquet(file.location).iter_batches(columns=[each for each in columns if each != "kind"]):
                for row in batch.to_pylist():
                    yield {**row, "kind": kind}

    def examined_counts(self) -> dict[str, int]:
        """The number of responses that each invariant looked at, by its name, and of assignments that name no partition
        as `unnamed`."""
        return next(self.query_rows(EXAMINED))

    def query_rows(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a query, or of a table of the story."""
        for file in files_below(self.folder, name).values():
            for batch in open_parquet(file.location).iter_batches():
                yield from batch.to_pylist()
