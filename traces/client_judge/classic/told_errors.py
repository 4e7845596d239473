"""The errors that an application is told of: those it waits for, none that passes, none of an older membership."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.errors import Error
from fencepost.traces.client_judge.classic.application import Application
from fencepost.traces.client_judge.classic.news import (
    MAY_REJOIN,
    RESETS,
    first_error,
    generation_in,
    is_contradicting,
    is_of_another_plan,
)
from fencepost.traces.client_judge.classic.repeats import PASSING_ERRORS, error_in
from fencepost.traces.client_judge.classic.state import EXCHANGE_APIS, ClientState
from fencepost.traces.client_judge.evidence import build_violation
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


def note_error(state: ClientState, application: Application, operation: Operation, event: Event) -> None:
    """A response leaves; the state is that after it."""
    if operation.api in RETRIED:
        error = error_in(event)
        application.passing[operation.api] = Error(error).name if error in RETRIED[operation.api] else ""
    if operation.api == "FindCoordinator" and error_in(event) == Error.GROUP_AUTHORIZATION_FAILED:
        application.lookup_refused = event.sequence
    if first_error(event.body) == Error.FENCED_INSTANCE_ID:
        if is_late(state, operation, event.time):
            application.late_fencing = event
        else:
            application.is_fenced = True


def is_late(state: ClientState, operation: Operation, time: int) -> bool:
    """Whether a commit was made by a member that the client has certainly read before that it is no more."""
    latest = state.knowledge.latest
    sent = operation.body.get("member_id"), generation_in(operation)
    is_read = latest.requirement in RESETS and time - latest.time > state.knowledge.grace
    return operation.api == "OffsetCommit" and is_read and sent != (latest.member_id, latest.generation)


def judge_told_error(state: ClientState, application: Application, event: Event) -> None:
    """A poll fails."""
    told = re.sub("[^a-z]", "", str(event.body["error"]).lower())
    for api, name in application.passing.items():
        if name and name.replace("_", "").lower() in told and not state.commits.has_asked_in_callback:
            title, expected = f"A poll fails since {api} has to be repeated", f"{api} again after {name}"
            violation = build_violation("MEMBER-17", event.sequence, title, expected, "a failure of the poll")
            state.evidence.violate(violation)
    application.passing.clear()
    late = application.late_fencing
    if late is not None and "fencedinstanceid" in told and not application.is_fenced:
        title, expected = "A poll fails since an older membership was fenced", "polls that go on"
        violation = build_violation("MEMBER-15", late.sequence, title, expected, "a failure of the poll")
        state.evidence.violate(violation)


def refusal_in(state: ClientState, operation: Operation, event: Event) -> str:
    """The requirement that the application is told of a response, "" if there is none."""
    api, error = operation.api, event.body.get("error_code", 0)
    if event.connection in state.doubtful:
        return ""
    if error == Error.FENCED_INSTANCE_ID and state.instance is not None:
        if api == "Heartbeat" and generation_in(operation) != state.knowledge.latest.generation:
            return ""  # it is about a membership that is over
        return "HBT-10" if api == "Heartbeat" else "MEMBER-19" if api in EXCHANGE_APIS else ""
    if api == "OffsetCommit" and is_fenced_in_background(state, operation, event):
        return "MCOMMIT-15"
    if api in REFUSED_LOOKUPS and error_in(event) == Error.GROUP_AUTHORIZATION_FAILED:
        # Between polls the thread of heartbeats looks for the coordinator, and drops what it is told.
        is_awaited = state.join is None if api == "FindCoordinator" else not is_about_to_join(state)
        return "MEMBER-38" if is_awaited else ""
    if api == "SyncGroup" and not error:
        return "MEMBER-31" if is_of_another_plan(state, event.body) else ""
    if api == "JoinGroup":
        return "MEMBER-18" if error in REFUSALS else "MEMBER-31" if not error and is_contradicting(event.body) else ""
    return ""


def is_about_to_join(state: ClientState) -> bool:
    """Whether the client joins, or has a reason to: nobody waits for its offsets then."""
    return state.rebalance_told is not None or state.growth is not None or state.exchange_outstanding() is not None


def is_fenced_in_background(state: ClientState, operation: Operation, event: Event) -> bool:
    """Whether a periodic commit of the membership that the client has is fenced: a later poll tells of it."""
    latest, application = state.knowledge.latest, state.application
    is_fenced = state.instance is not None and first_error(event.body) == Error.FENCED_INSTANCE_ID
    is_current = (operation.body.get("member_id"), generation_in(operation)) == (latest.member_id, latest.generation)
    is_alone = application is not None and application.is_polling and state.rebalance_told is None
    return is_fenced and is_current and is_alone and state.commits.in_callback is None
