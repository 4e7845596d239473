"""The rows of a trace are found, and read in the order of its lines, wherever they are."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost.model.settings import Settings
from fencepost.traces.events import Header, Order
from fencepost.traces.files.jsonl import encode_header
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.judge_corpus import read_shards
from fencepost.traces.pipeline.rows import (
    LOOKUPS_SHARD,
    UNRELATED_BUCKET,
    WHOLE_TRACE,
)
from fencepost.traces.pipeline.shard_plan import LONG_TRACE_EVENTS, HeaderRow, ShardRows, divide_work, shards_of
from fencepost.traces.pipeline.trace_rows import Run, RunReader, TraceFile, find_runs

ROWS_PER_GROUP = 4
SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("line", pa.int64()),
        ("intact", pa.bool_()),
        ("bucket", pa.int32()),
        ("kind", pa.string()),
        ("api", pa.string()),
        ("error", pa.int32()),
        ("text", pa.binary()),
    ]
)


def write_events(path: Path, rows: Sequence[tuple[str, int]], bucket: int = 0) -> str:
    """Write rows, each with its trace and line, in small row groups."""
    found = [(trace, line, True, bucket, "request", "Fetch", None, b"%d" % line) for trace, line in rows]
    table = pa.Table.from_arrays([list(column) for column in zip(*found, strict=True)], schema=SCHEMA)
    pq.write_table(table, path, row_group_size=ROWS_PER_GROUP)
    return str(path)


def runs_in(*files: str) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for file in files:
        for trace, run in find_runs(file):
            found.setdefault(trace, []).append(run)
    return found


def write_headers(path: Path, *headers: Header) -> str:
    pq.write_table(pa.table({"header": [encode_header(each) for each in headers]}), path)
    return str(path)


def lines_of(parts: Sequence[Sequence[ShardRows]]) -> Mapping[str, list[int]]:
    """The numbers of lines of each trace without its header."""
    return {shard.trace: [line for line, *_ in lines][1:] for part in parts for shard, lines in read_shards(part)}


PLAIN = Header("s", Order.TOTAL, "virtual", Settings(), 0)
RECORDED = Header("s", Order.INTERVALS, "wall", Settings(), 0, {"recorder": "fencepost record"})


def test_a_run_ends_where_another_trace_begins_or_lines_do_not_ascend(tmp_path: Path) -> None:
    file = write_events(
        tmp_path / "e", [("a", 2), ("a", 3), ("a", 5), ("b", 2), ("b", 3), ("b", 3), ("a", 9), ("a", 10)]
    )
    assert list(find_runs(file)) == [
        ("a", Run(file, 0, 3, 2)),
        ("b", Run(file, 3, 2, 2)),
        ("b", Run(file, 5, 1, 3)),
        ("a", Run(file, 6, 2, 9)),
    ]


def test_a_file_without_rows_has_no_run(tmp_path: Path) -> None:
    pq.write_table(SCHEMA.empty_table(), tmp_path / "e")
    assert not list(find_runs(str(tmp_path / "e")))


def test_a_run_is_read_out_of_the_row_groups_that_it_is_in(tmp_path: Path) -> None:
    file = write_events(tmp_path / "e", [("a", line) for line in range(10)] + [("b", line) for line in range(3)])
    reader = RunReader(["line"])
    for trace, (run,) in runs_in(file).items():
        read = [line for batch in reader.batches(run) for line in batch["line"].to_pylist()]
        assert read == list(range(10 if trace == "a" else 3))
    assert [line for batch in reader.batches(Run(file, 3, 6, 3)) for line in batch["line"].to_pylist()] == [
        *range(3, 9)
    ]


def test_lines_are_in_order_though_another_tool_has_spread_them_over_files(tmp_path: Path) -> None:
    one = write_events(tmp_path / "1", [("a", 6), ("a", 7), ("a", 2), ("b", 2)])
    two = write_events(tmp_path / "2", [("a", 3), ("a", 4), ("a", 5), ("a", 8)])
    files = [TraceFile("a", 7, 8, None, False, {0: 7}), TraceFile("b", 1, 2, None, False, {0: 1})]
    place = write_headers(tmp_path / "h", PLAIN, PLAIN)
    headers = {"a": HeaderRow(place, 0), "b": HeaderRow(place, 1)}
    assert lines_of(divide_work(files, headers, runs_in(one, two), 2)) == {"a": [*range(2, 9)], "b": [2]}


def test_events_that_are_not_there_are_missed(tmp_path: Path) -> None:
    file = write_events(tmp_path / "e", [("a", 2)])
    files = [TraceFile("a", 2, 3, None, False, {0: 2})]
    with pytest.raises(PipelineError, match="has 1 of the 2 events of a"):
        divide_work(files, {"a": HeaderRow("", 0)}, runs_in(file), 2)


def test_a_long_trace_is_split_only_if_it_is_much_of_the_work_of_a_core() -> None:
    sizes = {0: LONG_TRACE_EVENTS, 1: LONG_TRACE_EVENTS}
    events = sum(sizes.values())
    files = [TraceFile(name, events, events + 1, None, False, sizes) for name in "abcdef"]
    headers = {name: HeaderRow("", 0) for name in "abcdef"}
    runs = {name: [Run("", 0, events, 2)] for name in "abcdef"}
    few, many = divide_work(files, headers, runs, 2), divide_work(files, headers, runs, 8)
    assert [each.shard.bucket for part in many for each in part] == [0, 1] * 6 + [LOOKUPS_SHARD] * 6
    whole = [each.shard.trace for part in few for each in part if each.shard.bucket == WHOLE_TRACE]
    assert whole == list("cdef"), "the last are small, so that all cores are busy to the end"
    assert [each.shard.trace for part in few for each in part][-6:] == ["a", "a", "a", "b", "b", "b"]


def test_unrelated_events_of_a_long_trace_are_read_only_for_members(tmp_path: Path) -> None:
    events = LONG_TRACE_EVENTS + 1
    sizes = {0: events - 3, UNRELATED_BUCKET: 3}
    (shard,) = shards_of([TraceFile("a", events, events + 1, None, False, sizes)], 2 * events)
    assert (shard.size, shard.unread) == (events - 3, 3)
    file = write_events(tmp_path / "e", [("a", 2), ("a", 3)], UNRELATED_BUCKET)
    for header, expected in ((PLAIN, []), (RECORDED, [2, 3])):
        place = HeaderRow(write_headers(tmp_path / "h", header), 0)
        ((found, lines),) = read_shards([ShardRows(shard, place, [([Run(file, 0, 2, 2)], 0, 0)])])
        assert [line for line, *_ in lines][1:] == expected
        assert found.unread == (0 if expected else 3)


def test_shards_that_are_next_to_each_other_are_one_part_and_the_largest_part_comes_first() -> None:
    sizes = [1, 1, 1, 5, 1]
    files = [TraceFile(str(at), size, size + 1, None, False, {0: size}) for at, size in enumerate(sizes)]
    runs = {str(at): [Run("e", sum(sizes[:at]), size, 2)] for at, size in enumerate(sizes)}
    parts = divide_work(files, {each.trace: HeaderRow("", 0) for each in files}, runs, 1)
    assert [[each.shard.trace for each in part] for part in parts] == [["3"], ["0", "1", "2"], ["4"]]
