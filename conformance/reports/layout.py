"""Lines for a terminal: a label in one column, text wrapped in the other, and nothing that upsets a terminal."""

import textwrap
from collections.abc import Iterator

_WIDTH = 100
_LABEL = 16  # the column where the values of labelled lines begin


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
        _WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return lines or [first.rstrip()]
