"""Traces as files: JSON Lines, optionally gzip. FORMAT.md in this folder is the description for people.

Reading is strict. Whatever does not fit the format is a `TraceError` that names file, line and flaw; nothing
is skipped or guessed. Reading and writing hold one event at a time, and of the past only the requests that
have no answer yet.
"""

import gzip
import io
import os
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple, cast

from fencepost.traces.events import Event, Header
from fencepost.traces.files.jsonl import Course, FlawError, event_line, header_line, read_event, read_header

MAX_LINE = 64 * 1024 * 1024
"""The longest line that is read, in bytes."""


class TraceError(ValueError):
    """A trace cannot be read; the message is one line: file, line number, what is wrong."""

    def __init__(self, path: str, line: int, flaw: str) -> None:
        super().__init__(f"{path}:{line}: {flaw}" if line else f"{path}: {flaw}")
        self.path = path
        self.line = line
        self.flaw = flaw


# --- writing


def write_trace(path: str | os.PathLike[str], header: Header, events: Iterable[Event]) -> None:
    """Write a whole trace; gzip if the name ends with ".gz". `TypeError` for a value the format does not have."""
    with trace_writer(path, header) as write:
        for event in events:
            write(event)


@contextmanager
def trace_writer(path: str | os.PathLike[str], header: Header) -> Iterator[Callable[[Event], None]]:
    """Open a trace for writing and hand out the function that appends one event."""
    with open(path, "wb") as raw:
        if not os.fspath(path).endswith(".gz"):
            yield _appender(raw, header)
            return
        # No name and no time of writing in the gzip header: equal traces are equal files.
        file = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
        with io.BufferedWriter(cast(io.RawIOBase, file), 1 << 16) as out:
            yield _appender(cast(BinaryIO, out), header)


def _appender(out: BinaryIO, header: Header) -> Callable[[Event], None]:
    out.write(header_line(header))

    def append(event: Event) -> None:
        out.write(event_line(event))

    return append


# --- reading


def open_trace(path: str | os.PathLike[str]) -> tuple[Header, Iterator[Event]]:
    """The header of a trace and its events, read as they are asked for.

    The file is closed after the last event, or when the iterator is let go. Raises `TraceError`, here for
    the header and while iterating for the events.
    """
    stream = _read(os.fspath(path))
    # The generator is started here, so that dropping it closes the file.
    header = cast(Header, next(stream))
    return header, cast(Iterator[Event], stream)


def _read(path: str) -> Generator[Header | Event, None, None]:
    """First the header, then every event."""
    for line in survey(path):
        if isinstance(line.says, Flaw):
            raise TraceError(path, line.number, line.says.reason)
        yield line.says


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong with a line, or with what should have come there."""

    reason: str


class Line(NamedTuple):
    """A line of a trace: its number from 1, its bytes (cut off at `MAX_LINE`), and what it says.

    It is numbered 0 if the file cannot be read, and has no bytes if there is no such line.
    """

    number: int
    text: bytes
    says: Header | Event | Flaw


def survey(path: str) -> Generator[Line, None, None]:
    """Every line of a trace, also those that do not fit the format; nothing is raised.

    An event is held against the lines before it that do fit. Without a header nothing can be.
    """
    number = 1
    course: Course | None = None
    says: Header | Event | Flaw
    try:
        with _open(path) as file:
            while text := file.readline(MAX_LINE):
                try:
                    if len(text) >= MAX_LINE and not text.endswith(b"\n"):
                        raise FlawError(f"longer than {MAX_LINE} bytes")
                    if number == 1:
                        says = read_header(text)
                        course = Course(says.order)
                    elif course is None:
                        says = Flaw("there is no header to read it by")
                    else:
                        says = read_event(text)
                        course.follow(says)
                except FlawError as flaw:
                    says = Flaw(str(flaw))
                yield Line(number, text, says)
                while not text.endswith(b"\n") and len(text) >= MAX_LINE:
                    text = file.readline(MAX_LINE)
                number += 1
            if number == 1:
                yield Line(1, b"", Flaw("the file is empty: a trace begins with a header line"))
    except (EOFError, zlib.error, gzip.BadGzipFile) as cause:
        yield Line(number, b"", Flaw(f"damaged or truncated gzip: {cause}"))
    except OSError as cause:
        yield Line(0, b"", Flaw(f"cannot be read: {cause.strerror or cause}"))


@contextmanager
def _open(path: str) -> Iterator[BinaryIO]:
    """The text of the file; gzip is told by its first two bytes, whatever the name."""
    with open(path, "rb") as raw:
        if raw.peek(2)[:2] != b"\x1f\x8b":
            yield raw
            return
        with io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=raw)), 1 << 16) as file:
            yield cast(BinaryIO, file)
