"""Several reports side by side: versions of a target, or several targets."""

from collections.abc import Sequence

from fencepost.conformance.diagrams.svg import clean
from fencepost.conformance.pages.elements import GLYPHS, element, listing, section, table
from fencepost.conformance.pages.html_page import make_page
from fencepost.conformance.reports.comparison import NO_CHANGE, describe_changes, name_of
from fencepost.conformance.reports.layout import escape_unprintable
from fencepost.conformance.reports.text import outcome_line
from fencepost.conformance.results import Report


def render_overview(reports: Sequence[Report]) -> str:
    """A line for each report; ends in a newline."""
    return "".join(f"{escape_unprintable(name_of(report))}: {outcome_line(report)}\n" for report in reports)


def to_comparison_html(old: Report, new: Report) -> str:
    """A page with what changed since an older report, and a column for each of the two."""
    changes = listing((label, clean(ids)) for label, ids in describe_changes(old, new))
    return to_overview_html([old, new], section("changes", "Changes", changes or f"<p>{NO_CHANGE}</p>"))


def to_overview_html(reports: Sequence[Report], changes: str = "") -> str:
    """A page with a column for each report, and a section on changes if there is one."""
    summary = table(
        ["target", "outcome", "date"],
        (
            [
                clean(name_of(report)),
                clean(outcome_line(report)),
                clean(report.provenance.started if report.provenance is not None else ""),
            ]
            for report in reports
        ),
        aria_label="reports",
    )
    by_id = [{result.id: result for result in report.results} for report in reports]
    ids = dict.fromkeys(id for results in by_id for id in results)
    requirements = reports[0].specification.requirements
    rows = []
    for id in ids:
        title = requirements[id].title if id in requirements else ""
        cells = [f"<b>{clean(id)}</b> {clean(title)}"]
        for results in by_id:
            verdict = results[id].verdict if id in results else None
            mark = f"{GLYPHS[verdict]} {clean(str(verdict))}" if verdict is not None else "not asked"
            cells.append(element("span", mark, class_=f"verdict {verdict or 'not-observed'}"))
        rows.append(cells)
    verdicts = table(["requirement", *map(name_of, reports)], rows, aria_label="verdicts", id="requirements-table")
    search = '<p hidden><label>Filter: <input id="filter" type="search" placeholder="JOIN, fail"></label></p>'
    body = f"<header><h1>{len(reports)} reports of Fencepost</h1></header>"
    body += section("reports", "Reports", summary) + changes + section("requirements", "Requirements", search, verdicts)
    return make_page("Fencepost: several reports", f"<main>{body}</main>")
