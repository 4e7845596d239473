"""One report out of the rows that the pipeline's workers wrote: that of `fencepost judge` on the same traces."""

import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from pathlib import Path
from typing import Any, NamedTuple

from fencepost.conformance.analysis.causes import schedule_length
from fencepost.conformance.analysis.report_builder import ReportBuilder, TraceSummary
from fencepost.conformance.analysis.root_cause import UNCLASSIFIED
from fencepost.conformance.analysis.trace_report import describe_unreadable
from fencepost.conformance.provenance import Provenance
from fencepost.conformance.reports.typed_json import from_plain
from fencepost.conformance.results import Ending, EndKind, Failure, Report
from fencepost.traces.files.trace_files import TraceError
from fencepost.traces.pipeline.judge_corpus import UNREADABLE, Finding
from fencepost.traces.verdict import CheckStatus

MAX_SHOWN_FAILURES = 20
"""How many failures of a requirement the report has, the shortest ones; all are counted."""
MAX_HELD_FAILURES = 10_000
"""How many failures are held before the longer ones are dropped."""


@dataclass(frozen=True, slots=True)
class RankedFailure:
    """A failure of a requirement in a group; `rank` is its place in the order in which `fencepost judge` has them."""

    requirement: str
    rank: tuple[Any, ...]
    failure: Failure
    group: str | None = None


def shortest_failures(failures: Iterable[RankedFailure], limit: int) -> list[RankedFailure]:
    """The `limit` shortest failures of each requirement, by rank; of unclassified violations the first and the shortest
    of each kind, which are all that a report shows of them."""
    found: dict[Hashable, list[RankedFailure]] = {}
    kept: list[RankedFailure] = []
    for each in sorted(failures, key=lambda each: each.rank):
        kind = each.failure.kind if each.requirement == UNCLASSIFIED else None
        found.setdefault((each.requirement, kind), []).append(each)
    for alike in found.values():
        if alike[0].requirement == UNCLASSIFIED:
            shortest = min(alike, key=lambda each: schedule_length(each.failure))
            kept += [alike[0]] if shortest is alike[0] else [alike[0], shortest]
        else:
            kept += nsmallest(limit, alike, key=lambda each: schedule_length(each.failure))
    return sorted(kept, key=lambda each: each.rank)


class FindingRow(NamedTuple):
    """A finding with its place in the order of `fencepost judge`, which has the traces by path."""

    rank: tuple[Path, int, int]
    trace: str
    value: dict[str, Any]


@dataclass(slots=True)
class CorpusFindings:
    """The findings in a corpus, sorted by kind."""

    verdicts: list[FindingRow] = field(default_factory=list)
    checks: list[FindingRow] = field(default_factory=list)
    undecided: list[FindingRow] = field(default_factory=list)
    unreadable: list[FindingRow] = field(default_factory=list)
    failures: list[RankedFailure] = field(default_factory=list)

    def add(self, finding: Finding) -> None:
        """Add a finding; those that no report is made of are ignored."""
        rows = {
            "verdict": self.verdicts,
            "check": self.checks,
            "inconclusive": self.undecided,
            UNREADABLE: self.unreadable,
        }.get(finding.kind)
        if rows is None and finding.kind != "failure":
            return
        value, path = json.loads(finding.value), Path(finding.trace)
        if rows is not None:
            rows.append(FindingRow((path, finding.bucket, value.get("rank", 0)), finding.trace, value))
            return
        failure = from_plain(Failure, value["failure"])
        self.failures.append(RankedFailure(value["requirement"], (path, *value["rank"]), failure))
        if len(self.failures) > MAX_HELD_FAILURES:
            self.failures = shortest_failures(self.failures, MAX_SHOWN_FAILURES)

    def without_malformed(self) -> "CorpusFindings":
        """The findings by rank, without all that is known of traces with a malformed message: `fencepost judge` says
        nothing of them but that."""
        malformed = {row.trace for row in self.unreadable if row.value["malformed"]}

        def kept(rows: Iterable[FindingRow]) -> list[FindingRow]:
            return sorted((row for row in rows if row.trace not in malformed), key=lambda row: row.rank)

        by_place = sorted(self.unreadable, key=lambda row: row.rank[2], reverse=True)
        first = {row.trace: row for row in by_place if row.value["malformed"]}
        unreadable = sorted([*first.values(), *kept(self.unreadable)], key=lambda row: row.rank)
        failures = [each for each in self.failures if each.failure.trace not in malformed]
        shown = shortest_failures(failures, MAX_SHOWN_FAILURES)
        return CorpusFindings(kept(self.verdicts), kept(self.checks), kept(self.undecided), unreadable, shown)

    def count_files(self) -> int:
        """The number of trace files that the findings are about."""
        return sum(row.value["files"] for row in (*self.verdicts, *self.unreadable))


def merge_findings(findings: Iterable[Finding], seconds: float, provenance: Provenance | None = None) -> Report:
    """The report on all findings, which may come in any order."""
    everything = CorpusFindings()
    for finding in findings:
        everything.add(finding)
    total, found = everything.count_files(), everything.without_malformed()
    builder = ReportBuilder()
    for row in found.verdicts:
        builder.add_trace(row.trace, read_summary(row.value))
    for row in found.checks:
        builder.add_check(row.value["requirement"], CheckStatus(row.value["status"]), row.value["note"])
    for each in found.failures:
        builder.show_failure(each.requirement, each.failure)
    errors = [TraceError(row.trace, row.value["line"], row.value["reason"]) for row in found.unreadable]
    doubts = sorted((row.rank[0], row.trace, row.value["reason"]) for row in found.undecided)
    builder.undecided += (f"{trace}: {reason}" for _, trace, reason in doubts)
    builder.undecided += (f"not judged: {error}" for error in errors)
    judged = sum(row.value["files"] for row in found.verdicts)
    report = builder.build(
        schedules=judged,
        events=sum(row.value["events"] for row in found.verdicts),
        seconds=seconds,
        cut_short=judged < total,
        ended=Ending(EndKind.QUARANTINED, describe_unreadable(errors, total), seconds) if errors else None,
    )
    return replace(report, provenance=provenance)


def read_summary(value: dict[str, Any]) -> TraceSummary:
    """The counts of a shard as `FindingRows` writes them."""
    return TraceSummary(
        value["source"], value["implementation"], value["rules"], value["violations"], value["decisions"]
    )
