"""The recordings of several recorders are one trace: that of a recorder that sees everything."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.trace_files import TraceError, open_trace, write_trace
from fencepost.traces.importers.recordings import join_recordings
from fencepost.traces.judge.judge import judge
from fencepost.traces.pipeline.imports import import_location, recording_importer
from tests.support.altered_traces import altered_trace, write_in_parts

BEGAN = datetime(2026, 1, 2, tzinfo=UTC)


def client_trace(seed: int) -> tuple[Header, Sequence[Event]]:
    """A trace as clients see it."""
    header, events = altered_trace(4 * seed + 3)
    assert header.order is Order.INTERVALS
    return header, events


def record_apart(folder: Path, header: Header, events: Sequence[Event], clocks: Sequence[int]) -> list[Path]:
    """The trace as several recorders see it, each some members, with clocks that are so many milliseconds fast."""
    members = sorted({event.member for event in events if event.kind is Kind.REQUEST})
    recorders: dict[int, int] = {}
    for event in events:
        known = recorders.get(-1 if event.of is None else event.of)
        mine = members.index(event.member) % len(clocks) if event.member in members else 0
        recorders[event.sequence] = mine if known is None else known
    return [
        write_recording(
            folder, header, [event for event in events if recorders[event.sequence] == number], number, clock
        )
        for number, clock in enumerate(clocks)
    ]


def write_recording(folder: Path, header: Header, events: Sequence[Event], number: int, clock: int) -> Path:
    """What one recorder writes."""
    first = events[0].time
    began = BEGAN + timedelta(milliseconds=first + clock)
    told = {"recording": f"r{number}", "part": "1", "began": began.isoformat(timespec="milliseconds")}
    path = folder / f"{number}.jsonl"
    shifted = [replace(event, time=event.time - first) for event in events]
    write_trace(path, replace(header, implementation=told), shifted)
    return path


def operations(events: Sequence[Event]) -> list[tuple[object, ...]]:
    """The requests with their responses, in the order of the requests."""
    responses = {event.of: event.body for event in events if event.kind is Kind.RESPONSE}
    requests = (event for event in events if event.kind is Kind.REQUEST)
    return sorted((repr((each.api, each.body, responses.get(each.sequence))),) for each in requests)


def test_joined_recordings_are_the_trace_of_one_recorder(tmp_path: Path) -> None:
    violations = Counter[str]()
    for seed in range(6):
        header, events = client_trace(seed)
        wrong = next(event for event in events if event.kind is Kind.RESPONSE and event.body.get("error_code") == 23)
        if seed % 2:
            fenced = replace(wrong, body={**wrong.body, "error_code": 82})
            events = [fenced if event is wrong else event for event in events]
        (tmp_path / str(seed)).mkdir()
        join_recordings(record_apart(tmp_path / str(seed), header, events, (0, 0)), tmp_path / f"{seed}.jsonl", 0)
        joined, lines = open_trace(tmp_path / f"{seed}.jsonl")
        found = list(lines)
        assert operations(found) == operations(events)
        assert [each.sequence for each in found] == list(range(len(found)))
        for name, verdict in (("joined", judge(joined, found)), ("whole", judge(header, list(events)))):
            violations.update(f"{name} {seed} {each.requirements}" for each in verdict.violations)
    told = {name.removeprefix("joined ") for name in violations if name.startswith("joined")}
    assert told == {name.removeprefix("whole ") for name in violations if name.startswith("whole")} and told


@pytest.mark.parametrize("seed", range(4))
def test_clocks_that_differ_make_no_violation(seed: int, tmp_path: Path) -> None:
    header, events = client_trace(seed)
    if judge(header, list(events)).violations:
        pytest.skip("the trace has violations")
    skew = random.Random(seed).randint(1, 5)
    join_recordings(record_apart(tmp_path, header, events, (0, skew)), tmp_path / "joined.jsonl", skew)
    joined, found = open_trace(tmp_path / "joined.jsonl")
    assert joined.grace == header.grace + 2 * (skew + 1)
    assert judge(joined, list(found)).violations == ()


def test_a_request_is_placed_early_and_a_response_late(tmp_path: Path) -> None:
    header, events = client_trace(0)
    join_recordings(record_apart(tmp_path, header, events, (0, 0)), tmp_path / "joined.jsonl", 7)
    joined = list(open_trace(tmp_path / "joined.jsonl")[1])
    lengths = []
    for found in (events, joined):
        sent = {event.sequence: event.time for event in found if event.kind is Kind.REQUEST}
        lengths.append(sorted(event.time - sent[event.of] for event in found if event.kind is Kind.RESPONSE))  # type: ignore[index]
    assert [each + 2 * (7 + 1) for each in lengths[0]] == lengths[1]


def test_rotated_parts_are_joined(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    header, events = client_trace(1)
    told = {"began": BEGAN.isoformat()}
    parts = write_in_parts(tmp_path, header, events, 3)
    for part in parts:
        found, lines = open_trace(part)
        kept = list(lines)
        write_trace(part, replace(found, implementation={**found.implementation, **told}), kept)
    made = import_location(recording_importer(), tmp_path, tmp_path_factory.mktemp("made"))
    assert operations(list(open_trace(made)[1])) == operations(events)
    with pytest.raises(TraceError, match="part 3 of a recording does not follow"):
        join_recordings([parts[0], parts[2]], tmp_path / "x.jsonl")


def test_what_cannot_be_joined_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, events = client_trace(0)
    one, other = record_apart(tmp_path, header, events, (0, 0))
    found = open_trace(other)[0]
    for implementation, line in (
        ({**found.implementation, "cluster": "x"}, "a recording of another cluster"),
        ({**found.implementation, "settings": "assumed"}, "give both the same profile"),
        ({"recording": "x"}, "does not tell when the recording began"),
        ({}, "these can be joined"),
    ):
        write_trace(other, replace(found, implementation=implementation), [])
        with pytest.raises(TraceError, match=line):
            join_recordings([one, other], tmp_path / "joined.jsonl")
    assert main(["import", "recordings", str(one), "-o", str(tmp_path / "out.jsonl")]) == 0
    assert "events from 1 recordings" in capsys.readouterr().err
