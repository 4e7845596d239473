"""Joining of trace files of a corpus: consecutive parts of one recording are one trace.

A part begins by repeating the requests in flight; they are skipped after the part before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fencepost.traces.files.rotating_writer import is_next_part


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace file: numbers of events and lines, the first line after which events are missing, whether it is judged as
    a whole, events by bucket, its recording and part, and the last line that repeats the part before."""

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
    """The files of each trace. A part after which events are missing is the last of its trace."""
    found: list[list[TraceFile]] = []
    for file in sorted(files, key=lambda each: (each.recording, each.part, each.trace)):
        if not found or not continues_recording(found[-1][-1], file):
            found.append([])
        found[-1].append(file)
    return list(found)


def continues_recording(before: TraceFile, file: TraceFile) -> bool:
    """Whether `file` continues where `before` ended."""
    is_next = is_next_part((before.recording, before.part), (file.recording, file.part))
    return is_next and before.flawed is None and file.continued is not None


def line_offsets(whole: RecordingFiles) -> list[tuple[TraceFile, int, int]]:
    """Each file with the number of its last repeated line, and the number of new lines in the files before it."""
    found: list[tuple[TraceFile, int, int]] = []
    before = 0
    for number, file in enumerate(whole):
        begins = (file.continued or 0) if number else 0
        found.append((file, begins, before))
        before += file.lines - begins
    return found
