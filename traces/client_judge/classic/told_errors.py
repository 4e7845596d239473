"""The errors that polls of a driven client fail with: none that passes, and none of a membership that was over."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.errors import Error
from fencepost.traces.client_judge.classic.application import Application
from fencepost.traces.client_judge.classic.news import MAY_REJOIN, RESETS, first_error, generation_in
from fencepost.traces.client_judge.classic.repeats import PASSING_ERRORS, error_in
from fencepost.traces.client_judge.classic.state import ClientState
from fencepost.traces.client_judge.evidence import ClientViolation
from fencepost.traces.events import Event
from fencepost.traces.operations import Operation

RETRIED: Mapping[str, frozenset[Error]] = MappingProxyType(
    {
        "FindCoordinator": PASSING_ERRORS,
        "OffsetFetch": PASSING_ERRORS,
        "JoinGroup": MAY_REJOIN,
        "SyncGroup": MAY_REJOIN - {Error.COORDINATOR_LOAD_IN_PROGRESS},
    }
)
"""The errors after which a poll tries again."""


def note_error(state: ClientState, application: Application, operation: Operation, event: Event) -> None:
    """A response leaves; the state is that after it."""
    if operation.api in RETRIED:
        error = error_in(event)
        application.passing[operation.api] = Error(error).name if error in RETRIED[operation.api] else ""
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
            violation = ClientViolation("MEMBER-17", event.sequence, title, expected, "a failure of the poll")
            state.evidence.violate(violation)
    application.passing.clear()
    late = application.late_fencing
    if late is not None and "fencedinstanceid" in told and not application.is_fenced:
        title, expected = "A poll fails since an older membership was fenced", "polls that go on"
        violation = ClientViolation("MEMBER-15", late.sequence, title, expected, "a failure of the poll")
        state.evidence.violate(violation)
