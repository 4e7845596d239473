"""What is known of each operation, and what that says of the requirements for which its answer is marked."""

from collections.abc import Callable

from fencepost.model.catalogue.classic import is_recommendation
from fencepost.model.classic.rules import RULES
from fencepost.traces.events import Event
from fencepost.traces.judge.groups.records import OperationRecord
from fencepost.traces.verdict import CheckResult, CheckStatus, Violation

UNAVAILABLE_RULES = frozenset(name for name in RULES if name.startswith("gate."))
"""Rules by which a coordinator is excused around a failover, and what answers given by them are evidence of."""
UNAVAILABLE_REQUIREMENTS = frozenset(
    requirement for name in UNAVAILABLE_RULES for requirement in RULES[name].requirements
)
VARYING_FIELDS = frozenset({"member"})
"""What Apache Kafka itself has in different ways: the member id beside an error is the one sent, or none (LAT-11)."""


def checked_sequence(check: Event) -> int:
    """The sequence number of the request whose answer is marked, -1 if there is none."""
    return -1 if check.of is None else check.of


def evaluate_check(check: Event, record: OperationRecord | None, commit_histories: Callable[[], None]) -> CheckResult:
    """What a marked answer says of a requirement. Once it counts which rule applied, the past is settled first."""
    body = check.body
    requirement, sequence = body["requirement"], checked_sequence(check)
    fields = frozenset(body.get("fields") or ())

    def make_result(standing: CheckStatus, note: str = "", fault: Violation | None = None) -> CheckResult:
        if standing is CheckStatus.FAIL and is_recommendation(requirement):
            seen = f"{fault.observed}; usual is {' or '.join(fault.allowed)}" if fault is not None else note
            return CheckResult(requirement, sequence, CheckStatus.UNUSUAL, seen)
        return CheckResult(requirement, sequence, standing, note, fault)

    if record is None:
        return make_result(CheckStatus.INCONCLUSIVE, "the answer is not in the trace")
    touched = [each for each in record.tolerated if requirement in each.requirements or is_check_affected(fields, each)]
    if touched:
        return make_result(CheckStatus.FAIL, fault=touched[0])
    if record.violation is not None:
        if not fields or (fields | {"closed"}) & set(record.violation.fields):
            return make_result(CheckStatus.FAIL, fault=record.violation)
        return make_result(CheckStatus.INCONCLUSIVE, "blocked by " + ", ".join(record.violation.requirements))
    if record.undecided_reason:
        return make_result(CheckStatus.INCONCLUSIVE, record.undecided_reason)
    if not record.has_response:
        return make_result(CheckStatus.INCONCLUSIVE, "no answer was seen")
    commit_histories()
    if fields & record.unusual_fields:
        return make_result(CheckStatus.FAIL, "differs in " + ", ".join(sorted(fields & record.unusual_fields)))
    if UNAVAILABLE_RULES & record.rules and requirement not in UNAVAILABLE_REQUIREMENTS:
        return make_result(CheckStatus.INCONCLUSIVE, "the target said that it was not ready")
    if not body.get("met", True):
        return make_result(CheckStatus.NOT_OBSERVED, body.get("note", "the schedule did not get that far"))
    if "unusual" in body:
        return make_result(CheckStatus.UNUSUAL, str(body["unusual"]))
    odd = record.unusual_fields - VARYING_FIELDS
    if odd and not fields:
        return make_result(CheckStatus.UNUSUAL, f"allowed, but not as Apache Kafka has it: {', '.join(sorted(odd))}")
    return make_result(CheckStatus.PASS)


def is_check_affected(fields: frozenset[str], violation: Violation) -> bool:
    """Evidence that looks at these fields (all if empty) is touched by a waived fault, if it is more than the way in
    and the number counted from."""
    wrong = set(violation.fields) - {"error"}
    return bool(fields & wrong or (not fields and wrong - {"generation"}))
