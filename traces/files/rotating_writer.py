"""A trace that is written while it happens: whole lines, in parts if it gets long.

Lines are collected and written together by `flush`, which whoever records calls again and again; `sync` brings what was
written to the disk. A recorder that is killed loses what it saw since its last flush, and never leaves half a line
(in a compressed file, half a block, which a reader refuses: leave long recordings uncompressed).

Each part is a trace of its own. It begins with the requests that were in flight, again, and an event `continued`;
whoever has the part before it leaves these out and goes on.
"""

import gzip
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from fencepost.traces.events import Event, Header
from fencepost.traces.files.jsonl import event_line, header_line
from fencepost.traces.files.trace_files import open_trace


class Recording:
    """An open recording. `rotate` is how many bytes of lines make a part full, None for any number. With it, parts are
    numbered: NAME.0001.jsonl, NAME.0002.jsonl, ...

    Raises OSError, here and in all methods; FileExistsError rather than to write over a file.
    """

    def __init__(self, path: Path, header: Header, rotate: int | None = None) -> None:
        self.part = 1
        self.files: list[Path] = []
        self._path = path
        self._header = header
        self._rotate = rotate
        self._lines: list[bytes] = []
        self._size = 0
        self._begin()

    @property
    def is_full(self) -> bool:
        """The part has the size that it may have."""
        return self._rotate is not None and self._size >= self._rotate

    def append(self, event: Event) -> None:
        """Take an event in; it is on file after the next flush."""
        line = event_line(event)
        self._lines.append(line)
        self._size += len(line)

    def turn_over(self, in_flight: Iterable[Event]) -> None:
        """End this part and begin the next, with the requests in flight. The caller goes on with `continued`."""
        self.close()
        self.part += 1
        self._begin()
        self._lines += map(event_line, in_flight)

    def flush(self) -> None:
        """Write what was taken in."""
        if self._lines:
            lines, self._lines = self._lines, []
            self._out.write(b"".join(lines))
        self._out.flush()
        self._raw.flush()

    def sync(self) -> None:
        """Bring what was written to the disk; this may take a while, and may be done in another thread."""
        with suppress(ValueError):  # closed meanwhile, and so on the disk
            os.fsync(self._raw.fileno())

    def close(self) -> None:
        """Write what is left and close the file."""
        self.flush()
        if self._out is not self._raw:
            self._out.close()
            self._raw.flush()
        os.fsync(self._raw.fileno())
        self._raw.close()

    def _begin(self) -> None:
        path = self._path if self._rotate is None else numbered(self._path, self.part)
        self._raw: BinaryIO = path.open("xb")
        self._out: BinaryIO = self._raw
        if path.name.endswith(".gz"):
            self._out = cast(BinaryIO, gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, mtime=0))
        self.files.append(path)
        told = {**self._header.implementation, "part": str(self.part)}
        self._lines.append(header_line(replace(self._header, implementation=told)))
        self._size = 0


class Shelf:
    """Trace files in the order given; the parts of one recording, one after the other, are one trace.

    `read` are the files of the trace that is being read. Files are opened when they are reached. Raises `TraceError`.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self.read: list[Path] = []
        self._paths = iter(paths)
        self._next: tuple[Path, Header, Iterator[Event]] | None = None

    def traces(self) -> Iterator[tuple[Path, Header, Iterator[Event]]]:
        """Every trace: its first file, the header, and the events, to be read before the next trace is asked for."""
        self._look()
        while self._next is not None:
            path, header, _ = self._next
            self.read = []
            yield path, header, self._events(header)

    def _events(self, header: Header) -> Iterator[Event]:
        last, part = -1, part_of(header)
        while self._next is not None and (not self.read or follows(part, part_of(self._next[1]))):
            path, found, events = self._next
            part = part_of(found)
            self.read.append(path)
            for event in events:
                # A part repeats the requests in flight, and says so.
                if event.sequence > last and not (len(self.read) > 1 and event.api == "continued"):
                    yield event
                    last = event.sequence
            self._look()

    def _look(self) -> None:
        path = next(self._paths, None)
        self._next = None if path is None else (path, *open_trace(path))


Part: TypeAlias = tuple[str, int]


def part_of(header: Header) -> Part:
    """Which recording a trace is part of, and which part."""
    told = header.implementation
    number = told.get("part", "")
    return told.get("recording", ""), int(number) if number.isdecimal() else 0


def follows(one: Part, other: Part) -> bool:
    """The other part is the next of the same recording."""
    return bool(one[0]) and other == (one[0], one[1] + 1)


def numbered(path: Path, part: int) -> Path:
    """The path of one part: the number comes before the endings."""
    stem, dot, endings = path.name.partition(".jsonl")
    return path.with_name(f"{stem}.{part:04}{dot}{endings}")
