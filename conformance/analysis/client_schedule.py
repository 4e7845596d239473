"""Violations of clients as failures of reports, with what passed between client and cluster before as the schedule."""

from collections.abc import Iterator, Sequence

from fencepost.conformance.analysis.schedule_text import MemberLabels, describe_fields
from fencepost.conformance.results import Failure
from fencepost.model.errors import error_name
from fencepost.traces.events import Event, Kind
from fencepost.traces.verdict import Violation

TOLD_APIS = frozenset(
    {"FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch"}
)
"""The requests that a schedule tells; others only if they are what is wrong."""
MAX_STEPS = 25


def describe_violation(events: Sequence[Event], violation: Violation, trace: str, excerpt: str) -> Failure:
    """A violation of a client as a failure, with its last requests as the schedule; `excerpt` is a trace as text."""
    labels = MemberLabels(events)
    return Failure(
        trace=trace,
        step=violation.sequence,
        observed=labels.rename(violation.observed),
        allowed=tuple(map(labels.rename, violation.allowed)),
        guard="",
        schedule=tuple(schedule_of(events, violation.sequence, labels))[-MAX_STEPS:],
        title=violation.title,
        state=labels.rename(violation.state),
        kind=violation.kind,
        excerpt=excerpt,
    )


def schedule_of(events: Sequence[Event], last: int, labels: MemberLabels) -> Iterator[str]:
    """What passed up to the event with this number, a line for each request, with its response if that came."""
    responses = {event.of: event for event in events if event.kind is Kind.RESPONSE}
    for event in events:
        if event.sequence > last:
            return
        if event.kind is Kind.REQUEST and (event.api in TOLD_APIS or event.sequence == last):
            mark = "   <-- wrong" if event.sequence == last else describe_response(responses.get(event.sequence))
            told = f"at {event.time} ms {event.member}: {event.api} v{event.version} {describe_fields(event)}"
            yield labels.rename(told.rstrip()) + mark
        elif event.kind is Kind.INTERNAL and event.api == "script":
            yield f"at {event.time} ms script: {event.body['step']}"
        elif event.kind is Kind.INTERNAL and event.api == "program":
            yield f"at {event.time} ms the client is {event.body['state']}"


def describe_response(response: Event | None) -> str:
    """A response in a few words."""
    if response is None:
        return ", without a response"
    error = response.body.get("error_code")
    return f", response {error_name(error)} at {response.time} ms" if error is not None else ""
