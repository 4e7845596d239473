"""Every line of a trace becomes a row of events or of the quarantine, with the columns that queries need."""

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files import trace_files
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.message_fields import accepted_offsets, assigned_partitions, double_assigned, poll_counts
from fencepost.traces.pipeline.rows import REPEATED_LINE, BadLine, Row, RowReader
from tests.support.corpus_tables import FETCH
from tests.support.trace_builder import ASSIGNMENT, exchange_events, heartbeat_events, join_events

HEADER = Header("s", Order.TOTAL, "virtual", Settings(), 0)


def read_rows(path: Path) -> tuple[list[Row], list[BadLine], RowReader]:
    reader = RowReader(str(path))
    rows = list(reader.rows())
    assert reader.lines == (reader.header is not None) + reader.events + reader.quarantined
    return [row for row in rows if isinstance(row, Row)], [row for row in rows if isinstance(row, BadLine)], reader


def write_trace_file(path: Path, events: Sequence[Event]) -> list[bytes]:
    write_trace(path, HEADER, events)
    return path.read_bytes().splitlines(keepends=True)


def test_a_good_trace_has_its_lines_as_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    text = write_trace_file(path, heartbeat_events(0) + heartbeat_events(1))
    rows, bad, reader = read_rows(path)
    assert [row.text for row in rows] == text[1:] and reader.header_line == text[0] and not bad
    assert [(row.line, row.sequence, row.kind, row.group) for row in rows][:2] == [
        (2, 0, "request", "g"),
        (3, 1, "response", "g"),
    ]
    assert all(row.intact for row in rows)


@pytest.mark.parametrize(
    ("spoil", "reason", "quarantined"),
    [
        (lambda text: [text[0], b"{\n", *text[2:]], "not JSON", [2, 3]),
        (lambda text: [*text[:2], b"\xff\n", *text[3:]], "not UTF-8", [3]),
        (lambda text: [text[0], *text[2:]], "awaiting a response", [2]),
        (lambda text: [*text[:3], text[1], *text[3:]], "does not rise", [4]),
        (lambda text: [*text[:2], b'{"sequence": 1}\n', *text[3:]], "is missing", [3]),
        (lambda text: [*text[:-1], text[-1][:20]], "not JSON", [5]),
        (lambda text: [*text[:2], text[2].replace(b'"time":0', b'"time":%d' % 2**70), *text[3:]], "64 bits", [3, 4, 5]),
        (lambda text: [*text, b"\n"], "empty line", [6]),
    ],
)
def test_bad_lines_go_to_the_quarantine(tmp_path: Path, spoil: Any, reason: str, quarantined: list[int]) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(spoil(write_trace_file(path, heartbeat_events(0) + heartbeat_events(1)))))
    rows, bad, reader = read_rows(path)
    assert [each.line for each in bad] == quarantined and reason in bad[0].reason
    assert reader.flawed == quarantined[0]
    assert [row.intact for row in rows] == [row.line < quarantined[0] for row in rows]


def test_the_same_line_again_leaves_nothing_out(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    text = write_trace_file(path, heartbeat_events(0) + heartbeat_events(1))
    path.write_bytes(b"".join([*text[:3], text[2], *text[3:]]))
    rows, bad, reader = read_rows(path)
    assert [(each.line, each.reason) for each in bad] == [(4, REPEATED_LINE)]
    assert reader.flawed is None and all(row.intact for row in rows)


def test_nothing_is_read_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(write_trace_file(path, heartbeat_events(0))[1:]) * 2)
    rows, bad, _ = read_rows(path)
    assert rows == []
    assert [(each.line, each.lines) for each in bad] == [(1, 1), (2, 3)]


def test_a_huge_line_is_one_bad_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_files, "MAX_LINE", 1_000)
    path = tmp_path / "t.jsonl"
    text = write_trace_file(path, heartbeat_events(0) + heartbeat_events(1))
    path.write_bytes(b"".join([*text[:3], b"[" * 5_000 + b"\n", *text[3:]]))
    rows, bad, _ = read_rows(path)
    assert [(each.line, each.reason) for each in bad] == [(4, "longer than 1000 bytes")]
    assert [row.line for row in rows] == [2, 3, 5, 6]


