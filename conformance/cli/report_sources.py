"""The sources of `fencepost report`: reports, pages and traces, recognized by their content."""

import gzip
import json
import zlib
from enum import Enum, auto
from pathlib import Path

from fencepost.conformance.cli.outputs import STDOUT
from fencepost.model.errors import FencepostError

HEAD_BYTES = 64 * 1024
"""How much of a file is looked at."""
GZIP, PCAP = b"\x1f\x8b", (b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"M<\xb2\xa1", b"\xa1\xb2<M", b"\n\r\r\n")
LOG_MARKS = (b"GroupCoordinator", b"GroupMetadataManager")


class SourceError(FencepostError, ValueError):
    """A file is neither a report nor a trace; the message is one line: file, problem, remedy."""


class SourceKind(Enum):
    """What a file holds."""

    REPORT = auto()
    PAGE = auto()
    TRACE = auto()


DAMAGED = {
    ".json": SourceKind.REPORT,
    ".html": SourceKind.PAGE,
    ".jsonl": SourceKind.TRACE,
    ".gz": SourceKind.TRACE,
}
"""What a file is meant to be whose content does not say it, by the end of its name."""


def kind_of(path: Path) -> SourceKind:
    """What a file holds, by its content; a folder and standard input (`-`) hold traces.

    Raises `SourceError` for a file that holds neither a report nor a trace, and `OSError` if it cannot be read.
    """
    if path == STDOUT or path.is_dir():
        return SourceKind.TRACE
    head = read_head(path)
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] == b"<":
        return SourceKind.PAGE
    if has_trace_header(text):
        return SourceKind.TRACE
    damaged = DAMAGED.get(path.suffix)  # reading it says what is wrong with it
    if damaged is not None:
        return damaged
    if text[:1] == b"{":
        return SourceKind.REPORT
    raise SourceError(f"{path}: {describe_other(head)}")


def read_head(path: Path) -> bytes:
    """The beginning of a file, decompressed."""
    with path.open("rb") as file:
        if file.peek(2)[:2] != GZIP:
            return file.read(HEAD_BYTES)
        try:
            return gzip.GzipFile(fileobj=file).read(HEAD_BYTES)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return b""


def has_trace_header(text: bytes) -> bool:
    """Whether the first line is the header of a trace, in whatever order its keys are."""
    first, _, _ = text.partition(b"\n")
    try:
        value = json.loads(first)
    except ValueError:
        return False
    return isinstance(value, dict) and "fencepost_trace" in value


def describe_other(head: bytes) -> str:
    """The kind of a file that is none of them, and the command for it."""
    if not head:
        return "empty or not readable; name a report (JSON or HTML) or a trace"
    if head.startswith(PCAP):
        return "a packet capture; make a trace of it first: fencepost import capture FILE -o TRACE"
    if any(mark in head for mark in LOG_MARKS):
        return "a broker's log; make a trace of it first: fencepost import log FILE -o TRACE"
    return "neither a report (JSON or HTML) nor a trace; `fencepost import` makes traces of logs and captures"
