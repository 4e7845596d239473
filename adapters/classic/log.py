"""The coordinator's log: batches of records, appended and read back in order.

On disk a batch is one frame: payload length, CRC-32 of the payload, CRC-32 of those eight bytes (three big-endian
32-bit numbers), then the payload. A batch is stored as a whole or not at all.
"""

import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from fencepost.adapters.classic import records
from fencepost.adapters.classic.records import Record
from fencepost.adapters.serve.coordination import CorruptLogError

_LENGTHS = struct.Struct(">II")
_CHECK = struct.Struct(">I")
_HEADER_SIZE = _LENGTHS.size + _CHECK.size


class LogWriteError(Exception):
    """The batch is not on the log."""


class Log(Protocol):
    """The durable storage of a coordinator's records."""

    def append(self, batch: Sequence[Record]) -> None:
        """Store the batch; it survives a crash once this returns. Raises `LogWriteError`, and then stores nothing."""
        ...

    def read(self) -> Iterator[Record]:
        """All records from the beginning. Raises `CorruptLogError`."""
        ...


class MemoryLog:
    """A log that lives as long as the process: it survives the coordinator, not a crash of the machine."""

    def __init__(self) -> None:
        self._batches: list[tuple[Record, ...]] = []

    def append(self, batch: Sequence[Record]) -> None:
        """Store the batch."""
        self._batches.append(tuple(batch))

    def read(self) -> Iterator[Record]:
        """All records from the beginning."""
        return iter([record for batch in self._batches for record in batch])


class SlowLog:
    """A log with slow storage: `append` calls `wait` before it stores each batch."""

    def __init__(self, log: Log, wait: Callable[[], None]) -> None:
        self._log = log
        self._wait = wait

    def append(self, batch: Sequence[Record]) -> None:
        """As `Log.append`."""
        self._wait()
        self._log.append(batch)

    def read(self) -> Iterator[Record]:
        """As `Log.read`."""
        return self._log.read()


class FileLog:
    """A log in one file. Every append is followed by fsync before it returns: no answer runs ahead of the disk.

    Opening it checks the whole file. A torn last frame (the crash came in mid-write) is cut off; any other damage
    raises `CorruptLogError`, for what follows cannot be trusted and what is missing cannot be known.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        created = not path.exists()
        self._file = open(path, "a+b", buffering=0)  # noqa: SIM115 - closed by close()
        try:
            self._end = self._check()
            self._file.truncate(self._end)
        except BaseException:
            self._file.close()
            raise
        if created:
            _sync_folder(path.parent)

    def append(self, batch: Sequence[Record]) -> None:
        """Write and sync one frame; after a failure the file is cut back to where it was."""
        payload = records.encode(batch)
        lengths = _LENGTHS.pack(len(payload), zlib.crc32(payload))
        frame = lengths + _CHECK.pack(zlib.crc32(lengths)) + payload
        try:
            self._write(frame)
        except (OSError, ValueError) as error:
            self._cut_back()
            raise LogWriteError(f"{self._path}: {error}") from error
        self._end += len(frame)

    def read(self) -> Iterator[Record]:
        """All records from the beginning. Raises `CorruptLogError`."""
        for position, payload in self._frames():
            try:
                batch = records.decode(payload)
            except (ValueError, KeyError, TypeError) as error:
                raise self._corrupt(position, f"not a batch of records: {error}") from error
            yield from batch

    def close(self) -> None:
        """Close the file; further appends fail."""
        self._file.close()

    def _write(self, frame: bytes) -> None:
        written = self._file.write(frame)
        if written != len(frame):
            raise OSError(f"only {written} of {len(frame)} bytes were written")
        os.fsync(self._file.fileno())

    def _cut_back(self) -> None:
        """Truncate the file to its last whole frame: none may follow a torn one."""
        try:
            self._file.truncate(self._end)
        except (OSError, ValueError):
            self._file.close()

    def _check(self) -> int:
        """Return the end of the last whole frame."""
        end = 0
        for position, payload in self._frames():
            end = position + _HEADER_SIZE + len(payload)
        return end

    def _frames(self) -> Iterator[tuple[int, bytes]]:
        """Position and payload of every whole frame. Stops at a torn last one."""
        data = self._path.read_bytes()
        position = 0
        while len(data) - position >= _HEADER_SIZE:
            lengths = data[position : position + _LENGTHS.size]
            (check,) = _CHECK.unpack_from(data, position + _LENGTHS.size)
            if zlib.crc32(lengths) != check:
                if not any(data[position:]):
                    return  # some file systems leave zeros where a crash cut the write off
                raise self._corrupt(position, "the frame header is damaged")
            size, payload_check = _LENGTHS.unpack(lengths)
            start = position + _HEADER_SIZE
            payload = data[start : start + size]
            if zlib.crc32(payload) != payload_check or len(payload) < size:
                if start + size >= len(data):
                    return
                raise self._corrupt(position, "the frame's payload is damaged and further frames follow")
            yield position, payload
            position = start + size

    def _corrupt(self, position: int, what: str) -> CorruptLogError:
        return CorruptLogError(
            f"{self._path}: {what} (byte {position}); restore the file from a copy, or move it away to start empty"
        )


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the file's name survives a crash too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_log(file: Path | None, delay_ms: int) -> tuple[Log, Callable[[], None]]:
    """A log in a file, or in memory, every write to which takes `delay_ms`; and what closes it. Raises
    `CorruptLogError`."""
    stored = FileLog(file) if file is not None else None
    log: Log = stored if stored is not None else MemoryLog()
    slow = SlowLog(log, lambda: time.sleep(delay_ms / 1000)) if delay_ms else log
    return slow, stored.close if stored is not None else lambda: None
