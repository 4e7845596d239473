"""A wrong answer in words: what was seen, what would have been right, and which requirement it breaks."""

from fencepost.model.classic.rules import RULES, Rule
from fencepost.traces.judge.diagnosis.diagnosis import ASIDE
from fencepost.traces.judge.diagnosis.wording import errors_in, expected, false_guard, observed
from fencepost.traces.judge.search.configuration import Fault as Misfit
from fencepost.traces.judge.search.configuration import Part
from fencepost.traces.operations import Operation
from fencepost.traces.verdict import Fault


def fault_of(group: str, part: Part, found: Misfit, rules: frozenset[str]) -> Fault:
    """The fault of an answer in this group, in words; `rules` are those that explained it before."""
    operation = part.operation
    # What parked a request long ago is settled, and the search knows nothing of it any more.
    rule = found.rule or min(rules, default="")
    applied = RULES.get(rule)
    body = operation.answer or {}
    allowed = expected(found.expected)
    if "closed" in found.fields:
        allowed = "an answer"
    elif "time" in found.fields and found.expected is not None:
        allowed += " at once"
    requirements = blamed(applied, found)
    wait = f" after {(operation.answered or 0) - operation.sent} ms" if "time" in found.fields else ""
    return Fault(
        sequence=operation.handle - 1,
        group=group,
        api=operation.api,
        fields=tuple(sorted(found.fields)),
        observed="the connection was closed without an answer" if "closed" in found.fields else observed(body) + wait,
        allowed=(allowed,),
        rule=rule,
        guard=false_guard(part.request, operation.api, body, found.world, applied),
        requirements=requirements,
        kind=kind(operation, found, rule, requirements),
    )


def kind(operation: Operation, found: Misfit, rule: str, requirements: tuple[str, ...]) -> str:
    """What faults that are alike have in common: rule, fields, error and what they break. A round that ends at the
    wrong time is one thing, by whatever rule a JoinGroup waited for its end."""
    errors = sorted(errors_in(operation.answer or {}))
    if operation.api == "JoinGroup" and "time" in found.fields and errors == [0]:
        return f"round ends {'early' if found.expected is None else 'late'} {requirements}"
    if found.fields <= ASIDE:
        return f"{sorted(found.fields)} {requirements}"
    return f"{rule} {sorted(found.fields)} {errors} {requirements}"


def blamed(applied: Rule | None, found: Misfit) -> tuple[str, ...]:
    """The requirements that a wrong answer breaks, where no mark says it."""
    if applied is None:
        return ()
    if found.fields == {"generation"} and getattr(found.expected, "generation", 0) == 1:
        return ("GEN-01",)
    group = found.world.group
    first = group is None or group.generation == 0
    if applied.api == "JoinGroup" and "time" in found.fields <= {"time", "error"}:
        # Too late where the last member was there, else too early: before the others came or the delay was over.
        return ("JOIN-27",) if found.expected is not None else ("TIMER-16",) if first else ("JOIN-26",)
    return applied.blamed(found.fields)
