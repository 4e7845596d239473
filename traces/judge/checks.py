"""The check results for a requirement, from the record of the operation that a check names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fencepost.traces.events import Event
from fencepost.traces.judge.groups.group_judge import MISSING, OperationRecord, name_blocker
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol
from fencepost.traces.verdict import CheckResult, CheckStatus, Violation

DIFFERS_IN = "differs in "
"""How the note on a check begins that fails by fields that are unusual."""


def checked_sequence(check: Event) -> int:
    """The sequence number of the request whose response is checked, -1 if there is none."""
    return -1 if check.of is None else check.of


class CheckedOperation:
    """A check, and what is on record of its operation."""

    def __init__(self, check: Event, record: OperationRecord, protocol: JudgedProtocol) -> None:
        self.body = check.body
        self.requirement: str = check.body["requirement"]
        self.fields = frozenset(check.body.get("fields") or ())
        """The fields of the response that the check is about; all if empty."""
        self.record = record
        self.protocol = protocol

    @cached_property
    def tolerated(self) -> Violation | None:
        """The first tolerated violation that the check is about."""
        for violation in self.record.tolerated:
            if self.requirement in violation.requirements or self.protocol.is_check_affected(self.fields, violation):
                return violation
        return None

    @property
    def is_violated(self) -> bool:
        """The violation on record is in what the check is about."""
        violation = self.record.violation
        if violation is None:
            return False
        if MISSING in violation.fields or self.is_beside(violation):
            return self.requirement in violation.requirements
        return not self.fields or bool((self.fields | {"closed"}) & set(violation.fields))

    def is_beside(self, violation: Violation) -> bool:
        """The violation says nothing of the rest of the response, and the check is not about its fields."""
        if "time" in violation.fields and not self.record.is_explained:
            return False
        if "time" in violation.fields and not self.fields and violation.api not in self.protocol.collective_apis:
            return False
        return self.are_beside(frozenset(violation.fields))

    def are_beside(self, wrong: frozenset[str]) -> bool:
        """The fields say nothing of the rest of the response, and the check is not about them."""
        return bool(wrong) and wrong <= self.protocol.independent_fields and not wrong & self.fields

    @property
    def is_blocked(self) -> bool:
        """The violation on record leaves open what the check is about."""
        return self.record.violation is not None and not self.is_beside(self.record.violation)

    @property
    def is_undecided(self) -> bool:
        """Something else leaves open what the check is about."""
        return bool(self.record.undecided_reason) and not self.are_beside(self.record.undecided_fields)

    @property
    def unusual_fields(self) -> list[str]:
        """The unusual fields that the check is about."""
        return sorted(self.fields & self.record.unusual_fields)

    @property
    def odd_fields(self) -> list[str]:
        """The unusual fields, where the check is about all of the response."""
        return [] if self.fields else sorted(self.record.unusual_fields - self.protocol.varying_fields)

    @property
    def has_closed(self) -> bool:
        """The target closed the connection, which the check allows."""
        return self.record.is_closed and bool(self.body.get("may_close"))

    @property
    def is_excused(self) -> bool:
        """The coordinator was not available, and the requirement is not about that."""
        return self.protocol.is_check_excused(self.requirement, self.record.rules)


@dataclass(frozen=True, slots=True)
class CheckRule:
    """When a check comes out with a status, the note to it, and the violation that is the reason."""

    applies: Callable[[CheckedOperation], Any]
    status: CheckStatus
    note: Callable[[CheckedOperation], str] = lambda of: ""
    violation: Callable[[CheckedOperation], Violation | None] = lambda of: None


RULES_BY_RECORD = (
    CheckRule(lambda of: of.tolerated, CheckStatus.FAIL, violation=lambda of: of.tolerated),
    CheckRule(lambda of: of.is_violated, CheckStatus.FAIL, violation=lambda of: of.record.violation),
    CheckRule(
        lambda of: of.is_blocked,
        CheckStatus.INCONCLUSIVE,
        lambda of: name_blocker(of.record.violation) if of.record.violation is not None else "",
    ),
    CheckRule(lambda of: of.has_closed and of.body.get("met", True), CheckStatus.PASS),
    CheckRule(lambda of: of.is_undecided, CheckStatus.INCONCLUSIVE, lambda of: of.record.undecided_reason),
    CheckRule(lambda of: not of.record.has_response, CheckStatus.INCONCLUSIVE, lambda of: "no answer was seen"),
)
"""Rules for what is on record at once, the first that applies counts."""
RULES_BY_HISTORY = (
    CheckRule(lambda of: of.unusual_fields, CheckStatus.FAIL, lambda of: DIFFERS_IN + ", ".join(of.unusual_fields)),
    CheckRule(lambda of: of.is_excused, CheckStatus.INCONCLUSIVE, lambda of: "the target said that it was not ready"),
    CheckRule(
        lambda of: not of.body.get("met", True),
        CheckStatus.NOT_OBSERVED,
        lambda of: of.body.get("note", "the schedule did not get that far"),
    ),
    CheckRule(lambda of: "unusual" in of.body, CheckStatus.UNUSUAL, lambda of: str(of.body["unusual"])),
    CheckRule(
        lambda of: of.odd_fields,
        CheckStatus.UNUSUAL,
        lambda of: f"allowed, but not as Apache Kafka has it: {', '.join(of.odd_fields)}",
    ),
    CheckRule(lambda of: True, CheckStatus.PASS),
)
"""Rules for what is on record once the past of all groups is settled, the first that applies counts."""


def evaluate_check(
    check: Event, record: OperationRecord | None, protocol: JudgedProtocol, commit_histories: Callable[[], None]
) -> CheckResult:
    """What the response to the checked request says of the requirement.

    `commit_histories` settles the past of all groups; it is called once it matters which rule applied.
    """
    if record is None:
        requirement = check.body["requirement"]
        return CheckResult(
            requirement, checked_sequence(check), CheckStatus.INCONCLUSIVE, "the answer is not in the trace"
        )
    operation = CheckedOperation(check, record, protocol)
    rule = first_applying(RULES_BY_RECORD, operation)
    if rule is None:
        commit_histories()
        rule = first_applying(RULES_BY_HISTORY, operation)
        assert rule is not None
    status, note, violation = rule.status, rule.note(operation), rule.violation(operation)
    if status is CheckStatus.FAIL and protocol.specification.is_recommendation(operation.requirement):
        status = CheckStatus.UNUSUAL
        if violation is not None:
            note = f"{violation.observed}; usual is {' or '.join(violation.allowed)}"
        violation = None
    return CheckResult(operation.requirement, checked_sequence(check), status, note, violation)


def first_applying(rules: Sequence[CheckRule], operation: CheckedOperation) -> CheckRule | None:
    """The first rule that applies, None if none does."""
    return next((rule for rule in rules if rule.applies(operation)), None)
