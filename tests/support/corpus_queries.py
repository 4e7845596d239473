"""Plans of corpora and rows of queries, without Spark."""

from typing import Any

from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.queries import QUERIES
from fencepost.traces.pipeline.query_corpus import read_events
from fencepost.traces.pipeline.shard_plan import ShardRows, corpus_files, divide_work
from fencepost.traces.pipeline.tables import EVENTS
from fencepost.traces.pipeline.trace_rows import Run, find_runs


def plan_here(corpus: Corpus, split: int | None = None) -> list[list[ShardRows]]:
    """The shards of a corpus, in parts for two cores."""
    runs: dict[str, list[Run]] = {}
    for file in corpus.files(EVENTS):
        for trace, run in find_runs(file):
            runs.setdefault(trace, []).append(run)
    return divide_work(*corpus_files(corpus), runs, 2, split)


def query_here(corpus: Corpus, name: str, split: int | None = None) -> list[dict[str, Any]]:
    """The rows of a query on a corpus."""
    query = QUERIES[name]
    return [row for part in plan_here(corpus, split) for row in query.run(read_events(part, [query])).to_pylist()]
