"""Each invariant query finds its violations, and nothing outside its scope."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.files import open_parquet
from fencepost.traces.pipeline.judge_corpus import read_table
from fencepost.traces.pipeline.queries import (
    OFFSETS,
    POLL_COLUMNS,
    QUERIES,
    count_examined,
    poll_shares,
)
from fencepost.traces.pipeline.query_corpus import MAX_PART_EVENTS, join_parts, read_events
from fencepost.traces.pipeline.rows import (
    LOOKUPS_SHARD,
    WHOLE_TRACE,
)
from fencepost.traces.pipeline.shard_plan import HeaderRow, Shard, ShardRows
from fencepost.traces.pipeline.tables import EVENTS
from tests.support.altered_traces import write_in_parts
from tests.support.corpus_queries import plan_here, query_here
from tests.support.corpus_tables import ingest_here
from tests.support.stale_commits import stale_commit
from tests.support.trace_builder import (
    ASSIGNMENT,
    LATER,
    commit_events,
    events_at,
    exchange_events,
    join_events,
    sync_events,
)

LEAVE = {"members": [{"member_id": "m"}, {"member_id": "n"}]}
LEFT = exchange_events(1, "LeaveGroup", LEAVE, {"error_code": 0})


def with_request(events: list[Event], **fields: Any) -> list[Event]:
    return [replace(each, body={**each.body, **fields}) if each.kind is Kind.REQUEST else each for each in events]


def with_instance(events: list[Event], instance: str) -> list[Event]:
    return [replace(each, body={**each.body, "group_instance_id": instance}) for each in events]


def poll(number: int, buffered: dict[str, int], returned: dict[str, int]) -> Event:
    return Event(number, 0, 0, "A", Kind.POLL, "poll", 0, {"buffered": buffered, "returned": returned})


RESTART = [Event(2, 0, 0, "", Kind.FAULT, "restart", 0, {})]
TWICE = [{"member_id": each, "assignment": ASSIGNMENT} for each in ("m", "n")]
CASES: dict[str, tuple[list[Event], str]] = {
    "two leaders": (join_events(0, 1) + join_events(1, 1, "n", "n"), "leader"),
    "one leader told to two": (join_events(0, 1) + join_events(1, 1, "n", "m"), ""),
    "a leader for each generation": (join_events(0, 1) + join_events(1, 2, "n", "n"), ""),
    "a static leader under its next id": (
        with_instance(join_events(0, 1), "i") + with_instance(join_events(1, 1, "n", "n"), "i"),
        "",
    ),
    "two static leaders": (
        with_instance(join_events(0, 1), "i") + with_instance(join_events(1, 1, "n", "n"), "j"),
        "leader",
    ),
    "a leader of whom nothing is known": (join_events(0, 1) + join_events(1, 1, "n", "stranger"), ""),
    "another tenure": (join_events(0, 1) + RESTART + join_events(2, 1, "n", "n"), ""),
    "another incarnation": (
        join_events(0, 1) + LEFT + join_events(2, 1, "n", "n"),
        "",
    ),
    "nobody surely there": (join_events(0, 1) + join_events(1, 1, "n", "n", 10_001), ""),
    "stale commit": (join_events(0, 1) + join_events(1, 2) + commit_events(2, 1), "stale"),
    "stale commit refused": (join_events(0, 1) + join_events(1, 2) + commit_events(2, 1, 22), ""),
    "commit of the generation": (join_events(0, 1) + commit_events(1, 1) + join_events(2, 2), ""),
    "commit that claims nothing": (join_events(0, 1) + join_events(1, 2) + commit_events(2, -1), ""),
    "stale commit in another tenure": (join_events(0, 2) + RESTART + join_events(2, 1) + commit_events(3, 1), ""),
    "commit of generation 0": (join_events(0, 1) + commit_events(1, 0), "stale"),
    "stale commit after nobody was certain": (
        join_events(0, 1)
        + events_at(LATER, join_events(1, 2, "n") + join_events(2, 3, "n"))
        + events_at(2 * LATER, commit_events(3, 2)),
        "stale",
    ),
    "stale commit of a member who was not seen to join": (
        join_events(0, 2, "n") + events_at(LATER, commit_events(1, 1)),
        "",
    ),
    "commit of a member who was asked to leave": (join_events(0, 2) + LEFT + events_at(LATER, commit_events(2, 1)), ""),
    "commit under an id that was issued again": (
        join_events(0, 2) + events_at(LATER, with_request(join_events(1, 1), member_id="") + commit_events(2, 1)),
        "",
    ),
    "two owners": (join_events(0, 1) + join_events(1, 1, "n") + sync_events(2, "m") + sync_events(3, "n"), "owner"),
    "two owners by the leader": (
        join_events(0, 1) + join_events(1, 1, "n") + sync_events(2, "m", TWICE) + sync_events(3, "n"),
        "",
    ),
    "one owner asks again": (join_events(0, 1) + sync_events(1, "m") + sync_events(2, "m"), ""),
    "a static owner under its next id": (
        with_instance(join_events(0, 1), "i")
        + with_instance(join_events(1, 1, "n"), "i")
        + sync_events(2, "m")
        + sync_events(3, "n"),
        "",
    ),
    "polls": (
        [
            poll(0, {"t/0": 1, "t/1": 1}, {}),
            poll(1, {"t/0": 1, "t/1": 1}, {"t/1": 2}),
            poll(2, {"t/0": 1}, {}),
            poll(3, {"t/1": 1}, {"t/0": 1}),
        ],
        "",
    ),
    "lag": (
        join_events(0, 1)
        + commit_events(1, 1, offset=3)
        + commit_events(2, 1, offset=5)
        + [
            Event(6, 0, 0, "A", Kind.REQUEST, "Fetch", 12, {}),
            Event(
                7,
                0,
                0,
                "A",
                Kind.RESPONSE,
                "Fetch",
                12,
                {
                    "responses": [
                        {"topic": "t", "partitions": [{"partition_index": 0, "error_code": 0, "high_watermark": 9}]}
                    ]
                },
                6,
            ),
        ],
        "",
    ),
    "lag unknown": (join_events(0, 1) + commit_events(1, 1), ""),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A trace for each case."""
    folder = tmp_path_factory.mktemp("queries")
    corpus = Corpus.create(folder / "c", 2)
    for name, (seen, _) in CASES.items():
        write_trace(folder / f"{name}.jsonl", Header("s", Order.TOTAL, "virtual", Settings(), 0), seen)
    assert ingest_here(corpus, folder.glob("*.jsonl")).counts.quarantined == 0
    return corpus


