"""The writer of recordings writes whole lines, and parts that are traces of their own."""

from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.rotating_writer import RecordingReader, RotatingTraceWriter
from fencepost.traces.files.trace_files import TraceError, open_trace

HEADER = Header("here", Order.INTERVALS, "wall", Settings(), 1_000, {"recording": "r"})


def request(sequence: int) -> Event:
    return Event(sequence, sequence, 1, "A", Kind.REQUEST, "Heartbeat", 0, {"group_id": "g"})


def response(sequence: int, of: int) -> Event:
    return Event(sequence, sequence, 1, "A", Kind.RESPONSE, "Heartbeat", 0, {"error_code": 0}, of)


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz"])
def test_what_was_taken_in_is_read_again(name: str, tmp_path: Path) -> None:
    recording = RotatingTraceWriter(tmp_path / name, HEADER)
    events = [request(0), response(1, 0)]
    for event in events:
        recording.append(event)
    recording.flush()
    recording.sync()
    recording.close()
    header, read = open_trace(tmp_path / name)
    assert list(read) == events
    assert header.implementation == {"recording": "r", "part": "1"}


def test_what_was_flushed_is_a_trace_although_the_recorder_goes_on(tmp_path: Path) -> None:
    recording = RotatingTraceWriter(tmp_path / "trace.jsonl", HEADER)
    recording.append(request(0))
    recording.flush()
    recording.append(request(1))
    assert [event.sequence for event in open_trace(tmp_path / "trace.jsonl")[1]] == [0]
    recording.close()
    assert [event.sequence for event in open_trace(tmp_path / "trace.jsonl")[1]] == [0, 1]


def test_a_full_part_is_followed_by_another_that_begins_with_what_is_in_flight(tmp_path: Path) -> None:
    recording = RotatingTraceWriter(tmp_path / "trace.jsonl", HEADER, max_part_bytes=1)
    assert not recording.is_part_full
    recording.append(request(0))
    assert recording.is_part_full
    recording.rotate([request(0)])
    recording.append(response(1, 0))
    recording.close()
    assert [path.name for path in recording.files] == ["trace.0001.jsonl", "trace.0002.jsonl"]
    parts = [open_trace(path) for path in recording.files]
    assert [header.implementation["part"] for header, _ in parts] == ["1", "2"]
    assert [list(events) for _, events in parts] == [[request(0)], [request(0), response(1, 0)]]


def test_the_parts_of_a_recording_are_read_as_one_trace(tmp_path: Path) -> None:
    recording = RotatingTraceWriter(tmp_path / "a.jsonl", HEADER, max_part_bytes=1)
    recording.append(request(0))
    for part in (1, 2):
        recording.rotate([request(0)])
        recording.append(Event(part, part, 0, "", Kind.INTERNAL, "continued", 0, {}))
    recording.append(response(3, 0))
    recording.close()
    other = RotatingTraceWriter(tmp_path / "b.jsonl", replace(HEADER, implementation={"recording": "other"}))
    other.append(request(7))
    other.close()
    paths = [*recording.files, *other.files]
    shelf = RecordingReader(paths)
    found = [(path, list(events), shelf.files) for path, _, events in shelf.traces()]
    assert found == [
        (paths[0], [request(0), response(3, 0)], paths[:3]),
        (paths[3], [request(7)], paths[3:]),
    ]
    # A later part alone begins with what it repeats, and with the remark.
    alone = [list(events) for _, _, events in RecordingReader(paths[2:3]).traces()]
    assert [[event.sequence for event in events] for events in alone] == [[0, 2, 3]]


def test_a_part_after_a_bad_line_is_a_trace_of_its_own(tmp_path: Path) -> None:
    """What the part before has lost is not known, so that its events do not continue those before the bad line."""
    recording = RotatingTraceWriter(tmp_path / "a.jsonl", HEADER, max_part_bytes=1)
    recording.append(request(0))
    recording.rotate([request(0)])
    recording.append(Event(1, 1, 0, "", Kind.INTERNAL, "continued", 0, {}))
    recording.append(response(2, 0))
    recording.close()
    with recording.files[0].open("ab") as out:
        out.write(b"?\n")
    errors: list[TraceError] = []
    found = [
        [event.sequence for event in events]
        for _, _, events in RecordingReader(recording.files, errors.append).traces()
    ]
    assert found == [[0], [0, 1, 2]] and [error.line for error in errors] == [3]


def test_a_file_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_text("precious")
    with pytest.raises(FileExistsError):
        RotatingTraceWriter(tmp_path / "trace.jsonl", HEADER)
    assert (tmp_path / "trace.jsonl").read_text() == "precious"
