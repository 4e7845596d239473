"""The rows of a trace are found, and read in the order of its lines, wherever they are."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost.conformance.cli import main
from fencepost.model.settings import Settings
from fencepost.traces.events import Header, Order
from fencepost.traces.files.jsonl import encode_header
from fencepost.traces.files.rotating_writer import RecordingReader
from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.judge_corpus import read_shards
from fencepost.traces.pipeline.rows import (
    LOOKUPS_SHARD,
    UNRELATED_BUCKET,
    WHOLE_TRACE,
)
from fencepost.traces.pipeline.shard_plan import LONG_TRACE_EVENTS, HeaderRow, ShardRows, divide_work, shards_of
from fencepost.traces.pipeline.trace_rows import Run, RunReader, TraceFile, find_runs, group_recordings, line_offsets
from tests.support.altered_traces import altered_trace, write_in_parts
from tests.support.corpus_tables import ingest_here

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


ALONE = TraceFile("a", 10, 11, None, False, {0: 10})
FIRST, SECOND, THIRD = (
    replace(ALONE, trace=f"/r/{part}", recording="r", part=part, continued=3 if part > 1 else None)
    for part in (1, 2, 3)
)


@pytest.mark.parametrize(
    ("files", "traces"),
    [
        ((THIRD, ALONE, FIRST, SECOND), [["a"], ["/r/1", "/r/2", "/r/3"]]),
        ((FIRST, THIRD), [["/r/1"], ["/r/3"]]),
        ((FIRST, replace(SECOND, continued=None)), [["/r/1"], ["/r/2"]]),
        ((FIRST, replace(FIRST, trace="/copy/1")), [["/copy/1"], ["/r/1"]]),
        ((FIRST, replace(SECOND, flawed=7), THIRD), [["/r/1", "/r/2"], ["/r/3"]]),
    ],
    ids=["parts that follow", "a part is missing", "a part continues nothing", "the same part twice", "after a flaw"],
)
def test_parts_that_follow_each_other_are_one_trace(files: Sequence[TraceFile], traces: list[list[str]]) -> None:
    assert [[file.trace for file in whole] for whole in group_recordings(files)] == traces


def test_the_lines_of_a_trace_are_counted_on() -> None:
    ((*found,),) = [line_offsets(whole) for whole in group_recordings([FIRST, SECOND, THIRD])]
    assert [(file.part, begins, before) for file, begins, before in found] == [(1, 0, 0), (2, 3, 11), (3, 3, 19)]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Two traces, one of them with a bad line, and a recording in parts."""
    (tmp_path / "in").mkdir()
    for seed in (1, 2):
        write_trace(tmp_path / "in" / f"{seed}.jsonl", *altered_trace(seed))
    lines = (tmp_path / "in" / "2.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "in" / "2.jsonl").write_bytes(b"".join([*lines[:20], b"?\n", *lines[20:]]))
    write_in_parts(tmp_path / "in", *altered_trace(14), 3)
    corpus = Corpus.create(tmp_path / "c", 3)
    ingest_here(corpus, sorted((tmp_path / "in").iterdir()))
    return corpus


def extract(corpus: Corpus, finding: str, output: Path) -> int:
    return main(["pipeline", "extract", str(corpus.folder), "--finding", finding, "-o", str(output)])


@pytest.mark.parametrize("event", ["", ":0", ", event 0"])
def test_a_trace_is_what_it_was(corpus: Corpus, tmp_path: Path, event: str) -> None:
    source = tmp_path / "in" / "1.jsonl"
    assert extract(corpus, f"{source}{event}", tmp_path / "out.jsonl") == 0
    assert (tmp_path / "out.jsonl").read_bytes() == source.read_bytes()


def test_what_comes_after_a_bad_line_is_left_out(corpus: Corpus, tmp_path: Path) -> None:
    source = tmp_path / "in" / "2.jsonl"
    assert extract(corpus, str(source), tmp_path / "out.jsonl") == 0
    assert (tmp_path / "out.jsonl").read_bytes().splitlines() == source.read_bytes().splitlines()[:20]


def test_parts_make_one_trace(corpus: Corpus, tmp_path: Path) -> None:
    parts = sorted((tmp_path / "in").glob("r.*"))
    assert extract(corpus, str(parts[1]), tmp_path / "out.jsonl") == 0
    ((_, _, events),) = ((path, header, list(events)) for path, header, events in RecordingReader(parts).traces())
    assert list(open_trace(tmp_path / "out.jsonl")[1]) == events


def test_errors_are_one_line(corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(tmp_path / "in" / "1.jsonl")
    (tmp_path / "there.jsonl").touch()
    for finding, output, line in (
        (
            "none.jsonl:3",
            "out.jsonl",
            f"{corpus.folder} has no trace none.jsonl: give TRACE:EVENT as a report has them",
        ),
        (f"{source}:99999", "out.jsonl", f"{source} has no event 99999 in {corpus.folder}"),
        (source, "there.jsonl", f"{tmp_path}/there.jsonl: File exists"),
    ):
        assert extract(corpus, finding, tmp_path / output) == 2
        assert capsys.readouterr().err == f"fencepost: {line}\n"
    assert not (tmp_path / "out.jsonl").exists()
