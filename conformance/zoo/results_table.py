"""The table of hunts in plain text and Markdown: a line for each faulty coordinator, and a summary."""

from collections.abc import Sequence
from statistics import median

from fencepost.conformance.zoo.results import HuntSummary, ResultRow, ResultTable
from fencepost.conformance.zoo.strategies import HYPOTHESIS, SCHEDULES, WALK

COLUMNS = (
    "bug",
    "what it does",
    "forbidden by",
    "found by",
    "seeds",
    "s",
    "schedules",
    "requests",
    "named",
    "plain Hypothesis",
    "random walk",
)
_NONE = HuntSummary(0, 0)


def table_lines(table: ResultTable) -> list[str]:
    """The table in plain text."""
    head = f"{'bug':8} {'found by':10} {'seeds':>6} {'seconds':>8} {'schedules':>10} {'requests':>9}  requirement"
    return [head, *(row_line(each) for each in table.rows), *summary_lines(table.rows)]


def row_line(row: ResultRow) -> str:
    """The line of one faulty coordinator in plain text."""
    hunts = row.hunts.get(row.found_by, _NONE)
    name = row.name if len(row.name) < 9 else f"{row.name}\n{'':8}"
    if not row.found_by:
        return f"{name:8} not found  {row.reason}"
    return (
        f"{name:8} {row.found_by:10} {f'{hunts.found}/{hunts.of}':>6} {hunts.median_seconds:8.2f} "
        f"{hunts.median_schedules:10.0f} {hunts.median_requests:9.0f}  {row.requirement}"
    )


def summary_lines(rows: Sequence[ResultRow]) -> list[str]:
    """The summary of the rows."""
    found = [row for row in rows if row.found_by]
    drawn = [row.hunts[SCHEDULES] for row in found if row.found_by == SCHEDULES]
    lines = [f"{len(found)} of {len(rows)} found, {len(drawn)} of them by random schedules"]
    if drawn:
        lines[0] += (
            f"; median {median(each.median_seconds for each in drawn):.1f} s and "
            f"{median(each.median_requests for each in drawn):.0f} requests"
        )
    for method, title in ((HYPOTHESIS, "plain Hypothesis"), (WALK, "a random walk")):
        tried = [row.hunts[method] for row in rows if method in row.hunts]
        if tried:
            lines.append(f"{title} found {sum(each.found > 0 for each in tried)} of {len(tried)}")
    return lines


def render_markdown(table: ResultTable) -> str:
    """The table as a page in Markdown."""
    page = [
        "# The zoo",
        "",
        "Bugs that coordinators shipped, put back into the bundled one, and what finds them, seen by `fencepost zoo`:",
        f"{table.seeds} seeds each, {table.baseline_seeds} for plain Hypothesis (one request for each rule) and for a",
        f"random walk, each for at most {table.seconds:.0f} s of one core. Medians are of what found something.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
        *(markdown_row(row) for row in table.rows),
        "",
        *(f"{line}." for line in summary_lines(table.rows)),
    ]
    return "\n".join(page) + "\n"


def markdown_row(row: ResultRow) -> str:
    """The row of one faulty coordinator in Markdown."""
    hunts = row.hunts.get(row.found_by, _NONE)
    by = row.found_by if row.found_by in ("", SCHEDULES) else f"{row.found_by}: {' '.join(row.shortest)}"
    figures = [f"{hunts.found}/{hunts.of}", f"{hunts.median_seconds:.1f}", f"{hunts.median_schedules:.0f}"]
    cells = [
        row.name,
        row.sentence,
        ", ".join(row.breaks),
        by or f"not found: {row.reason}",
        *(figures if row.found_by else ["", "", ""]),
        f"{hunts.median_requests:.0f}" if row.found_by else "",
        row.requirement,
        baseline_cell(row.hunts.get(HYPOTHESIS)),
        baseline_cell(row.hunts.get(WALK)),
    ]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def baseline_cell(hunts: HuntSummary | None) -> str:
    """The figures of a baseline."""
    if hunts is None:
        return ""
    return f"{hunts.found}/{hunts.of}" + (f", {hunts.median_seconds:.1f} s" if hunts.found else "")
