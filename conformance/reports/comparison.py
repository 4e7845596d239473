"""What changed between two reports, as text."""

from collections.abc import Iterator

from fencepost.conformance.analysis.comparison import compare_reports
from fencepost.conformance.reports.layout import escape_unprintable, wrapped_lines
from fencepost.conformance.reports.text import fold_ids, outcome_line
from fencepost.conformance.results import Report

NO_CHANGE = "Nothing is newly broken, and everything that was checked still is."


def name_of(report: Report) -> str:
    """The target of a report by name and version."""
    return " ".join(filter(None, (report.target["name"], report.target.get("version", ""))))


def describe_changes(old: Report, new: Report) -> Iterator[tuple[str, str]]:
    """The kinds of changes since an older report, each with its requirements."""
    changes = compare_reports(old, new)
    for label, ids in (
        ("newly broken", changes.broken),
        ("mended", changes.mended),
        ("not checked", changes.no_longer_checked),
        ("newly checked", changes.newly_checked),
    ):
        if ids:
            yield label, f"{len(ids)}: {fold_ids(ids, new.specification.requirements)}"


def render_comparison(old: Report, new: Report) -> str:
    """The text; ends in a newline."""
    lines = [f"Target: {escape_unprintable(name_of(new))}"]
    lines += wrapped_lines("before", f"{name_of(old)}: {outcome_line(old)}")
    lines += wrapped_lines("now", outcome_line(new))
    for label, ids in describe_changes(old, new):
        lines += wrapped_lines(label, ids)
    if not compare_reports(old, new).is_worse:
        lines.append(NO_CHANGE)
    return "\n".join(lines) + "\n"
