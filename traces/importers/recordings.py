"""Joins the recordings of several recorders of one cluster: a group whose members they show in part is whole then.

Their clocks differ by up to `skew_ms`, so a request may have been sent that much earlier than it seems beside the
events of another recorder, and a response may have come that much later. The trace shows them so: what it leaves open
is what nobody can know.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.rotating_writer import RecordingReader, recording_part_of
from fencepost.traces.files.trace_files import TraceError, open_trace, trace_writer

DEFAULT_SKEW_MS = 10
"""How much the clocks of recorders are taken to differ at most."""


@dataclass(frozen=True, slots=True)
class JoinResult:
    """Counts of a join: recordings and events."""

    recordings: int
    events: int


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording: its first file, its files, the header, and when it began, in milliseconds since 1970."""

    files: tuple[Path, ...]
    header: Header
    began: int

    def events(self) -> Iterator[Event]:
        """Yield the events of all its files. Raises `TraceError`."""
        for _, _, events in RecordingReader(self.files).traces():
            yield from events


class PlacedEvent(NamedTuple):
    """An event in the time of all: the time, the number of its recording, the place in it, and the event."""

    time: int
    recording: int
    place: int
    event: Event


def join_recordings(paths: Sequence[Path], output: Path, skew_ms: int = DEFAULT_SKEW_MS) -> JoinResult:
    """Write one trace of the recordings in these files, rotated parts included.

    Raises `TraceError` for a file that cannot be read, is no recording, or is of another cluster, and `OSError` if the
    trace cannot be written.
    """
    recordings = find_recordings(paths)
    first = min(each.began for each in recordings)
    count = 0
    with trace_writer(output, joined_header(recordings, skew_ms)) as write:
        for event in number_events(merge_events(recordings, first, skew_ms)):
            write(event)
            count += 1
    return JoinResult(len(recordings), count)


def find_recordings(paths: Iterable[Path]) -> list[Recording]:
    """The recordings in these files, each with its parts in order. Raises `TraceError`."""
    parts = sorted((recording_part_of(open_trace(path)[0]), path) for path in paths)
    found: list[Recording] = []
    for (name, part), path in parts:
        header = open_trace(path)[0]
        if not name or header.order is not Order.INTERVALS:
            raise TraceError(str(path), 1, "not the trace of fencepost record; these can be joined")
        before = found[-1] if found and recording_part_of(found[-1].header)[0] == name else None
        if before is None:
            found.append(Recording((path,), header, began_ms(path, header)))
            continue
        if part != recording_part_of(open_trace(before.files[-1])[0])[1] + 1:
            raise TraceError(str(path), 1, f"part {part} of a recording does not follow {before.files[-1]}")
        found[-1] = replace(before, files=(*before.files, path))
    for each in found[1:]:
        check_same_cluster(found[0], each)
    return found


def began_ms(path: Path, header: Header) -> int:
    """When a recording began, in milliseconds since 1970. Raises `TraceError`."""
    try:
        began = datetime.fromisoformat(header.implementation["began"])
    except (KeyError, ValueError):
        raise TraceError(str(path), 1, "the header does not tell when the recording began") from None
    return round((began if began.tzinfo else began.replace(tzinfo=UTC)).timestamp() * 1_000)


def check_same_cluster(one: Recording, other: Recording) -> None:
    """Raises `TraceError` for recordings of two clusters, or with two beliefs of its settings."""
    where, told, also = str(other.files[0]), one.header.implementation, other.header.implementation
    if told.get("cluster", "") != also.get("cluster", ""):
        raise TraceError(where, 1, f"a recording of another cluster than {one.files[0]}")
    if one.header.settings != other.header.settings or told.get("settings") != also.get("settings"):
        raise TraceError(where, 1, f"other settings of the cluster than in {one.files[0]}: give both the same profile")


def joined_header(recordings: Sequence[Recording], skew_ms: int) -> Header:
    """The header of the trace: a timer may seem to be off by the differences of two clocks."""
    first = min(recordings, key=lambda each: each.began).header
    kept = {key: value for key, value in first.implementation.items() if key not in ("recording", "part")}
    told = {**kept, "recorder": "fencepost import recordings"}
    grace = max(each.header.grace for each in recordings) + 2 * uncertainty_ms(recordings, skew_ms)
    sources = ", ".join(dict.fromkeys(each.header.source for each in recordings))
    return replace(first, source=sources, grace=grace, implementation=told)


def uncertainty_ms(recordings: Sequence[Recording], skew_ms: int) -> int:
    """How far events of different recorders may be apart from what their times say, which are in whole milliseconds."""
    return skew_ms + 1 if len(recordings) > 1 else 0


def merge_events(recordings: Sequence[Recording], first: int, skew_ms: int) -> Iterator[PlacedEvent]:
    """Yield the events of all recordings in the order of their times, `first` being time 0."""
    skew = uncertainty_ms(recordings, skew_ms)
    return heapq.merge(
        *(place_events(number, each, each.began - first, skew) for number, each in enumerate(recordings))
    )


def place_events(number: int, recording: Recording, offset: int, skew: int) -> Iterator[PlacedEvent]:
    """Yield the events of a recording, each at the latest time at which it may have been; requests at the earliest."""
    waiting: list[PlacedEvent] = []
    for place, event in enumerate(recording.events()):
        now = event.time + offset + skew
        while waiting and waiting[0].time < now - skew:  # no later request is placed before that
            yield heapq.heappop(waiting)
        time = now - skew if event.kind is Kind.REQUEST else now + skew
        heapq.heappush(waiting, PlacedEvent(time, number, place, event))
    while waiting:
        yield heapq.heappop(waiting)


def number_events(placed: Iterable[PlacedEvent]) -> Iterator[Event]:
    """Yield the events with sequence numbers and connections of their own; no recordings share a connection."""
    connections: dict[tuple[int, int], int] = {}
    numbers: dict[tuple[int, int], int] = {}
    for sequence, (time, recording, _, event) in enumerate(placed):
        connection = event.connection
        if connection:
            connection = connections.setdefault((recording, connection), len(connections) + 1)
        of = None if event.of is None else numbers.get((recording, event.of))
        if event.kind is Kind.REQUEST:
            numbers[recording, event.sequence] = sequence
        elif event.of is not None and event.kind in (Kind.RESPONSE, Kind.FAULT):
            numbers.pop((recording, event.of), None)
        yield replace(event, sequence=sequence, time=time, connection=connection, of=of)
