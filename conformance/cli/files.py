"""The files and folders that a command writes, checked before it runs and written whatever ends it; and the reports,
pages and traces that it reads, recognized by their content."""

import errno
import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

from fencepost.conformance.cli.console import INTERRUPTED_EARLY, Console, command_to_type, error_line
from fencepost.conformance.events import RunEvent, RunFinished
from fencepost.conformance.reports.badge import render_badge
from fencepost.conformance.reports.json_report import to_json
from fencepost.conformance.reports.junit import to_junit
from fencepost.conformance.reports.report import render_report, to_html, to_markdown
from fencepost.conformance.results import Ending, EndKind, ExitCode, Report, RequirementResult, Verdict
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.model.catalogue.specification import Specification
from fencepost.model.errors import FencepostError

STDOUT = Path("-")
"""The name of standard output."""
RENDERERS: Mapping[str, Callable[[Report], str]] = {
    "--json": to_json,
    "--junit": to_junit,
    "--html": to_html,
    "--markdown": to_markdown,
    "--badge": render_badge,
}
"""The text of a report by the option that asks for it."""


class OutputError(FencepostError):
    """An output cannot be used; the message is one clear line."""


def check_outputs(
    files: Mapping[str, Path | None],
    folders: Mapping[str, Path | None] | None = None,
    inputs: Iterable[Path | None] = (),
) -> None:
    """Open every file and make every folder, each named by its option; None stands for an option that was not given.

    Raises `OutputError` if two of them are one or a file is one of the `inputs`, and `OSError` for one that cannot be
    written.
    """
    folders = folders or {}
    taken: dict[Path, str] = {}
    read = {path.resolve() for path in inputs if path is not None and path != STDOUT}
    for option, path in {**files, **folders}.items():
        if path is None:
            continue
        place = path if path == STDOUT and option in files else path.resolve()
        if place in taken:
            where = "standard output" if path == STDOUT else str(path)
            raise OutputError(f"{taken[place]} and {option} both write to {where}; give each a path of its own")
        taken[place] = option
        if place in read:
            raise OutputError(f"{option} would write over {path}, which is read; give it a path of its own")
    for path in filter(None, folders.values()):
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    for path in filter(None, files.values()):
        if path != STDOUT:
            path.open("a").close()


