"""The report as one self-contained HTML page, made from the report alone. It contains the report as JSON."""

import json
import re
from importlib.resources import files

from fencepost.conformance.diagrams.svg import clean
from fencepost.conformance.pages import sections
from fencepost.conformance.reports.json_report import ReportError, from_json, to_json
from fencepost.conformance.results import Report

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""The page loads nothing."""
EMBEDDED = re.compile(r'<script type="application/json" id="report">(.*?)</script>', re.DOTALL)

SECTION = re.compile(r'<section id="([\w-]+)"><h2>(.*?)</h2>')
"""The id and the heading of a section."""


def to_html(report: Report) -> str:
    """The page of a report. Equal reports give equal pages."""
    details = sections.detail_sections(report)
    body = "\n".join(filter(None, (sections.head_section(report), contents_line(details), details)))
    return make_page(f"Fencepost: {report.target['name']}", f"<main>{body}</main>{embed_json(to_json(report))}")


def contents_line(details: str) -> str:
    """Links to the sections of a page: whoever has no mouse need not walk through all cells of the map."""
    links = (f'<li><a href="#{id}">{title}</a></li>' for id, title in SECTION.findall(details))
    return f'<nav aria-label="sections"><ul>{"".join(links)}</ul></nav>'


def make_page(title: str, body: str) -> str:
    """A page with the style and the script of all pages."""
    style, script = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("style.css", "page.js"))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{clean(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n"
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )


def embed_json(text: str) -> str:
    """JSON in an element that a browser does not run; nothing in it can end the element."""
    safe = json.dumps(json.loads(text), separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="report">{safe}</script>'


def from_html(page: str) -> Report:
    """The report that a page contains. Raises `ReportError` for a page without one."""
    found = EMBEDDED.search(page)
    if found is None:
        raise ReportError("not a Fencepost report: the page contains none")
    return from_json(found[1])
