"""One report out of what all units say."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.conformance.analysis.aggregation import RequirementFindings, requirement_verdict, rule_coverage
from fencepost.conformance.analysis.reference_differences import common_decisions, note_ambiguities
from fencepost.conformance.analysis.together import count_rule_checks, describe_target
from fencepost.conformance.results import Failure, Report
from fencepost.model.catalogue.classic import CATALOGUE
from fencepost.traces.pipeline.judge_corpus import Finding
from fencepost.traces.verdict import CheckStatus


@dataclass(slots=True)
class ReportBuilder:
    """What was found so far. Findings may come in any order."""

    findings: dict[str, RequirementFindings] = field(
        default_factory=lambda: {id: RequirementFindings() for id in CATALOGUE}
    )
    rules: dict[str, Counter[str]] = field(default_factory=dict)
    """By trace, how often each rule was seen."""
    violated: dict[str, Counter[str]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    implementations: dict[str, Mapping[str, str]] = field(default_factory=dict)
    decisions: list[Mapping[str, bool]] = field(default_factory=list)
    """The sides that units take where the reference coordinators differ."""
    undecided: list[tuple[str, str]] = field(default_factory=list)
    """Traces, and what was missing to judge something in them."""

    def add_row(self, finding: Finding) -> None:
        """Take in one finding."""
        value = json.loads(finding.value)
        match finding.kind:
            case "verdict":
                self.add_verdict(finding.trace, value)
            case "inconclusive":
                self.undecided.append((finding.trace, value["reason"]))
            case "failure" if value["requirement"] in self.findings:
                self.findings[value["requirement"]].failures.append(read_failure(value["failure"]))
            case "check" if value["requirement"] in self.findings:
                self.findings[value["requirement"]].add_check(CheckStatus(value["status"]), value["note"])

    def add_verdict(self, trace: str, value: Mapping[str, Any]) -> None:
        """A unit is over."""
        self.sources[trace] = value["source"]
        self.decisions.append(value["decisions"])
        self.implementations[trace] = value["implementation"]
        self.rules.setdefault(trace, Counter()).update(value["rules"])
        self.violated.setdefault(trace, Counter()).update(value["violations"])

    def build(self, events: int, seconds: float) -> Report:
        """Everything in one report."""
        for trace, rules in self.rules.items():
            count_rule_checks(self.findings, rules, {each for each, times in self.violated[trace].items() if times})
        for counts in self.violated.values():
            for each, times in counts.items():
                if each in self.findings:
                    self.findings[each].counts[CheckStatus.FAIL] += times
        for found in self.findings.values():
            found.failures.sort(key=lambda failure: (failure.trace, failure.step))
        results = (requirement_verdict(id, found, {}, {}) for id, found in self.findings.items())
        return Report(
            target=describe_target(list(self.sources.values()), list(self.implementations.values())),
            seed=0,
            results=tuple(note_ambiguities(results, common_decisions(self.decisions))),
            rules=rule_coverage(self.rules.values()),
            schedules=len(self.rules),
            events=events,
            seconds=round(seconds, 3),
            undecided=tuple(f"{trace}: {reason}" for trace, reason in sorted(self.undecided)),
            cut_short=bool(self.undecided),
        )


def merge_findings(found: Iterable[Finding], events: int, seconds: float) -> Report:
    """One report out of all findings."""
    total = ReportBuilder()
    for each in found:
        total.add_row(each)
    return total.build(events, seconds)


def read_failure(row: dict[str, Any]) -> Failure:
    """A failure as it was written."""
    return Failure(**{**row, "allowed": tuple(row["allowed"]), "schedule": tuple(row["schedule"])})
