"""Broker logs as traces: the steps that the group coordinator of Apache Kafka logs (3.9 and 4.x).

A log shows the steps of a coordinator, but no requests, responses, heartbeats, offsets or assignments. Each line
becomes an internal event `step`, in the order of timestamps.
"""

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.trace_files import TraceError, trace_writer
from fencepost.traces.importers.broker_log_patterns import LogStep, parse_message
from fencepost.traces.importers.log_files import parse_time, read_log_lines

LOGGER_SUFFIX = re.compile(r" \((?:[\w$]+\.)+[\w$]+\)$")
"""The name of the logging class after the message, in Kafka's own log layout."""
MAX_LINE_CHARACTERS = 1 << 20
"""Longer lines are cut."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a coordinator: its time, the index of its file, its number in the file, and its step."""

    time: datetime
    file: int
    number: int
    step: LogStep


@dataclass(slots=True)
class LogImportResult:
    """Counts of an import: events written, lines read, unknown lines of coordinators, and lines by coordinator."""

    events: int = 0
    lines: int = 0
    unknown: int = 0
    coordinators: Counter[str] = field(default_factory=Counter)


def import_log(paths: Sequence[Path], output: Path) -> LogImportResult:
    """Write the steps in these logs as a trace.

    Raises `TraceError` if a file cannot be read or no file has a line of a coordinator, and `OSError` if the trace
    cannot be written.
    """
    imported = LogImportResult()
    steps = heapq.merge(
        *(read_steps(path, file, imported) for file, path in enumerate(paths)), key=lambda each: each.time
    )
    first = next(steps, None)
    if first is None:
        files = ", ".join(map(str, paths))
        raise TraceError(files, 0, "no line of a group coordinator; is it a broker's log, at level INFO?")
    told = {"recorder": "fencepost import log", "began": first.time.isoformat(timespec="milliseconds")}
    told |= {"name": first.step.coordinator}
    header = Header(", ".join(map(str, paths)), Order.TOTAL, "wall", Settings(), 0, told)
    with trace_writer(output, header) as write:
        for event in to_events(first, steps):
            write(event)
            imported.events += 1
    return imported


def read_steps(path: Path, file: int, imported: LogImportResult) -> Iterator[LogLine]:
    """Yield the known lines of coordinators in one file, and count lines in `imported`. Raises `TraceError`."""
    for number, row in read_log_lines(path, MAX_LINE_CHARACTERS):
        imported.lines += 1
        found = parse_line(row)
        if found is None:
            continue
        moment, told = found
        imported.unknown += not told.name
        if told.name:
            imported.coordinators[told.coordinator] += 1
            yield LogLine(moment, file, number, told)


def parse_line(row: str) -> tuple[datetime, LogStep] | None:
    """The time and the step of a line; None if it is not a coordinator's."""
    start = row.find("[Group")
    if start < 0:
        return None
    time, told = parse_time(row), parse_message(LOGGER_SUFFIX.sub("", row[start:].rstrip()))
    return None if time is None or told is None else (time, told)


def to_events(first: LogLine, others: Iterable[LogLine]) -> Iterator[Event]:
    """The events of the steps, with a gap (`unknown`) where the log begins and where a coordinator loads its groups."""
    latest, doubted = 0, False
    for number, each in enumerate(chain((first,), others)):
        # Lines are written by several threads, and may be a millisecond out of order.
        latest = max(latest, round((each.time - first.time).total_seconds() * 1_000))
        if number == 0:
            yield Event(0, 0, 0, "", Kind.INTERNAL, "unknown", 0, {"reason": "the log begins"})
            doubted = True
        place = {"file": each.file, "line": each.number}
        if each.step.name != "load":
            body = {"step": each.step.name, **each.step.fields, **place}
            yield Event(number + 1, latest, 0, "", Kind.INTERNAL, "step", 0, body)
            doubted = False
        elif not doubted:
            reason = {"reason": "a coordinator loads its groups", **place}
            yield Event(number + 1, latest, 0, "", Kind.INTERNAL, "unknown", 0, reason)
            doubted = True
