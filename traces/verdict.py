"""The verdict on one trace: violations, check results and their status."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fencepost.traces.model_transitions import Transition


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
    """A response that the model does not allow. `sequence` is that of the request.

    `guard` is the guard under which the response seen would be right, and `state` has the values that make it false;
    both are "" where nothing is known of them.
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
    """The same for violations that are alike: the same rule, fields, error and requirements."""
    tolerated: bool = False
    """The target goes by its response from now on, and nothing else is the worse for it."""
    differences: tuple[FieldDifference, ...] = ()
    state: str = ""
    timers: tuple[str, ...] = ()
    """The rules of the timers that fired before the response, as far as the diagnosis shows: since the state was known
    for certain, each once."""
    is_shared: bool = False
    """It was found in what concerns no single group: in a lookup, or in a step that a coordinator itself logs."""


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
    """What the response to one checked request says of one requirement."""

    requirement: str
    sequence: int
    status: CheckStatus
    note: str = ""
    violation: Violation | None = None
    """What is wrong with the response, where that is why it fails."""


@dataclass(frozen=True, slots=True)
class TraceVerdict:
    """Everything found in one trace. `decisions` are the reference differences it shows (DIV-nn), by name."""

    violations: tuple[Violation, ...]
    check_results: tuple[CheckResult, ...]
    rules: Mapping[str, int]
    decisions: Mapping[str, bool] = field(default_factory=dict)
    inconclusive: tuple[str, ...] = ()
    events: int = 0
    transitions: Mapping[Transition, int] = field(default_factory=dict)
    """The kinds of steps that explain what was seen, with how often."""
    recommendations: frozenset[str] = frozenset()
    """Those of the requirements in `violations` that only say what should be."""


def without_remarks(checks: Iterable[CheckResult]) -> list[CheckResult]:
    """The check results that are no remark: none says of a recommendation that it is not kept."""
    return [check for check in checks if check.status is not CheckStatus.UNUSUAL]
