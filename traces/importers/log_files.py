"""Lines of logs, and the time at the beginning of a line."""

import gzip
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from fencepost.traces.files.trace_files import TraceError

TIMESTAMP = re.compile(r"\[?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[,.](\d{1,6}))?")


def read_log_lines(path: Path, max_characters: int) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line of a log, which may be compressed with gzip; longer lines are cut.

    Raises `TraceError` if the file cannot be read.
    """
    number = 0
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", errors="replace") as text:
            while row := text.readline(max_characters):
                number += 1
                yield number, row
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(str(path), number, f"cannot be read: {reason}") from None


def parse_time(row: str) -> datetime | None:
    """The time at the beginning of a line; None if there is none."""
    stamp = TIMESTAMP.match(row)
    if stamp is None:
        return None
    day, clock, fraction = stamp.groups()
    try:
        return datetime.fromisoformat(f"{day}T{clock}.{(fraction or '0').ljust(6, '0')}")
    except ValueError:
        return None
