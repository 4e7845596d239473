"""Commits of a driven client around rebalances, and their rhythm."""

from fencepost.model.assignors.group import TopicPartition
from fencepost.model.classic.messages import read_offsets
from fencepost.model.errors import Error, error_name
from fencepost.traces.classic.client.application import Application, RefusedCommit, UnawaitedCommit, check_event
from fencepost.traces.classic.client.messages import describe_news, describe_partitions, first_error, generation_in
from fencepost.traces.classic.client.news import ELSEWHERE
from fencepost.traces.classic.client.view import ClientView, Debt
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.events import Event, Operation

# --- Commits that the application of a driven client does not wait for: each is sent once, and reported once.
#
# A commit is taken for the first OffsetCommit after its command that nothing else has asked for, with those that follow
# for other partitions: some clients send one for each. Where a client
# commits by the clock as well, that may be another one: nothing is said of what came of it then.

REQUIREMENTS_OF_ERRORS = {
    Error.ILLEGAL_GENERATION: "MCOMMIT-10",
    Error.UNKNOWN_MEMBER_ID: "MCOMMIT-10",
    Error.FENCED_INSTANCE_ID: "MCOMMIT-15",
}
"""What says that a commit with this error has failed for its caller; for all others it is MCOMMIT-14."""
MIN_UNAWAITED_POLLS = 10
"""The polls after which a commit that has its response should be reported."""


def begin_unawaited(view: ClientView, event: Event) -> None:
    """The application asks for a commit, and does not wait for it."""
    view.commits.unawaited[int(event.body["id"])] = UnawaitedCommit(event)


def refuse_unawaited(view: ClientView, event: Event) -> None:
    """The command fails at once: it is told, or the driver cannot do it."""
    view.commits.unawaited.pop(int(event.body["of"]), None)


def is_asked_for(view: ClientView, application: Application) -> bool:
    """Whether the application, or its listener, asks for commits now and waits for them."""
    is_waiting = application.command is not None and application.command["do"] == "commit"
    return is_waiting or view.commits.in_callback is not None or view.commits.has_asked_in_callback


def note_request(view: ClientView, application: Application, operation: Operation) -> None:
    """An OffsetCommit arrives."""
    if is_asked_for(view, application):
        return
    sent = partitions_of(view, operation)
    open_ones = [each for each in view.commits.unawaited.values() if not each.reports]
    waiting = [each for each in open_ones if all(sent.isdisjoint(partitions_of(view, one)) for one in each.operations)]
    if waiting:
        waiting[0].operations.append(operation)
        waiting[0].response = None
    elif not application.has_auto_commit:
        judge_unasked(view, operation)


def partitions_of(view: ClientView, commit: Operation) -> frozenset[TopicPartition]:
    """The partitions of an OffsetCommit."""
    return frozenset(partition for partition, _ in read_offsets(commit.body, view.topic_names))


def judge_unasked(view: ClientView, operation: Operation) -> None:
    """An OffsetCommit that nobody has asked for: a commit is sent again, or the client commits by itself."""
    failed = next((each for each in view.commits.unawaited.values() if has_failed(each)), None)
    if failed is not None:
        title, expected = "A commit that nobody waits for is sent again", "a report of its failure"
        view.violate("MCOMMIT-14", operation, title, expected, "OffsetCommit again")
    else:
        title, expected = "A commit that nobody has asked for", "no OffsetCommit: there is no auto-commit"
        view.violate("MCOMMIT-22", operation, title, expected, "OffsetCommit")


def has_failed(commit: UnawaitedCommit) -> bool:
    """Whether a commit got an error."""
    return commit.response is not None and bool(first_error(commit.response.body))


def is_unawaited(view: ClientView, operation: Operation) -> bool:
    """Whether an OffsetCommit is, or may be, one that the application has asked for and does not wait for."""
    commits = view.commits.unawaited.values()
    if any(operation is one for each in commits for one in each.operations):
        return True
    is_doubtful = view.application.has_auto_commit
    return is_doubtful and any(not each.reports for each in commits)


def note_response(view: ClientView, operation: Operation, event: Event) -> None:
    """The response to an OffsetCommit leaves."""
    for commit in view.commits.unawaited.values():
        if any(operation is each for each in commit.operations):
            commit.responses.append(event)
            failed = next((each for each in commit.responses if first_error(each.body)), event)
            commit.response = failed if len(commit.responses) == len(commit.operations) else None


def note_poll(view: ClientView) -> None:
    """A poll begins."""
    for commit in view.commits.unawaited.values():
        commit.polls += commit.response is not None


