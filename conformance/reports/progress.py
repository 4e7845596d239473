"""Telling a person how far a run has come."""

from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from fencepost.conformance.events import (
    Progress,
    RunEvent,
    ScenarioFinished,
    ScheduleFinished,
    ScheduleShrunk,
    ViolationConfirmed,
)
from fencepost.conformance.reports.words import format_duration

_CLEAR = "\r\x1b[K"
DEFAULT_COLUMNS = 80


class StatusLine:
    """One line that is rewritten in place on a terminal (`live`); elsewhere each text is a line of its own."""

    def __init__(self, stream: TextIO, *, live: bool) -> None:
        self._stream = stream
        self._live = live

    def show(self, text: str) -> None:
        """Replace the line by `text`."""
        self._write(f"{_CLEAR}{text}" if self._live else f"{text}\n")

    def clear(self) -> None:
        """Leave a terminal's cursor at the beginning of an empty line."""
        if self._live:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        with suppress(OSError):  # a terminal that has gone, a full disk: no reason to end a run
            self._stream.write(text)
            self._stream.flush()


class ProgressDisplay:
    """Shows progress on a stream: one line that is rewritten on a terminal (`live`) with so many `columns`, else a line
    for every tenth of the run and for every new failure, or for each step if it `tells_all`."""

    def __init__(
        self,
        stream: TextIO,
        *,
        live: bool,
        columns: Callable[[], int | None] = lambda: None,
        tells_all: bool = False,
    ) -> None:
        self._status = StatusLine(stream, live=live)
        self._live = live
        self._columns = columns
        self._tells_all = tells_all
        self._shown = Progress(0, 0, 0.0)

    def __call__(self, progress: Progress) -> None:
        """Show `progress`, if it is news."""
        line = progress_line(progress)
        if self._live:
            self._status.show(line[: (self._columns() or DEFAULT_COLUMNS) - 1])  # the last column may break the line
        elif self._tells_all or self._is_news(progress):
            self._status.show(line)
        else:
            return
        self._shown = progress

    def close(self) -> None:
        """Leave the stream at the beginning of an empty line."""
        self._status.clear()

    def _is_news(self, progress: Progress) -> bool:
        if progress.unit != self._shown.unit and self._shown.total:
            return True
        return progress.failures > self._shown.failures or _tenth(progress) > _tenth(self._shown)


class VerboseDisplay:
    """Consumes the events of a run: writes a line for each of its steps to a stream."""

    def __init__(self, stream: TextIO) -> None:
        self._status = StatusLine(stream, live=False)
        self._progress = Progress(0, 0, 0.0)
        self._line = ""

    def __call__(self, event: RunEvent) -> None:
        """Write what came of a scenario, schedule or replay, with how far the run has come."""
        line = step_line(event)
        if isinstance(event, Progress):
            line, self._line = self._line or event.current, ""
            self._status.show(f"{event.done}/{event.total} {event.unit}, {format_duration(event.seconds)}: {line}")
        elif isinstance(event, ScenarioFinished | ScheduleFinished):
            self._line = line  # its progress follows
        elif line:
            self._status.show(line)


def step_line(event: RunEvent) -> str:
    """What an event says in one line, "" for one that says nothing by itself."""
    match event:
        case ScenarioFinished(name=name, violated=violated, unsupported=unsupported, blocked=blocked):
            found = f"violates {', '.join(sorted(violated))}" if violated else ""
            return f"{name}: {found or unsupported or blocked or 'as the model allows'}"
        case ScheduleFinished(name=name, violated=violated, undecided=undecided):
            found = f"violates {', '.join(sorted(violated))}" if violated else ""
            return f"{name}: {found or undecided or 'as the model allows'}"
        case ScheduleShrunk(name=name, events=events, confirmed=confirmed):
            again = "confirmed by replays" if confirmed else "not confirmed by a replay"
            return f"{name}: {len(events)} events, {again}"
        case ViolationConfirmed(requirement=requirement, name=name):
            return f"{name}: violates {requirement} again"
    return ""


def progress_line(progress: Progress) -> str:
    """One line: how much is done, how much is left, what has failed."""
    parts = [f"{progress.done}/{progress.total} {progress.unit}"]
    if progress.failures:
        parts.append(f"{progress.failures} violated")
    parts.append(format_duration(progress.seconds))
    remaining = progress.seconds_left()
    if remaining is not None and progress.done < progress.total:
        parts.append(f"about {format_duration(remaining)} left")
    line = ", ".join(parts)
    return f"{line}: {progress.current}" if progress.current else line


def _tenth(progress: Progress) -> int:
    return 10 * progress.done // progress.total if progress.total else 0
