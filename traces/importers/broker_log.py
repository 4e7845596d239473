"""Logs as traces: the steps that the group coordinators of Apache Kafka log, and what clients log of their membership.

A log shows steps, but no requests, responses, heartbeats or offsets. Each line
becomes an internal event `step`, in the order of time. A file is read three times: its first rows show its layout
(`log_layout`), all of them the order of its times, and then the steps are written.
"""

import heapq
import re
import shutil
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.trace_files import TraceError, trace_writer
from fencepost.traces.importers.client_lines import CLIENTS
from fencepost.traces.importers.coordinator_lines import COORDINATORS
from fencepost.traces.importers.log_layout import DAY_MS, Layout, LogRow, level_of, read_rows
from fencepost.traces.importers.log_messages import LogStep, MessageForm, name_writers, parse_message

WRITERS = (*COORDINATORS, *CLIENTS)
ANCHOR = re.compile("|".join(re.sub(r"\(\?P<\w+>", "(?:", each.anchor.pattern) for each in WRITERS))
"""Where a message begins in a line."""

LEARNT_ROWS = 2_000
"""How many rows show a layout."""
MAX_UNREAD_SHARE = 0.1
"""Of a log that is understood to a lesser share nothing is checked."""
QUIET_LEVELS = frozenset({"TRACE", "DEBUG"})
"""Steps are logged above these."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a coordinator: its time in milliseconds, its file and number there, its text and its step."""

    time: int
    file: int
    number: int
    text: str
    step: LogStep


@dataclass(slots=True)
class LogImportResult:
    """Counts of an import: events written, lines read, and lines of coordinators, in all and those not understood;
    `shapes` are what the files are, and `notes` what had to be done with their times."""

    events: int = 0
    lines: int = 0
    known: int = 0
    unknown: int = 0
    doubled: int = 0
    is_unordered: bool = False
    """Whether the order of some lines is known by their times alone."""
    shapes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def unread(self) -> str:
        """How many lines were not understood, in words; "" if all were."""
        total = self.known + self.unknown
        return f"{self.unknown} of {total} lines of the coordinator were not understood" if self.unknown else ""

    @property
    def is_doubtful(self) -> bool:
        """Whether too much was not understood for a verdict."""
        return self.unknown > MAX_UNREAD_SHARE * (self.known + self.unknown)


def import_log(paths: Sequence[Path], output: Path) -> LogImportResult:
    """Write the steps in these logs as a trace.

    Raises `TraceError` if a file cannot be read or no file has a line of a coordinator, and `OSError` if the trace
    cannot be written.
    """
    imported = LogImportResult()
    names = ", ".join(map(str, paths))
    with seekable(paths) as files:
        logs = [LogFile(path, file) for file, path in enumerate(files)]
        for log, path in zip(logs, paths, strict=True):
            log.survey(imported, path)
        if not any(log.times for log in logs):
            raise TraceError(names, 0, describe_nothing(imported))
        coordinated = set[str]().union(*(log.coordinated for log in logs))
        lines = drop_doubled(heapq.merge(*(log.lines() for log in logs), key=lambda each: each.time), imported)
        header = Header(names, Order.TOTAL, "wall", Settings(), 0, describe_origin(logs, imported))
        with trace_writer(output, header) as write:
            for event in to_events(lines, coordinated):
                write(event)
                imported.events += 1
    return imported


def describe_origin(logs: Sequence["LogFile"], imported: LogImportResult) -> dict[str, str]:
    """What the header says of the logs."""
    forms = {form for log in logs for form in log.forms}
    told = {"recorder": "fencepost import log", "name": name_writers(forms) if forms else "a coordinator"}
    dated = [log for log in logs if log.times]
    first = min(log.first_time for log in dated)
    if all(log.has_date for log in dated):
        zone = UTC if all(log.has_zone for log in dated) else None
        began = datetime(1970, 1, 1, tzinfo=zone) + timedelta(milliseconds=first)
        told["began"] = began.isoformat(timespec="milliseconds")
    told |= {"unread": imported.unread} if imported.unread else {}
    told |= {"doubt": "the log is in no order of time"} if imported.is_unordered else {}
    told |= {"doubt": "too many lines of the log were not understood"} if imported.is_doubtful else {}
    limits = [*imported.notes, *dict.fromkeys(filter(None, (log.resolution_note() for log in dated)))]
    return told | ({"times": "; ".join(limits)} if limits else {})