def judge_report(view: ClientView, application: Application, event: Event) -> None:
    """The client reports a commit: once, and a failure if it has failed."""
    commit = view.commits.unawaited.get(int(event.body["committed"]))
    if commit is None:
        return
    commit.reports += 1
    title, expected = "A commit that nobody waits for is reported again", "one report"
    check_event(view.evidence, commit.reports == 1, "MCOMMIT-14", event, title, expected, f"{commit.reports} reports")
    if commit.response is None or application.has_auto_commit:
        return
    error = first_error(commit.response.body)
    if error:
        requirement = REQUIREMENTS_OF_ERRORS.get(Error(error), "MCOMMIT-14")
        title = f"A commit succeeds that got {error_name(error)}"
        check_event(view.evidence, "error" in event.body, requirement, event, title, "a failure", "success")


def judge_order(view: ClientView, application: Application, event: Event) -> None:
    """A commit that the application waits for is over: those before it whose responses came first are reported."""
    last = view.commits.answered
    if last is None or application.has_auto_commit or last.sequence < application.command_sequence:
        return
    for commit in view.commits.unawaited.values():
        response = commit.response
        if response is not None and response.sequence < last.sequence and response.connection == last.connection:
            title, expected = "A commit returns before an earlier one is reported", "the report of that first"
            is_told = commit.reports > 0
            check_event(view.evidence, is_told, "MCOMMIT-16", event, title, expected, "none before the end")


def judge_reports(view: ClientView) -> None:
    """The trace ends: every commit that has its response was reported; of a fenced one the polls tell (MCOMMIT-15)."""
    for commit in view.commits.unawaited.values():
        if commit.response is None or first_error(commit.response.body) == Error.FENCED_INSTANCE_ID:
            continue
        if not commit.reports and commit.polls >= MIN_UNAWAITED_POLLS:
            title, expected = "A commit that nobody waits for is never reported", "a report"
            sequence, observed = commit.response.sequence, f"none in {commit.polls} polls after its response"
            view.evidence.violate(build_violation("MCOMMIT-14", sequence, title, expected, observed))


PASSING_ERRORS = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE})
REPEATED_ERRORS = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.UNKNOWN_TOPIC_OR_PARTITION})
"""The errors after which the same node may be asked again at once."""
MAX_BACKOFF_MS = 400
"""The first backoff of every client is shorter."""
MIN_POLLS = 2
"""So many polls after that without a commit show that it waits for its interval."""


def judge_periodic_commit(view: ClientView, application: Application, operation: Operation, event: Event) -> None:
    """A commit comes that nobody asked for: one in each interval at most."""
    commits, command = view.commits, application.command
    is_asked = command is not None and command["do"] in ("commit", "close", "unsubscribe")
    interval, generation = application.auto_commit_ms, generation_in(operation)
    refused, commits.refused = commits.refused, None
    if is_asked or not interval or view.rebalance_told is not None or commits.in_callback is not None:
        return
    if refused is not None:
        judge_commit_after_refusal(view, refused, operation, event.time)
    if commits.periodic is not None and commits.periodic[1] == generation and not application.is_commit_doubtful:
        judge_gap(view, interval)
        commits.gap = operation, event.time - commits.periodic[0]
    commits.periodic = event.time, generation


def judge_commit_after_refusal(view: ClientView, refused: RefusedCommit, operation: Operation, time: int) -> None:
    """A periodic commit that failed is made again after its backoff, not when the next one would be due."""
    title, expected = "A periodic commit that failed waits for its interval", "another after the backoff"
    observed = f"another {time - refused.response.time} ms after its response"
    view.check(refused.polls < MIN_POLLS, "MCOMMIT-17", operation, title, expected, observed)


def count_poll(view: ClientView, event: Event) -> None:
    """A poll begins."""
    refused = view.commits.refused
    if refused is not None and event.time - refused.response.time > MAX_BACKOFF_MS:
        refused.polls += 1