SPLITS = (None, 0)
"""Traces are queried as a whole, and one bucket of groups after the other."""


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(
    ("query", "expected"), [("one-leader", "leader"), ("no-stale-commit", "stale"), ("one-owner", "owner")]
)
def test_an_invariant_query_finds_its_violations_and_nothing_else(
    corpus: Corpus, query: str, expected: str, split: int | None
) -> None:
    found = {Path(row["trace"]).stem for row in query_here(corpus, query, split)}
    assert found == {name for name, (_, breaks) in CASES.items() if breaks == expected}


def test_traces_that_are_split_for_the_judge_are_queried_as_a_whole() -> None:
    def plan(size: int) -> list[list[ShardRows]]:
        buckets = ((0, 1), (2,), (LOOKUPS_SHARD,))
        return [[ShardRows(Shard("t", each, size, 1), HeaderRow("", 0), ())] for each in buckets]

    ((whole,),) = join_parts(plan(5), 2)
    assert (whole.shard.bucket, whole.size) == (WHOLE_TRACE, 15)
    assert sum(map(len, join_parts(plan(MAX_PART_EVENTS), 2))) == 3, "a very long one stays as it is"


@pytest.mark.parametrize("split", SPLITS)
def test_what_the_invariants_look_at_is_counted(corpus: Corpus, split: int | None) -> None:
    parts = plan_here(corpus, split)
    counts = sum((count_examined(read_events(part, QUERIES.values())) for part in parts), Counter[str]())
    rows = [row for file in corpus.files(EVENTS) for row in open_parquet(file).read().to_pylist()]
    known = [row for row in rows if row["intact"]]
    assert counts["one-leader"] == sum(each["api"] == "JoinGroup" and each["error"] == 0 for each in known) > 0
    assert counts["no-stale-commit"] == sum(bool(each["accepted"]) and each["generation"] >= 0 for each in known) > 0
    owned = [each["owned"] for each in known if each["owned"] is not None]
    assert (counts["one-owner"], counts["unnamed"]) == (sum(map(bool, owned)), sum(not each for each in owned))
    assert counts["one-owner"]


@pytest.mark.parametrize("split", SPLITS)
def test_lag_is_known_where_the_end_of_the_log_is(corpus: Corpus, split: int | None) -> None:
    rows = [row for row in query_here(corpus, OFFSETS, split) if row["is_last"]]
    found = {Path(row["trace"]).stem: (row["committed"], row["lag"]) for row in rows}
    assert found["lag"] == (5, 4)
    assert found["lag unknown"] == (7, None)


