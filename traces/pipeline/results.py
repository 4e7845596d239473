"""The tables that come of judging a corpus: a folder that is there as a whole or not at all."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from fencepost.traces.pipeline.corpus import EVENTS, Corpus, write_atomically
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.judge_corpus import (
    DEFAULT_SPLIT_EVENTS,
    Finding,
    ShardAnalysis,
    corpus_findings,
    read_table,
)
from fencepost.traces.pipeline.parallel import as_pipeline_error, job_progress
from fencepost.traces.pipeline.queries import INVARIANTS, VIEWS

RESULTS_FILE = "judged.json"
FINDINGS_FOLDER = "findings"
MAX_SHOWN_VIOLATIONS = 20
"""How many violations of a requirement are brought home; all are counted."""
StageProgress = Callable[[int, int, str], None]


@contextmanager
def create_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes this name once it is full. Raises `PipelineError` if something else has it."""
    if folder.exists() and not (folder / RESULTS_FILE).exists():
        raise PipelineError(f"{folder} already exists and was not created by this command")
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    write_atomically(partial / RESULTS_FILE, {"fencepost_judged": 1})
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def judge_corpus(
    spark: SparkSession,
    corpus: Corpus,
    folder: Path,
    analyze: ShardAnalysis,
    progress: StageProgress,
    split: int = DEFAULT_SPLIT_EVENTS,
) -> None:
    """Judge a corpus, and write all that is found into a folder, by kind. Raises `PipelineError`."""
    with job_progress(spark, 1, lambda done, total: progress(done, total, "judging")), as_pipeline_error():
        found = corpus_findings(spark, corpus, analyze, split)
        found.write.partitionBy("kind").parquet(str(folder / FINDINGS_FOLDER))


def query_corpus(spark: SparkSession, corpus: Corpus, folder: Path, progress: StageProgress) -> None:
    """Query a corpus, and write what each query finds into a folder. Raises `PipelineError`."""
    queries = {**INVARIANTS, **VIEWS}
    with as_pipeline_error():
        events = read_table(spark, corpus, EVENTS)
        for number, (name, query) in enumerate(queries.items()):
            progress(number, len(queries), f"querying {name}")
            query(events).write.parquet(str(folder / name))


@dataclass(frozen=True, slots=True)
class CorpusResults:
    """The tables of a judged corpus, read without Spark: what was found is a small part of what was seen."""

    folder: Path

    def findings(self, kind: str, columns: Sequence[str] = Finding._fields) -> Iterator[dict[str, Any]]:
        """The findings of one kind."""
        files = sorted((self.folder / FINDINGS_FOLDER / f"kind={kind}").glob("*.parquet"))
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches(columns=[each for each in columns if each != "kind"]):
                for row in batch.to_pylist():
                    yield {**row, "kind": kind}

    def finding_values(self, kind: str) -> Iterator[dict[str, Any]]:
        """What the findings of one kind say, and of which trace."""
        for row in self.findings(kind, ("trace", "value")):
            yield {**json.loads(row["value"]), "trace": row["trace"]}

    def report_findings(self) -> Iterator[Finding]:
        """What a report is made of: counts, evidence, what was left open, and some violations of each requirement."""
        for kind in ("verdict", "evidence", "inconclusive"):
            yield from (Finding(**row) for row in self.findings(kind))
        shown: Counter[str] = Counter()
        for row in self.findings("violation"):
            requirement = json.loads(row["value"])["requirement"]
            shown[requirement] += 1
            if shown[requirement] <= MAX_SHOWN_VIOLATIONS:
                yield Finding(**row)

    def rebalances(self) -> Iterator[dict[str, Any]]:
        """Every round that was over before its trace was; `format_duration` in milliseconds."""
        for row in self.finding_values("rebalance"):
            yield {**row, "duration": row["ended"] - row["began"]}

    def stuck_rebalances(self) -> Iterator[dict[str, Any]]:
        """Every round that was not, and for whom it waits."""
        return self.finding_values("stuck")

    def query_rows(self, name: str) -> Iterator[dict[str, Any]]:
        """What a query found."""
        for file in sorted((self.folder / name).glob("*.parquet")):
            for batch in pq.ParquetFile(file).iter_batches():
                yield from batch.to_pylist()
