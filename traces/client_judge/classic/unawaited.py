"""Commits that the application of a driven client does not wait for: each is sent once, and reported once.

A commit is taken for the first OffsetCommit after its command that nothing else has asked for. Where a client commits
by the clock as well, that may be another one: nothing is said of what came of it then.
"""

from fencepost.model.errors import Error, error_name
from fencepost.traces.client_judge.classic.application import Application, check_event
from fencepost.traces.client_judge.classic.commits import UnawaitedCommit
from fencepost.traces.client_judge.classic.news import first_error
from fencepost.traces.client_judge.classic.state import ClientState
from fencepost.traces.client_judge.evidence import build_violation
from fencepost.traces.events import Event, Operation

REQUIREMENTS_OF_ERRORS = {
    Error.ILLEGAL_GENERATION: "MCOMMIT-10",
    Error.UNKNOWN_MEMBER_ID: "MCOMMIT-10",
    Error.FENCED_INSTANCE_ID: "MCOMMIT-15",
}
"""What says that a commit with this error has failed for its caller; for all others it is MCOMMIT-14."""
MIN_POLLS = 10
"""The polls after which a commit that has its response should be reported."""


def begin_unawaited(state: ClientState, event: Event) -> None:
    """The application asks for a commit, and does not wait for it."""
    state.commits.unawaited[int(event.body["id"])] = UnawaitedCommit(event)


def refuse_unawaited(state: ClientState, event: Event) -> None:
    """The command fails at once: it is told, or the driver cannot do it."""
    state.commits.unawaited.pop(int(event.body["of"]), None)


def is_asked_for(state: ClientState, application: Application) -> bool:
    """Whether the application, or its listener, asks for commits now and waits for them."""
    is_waiting = application.command is not None and application.command["do"] == "commit"
    return is_waiting or state.commits.in_callback is not None or state.commits.has_asked_in_callback


def note_request(state: ClientState, application: Application, operation: Operation) -> None:
    """An OffsetCommit arrives."""
    if is_asked_for(state, application):
        return
    waiting = [each for each in state.commits.unawaited.values() if each.operation is None and not each.reports]
    if waiting:
        waiting[0].operation = operation
    elif not application.has_auto_commit:
        judge_unasked(state, operation)


def judge_unasked(state: ClientState, operation: Operation) -> None:
    """An OffsetCommit that nobody has asked for: a commit is sent again, or the client commits by itself."""
    failed = next((each for each in state.commits.unawaited.values() if has_failed(each)), None)
    if failed is not None:
        title, expected = "A commit that nobody waits for is sent again", "a report of its failure"
        state.violate("MCOMMIT-14", operation, title, expected, "OffsetCommit again")
    else:
        title, expected = "A commit that nobody has asked for", "no OffsetCommit: there is no auto-commit"
        state.violate("MCOMMIT-22", operation, title, expected, "OffsetCommit")


def has_failed(commit: UnawaitedCommit) -> bool:
    """Whether a commit got an error."""
    return commit.response is not None and bool(first_error(commit.response.body))


def is_unawaited(state: ClientState, operation: Operation) -> bool:
    """Whether an OffsetCommit is, or may be, one that the application has asked for and does not wait for."""
    commits = state.commits.unawaited.values()
    if any(each.operation is operation for each in commits):
        return True
    is_doubtful = state.application is not None and state.application.has_auto_commit
    return is_doubtful and any(not each.reports for each in commits)


def note_response(state: ClientState, operation: Operation, event: Event) -> None:
    """The response to an OffsetCommit leaves."""
    for commit in state.commits.unawaited.values():
        if commit.operation is operation:
            commit.response = event


def note_poll(state: ClientState) -> None:
    """A poll begins."""
    for commit in state.commits.unawaited.values():
        commit.polls += commit.response is not None


def judge_report(state: ClientState, application: Application, event: Event) -> None:
    """The client reports a commit: once, and a failure if it has failed."""
    commit = state.commits.unawaited.get(int(event.body["committed"]))
    if commit is None:
        return
    commit.reports += 1
    title, expected = "A commit that nobody waits for is reported again", "one report"
    check_event(state.evidence, commit.reports == 1, "MCOMMIT-14", event, title, expected, f"{commit.reports} reports")
    if commit.response is None or application.has_auto_commit:
        return
    error = first_error(commit.response.body)
    if error:
        requirement = REQUIREMENTS_OF_ERRORS.get(Error(error), "MCOMMIT-14")
        title = f"A commit succeeds that got {error_name(error)}"
        check_event(state.evidence, "error" in event.body, requirement, event, title, "a failure", "success")


def judge_order(state: ClientState, application: Application, event: Event) -> None:
    """A commit that the application waits for is over: those before it whose responses came first are reported."""
    last = state.commits.answered
    if last is None or application.has_auto_commit or last.sequence < application.command_sequence:
        return
    for commit in state.commits.unawaited.values():
        response = commit.response
        if response is not None and response.sequence < last.sequence and response.connection == last.connection:
            title, expected = "A commit returns before an earlier one is reported", "the report of that first"
            is_told = commit.reports > 0
            check_event(state.evidence, is_told, "MCOMMIT-16", event, title, expected, "none before the end")


def judge_reports(state: ClientState) -> None:
    """The trace ends: every commit that has its response was reported; of a fenced one the polls tell (MCOMMIT-15)."""
    for commit in state.commits.unawaited.values():
        if commit.response is None or first_error(commit.response.body) == Error.FENCED_INSTANCE_ID:
            continue
        if not commit.reports and commit.polls >= MIN_POLLS:
            title, expected = "A commit that nobody waits for is never reported", "a report"
            sequence, observed = commit.response.sequence, f"none in {commit.polls} polls after its response"
            state.evidence.violate(build_violation("MCOMMIT-14", sequence, title, expected, observed))
