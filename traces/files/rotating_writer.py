"""Writing of a trace while it is recorded: whole lines, in numbered parts if it gets long.

Lines are collected and written together by `flush`, which the recorder calls regularly; `sync` forces the written
bytes to the disk. A recorder that is killed loses the events since its last flush, and never leaves half a line
(in a compressed file it may leave half a block, which a reader refuses: keep long recordings uncompressed).

Each part is a trace of its own. It begins by repeating the requests in flight, followed by an event `continued`;
a reader that has the part before skips them.
"""

import gzip
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias, cast

from fencepost.traces.events import Event, Header
from fencepost.traces.files.jsonl import encode_event, encode_header
from fencepost.traces.files.trace_files import TraceError, open_trace

MAX_PART_DIGITS = 9
"""The number of a part has at most so many digits; a longer one is no number."""


class RotatingTraceWriter:
    """An open recording. A part is full at `max_part_bytes` bytes of lines; None means one part without a limit.
    With a limit, parts are numbered: NAME.0001.jsonl, NAME.0002.jsonl, ...

    All methods raise `OSError`; an existing file raises `FileExistsError`, unless it `may_overwrite`.
    """

    def __init__(
        self, path: Path, header: Header, max_part_bytes: int | None = None, *, may_overwrite: bool = False
    ) -> None:
        self.part = 1
        self.files: list[Path] = []
        self._path = path
        self._header = header
        self._max_part_bytes = max_part_bytes
        self._mode: Literal["wb", "xb"] = "wb" if may_overwrite else "xb"
        self._lines: list[bytes] = []
        self._size = 0
        self._begin_part()

    @property
    def is_part_full(self) -> bool:
        """Whether the part has reached `max_part_bytes`."""
        return self._max_part_bytes is not None and self._size >= self._max_part_bytes

    def append(self, event: Event) -> None:
        """Buffer an event until the next flush."""
        line = encode_event(event)
        self._lines.append(line)
        self._size += len(line)

    def rotate(self, in_flight: Iterable[Event]) -> None:
        """End this part and begin the next with the requests `in_flight`. The caller then appends `continued`."""
        self.close()
        self.part += 1
        self._begin_part()
        self._lines += map(encode_event, in_flight)

    def flush(self) -> None:
        """Write the buffered events to the file."""
        if self._lines:
            lines, self._lines = self._lines, []
            self._out.write(b"".join(lines))
        self._out.flush()
        self._raw.flush()

    def sync(self) -> None:
        """Force the written bytes to the disk (fsync). May take a while, and may be called in another thread."""
        with suppress(ValueError):  # closed meanwhile, and so on the disk
            os.fsync(self._raw.fileno())

    def close(self) -> None:
        """Flush, sync and close the file."""
        self.flush()
        if self._out is not self._raw:
            self._out.close()
            self._raw.flush()
        os.fsync(self._raw.fileno())
        self._raw.close()

    def _begin_part(self) -> None:
        path = self._path if self._max_part_bytes is None else part_path(self._path, self.part)
        self._raw: BinaryIO = path.open(self._mode)
        self._out: BinaryIO = self._raw
        if path.name.endswith(".gz"):
            self._out = cast(BinaryIO, gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, mtime=0))
        self.files.append(path)
        told = {**self._header.implementation, "part": str(self.part)}
        self._lines.append(encode_header(replace(self._header, implementation=told)))
        self._size = 0


class RecordingReader:
    """Reads trace files in the given order; consecutive parts of one recording are one trace.

    `files` are the files of the current trace. Files are opened when they are reached. Raises `TraceError`, unless
    there is a function `on_error`: it gets the error, the trace ends there, and reading goes on with the next file.
    """

    def __init__(self, paths: Iterable[Path], on_error: Callable[[TraceError], None] | None = None) -> None:
        self.files: list[Path] = []
        self._on_error = on_error
        self._paths = iter(paths)
        self._next: tuple[Path, Header, Iterator[Event]] | None = None
        self._reading: tuple[Path, Header, Iterator[Event]] | None = None

    def traces(self) -> Iterator[tuple[Path, Header, Iterator[Event]]]:
        """Yield each trace: its first file, the header, and the events. Those left when the next trace is asked for are
        skipped."""
        self._open_next()
        while self._next is not None:
            path, header, _ = self._next
            self.files = []
            self._reading = self._next
            yield path, header, self._events(header)
            if self._next is self._reading:
                self._open_next()

    def _events(self, header: Header) -> Iterator[Event]:
        last, part, is_whole = -1, recording_part_of(header), True
        while self._next is not None and (not self.files or is_next_part(part, recording_part_of(self._next[1]))):
            path, found, events = self._reading = self._next
            part = recording_part_of(found)
            self.files.append(path)
            try:
                for event in events:
                    # A part repeats the requests in flight and marks them by `continued`.
                    if event.sequence > last and not (len(self.files) > 1 and event.api == "continued"):
                        yield event
                        last = event.sequence
            except TraceError as error:
                self._report(error)
                is_whole = False
            self._open_next()
            if not is_whole:
                return  # after a gap the next part is a trace of its own

    def _report(self, error: TraceError) -> None:
        if self._on_error is None:
            raise error
        self._on_error(error)

    def _open_next(self) -> None:
        self._next = None
        for path in self._paths:
            try:
                self._next = (path, *open_trace(path))
                return
            except TraceError as error:
                self._report(error)


RecordingPart: TypeAlias = tuple[str, int]


def recording_part_of(header: Header) -> RecordingPart:
    """The recording that a trace belongs to, and the number of its part; ("", 0) for a trace of its own."""
    told = header.implementation
    number = told.get("part", "")
    return told.get("recording", ""), int(number) if number.isdecimal() and len(number) <= MAX_PART_DIGITS else 0


def is_next_part(part: RecordingPart, candidate: RecordingPart) -> bool:
    """Whether `candidate` is the part after `part` in the same recording."""
    return bool(part[0]) and candidate == (part[0], part[1] + 1)


def part_path(path: Path, part: int) -> Path:
    """The path of one part: `path` with the number before its endings."""
    stem, dot, endings = path.name.partition(".jsonl")
    return path.with_name(f"{stem}.{part:04}{dot}{endings}")
