"""The verdict on one trace, whoever is judged: violations, check results and their status, and the transitions seen.

A transition is an abstract step of the model, the unit of coverage: the state of the group, the event, the rule that
applied and the state afterwards, each in the words of its protocol.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True, order=True)
class Transition:
    """One kind of step, each part as text."""

    state: str
    event: str
    rule: str
    after: str

    def __str__(self) -> str:
        return f"{self.state} / {self.event} / {self.rule} / {self.after}"

    @classmethod
    def parse(cls, text: str) -> "Transition":
        """The transition with this text, the inverse of `str`. Raises `ValueError`."""
        state, event, rule, after = text.split(" / ")
        return cls(state, event, rule, after)


TransitionFields = tuple[str, str, str, str]
"""The fields of a transition; tuples are faster to make and to count, one for each step of a trace."""


class CheckStatus(StrEnum):
    """How a piece of evidence stands after judging."""

    PASS = "pass"
    UNUSUAL = "unusual"
    """Allowed, but not what the reference does."""
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    NOT_OBSERVED = "not-observed"


PASSING = frozenset({CheckStatus.PASS, CheckStatus.UNUSUAL})
"""How evidence stands that shows a requirement to hold."""
UNCLASSIFIED = "unclassified"
"""In place of a requirement: no requirement speaks of the wrong response, and no behaviour of the model explains it."""


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A wrong field of a response, named as in the messages, with the values expected and observed in words.

    `place` is the row that has the field, if any. The names `early`, `late` and `response` stand for a response that
    came too early, too late or not at all.
    """

    name: str
    expected: str
    observed: str
    place: str = ""

    @property
    def label(self) -> str:
        """The name, with the row if there is one."""
        return f"{self.name} of {self.place}" if self.place else self.name


@dataclass(frozen=True, slots=True)
class Violation:
    """What the model does not allow: a response of a coordinator, or a request that a client sends wrongly or not at
    all. `sequence` is that of the request, or of the news that asks for one.

    `guard` is the guard under which the response seen would be right, and `state` has the values that make it false;
    both are "" where nothing is known of them. Of a client, `state` says in words what it knew.
    """

    sequence: int
    group: str
    api: str
    fields: tuple[str, ...]
    observed: str
    allowed: tuple[str, ...]
    rule: str
    guard: str
    requirements: tuple[str, ...]
    kind: str = ""
    """A name that violations share which are alike in rule, fields, error and requirements."""
    tolerated: bool = False
    """The target goes by its response from now on, and nothing else is the worse for it."""
    differences: tuple[FieldDifference, ...] = ()
    state: str = ""
    timers: tuple[str, ...] = ()
    """The rules of the timers that fired before the response, as far as the diagnosis shows: since the state was known
    for certain, each once."""
    is_shared: bool = False
    """It was found in what concerns no single group: in a lookup, or in a step that a coordinator itself logs."""
    title: str = ""
    """What is wrong, in a line; "" where `differences` say it."""

    @property
    def requirement(self) -> str:
        """The requirement that is violated in the first place, `UNCLASSIFIED` if none speaks of it."""
        return self.requirements[0] if self.requirements else UNCLASSIFIED


def initial_violations(violations: Iterable[Violation]) -> list[Violation]:
    """The violations of each group up to the first after which model and target may disagree on the state.

    Those in what concerns no single group follow from each other alone: a lookup names no group, and that is not the
    group whose name is empty.
    """
    found: list[Violation] = []
    astray: set[tuple[bool, str]] = set()
    for violation in violations:
        subject = (violation.is_shared, violation.group)
        if subject not in astray:
            found.append(violation)
        if not violation.tolerated:
            astray.add(subject)
    return found


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the response to one request, or the request itself, says of one requirement."""

    requirement: str
    sequence: int
    status: CheckStatus
    note: str = ""
    violation: Violation | None = None
    """What is wrong with the response, where that is why it fails."""
    is_checked: bool = True
    """A scenario asks what this response says of this requirement; False for a violation that nobody asked about."""


@dataclass(frozen=True, slots=True)
class TraceVerdict:
    """Everything found in one trace. `decisions` are the reference differences it shows (DIV-nn), by name."""

    violations: tuple[Violation, ...]
    check_results: tuple[CheckResult, ...]
    rules: Mapping[str, int] = field(default_factory=dict)
    decisions: Mapping[str, bool] = field(default_factory=dict)
    inconclusive: tuple[str, ...] = ()
    events: int = 0
    transitions: Mapping[Transition, int] = field(default_factory=dict)
    """The kinds of steps that explain what was seen, with how often."""
    recommendations: frozenset[str] = frozenset()
    """Those of the requirements in `violations` that only say what should be."""

    @property
    def violated(self) -> frozenset[str]:
        """The requirements that are violated."""
        return frozenset(result.requirement for result in violations_in(self))


def violations_in(verdict: TraceVerdict) -> list[CheckResult]:
    """The requirements that a trace violates: by failed checks, and by the rules of violations that no check covers.
    Recommendations are never violated. Where no requirement speaks of a violation, it is `UNCLASSIFIED`."""
    failed = [result for result in verdict.check_results if result.status is CheckStatus.FAIL]
    claimed = {result.sequence for result in failed}
    return failed + [
        CheckResult(id, violation.sequence, CheckStatus.FAIL, violation=violation, is_checked=False)
        for violation in initial_violations(verdict.violations)
        if violation.sequence not in claimed
        for id in violation.requirements or (UNCLASSIFIED,)
        if id not in verdict.recommendations
    ]


def without_remarks(checks: Iterable[CheckResult]) -> list[CheckResult]:
    """The check results that are no remark: none says of a recommendation that it is not kept."""
    return [check for check in checks if check.status is not CheckStatus.UNUSUAL]
