"""Broker logs as traces: the steps that the group coordinator of Apache Kafka tells of (3.9 and 4.x).

A log shows what a coordinator did with its groups, not what it was asked and what it answered: no requests, no
heartbeats, no offsets, no assignments. Each line becomes an internal event `step`, in the order of the times in it.
"""

import gzip
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
from fencepost.traces.importers.broker_log_patterns import Told, read

STAMP = re.compile(r"\[?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[,.](\d{1,6}))?")
CLASS = re.compile(r" \((?:[\w$]+\.)+[\w$]+\)$")
"""The class behind the message, as Kafka's own layout has it."""
MOST_CHARACTERS = 1 << 20
"""Of a longer line only the beginning is read."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A line of a coordinator: when, from which file and line, and what it tells."""

    moment: datetime
    file: int
    number: int
    told: Told


@dataclass(slots=True)
class Imported:
    """What came of an import: events, the lines read, and those of a coordinator that the tables do not have."""

    events: int = 0
    lines: int = 0
    unknown: int = 0
    writers: Counter[str] = field(default_factory=Counter)


def import_log(paths: Sequence[Path], output: Path) -> Imported:
    """Write the steps in these logs as a trace. Raises `TraceError` if a file cannot be read or has no such line, and
    OSError if the trace cannot be written."""
    imported = Imported()
    steps = heapq.merge(*(seen(path, file, imported) for file, path in enumerate(paths)), key=lambda each: each.moment)
    first = next(steps, None)
    if first is None:
        files = ", ".join(map(str, paths))
        raise TraceError(files, 0, "no line of a group coordinator; is it a broker's log, at level INFO?")
    told = {"recorder": "fencepost import log", "began": first.moment.isoformat(timespec="milliseconds")}
    told |= {"name": first.told.writer}
    header = Header(", ".join(map(str, paths)), Order.TOTAL, "wall", Settings(), 0, told)
    with trace_writer(output, header) as write:
        for event in events(first, steps):
            write(event)
            imported.events += 1
    return imported


def seen(path: Path, file: int, imported: Imported) -> Iterator[Seen]:
    """The lines of coordinators in one file."""
    number = 0
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", errors="replace") as text:
            while row := text.readline(MOST_CHARACTERS):
                number += 1
                imported.lines += 1
                found = line_of(row)
                if found is None:
                    continue
                moment, told = found
                imported.unknown += not told.step
                if told.step:
                    imported.writers[told.writer] += 1
                    yield Seen(moment, file, number, told)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(str(path), number, f"cannot be read: {reason}") from None


def line_of(row: str) -> tuple[datetime, Told] | None:
    """When a line was written, and what it tells; None if it is no coordinator's."""
    start = row.find("[Group")
    stamp = STAMP.match(row)
    if start < 0 or stamp is None:
        return None
    told = read(CLASS.sub("", row[start:].rstrip()))
    if told is None:
        return None
    day, clock, fraction = stamp.groups()
    try:
        return datetime.fromisoformat(f"{day}T{clock}.{(fraction or '0').ljust(6, '0')}"), told
    except ValueError:
        return None


def events(first: Seen, others: Iterable[Seen]) -> Iterator[Event]:
    """The events of a trace. A log begins in the middle, and so does a coordinator that loads its groups."""
    latest, doubted = 0, False
    for number, each in enumerate(chain((first,), others)):
        # Lines are written by several threads, and may be a millisecond out of order.
        latest = max(latest, round((each.moment - first.moment).total_seconds() * 1_000))
        if number == 0:
            yield Event(0, 0, 0, "", Kind.INTERNAL, "unknown", 0, {"reason": "the log begins"})
            doubted = True
        place = {"file": each.file, "line": each.number}
        if each.told.step != "load":
            body = {"step": each.told.step, **each.told.fields, **place}
            yield Event(number + 1, latest, 0, "", Kind.INTERNAL, "step", 0, body)
            doubted = False
        elif not doubted:
            reason = {"reason": "a coordinator loads its groups", **place}
            yield Event(number + 1, latest, 0, "", Kind.INTERNAL, "unknown", 0, reason)
            doubted = True
