"""What changed between two reports, as text."""

from fencepost.conformance.analysis.comparison import compare_reports
from fencepost.conformance.reports.layout import wrapped_lines
from fencepost.conformance.reports.text import fold_ids, outcome_line
from fencepost.conformance.results import Report


def render_comparison(old: Report, new: Report) -> str:
    """The text; ends in a newline."""
    changes = compare_reports(old, new)
    requirements = new.specification.requirements
    lines = [f"Target: {new.target['name']}"]
    lines += wrapped_lines("before", outcome_line(old))
    lines += wrapped_lines("now", outcome_line(new))
    for label, ids in (
        ("newly broken", changes.broken),
        ("mended", changes.mended),
        ("not checked", changes.no_longer_checked),
        ("newly checked", changes.newly_checked),
    ):
        if ids:
            lines += wrapped_lines(label, f"{len(ids)}: {fold_ids(ids, requirements)}")
    if changes.broken == changes.no_longer_checked == ():
        lines.append("Nothing is newly broken, and everything that was checked still is.")
    return "\n".join(lines) + "\n"
