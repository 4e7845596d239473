"""Sums over recorded traces, for a report. They can be made in parts, on several machines, and added up."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fencepost.model.catalogue.specification import Rule
from fencepost.traces.events import Header
from fencepost.traces.verdict import TraceVerdict, violations_in


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """Counts of a recorded trace, or of a part of it; `violations` counts by requirement."""

    source: str
    implementation: Mapping[str, str]
    rules: Mapping[str, int]
    violations: Mapping[str, int]
    decisions: Mapping[str, bool]


def summarize_trace(header: Header, verdict: TraceVerdict) -> TraceSummary:
    """The counts of a trace that was judged."""
    violations = Counter(violation.requirement for violation in violations_in(verdict))
    return TraceSummary(
        header.source, dict(header.implementation), dict(verdict.rules), dict(violations), dict(verdict.decisions)
    )


@dataclass(slots=True)
class TraceTotals:
    """The sums over some recorded traces, and what they have in common."""

    traces: int = 0
    source: str | None = None
    """The source of all; None if they differ, or there is no trace."""
    implementation: Mapping[str, str] = field(default_factory=dict)
    """What all say of the implementation."""
    rules: Counter[str] = field(default_factory=Counter)
    """How often each rule explained a response."""
    passes: Counter[str] = field(default_factory=Counter)
    """By requirement, how often one of its rules explained a response in a trace that does not violate it."""
    violations: Counter[str] = field(default_factory=Counter)
    sides: dict[str, frozenset[bool]] = field(default_factory=dict)
    """By reference difference, the sides that the traces are on."""

    def add_trace(self, parts: Sequence[TraceSummary], rules: Mapping[str, Rule]) -> None:
        """Add a trace, by the counts of all its parts."""
        violations = Counter[str]()
        for part in parts:
            violations.update(part.violations)
        for part in parts:
            self.rules.update(part.rules)
            for name, times in part.rules.items():
                for id in rules[name].requirements if name in rules else ():
                    if not violations[id]:
                        self.passes[id] += times
            self.add_decisions(part.decisions)
        self.violations.update(violations)
        self._add_names(1, parts[0].source, parts[0].implementation)

    def add_decisions(self, decisions: Mapping[str, bool]) -> None:
        """Add how a run or a trace decides the reference differences."""
        self._add_sides((name, frozenset((side,))) for name, side in decisions.items())

    def add_totals(self, others: "TraceTotals") -> None:
        """Add the sums over other traces."""
        self.rules.update(others.rules)
        self.passes.update(others.passes)
        self.violations.update(others.violations)
        self._add_sides(others.sides.items())
        if others.traces:
            self._add_names(others.traces, others.source, others.implementation)

    def common_decisions(self) -> dict[str, bool]:
        """The decisions that no two traces contradict each other on; the traces may be of several targets."""
        return {name: True in sides for name, sides in self.sides.items() if len(sides) == 1}

    def describe_target(self) -> dict[str, str]:
        """The source of the traces as "name", and what all of them say of the implementation."""
        name = self.source if self.source is not None else f"{self.traces} traces"
        return {"name": name, **{key: value for key, value in self.implementation.items() if key != "name"}}

    def _add_sides(self, sides: Iterable[tuple[str, frozenset[bool]]]) -> None:
        for name, found in sides:
            self.sides[name] = self.sides.get(name, frozenset()) | found

    def _add_names(self, traces: int, source: str | None, implementation: Mapping[str, str]) -> None:
        if self.traces:
            known = self.implementation.items()
            self.source = source if source == self.source else None
            self.implementation = {key: value for key, value in known if implementation.get(key) == value}
        else:
            self.source, self.implementation = source, dict(implementation)
        self.traces += traces
