"""Telling a person how far a run has come."""

from typing import TextIO

from fencepost.conformance.events import Progress

_CLEAR = "\r\x1b[K"
_TERMINAL_WIDTH = 79


class StatusLine:
    """One line that is rewritten in place on a terminal (`live`); elsewhere each text is a line of its own."""

    def __init__(self, stream: TextIO, *, live: bool) -> None:
        self._stream = stream
        self._live = live

    def show(self, text: str) -> None:
        """Replace the line by `text`."""
        self._stream.write(f"{_CLEAR}{text}" if self._live else f"{text}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Leave a terminal's cursor at the beginning of an empty line."""
        if self._live:
            self._stream.write(_CLEAR)
            self._stream.flush()


class ProgressDisplay:
    """Shows progress on a stream: one line that is rewritten on a terminal, else a line for every tenth of
    the run and for every new failure."""

    def __init__(self, stream: TextIO, *, live: bool) -> None:
        self._status = StatusLine(stream, live=live)
        self._live = live
        self._shown = Progress(0, 0, 0.0)

    def __call__(self, progress: Progress) -> None:
        """Show `progress`, if it is news."""
        line = progress_line(progress)
        if self._live:
            self._status.show(line[:_TERMINAL_WIDTH])
        elif self._is_news(progress):
            self._status.show(line)
        else:
            return
        self._shown = progress

    def close(self) -> None:
        """Leave the stream at the beginning of an empty line."""
        self._status.clear()

    def _is_news(self, progress: Progress) -> bool:
        return progress.failures > self._shown.failures or _tenth(progress) > _tenth(self._shown)


def progress_line(progress: Progress) -> str:
    """One line: how much is done, how much is left, what has failed."""
    parts = [f"{progress.done}/{progress.total} {progress.unit}"]
    if progress.failures:
        parts.append(f"{progress.failures} violated")
    parts.append(format_duration(progress.seconds))
    remaining = progress.seconds_left()
    if remaining is not None and progress.done < progress.total:
        parts.append(f"about {format_duration(remaining)} left")
    line = ", ".join(parts)
    return f"{line}: {progress.current}" if progress.current else line


def format_duration(seconds: float) -> str:
    """Seconds as a person writes them: "8.3 s", "2 min 05 s"."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"


def _tenth(progress: Progress) -> int:
    return 10 * progress.done // progress.total if progress.total else 0
