"""One report out of the rows that the pipeline's workers wrote."""

import json
from collections.abc import Iterable
from typing import Any

from fencepost.conformance.analysis.report_builder import ReportBuilder, TraceSummary
from fencepost.conformance.results import Failure, Report
from fencepost.traces.pipeline.judge_corpus import Finding
from fencepost.traces.verdict import CheckStatus, FieldDifference


def merge_findings(findings: Iterable[Finding], events: int, seconds: float) -> Report:
    """The report on all findings, which may come in any order."""
    builder = ReportBuilder()
    undecided: list[tuple[str, str]] = []
    for finding in findings:
        value = json.loads(finding.value)
        match finding.kind:
            case "verdict":
                builder.add_trace(finding.trace, read_summary(value))
            case "inconclusive":
                undecided.append((finding.trace, value["reason"]))
            case "failure":
                builder.show_failure(value["requirement"], read_failure(value["failure"]))
            case "check":
                builder.add_check(value["requirement"], CheckStatus(value["status"]), value["note"])
    for requirement in builder.findings.values():
        requirement.failures.sort(key=lambda failure: (failure.trace, failure.step))
    builder.undecided += (f"{trace}: {reason}" for trace, reason in sorted(undecided))
    return builder.build(schedules=len(builder.traces), events=events, seconds=seconds)


def read_summary(value: dict[str, Any]) -> TraceSummary:
    """The counts of a shard as `FindingRows` writes them."""
    return TraceSummary(
        value["source"], value["implementation"], value["rules"], value["violations"], value["decisions"]
    )


def read_failure(row: dict[str, Any]) -> Failure:
    """A failure as `FindingRows` writes it."""
    lists = {"allowed": tuple(row["allowed"]), "schedule": tuple(row["schedule"])}
    differences = tuple(FieldDifference(**each) for each in row["differences"])
    return Failure(**{**row, **lists, "differences": differences})
