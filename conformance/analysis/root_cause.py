"""Which violations stand by themselves, and which follow from another one.

A coordinator that does one thing wrong gives wrong answers in many situations, most of them set up to look at something
else. Only the requirement that speaks of the wrong thing is to be reported for it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fencepost.conformance.execution.play import Played
from fencepost.model.catalogue.classic import is_advice
from fencepost.model.catalogue.classic.prerequisites import PRESUMED
from fencepost.model.classic.rules import RULES
from fencepost.traces.verdict import KEPT, Fault, Standing, TraceVerdict

COARSE = frozenset({"error"})
"""Fields that nearly every requirement looks at; the others each belong to a few that speak of them."""
IN_PASSING = "blocked by another violation: it holds wherever a scenario looks at it"


@dataclass(frozen=True, slots=True)
class Violation:
    """A requirement that the answer to a request broke. `fault` is None where only a mark makes it a violation."""

    requirement: str
    sequence: int
    fault: Fault | None
    note: str = ""
    marked: bool = True
    """A scenario looked at this answer for this requirement; else it is blamed in passing."""


def violations(verdict: TraceVerdict) -> list[Violation]:
    """What a trace shows violated, by marks and by the rules of faults that nothing marks. Advice is never violated."""
    failed = [mark for mark in verdict.evidence if mark.standing is Standing.FAIL]
    marked = [Violation(mark.requirement, mark.sequence, mark.fault, mark.note) for mark in failed]
    claimed = {mark.sequence for mark in failed}
    unmarked = [fault for fault in first_faults(verdict) if fault.sequence not in claimed]
    return marked + [
        Violation(each, fault.sequence, fault, marked=False)
        for fault in unmarked
        for each in fault.requirements
        if not is_advice(each)
    ]


def first_faults(verdict: TraceVerdict) -> list[Fault]:
    """The faults up to the first in each group that may have led the model astray; later ones need a mark."""
    found: list[Fault] = []
    astray: set[str] = set()
    for fault in verdict.faults:
        if fault.group not in astray:
            found.append(fault)
        if not fault.waived:
            astray.add(fault.group)
    return found


def broken(played: Played) -> frozenset[str]:
    """The requirements that a trace shows violated."""
    return frozenset(violation.requirement for violation in violations(played.verdict))


class Blame:
    """What all runs show broken, and what is behind it."""

    def __init__(self, runs: Sequence[Played]) -> None:
        self.held = held(runs)
        self.owners = owners_of(runs, self.held)
        self.marked: dict[str, list[str]] = {}
        """By kind of fault, the requirements that scenarios looked at and found broken by it."""
        self.crashes: list[str] = []
        """Those of them that a crash of the target breaks."""
        self.broken: frozenset[str] = frozenset()
        """The requirements with violations that are nobody's consequence."""
        found = [(each, played) for played in runs for each in violations(played.verdict)]
        for each, played in found:
            if each.marked and each.fault is not None:
                self.marked.setdefault(each.fault.kind, []).append(each.requirement)
                if is_crash(each.fault, played):
                    self.crashes.append(each.requirement)
        self.broken = frozenset(each.requirement for each, played in found if not self.behind(each, played))

    def behind(self, violation: Violation, played: Played) -> str:
        """Why a violation is only a consequence; "" if it stands by itself."""
        id, fault = violation.requirement, violation.fault
        others: Iterable[str] = presumed(id) & self.broken
        if fault is not None:
            owner = self.owners.get(fault.kind, id)
            if id not in (owner, *speaking_of(fault)):
                others = (owner,)
            elif not violation.marked and id not in played.scenario.requirements:
                same = self.crashes if is_crash(fault, played) else self.marked.get(fault.kind, [])
                others = others if id in same else same or others
                if not others and self.marked and id in self.held:
                    return IN_PASSING
        return "blocked by " + ", ".join(sorted(set(others))) if others else ""


def is_crash(fault: Fault | None, played: Played) -> bool:
    """The target went down instead of answering."""
    return fault is not None and played.crashed and "closed" in fault.fields


def speaking_of(fault: Fault) -> tuple[str, ...]:
    """The requirements that speak of what a fault shows."""
    rule = RULES.get(fault.rule)
    return fault.requirements + (rule.requirements if rule is not None else ())


def presumed(id: str) -> frozenset[str]:
    """Everything that a requirement presumes, and what that presumes."""
    found: set[str] = set()
    todo = [id]
    while todo:
        for each in PRESUMED.get(todo.pop(), ()):
            if each not in found:
                found.add(each)
                todo.append(each)
    return frozenset(found)


def held(runs: Sequence[Played]) -> frozenset[str]:
    """The requirements that are shown to hold somewhere."""
    return frozenset(mark.requirement for played in runs for mark in played.verdict.evidence if mark.standing in KEPT)


def owners_of(runs: Sequence[Played], held: frozenset[str]) -> dict[str, str]:
    """The requirement that speaks of each kind of fault, where it is shown broken and never shown to hold.

    The same wrong answer elsewhere is a consequence, whatever else a scenario wanted to show by it.
    """
    owners: dict[str, str] = {}
    for played in runs:
        marked = {(mark.sequence, mark.requirement) for mark in played.verdict.evidence}
        for violation in violations(played.verdict):
            fault, owner = violation.fault, violation.requirement
            if fault is None or owner not in fault.requirements or not (fault.waived or set(fault.fields) <= COARSE):
                continue
            if (violation.sequence, owner) in marked or owner not in held:
                owners.setdefault(fault.kind, owner)
    return owners
