"""The records of the operations of a trace, and the findings in one group."""

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from functools import cache

from fencepost.traces.model_transitions import TransitionFields
from fencepost.traces.verdict import Violation

MAX_RECORDS = 20_000
"""How many judged operations are remembered for checks that come later."""


@cache
def rule_set(rule: str) -> frozenset[str]:
    """The rule alone; one set for all operations that it explains."""
    return frozenset((rule,))


@dataclass(slots=True)
class OperationRecord:
    """The record of one operation: the rules that explain it, and the unusual fields and violations of its response."""

    rules: frozenset[str] = frozenset()
    unusual_fields: frozenset[str] = frozenset()
    violation: Violation | None = None
    tolerated: tuple[Violation, ...] = ()
    """Violations after which the rest of the response still means the same."""
    has_response: bool = False
    is_closed: bool = False
    """The target closed its connection."""
    undecided_reason: str = ""

    def add_rule(self, rule: str) -> None:
        """Remember a rule that explains the operation."""
        self.rules = self.rules | rule_set(rule) if self.rules else rule_set(rule)


class OperationRecords(OrderedDict[int, OperationRecord]):
    """The latest operations of a trace by handle."""

    def of(self, handle: int) -> OperationRecord:
        """Return the record of an operation; if it is new, the oldest may make room for it."""
        known = self.get(handle)
        if known is None:
            known = self[handle] = OperationRecord()
            if len(self) > MAX_RECORDS:
                self.popitem(last=False)
        return known


@dataclass(slots=True)
class GroupFindings:
    """The findings in one group: violations, counts of settled steps by rule and by transition, and open questions."""

    violations: list[Violation] = field(default_factory=list)
    rules: Counter[str] = field(default_factory=Counter)
    transitions: Counter[TransitionFields] = field(default_factory=Counter)
    inconclusive: list[str] = field(default_factory=list)

    def add(self, other: "GroupFindings") -> None:
        """Add what came to light later."""
        self.violations += other.violations
        self.rules.update(other.rules)
        self.transitions.update(other.transitions)
        self.inconclusive += other.inconclusive
