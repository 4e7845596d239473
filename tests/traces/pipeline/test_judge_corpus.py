"""The pipeline has the verdicts of the judge, however a trace is split, and queries find only violations."""

import random
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from fencepost.conformance.analysis.trace_report import TraceReport, judge_files
from fencepost.conformance.pipeline.overview import SUMMARY, overview_lines
from fencepost.conformance.pipeline.shard_findings import shard_findings
from fencepost.conformance.results import ExitCode
from fencepost.traces.events import Event, Header, Kind, Lookahead, Order, PairedEvent
from fencepost.traces.files.jsonl import decode_event
from fencepost.traces.files.rotating_writer import RecordingReader
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.history.builder import TraceHistory
from fencepost.traces.judge.judge import Judge
from fencepost.traces.pipeline import story
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.ingest import ingest
from fencepost.traces.pipeline.judge_corpus import FoundInShard, ShardJudge, pair_shard_operations, read_shards
from fencepost.traces.pipeline.queries import INVARIANTS
from fencepost.traces.pipeline.query_corpus import query_corpus
from fencepost.traces.pipeline.results import find_unreadable, fold_here, fold_on_workers, judge_corpus
from fencepost.traces.pipeline.rows import (
    Row,
    RowReader,
    is_unrelated,
)
from fencepost.traces.pipeline.shard_plan import Shard, plan_parts, shards_of
from fencepost.traces.pipeline.tables import TRACES
from fencepost.traces.pipeline.trace_rows import group_recordings
from fencepost.traces.verdict import TraceVerdict, Violation
from tests.support.altered_traces import altered_trace, judge_alone, summarize_verdicts, write_in_parts
from tests.support.corpus_tables import FETCH, CorpusResults, inputs_of, quiet
from tests.support.shards import file_of, findings_in, is_in_shard, is_own

TRACES_IN_CI = 40
WELL_FORMED: Mapping[str, dict[str, object]] = {
    "Fetch": FETCH,
    "ListOffsets": {"replica_id": -1, "isolation_level": 0, "topics": []},
    "Produce": {"transactional_id": None, "acks": -1, "timeout_ms": 9, "topic_data": []},
    "ApiVersions": {},
}
"""Bodies of requests that concern no group."""
BUCKETS = 3


def verdicts(corpus: Corpus, paths: Sequence[Path], split: int) -> Iterator[TraceVerdict]:
    """The verdicts on all shards of a trace, without Spark."""
    found: list[TraceVerdict] = []

    def keep(shard: Shard, header: Header, judge: ShardJudge, events: Iterator[PairedEvent]) -> Iterator[FoundInShard]:
        for moment in events:
            judge.judge.on_event(moment.event, moment.operation)
        found.append(judge.judge.finish())
        yield from ()

    list(findings_in(corpus, paths, split, keep))
    return iter(found)


@pytest.mark.parametrize("seed", range(TRACES_IN_CI))
def test_verdicts_are_the_judges_however_a_trace_is_split(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    header, events = altered_trace(seed)
    write_trace(path, header, events)
    alone = judge_alone(header, events)
    for split in (0, 10**9):
        assert summarize_verdicts(verdicts(Corpus(tmp_path, BUCKETS), [path], split)) == alone


def with_fetches(header: Header, events: Sequence[Event], source: random.Random) -> list[Event]:
    """The events among many more that concern no group, as real clients send them, some without a response."""
    found: list[Event] = []
    numbers: dict[int, int] = {}

    def add(event: Event) -> None:
        found.append(replace(event, sequence=len(found)))

    for event in events:
        numbers[event.sequence] = len(found)
        add(replace(event, of=None if event.of is None else numbers[event.of]))
        for _ in range(source.randrange(6)):
            api, version = source.choice((("Fetch", 12), ("ListOffsets", 7), ("Produce", 9), ("ApiVersions", 0)))
            asked, time, body = len(found), event.time, {"error_code": source.choice((0, 1))}
            add(Event(0, time, 99, "F", Kind.REQUEST, api, version, WELL_FORMED[api]))
            match source.randrange(8):
                case 0:
                    add(Event(0, time, 99, "F", Kind.FAULT, "disconnected", 0, {}, asked))
                case 1:
                    add(Event(0, time, 99, "F", Kind.POLL, "poll", 0, {"returned": {}, "buffered": {}}))
                case _ if header.order is Order.TOTAL or source.random() < 0.9:
                    add(Event(0, time, 99, "F", Kind.RESPONSE, api, version, body, asked))
    return found


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 14])
def test_unrelated_events_are_counted_and_not_read(seed: int, tmp_path: Path) -> None:
    """The shards of a split trace leave out what no judge learns from, and the verdict stays the same."""
    path, corpus = tmp_path / "t.jsonl", Corpus(tmp_path, BUCKETS)
    header, few = altered_trace(seed)
    events = with_fetches(header, few, random.Random(seed))
    write_trace(path, header, events)
    seen: list[Event] = []
    own: list[int] = []

    def count(
        shard: Shard, header: Header, judge: ShardJudge, moments: Iterator[PairedEvent]
    ) -> Iterator[FoundInShard]:
        seen.extend(moment.event for moment in moments)
        own.append(judge.own_events)
        yield from ()

    list(findings_in(corpus, [path], 0, count))
    assert sum(own) == len(events) > 2 * len(few)
    assert not any(is_unrelated(event.kind, event.api) for event in seen)
    assert summarize_verdicts(verdicts(corpus, [path], 0)) == judge_alone(header, events)


