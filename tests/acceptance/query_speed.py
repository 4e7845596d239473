"""The invariants as queries by Spark, beside the same by DuckDB over the same Parquet files, on two cores each."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.ingest import ingest
from fencepost.traces.pipeline.parallel import core_count, run_parts
from fencepost.traces.pipeline.queries import INVARIANTS, Query
from fencepost.traces.pipeline.query_corpus import join_parts, read_events
from fencepost.traces.pipeline.shard_plan import ShardRows, plan_parts
from fencepost.traces.pipeline.spark_session import spark_session
from fencepost.traces.pipeline.tables import EVENTS, TABLES
from tests.acceptance.crash_recovery import SPARK_CONFIG, ignore_progress
from tests.acceptance.framework import Figure, at_least, exactly, without_threshold
from tests.acceptance.pipeline_speed import PLAIN_FILES, prepare
from tests.support.corpus_tables import inputs_of

WARM_RUNS = 3
DUCKDB = {
    "one-leader": """
        with ids as (select trace, "group", member_id id, min(coalesce('i ' || instance, 'm ' || member_id)) identity
                     from joins group by all)
        select count(*) from (select count(distinct identity) n from joins j
            join ids on ids.trace = j.trace and ids."group" = j."group" and ids.id = j.leader
            group by j.trace, j."group", j.incarnation, j.generation) where n > 1""",
    "no-stale-commit": """
        with mixed as (select trace, "group", incarnation, generation, sequence as place, false as commit from joins
                      union all select trace, "group", incarnation, generation, "of", true from events
                      where intact and accepted and generation >= 0)
        select count(*) from (select *, max(case when not commit then generation end)
            over (partition by trace, "group", incarnation order by place) given from mixed)
        where commit and generation < greatest(given, 1)""",
    "one-owner": """
        with ids as (select trace, "group", member_id id, min(coalesce('i ' || instance, 'm ' || member_id)) identity
                     from joins group by all),
        granted as (select trace, "group", incarnation, generation, member_id id, unnest(owned) part from events
                    where intact and owned is not null)
        select count(*) from (select count(distinct identity) n from granted g
            join ids on ids.trace = g.trace and ids."group" = g."group" and ids.id = g.id
            group by g.trace, g."group", g.incarnation, g.generation, g.part) where n > 1""",
}


@dataclass(frozen=True, slots=True)
class QueryTimes:
    """The seconds of a query, with its plan, the first time and the best of later ones, and the rows that it finds."""

    cold: float
    warm: float
    rows: int


@dataclass(frozen=True, slots=True)
class QuerySpeed:
    """The queries one by one, and the seconds of all together as `pipeline judge` runs them: events are read once. Both
    have the plan in them, which `pipeline judge` has already."""

    queries: Mapping[str, QueryTimes]
    together: float


def measure_seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def measure_queries(spark: SparkSession, corpus: Corpus) -> QuerySpeed:
    """The speed of the invariants in Spark."""

    def run(queries: Sequence[Query]) -> int:
        def count_rows(part: Sequence[ShardRows]) -> int:
            events = read_events(part, queries)
            return sum(query.run(events).num_rows for query in queries)

        return sum(run_parts(spark, join_parts(plan_parts(spark, corpus), core_count(spark)), count_rows))

    found = {}
    for name, query in INVARIANTS.items():
        cold, *warm = (measure_seconds(partial(run, [query])) for _ in range(1 + WARM_RUNS))
        found[name] = QueryTimes(cold, min(warm), run([query]))
    together = partial(run, list(INVARIANTS.values()))
    return QuerySpeed(found, min(measure_seconds(together) for _ in range(WARM_RUNS)))


def compare_with_duckdb(corpus: Corpus, count: int, speed: QuerySpeed) -> Iterator[Figure]:
    """The speed of Spark on a corpus of `count` events beside that of DuckDB."""
    connection = duckdb.connect()
    connection.execute("set threads = 2")
    files = ", ".join(f"'{name}'" for name in corpus.files(EVENTS))
    connection.execute(f"create view events as select * from read_parquet([{files}])")
    connection.execute(
        "create view joins as select * from events where intact and leader is not null "
        "and error = 0 and incarnation is not null"
    )
    total = 0.0
    for name, times in speed.queries.items():
        query = partial(connection.execute, DUCKDB[name])
        (theirs,) = query().fetchone() or (0,)
        seconds = min(measure_seconds(query) for _ in range(WARM_RUNS))
        total += seconds
        yield without_threshold(f"{name}: events a second, cold", round(count / times.cold))
        yield at_least(f"{name}: events a second, warm", round(count / times.warm), 500_000)
        yield without_threshold(f"{name}: events a second, DuckDB, warm", round(count / seconds))
        yield without_threshold(f"{name} alone: times DuckDB's rate", round(seconds / times.warm, 2))
        yield exactly(f"{name}: found", times.rows, theirs)
    yield without_threshold("the three, the corpus read once: events a second", round(count / speed.together))
    yield at_least("the three, the corpus read once: times DuckDB's rate", round(total / speed.together, 2), 0.8)


def check_queries(folder: Path) -> Iterator[Figure]:
    """The queries on millions of events, and how fast some of them are ingested."""
    traces, corpus = prepare("large", folder)
    files = [Path(name) for table in TABLES for name in corpus.files(table)]
    count = sum(row.events for row in corpus.inputs())
    yield without_threshold("events", count)
    yield without_threshold("bytes of Parquet an event", round(sum(file.stat().st_size for file in files) / count, 1))
    with spark_session("acceptance", "local[2]", SPARK_CONFIG) as spark:
        speed = measure_queries(spark, corpus)
        again = Corpus.create(folder / "again", 16)
        inputs = inputs_of(sorted(traces.iterdir())[-PLAIN_FILES["large"] :])
        seconds = measure_seconds(lambda: ingest(spark, again, inputs, ignore_progress))
    ingested = sum(row.events for row in again.inputs())
    yield without_threshold("ingest: events a second", round(ingested / seconds))
    yield from compare_with_duckdb(corpus, count, speed)
