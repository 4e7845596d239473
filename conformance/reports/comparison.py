"""Reports side by side as documents: versions of a target, or several targets, and what changed between two."""

from collections.abc import Iterator, Sequence

from fencepost.conformance.analysis.causes import compare_reports
from fencepost.conformance.reports.document import (
    RICH_MEDIA,
    Block,
    Document,
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
    sign_of,
)
from fencepost.conformance.reports.report import describe_report
from fencepost.conformance.reports.words import fold_ids, name_of, outcome_line
from fencepost.conformance.results import Report, RequirementResult

NO_CHANGE = "Nothing is newly broken, and everything that was checked still is."


def describe_reports(reports: Sequence[Report]) -> Document:
    """The document with a line for each of several reports; a page has a column of verdicts for each."""
    lines = (Headline(f"{name_of(report)}: {outcome_line(report)}") for report in reports)
    head = Only(RICH_MEDIA, (Headline(f"{len(reports)} reports of Fencepost"),))
    terminal = Only(Medium.TERMINAL, (Part("", tuple(lines)),))
    return Document("Fencepost: several reports", (head, terminal, *report_sections(reports)))


def report_sections(reports: Sequence[Report]) -> Iterator[Block]:
    """The reports in a table, and their verdicts side by side."""
    starts = (report.provenance.started if report.provenance is not None else "" for report in reports)
    rows = tuple((name_of(one), outcome_line(one), start) for one, start in zip(reports, starts, strict=True))
    table = Table("reports", ("target", "outcome", "date"), rows)
    yield Only(RICH_MEDIA, (Section("reports", "Reports", (table,)),))
    by_id = [{result.id: result for result in report.results} for report in reports]
    requirements = reports[0].specification.requirements
    cells = tuple(
        (
            (Span(id, Style.STRONG), f" {requirements[id].title if id in requirements else ''}"),
            *(verdict_cell(results.get(id)) for results in by_id),
        )
        for id in dict.fromkeys(id for results in by_id for id in results)
    )
    verdicts = Table("verdicts", ("requirement", *map(name_of, reports)), cells, is_searched=True)
    yield Only(Medium.PAGE, (Section("requirements", "Requirements", (verdicts,)),))


def verdict_cell(result: RequirementResult | None) -> Text:
    """A verdict with its sign."""
    return Span("not asked", Style.SOFT) if result is None else sign_of(result.verdict)


def describe_comparison(old: Report, new: Report) -> Document:
    """The document of what changed since an older report; the summary of a job has the newer report too."""
    changes = compare_reports(old, new)
    requirements = new.specification.requirements
    rows = [("before", (f"{name_of(old)}: {outcome_line(old)}",)), ("now", (outcome_line(new),))]
    for label, ids in (
        ("newly broken", changes.broken),
        ("mended", changes.mended),
        ("not checked", changes.no_longer_checked),
        ("newly checked", changes.newly_checked),
    ):
        rows += [(label, (f"{len(ids)}: {fold_ids(ids, requirements)}",))] if ids else []
    told: tuple[Block, ...] = (Paragraph(f"Target: {name_of(new)}"), Pairs(tuple(rows)))
    told += () if changes.is_worse else (Paragraph(NO_CHANGE),)
    return Document(
        f"Fencepost: {name_of(new)}, compared",
        (
            Only(Medium.SUMMARY, describe_report(new).blocks),
            Only(Medium.PAGE, (Headline("2 reports of Fencepost"),)),
            Section("changes", f"Since {name_of(old)}", (Part("", told),)),
            Only(Medium.PAGE, tuple(report_sections([old, new]))),
        ),
    )
