"""What the application of a driven client is told of errors: those it waits for, none that passes, none of an older
membership. A monitor."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fencepost.model.errors import Error, error_name
from fencepost.traces.classic.client.messages import (
    NO_GENERATION,
    PASSING_ERRORS,
    error_in,
    generation_in,
    is_contradicting,
)
from fencepost.traces.classic.client.news import is_of_another_plan
from fencepost.traces.classic.client.standings import EXCHANGE_APIS, MAY_REJOIN
from fencepost.traces.classic.client.view import RESETS, ClientView, blame_request
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.client_judge.monitors import Findings, Seen, after, at_end, before, build_pass
from fencepost.traces.events import Event, Operation

RETRIED: Mapping[str, frozenset[Error]] = MappingProxyType(
    {
        "FindCoordinator": PASSING_ERRORS,
        "OffsetFetch": PASSING_ERRORS,
        "JoinGroup": MAY_REJOIN,
        "SyncGroup": MAY_REJOIN - {Error.COORDINATOR_LOAD_IN_PROGRESS},
    }
)
"""The errors after which a poll tries again."""
REFUSED_LOOKUPS = ("FindCoordinator", "OffsetFetch")
REFUSALS = frozenset(
    {
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_GROUP_ID,
        Error.INVALID_SESSION_TIMEOUT,
    }
)
"""The errors of JoinGroup that an application is told."""
TOLD_APIS = (*RETRIED, "Heartbeat", "OffsetCommit", "LeaveGroup")
MIN_POLLS = 10
"""The polls after which a failure should have reached the application."""


@dataclass(slots=True)
class Refusals:
    """What the application is to be told.

    `refused` is that response, `requirement` says so, and `polls` counts the polls since then. `is_fenced` says that
    the client was fenced as the member that it was, and `late_fencing` is a response that says so of a member that it
    was no more.
    """

    refused: Event | None = None
    requirement: str = ""
    polls: int = 0
    is_fenced: bool = False
    late_fencing: Event | None = None

    @after(*(f"{api} response" for api in TOLD_APIS))
    def take_response(self, view: ClientView, seen: Seen) -> None:
        """A response leaves. Who asked again, and was told, need not tell what was refused once."""
        operation, event = seen.request, seen.event
        if not view.application.is_driven:
            return
        is_told_otherwise = self.requirement == "MEMBER-38" and not error_in(event) and self.polls < MIN_POLLS
        if self.refused is not None and is_told_otherwise and self.refused.api == operation.api:
            self.refused = None
        requirement = refusal_in(view, operation, event)
        if error_in(event) == Error.FENCED_INSTANCE_ID:
            latest = view.knowledge.latest
            is_read = latest.requirement in RESETS and event.time - latest.time > view.knowledge.grace
            is_late = operation.api == "OffsetCommit" and is_read and not latest.is_current(operation)
            self.late_fencing = event if is_late else self.late_fencing
            self.is_fenced |= not is_late
        if requirement and self.refused is None:
            self.refused, self.polls, self.requirement = event, 0, requirement

    @before("result internal")
    def end_command(self, view: ClientView, seen: Seen) -> Findings:
        """A poll is over: it fails for what the application is to be told, and for nothing else."""
        application, event = view.application, seen.event
        if not application.does("poll"):
            return
        if "error" in event.body:
            yield from self.judge_failure(view, event)
        if self.refused is not None:
            self.polls += 1
            if "error" in event.body:
                self.refused = None
                yield build_pass(self.requirement, event.sequence)

    def judge_failure(self, view: ClientView, event: Event) -> Findings:
        """A poll fails."""
        told = re.sub("[^a-z]", "", str(event.body["error"]).lower())
        for api, name in view.application.passing.items():
            if name and name.replace("_", "").lower() in told and not view.application.has_asked_in_callback:
                title, expected = f"A poll fails since {api} has to be repeated", f"{api} again after {name}"
                yield build_violation("MEMBER-17", event.sequence, title, expected, "a failure of the poll")
        if self.late_fencing is not None and "fencedinstanceid" in told and not self.is_fenced:
            title, expected = "A poll fails since an older membership was fenced", "polls that go on"
            sequence = self.late_fencing.sequence
            yield build_violation("MEMBER-15", sequence, title, expected, "a failure of the poll")

    @before("JoinGroup request")
    def judge_join(self, view: ClientView, seen: Seen) -> Findings:
        """A fenced member does not join again before its application was told; after a JoinGroup nobody waits for
        offsets any more."""
        if self.refused is None or view.is_by_hand(seen.event.time):
            return
        if self.requirement == "MEMBER-19":
            title, expected = "A fenced member joins again silently", "an error for the application first"
            yield blame_request("MEMBER-19", seen.request, title, expected, "JoinGroup")
        self.refused = None if self.refused.api == "OffsetFetch" else self.refused

    @at_end
    def judge_end(self, view: ClientView, time: int) -> Findings:
        """The trace ends."""
        if self.refused is not None and self.polls >= MIN_POLLS:
            told = self.refused
            title = f"What {told.api} got does not reach the application"
            expected, observed = "a poll that fails", f"{self.polls} polls that do not"
            news = f"{told.api} got {error_name(error_in(told))} at {told.time} ms"
            yield build_violation(self.requirement, told.sequence, title, expected, observed, news)


def refusal_in(view: ClientView, operation: Operation, event: Event) -> str:
    """The requirement that the application is told of a response, "" if there is none."""
    api, error = operation.api, event.body.get("error_code", 0)
    if view.may_have_closed(event.connection):
        return ""
    if error == Error.FENCED_INSTANCE_ID and view.instance is not None:
        if api == "Heartbeat" and (
            view.knowledge.latest.sequence != event.sequence or generation_in(operation) == NO_GENERATION
        ):
            return ""  # it is about a membership that is over
        return "HBT-10" if api == "Heartbeat" else "MEMBER-19" if api in EXCHANGE_APIS else ""
    if api == "OffsetCommit" and is_fenced_in_background(view, operation, event):
        return "MCOMMIT-15"
    if api in REFUSED_LOOKUPS and error_in(event) == Error.GROUP_AUTHORIZATION_FAILED:
        # Between polls the thread of heartbeats looks for the coordinator, and drops what it is told; a client that
        # joins, or has a reason to, does not wait for its offsets.
        is_joining = view.rebalance_told is not None or view.growth is not None
        is_joining |= view.exchange_outstanding() is not None
        is_awaited = view.join is None if api == "FindCoordinator" else not is_joining
        return "MEMBER-38" if is_awaited else ""
    if api == "SyncGroup" and not error:
        return "MEMBER-31" if is_of_another_plan(view, event.body) else ""
    if api == "JoinGroup":
        return "MEMBER-18" if error in REFUSALS else "MEMBER-31" if not error and is_contradicting(event.body) else ""
    return ""


def is_fenced_in_background(view: ClientView, operation: Operation, event: Event) -> bool:
    """Whether a periodic commit of the membership that the client has is fenced: a later poll tells of it."""
    latest, application = view.knowledge.latest, view.application
    is_fenced = view.instance is not None and error_in(event) == Error.FENCED_INSTANCE_ID
    is_alone = application.is_polling and view.rebalance_told is None
    return is_fenced and latest.is_current(operation) and is_alone and application.in_callback is None
