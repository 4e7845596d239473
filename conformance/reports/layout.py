"""Lines for a terminal: a label in one column, text wrapped in the other, and nothing that upsets a terminal."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

DEFAULT_WIDTH = 100
MIN_WIDTH, MAX_WIDTH = 72, 120
_width: ContextVar[int] = ContextVar("width", default=DEFAULT_WIDTH)
_LABEL = 16  # the column where the values of labelled lines begin


@contextmanager
def line_width(columns: int | None) -> Iterator[None]:
    """Wrap lines at so many columns within the block, but neither at too few nor at too many; None: at the usual
    number."""
    wanted = DEFAULT_WIDTH if columns is None else max(MIN_WIDTH, min(columns, MAX_WIDTH))
    before = _width.set(wanted)
    try:
        yield
    finally:
        _width.reset(before)


def escape_unprintable(text: str) -> str:
    """`text` with everything escaped that could upset a terminal; a target may answer with any characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def label_once(label: str) -> Iterator[str]:
    """The label for the first of several lines, and "" for all others."""
    yield label
    while True:
        yield ""


def unwrapped_line(label: str, text: str) -> str:
    """A line that is never wrapped, so that it can be copied."""
    return f"  {label:<{_LABEL - 2}}{escape_unprintable(text)}".rstrip()


def wrapped_lines(label: str, text: str) -> list[str]:
    """The lines of a text behind its label."""
    return wrap_text(f"  {label:<{_LABEL - 2}}", text, " " * _LABEL)


def wrap_text(first: str, text: str, rest: str) -> list[str]:
    """The lines of a text, the first one indented by `first` and the others by `rest`."""
    lines = textwrap.wrap(
        escape_unprintable(text),
        _width.get(),
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return lines or [first.rstrip()]
