"""Broker logs as traces: the steps that the group coordinator of Apache Kafka logs (3.9 and 4.x).

A log shows the steps of a coordinator, but no requests, responses, heartbeats, offsets or assignments. Each line
becomes an internal event `step`, in the order of timestamps.
"""

import gzip
import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.trace_files import TraceError, trace_writer

# --- The log lines of the two group coordinators of Apache Kafka, as a table for each.
#
# A line is a step of the coordinator; its placeholders are the fields of the step. Both coordinators log at level
# INFO, in classes below `kafka.coordinator.group` and `org.apache.kafka.coordinator.group`.

KAFKA_3_LINES = """
prepare     Preparing to rebalance group <group> in state... with old generation <generation> (...) (reason: <reason>)
complete    Stabilized group <group> generation <generation> (...) with <count> members
empty       Group <group> with generation <generation> is now empty (...)
publish     Assignment received from leader <member> for group <group> for generation <generation>... has <count>...
issue       Dynamic... unknown member id joins group <group> in <word> state. Created... id <id> and request...
register    Dynamic... unknown member id joins group <group> in <word> state. Created... id <id> for this...
register    Static member... unknown member id joins group <group> in <word> state. Created... id <id> for this...
replace     Static member... unknown member id joins group <group> in <word> state. Replacing... member <id> with...
unregister  Member MemberMetadata(memberId=<member>, groupInstanceId=...) has left group <group> through <reason>
unregister  Member <member> in group <group> has <reason>, removing it from the group
expel       Group <group> removed dynamic members who haven't joined: <members>
expel-unsynced Group <group> removed members who haven't sent their sync request...: <members>
withdraw    Pending member with memberId=<member> has left group <group> through explicit...
withdraw    Pending member <member> in group <group> has been removed after session timeout expiration.
forget      Group <group> transitioned to Dead in generation <generation>
load        Elected as the group coordinator...
load        Resigned as the group coordinator...
load        Scheduling loading...
load        Scheduling unloading...
load        Starting up...
"""
KAFKA_4_LINES = """
prepare     Preparing to rebalance group <group> in state... with old generation <generation> (reason: <reason>).
complete    Stabilized group <group> generation <generation> with <count> members.
empty       Group <group> with generation <generation> is now empty.
publish     Assignment received from leader <member> for group <group> for generation <generation>... has <count>...
issue       Dynamic... unknown member id joins group <group> in <word> state. Created... id <id> and request...
register    Dynamic... unknown member id joins group <group> in <word> state. Created... id <id> and added...
register    Dynamic... unknown member id joins group <group> in <word> state. Created... id <id> for this...
register    Pending dynamic member with id <member> joins group <group> in <word> state. Adding to the group now.
register    Static member... unknown member id joins group <group> in <word> state. Created... id <id> for this...
replace     Static member... unknown member id joins group <group> in <word> state. Replacing... member <id> with...
withdraw    [Group <group>] Pending member <member> has left group through explicit...
unregister  [Group <group>] Member <member> has left group through <reason>
unregister  [Group <group>] Static member <member> with instance id... has left group through <reason>
unregister  Member <member> in group <group> has <reason>, removing it from the group.
expel       Group <group> removed dynamic members who haven't joined: <members>
expel-unsynced Group <group> removed members who haven't sent their sync request...: <members>
withdraw    Pending member <member> in group <group> has been removed after session timeout expiration.
sweep       Generated... tombstone records while cleaning up group metadata in...
delete      The following groups were deleted: <groups>. A total of...
load        Scheduling loading...
load        Scheduling unloading...
load        Failed to load...
load        Starting up...
"""
SILENT_LINES = """
-           Static member which joins during Stable...
-           Startup complete...
-           Finished loading...
-           Finished unloading...
-           Removed <count> expired offsets...
-           Received notification of heartbeat expiration...
-           Shutting down...
-           Shutdown complete...
"""
"""Lines of coordinators that are no steps."""

