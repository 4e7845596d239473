"""What is known of each operation, and what that says of the requirements for which its answer is marked."""

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.model.catalogue.classic import is_advice
from fencepost.model.classic.rules import RULES
from fencepost.traces.events import Event
from fencepost.traces.verdict import Evidence, Fault, Standing

GATE = frozenset(name for name in RULES if name.startswith("gate."))
"""Rules by which a coordinator is excused around a failover, and what answers given by them are evidence of."""
GATED = frozenset(requirement for name in GATE for requirement in RULES[name].requirements)
VARIES = frozenset({"member"})
"""What Apache Kafka itself has in different ways: the member id beside an error is the one sent, or none (LAT-11)."""


@dataclass(slots=True)
class Judged:
    """What is known of an operation: the rule that explained it, soft differences, and the fault if there is one."""

    rules: frozenset[str] = frozenset()
    soft: frozenset[str] = frozenset()
    fault: Fault | None = None
    waived: tuple[Fault, ...] = ()
    """Faults that leave what else the answer shows as it is."""
    answered: bool = False
    undecided: str = ""


def marked(mark: Event) -> int:
    """The sequence number of the request whose answer is marked, -1 if there is none."""
    return -1 if mark.of is None else mark.of


def weighed(mark: Event, record: Judged | None, settle: Callable[[], None]) -> Evidence:
    """What a marked answer says of a requirement. Once it counts which rule applied, the past is settled first."""
    body = mark.body
    requirement, sequence = body["requirement"], marked(mark)
    fields = frozenset(body.get("fields") or ())

    def stands(standing: Standing, note: str = "", fault: Fault | None = None) -> Evidence:
        if standing is Standing.FAIL and is_advice(requirement):
            seen = f"{fault.observed}; usual is {' or '.join(fault.allowed)}" if fault is not None else note
            return Evidence(requirement, sequence, Standing.UNUSUAL, seen)
        return Evidence(requirement, sequence, standing, note, fault)

    if record is None:
        return stands(Standing.INCONCLUSIVE, "the answer is not in the trace")
    touched = [each for each in record.waived if requirement in each.requirements or touches(fields, each)]
    if touched:
        return stands(Standing.FAIL, fault=touched[0])
    if record.fault is not None:
        if not fields or (fields | {"closed"}) & set(record.fault.fields):
            return stands(Standing.FAIL, fault=record.fault)
        return stands(Standing.INCONCLUSIVE, "blocked by " + ", ".join(record.fault.requirements))
    if record.undecided:
        return stands(Standing.INCONCLUSIVE, record.undecided)
    if not record.answered:
        return stands(Standing.INCONCLUSIVE, "no answer was seen")
    settle()
    if fields & record.soft:
        return stands(Standing.FAIL, "differs in " + ", ".join(sorted(fields & record.soft)))
    if GATE & record.rules and requirement not in GATED:
        return stands(Standing.INCONCLUSIVE, "the target said that it was not ready")
    if not body.get("met", True):
        return stands(Standing.NOT_OBSERVED, body.get("note", "the schedule did not get that far"))
    if "unusual" in body:
        return stands(Standing.UNUSUAL, str(body["unusual"]))
    odd = record.soft - VARIES
    if odd and not fields:
        return stands(Standing.UNUSUAL, f"allowed, but not as Apache Kafka has it: {', '.join(sorted(odd))}")
    return stands(Standing.PASS)


def touches(fields: frozenset[str], waived: Fault) -> bool:
    """Evidence that looks at these fields (all if empty) is touched by a waived fault, if it is more than the way in
    and the number counted from."""
    wrong = set(waived.fields) - {"error"}
    return bool(fields & wrong or (not fields and wrong - {"generation"}))