@pytest.mark.parametrize("split", SPLITS)
def test_the_longest_wait_is_counted_in_polls(corpus: Corpus, split: int | None) -> None:
    (row,) = query_here(corpus, "longest-wait", split)
    assert (row["partition"], row["polls"]) == ("t/0", 3)


def test_the_shares_of_partitions_in_what_polls_return(spark: SparkSession, corpus: Corpus) -> None:
    events = read_table(spark, corpus, EVENTS, POLL_COLUMNS)
    rows = {row["partition"]: row for row in poll_shares(events).collect()}
    assert {name: (row["polls"], row["served"], row["records"]) for name, row in rows.items()} == {
        "t/0": (4, 1, 1),
        "t/1": (3, 1, 2),
    }
    assert rows["t/0"]["share"] == pytest.approx(1 / 3)


HEADER = Header("s", Order.TOTAL, "virtual", Settings(), 0)
SECOND_END = [Event(4, 0, 0, "", Kind.FAULT, "restart", 0, {})]
FIRST = join_events(0, 1)
SECOND = events_at(LATER, join_events(1, 1, "n", "n"))
SPLIT_INCARNATIONS: dict[str, tuple[list[Event], str]] = {
    "stale commit": (FIRST + join_events(1, 2) + events_at(LATER, commit_events(2, 1) + commit_events(3, 2)), "stale"),
    "commit of the generation": (FIRST + commit_events(1, 1) + events_at(LATER, commit_events(2, 1)), ""),
    "stale commit after a restart": (
        FIRST + join_events(1, 2) + SECOND_END + events_at(LATER, commit_events(3, 1)),
        "",
    ),
    "two leaders": (FIRST + SECOND + events_at(2 * LATER, sync_events(2, "m")), "leader"),
    "two leaders, nobody there meanwhile": (FIRST + SECOND, ""),
    "two leaders of two terms": (FIRST + SECOND_END + events_at(LATER, join_events(3, 1, "n", "n")), ""),
    "two owners": (
        FIRST
        + sync_events(1, "m")
        + events_at(LATER, join_events(2, 1, "n") + sync_events(3, "n") + commit_events(4, 1)),
        "owner",
    ),
}


def renumber_events(events: Sequence[Event]) -> list[Event]:
    places = {each.sequence: place for place, each in enumerate(events)}
    return [
        replace(each, sequence=places[each.sequence], of=None if each.of is None else places[each.of])
        for each in events
    ]


@pytest.mark.parametrize("split", [None, 0])
def test_two_parts_show_one_incarnation(tmp_path: Path, split: int | None) -> None:
    corpus = Corpus.create(tmp_path / "c", 2)
    for name, (events, _) in SPLIT_INCARNATIONS.items():
        (folder := tmp_path / name).mkdir()
        assert len(write_in_parts(folder, HEADER, renumber_events(events), 2)) == 2
    assert not ingest_here(corpus, sorted(tmp_path.glob("*/r.*.jsonl"))).counts.quarantined
    for query, expected in (("one-leader", "leader"), ("no-stale-commit", "stale"), ("one-owner", "owner")):
        found = {Path(row["trace"]).parent.name for row in query_here(corpus, query, split)}
        assert found == {name for name, (_, breaks) in SPLIT_INCARNATIONS.items() if breaks == expected}, expected
        events = pa.concat_tables(open_parquet(file).read() for file in corpus.files(EVENTS))
        assert not QUERIES[query].run(events).num_rows, "a part alone does not show it"


@pytest.mark.parametrize("parts", [1, 3])
def test_stale_commits_of_adversarial_schedules_are_found(parts: int, tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 2)
    expected: set[object] = set()
    for seed in range(20):
        drawn = stale_commit(seed)
        for name, events in ((f"{seed}", drawn.violating), (f"conformant-{seed}", drawn.conformant)):
            (folder := tmp_path / name).mkdir()
            write_in_parts(folder, drawn.header, events, parts)
        expected.add(f"{seed}" if parts > 1 else (f"{seed}", drawn.sequence))
    assert not ingest_here(corpus, sorted(tmp_path.glob("*/r.*.jsonl"))).counts.quarantined
    rows = query_here(corpus, "no-stale-commit")
    names = [Path(row["trace"]).parent.name for row in rows]
    found: set[object] = {name if parts > 1 else (name, row["sequence"]) for name, row in zip(names, rows, strict=True)}
    assert found <= expected and len(found) >= 18, len(found)
    assert {Path(row["trace"]).name for row in rows} == {"r.0001.jsonl"}, "named by the first part"