def describe_nothing(imported: LogImportResult) -> str:
    """Why there is nothing to import."""
    found = imported.known + imported.unknown
    if found:
        return f"{found} lines of a group coordinator, but none with a time; keep the time before each line"
    if imported.lines == 0:
        return "no line of a group coordinator or a member: the file is empty"
    return (
        f"no line of a group coordinator or a member among {imported.lines}; brokers log at level INFO "
        "(kafka.coordinator.group), librdkafka with debug=cgrp"
    )


@contextmanager
def seekable(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """The files, pipes among them as copies that can be read several times."""
    with tempfile.TemporaryDirectory(prefix="fencepost-") as folder:
        files = []
        for number, path in enumerate(paths):
            copy = Path(folder) / str(number)
            if path.exists() and not path.is_file() and not path.is_dir():
                with path.open("rb") as source, copy.open("wb") as target:
                    shutil.copyfileobj(source, target)
            files.append(copy if copy.exists() else path)
        yield files


# --- One file.


@dataclass(slots=True)
class Stretch:
    """A part of a file in which times do not fall: its first line, what to add to its times, and by group the first
    and the last generation."""

    start: int
    shift: int = 0
    generations: dict[str, tuple[int, int]] = field(default_factory=dict)


MAX_JITTER_MS = 1_000
"""Threads write lines in another order than their times by less than this."""
MAX_STRETCHES = 1_000
MOST_LEAPS = 3
"""Fewer falls of time than this have reasons of their own, however short the file."""
HOUR_MS = 3_600_000


class LogFile:
    """One log: what its layout is, how its times run, and its lines in order."""

    def __init__(self, path: Path, file: int) -> None:
        self.path = path
        self.file = file
        self.layout = Layout()
        self.forms: set[tuple[str, MessageForm]] = set()
        """The messages seen, each with the name of what wrote it."""
        self.groups: dict[str, str] = {}
        """By client, the group that it named last: not each of its messages does."""
        self.coordinated: set[str] = set()
        """Groups of which lines of a coordinator tell."""
        self.times = array("q")
        self.stretches = [Stretch(0)]
        self.falls = self.rises = 0
        self.has_date = self.has_year = self.has_zone = True
        self.is_reversed = self.is_sorted = self.is_unordered = False

    def survey(self, imported: LogImportResult, path: Path) -> None:
        """Learn the layout and the order of times; count lines. Raises `TraceError`."""
        for row, before in islice(read_rows(self.path, ANCHOR, lambda: None), LEARNT_ROWS):
            step = parse_message(WRITERS, row.text)
            self.layout.learn(row, before, step.tail)
        self.layout.conclude()
        for line in self.read(imported):
            self.note(line)
        if not self.times:
            return
        leaps = len(self.stretches) - 1
        self.is_reversed = self.falls > 4 * self.rises
        if not self.is_reversed and leaps > MOST_LEAPS and 4 * leaps > self.rises:
            self.is_unordered = imported.is_unordered = True
            imported.notes.append(f"{path.name} is in no order of time and was sorted")
        elif self.is_reversed:
            imported.notes.append(f"{path.name} has the newest line first and was turned round")
        elif len(self.stretches) > 1:
            self.arrange(imported, path)
        imported.shapes.append(", ".join(filter(None, (self.layout.name, name_writers(self.forms)))))

    def read(self, imported: LogImportResult | None = None) -> Iterator[LogLine]:
        """Yield the steps in the order of the file, and count its lines. Raises `TraceError`."""
        counts = imported or LogImportResult()

        def count() -> None:
            counts.lines += 1

        for row, before in read_rows(self.path, ANCHOR, count):
            stamp = self.layout.find_time(row, before)
            if stamp is None and self.layout.stamped > self.layout.unstamped:
                continue  # a message within a stack trace
            step = self.parse(row)
            if step is None:
                continue
            counts.known += step.name != ""
            counts.unknown += step.name == ""
            if stamp is None:
                continue
            self.has_date &= stamp.has_date
            self.has_year &= stamp.has_year
            self.has_zone &= stamp.has_zone
            if step.form is not None and step.writer is not None:
                self.forms.add((step.writer.name, step.form))
            if step.name or step.fields:
                yield LogLine(stamp.time, self.file, row.number, row.text, step)

    def parse(self, row: LogRow) -> LogStep | None:
        """The step of a row, without a name if it is not understood; None if it is none."""
        step = parse_message(WRITERS, row.text, self.layout.cut_tail)
        if step.writer is not None and not step.writer.tells_all:
            step = self.add_context(step, row)
        if step.name == "-":
            return None
        if step.name == "" and level_of(row) in QUIET_LEVELS:
            return None
        if self.layout.is_cut(step.tail):
            return LogStep("", {name: step.fields[name] for name in ("group",) if name in step.fields}, step.node)
        return step

    def add_context(self, step: LogStep, row: LogRow) -> LogStep:
        """A client's step with what its document says, and with the group that the client has named."""
        fields = {**row.told, **step.fields}
        client = str(fields.get("client", ""))
        group = fields.setdefault("group", self.groups.get(client))
        if group is None:
            return replace(step, name="-")
        self.groups[client] = str(group)
        return replace(step, fields=fields)

    def note(self, line: LogLine) -> None:
        """Take in the time of a line."""
        if self.times and line.time != self.times[-1]:
            is_fall = line.time < self.times[-1]
            self.falls += is_fall
            self.rises += not is_fall
            if self.times[-1] - line.time > MAX_JITTER_MS and len(self.stretches) < MAX_STRETCHES:
                self.stretches.append(Stretch(len(self.times)))
        self.times.append(line.time)
        group, generation = line.step.fields.get("group"), line.step.fields.get("generation")
        if isinstance(group, str) and line.step.node and line.step.name:
            self.coordinated.add(group)
        if isinstance(group, str) and isinstance(generation, int):
            known = self.stretches[-1].generations
            known[group] = (known.get(group, (generation,))[0], generation)

    def arrange(self, imported: LogImportResult, path: Path) -> None:
        """Find out why times fall: parts in another order, or a clock that was set back."""
        shift = 0
        for one, other in pairwise(self.stretches):
            fall = self.times[other.start - 1] - self.times[other.start]
            if not self.has_date and fall > DAY_MS // 2:
                shift += DAY_MS
            elif not self.has_year and fall > 300 * DAY_MS:
                shift += 366 * DAY_MS
            elif goes_on(one, other):
                added = HOUR_MS if HOUR_MS // 4 <= fall <= HOUR_MS else fall
                shift += added
                why = "as at the end of summer time" if added == HOUR_MS else f"by {fall / 1_000:g} s"
                imported.notes.append(f"the clock of {path.name} was set back {why}, and later times were moved on")
            else:
                self.is_sorted = True
            other.shift = shift

    @property
    def first_time(self) -> int:
        """The earliest time, in milliseconds since 1970; without a year in the log that of its last change."""
        first = min(self.times)
        if self.has_year:
            return first
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=first)
        changed = datetime.fromtimestamp(self.path.stat().st_mtime, UTC).replace(tzinfo=None)
        year = changed.year - (moment.replace(year=2000) > changed.replace(year=2000))
        day = 28 if (moment.month, moment.day) == (2, 29) else moment.day
        return round((moment.replace(year=year, day=day) - datetime(1970, 1, 1)) / timedelta(milliseconds=1))

    def resolution_note(self) -> str:
        """What the times of the log cannot show; "" if they are in milliseconds."""
        if len(self.times) > 2 and not self.rises and not self.falls:
            return "all lines have the same time, so no durations are known"
        return "" if max(self.layout.digits, default=3) >= 3 else "times are in seconds, and so are all durations"

    def lines(self) -> Iterator[LogLine]:
        """Yield the steps in the order of time. Raises `TraceError`."""
        lines = self.shifted(self.read())
        if self.is_reversed:
            yield from reversed(list(lines))
        elif self.is_unordered:
            yield from sorted(lines, key=lambda each: (each.time, *place_at_once(each.step)))
        elif self.is_sorted:
            yield from sorted(lines, key=lambda each: each.time)
        else:
            yield from lines

    def shifted(self, lines: Iterable[LogLine]) -> Iterator[LogLine]:
        """The lines with what their stretch adds to their times."""
        following = [stretch for stretch in self.stretches if not self.is_reversed]
        shift, place = 0, 0
        for number, line in enumerate(lines):
            while place < len(following) and following[place].start <= number:
                shift, place = following[place].shift, place + 1
            yield replace(line, time=line.time + shift) if shift else line


