"""Trace files of a corpus put together: the parts of one recording that follow each other are one trace.

A part repeats the requests that were in flight when it began; whoever has the part before leaves them out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from fencepost.traces.files.rotating_writer import is_next_part


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace file: how many events and lines it has, the first line from which on something is missing, whether it is
    judged as a whole, events by bucket, of which recording it is which part, and up to which line it repeats."""

    trace: str
    events: int
    lines: int
    flawed: int | None
    marked: bool
    sizes: Mapping[int, int]
    recording: str = ""
    part: int = 0
    continued: int | None = None


RecordingFiles: TypeAlias = Sequence[TraceFile]
"""The files of one trace, in order."""


def group_recordings(files: Iterable[TraceFile]) -> list[RecordingFiles]:
    """Every trace. A part after which something is missing is the last of its trace."""
    found: list[list[TraceFile]] = []
    for file in sorted(files, key=lambda each: (each.recording, each.part, each.trace)):
        if not found or not continues_recording(found[-1][-1], file):
            found.append([])
        found[-1].append(file)
    return list(found)


def continues_recording(before: TraceFile, file: TraceFile) -> bool:
    """The file goes on where the one before it ended."""
    is_next = is_next_part((before.recording, before.part), (file.recording, file.part))
    return is_next and before.flawed is None and file.continued is not None


def line_offsets(whole: RecordingFiles) -> list[tuple[TraceFile, int, int]]:
    """Of each file the line up to which it says nothing new, and how many new lines come before it."""
    found: list[tuple[TraceFile, int, int]] = []
    before = 0
    for number, file in enumerate(whole):
        begins = (file.continued or 0) if number else 0
        found.append((file, begins, before))
        before += file.lines - begins
    return found


def describe_flaw(whole: RecordingFiles) -> str | None:
    """From where on something is missing, as a person is told."""
    last = whole[-1]
    if last.flawed is None:
        return None
    return f"line {last.flawed}" if len(whole) == 1 else f"line {last.flawed} of {Path(last.trace).name}"
