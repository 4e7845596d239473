"""Returned records and commits of a driven client, held against its positions."""

from fencepost.model.assignors.group import TopicPartition
from fencepost.model.classic.messages import read_offsets, topic_of
from fencepost.model.errors import Error, error_name
from fencepost.traces.classic.client.application import Application, check_event
from fencepost.traces.classic.client.callbacks import is_reset
from fencepost.traces.classic.client.committing import is_unawaited
from fencepost.traces.classic.client.messages import (
    NO_GENERATION,
    describe_partitions,
    fetched_partitions,
    first_error,
    name_of_error,
)
from fencepost.traces.classic.client.view import MIN_PATIENCE_MS, ClientView, Debt, Phase
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.events import Body, Event, Operation

MEMBERSHIP_ERRORS = frozenset({Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID})
RETRIABLE_ERRORS = frozenset(
    {
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.REQUEST_TIMED_OUT,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

FAILED_COMMITS = frozenset({"COMMIT_FAILED", "CommitFailedException", "CommitFailedError"})
"""What clients call a commit that is lost since the member is out of the group."""


def judge_records(view: ClientView, application: Application, event: Event) -> None:
    """A poll returns records."""
    application.returned += len(event.body["records"])
    for topic, number, offset in event.body["records"]:
        judge_record(view, application, event, (topic, number), offset)


def judge_record(
    view: ClientView, application: Application, event: Event, partition: TopicPartition, offset: int
) -> None:
    """A record is one of an assigned partition that is not paused, and the next of that."""
    evidence, record = view.evidence, f"{partition[0]}/{partition[1]} at {offset}"
    if application.manual_since is None:
        title, expected = "A record of a partition that is not assigned", "no record of it"
        owned = application.owned if application.has_callbacks else view.knowledge.allowed_partitions()
        check_event(evidence, partition in owned, "POLL-10", event, title, expected, record)
    if application.paused:
        title, expected = "A record of a partition that is paused", "no record of it"
        check_event(evidence, partition not in application.paused, "POLL-09", event, title, expected, record)
    if application.wanted is not None:
        title, expected = "A record of a topic that is not subscribed any more", "no record of it"
        check_event(evidence, partition[0] in application.wanted, "POLL-18", event, title, expected, record)
    position = application.positions.get(partition)
    if position is not None:
        has_marker = (partition, position) in view.markers
        position = view.skip_markers(partition, position)
        requirement = "COOP-07" if partition in application.retained else "POLL-03"
        requirement = "POLL-11" if partition in application.sought else requirement
        requirement = "POLL-12" if has_marker else requirement
        title, expected = "Another record than the next one", f"offset {position}"
        check_event(evidence, offset == position, requirement, event, title, expected, record)
        application.sought.discard(partition)
    elif partition in application.starts and partition not in application.out_of_range:
        start = application.starts[partition]
        title, expected = "The first record is not at the committed offset", f"offset {start}"
        check_event(evidence, offset == start, "MCOMMIT-19", event, title, expected, record)
    application.positions[partition] = offset + 1


def judge_parked_records(view: ClientView, application: Application, operation: Operation) -> None:
    """A cooperative member has returned the records that came while its JoinGroup was parked."""
    ends = view.ends
    waiting = {each for each in application.owned if ends.get(each, 0) > application.next_of(each)}
    title, expected = "No record is returned while JoinGroup has no response", "records of owned partitions"
    observed = f"records are left of {describe_partitions(waiting)}"
    if application.last_written >= operation.handle:
        view.check(not waiting, "COOP-06", operation, title, expected, observed)


def judge_committed_offsets(view: ClientView, application: Application, operation: Operation) -> None:
    """An OffsetCommit arrives: it covers returned records alone, and all of them if the application asked for it."""
    is_asked = application.command is not None and application.command["do"] == "commit"
    for partition, sent in read_offsets(operation.body, view.topic_names):
        position, offset = application.positions.get(partition), sent.offset
        if position is None:
            continue
        where = f"{partition[0]}/{partition[1]}"
        expected, observed = f"{position} for {where}", f"{offset} for {where}"
        title, last = "A commit covers records that were not returned", view.skip_markers(partition, position)
        if offset > last and application.has_had(partition, offset):
            if is_asked:
                violation = build_violation("MCOMMIT-01", operation.handle - 1, title, expected, observed)
                application.behind[partition] = violation
            continue
        if offset > last and application.is_polling:
            application.ahead.append((operation, partition, offset))
            continue
        view.check(offset <= last, "MCOMMIT-01", operation, title, expected, observed)
        if is_asked and offset < position:
            title = "A commit has not the offset of the next record"
            application.behind[partition] = build_violation(
                "MCOMMIT-02", operation.handle - 1, title, expected, observed
            )
        elif is_asked:
            view.evidence.hold("MCOMMIT-02", operation.handle - 1)
            application.behind.pop(partition, None)  # what came before was a periodic commit that had to wait
        elif application.is_polling:
            view.evidence.hold("MCOMMIT-04", operation.handle - 1)
    if application.manual_since is not None:
        judge_manual_commit(view, operation, application.manual_since)


def judge_manual_commit(view: ClientView, operation: Operation, since: int) -> None:
    """A commit names no member since the application has assigned partitions; one sent before that may still come."""
    body = operation.body
    generation = body.get("generation_id_or_member_epoch", body.get("generation_id", -1))
    instance = body.get("group_instance_id")
    observed = f"generation {generation}, member_id = '{body['member_id']}', group_instance_id = {instance}"
    title, expected = "A client that is no member commits as one", "generation -1, member_id = '', no instance"
    is_nobody = generation == -1 and not body["member_id"] and instance is None
    if not is_nobody and operation.sent_at <= since + view.knowledge.grace:
        return
    view.check(is_nobody, "MCOMMIT-12", operation, title, expected, observed)


def judge_commits_ahead(view: ClientView, application: Application) -> None:
    """A poll is over: the commits during it were ahead of what had been returned before."""
    for operation, partition, offset in application.ahead:
        position = application.positions.get(partition)
        if position is None:  # it was assigned anew meanwhile
            continue
        requirement = "MCOMMIT-04" if offset <= position else "MCOMMIT-01"
        where = f"{partition[0]}/{partition[1]}"
        title, expected = "A commit covers records that were not returned", f"less than {offset} for {where}"
        view.violate(requirement, operation, title, expected, f"{offset} for {where}")
    application.ahead.clear()


def learn_commit(view: ClientView, application: Application, operation: Operation, body: Body) -> None:
    """The response to OffsetCommit."""
    sent = {partition: row.offset for partition, row in read_offsets(operation.body, view.topic_names)}
    is_late = operation.handle <= application.command_sequence
    if not is_late and not is_unawaited(view, operation):  # else the application does not wait for it
        application.commit_errors.append(first_error(body))
    for topic in body.get("topics") or ():
        for row in topic["partitions"]:
            partition = topic_of(topic, view.topic_names), int(row["partition_index"])
            if row["error_code"]:
                application.is_commit_doubtful = True
            elif partition in sent:
                application.committed[partition] = sent[partition]


def learn_starts(view: ClientView, application: Application, body: Body) -> None:
    """The response to OffsetFetch."""
    for group in body.get("groups") or (body,):
        for topic in group.get("topics") or ():
            for row in topic["partitions"]:
                if not row["error_code"] and row["committed_offset"] >= 0:
                    partition = topic_of(topic, view.topic_names), int(row["partition_index"])
                    application.starts[partition] = row["committed_offset"]


def judge_commit_before_join(view: ClientView, application: Application, operation: Operation) -> None:
    """An eager member joins again: everything that it returned of revoked partitions is committed."""
    if not view.is_cooperative:
        judge_last_commit(view, application, operation, "MCOMMIT-05")
    application.is_commit_doubtful = False
    application.revoked = frozenset()


def judge_last_commit(view: ClientView, application: Application, operation: Operation, requirement: str) -> None:
    """A client with auto-commit has committed what it returned of the partitions that it has just revoked."""
    if not application.has_auto_commit or is_reset(view) or application.is_commit_doubtful:
        return
    sent = dict(application.starts) | application.committed
    for commit in (each for each in view.outstanding.values() if each.api == "OffsetCommit"):
        sent |= {partition: row.offset for partition, row in read_offsets(commit.body, view.topic_names)}
    for partition in sorted((application.revoked & application.positions.keys()) - application.sought):
        position, committed = application.positions[partition], sent.get(partition)
        title, where = "Returned records are not committed", f"{partition[0]}/{partition[1]}"
        expected, observed = f"{position} for {where}", f"{'nothing' if committed is None else committed} for {where}"
        last = view.skip_markers(partition, position)
        is_right = committed is not None and position <= committed <= last
        view.check(is_right, requirement, operation, title, expected, observed)


def judge_commit_result(view: ClientView, application: Application, event: Event) -> None:
    """A commit that the application waited for is over."""
    errors, evidence = application.commit_errors, view.evidence
    is_done = "error" not in event.body
    for violation in application.behind.values() if is_done else ():
        evidence.violate(violation)
    joining = view.exchange_outstanding()
    if not errors and joining is not None and joining.handle <= application.command_sequence:
        title, expected = "A commit while the member joins succeeds without a request", "a failure"
        has_something = bool(application.owned & application.positions.keys())
        if not is_done or has_something:
            check_event(evidence, not is_done, "MCOMMIT-08", event, title, expected, "success")
    has_succeeded = is_done and Error.NONE in errors  # what failed beside that was not the application's
    failed = next((error for error in errors if error in MEMBERSHIP_ERRORS), None)
    if failed is not None and not has_succeeded:
        title, expected = f"A commit succeeds that got {error_name(failed)}", "a failure"
        check_event(evidence, not is_done, "MCOMMIT-10", event, title, expected, "success")
    elif Error.FENCED_INSTANCE_ID in errors and view.instance is not None and not has_succeeded:
        title, expected = "A commit succeeds that was fenced", "a failure"
        check_event(evidence, not is_done, "MCOMMIT-15", event, title, expected, "success")
    elif not is_done and application.lookup_refused > application.command_sequence:
        return  # nobody can tell where to send it again
    elif errors and errors[0] in RETRIABLE_ERRORS:
        title, expected = "A commit is not tried again", "OffsetCommit again"
        observed = f"{'success' if is_done else 'a failure'} after {error_name(errors[0])}"
        is_tried_again = is_done and any(error not in RETRIABLE_ERRORS for error in errors)
        check_event(evidence, is_tried_again, "MCOMMIT-14", event, title, expected, observed)
    elif not errors and name_of_error(event) in FAILED_COMMITS:
        judge_refused_commit(view, application, event)
    elif not errors and not is_done and application.passing.get("FindCoordinator"):
        judge_commit_without_coordinator(view, application, event)
    elif not errors and is_done and joining is None:
        judge_unsent_commit(view, application, event)


def judge_unsent_commit(view: ClientView, application: Application, event: Event) -> None:
    """A commit succeeds though nothing was sent: everything that was returned is committed already."""
    is_manual = application.manual_since is not None
    is_stable = view.knowledge.latest.phase is Phase.STABLE
    is_open = any(each.api == "OffsetCommit" for each in view.outstanding.values())
    if is_open or application.is_commit_doubtful or not (is_manual or is_stable):
        return
    positions = {each: application.positions[each] for each in application.owned & application.positions.keys()}
    left = {each for each, offset in positions.items() if application.committed.get(each, -1) < offset}
    title, expected = "A commit succeeds that is not sent", "an OffsetCommit of what was returned"
    observed = f"records of {describe_partitions(left - application.sought)} are not committed"
    is_right = left <= application.sought
    check_event(view.evidence, is_right, "MCOMMIT-12" if is_manual else "MCOMMIT-01", event, title, expected, observed)


def judge_commit_without_coordinator(view: ClientView, application: Application, event: Event) -> None:
    """A commit of a stable member that was not sent fails: its coordinator could not be found for long."""
    if view.knowledge.latest.phase is not Phase.STABLE or not application.owned:
        return
    waited, title = event.time - application.began, "A commit is given up since a lookup failed"
    expected = f"further lookups, for {MIN_PATIENCE_MS} ms or more"
    is_patient = waited >= MIN_PATIENCE_MS
    check_event(view.evidence, is_patient, "MCOMMIT-14", event, title, expected, f"a failure after {waited} ms")


def judge_refused_commit(view: ClientView, application: Application, event: Event) -> None:
    """A commit that was not sent fails: while the member joins, the failure says that the rebalance has to finish."""
    exchange = view.exchange_outstanding()
    has_joined_throughout = exchange is not None and exchange.sent_at + view.knowledge.grace < application.began
    if any(standing.generation == NO_GENERATION for standing in view.knowledge.standings):
        return  # a late response may have thrown it out, and then it is right
    title, expected = "A commit while the member joins fails for good", "a failure that says that a rebalance goes on"
    check_event(view.evidence, not has_joined_throughout, "MCOMMIT-08", event, title, expected, name_of_error(event))


# --- Fetch and OffsetFetch, held against the assignment of the client.


def judge_fetch(view: ClientView, operation: Operation, event: Event) -> None:
    """A Fetch arrives."""
    wanted = frozenset(fetched_partitions(operation, view.topic_names))
    if not wanted or view.join is None:
        return
    is_new = operation.connection not in view.fetched_on
    view.fetched_on.add(operation.connection)
    twice = wanted & view.fetches_outstanding()
    title = "A second fetch of a partition"
    view.check(
        not twice, "PREFETCH-05", operation, title, "one fetch at a time", f"two of {describe_partitions(twice)}"
    )
    if any(topic in view.foreign_topics for topic, _ in wanted):
        title, expected = "Fetch of a topic that is not subscribed", "the assignment is not applied"
        view.violate("MEMBER-20", operation, title, expected, describe_partitions(wanted))
    elif view.knowledge.latest.requirement == "MEMBER-20":
        return  # whatever it does with an assignment that it must not apply
    elif is_new:
        return  # it may have waited for its connection since before the assignment
    elif all(standing.phase is Phase.STABLE for standing in view.knowledge.standings):
        allowed = view.knowledge.allowed_partitions()
        title, expected = "Fetch of a partition that is not assigned", describe_partitions(allowed)
        view.check(wanted <= allowed, "PREFETCH-08", operation, title, expected, describe_partitions(wanted))


def learn_offsets(view: ClientView, operation: Operation, event: Event) -> None:
    """The response to OffsetFetch: the client asks again for what it was not told, as an offset that is unstable."""
    groups = event.body.get("groups") or (event.body,)
    rows = [row for group in groups for topic in group.get("topics") or () for row in topic["partitions"]]
    has_failed = any(each.get("error_code") for each in (*groups, *rows))
    view.offsets_failed = event.time if has_failed else None
    if any(row["error_code"] == Error.UNSTABLE_OFFSET_COMMIT for row in rows):
        news = f"OffsetFetch got UNSTABLE_OFFSET_COMMIT at {event.time} ms"
        view.owe(Debt("MCOMMIT-20", "OffsetFetch", event.time, event.sequence, news))


def judge_offset_fetch(view: ClientView, operation: Operation, event: Event) -> None:
    """An OffsetFetch arrives."""
    groups = operation.body.get("groups") or (operation.body,)
    topics = {topic_of(topic, view.topic_names) for group in groups for topic in group.get("topics") or ()}
    foreign = sorted(topics & view.foreign_topics)
    if foreign:
        title, expected = "OffsetFetch of a topic that is not subscribed", "the assignment is not applied"
        view.violate("MEMBER-20", operation, title, expected, ", ".join(foreign))
    view.pay("OffsetFetch", event.sequence)
