"""Documents as plain text for a terminal."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fencepost.conformance.reports.document import (
    Block,
    Bullets,
    Diagram,
    Document,
    FamilyMap,
    Headline,
    Medium,
    Only,
    Pairs,
    Paragraph,
    Part,
    Section,
    Style,
    Table,
    Text,
    shown_blocks,
    spans_of,
)
from fencepost.conformance.reports.layout import (
    DEFAULT_WIDTH,
    escape_unprintable,
    label_once,
    unwrapped_line,
    wrap_text,
    wrapped_lines,
)
from fencepost.conformance.results import Verdict

MIN_WIDTH, MAX_WIDTH = 72, 120
MAX_HANGING = 4
"""The column at which the further lines of a text begin at the latest."""
COLOURS = {Verdict.FAIL: "31", Verdict.PASS: "32", Verdict.INCONCLUSIVE: "33"}


def render_text(document: Document, *, colour: bool = False, width: int | None = None) -> str:
    """The document for a terminal of this width in columns, if it is known; ends in a newline."""
    wanted = DEFAULT_WIDTH if width is None else max(MIN_WIDTH, min(width, MAX_WIDTH))
    terminal = Terminal(wanted, colour)
    blocks = ("\n".join(terminal.lines(block, 0)) for block in loose_blocks(document.blocks))
    return "\n\n".join(filter(None, blocks)) + "\n"


def loose_blocks(blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks that have a blank line between them: those of all sections."""
    for block in shown_blocks(blocks, Medium.TERMINAL):
        if isinstance(block, Section) and not block.is_titled:
            yield from loose_blocks(block.blocks)
        else:
            yield block


@dataclass(frozen=True, slots=True)
class Terminal:
    """Writes blocks as lines of so many columns."""

    columns: int
    has_colour: bool

    def lines(self, block: Block, indent: int) -> Iterable[str]:
        """The lines of a block from a column on."""
        match block:
            case Headline(text):
                return (self.paint(plain_text(text), text),)
            case Paragraph(text):
                return (f"{'':{indent}}{plain_text(text)}",) if is_code(text) else self.wrap(indent, text)
            case Pairs(rows):
                return self.pair_lines(rows, indent)
            case Bullets():
                return self.bullet_lines(block, indent)
            case Table():
                return self.stacked_lines(block, indent) if block.is_stacked else table_lines(block, indent)
            case FamilyMap(rows):
                return (unwrapped_line(family, plain_text(text)) for family, _, text in rows)
            case Part(title, blocks) | Section(_, title, blocks):
                return self.part_lines(title, blocks, indent)
            case Diagram() | Only():
                return ()

    def part_lines(self, title: Text, blocks: Sequence[Block], indent: int) -> Iterator[str]:
        """A title with its blocks indented below it; without a title they are not."""
        inner = indent
        if plain_text(title):
            first, *others = self.wrap(indent, title)
            yield from (self.paint(first, title), *others)
            inner += 2
        for block in shown_blocks(blocks, Medium.TERMINAL):
            yield from self.lines(block, inner)

    def pair_lines(self, rows: Sequence[tuple[str, tuple[Text, ...]]], indent: int) -> Iterator[str]:
        """The lines of labels, each before the first of its texts."""
        for label, texts in rows:
            for once, text in zip(label_once(label), texts, strict=False):
                if is_code(text):
                    yield unwrapped_line(once, plain_text(text), indent)
                else:
                    yield from wrapped_lines(once, plain_text(text), indent, self.columns)

    def bullet_lines(self, bullets: Bullets, indent: int) -> Iterator[str]:
        """Texts that are numbered or wrapped have a hanging indent; others are long lines of programs."""
        for number, item in enumerate(bullets.items, 1):
            mark = f"{'':{indent}}{number:>2}. " if bullets.is_numbered else " " * max(indent, 2)
            rest = " " * (len(mark) if bullets.is_numbered else len(mark) + 2)
            is_wrapped = bullets.is_numbered or bullets.is_wrapped
            yield from (
                wrap_text(mark, plain_text(item), rest, self.columns) if is_wrapped else [f"{mark}{plain_text(item)}"]
            )

    def stacked_lines(self, table: Table, indent: int) -> Iterator[str]:
        """Rows of two cells, the second one below the first."""
        for first, second in table.rows:
            for cell, margin in ((first, " " * indent), (second, " " * (indent + 2))):
                yield from wrap_text(margin, plain_text(cell), margin, self.columns)

    def wrap(self, indent: int, text: Text) -> list[str]:
        """The lines of a text from a column on, the further ones hanging."""
        return wrap_text(" " * indent, plain_text(text), " " * min(indent + 2, MAX_HANGING), self.columns)

    def paint(self, line: str, text: Text) -> str:
        """A line of a text with the spans that have the tone of a verdict in its colour."""
        for span in spans_of(text, Medium.TERMINAL) if self.has_colour else ():
            if span.tone in COLOURS:
                shown = escape_unprintable(span.text)
                line = line.replace(shown, f"\x1b[{COLOURS[span.tone]}m{shown}\x1b[0m", 1)
        return line


def table_lines(table: Table, indent: int) -> Iterator[str]:
    """The columns and the rows, each column as wide as its widest cell."""
    rows = [table.columns, *([plain_text(cell) for cell in row] for row in table.rows)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(table.columns))]
    for row in rows:
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"{'':{indent}}{cells}".rstrip()


def is_code(text: Text) -> bool:
    """Whether there is something to be copied in a text."""
    return any(span.style in (Style.CODE, Style.COMMAND) for span in spans_of(text, Medium.TERMINAL))


def plain_text(text: Text) -> str:
    """A text without links and looks."""
    return "".join(escape_unprintable(span.text) for span in spans_of(text, Medium.TERMINAL))
