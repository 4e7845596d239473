"""The queries examine the parts of a recording as one trace, and join the incarnations of a group."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.files import open_parquet
from fencepost.traces.pipeline.queries import QUERIES
from fencepost.traces.pipeline.tables import EVENTS
from tests.support.altered_traces import write_in_parts
from tests.support.corpus_queries import query_here
from tests.support.corpus_tables import ingest_here
from tests.support.stale_commits import stale_commit
from tests.support.trace_builder import LATER, commit_events, events_at, join_events, sync_events

HEADER = Header("s", Order.TOTAL, "virtual", Settings(), 0)
RESTART = [Event(4, 0, 0, "", Kind.FAULT, "restart", 0, {})]
FIRST = join_events(0, 1)
SECOND = events_at(LATER, join_events(1, 1, "n", "n"))
CASES: dict[str, tuple[list[Event], str]] = {
    "stale commit": (FIRST + join_events(1, 2) + events_at(LATER, commit_events(2, 1) + commit_events(3, 2)), "stale"),
    "commit of the generation": (FIRST + commit_events(1, 1) + events_at(LATER, commit_events(2, 1)), ""),
    "stale commit after a restart": (FIRST + join_events(1, 2) + RESTART + events_at(LATER, commit_events(3, 1)), ""),
    "two leaders": (FIRST + SECOND + events_at(2 * LATER, sync_events(2, "m")), "leader"),
    "two leaders, nobody there meanwhile": (FIRST + SECOND, ""),
    "two leaders of two terms": (FIRST + RESTART + events_at(LATER, join_events(3, 1, "n", "n")), ""),
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
    for name, (events, _) in CASES.items():
        (folder := tmp_path / name).mkdir()
        assert len(write_in_parts(folder, HEADER, renumber_events(events), 2)) == 2
    assert not ingest_here(corpus, sorted(tmp_path.glob("*/r.*.jsonl"))).counts.quarantined
    for query, expected in (("one-leader", "leader"), ("no-stale-commit", "stale"), ("one-owner", "owner")):
        found = {Path(row["trace"]).parent.name for row in query_here(corpus, query, split)}
        assert found == {name for name, (_, breaks) in CASES.items() if breaks == expected}, expected
        events = pa.concat_tables(open_parquet(file).read() for file in corpus.files(EVENTS))
        assert not QUERIES[query].run(events).num_rows, "a part alone does not show it"


def test_stale_commits_of_adversarial_schedules_are_found_in_parts(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 2)
    expected = set()
    for seed in range(20):
        drawn = stale_commit(seed)
        for name, events in ((f"{seed}", drawn.violating), (f"conformant-{seed}", drawn.conformant)):
            (folder := tmp_path / name).mkdir()
            write_in_parts(folder, drawn.header, events, 3)
        expected.add(f"{seed}")
    assert not ingest_here(corpus, sorted(tmp_path.glob("*/r.*.jsonl"))).counts.quarantined
    rows = query_here(corpus, "no-stale-commit")
    found = {Path(row["trace"]).parent.name for row in rows}
    assert found <= expected and len(found) >= 18, len(found)
    assert {Path(row["trace"]).name for row in rows} == {"r.0001.jsonl"}, "named by the first part"
