"""Documents as Markdown, for the summary of a job of continuous integration or for a ticket."""

import re
from collections.abc import Iterator, Sequence

from fencepost.conformance.reports.document import (
    Block,
    Bullets,
    Diagram,
    Document,
    FamilyMap,
    Fold,
    Headline,
    Medium,
    Only,
    Pairs,
    Paragraph,
    Part,
    Section,
    Span,
    Style,
    Table,
    Text,
    is_empty,
    shown_blocks,
    spans_of,
)
from fencepost.conformance.reports.layout import escape_unprintable

SPECIAL = re.compile(r"[<>&\"'|`*_\[\]~#@\\:!]")
"""Characters that Markdown or HTML could take for syntax."""


def render_markdown(document: Document) -> str:
    """The document as Markdown text that ends in a newline."""
    return "\n\n".join(markdown_blocks(document.blocks)) + "\n"


def markdown_blocks(blocks: Sequence[Block]) -> Iterator[str]:
    """The blocks of the text, between which there is a blank line."""
    for block in shown_blocks(blocks, Medium.SUMMARY):
        yield from filter(None, markdown_of(block))


def markdown_of(block: Block) -> Iterator[str]:
    """The blocks of the text that a block of the document becomes."""
    match block:
        case Headline(text):
            yield f"## {inline_markdown(text)}"
        case Paragraph(text):
            yield inline_markdown(text)
        case Pairs(rows):
            yield "\n".join(f"- {escape(label)}: {lines_markdown(texts)}" for label, texts in rows if texts)
        case Bullets(items=items, is_numbered=is_numbered):
            signs = (f"{number}." if is_numbered else "-" for number in range(1, len(items) + 1))
            yield "\n".join(f"{sign} {inline_markdown(item)}" for sign, item in zip(signs, items, strict=True))
        case Table(_, columns, rows):
            yield table_markdown(columns, rows)
        case FamilyMap(rows):
            yield table_markdown(("family", "verdicts"), [(family, text) for family, _, text in rows])
        case Diagram(_, _, mermaid):
            yield f"```mermaid\n{drawing}```" if mermaid is not None and (drawing := mermaid()) else ""
        case Section(_, title, blocks):
            shown = list(markdown_blocks(blocks))
            yield from (f"### {escape(title)}", *shown) if shown else ()
        case Part():
            yield from part_markdown(block)
        case Only():
            yield from markdown_blocks((block,))


def part_markdown(part: Part) -> Iterator[str]:
    """A part that can be folded away, or one below its title; without a title its blocks alone."""
    blocks = list(markdown_blocks(part.blocks))
    if part.fold is Fold.NEVER:
        yield "" if is_empty(part.title) else f"#### {inline_markdown(part.title)}"
        yield from blocks
        return
    is_open, body = " open" if part.fold is Fold.OPEN else "", "\n\n".join(blocks)
    yield f"<details{is_open}><summary>{inline_markdown(part.title)}</summary>\n\n{body}\n\n</details>"


def lines_markdown(texts: Sequence[Text]) -> str:
    """A text behind its label, or several ones in the lines of a list below it."""
    lines = list(map(inline_markdown, texts))
    return lines[0] if len(lines) == 1 else "".join(f"\n  - {line}" for line in lines)


def table_markdown(columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> str:
    """A table; "" without rows."""
    lines = [[escape(column) for column in columns], ["---"] * len(columns)]
    lines += ([inline_markdown(cell) for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) if rows else ""


def inline_markdown(text: Text) -> str:
    """A text with its looks; links within a page lead nowhere here."""
    return "".join(map(span_markdown, spans_of(text, Medium.SUMMARY)))


def span_markdown(span: Span) -> str:
    """A piece of a text."""
    told = escape(span.text)
    if not told.strip():
        return told
    if span.style is Style.STRONG:
        return f"**{told}**"
    return f"<code>{told}</code>" if span.style in (Style.CODE, Style.COMMAND) else told


def escape(text: str) -> str:
    """The text with nothing in it that Markdown or HTML would read."""
    return SPECIAL.sub(lambda found: f"&#{ord(found[0])};", escape_unprintable(text))
