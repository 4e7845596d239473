"""A watch finds the violations of the whole trace once, also in parts and after a restart."""

import pickle
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.shards import LOOKUPS_SHARD
from fencepost.traces.pipeline.stream import (
    ShardState,
    advance_shard,
    check_same_watch,
    committed_files,
    file_rows,
    read_findings,
    watch_folder,
)
from tests.support.altered_traces import altered_trace, judge_alone, write_in_parts

BUCKETS = 2


@pytest.mark.parametrize("seed", [0, 1, 2, 5, 6, 8, 9, 10])
@pytest.mark.parametrize("count", [1, 4])
def test_a_trace_in_parts_is_judged_as_a_whole(seed: int, count: int, tmp_path: Path) -> None:
    header, events = altered_trace(seed)
    known: dict[int, bytes] = {}
    violations: Counter[str] = Counter()
    for path in write_in_parts(tmp_path, header, events, count):
        seen = list(file_rows(str(path), BUCKETS))
        for bucket in (LOOKUPS_SHARD, *range(BUCKETS)):
            news = sorted((row[3], row[2], *row[4:]) for row in seen if row[1] == bucket)
            before: ShardState | None = pickle.loads(known[bucket]) if bucket in known else None
            found: list[tuple[object, ...]] = []
            after = advance_shard("t", bucket, BUCKETS, before, news, found)
            assert after is not None
            known[bucket] = pickle.dumps(after)
            violations.update(str(row[6]) for row in found)
    for each in known.values():
        watched = pickle.loads(each)
        watched.end()
        violations.update(kind + str(sorted(asdict(each).items())) for kind, each in watched.new_findings())
    assert violations.total() == judge_alone(header, events)[0].total()


def rows(to: Path) -> list[tuple[str, str, int]]:
    return sorted((Path(row["path"]).name, row["kind"], row["sequence"] or 0) for _, row in read_findings(to))


def test_a_watch_goes_on_with_the_options_that_it_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_same_watch(tmp_path, 4)
    check_same_watch(tmp_path, 4)
    with pytest.raises(PipelineError, match="belongs to a watch with --buckets 4"):
        check_same_watch(tmp_path, 5)
    monkeypatch.setattr("fencepost.traces.pipeline.stream.__version__", "999")
    with pytest.raises(PipelineError, match="whose state 999 cannot read"):
        check_same_watch(tmp_path, 4)
    (tmp_path / "watch.json").write_text("{")
    with pytest.raises(PipelineError, match="is damaged"):
        check_same_watch(tmp_path, 4)


@pytest.mark.slow
def test_a_watch_loses_and_repeats_nothing(spark: SparkSession, tmp_path: Path) -> None:
    landing, to = tmp_path / "landing", tmp_path / "to"
    landing.mkdir()
    expected: list[tuple[str, str, int]] = []
    for batch in ((1, 2), (5, 6)):
        for seed in batch:
            path = landing / f"{seed}.jsonl"
            write_trace(path, *altered_trace(seed))
            header, events = open_trace(path)
            expected += [
                (path.name, "violation", violation.sequence)
                for violation in Judge(header).judge_events(list(events)).violations
            ]
        (landing / "bad.jsonl").write_bytes(b"?\n")
        watch_folder(spark, landing, to, BUCKETS, once=True).awaitTermination()
    assert len(expected) > 2
    assert rows(to) == sorted([*expected, ("bad.jsonl", "quarantine", 0)])
    assert committed_files(to / "found")
