"""Lines for a terminal: a label in one column, text wrapped in the other, and nothing that upsets a terminal."""

import textwrap
from collections.abc import Iterator

DEFAULT_WIDTH = 100
LABEL_WIDTH = 14
"""The width of the column of labels, which begins at the third character."""


def escape_unprintable(text: str) -> str:
    """`text` with everything escaped that could upset a terminal; a target may answer with any characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def label_once(label: str) -> Iterator[str]:
    """The label for the first of several lines, and "" for all others."""
    yield label
    while True:
        yield ""


def unwrapped_line(label: str, text: str, indent: int = 2) -> str:
    """A line that is never wrapped, so that it can be copied."""
    return f"{'':{max(indent, 2)}}{label:<{LABEL_WIDTH}}{escape_unprintable(text)}".rstrip()


def wrapped_lines(label: str, text: str, indent: int = 2, columns: int = DEFAULT_WIDTH) -> list[str]:
    """The lines of a text behind its label."""
    first = f"{'':{max(indent, 2)}}{label:<{LABEL_WIDTH}}"
    return wrap_text(first, text, " " * (max(indent, 2) + LABEL_WIDTH), columns)


def wrap_text(first: str, text: str, rest: str, columns: int = DEFAULT_WIDTH) -> list[str]:
    """The lines of a text, the first one indented by `first` and the others by `rest`."""
    lines = textwrap.wrap(
        escape_unprintable(text),
        columns,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return lines or [first.rstrip()]
