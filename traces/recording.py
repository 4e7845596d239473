"""A trace that is written while it happens: whole lines, in parts if it gets long.

Lines are collected and written together by `flush`, which whoever records calls again and again; `sync` brings what was
written to the disk. A recorder that is killed loses what it saw since its last flush, and never leaves half a line
(in a compressed file, half a block, which a reader refuses: leave long recordings uncompressed).

Each part is a trace of its own. It begins with the requests that were in flight, again, and an event `continued`;
whoever has the part before it leaves these out and goes on.
"""

import gzip
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

from fencepost.traces.events import Event, Header
from fencepost.traces.format import event_line, header_line


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


def numbered(path: Path, part: int) -> Path:
    """The path of one part: the number comes before the endings."""
    stem, dot, endings = path.name.partition(".jsonl")
    return path.with_name(f"{stem}.{part:04}{dot}{endings}")
