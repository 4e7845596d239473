"""The end of a commit: its report to the application, or another attempt (member.md 1.5, 4.3, 4.4)."""

from fencepost.model.classic.member.client import (
    Client,
    ClientCommit,
    ClientContext,
    CommitPurpose,
    CommitReport,
    Failure,
    Problem,
)
from fencepost.model.classic.member.step import ClientOutput, ClientStep, ReportCommit
from fencepost.model.frozen import evolve

WAITS = (CommitPurpose.SYNC, CommitPurpose.CLOSE)
"""The purposes whose commits are repeated until their deadline (MCOMMIT-14)."""


def without_commit(client: Client, number: int) -> Client:
    """The client without this commit."""
    return evolve(client, commits=tuple(commit for commit in client.commits if commit.number != number))


def with_commit(client: Client, changed: ClientCommit) -> Client:
    """The client with this commit in the place of the one of its number."""
    commits = tuple(changed if commit.number == changed.number else commit for commit in client.commits)
    return evolve(client, commits=commits)


def tell_reports(client: Client) -> ClientStep:
    """The application is told of asynchronous commits, on its own thread (MCOMMIT-16)."""
    told = tuple(ReportCommit(report) for report in client.reports)
    return ClientStep(evolve(client, reports=()), told)


def finish_commit(client: Client, commit: ClientCommit, failure: Failure | None, context: ClientContext) -> ClientStep:
    """The commit is over; a failure that is `Problem.RETRIABLE_COMMIT` may lead to another commit later."""
    client = without_commit(client, commit.number)
    report = CommitReport(commit.number, commit.purpose, failure)
    is_retriable = failure is Problem.RETRIABLE_COMMIT
    match commit.purpose:
        case CommitPurpose.SYNC:
            told = tell_reports(client)
            outputs: tuple[ClientOutput, ...] = (*told.outputs, ReportCommit(report))
            return ClientStep(told.client, outputs)
        case CommitPurpose.ASYNC:
            return ClientStep(evolve(client, reports=(*client.reports, report)))
        case CommitPurpose.PERIODIC if is_retriable:
            soon = context.now + client.settings.retry_backoff
            return ClientStep(
                evolve(client, clocks=evolve(client.clocks, auto_commit=soon)), (), ("client.auto-commit.soon",)
            )
        case CommitPurpose.PREPARE if commit.number == client.prepare_commit:
            again = is_retriable and context.now < client.clocks.prepare
            clocks = evolve(client.clocks, prepare_retry=context.now + client.settings.retry_backoff)
            return ClientStep(evolve(client, prepare_commit=0, is_committed=not again, clocks=clocks))
        case _:
            return ClientStep(client)


def fail_retriably(client: Client, commit: ClientCommit, context: ClientContext) -> ClientStep:
    """The commit failed and may be repeated: a commit that the application waits for is, the others are reported."""
    retry_at = context.now + client.settings.retry_backoff
    if commit.purpose in WAITS and retry_at < commit.deadline:
        waiting = evolve(commit, handle=0, request=None, retry_at=retry_at)
        return ClientStep(with_commit(client, waiting), (), ("client.commit.retry",))
    return finish_commit(client, commit, Problem.RETRIABLE_COMMIT, context)
