"""Violations of clients as failures of reports, with the requests before them as the schedule."""

from collections.abc import Iterator, Sequence

from fencepost.adapters.client.cluster import CLIENT_LABEL
from fencepost.conformance.analysis.failures import excerpt_of
from fencepost.conformance.analysis.schedule_text import MemberLabels, describe_fields
from fencepost.conformance.results import Failure
from fencepost.model.errors import error_name
from fencepost.traces.client_judge.evidence import ClientViolation
from fencepost.traces.client_judge.judge import FollowClient, judge_client
from fencepost.traces.events import Event, Header, Kind

TOLD_APIS = frozenset(
    {"FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch"}
)
"""The requests that a schedule tells; others only if they are what is wrong."""
NOISE_APIS = frozenset({"ApiVersions", "Fetch", "Metadata"})
"""The requests that most traces are full of."""
MAX_STEPS = 25


def build_client_failure(
    header: Header,
    events: Sequence[Event],
    violation: ClientViolation,
    follow: FollowClient,
    trace: str,
    replay: str = "",
) -> Failure:
    """A violation in a trace; `replay` is the command that shows it again, if a replay has confirmed it."""
    labels = MemberLabels(events)
    return Failure(
        trace=trace,
        step=violation.sequence,
        observed=labels.rename(violation.observed),
        allowed=(labels.rename(violation.expected),),
        guard="",
        schedule=tuple(schedule_of(events, violation.sequence, labels))[-MAX_STEPS:],
        replay=replay,
        replayed=bool(replay),
        title=violation.title,
        state=labels.rename(violation.told),
        kind=f"{violation.requirement}: {violation.title}",
        excerpt=shortest_excerpt(header, events, violation, follow),
    )


def shortest_excerpt(header: Header, events: Sequence[Event], violation: ClientViolation, follow: FollowClient) -> str:
    """The trace as text; if it is too long, without requests for records and metadata, and then without the events
    after the violation. "" if all of these are too long or do not show the violation."""
    noise = {event.sequence for event in events if event.api in NOISE_APIS}
    quiet = tuple(event for event in events if event.sequence not in noise and event.of not in noise)
    early = tuple(event for event in quiet if event.sequence <= violation.sequence)
    for kept in (events, quiet, early):
        text = excerpt_of(header, kept)
        if text and violation.requirement in judge_client(header, kept, CLIENT_LABEL, follow).violated:
            return text
    return ""


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
