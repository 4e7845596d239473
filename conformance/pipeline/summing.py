"""One report out of what all units say."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.conformance.aggregation import Findings, coverage, decide
from fencepost.conformance.results import Failure, Report
from fencepost.model.catalogue import CATALOGUE
from fencepost.model.rules import RULES
from fencepost.traces.judge.verdict import Standing
from fencepost.traces.pipeline.judging import Finding


@dataclass(slots=True)
class Sum:
    """What was found so far. Findings may come in any order."""

    findings: dict[str, Findings] = field(default_factory=lambda: {id: Findings() for id in CATALOGUE})
    rules: dict[str, Counter[str]] = field(default_factory=dict)
    """By trace, how often each rule was seen."""
    violated: dict[str, Counter[str]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    implementations: dict[str, Mapping[str, str]] = field(default_factory=dict)
    inconclusive: int = 0

    def add(self, finding: Finding) -> None:
        """Take in one finding."""
        value = json.loads(finding.value)
        match finding.kind:
            case "verdict":
                self.concluded(finding.trace, value)
            case "violation" if value["requirement"] in self.findings:
                self.findings[value["requirement"]].failures.append(failure_of(value["failure"]))
            case "evidence" if value["requirement"] in self.findings:
                self.findings[value["requirement"]].weigh(Standing(value["standing"]), value["note"])

    def concluded(self, trace: str, value: Mapping[str, Any]) -> None:
        """A unit is over."""
        self.sources[trace] = value["source"]
        self.implementations[trace] = value["implementation"]
        self.rules.setdefault(trace, Counter()).update(value["rules"])
        self.violated.setdefault(trace, Counter()).update(value["violations"])
        self.inconclusive += value["inconclusive"]

    def report(self, events: int, seconds: float) -> Report:
        """Everything in one report."""
        for trace, rules in self.rules.items():
            for name, seen in rules.items():
                for each in RULES[name].requirements if name in RULES else ():
                    if not self.violated[trace][each]:
                        self.findings[each].standings[Standing.PASS] += seen
        for counts in self.violated.values():
            for each, times in counts.items():
                if each in self.findings:
                    self.findings[each].standings[Standing.FAIL] += times
        for found in self.findings.values():
            found.failures.sort(key=lambda failure: (failure.trace, failure.step))
        return Report(
            target=self.target(),
            seed=0,
            results=tuple(decide(id, found, {}, {}) for id, found in self.findings.items()),
            rules=coverage(self.rules.values()),
            schedules=len(self.rules),
            events=events,
            seconds=round(seconds, 3),
            cut_short=self.inconclusive > 0,
        )

    def target(self) -> dict[str, str]:
        """What was watched, as far as the traces agree on it."""
        sources = list(dict.fromkeys(self.sources.values()))
        common = Counter(item for each in self.implementations.values() for item in each.items())
        agreed = {key: value for (key, value), times in common.items() if times == len(self.implementations)}
        name = sources[0] if len(sources) == 1 else f"{len(self.rules)} traces"
        return {"name": name, **{key: value for key, value in agreed.items() if key != "name"}}


def summed(found: Iterable[Finding], events: int, seconds: float) -> Report:
    """One report out of all findings."""
    total = Sum()
    for each in found:
        total.add(each)
    return total.report(events, seconds)


def failure_of(row: dict[str, Any]) -> Failure:
    """A failure as it was written."""
    return Failure(**{**row, "allowed": tuple(row["allowed"]), "schedule": tuple(row["schedule"])})
