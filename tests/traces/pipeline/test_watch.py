"""A watch finds the violations of the whole trace once: in parts, in records, after a restart, and in a checkpoint."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fencepost.traces.events import Kind
from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.rows import LOOKUPS_SHARD, WHOLE_TRACE
from fencepost.traces.pipeline.shard_state import (
    FOLLOWING,
    QUARANTINED,
    UNJUDGED,
    VIOLATION,
    NewLine,
    News,
    advance_shard,
)
from fencepost.traces.pipeline.stream import (
    CHANGED_FILE,
    EMPTY_FILE,
    StreamLog,
    check_same_watch,
    file_rows,
    findings_log,
    input_log,
    new_findings,
    new_unread_files,
    record_rows,
    watch_folder,
)
from fencepost.traces.pipeline.topics import TopicRecord
from fencepost.traces.verdict import initial_violations, violations_in
from tests.support.altered_traces import altered_trace, judge_alone, write_in_parts
from tests.support.push.faults import FAULTS
from tests.support.system_traces import write_push_traces

# --- A watch finds the violations of the whole trace once, also in parts and after a restart.

BUCKETS = 2


def rows(to: Path) -> list[tuple[str, str, int]]:
    return sorted((Path(row["path"]).name, row["kind"], row["sequence"] or 0) for row in new_findings(findings_log(to)))


def test_a_watch_goes_on_with_the_options_that_it_began_with(tmp_path: Path) -> None:
    check_same_watch(tmp_path, 4, "a")
    check_same_watch(tmp_path, 4, "a")
    with pytest.raises(PipelineError, match="belongs to a watch with --buckets 4"):
        check_same_watch(tmp_path, 5, "a")
    with pytest.raises(PipelineError, match="belongs to a watch of a: give the same"):
        check_same_watch(tmp_path, 4, "b")
    (tmp_path / "watch.json").write_text('{"fencepost_watch": "0.0.9", "buckets": 4}')
    with pytest.raises(PipelineError, match=r"of Fencepost 0\.0\.9, whose state .* cannot read"):
        check_same_watch(tmp_path, 4, "a")
    (tmp_path / "watch.json").write_text("{")
    with pytest.raises(PipelineError, match="is damaged"):
        check_same_watch(tmp_path, 4, "a")


@pytest.mark.slow
def test_a_watch_loses_and_repeats_nothing(spark: SparkSession, tmp_path: Path) -> None:
    landing, to = tmp_path / "landing", tmp_path / "to"
    landing.mkdir()
    (landing / "empty.jsonl").touch()
    expected: list[tuple[str, str, int]] = []
    for batch in ((1, 2), (5, 6)):
        for seed in batch:
            path = landing / f"{seed}.jsonl"
            write_trace(path, *altered_trace(seed))
            header, events = open_trace(path)
            violations = Judge(header).judge_events(list(events)).violations
            first = initial_violations(violations)
            expected += [
                (path.name, "violation" if violation in first else "following", violation.sequence)
                for violation in violations
            ]
        (landing / "bad.jsonl").write_bytes(b"?\n")
        watch_folder(spark, landing, to, BUCKETS, once=True).awaitTermination()
    assert len(expected) > 2
    assert rows(to) == sorted([*expected, ("bad.jsonl", "quarantine", 0)])
    assert {(path.name, reason) for path, reason in new_unread_files(input_log(to))} == {
        ("bad.jsonl", CHANGED_FILE),
        ("empty.jsonl", EMPTY_FILE),
    }


def write_batch(folder: Path, name: str, *files: Path) -> None:
    """A file of a log, as Spark writes it."""
    lines = ["v1", *(json.dumps({"path": file.as_uri(), "timestamp": 1_000}) for file in files)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(lines))


def write_file(path: Path, text: str, seconds: float) -> Path:
    """A file that was written then."""
    path.write_text(text)
    os.utime(path, (seconds, seconds))
    return path


def test_each_entry_is_read_once(tmp_path: Path) -> None:
    log, files = StreamLog(tmp_path / "log"), [tmp_path / f"a b{number}" for number in range(4)]
    assert log.new_entries() == []
    write_batch(log.folder, "8", files[0])
    assert [path for path, _ in log.new_entries()] == files[:1]
    write_batch(log.folder, "9.compact", *files[:2])
    (log.folder / "8").unlink()
    write_batch(log.folder, "10", files[2])
    assert [path for path, _ in log.new_entries()] == files[1:3]
    write_batch(log.folder, "9.compact", *files)
    assert log.new_entries() == [], "a batch that was read is not read again"


def test_files_that_spark_passes_over_are_named_once_it_has_found_them(tmp_path: Path) -> None:
    log = input_log(tmp_path / "to")
    whole = write_file(tmp_path / "whole.jsonl", "?", 1)
    empty = write_file(tmp_path / "empty.jsonl", "", 1)
    late = write_file(tmp_path / "late.jsonl", "?", 1.5)
    assert not list(new_unread_files(log)), "a writer may just have opened it"
    write_batch(log.folder, "0", whole, empty, late, tmp_path / "gone.jsonl")
    assert list(new_unread_files(log)) == [(empty, EMPTY_FILE), (late, CHANGED_FILE)]
    assert not list(new_unread_files(log)), "and only once"


# --- The state of a trace that goes on, in parts and in a checkpoint.

SEEDS = (0, 1, 2, 5, 6, 8, 9, 10)
LOOKUP_BEHIND_THE_EMPTY_GROUP = 586
"""A trace in which a response about the group "" is wrong, and then a lookup, which is about no group."""


def lines_of(path: Path, bucket: int) -> list[NewLine]:
    """The lines of a file that concern a bucket, as a watch of a folder gets them."""
    return sorted(NewLine(*row[2:]) for row in file_rows(str(path), BUCKETS) if row[1] == bucket)


def watch_files(paths: list[Path], *, ends: bool = True) -> Iterator[News]:
    """What a watch finds in files that come one after the other."""
    for bucket in (LOOKUPS_SHARD, *range(BUCKETS)):
        state: bytes | None = None
        for path in paths:
            news, state = advance_shard(bucket, BUCKETS, state, lines_of(path, bucket))
            yield from news
        if ends and state is not None:
            end = NewLine(99, str(paths[-1]), 1 << 40, "end", b"")
            yield from advance_shard(bucket, BUCKETS, state, [end])[0]


def watch_records(values: Sequence[bytes | None], at_once: int = 1_000) -> tuple[list[News], bytes | None]:
    """What a watch finds in records that come in several batches, and the state after them."""
    state, found = None, []
    records = [TopicRecord(0, offset, "t", value) for offset, value in enumerate(values)]
    for start in range(0, len(records), at_once):
        lines = [NewLine(*row[2:]) for row in record_rows("kafka://c/t", records[start : start + at_once])]
        news, state = advance_shard(WHOLE_TRACE, 1, state, lines)
        found += news
    return found, state


def total(news: Iterator[News] | list[News]) -> int:
    """The number of violations that stand."""
    kinds = Counter(each.kind for each in news)
    return kinds[VIOLATION] + kinds[FOLLOWING] - kinds["withdrawn"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [1, 4])
def test_a_trace_in_parts_is_judged_as_a_whole(seed: int, count: int, tmp_path: Path) -> None:
    header, events = altered_trace(seed)
    paths = write_in_parts(tmp_path, header, events, count)
    assert total(watch_files(paths)) == judge_alone(header, events)[0].total()
    records = [line for path in paths for line in path.read_bytes().splitlines()]
    assert total(watch_records([*records, None], 50)[0]) == judge_alone(header, events)[0].total()


@pytest.mark.parametrize("seed", [*range(24), LOOKUP_BEHIND_THE_EMPTY_GROUP])
def test_a_watch_names_the_requirements_that_a_report_names(seed: int, tmp_path: Path) -> None:
    header, events = altered_trace(seed)
    verdict = Judge(header).judge_events(events)
    expected = {each.requirement for each in violations_in(verdict)} - {"unclassified"}
    write_trace(tmp_path / "t.jsonl", header, events)
    news = watch_files([tmp_path / "t.jsonl"])
    assert {id for each in news if each.kind == VIOLATION for id in json.loads(each.value)["requirements"]} == expected


def test_a_bad_record_ends_its_trace(tmp_path: Path) -> None:
    header, events = altered_trace(2)
    write_trace(tmp_path / "t.jsonl", header, events)
    lines = (tmp_path / "t.jsonl").read_bytes().splitlines()
    found, state = watch_records([*lines[:9], b"?", *lines[9:]], 5)
    assert [each.kind for each in found].count(QUARANTINED) == 1, "and what follows is not told line by line"
    assert state is not None
    again, _ = watch_records([*lines[:9], b"?", *lines[9:], *lines, None], 5)
    assert total(again) == total(found) + judge_alone(header, events)[0].total(), "until the next header"
    assert [each.kind for each in watch_records(lines[1:4])[0]] == [QUARANTINED]


def test_a_record_that_comes_twice_counts_once(tmp_path: Path) -> None:
    header, events = altered_trace(2)
    write_trace(tmp_path / "t.jsonl", header, events)
    lines = (tmp_path / "t.jsonl").read_bytes().splitlines()
    twice = [lines[0], *(each for line in lines[1:] for each in (line, line)), None]
    assert [each.kind for each in watch_records(twice)[0]] == [each.kind for each in watch_records([*lines, None])[0]]


def malformed_trace(folder: Path) -> Path:
    """A trace with a request whose form is wrong, behind its violations."""
    header, events = altered_trace(2)
    odd = [event for event in events if event.kind is Kind.REQUEST and event.api == "Heartbeat"][-1]
    body = {**odd.body, "generation_id": "x"}
    path = folder / "t.jsonl"
    write_trace(path, header, (replace(each, body=body) if each is odd else each for each in events))
    return path


def test_nothing_is_told_of_a_trace_with_a_malformed_message(tmp_path: Path) -> None:
    """`fencepost judge` says nothing of it but that."""
    path = malformed_trace(tmp_path)
    (told,) = watch_files([path])
    assert told.kind == UNJUDGED and "'generation_id' of Heartbeat v4 is not" in told.value
    for at_once in (20, 1_000):  # what was reported of it before is taken back
        found, state = watch_records([*path.read_bytes().splitlines(), None], at_once)
        assert total(found) == 0 and [each.kind for each in found].count(UNJUDGED) == 1 and state is None


def test_a_response_that_the_judge_cannot_take_stops_nobody(tmp_path: Path) -> None:
    header, events = altered_trace(8)
    odd = [event for event in events if event.kind is Kind.RESPONSE and event.api == "JoinGroup"][-1]
    body = {**odd.body, "members": 5}
    write_trace(tmp_path / "t.jsonl", header, (replace(each, body=body) if each is odd else each for each in events))
    assert [each.kind for each in watch_files([tmp_path / "t.jsonl"])] == [UNJUDGED]


@pytest.mark.parametrize("requirement", ["", "PUSH-38"])
def test_a_trace_of_another_protocol_is_one_shard(requirement: str, tmp_path: Path) -> None:
    with FAULTS["start_before_all_stopped"].activate() if requirement else nullcontext():
        paths = write_push_traces(tmp_path, "PUSH-38")
    for path in paths:
        rows = list(file_rows(str(path), BUCKETS))
        assert {row[1] for row in rows} == {WHOLE_TRACE}
        lines, state, found = [NewLine(*row[2:]) for row in sorted(rows)], None, []
        for start in range(0, len(lines), 7):
            news, state = advance_shard(WHOLE_TRACE, BUCKETS, state, lines[start : start + 7])
            found += news
        assert state is None
        names = {name for each in found for name in json.loads(each.value)["requirements"]}
        assert names == ({requirement} if requirement else set())


def test_a_trace_of_an_unknown_protocol_is_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "rent.jsonl"
    write_trace(path, replace(altered_trace(0)[0], protocol="rent"), altered_trace(0)[1])
    lines = [NewLine(*row[2:]) for row in sorted(file_rows(str(path), BUCKETS))]
    (news,), state = advance_shard(WHOLE_TRACE, BUCKETS, None, lines)
    assert (news.kind, state) == (UNJUDGED, None) and "protocol 'rent' is none" in news.value