def test_a_truncated_gzip_keeps_what_was_readable(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    write_trace(path, HEADER, [event for number in range(50) for event in heartbeat_events(number)])
    path.write_bytes(path.read_bytes()[:-12])
    _, bad, reader = read_rows(path)
    assert "gzip" in bad[-1].reason and bad[-1].lines == 0 and reader.flawed is not None
    whole = gzip.compress(b"")
    (tmp_path / "empty.gz").write_bytes(whole)
    assert "empty" in read_rows(tmp_path / "empty.gz")[1][0].reason


def test_a_response_row_has_fields_of_its_request(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    commit = {"generation_id_or_member_epoch": 3, "member_id": "m", "group_instance_id": "i"}
    rows = [{"partition_index": 0, "committed_offset": 7}, {"partition_index": 1, "committed_offset": 8}]
    done = [{"partition_index": 0, "error_code": 0}, {"partition_index": 1, "error_code": Error.ILLEGAL_GENERATION}]
    request = {**commit, "topics": [{"name": "t", "partitions": rows}]}
    write_trace_file(
        path, exchange_events(0, "OffsetCommit", request, {"topics": [{"name": "t", "partitions": done}]}, 5)
    )
    row = read_rows(path)[0][1]
    assert (row.sent, row.generation, row.member_id, row.instance, row.accepted) == (5, 3, "m", "i", True)
    assert row.offsets == [("t", 0, 7)]


def test_partitions_of_assignments() -> None:
    assert assigned_partitions({"assignment": ASSIGNMENT}) == ["t/0", "t/1"]
    assert assigned_partitions({"assignment": b"\0\0\0\0\0\1\0\1"}) == assigned_partitions({"assignment": "t"}) == []
    both = [{"member_id": "a", "assignment": ASSIGNMENT}, {"member_id": "b", "assignment": ASSIGNMENT}]
    assert double_assigned({"assignments": both}) == ["t/0", "t/1"]
    assert double_assigned({"assignments": both[:1]}) is None


def test_bodies_may_hold_anything() -> None:
    strange = {"topics": [{"name": ["x"], "partitions": [{"partition_index": {}, "error_code": 0}, 3]}, None]}
    assert accepted_offsets(strange, strange, {}) is None
    assert poll_counts({"buffered": {"t/0": 2}, "returned": {"t/1": "x"}}) == [("t/0", 2, 0), ("t/1", 0, 0)]
    assert poll_counts({}) is None


def incarnation_numbers(path: Path, events: Sequence[Event], header: Header = HEADER) -> list[int]:
    write_trace(path, header, events)
    found = [row.incarnation for row in read_rows(path)[0] if row.kind == "response"]
    assert None not in found
    return [each for each in found if each is not None]


def test_an_incarnation_continues_while_a_member_is_certain(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    first, second, third = incarnation_numbers(
        path, join_events(0, 1) + heartbeat_events(1, 9_000) + heartbeat_events(2, 18_000)
    )[-3:]
    assert first == second == third
    first, second = incarnation_numbers(path, join_events(0, 1) + heartbeat_events(1, 10_001))
    assert first < second


@pytest.mark.parametrize(
    "between",
    [
        exchange_events(1, "LeaveGroup", {"member_id": "m"}, {"error_code": 0}),
        exchange_events(1, "LeaveGroup", {"members": [{"member_id": "m"}]}, {"error_code": 0}),
        heartbeat_events(1, error=Error.NOT_COORDINATOR),
        [Event(2, 0, 0, "", Kind.FAULT, "restart", 0, {})],
    ],
)
def test_an_incarnation_ends_with_its_last_member_or_its_coordinator(tmp_path: Path, between: list[Event]) -> None:
    found = incarnation_numbers(tmp_path / "t.jsonl", join_events(0, 1) + between + join_events(2, 1))
    assert found[0] < found[-1]


def test_a_static_member_has_one_identity_under_both_ids(tmp_path: Path) -> None:
    static = [replace(each, body={**each.body, "group_instance_id": "i"}) for each in join_events(0, 1)]
    by_instance = {"members": [{"member_id": "", "group_instance_id": "i"}]}
    for body in (by_instance, {"member_id": "m"}):
        leave = exchange_events(1, "LeaveGroup", body, {"error_code": 0})
        found = incarnation_numbers(tmp_path / "t.jsonl", static + leave + join_events(2, 1))
        assert found[0] < found[-1]


def fetch_events(first: int, **fields: object) -> list[Event]:
    """A request of Fetch with its response; the request lacks what `fields` do not have."""
    asked = Event(first, 0, 1, "F", Kind.REQUEST, "Fetch", 12, {**FETCH, **fields})
    return [asked, Event(first + 1, 0, 1, "F", Kind.RESPONSE, "Fetch", 12, {"responses": []}, first)]


def test_events_are_unrelated_if_no_group_and_no_lookup_has_to_do_with_them(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    odd, good = fetch_events(2, max_bytes="x"), fetch_events(4)
    refused = [fetch_events(6)[0], replace(fetch_events(6)[1], body={"error_code": Error.NOT_COORDINATOR})]
    polled = Event(8, 0, 1, "F", Kind.POLL, "poll", 0, {"returned": {}, "buffered": {}})
    write_trace_file(path, [*heartbeat_events(0), *odd, *good, *refused, polled])
    rows, _, reader = read_rows(path)
    assert [row.sequence for row in rows if row.is_unrelated] == [4, 5, 6, 8] and reader.unrelated == 4


def test_unrelated_events_are_counted_before_the_first_flaw_and_after_what_a_part_repeats(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    later = replace(HEADER, implementation={"recording": "r", "part": "2"})
    continued = Event(3, 0, 0, "", Kind.INTERNAL, "continued", 0, {})
    write_trace(
        path,
        later,
        [*fetch_events(2)[:1], continued, replace(fetch_events(2)[1], sequence=4), *fetch_events(6), *fetch_events(8)],
    )
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:-2], b"?\n", *lines[-2:]]))
    rows, _, reader = read_rows(path)
    assert [row.sequence for row in rows if row.is_unrelated] == [6, 7, 8, 9] and reader.unrelated == 2
