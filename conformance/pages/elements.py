"""Elements of HTML. Every text goes through `clean`, as a target may answer with any characters."""

from collections.abc import Iterable, Sequence

from fencepost.conformance.diagrams.svg import clean
from fencepost.conformance.results import Verdict

GLYPHS = {
    Verdict.PASS: "✓",
    Verdict.FAIL: "✗",
    Verdict.KNOWN: "!",
    Verdict.INCONCLUSIVE: "?",
    Verdict.UNSUPPORTED: "–",
    Verdict.NOT_OBSERVED: "·",
}
"""A sign for each verdict, so that none is told by its colour alone."""


def element(tag: str, content: str, **attributes: str) -> str:
    """An element around content that is HTML already; `class_` stands for `class`."""
    told = "".join(f' {name.rstrip("_").replace("_", "-")}="{clean(value)}"' for name, value in attributes.items())
    return f"<{tag}{told}>{content}</{tag}>"


def section(id: str, title: str, *content: str) -> str:
    """A section with its heading; "" without content."""
    inner = "".join(content)
    return element("section", f"<h2>{clean(title)}</h2>{inner}", id=id) if inner else ""


def listing(pairs: Iterable[tuple[str, str]]) -> str:
    """Labels with their values, which are HTML already; those without a value are left out."""
    items = "".join(f"<dt>{clean(label)}</dt><dd>{value}</dd>" for label, value in pairs if value)
    return f"<dl>{items}</dl>" if items else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], **attributes: str) -> str:
    """A table of cells that are HTML already, in a box that scrolls by itself."""
    cells = "".join(f'<th scope="col">{clean(each)}</th>' for each in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    inner = f"<thead><tr>{cells}</tr></thead><tbody>{body}</tbody>"
    return element(
        "div",
        element("table", inner, **attributes),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=attributes.get("aria_label", "table"),
    )


def fold(title: str, *content: str, is_open: bool = False) -> str:
    """Content that can be folded away."""
    return f"<details{' open' if is_open else ''}><summary>{clean(title)}</summary>{''.join(content)}</details>"


def verdict_mark(verdict: Verdict) -> str:
    """A verdict with its sign."""
    return element("span", f"{GLYPHS[verdict]} {clean(str(verdict))}", class_=f"verdict {verdict}")


def requirement_link(id: str) -> str:
    """A link to the row of a requirement."""
    return element("a", clean(id), href=f"#{id}")


def command_line(command: str) -> str:
    """A command that can be copied."""
    button = element("button", "copy", type="button", data_copy=command, hidden="")
    return f"{element('code', clean(command))} {button}"
