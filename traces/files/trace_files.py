"""Trace files: JSON Lines, optionally gzip. `traces/FORMAT.md` describes the format.

Reading is strict. A line that does not fit the format raises `TraceError` with file, line and reason; nothing is
skipped or guessed. Memory holds one event at a time, and the requests without a response.
"""

import gzip
import io
import os
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple, cast

from fencepost.model.errors import FencepostError
from fencepost.traces.events import Event, Header
from fencepost.traces.files.event_decoder import EventDecoder
from fencepost.traces.files.jsonl import (
    EventOrder,
    MalformedLineError,
    decode_header,
    encode_event,
    encode_header,
)

MAX_LINE = 64 * 1024 * 1024
"""The longest line that is read, in bytes."""


class TraceError(FencepostError, ValueError):
    """A trace cannot be read; the message is one line: file, line number, reason."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}" if line else f"{path}: {reason}")
        self.path = path
        self.line = line
        self.reason = reason


# --- writing


def write_trace(path: str | os.PathLike[str], header: Header, events: Iterable[Event]) -> None:
    """Write a whole trace, compressed if the name ends with ".gz".

    Raises `TypeError` for a value of a type that the format does not have.
    """
    with trace_writer(path, header) as write:
        for event in events:
            write(event)


@contextmanager
def trace_writer(path: str | os.PathLike[str], header: Header) -> Iterator[Callable[[Event], None]]:
    """Open a trace for writing; the value of the context is a function that appends one event."""
    with open(path, "wb") as raw:
        if not os.fspath(path).endswith(".gz"):
            yield _make_appender(raw, header)
            return
        # No name and no time of writing in the gzip header: equal traces are equal files.
        file = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
        with io.BufferedWriter(cast(io.RawIOBase, file), 1 << 16) as out:
            yield _make_appender(cast(BinaryIO, out), header)


def _make_appender(out: BinaryIO, header: Header) -> Callable[[Event], None]:
    out.write(encode_header(header))

    def append(event: Event) -> None:
        out.write(encode_event(event))

    return append


# --- reading


def open_trace(path: str | os.PathLike[str]) -> tuple[Header, Iterator[Event]]:
    """The header of a trace, and a lazy iterator over its events.

    The file is closed after the last event, or when the iterator is dropped. Raises `TraceError`: for the header
    here, for an event during iteration.
    """
    stream = _read_strictly(os.fspath(path))
    # The generator is started here, so that dropping it closes the file.
    header = cast(Header, next(stream))
    return header, cast(Iterator[Event], stream)


def _read_strictly(path: str) -> Generator[Header | Event, None, None]:
    """Yield the header, then every event. Raises `TraceError`."""
    for line in read_lines(path):
        if isinstance(line.content, MalformedLine):
            raise TraceError(path, line.number, line.content.reason)
        yield line.content


@dataclass(frozen=True, slots=True)
class MalformedLine:
    """The reason why a line, or a missing line, does not fit the format."""

    reason: str


class TraceLine(NamedTuple):
    """A line of a trace: its number from 1, its bytes (cut off at `MAX_LINE`), and its content.

    The number is 0 if the file cannot be read; `text` is empty if the file ends before the line.
    """

    number: int
    text: bytes
    content: Header | Event | MalformedLine


def open_local(path: str) -> BinaryIO:
    """Open a file of this machine for reading; "-" is standard input. Raises `OSError`."""
    return open(path, "rb") if path != "-" else open(0, "rb", closefd=False)


def read_lines(path: str, open_file: Callable[[str], BinaryIO] = open_local) -> Generator[TraceLine, None, None]:
    """Yield every line of a trace, which `open_file` opens, also lines that do not fit the format; raises nothing.

    The order of events is checked against the well-formed lines before them. Without a header, all lines are malformed.
    """
    number = 1
    course: EventOrder | None = None
    decoder = EventDecoder()
    says: Header | Event | MalformedLine
    try:
        with open_file(path) as raw, _decompress(raw) as file:
            while text := file.readline(MAX_LINE):
                try:
                    if len(text) >= MAX_LINE and not text.endswith(b"\n"):
                        raise MalformedLineError(f"longer than {MAX_LINE} bytes")
                    if number == 1:
                        says = decode_header(text)
                        course = EventOrder(says.order)
                    elif course is None:
                        says = MalformedLine("the trace has no header")
                    else:
                        says = decoder.decode(text)
                        course.check(says)
                except MalformedLineError as flaw:
                    says = MalformedLine(str(flaw))
                yield TraceLine(number, text, says)
                while len(text) >= MAX_LINE and not text.endswith(b"\n"):
                    text = file.readline(MAX_LINE)
                number += 1
            if number == 1:
                yield TraceLine(1, b"", MalformedLine("the file is empty: a trace begins with a header line"))
    except (EOFError, zlib.error, gzip.BadGzipFile) as cause:
        yield TraceLine(number, b"", MalformedLine(f"damaged or truncated gzip: {cause}"))
    except OSError as cause:
        yield TraceLine(0, b"", MalformedLine(f"cannot be read: {cause.strerror or cause}"))


@contextmanager
def _decompress(raw: BinaryIO) -> Iterator[BinaryIO]:
    """The bytes of a file, decompressed if the first two are those of gzip."""
    if cast(io.BufferedReader, raw).peek(2)[:2] != b"\x1f\x8b":
        yield raw
        return
    with io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=raw)), 1 << 16) as file:
        yield cast(BinaryIO, file)
