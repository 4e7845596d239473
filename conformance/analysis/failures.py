"""Failures for reports: the wrong fields of a response and the schedule that leads to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fencepost.conformance.analysis.root_cause import RequirementViolation
from fencepost.conformance.analysis.schedule_text import MemberLabels, schedule_lines
from fencepost.conformance.results import Failure
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.model.catalogue.specification import Rule, Specification
from fencepost.traces.events import Event, Kind
from fencepost.traces.judge.diagnosis.wording import format_observed
from fencepost.traces.verdict import FieldDifference, Violation


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a trace is found, and the command that runs its schedule again ("" if there is none)."""

    trace: str
    replay: str


def build_failure(
    events: Sequence[Event],
    violation: RequirementViolation,
    origin: Origin,
    *,
    replayed: bool,
    specification: Specification = DEFAULT_SPECIFICATION,
) -> Failure:
    """A violation as a failure, with the requests of its trace up to the violation as the schedule."""
    sequence, mismatch, note = violation.sequence, violation.violation, violation.note
    labels = MemberLabels(events)
    schedule, wrong_step = schedule_lines(events, sequence, labels)
    if mismatch is None:
        return Failure(
            trace=origin.trace,
            step=sequence,
            observed=f"{describe_response(events, sequence)} ({note})",
            allowed=(note,),
            guard="",
            schedule=schedule,
            replay=origin.replay,
            replayed=replayed,
            title=note,
            wrong_step=wrong_step,
            kind=note,
        )
    return Failure(
        trace=origin.trace,
        step=sequence,
        observed=mismatch.observed,
        allowed=mismatch.allowed,
        guard=labels.rename(mismatch.guard) if "error" in mismatch.fields or not mismatch.state else "",
        schedule=schedule,
        replay=origin.replay,
        replayed=replayed,
        title=describe_violation(mismatch),
        differences=tuple(rename_members(each, labels) for each in mismatch.differences),
        rule=describe_rule(mismatch.rule, specification.rules),
        state=labels.rename(mismatch.state),
        wrong_step=wrong_step,
        kind=mismatch.kind,
    )


def describe_violation(violation: Violation) -> str:
    """What is wrong with a response, in a line."""
    names = tuple(dict.fromkeys(each.name for each in violation.differences))
    match names:
        case ():
            return f"{violation.api} has a wrong response"
        case ("response", *_):
            return f"{violation.api} has no response"
        case ("early" | "late" as when, *_):
            return f"{violation.api} response is too {when}"
        case _:
            return f"{violation.api} response has the wrong {' and '.join(names)}"


def describe_rule(name: str, rules: Mapping[str, Rule]) -> str:
    """A rule of the model by its name and its guard."""
    return f"{name}: {rules[name].guard}" if name in rules else name


def rename_members(difference: FieldDifference, labels: MemberLabels) -> FieldDifference:
    """The difference with members by their labels."""
    return replace(
        difference,
        expected=labels.rename(difference.expected),
        observed=labels.rename(difference.observed),
        place=labels.rename(difference.place),
    )


def describe_response(events: Sequence[Event], sequence: int) -> str:
    """The response to the request with this sequence number, in words."""
    for event in events:
        if event.kind is Kind.RESPONSE and event.of == sequence:
            return format_observed(event.body)
    return "no answer"
