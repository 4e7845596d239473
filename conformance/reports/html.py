"""Documents as self-contained pages of HTML, which load nothing. A page may contain a report as JSON."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files

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

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""The page loads nothing."""
EMBEDDED = re.compile(r'<script type="application/json" id="report">(.*?)</script>', re.DOTALL)
MAX_LINES = 8
"""How many texts of one label are not folded away."""
TAGS = {Style.STRONG: "b", Style.CODE: "code", Style.COMMAND: "code"}


def render_html(document: Document, report: str = "") -> str:
    """The page of a document, with a report as JSON in it if there is one. Equal documents give equal pages."""
    blocks = shown_blocks(document.blocks, Medium.PAGE)
    sections = [block for block in blocks if isinstance(block, Section)]
    head = [block for block in blocks if not isinstance(block, Section)]
    parts = [element("header", block_elements(head)), *map(block_element, sections)]
    if len(sections) > 1:
        links = "".join(f'<li><a href="#{each.id}">{clean(each.title)}</a></li>' for each in sections)
        parts.insert(1, f'<nav aria-label="sections"><ul>{links}</ul></nav>')
    body = element("main", "\n".join(parts))
    if report:  # nothing in the JSON can end its element
        safe = json.dumps(json.loads(report), separators=(",", ":")).replace("<", "\\u003c")
        body += f'<script type="application/json" id="report">{safe}</script>'
    style, script = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("style.css", "page.js"))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{clean(document.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n"
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )


def embedded_json(page: str) -> str | None:
    """The JSON of the report that a page contains, None if it contains none."""
    found = EMBEDDED.search(page)
    return None if found is None else found[1]


def block_elements(blocks: Iterable[Block]) -> str:
    """Blocks as elements, one after the other."""
    return "".join(map(block_element, blocks))


def block_element(block: Block) -> str:
    """A block as an element."""
    match block:
        case Headline(text):
            return element("h1", inline_element(text))
        case Paragraph(text, is_banner):
            return element("p", inline_element(text), class_="banner" if is_banner else "")
        case Pairs(rows):
            return pairs_element(rows)
        case Bullets(items=items, is_numbered=is_numbered):
            lines = "".join(element("li", inline_element(item)) for item in items)
            return element("ol" if is_numbered else "ul", lines)
        case Table():
            return table_element(block)
        case FamilyMap(rows):
            return element("div", "".join(family_elements(*row) for row in rows), class_="map") if rows else ""
        case Diagram(title, svg):
            return scroll_box(drawing, title) if (drawing := svg()) else ""
        case Section(id, title, blocks):
            inner = block_elements(shown_blocks(blocks, Medium.PAGE))
            return element("section", f"<h2>{clean(title)}</h2>{inner}", id=id)
        case Part():
            return part_element(block)
        case Only():
            return block_elements(shown_blocks((block,), Medium.PAGE))


def pairs_element(rows: Sequence[tuple[str, tuple[Text, ...]]]) -> str:
    """Labels with their texts; a label that comes again begins another list, as one may have it only once."""
    lists: list[dict[str, str]] = []
    for label, texts in rows:
        if texts and (not lists or label in lists[-1]):
            lists.append({})
        if texts:
            lists[-1][label] = f"<dt>{clean(label)}</dt><dd>{lines_element(texts)}</dd>"
    return "".join(element("dl", "".join(pairs.values())) for pairs in lists)


def part_element(part: Part) -> str:
    """A part under its heading, or one that can be folded away; without a title its blocks alone."""
    inner = block_elements(shown_blocks(part.blocks, Medium.PAGE))
    if is_empty(part.title):
        return inner
    if part.fold is Fold.NEVER:
        return element("article", f"<h3>{inline_element(part.title)}</h3>{inner}", class_="cause")
    is_open = " open" if part.fold is Fold.OPEN else ""
    return f"<details{is_open}><summary>{inline_element(part.title)}</summary>{inner}</details>"


def lines_element(texts: Sequence[Text]) -> str:
    """Texts in a line each; many of them can be folded away."""
    lines = "<br>".join(map(inline_element, texts))
    return lines if len(texts) <= MAX_LINES else f"<details><summary>{len(texts)} lines</summary>{lines}</details>"


def table_element(table: Table) -> str:
    """A table in a box that scrolls by itself, below the field that searches it if it has one."""
    head = "".join(f'<th scope="col">{clean(column)}</th>' for column in table.columns)
    rows = ("".join(element("td", inline_element(cell)) for cell in row) for row in table.rows)
    body = "".join(element("tr", row) for row in rows)
    inner = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    field = ""
    if table.is_searched:
        field = '<p hidden><label>Filter: <input class="filter" type="search" placeholder="JOIN, fail"></label></p>'
    elif table.around:
        time = f'<input class="around" type="search" value="{clean(table.around)}">'
        field = f"<p hidden><label>Around: {time}</label> A click on a drawing asks for its time.</p>"
    return field + scroll_box(element("table", inner), table.name)


def family_elements(family: str, cells: Sequence[Span], text: Text) -> str:
    """A family with a cell for each of its requirements, and a text below them."""
    items = "".join(element("li", span_element(cell)) for cell in cells)
    return f"<div>{clean(family)}</div><div><ul>{items}</ul><small class='soft'>{inline_element(text)}</small></div>"


def scroll_box(content: str, name: str) -> str:
    """Content in a box that scrolls by itself."""
    return element("div", content, class_="scroll", tabindex="0", role="region", aria_label=name)


def inline_element(text: Text) -> str:
    """A text with its links and looks."""
    return "".join(map(span_element, spans_of(text, Medium.PAGE)))


def span_element(span: Span) -> str:
    """A piece of a text."""
    if span.style is Style.BREAK:
        return "<br>"
    soft = "soft" if span.style is Style.SOFT else ""
    classes = " ".join(filter(None, ("verdict" if span.tone else "", span.tone or "", soft)))
    looks = {"id": span.id, "class_": classes, "title": span.label, "aria_label": span.label}
    if span.href:
        return element("a", clean(span.text), href=span.href, **looks)
    tag = TAGS.get(span.style, "span" if any(looks.values()) else "")
    role = "img" if span.label else ""
    told = element(tag, clean(span.text), role=role, **looks) if tag else clean(span.text)
    if span.style is Style.COMMAND:
        told += " " + f'<button type="button" data-copy="{clean(span.text)}" hidden="">copy</button>'
    return told


def element(tag: str, content: str, **attributes: str) -> str:
    """An element around content that is HTML already; attributes that are "" are left out, `class_` stands for
    `class`."""
    told = (f' {name.rstrip("_").replace("_", "-")}="{clean(value)}"' for name, value in attributes.items() if value)
    return f"<{tag}{''.join(told)}>{content}</{tag}>"


def clean(text: str) -> str:
    """The text for an element or an attribute."""
    return html.escape(escape_unprintable(text))
