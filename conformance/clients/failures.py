"""Violations of clients as failures of reports, with the requests before them as the schedule."""

from collections.abc import Sequence
from dataclasses import replace

from fencepost.adapters.client.cluster import CLIENT_LABEL
from fencepost.conformance.analysis.client_schedule import describe_violation
from fencepost.conformance.analysis.failures import excerpt_of
from fencepost.conformance.results import Failure
from fencepost.traces.client_judge.judge import FollowClient, judge_client
from fencepost.traces.events import Event, Header
from fencepost.traces.verdict import Violation

NOISE_APIS = frozenset({"ApiVersions", "Fetch", "Metadata"})
"""The requests that most traces are full of."""


def build_client_failure(
    header: Header,
    events: Sequence[Event],
    violation: Violation,
    follow: FollowClient,
    trace: str,
    replay: str = "",
) -> Failure:
    """A violation in a trace; `replay` is the command that shows it again, if a replay has confirmed it."""
    failure = describe_violation(events, violation, trace, shortest_excerpt(header, events, violation, follow))
    return replace(failure, replay=replay, replayed=bool(replay))


def shortest_excerpt(header: Header, events: Sequence[Event], violation: Violation, follow: FollowClient) -> str:
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
