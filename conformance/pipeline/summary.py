"""The rows of a judged corpus in brief: a report and an overview, folded by workers or here."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from fencepost.conformance.pipeline.merge import REPORT_KINDS, ReportPart
from fencepost.conformance.pipeline.overview import OVERVIEW_KINDS, Overview
from fencepost.traces.pipeline.folding import Folding
from fencepost.traces.pipeline.judge_corpus import Finding


@dataclass(slots=True)
class CorpusSummary:
    """What is told of some traces of a corpus."""

    report: ReportPart = field(default_factory=ReportPart)
    overview: Overview = field(default_factory=Overview)


def summarize_rows(rows: Iterable[Finding]) -> CorpusSummary:
    """The summary of rows of `REPORT_KINDS` and `OVERVIEW_KINDS`; those of a trace follow each other."""
    summary = CorpusSummary()

    def report_rows(mine: Iterator[Finding]) -> Iterator[Finding]:
        for row in mine:
            if row.kind in REPORT_KINDS:
                yield row
            else:
                summary.overview.add(row)

    for trace, mine in groupby(rows, key=attrgetter("trace")):
        summary.report.add_trace(trace, report_rows(mine))
    summary.report.drop_long_failures()
    return summary


def merge_summaries(summaries: Iterable[CorpusSummary]) -> CorpusSummary:
    """The summary of all traces."""
    merged = CorpusSummary()
    for each in summaries:
        merged.report.add_part(each.report)
        merged.overview.add_overview(each.overview)
    merged.report.drop_long_failures()
    return merged


SUMMARY = Folding((*REPORT_KINDS, *OVERVIEW_KINDS), summarize_rows, merge_summaries)
"""How the rows of a judged corpus become its summary."""
