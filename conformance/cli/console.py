"""The console of a command: standard output, error lines, progress, and the files that a report is written to."""

import argparse
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fencepost.conformance.reports.progress import ProgressDisplay, StatusLine
    from fencepost.conformance.results import Report


class Console:
    """Standard output and standard error, as they are at the time of each call."""

    def print(self, text: str) -> None:
        """Write `text` to standard output at once, and drop it if the reader has closed the pipe (`| head`)."""
        encoding = sys.stdout.encoding or "utf-8"
        try:
            sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
            sys.stdout.flush()
        except BrokenPipeError:
            sys.stdout = io.StringIO()

    def print_line(self, line: str) -> None:
        """Write `line` and a line break to standard output."""
        self.print(f"{line}\n")

    def log(self, line: str) -> None:
        """Write `line` to standard error, after the name of the program."""
        print(f"fencepost: {line}", file=sys.stderr)

    def fail(self, reason: str | BaseException) -> int:
        """Complain of `reason` in one line; returns the exit code of a command that could not run."""
        from fencepost.conformance.results import ExitCode

        self.log(reason if isinstance(reason, str) else error_line(reason))
        return ExitCode.COULD_NOT_RUN

    def interrupt(self) -> int:
        """Complain of Ctrl-C; returns the exit code of a command that was cut short."""
        from fencepost.conformance.results import ExitCode

        self.log("interrupted before anything was judged")
        return ExitCode.INCONCLUSIVE

    @contextmanager
    def progress(self) -> "Iterator[ProgressDisplay]":
        """A display of progress on standard error, which is cleared at the end."""
        from fencepost.conformance.reports.progress import ProgressDisplay

        display = ProgressDisplay(sys.stderr, live=sys.stderr.isatty())
        try:
            yield display
        finally:
            display.close()

    def status_line(self) -> "StatusLine":
        """A line on standard error that is rewritten in place where that is a terminal."""
        from fencepost.conformance.reports.progress import StatusLine

        return StatusLine(sys.stderr, live=sys.stderr.isatty())

    def has_colour(self) -> bool:
        """Whether standard output is a terminal that shows colours."""
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def error_line(error: BaseException) -> str:
    """The message of `error` in one line, for an `OSError` the file and the reason."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def write_reports(options: argparse.Namespace, report: "Report", console: Console) -> int:
    """Write `report` to the files of --json and --junit, the second also if the first fails; returns the exit code of
    the command."""
    from fencepost.conformance.reports.json_report import to_json
    from fencepost.conformance.reports.junit import to_junit

    exit_code: int = report.exit_code()
    for path, render in ((options.json, to_json), (options.junit, to_junit)):
        if path is None:
            continue
        try:
            path.write_text(render(report), encoding="utf-8")
        except OSError as error:
            exit_code = console.fail(f"cannot write the report: {error_line(error)}")
    return exit_code
