"""The tables with the results of judging a corpus: a folder that is written as a whole or not at all."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from fencepost.traces.pipeline.corpus import Corpus, resolve_folder
from fencepost.traces.pipeline.corpus_log import write_atomically
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.judge_corpus import (
    DEFAULT_SPLIT_EVENTS,
    UNREADABLE,
    Finding,
    ShardAnalysis,
    corpus_findings,
    read_table,
    unreadable_files,
)
from fencepost.traces.pipeline.parallel import as_pipeline_error, job_progress
from fencepost.traces.pipeline.queries import EXAMINED, INVARIANTS, VIEWS, count_examined, examined_events
from fencepost.traces.pipeline.schema import EVENTS
from fencepost.traces.pipeline.writers import replace_folder

RESULTS_FILE = "judged.json"
FINDINGS_FOLDER = "findings"
StageProgress = Callable[[int, int, str], None]


@contextmanager
def create_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, which takes the place of `folder` at the end. Raises `PipelineError` if `folder` is no
    result."""
    folder = resolve_folder(folder)
    if folder.exists() and not (folder / RESULTS_FILE).exists():
        raise PipelineError(f"{folder} already exists and was not created by this command")
    with replace_folder(folder) as partial:
        yield partial
        write_atomically(partial / RESULTS_FILE, {"fencepost_judged": 1})


def judge_corpus(
    spark: SparkSession,
    corpus: Corpus,
    folder: Path,
    analyze: ShardAnalysis,
    progress: StageProgress,
    split: int = DEFAULT_SPLIT_EVENTS,
) -> None:
    """Judge a corpus, and write the findings into `folder` by kind. Raises `PipelineError`."""
    with job_progress(spark, 1, lambda done, total: progress(done, total, "judging")), as_pipeline_error():
        found = corpus_findings(spark, corpus, analyze, split)
        found.write.mode("append").partitionBy("kind").parquet(str(folder / FINDINGS_FOLDER))


def find_unreadable(spark: SparkSession, corpus: Corpus, folder: Path) -> None:
    """Write a finding into `folder` for each file of a corpus that could not be read. Raises `PipelineError`."""
    with as_pipeline_error():
        found = unreadable_files(spark, corpus)
        found.write.mode("append").partitionBy("kind").parquet(str(folder / FINDINGS_FOLDER))


def query_corpus(spark: SparkSession, corpus: Corpus, folder: Path, progress: StageProgress) -> None:
    """Run all queries on a corpus, and write their rows into `folder`. Raises `PipelineError`."""
    invariants = {**INVARIANTS, EXAMINED: count_examined}
    with as_pipeline_error():
        events = read_table(spark, corpus, EVENTS)
        examined = examined_events(events).persist()
        queries = [(name, query(examined)) for name, query in invariants.items()]
        queries += [(name, query(events)) for name, query in VIEWS.items()]
        for number, (name, rows) in enumerate(queries):
            progress(number, len(queries), f"querying {name}")
            rows.write.parquet(str(folder / name))
        examined.unpersist()


@dataclass(frozen=True, slots=True)
class CorpusResults:
    """Reads the tables of a judged corpus, without Spark."""

    folder: Path

    def findings(self, kind: str, columns: Sequence[str] = Finding._fields) -> Iterator[dict[str, Any]]:
        """Yield the findings of one kind, with these columns."""
        files = sorted((self.folder / FINDINGS_FOLDER / f"kind={kind}").glob("*.parquet"))
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches(columns=[each for each in columns if each != "kind"]):
                for row in batch.to_pylist():
                    yield {**row, "kind": kind}

    def finding_values(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the decoded values of the findings of one kind, each with its trace."""
        for row in self.findings(kind, ("trace", "value")):
            yield {**json.loads(row["value"]), "trace": row["trace"]}

    def unreadable(self) -> Iterator[dict[str, Any]]:
        """Yield `trace`, `line` and `reason` for each file that could not be read, or not to its end."""
        return self.finding_values(UNREADABLE)

    def report_findings(self) -> Iterator[Finding]:
        """The findings that a report is built from."""
        for kind in ("verdict", "check", "inconclusive", UNREADABLE, "failure"):
            yield from (Finding(**row) for row in self.findings(kind))

    def rebalances(self) -> Iterator[dict[str, Any]]:
        """Yield every rebalance that ended within its trace, with its `duration` in milliseconds."""
        for row in self.finding_values("rebalance"):
            yield {**row, "duration": row["ended"] - row["began"]}

    def stuck_rebalances(self) -> Iterator[dict[str, Any]]:
        """Yield every rebalance that did not end within its trace, with the members it waits for."""
        return self.finding_values("stuck")

    def examined_counts(self) -> dict[str, int]:
        """The number of responses that each invariant looked at, by its name, and of assignments that name no partition
        as `unnamed`."""
        return next(self.query_rows(EXAMINED))

    def query_rows(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a query."""
        for file in sorted((self.folder / name).glob("*.parquet")):
            for batch in pq.ParquetFile(file).iter_batches():
                yield from batch.to_pylist()
