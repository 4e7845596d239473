"""One report out of what all units say."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.conformance.analysis.aggregation import Findings, coverage, decide
from fencepost.conformance.analysis.reference_differences import agreed, noted
from fencepost.conformance.analysis.together import count_rules, watched
from fencepost.conformance.results import Failure, Report
from fencepost.model.catalogue.classic import CATALOGUE
from fencepost.traces.pipeline.judge_corpus import Finding
from fencepost.traces.verdict import Standing


@dataclass(slots=True)
class Sum:
    """What was found so far. Findings may come in any order."""

    findings: dict[str, Findings] = field(default_factory=lambda: {id: Findings() for id in CATALOGUE})
    rules: dict[str, Counter[str]] = field(default_factory=dict)
    """By trace, how often each rule was seen."""
    violated: dict[str, Counter[str]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    implementations: dict[str, Mapping[str, str]] = field(default_factory=dict)
    decisions: list[Mapping[str, bool]] = field(default_factory=list)
    """The sides that units take where the reference coordinators differ."""
    undecided: list[tuple[str, str]] = field(default_factory=list)
    """Traces, and what was missing to judge something in them."""

    def add(self, finding: Finding) -> None:
        """Take in one finding."""
        value = json.loads(finding.value)
        match finding.kind:
            case "verdict":
                self.concluded(finding.trace, value)
            case "inconclusive":
                self.undecided.append((finding.trace, value["reason"]))
            case "violation" if value["requirement"] in self.findings:
                self.findings[value["requirement"]].failures.append(failure_of(value["failure"]))
            case "evidence" if value["requirement"] in self.findings:
                self.findings[value["requirement"]].weigh(Standing(value["standing"]), value["note"])

    def concluded(self, trace: str, value: Mapping[str, Any]) -> None:
        """A unit is over."""
        self.sources[trace] = value["source"]
        self.decisions.append(value["decisions"])
        self.implementations[trace] = value["implementation"]
        self.rules.setdefault(trace, Counter()).update(value["rules"])
        self.violated.setdefault(trace, Counter()).update(value["violations"])

    def report(self, events: int, seconds: float) -> Report:
        """Everything in one report."""
        for trace, rules in self.rules.items():
            count_rules(self.findings, rules, {each for each, times in self.violated[trace].items() if times})
        for counts in self.violated.values():
            for each, times in counts.items():
                if each in self.findings:
                    self.findings[each].standings[Standing.FAIL] += times
        for found in self.findings.values():
            found.failures.sort(key=lambda failure: (failure.trace, failure.step))
        results = (decide(id, found, {}, {}) for id, found in self.findings.items())
        return Report(
            target=watched(list(self.sources.values()), list(self.implementations.values())),
            seed=0,
            results=tuple(noted(results, agreed(self.decisions))),
            rules=coverage(self.rules.values()),
            schedules=len(self.rules),
            events=events,
            seconds=round(seconds, 3),
            undecided=tuple(f"{trace}: {reason}" for trace, reason in sorted(self.undecided)),
            cut_short=bool(self.undecided),
        )


def summed(found: Iterable[Finding], events: int, seconds: float) -> Report:
    """One report out of all findings."""
    total = Sum()
    for each in found:
        total.add(each)
    return total.report(events, seconds)


def failure_of(row: dict[str, Any]) -> Failure:
    """A failure as it was written."""
    return Failure(**{**row, "allowed": tuple(row["allowed"]), "schedule": tuple(row["schedule"])})
