"""The console of a command: standard output, error lines, progress, and the files that a report is written to."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from fencepost.conformance.reports.progress import ProgressDisplay, StatusLine


MAX_LINE = 500
"""The longest line about an error, in characters: ids and keys in a file may have any length."""
INTERRUPTED_EARLY = "interrupted before anything was judged"
_KEPT = MAX_LINE // 2 - 3


class Console:
    """Standard output and standard error, as they are at the time of each call."""

    def print(self, text: str) -> None:
        """Write `text` to standard output at once, and drop it if the reader has closed the pipe (`| head`)."""
        if sys.stdout is None:  # closed before the start (`>&-`)
            return
        encoding = sys.stdout.encoding or "utf-8"
        try:
            sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
            sys.stdout.flush()
        except BrokenPipeError:
            sys.stdout = io.StringIO()

    def print_line(self, line: str) -> None:
        """Write `line` and a line break to standard output."""
        self.print(f"{line}\n")

    def print_error(self, text: str) -> None:
        """Write `text` to standard error."""
        with suppress(OSError, ValueError):
            print(text, end="", file=self.stderr())

    def stderr(self) -> TextIO:
        """Standard error, or nowhere if it was closed before the start."""
        return sys.stderr if sys.stderr is not None else io.StringIO()

    def log(self, line: str) -> None:
        """Write `line` to standard error, after the name of the program."""
        self.complain(f"fencepost: {line}")

    def complain(self, line: str) -> None:
        """Write `line` to standard error, whatever is in it, as one line."""
        self.print_error(f"{printable_line(line)}\n")

    def fail(self, reason: str | BaseException) -> int:
        """Complain of `reason` in one line; returns the exit code of a command that could not run."""
        from fencepost.conformance.results import ExitCode

        self.log(reason if isinstance(reason, str) else error_line(reason))
        return ExitCode.COULD_NOT_RUN

    def interrupt(self, reason: str = "") -> int:
        """Say why a command was cut short and reports nothing; returns its exit code."""
        from fencepost.conformance.results import ExitCode

        self.log(reason or INTERRUPTED_EARLY)
        return ExitCode.INCONCLUSIVE

    @contextmanager
    def progress(self) -> "Iterator[ProgressDisplay]":
        """A display of progress on standard error, which is cleared at the end."""
        from fencepost.conformance.reports.progress import ProgressDisplay

        display = ProgressDisplay(
            self.stderr(), live=self.stderr().isatty(), columns=lambda: terminal_columns(sys.stderr)
        )
        try:
            yield display
        finally:
            display.close()

    def status_line(self) -> "StatusLine":
        """A line on standard error that is rewritten in place where that is a terminal."""
        from fencepost.conformance.reports.progress import StatusLine

        return StatusLine(self.stderr(), live=self.stderr().isatty())

    def has_colour(self) -> bool:
        """Whether standard output is to have colours: where it is a terminal that shows them, or FORCE_COLOR is set;
        never if NO_COLOR is."""
        if sys.stdout is None or os.environ.get("NO_COLOR"):
            return False
        if forced := os.environ.get("FORCE_COLOR"):
            return forced != "0"
        return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"

    def width(self) -> int | None:
        """The columns of the terminal that standard output is, None if it is none."""
        return terminal_columns(sys.stdout)


def terminal_columns(stream: TextIO | None) -> int | None:
    """The columns of a terminal, as COLUMNS or the system says; None for a stream that is none."""
    try:
        if stream is None or not stream.isatty():
            return None
        told = os.environ.get("COLUMNS", "")
        columns = int(told) if told.isdigit() else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return None
    return columns or None


def printable_line(text: str) -> str:
    """`text` in one line that upsets no terminal; the middle of a very long one is left out."""
    from fencepost.conformance.reports.layout import escape_unprintable

    line = escape_unprintable(" ".join(text.split()))
    return line if len(line) <= MAX_LINE else f"{line[:_KEPT]} ... {line[-_KEPT:]}"


def error_line(error: BaseException) -> str:
    """The message of `error` in one line, for an `OSError` the file and the reason."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return " ".join(str(error).split()) or type(error).__name__