@pytest.mark.parametrize("seed", [0, 1, 2, 5, 6, 8, 9, 10])
def test_a_recording_in_parts_is_one_trace(seed: int, tmp_path: Path) -> None:
    paths = write_in_parts(tmp_path, *altered_trace(seed), 4)
    ((_, header, events),) = ((path, header, list(events)) for path, header, events in RecordingReader(paths).traces())
    alone = judge_alone(header, events)
    for split in (0, 10**9):
        assert summarize_verdicts(verdicts(Corpus(tmp_path, BUCKETS), paths, split)) == alone


def test_random_traces_cover_the_findings() -> None:
    found = [judge_alone(*altered_trace(seed)) for seed in range(20)]
    assert sum(1 for violations, *_ in found if violations) > 5
    assert sum(1 for violations, *_ in found if not violations) > 3
    assert len({violation.group for violations, *_ in found for violation in violations}) > 1


def test_a_shard_looks_as_far_ahead_as_the_whole_trace() -> None:
    _, events = altered_trace(3, 200)
    whole = [
        (each.event, each.operation and each.operation.response) for each in Lookahead(events, 4).pair_operations()
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fencepost.traces.pipeline.judge_corpus.MAX_LOOKAHEAD", 4)
        seen = [
            (each.event, each.operation and each.operation.response)
            for each in pair_shard_operations(enumerate(events))
        ]
    assert seen == whole


@pytest.fixture(scope="module")
def corpus(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Some traces, one of them with a bad line, and one in parts."""
    folder = tmp_path_factory.mktemp("judging")
    paths = []
    for seed in range(12):
        write_trace(folder / f"{seed}.jsonl", *altered_trace(seed))
        paths.append(folder / f"{seed}.jsonl")
    lines = paths[-1].read_bytes().splitlines(keepends=True)
    paths[-1].write_bytes(b"".join([*lines[:40], b"?\n", *lines[41:]]))
    corpus = Corpus.create(folder / "c", BUCKETS)
    ingest(spark, corpus, inputs_of([*paths, *write_in_parts(folder, *altered_trace(14), 3)]), quiet)
    return corpus


@pytest.fixture(scope="module")
def corpus_results(spark: SparkSession, corpus: Corpus) -> CorpusResults:
    """All of them judged, each split as far as it goes, and queried."""
    folder = Path(corpus.folder) / "out"
    folder.mkdir()
    find_unreadable(spark, corpus, folder)
    parts = plan_parts(spark, corpus, 0)
    judge_corpus(spark, corpus, parts, folder, shard_findings, quiet)
    query_corpus(spark, corpus, parts, folder, quiet)
    return CorpusResults(folder)


def paths_of(corpus: Corpus) -> list[Path]:
    names = (row for file in corpus.files(TRACES) for row in pq.ParquetFile(file).read()["trace"].to_pylist())
    return sorted(map(Path, names))


def violations_in(results: CorpusResults) -> Iterator[Mapping[str, Any]]:
    return (row for row in results.query_rows("findings") if row["kind"] == "violation")


def row_of(violation: Violation) -> tuple[object, ...]:
    requirements, allowed = ", ".join(violation.requirements) or None, " or ".join(violation.allowed)
    return violation.sequence, violation.group or None, requirements, violation.api, violation.observed, allowed


@pytest.mark.slow
def test_violations_equal_those_of_the_judge(corpus: Corpus, corpus_results: CorpusResults) -> None:
    found: dict[str, Counter[tuple[object, ...]]] = {}
    for row in violations_in(corpus_results):
        columns = ("sequence", "group", "requirement", "api", "observed", "allowed")
        found.setdefault(row["trace"], Counter())[tuple(row[name] for name in columns)] += 1
    flawed: list[Path] = []
    for path in paths_of(corpus):
        reader = RowReader(str(path))
        rows = [row for row in reader.rows() if isinstance(row, Row) and row.intact]
        if reader.flawed is not None:
            assert reader.header is not None
            verdict = Judge(reader.header).judge_events([decode_event(row.text) for row in rows])
            assert Counter(map(row_of, verdict.violations)) == found.pop(str(path), Counter())
            flawed.append(path)
    assert len(flawed) == 1
    for path, header, events in RecordingReader(path for path in paths_of(corpus) if path not in flawed).traces():
        assert Counter(map(row_of, Judge(header).judge_events(events).violations)) == found.pop(str(path), Counter())
    assert not found


def test_the_report_is_the_one_of_fencepost_judge(corpus: Corpus, corpus_results: CorpusResults) -> None:
    report = fold_here(corpus_results.folder, SUMMARY).report.build_report(0)
    expected = judge_files(paths_of(corpus), lambda _: None)
    assert (report.rules, report.events, report.schedules) == (expected.rules, expected.events, expected.schedules)
    assert report.undecided == expected.undecided and report.exit_code() is ExitCode.VIOLATION
    assert report.ended is not None and expected.ended is not None and report.ended.reason == expected.ended.reason
    for mine, theirs in zip(report.results, expected.results, strict=True):
        assert (mine.id, mine.verdict, mine.checks) == (theirs.id, theirs.verdict, theirs.checks)
        assert len(mine.failures) + mine.more_failures == len(theirs.failures) + theirs.more_failures
        whole_of = {(each.trace, each.step, each.observed): each.schedule for each in theirs.failures}
        for each in mine.failures:
            # A part of a split trace shows of its past what it has of it.
            assert set(each.schedule) <= set(whole_of[each.trace, each.step, each.observed])
            assert each.schedule


def test_queries_find_only_violations_of_the_judge(corpus_results: CorpusResults) -> None:
    violating = {(row["trace"], row["group"]) for row in violations_in(corpus_results)}
    found = {(row["trace"], row["group"]) for name in INVARIANTS for row in corpus_results.query_rows(name)}
    assert found <= violating


def test_a_folder_of_the_same_files_without_a_log_has_the_same_findings(
    spark: SparkSession, corpus: Corpus, corpus_results: CorpusResults, tmp_path: Path
) -> None:
    """Its traces are judged as a whole."""
    shutil.copytree(Path(corpus.data), tmp_path / "plain", ignore=shutil.ignore_patterns("_delta_log"))
    plain = Corpus.open(tmp_path / "plain")
    find_unreadable(spark, plain, tmp_path / "out")
    judge_corpus(spark, plain, plan_parts(spark, plain), tmp_path / "out", shard_findings, quiet)
    both = (CorpusResults(tmp_path / "out"), corpus_results)
    columns = ("trace", "sequence", "time", "group", "value")
    mine, theirs = (sorted(repr([*map(row.get, columns)]) for row in each.findings("unreadable")) for each in both)
    assert mine == theirs and mine
    for table in story.SCHEMAS:
        mine, theirs = (sorted(repr(row) for row in each.query_rows(table)) for each in both)
        assert mine == theirs and (mine or table == story.OWNERSHIP), table


def test_lines_of_a_shard_are_together_and_in_order(spark: SparkSession, corpus: Corpus) -> None:
    readers = [RowReader(str(path)) for path in paths_of(corpus)[:3]]
    rows = {reader.trace: [row for row in reader.rows() if isinstance(row, Row) and row.intact] for reader in readers}
    wholes = group_recordings(file_of(corpus, reader) for reader in readers)
    found = [shard for whole in wholes for shard in shards_of(whole, 0)]
    seen = {
        shard: [(line, own) for line, _, own in lines]
        for part in plan_parts(spark, corpus, 0)
        for shard, lines in read_shards(part)
        if shard.trace in rows
    }
    assert set(found) == seen.keys()
    for shard, lines in seen.items():
        mine = [(row.line, is_own(row, shard, corpus)) for row in rows[shard.trace] if is_in_shard(row, shard, corpus)]
        assert lines == [(1, False), *mine]


def test_the_story_is_the_one_of_fencepost_report(corpus: Corpus, corpus_results: CorpusResults) -> None:
    """However a trace is split: each rebalance, and who came and went."""
    histories: list[TraceHistory] = []
    report = TraceReport(1, lambda _: None, histories)
    report.read_files(paths_of(corpus))
    expected: Counter[tuple[object, ...]] = Counter()
    for history in histories:
        for timeline in history.groups:
            assert timeline.rebalance_count == len(timeline.rebalances)
            for each in timeline.rebalances:
                told = (each.began, each.duration(history.duration), each.generation, each.cause.kind.value)
                expected[history.path, timeline.group, *told, each.ended is not None] += 1
    columns = ("trace", "group", "time", "ms", "generation", "cause", "is_over")
    found = Counter(tuple(row[name] for name in columns) for row in corpus_results.query_rows(story.REBALANCES))
    assert found == expected and found
    assert any(row["went"] is None and row["why"] for row in corpus_results.query_rows(story.MEMBERSHIPS)), "no clock"


def test_workers_fold_results_into_the_same_summary(spark: SparkSession, corpus_results: CorpusResults) -> None:
    here, there = fold_here(corpus_results.folder, SUMMARY), fold_on_workers(spark, corpus_results.folder, SUMMARY)
    assert there.report.build_report(0) == here.report.build_report(0)
    assert overview_lines(there.overview) == overview_lines(here.overview)
    assert here.overview.durations and here.report.failures and here.report.errors.count
