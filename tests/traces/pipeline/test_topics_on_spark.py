"""A topic gives the same rows and the same verdicts as the files that its lines are from."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.stream import findings_log, new_findings, watch_topic
from fencepost.traces.pipeline.topic_ingest import ingest_topic
from fencepost.traces.pipeline.topics import offset_ranges
from tests.support.altered_traces import altered_trace, write_in_parts
from tests.support.corpus_tables import ingest_here, read_rows
from tests.support.served_coordinator import serve_in_thread
from tests.support.trace_topics import create_topic, produce_records, records_of

SEEDS = (1, 2, 5, 6)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a broker."""
    with serve_in_thread() as found:
        yield found


def lines_of(corpus: Corpus) -> "Counter[str]":
    """The rows of events, without the names of traces and the days."""
    return Counter(repr(row[1:25]) for row in read_rows(corpus, "events"))


def violations_of(path: Path) -> "Counter[int]":
    header, events = open_trace(path)
    return Counter(each.sequence for each in Judge(header).judge_events(list(events)).violations)


def test_a_topic_is_ingested_and_watched_like_files(spark: SparkSession, address: str, tmp_path: Path) -> None:
    topic = create_topic(address, "traces", 2)
    paths = []
    for seed in SEEDS:
        paths.append(tmp_path / f"{seed}.jsonl")
        write_trace(paths[-1], *altered_trace(seed))
        produce_records(address, "traces", records_of(paths[-1], str(seed), ends=seed != SEEDS[-1]))
    (tmp_path / "r").mkdir()
    parts = write_in_parts(tmp_path / "r", *altered_trace(8), 2)
    for part in parts:
        produce_records(address, "traces", records_of(part, "r", ends=part == parts[-1]))
    produce_records(address, "traces", [("bad", b"?"), ("bad", None)])

    corpus, beside = Corpus.create(tmp_path / "c", 3), Corpus.create(tmp_path / "f", 3)
    done, unended, read = ingest_topic(spark, corpus, topic, lambda done, total, what: None)
    assert read == sum(each.end for each in offset_ranges(topic))
    ingest_here(beside, [*paths[:-1], *parts])
    assert lines_of(corpus) == lines_of(beside)
    assert (done.inputs, len(unended), len(done.flaws)) == (len(paths) - 1 + len(parts) + 1, 1, 1)
    assert {(row[9], row[10]) for row in read_rows(corpus, "traces")} == {("", 0), ("r", 1), ("r", 2)}

    watch_topic(spark, topic, tmp_path / "w", once=True).awaitTermination()
    produce_records(address, "traces", [(str(SEEDS[-1]), None)])
    again, unended, read_again = ingest_topic(spark, corpus, topic, lambda done, total, what: None)
    assert (again.inputs, unended, read_again < read) == (1, (), True)
    last, _, read_then = ingest_topic(spark, corpus, topic, lambda done, total, what: None)
    assert (last.inputs, read_then, last.flaws) == (0, 0, ())
    ingest_here(beside, paths[-1:])
    assert lines_of(corpus) == lines_of(beside) and len(corpus.inputs()) == done.inputs + 1
    watch_topic(spark, topic, tmp_path / "w", once=True).awaitTermination()
    found = list(new_findings(findings_log(tmp_path / "w")))
    for seed, path in zip(SEEDS, paths, strict=True):
        mine = [row for row in found if row["trace"].endswith(f"/{seed}")]
        assert Counter(row["sequence"] for row in mine) == violations_of(path)
    assert sum(map(Counter.total, map(violations_of, paths))) > 2
    assert [row["kind"] for row in found if row["trace"].endswith("/bad")] == ["quarantine"]