ORDER_AT_ONCE = {"complete": 0, "empty": 0, "publish": 1, "prepare": 2}
"""In which order the steps of a generation come."""


def place_at_once(step: LogStep) -> tuple[int, int]:
    """The place of a step among those that were logged in one millisecond, where the order of lines is not known."""
    generation = step.fields.get("generation")
    return (generation, ORDER_AT_ONCE.get(step.name, 3)) if isinstance(generation, int) else (-1, 0)


def goes_on(one: Stretch, other: Stretch) -> bool:
    """Whether the second stretch was written after the first one, by the generations of the groups in both."""
    common = one.generations.keys() & other.generations.keys()
    return bool(common) and all(one.generations[group][1] <= other.generations[group][0] for group in common)


def drop_doubled(lines: Iterable[LogLine], imported: LogImportResult) -> Iterator[LogLine]:
    """The lines without those that say at one moment what another one has said."""
    now, said = -1, set[str]()
    for line in lines:
        if line.time != now:
            now, said = line.time, set()
        text = line.text if line.step.node or "client" in line.step.fields else f"{line.file} {line.text}"
        if text in said:
            imported.doubled += 1
            continue
        said.add(text)
        yield line


# --- Events.


def to_events(lines: Iterable[LogLine], coordinated: set[str]) -> Iterator[Event]:
    """The events of the steps, with a gap (`unknown`) where the log begins and where a coordinator loads its groups,
    and a lost group where a line about it is not understood or another broker coordinates it."""
    latest, first, doubted, sequence = 0, 0, True, 0
    nodes: dict[str, str] = {}

    def make(api: str, body: dict[str, object]) -> Event:
        nonlocal sequence
        sequence += 1
        return Event(sequence - 1, latest, 0, "", Kind.INTERNAL, api, 0, body)

    for number, line in enumerate(lines):
        # Lines are written by several threads, and may be a millisecond out of order.
        first = line.time if number == 0 else first
        latest = max(latest, line.time - first)
        if number == 0:
            yield make("unknown", {"reason": "the log begins"})
        place = {"file": line.file, "line": line.number}
        step, group = line.step, line.step.fields.get("group")
        if step.name == "load":
            if not doubted:
                yield make("unknown", {"reason": "a coordinator loads its groups", **place})
            doubted = True
            continue
        doubted = False
        if isinstance(group, str) and line.step.node:
            before = nodes.setdefault(group, step.node)
            nodes[group] = step.node
            if before != step.node:
                yield make("step", {"step": "lose", "group": group, "reason": "another broker coordinates it", **place})
        if step.name in ("", "lose"):
            reason = "a line about it is not understood" if step.name == "" else "its coordinator loads it anew"
            yield make("step", {"step": "lose", "group": group, "reason": reason, **place})
        else:
            beside = {"beside": True} if not step.node and group in coordinated else {}
            yield make("step", {"step": step.name, **step.fields, **beside, **place})
