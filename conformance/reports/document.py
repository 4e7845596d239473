"""Documents for people as trees of frozen values: what is told, without how it is written down.

A report, an incident or a comparison is a function from data to a `Document`. `text`, `html` and `markdown` write any
document; none of them knows what it is about, and each escapes every text by itself, as a target may answer with any
characters.

    Document ── Headline, Section, Part ... ── Paragraph, Pairs, Bullets, Table, FamilyMap, Diagram ── Span

The media differ in how much room they have. `Only` keeps blocks for some of them: a terminal has no room for a row for
each requirement, and shows the outcome at its end, where a page has it at its top.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Flag, StrEnum, auto
from typing import TypeAlias

from fencepost.conformance.results import Verdict


class Medium(Flag):
    """Where a document is shown."""

    TERMINAL = auto()
    """Plain text."""
    SUMMARY = auto()
    """Markdown: the summary of a job, or a ticket."""
    PAGE = auto()
    """A page of HTML."""


ALL_MEDIA = Medium.TERMINAL | Medium.SUMMARY | Medium.PAGE
RICH_MEDIA = Medium.SUMMARY | Medium.PAGE
"""The media with tables, links and drawings."""

SIGNS = {
    Verdict.PASS: "✓",
    Verdict.FAIL: "✗",
    Verdict.KNOWN: "!",
    Verdict.INCONCLUSIVE: "?",
    Verdict.UNSUPPORTED: "–",
    Verdict.NOT_OBSERVED: "·",
}
"""A sign for each verdict, so that none is told by its colour alone."""


class Style(StrEnum):
    """How a span looks."""

    PLAIN = ""
    STRONG = "strong"
    SOFT = "soft"
    """Less important than what stands around it."""
    CODE = "code"
    """To be copied: a terminal does not wrap a text with it."""
    COMMAND = "command"
    """Code with a button that copies it."""
    BREAK = "break"
    """A new line in a cell of a table; a blank where there is no room for one."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a text.

    `href` makes it a link, and `id` a place that links lead to. `tone` gives it the colour of a verdict. `label` is
    read in the place of a text that is a sign.
    """

    text: str
    style: Style = Style.PLAIN
    href: str = ""
    id: str = ""
    tone: Verdict | None = None
    label: str = ""
    media: Medium = ALL_MEDIA


Text: TypeAlias = str | Span | tuple[str | Span, ...]
NEW_LINE = Span(" ", Style.BREAK)


@dataclass(frozen=True, slots=True)
class Headline:
    """The document in a line, which is not wrapped."""

    text: Text


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text; a banner is one that a page sets off."""

    text: Text
    is_banner: bool = False


@dataclass(frozen=True, slots=True)
class Pairs:
    """Labels, each with its texts; a label without any is left out."""

    rows: tuple[tuple[str, tuple[Text, ...]], ...]


@dataclass(frozen=True, slots=True)
class Bullets:
    """Texts in a list. On a terminal they are wrapped if they are sentences, numbered or not."""

    items: tuple[Text, ...]
    is_numbered: bool = False
    is_wrapped: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells. Text of a stacked table has the second cell of a row below the first, and no columns. `name` says
    what the table is to those who do not see it; one that is searched has a field for that. `around` is a time of day:
    a page shows the rows near to it, by their first column, or near to another one."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]
    is_stacked: bool = False
    is_searched: bool = False
    around: str = ""


@dataclass(frozen=True, slots=True)
class FamilyMap:
    """A row for each family of requirements: its name, a cell for each requirement on a page, and a text."""

    rows: tuple[tuple[str, tuple[Span, ...], Text], ...]


@dataclass(frozen=True, slots=True)
class Diagram:
    """A drawing as SVG, and as Mermaid if it can be that. Both are drawn when they are asked for; "" is no drawing."""

    title: str
    svg: Callable[[], str]
    mermaid: Callable[[], str] | None = None


class Fold(StrEnum):
    """Whether a part can be folded away, and is at first."""

    NEVER = "never"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Part:
    """Blocks that belong together, under a title if there is one."""

    title: Text
    blocks: "tuple[Block, ...]"
    fold: Fold = Fold.NEVER


@dataclass(frozen=True, slots=True)
class Section:
    """A chapter of a page. Text has its blocks without a heading, or those of a titled one as a part."""

    id: str
    title: str
    blocks: "tuple[Block, ...]"
    is_titled: bool = False


@dataclass(frozen=True, slots=True)
class Only:
    """Blocks for some media."""

    media: Medium
    blocks: "tuple[Block, ...]"


Block: TypeAlias = Headline | Paragraph | Pairs | Bullets | Table | FamilyMap | Diagram | Part | Section | Only


@dataclass(frozen=True, slots=True)
class Document:
    """A whole document; the title is that of a window."""

    title: str
    blocks: tuple[Block, ...]


def spans_of(text: Text, medium: Medium) -> list[Span]:
    """The pieces of a text that a medium shows."""
    pieces = (text,) if isinstance(text, str | Span) else text
    spans = (Span(piece) if isinstance(piece, str) else piece for piece in pieces)
    return [span for span in spans if medium in span.media]


def shown_blocks(blocks: Sequence[Block], medium: Medium) -> list[Block]:
    """The blocks that a medium shows, with those that were kept for it."""
    shown: list[Block] = []
    for block in blocks:
        if not isinstance(block, Only):
            shown.append(block)
        elif medium in block.media:
            shown += shown_blocks(block.blocks, medium)
    return shown


def is_empty(text: Text) -> bool:
    """Whether there is nothing in a text."""
    return not text if isinstance(text, str) else isinstance(text, tuple) and not any(map(bool, text))


def sign_of(verdict: Verdict, word: str = "") -> tuple[Span, Span]:
    """A verdict by a word, with its sign where there is room for one."""
    told = word or str(verdict)
    with_sign = Span(f"{SIGNS[verdict]} {told}", tone=verdict, media=Medium.PAGE)
    return with_sign, Span(told, tone=verdict, media=Medium.TERMINAL | Medium.SUMMARY)


def link_to(id: str) -> Span:
    """A requirement as a link to its row."""
    return Span(id, href=f"#{id}")