def refuse_existing(path: Path, *, may_overwrite: bool) -> None:
    """Raises `OutputError` if there is a file that must not be written over, and `OSError` if there is no folder for
    one."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if path.is_file() and not may_overwrite:
        raise OutputError(f"{path}: File exists; choose another name, or write over it with --force")


def write_output(path: Path, text: str, console: Console) -> bool:
    """Write `text` to a file or to standard output; whether that succeeded. If not, the console says why."""
    if path == STDOUT:
        console.print(text)
        return True
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        console.fail(f"cannot write the report: {path}: {error.strerror or error_line(error)}")
        return False
    return True


@dataclass(slots=True)
class ReportFiles:
    """Consumes the events of a run: writes its report as soon as it is there.

    `paths` has the files by the options of `RENDERERS`, None for one that was not given.
    """

    console: Console
    paths: Mapping[str, Path | None]
    renderers: Mapping[str, Callable[[Report], str]] = field(default_factory=lambda: RENDERERS)
    failed: bool = False
    """A file could not be written."""
    written: bool = False

    @property
    def takes_stdout(self) -> bool:
        """Whether standard output is one of the files, and so has no place for the text."""
        return STDOUT in self.paths.values()

    def __call__(self, event: RunEvent) -> None:
        """Write the report of a run that is over."""
        if isinstance(event, RunFinished):
            self.write(event.report)

    def write(self, report: Report) -> None:
        """Write a report, the other files also if one fails."""
        for option, path in self.paths.items():
            if path is not None and not write_output(path, self.renderers[option](report), self.console):
                self.failed = True
        self.written = True

    @contextmanager
    def write_failure(
        self, target: str, requirements: Sequence[str] = (), specification: Specification = DEFAULT_SPECIFICATION
    ) -> Iterator[None]:
        """For a run within: if it raises before a report was written, write one that says why nothing was tested."""
        try:
            yield
        except BaseException as error:
            if not self.written:
                results = tuple(RequirementResult(id, Verdict.NOT_OBSERVED) for id in requirements)
                ended = Ending(EndKind.NOT_STARTED, error_line(error))
                if isinstance(error, KeyboardInterrupt):
                    ended = Ending(EndKind.INTERRUPTED, str(error) or INTERRUPTED_EARLY)
                self.write(
                    Report({"name": target}, 0, results, cut_short=True, ended=ended, specification=specification)
                )
            raise

    def show(self, report: Report) -> None:
        """Print a report, on standard error if standard output is one of the files."""
        colour = self.console.has_colour() and not self.takes_stdout
        self.print(render_report(report, colour=colour, width=self.console.width()))

    def print(self, text: str) -> None:
        """Print a text, with -q its last line, on standard error if standard output is one of the files."""
        if self.console.is_quiet:
            text = text.rstrip("\n").rpartition("\n")[2] + "\n"
        (self.console.print_error if self.takes_stdout else self.console.print)(text)

    def exit_code(self, code: ExitCode) -> ExitCode:
        """The exit code of a command whose report has this one."""
        return ExitCode.COULD_NOT_RUN if self.failed else code


# --- what is read

HEAD_BYTES = 64 * 1024
"""How much of a file is looked at."""
GZIP, PCAP = b"\x1f\x8b", (b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"M<\xb2\xa1", b"\xa1\xb2<M", b"\n\r\r\n")
MARKS = (
    ("a broker's log", "log", (b"[GroupCoordinator", b"[GroupMetadataManager")),
    (
        "a dump of the offsets topic",
        "offsets",
        (b"key: group_metadata::", b"key: offset_commit::", b"Log starting offset"),
    ),
    (
        "the log of a client",
        "log",
        (
            b"[Consumer clientId=",
            b"[Consumer instanceId=",
            b"joining group",
            b"[thrd:",
            b'"kafkajs"',
            b"coordinator.consumer",
        ),
    ),
)
"""What files hold that are no traces, the import that makes one of them, and what they have in them."""


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
    if is_report(head):  # whatever lines of logs it quotes
        return SourceKind.REPORT
    other = describe_log_or_capture(head, path)
    damaged = DAMAGED.get(path.suffix)  # reading it says what is wrong with it
    if damaged is not None and not other:
        return damaged
    if other:
        raise SourceError(f"{path}: {other}")
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


def is_report(head: bytes) -> bool:
    """Whether a file begins as a report or its page does."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return text[:1] == b"<" or (text[:1] == b"{" and b'"fencepost":' in head and not has_trace_header(text))


def describe_other(head: bytes) -> str:
    """The kind of a file that is none of them, and the command for it."""
    if not head:
        return "empty or not readable; name a report (JSON or HTML) or a trace"
    return "neither a report (JSON or HTML) nor a trace; `fencepost import` makes traces of logs and captures"


def describe_log_or_capture(head: bytes, path: Path) -> str:
    """The kind of a log, a capture or a segment of the offsets topic, and the command that makes a trace of it; "" for
    any other file. `head` is how the file begins."""
    if b"fencepost_trace" in head[:100]:
        return ""
    if head.startswith(PCAP):
        name, source = "a packet capture", "capture"
    elif head[:1] == b"\0" and head[16:17] == b"\2":
        name, source = "a segment of a log of Kafka", "offsets"
    else:
        text = head.replace(b"\0", b"")
        found = ((name, source) for name, source, marks in MARKS if any(mark in text for mark in marks))
        name, source = next(found, ("", ""))
    typed = command_to_type("import", source, str(path), "-o", "group.jsonl")
    return name and f"{name}; make a trace of it first: {typed}"
