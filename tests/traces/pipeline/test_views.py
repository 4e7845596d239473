"""The views answer their questions with the right numbers, and Spark and DuckDB agree."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fencepost.traces.pipeline import story
from fencepost.traces.pipeline.queries import EXAMINED, EXAMINED_SCHEMA, QUERIES
from fencepost.traces.pipeline.tables import EVENTS, SCHEMAS
from fencepost.traces.pipeline.views import (
    WHOLE_SCHEMA,
    WHOLE_TRACES,
    make_duckdb_views,
    make_spark_views,
    read_views,
)

duckdb = pytest.importorskip("duckdb")
Row = dict[str, Any]
HOUR = 3_600_000_000
NINE = 9 * HOUR
"""On the first of January 1970."""


def period(
    case: str, number: int, time: tuple[int, int], member: str = "m", ended: str = "joined", what: str = "t/0"
) -> Row:
    told = {"trace": case, "group": "g", "member": member, "generation": 1, "partition": what, "ended": ended}
    return {**told, "since": time[0], "until": time[1], "sequence": number, "at": NINE + 1_000 * time[0]}


OWNERSHIP: list[Row] = [
    *(period("handed on", 0, (0, 10)), period("handed on", 1, (15, 30), "n"), period("handed on", 2, (30, 40))),
    *(period("two partitions", 0, (0, 10)), period("two partitions", 0, (0, 10), what="t/1")),
    period("two partitions", 1, (12, 20)),
    *(period("two owners", 0, (0, 10)), period("two owners", 1, (7, 20), "n")),
    *(period("the same owner", 0, (0, 10)), period("the same owner", 1, (7, 20))),
    *(period("one within another", number, time) for number, time in enumerate([(0, 30), (5, 10), (35, 40)])),
    *(period("a gap", 0, (0, 10), ended="gap"), period("a gap", 1, (50, 60), "n")),
]


def rebalance(time: int, ms: int, cause: str, culprit: str, awaited: str | None = None, *, is_over: bool = True) -> Row:
    held = {"awaited": awaited, "held": "last to join" if awaited else None, "held_ms": ms // 2 if awaited else None}
    told = {"trace": "a.jsonl", "group": "orders", "cause": cause, "culprit": culprit, "is_over": is_over, **held}
    return {**told, "at": NINE + 1_000 * time, "time": time, "ms": ms, "join_ms": ms, "sync_ms": 0}


REBALANCES = [
    rebalance(60_000, 1_000, "came", "app-1", "app-2"),
    rebalance(200_000, 7_000, "session", "app-1", "app-2"),
    rebalance(4_000_000, 500, "left", "app-2"),
    rebalance(4_100_000, 9_000, "came", "lone", "app-1", is_over=False),
]
MEMBERSHIPS: list[Row] = [
    {"trace": "a.jsonl", "group": "orders", "member": "app-1", "client": "app", "since": 0, "came": NINE},
    {
        "trace": "a.jsonl",
        "group": "orders",
        "member": "app-2",
        "client": "app",
        "since": 5,
        "came": NINE,
        "why": "left",
    },
    {"trace": "a.jsonl", "group": "orders", "member": "lone", "client": None, "since": 9},
]


def offset(time: int, lag: int | None, partition: int = 0, *, is_last: bool = False) -> Row:
    told = {"trace": "a.jsonl", "group": "orders", "topic": "t", "partition": partition, "committed": 5, "lag": lag}
    return {**told, "time": time, "at": NINE + 1_000 * time, "is_last": is_last}


OFFSETS: list[Row] = [
    *(offset(59_000, 10), offset(119_000, 70), offset(179_000, 4, is_last=True)),
    *(offset(50_000, 1, 1), offset(110_000, 0, 1, is_last=True), offset(30_000, None, 2, is_last=True)),
]


def event(sequence: int, api: str, kind: str = "response", trace: str = "a.jsonl", **fields: object) -> Row:
    told = {"trace": trace, "sequence": sequence, "api": api, "kind": kind, "connection": 1, "group": "orders"}
    return {**told, "at": NINE + 1_000 * sequence, "member_id": "app-1", **fields}


EVENT_ROWS = [
    event(0, "ApiVersions", "request", library="apache-kafka-java", library_version="4.0.0"),
    event(1, "JoinGroup"),
    event(2, "JoinGroup", "response", "a.2.jsonl", member_id="app-2"),
    *(event(number, "Heartbeat", error=22) for number in (3, 4)),
    event(5, "OffsetCommit", error=25, member_id="app-2"),
    event(6, "OffsetCommit", error=0),
    event(7, "ConsumerGroupHeartbeat", "request", group="new"),
]
TABLES: dict[str, list[Row]] = {
    EVENTS: EVENT_ROWS,
    story.OWNERSHIP: OWNERSHIP,
    story.REBALANCES: REBALANCES,
    story.MEMBERSHIPS: MEMBERSHIPS,
    "offsets": OFFSETS,
    story.FINDINGS: [
        {
            "trace": "a.jsonl",
            "sequence": 4,
            "kind": "violation",
            "requirement": "HB-04",
            "group": "orders",
            "api": "Heartbeat",
        },
        {"trace": "a.jsonl", "kind": "inconclusive", "title": "a gap"},
    ],
    "no-stale-commit": [{"trace": "a.jsonl", "sequence": 6, "group": "orders", "generation": 1}],
    WHOLE_TRACES: [{"trace": each, "first_file": "a.jsonl"} for each in ("a.jsonl", "a.2.jsonl")],
}
ALL_SCHEMAS = {
    EVENTS: SCHEMAS[EVENTS],
    **story.SCHEMAS,
    **{name: query.schema for name, query in QUERIES.items()},
    EXAMINED: EXAMINED_SCHEMA,
    WHOLE_TRACES: WHOLE_SCHEMA,
}


def arrow_tables() -> dict[str, pa.Table]:
    return {name: pa.Table.from_pylist(TABLES.get(name, []), schema) for name, schema in ALL_SCHEMAS.items()}


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> dict[str, list[Row]]:
    """The rows of each view, on which both agree, in the same order."""
    make_spark_views(spark, {name: spark.createDataFrame(table) for name, table in arrow_tables().items()})
    found: dict[str, list[Row]] = {}
    with duckdb.connect() as connection:
        make_duckdb_views(connection, arrow_tables())
        for view in read_views():
            query = f"SELECT * FROM {view.name}"
            mine = spark.sql(query).toArrow().to_pylist()
            theirs = connection.sql(query).to_arrow_table().to_pylist()
            assert mine == theirs, view.name
            found[view.name] = mine
    return found


def cells(rows: Sequence[Row], *names: str) -> list[tuple[object, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_each_view_has_a_question_and_rows_here(answers: dict[str, list[Row]]) -> None:
    assert all(view.question.endswith("?") for view in read_views())
    assert all(answers.values()), [name for name, rows in answers.items() if not rows]


def test_how_long_partitions_have_no_owner(answers: dict[str, list[Row]]) -> None:
    columns = ("trace", "partition", "periods", "since", "until", "unowned", "longest", "stretches")
    assert sorted(cells(answers["unowned"], *columns)) == [
        ("a gap", "t/0", 2, 0, 60, 0, 0, 0),
        ("handed on", "t/0", 3, 0, 40, 5, 5, 1),
        ("one within another", "t/0", 3, 0, 40, 5, 5, 1),
        ("the same owner", "t/0", 2, 0, 20, 0, 0, 0),
        ("two owners", "t/0", 2, 0, 20, 0, 0, 0),
        ("two partitions", "t/0", 2, 0, 20, 2, 2, 1),
        ("two partitions", "t/1", 1, 0, 10, 0, 0, 0),
    ]
    assert {row["trace"]: row["share"] for row in answers["unowned"]}["handed on"] == 0.125


def test_what_two_members_have_at_once(answers: dict[str, list[Row]]) -> None:
    columns = ("trace", "group", "partition", "generation", "sequence", "member", "other", "together")
    assert cells(answers["owned_twice"], *columns) == [("two owners", "g", "t/0", 1, 1, "n", "m", 3)]


def test_causes_storms_and_who_is_waited_for(answers: dict[str, list[Row]]) -> None:
    assert cells(answers["culprits"], "group", "cause", "client", "rebalances", "ms") == [
        ("orders", "came", None, 1, 9_000),
        ("orders", "came", "app", 1, 1_000),
        ("orders", "left", "app", 1, 500),
        ("orders", "session", "app", 1, 7_000),
    ]
    storms = [(row["hour"].hour, row["client"], row["rebalances"], row["longest"]) for row in answers["storms_by_hour"]]
    assert storms == [(9, "app", 2, 7_000), (10, None, 1, 9_000), (10, "app", 1, 500)]
    assert cells(answers["slow_members"], "awaited", "client", "rebalances", "ms") == [
        ("app-1", "app", 1, 4_500),
        ("app-2", "app", 2, 4_000),
    ]
    assert cells(answers["slow_rebalances"], "ms", "is_over")[:2] == [(9_000, False), (7_000, True)]


def test_lag_that_a_rebalance_caused(answers: dict[str, list[Row]]) -> None:
    columns = ("ms", "before", "after", "grown")
    assert cells(answers["rebalance_lag"], *columns) == [(1_000, 11, 70, 60)]
    assert cells(answers["lag"], "partition", "lag") == [(0, 4), (1, 0), (2, None)]


def test_fencing_versions_violations_and_newer_groups(answers: dict[str, list[Row]]) -> None:
    assert cells(answers["fenced"], "member_id", "meaning", "times") == [
        ("app-1", "ILLEGAL_GENERATION", 2),
        ("app-2", "UNKNOWN_MEMBER_ID", 1),
    ]
    assert cells(answers["client_versions"], "library", "version", "memberships", "clients") == [
        ("apache-kafka-java", "4.0.0", 2, 1),
        (None, None, 1, 0),
    ]
    assert cells(answers["violations"], "sequence", "requirement") == [(4, "HB-04")]
    assert answers["violations"][0]["at"] is not None, "by the clock of the event"
    assert cells(answers["broken_invariants"], "what", "sequence") == [("stale commit", 6)]
    assert cells(answers["newer_groups"], "group", "requests") == [("new", 1)]
