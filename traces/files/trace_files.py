"""Trace files: JSON Lines, optionally gzip. `traces/FORMAT.md` describes the format.

Reading is strict. A line that does not fit the format raises `TraceError` with file, line and reason; nothing is
skipped or guessed. Memory holds one event at a time, and the requests without a response.
"""

import functools
import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, cast

from fencepost.model.errors import FencepostError
from fencepost.model.frozen import evolver
from fencepost.model.wire.codec import API_KEYS
from fencepost.model.wire.compiler import UNKNOWN_TAGS, schema_of
from fencepost.model.wire.schema import Field
from fencepost.traces.events import Event, Header
from fencepost.traces.files.jsonl import (
    EventOrder,
    MalformedLineError,
    decode_event,
    decode_header,
    encode_event,
    encode_header,
)

# --- Decoding of many lines of which most repeat an earlier one: heartbeats differ from the last ones in numbers
# alone.
#
# A line that the kit writes is `{"sequence":N,"time":N,` with the same words as before, and perhaps `,"of":N` at the
# end. Which words are well formed does not depend on the numbers, so those that were decoded strictly once are not
# decoded again. Any other line is decoded by itself.

MAX_REMEMBERED_EVENTS = 4_096
MAX_REMEMBERED_BYTES = 1_024
"""The longest line of which the words are remembered."""
_NUMBER = rb"(0|[1-9][0-9]{0,17})"
_split_line = re.compile(
    rb'\{"sequence":%b,"time":%b,(.*\})(?:,"of":%b)?\}\n' % (_NUMBER, _NUMBER, _NUMBER), re.DOTALL
).fullmatch
_replace_numbers: Callable[[Event, int, int, int | None], Event] = evolver(Event, "sequence", "time", "of")


class EventDecoder:
    """Decodes the events of a trace. Those in the same words share their body."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bool], Event] = {}
        """By their words, and by whether they have an `of`, events that were decoded strictly."""

    def decode(self, line: bytes) -> Event:
        """The event in `line`. Raises `MalformedLineError`."""
        found = _split_line(line)
        if found is None:
            return decode_event(line)
        sequence, time, words, of = found.groups()
        known = self._known.get((words, of is None))
        if known is not None:
            return _replace_numbers(known, int(sequence), int(time), None if of is None else int(of))
        event = decode_event(line)
        if len(line) <= MAX_REMEMBERED_BYTES:
            if len(self._known) >= MAX_REMEMBERED_EVENTS:
                self._known.clear()
            self._known[words, of is None] = event
        return event


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


# --- The form of requests in a trace: the fields of Kafka's message schemas, each with a value of its type.
#
# Without this check a mistake of whoever wrote the trace would be judged as one of the coordinator.

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_NAMES = {list: "an array", dict: "an object", bool: "a boolean", str: "a string"}


class RequestFormError(ValueError):
    """A body is not that of a request; the message is the reason."""


def check_request_form(api: str, version: int, body: Mapping[str, Any]) -> None:
    """Hold the top-level fields of a request against its schema. Raises `RequestFormError`.

    A request of an API that the kit does not know has no form, nor has one that says of itself by a key with an
    underscore that its bytes were odd. A field whose schema gives it a default may be missing.
    """
    if api not in API_KEYS:
        return
    try:
        fields = _fields_of(api, version)
    except ValueError:
        if _is_marked(body):
            return
        raise RequestFormError(f"{api} has no version {version} that Fencepost knows") from None
    for name, (field, is_required) in fields.items():
        if name not in body:
            if is_required and not _is_marked(body):
                raise RequestFormError(f"{api} v{version} without {name!r}")
        elif not _has_type(body[name], field, version) and not _is_marked(body):
            raise RequestFormError(f"{name!r} of {api} v{version} is not {_describe_type(field)}")
    if len(body) > len(fields) or not body.keys() <= fields.keys():
        for name in body:
            if name not in fields and name != UNKNOWN_TAGS and not name.startswith("_"):
                raise RequestFormError(f"{api} v{version} has no field {name!r}")


def _is_marked(body: Mapping[str, Any]) -> bool:
    return any(name.startswith("_") for name in body)


@functools.cache
def _fields_of(api: str, version: int) -> dict[str, tuple[Field, bool]]:
    """The fields of a request by name, and whether each of them has to be there."""
    fields = (field for field in schema_of(f"{api}Request", version).fields if version in field.versions)
    return {field.name: (field, _is_required(field, version)) for field in fields}


def _is_required(field: Field, version: int) -> bool:
    has_default = field.kind in _BITS and field.default != 0
    return field.tag is None and version not in field.nullable and not has_default


def _types_of(field: Field) -> tuple[type, ...]:
    """The types of a value; none if any will do."""
    if field.array:
        return (list,)
    return {"struct": (dict,), "bool": (bool,), "string": (str, bytes)}.get(field.kind, ())


def _has_type(value: object, field: Field, version: int) -> bool:
    bits = _BITS.get(field.kind) if not field.array else None
    if bits is not None:
        return type(value) is int and -1 << bits - 1 <= value < 1 << bits - 1
    if value is None:
        return version in field.nullable
    types = _types_of(field)
    return not types or isinstance(value, types)


def _describe_type(field: Field) -> str:
    if not field.array and field.kind in _BITS:
        return f"an integer of {_BITS[field.kind]} bits"
    return _NAMES[_types_of(field)[0]] if _types_of(field) else f"a value of type {field.kind}"