PLACEHOLDERS: Mapping[str, str] = {
    "group": r"(?P<group>.*)",
    "member": r"(?P<member>.+?)",
    "id": r"(?P<member>\S+)",
    "generation": r"(?P<generation>\d+)",
    "groups": r"(?P<groups>.*)",
    "members": r"(?P<members>.*)",
    "count": r"(?P<count>\d+)",
    "reason": r"(?P<reason>.*)",
    "word": r"\w+",
}
"""Regular expressions of the placeholders. Three dots are any text; in brackets they are optional."""


@dataclass(frozen=True, slots=True)
class LinePattern:
    """One kind of line: the step and the regular expression."""

    step: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class CoordinatorFormat:
    """One of the two coordinators: the prefix of its lines, and the kinds of lines."""

    name: str
    prefix: re.Pattern[str]
    lines: tuple[LinePattern, ...]


def parse_table(table: str) -> tuple[LinePattern, ...]:
    """The patterns in the rows of a table."""
    rows = (row.split(maxsplit=1) for row in table.splitlines() if row)
    return tuple(LinePattern(step, re.compile(to_regex(text))) for step, text in rows)


def to_regex(text: str) -> str:
    """The regular expression for the text of a line with placeholders."""
    found = re.escape(text).replace(r"\ \(\.\.\.\)", r"(?: \([^)]*\))?").replace(r"\.\.\.", ".*?")
    return re.sub("<([a-z]+)>", lambda hole: PLACEHOLDERS[hole[1]], found)


KAFKA_3 = CoordinatorFormat(
    "Apache Kafka 3",
    re.compile(r"\[(?:GroupCoordinator|GroupMetadataManager brokerId=) ?\d+\]:? "),
    parse_table(KAFKA_3_LINES),
)
KAFKA_4 = CoordinatorFormat(
    "Apache Kafka 4",
    re.compile(r"\[GroupCoordinator id=\d+(?: topic=\S+ partition=\d+)?\] "),
    parse_table(KAFKA_4_LINES),
)
COORDINATOR_FORMATS = (KAFKA_4, KAFKA_3)
NUMERIC_FIELDS = frozenset({"generation", "count"})
SILENT_PATTERNS = parse_table(SILENT_LINES)


@dataclass(frozen=True, slots=True)
class LogStep:
    """A step in a log: the coordinator, the name of the step, and its fields. The name is empty if the line is not in
    the tables."""

    coordinator: str
    name: str
    fields: Mapping[str, Any]


def parse_message(text: str) -> LogStep | None:
    """The step in a message; None if the message is not a coordinator's, or not a step."""
    for writer in COORDINATOR_FORMATS:
        prefix = writer.prefix.match(text)
        if prefix is None:
            continue
        message = text[prefix.end() :]
        for kind in writer.lines:
            found = kind.pattern.fullmatch(message)
            if found is not None:
                return LogStep(writer.name, kind.step, parse_fields(found))
        is_silent = any(kind.pattern.fullmatch(message) for kind in SILENT_PATTERNS)
        return None if is_silent else LogStep(writer.name, "", {})
    return None


def parse_fields(found: re.Match[str]) -> dict[str, Any]:
    """The fields of a matched line, with numbers as integers."""
    return {name: int(value) if name in NUMERIC_FIELDS else value for name, value in found.groupdict().items()}


# --- Lines of logs, and the time at the beginning of a line.

TIMESTAMP = re.compile(r"\[?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[,.](\d{1,6}))?")


def read_log_lines(path: Path, max_characters: int) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line of a log, which may be compressed with gzip; longer lines are cut.

    Raises `TraceError` if the file cannot be read.
    """
    number = 0
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", errors="replace") as text:
            while row := text.readline(max_characters):
                number += 1
                yield number, row
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(str(path), number, f"cannot be read: {reason}") from None


def parse_time(row: str) -> datetime | None:
    """The time at the beginning of a line; None if there is none."""
    stamp = TIMESTAMP.match(row)
    if stamp is None:
        return None
    day, clock, fraction = stamp.groups()
    try:
        return datetime.fromisoformat(f"{day}T{clock}.{(fraction or '0').ljust(6, '0')}")
    except ValueError:
        return None


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