def judge_gap(view: ClientView, interval: int) -> None:
    """No JoinGroup has followed a commit: it was a periodic one."""
    if view.commits.gap is not None:
        operation, gap = view.commits.gap
        title, expected = "Periodic commits come too often", f"one in {interval} ms"
        view.check(gap >= interval // 2, "MCOMMIT-17", operation, title, expected, f"another after {gap} ms")


def judge_bounds(view: ClientView, operation: Operation) -> None:
    """No commit passes a record that was never returned."""
    commits, application = view.commits, view.application
    for partition, sent in read_offsets(operation.body, view.topic_names):
        highest = commits.highest.get(partition)
        if highest is None or application.is_polling:
            continue
        most = view.skip_markers(partition, max(highest, application.starts.get(partition, 0)))
        where = f"{partition[0]}/{partition[1]}"
        title, expected = "A commit passes what was ever returned", f"at most {most} for {where}"
        view.check(sent.offset <= most, "MCOMMIT-21", operation, title, expected, f"{sent.offset} for {where}")


def note_commit(view: ClientView, application: Application, operation: Operation, event: Event) -> None:
    """An OffsetCommit arrives."""
    commits = view.commits
    note_request(view, application, operation)
    judge_bounds(view, operation)
    view.pay("OffsetCommit", event.sequence)
    if is_unawaited(view, operation):
        return
    judge_periodic_commit(view, application, operation, event)
    if commits.failed is not None:
        view.evidence.hold("MCOMMIT-06", event.sequence)
        commits.failed = None
    if commits.begun is None and (view.rebalance_told is not None or view.growth is not None or view.debts):
        commits.begun = event.time
    owes_join = any(debt.api == "JoinGroup" for debt in view.debts.values())
    if view.rebalance_told is not None and owes_join and application.is_polling and application.has_auto_commit:
        judge_length_of_preparation(view, operation, event)
    if view.rebalance_told is not None and not view.is_cooperative:
        commits.preparing, commits.returned = event.time, frozenset()


def judge_length_of_preparation(view: ClientView, operation: Operation, event: Event) -> None:
    """A commit before JoinGroup arrives: the one before it was not too late already. The first that is too late may be
    one for which the application has not polled earlier."""
    if view.commits.tried is None:
        view.commits.tried = event.time, event.time
        return
    first, last = view.commits.tried
    view.commits.tried = first, event.time
    title, expected = "The commit before JoinGroup goes on", f"JoinGroup within {view.rebalance_timeout} ms"
    observed = f"OffsetCommit after {event.time - first} ms"
    is_patient = last - first <= view.rebalance_timeout + view.knowledge.grace
    view.check(is_patient, "MCOMMIT-06", operation, title, expected, observed)


def note_records(view: ClientView, event: Event) -> None:
    """Records are returned."""
    commits = view.commits
    for topic, number, offset in event.body["records"]:
        partition = str(topic), int(number)
        commits.highest[partition] = max(commits.highest.get(partition, 0), offset + 1)
        if commits.preparing is not None:
            commits.returned |= {partition}


def note_revoked(view: ClientView, application: Application, event: Event) -> None:
    """Partitions are revoked."""
    commits = view.commits
    if commits.preparing is not None and application.has_auto_commit and event.api == "revoked":
        title, expected = "Records are returned during the commit before a revocation", "no record"
        observed = describe_partitions(commits.returned)
        check_event(view.evidence, not commits.returned, "POLL-19", event, title, expected, observed)
    commits.preparing = None


def note_commit_response(view: ClientView, application: Application, operation: Operation, event: Event) -> None:
    """The response to OffsetCommit leaves."""
    note_response(view, operation, event)
    if is_unawaited(view, operation):
        return
    if application.command is not None and application.command["do"] == "commit":
        view.commits.answered = event
    is_manual = application.manual_since is not None and not operation.body["member_id"]
    if is_manual and application.has_auto_commit and first_error(event.body) in ELSEWHERE:
        told = f"{describe_news(operation, event)}, and offsets are committed by the clock"
        view.owe(Debt("MCOMMIT-17", "OffsetCommit", event.time, event.sequence, told))
    commits = view.commits
    if commits.periodic is not None and commits.periodic[0] == operation.sent_at and application.auto_commit_ms:
        is_refused = first_error(event.body) in REPEATED_ERRORS and view.rebalance_told is None
        commits.refused = RefusedCommit(operation, event) if is_refused else None
    if first_error(event.body) in PASSING_ERRORS:
        owe_commit(view, application, describe_news(operation, event), event)
    is_preparing = view.rebalance_told is not None and application.has_auto_commit and not view.is_cooperative
    if is_preparing and first_error(event.body) in PASSING_ERRORS and application.is_polling:
        view.commits.failed = operation


def owe_commit(view: ClientView, application: Application, news: str, event: Event) -> None:
    """A commit failed that the application waits for, and may succeed the next time: it is sent again, or its caller
    is told (MCOMMIT-14)."""
    is_waited_for = application.command is not None and application.command["do"] == "commit"
    if is_waited_for and application.manual_since is None:
        view.owe(Debt("MCOMMIT-14", "OffsetCommit", event.time, event.sequence, news))


def judge_join_after_commit(view: ClientView, operation: Operation, event: Event) -> None:
    """JoinGroup arrives: a commit before it that failed with an error that may pass was tried again, and nothing was
    committed that nobody had asked for."""
    commits, told, application = view.commits, view.rebalance_told, view.application
    if application.is_driven and not application.has_auto_commit and application.positions:
        view.evidence.hold("MCOMMIT-22", event.sequence)
    if commits.failed is not None and told is not None:
        waited = event.time - told
        title, expected = "The commit before JoinGroup is not tried again", "OffsetCommit again"
        is_over = waited > view.earliest_timeout
        view.check(is_over, "MCOMMIT-06", operation, title, expected, f"JoinGroup after {waited} ms")
    commits.failed = commits.preparing = commits.begun = commits.tried = commits.periodic = commits.gap = None
    commits.refused = None
