"""The console of a command: standard output, error lines, progress, and the signals that end it.

Ctrl-C, SIGTERM and SIGHUP end a command as far as it has come, also where the process began with SIGINT ignored
(`nohup`, a job in the background of a script).
"""

import io
import os
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

if TYPE_CHECKING:
    from fencepost.conformance.reports.progress import ProgressDisplay, StatusLine

T = TypeVar("T")
MAX_LINE = 500
"""The longest line about an error, in characters: ids and keys in a file may have any length."""
COULD_NOT_RUN, CUT_SHORT = 2, 3
"""Two of the `ExitCode`s, which come with the catalogue: a command that fails early does not wait for that."""
INTERRUPTED_EARLY = "interrupted before anything was judged"
_KEPT = MAX_LINE // 2 - 3


def typed_program(path: str) -> tuple[str, ...]:
    """The words that start a process whose program is at a path, for commands to copy."""
    if path.endswith(".pyz"):
        return ("python3", path)
    return ("python3", "-m", "fencepost") if path.endswith(os.path.join("fencepost", "__main__.py")) else ("fencepost",)


def command_to_type(*words: str) -> str:
    """A command of the kit in the manner in which this process was started."""
    return shlex.join([*typed_program(sys.argv[0]), *words])


class UsageError(Exception):
    """The arguments of a command do not go together, which the parser cannot see; the message says which."""

    def __init__(self, command: str, message: str) -> None:
        super().__init__(message)
        self.command = command


class Console:
    """Standard output and standard error, as they are at the time of each call.

    With -q there is no progress, and of all lines the last one alone; with -v each step of progress is a line.
    """

    def __init__(self) -> None:
        self.is_quiet = self.is_verbose = False
        self.last_line = ""

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
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from None

    def print_line(self, line: str) -> None:
        """Write `line` and a line break to standard output; with -q, once the command ends without another one."""
        if self.is_quiet:
            self.last_line = line.rpartition("\n")[2]
        else:
            self.print(f"{line}\n")

    def print_last(self) -> None:
        """Write the line that -q has kept back."""
        if self.last_line:
            self.print(f"{self.last_line}\n")

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

    def note(self, line: str) -> None:
        """Log what the command has done, unless it is quiet (-q)."""
        if not self.is_quiet:
            self.log(line)

    def complain(self, line: str) -> None:
        """Write `line` to standard error, whatever is in it, as one line."""
        self.print_error(f"{printable_line(line)}\n")

    def fail(self, reason: str | BaseException) -> int:
        """Complain of `reason` in one line; returns the exit code of a command that could not run."""
        self.log(reason if isinstance(reason, str) else error_line(reason))
        return COULD_NOT_RUN

    def interrupt(self, reason: str = "") -> int:
        """Say why a command was cut short and reports nothing; returns its exit code."""
        self.log(reason or INTERRUPTED_EARLY)
        return CUT_SHORT

    @contextmanager
    def progress(self) -> "Iterator[ProgressDisplay]":
        """A display of progress on standard error, which is cleared at the end."""
        from fencepost.conformance.reports.progress import ProgressDisplay

        display = ProgressDisplay(
            self.progress_stream(),
            live=self.is_live(),
            columns=lambda: terminal_columns(sys.stderr),
            tells_all=self.is_verbose,
        )
        try:
            yield display
        finally:
            display.close()

    def status_line(self) -> "StatusLine":
        """A line on standard error that is rewritten in place where that is a terminal."""
        from fencepost.conformance.reports.progress import StatusLine

        return StatusLine(self.progress_stream(), live=self.is_live())

    def progress_stream(self) -> TextIO:
        """Where progress is shown: on standard error, with -q nowhere."""
        return io.StringIO() if self.is_quiet else self.stderr()

    def is_live(self) -> bool:
        """Whether progress is a line that is rewritten in place: on a terminal, but for -v."""
        return self.progress_stream().isatty() and not self.is_verbose

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


# --- signals

MAX_REQUESTS = 2
"""How many signals ask a run to end; the next one ends it where it is."""
BROKEN_OFF = "broken off by a third signal: no report has what was judged"
"""The message of the `KeyboardInterrupt` for the signal after these."""


def ending_signals() -> list[signal.Signals]:
    """The signals that end a command. SIGHUP is none where it is ignored, as `nohup` has it."""
    found = [signal.SIGINT, signal.SIGTERM]
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
        found.append(hangup)
    return found


@contextmanager
def handle_signals(handler: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    """Have `handler` get the signals that end a command; elsewhere than in the main thread nothing changes."""
    before: dict[signal.Signals, Any] = {}
    try:
        for each in ending_signals():
            before[each] = signal.signal(each, handler)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, old if old is not None else signal.SIG_DFL)


def raise_interrupt(number: int, frame: FrameType | None) -> None:
    """A signal handler that raises `KeyboardInterrupt`, as Python's own does for Ctrl-C."""
    raise KeyboardInterrupt


def run_interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end. The first two signals cancel it, with a `StopRequest` that names the signal as the
    message. Raises `KeyboardInterrupt` if it was cancelled without a result, and at once for the third signal."""
    import asyncio

    try:
        return asyncio.run(_cancel_on_signals(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _cancel_on_signals(work: Coroutine[Any, Any, T]) -> T:
    import asyncio

    from fencepost.conformance.results import EndKind
    from fencepost.conformance.run.stream import StopRequest

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    seen = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen > MAX_REQUESTS:
            raise KeyboardInterrupt(BROKEN_OFF)
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        loop.call_soon_threadsafe(task.cancel, StopRequest(EndKind.INTERRUPTED, f"interrupted by {name}"))

    with handle_signals(handle):
        return await work
