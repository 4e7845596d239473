"""Failures for reports: the observed response, the allowed responses and the schedule that leads to the violation."""

from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.conformance.analysis.root_cause import RequirementViolation
from fencepost.conformance.results import Failure
from fencepost.traces.events import Event, Kind
from fencepost.traces.judge.diagnosis.wording import format_observed, format_value


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a trace is found, and the command that runs its schedule again ("" if there is none)."""

    trace: str
    replay: str


def build_failure(
    events: Sequence[Event], violation: RequirementViolation, origin: Origin, *, replayed: bool
) -> Failure:
    """A violation as a failure, with the requests of its trace up to the violation as the schedule."""
    sequence, mismatch, note = violation.sequence, violation.violation, violation.note
    return Failure(
        trace=origin.trace,
        step=sequence,
        observed=mismatch.observed if mismatch is not None else f"{describe_response(events, sequence)} ({note})",
        allowed=mismatch.allowed if mismatch is not None else (note,),
        guard=mismatch.guard if mismatch is not None else "",
        schedule=schedule_lines(events, sequence),
        replay=origin.replay,
        replayed=replayed,
    )


def describe_response(events: Sequence[Event], sequence: int) -> str:
    """The response to the request with this sequence number, in words."""
    for event in events:
        if event.kind is Kind.RESPONSE and event.of == sequence:
            return format_observed(event.body)
    return "no answer"


def schedule_lines(events: Sequence[Event], last: int) -> tuple[str, ...]:
    """The requests and faults of a trace up to sequence number `last`, a line each."""
    lines = []
    for event in events:
        if event.kind is Kind.REQUEST and event.sequence <= last:
            who = f"{event.member}: " if event.member else ""
            lines.append(f"at {event.time} ms {who}{event.api} v{event.version} {summarize_request(event)}")
        elif event.kind is Kind.FAULT and event.sequence <= last:
            lines.append(f"at {event.time} ms {event.api}")
    return tuple(lines)


SUMMARY_FIELDS = (
    "member_id",
    "group_instance_id",
    "generation_id",
    "generation_id_or_member_epoch",
    "session_timeout_ms",
)


def summarize_request(event: Event) -> str:
    """The fields of a request that matter most."""
    return ", ".join(
        f"{name}={format_value(event.body[name])}" for name in SUMMARY_FIELDS if event.body.get(name) is not None
    )
