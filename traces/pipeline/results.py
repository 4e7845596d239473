"""The tables with the results of judging a corpus: a folder that is written as a whole or not at all.

At a URI there is a folder for each run, and a file that names the newest of them.
"""

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession

from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.corpus_log import write_atomically
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.file_systems import (
    Location,
    find_files,
    join_location,
    open_parquet,
    read_text,
    remove_file,
    resolve_location,
    write_text,
)
from fencepost.traces.pipeline.folding import FINDINGS_FOLDER
from fencepost.traces.pipeline.frames import files_below, write_frame, write_parts
from fencepost.traces.pipeline.judge_corpus import (
    Finding,
    ShardAnalysis,
    make_judge,
    unreadable_files,
)
from fencepost.traces.pipeline.parallel import StageProgress, as_pipeline_error, job_progress
from fencepost.traces.pipeline.queries import EXAMINED
from fencepost.traces.pipeline.schema import QUARANTINE
from fencepost.traces.pipeline.shard_plan import ShardRows
from fencepost.traces.pipeline.writers import replace_folder

RESULTS_FILE = "judged.json"
RUN_PREFIX = "run-"
ABANDONED_SECONDS = 7 * 86_400
"""The age at which the files of a run at a URI that was not published are removed."""


@contextmanager
def create_folder(folder: Location) -> Iterator[Location]:
    """Yield a temporary folder, which takes the place of `folder` at the end; at a URI, a folder below it, which is
    named there at the end. Raises `PipelineError` if `folder` is no result."""
    folder = resolve_location(folder)
    if not isinstance(folder, Path):
        with publish_run(folder) as run:
            yield run
        return
    if folder.exists() and not (folder / RESULTS_FILE).exists():
        raise PipelineError(f"{folder} already exists and was not created by this command")
    with replace_folder(folder) as partial:
        yield partial
        write_atomically(partial / RESULTS_FILE, {"fencepost_judged": 1})


@contextmanager
def publish_run(place: str) -> Iterator[Location]:
    """Yield the folder of a new run below a URI, and name it there at the end of the block. Removes the run before it,
    and old ones that were never named. Raises `PipelineError` if the place holds something else."""
    mark = join_location(place, RESULTS_FILE)
    try:
        before = json.loads(read_text(mark))["run"]
    except FileNotFoundError:
        before = None
        if any(not run_of(each.uri, place).startswith(RUN_PREFIX) for each in find_files(place)):
            raise PipelineError(f"{place} already exists and was not created by this command") from None
    run = f"{RUN_PREFIX}{uuid.uuid4().hex}"
    yield join_location(place, run)
    write_text(mark, json.dumps({"fencepost_judged": 1, "run": run}) + "\n")
    old = time.time_ns() - ABANDONED_SECONDS * 10**9
    for each in find_files(place):
        name = run_of(each.uri, place)
        if name == before or (name.startswith(RUN_PREFIX) and name != run and each.changed < old):
            remove_file(each.uri)


def run_of(uri: str, place: str) -> str:
    """The first part of the path of a file below a place."""
    return unquote(uri).removeprefix(f"{unquote(place.partition('?')[0])}/").partition("/")[0]


def judge_corpus(
    spark: SparkSession,
    corpus: Corpus,
    parts: Sequence[Sequence[ShardRows]],
    folder: Location,
    analyze: ShardAnalysis,
    progress: StageProgress,
) -> None:
    """Judge the parts of a corpus, and write the findings into `folder` by kind. Raises `PipelineError`."""
    with as_pipeline_error(), job_progress(spark, len(parts), lambda done, total: progress(done, total, "judging")):
        write_parts(spark, parts, make_judge(corpus, analyze), folder, FINDINGS_FOLDER, "kind")


def find_unreadable(spark: SparkSession, corpus: Corpus, folder: Location) -> None:
    """Write a finding into `folder` for each file of a corpus that could not be read. Raises `PipelineError`."""
    if not any(True for _ in corpus.files(QUARANTINE)):
        return
    with as_pipeline_error():
        found = unreadable_files(spark, corpus)
        write_frame(found, folder, FINDINGS_FOLDER, "kind")


@dataclass(frozen=True, slots=True)
class CorpusResults:
    """Reads the tables of a judged corpus, without Spark."""

    folder: Location

    def findings(self, kind: str, columns: Sequence[str] = Finding._fields) -> Iterator[dict[str, Any]]:
        """Yield the findings of one kind, with these columns."""
        for file in files_below(self.folder, f"{FINDINGS_FOLDER}/kind={kind}").values():
            for batch in open_parquet(file).iter_batches(columns=[each for each in columns if each != "kind"]):
                for row in batch.to_pylist():
                    yield {**row, "kind": kind}

    def finding_values(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the decoded values of the findings of one kind, each with its trace."""
        for row in self.findings(kind, ("trace", "value")):
            yield {**json.loads(row["value"]), "trace": row["trace"]}

    def examined_counts(self) -> dict[str, int]:
        """The number of responses that each invariant looked at, by its name, and of assignments that name no partition
        as `unnamed`."""
        return next(self.query_rows(EXAMINED))

    def query_rows(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a query."""
        for file in files_below(self.folder, name).values():
            for batch in open_parquet(file).iter_batches():
                yield from batch.to_pylist()
