"""The check that a client waits before it repeats a failed request (MEMBER-17); JoinGroup has one of its own.

A client whose call is nearly over may repeat one in the next call, so that one repeat at once shows nothing.
"""

from fencepost.model.errors import Error
from fencepost.traces.client_judge.classic.joining import MIN_BACKOFF_MS
from fencepost.traces.client_judge.classic.rhythm import Repeats
from fencepost.traces.client_judge.classic.state import ClientState
from fencepost.traces.events import Event, Operation

REPEATED_APIS = frozenset({"FindCoordinator", "OffsetCommit", "OffsetFetch"})
PASSING_ERRORS = frozenset(
    {
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.REQUEST_TIMED_OUT,
        Error.UNSTABLE_OFFSET_COMMIT,
    }
)
"""The errors that pass, where the same request is sent again."""
MANY = 3
"""So many repeats at once in a row show that a client does not wait."""


def note_failure(state: ClientState, operation: Operation, event: Event) -> None:
    """A response leaves."""
    if operation.api not in REPEATED_APIS:
        return
    repeats = state.repeats.setdefault(operation.api, Repeats())
    if error_in(event) in PASSING_ERRORS:
        repeats.failed = event.time
    else:
        state.repeats[operation.api] = Repeats()


def judge_repeat(state: ClientState, operation: Operation, event: Event) -> None:
    """A request arrives: its last one has failed, and some time has passed."""
    repeats = state.repeats.get(operation.api)
    if repeats is None or repeats.failed is None:
        return
    waited, repeats.failed = event.time - repeats.failed, None
    repeats.at_once = repeats.at_once + 1 if waited < MIN_BACKOFF_MS else 0
    title, expected = f"{operation.api} is repeated at once", f"after {MIN_BACKOFF_MS} ms or more"
    observed = f"{repeats.at_once} times in a row after less"
    state.check(repeats.at_once < MANY, "MEMBER-17", operation, title, expected, observed)


def forget_failures(state: ClientState) -> None:
    """The application asks for something: what follows may be no repeat."""
    state.repeats.pop("OffsetCommit", None)


def error_in(event: Event) -> int:
    """The error of a response, or else the first one of its coordinators, groups or their partitions; 0 for none."""
    body = event.body
    parts = (body, *(body.get("coordinators") or ()), *(body.get("groups") or ()))
    rows = (row for part in parts for topic in part.get("topics") or () for row in topic.get("partitions") or ())
    return next((int(part["error_code"]) for part in (*parts, *rows) if part.get("error_code")), 0)
