"""Commits of a driven client, held against what its application was returned and asked for: a monitor."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from fencepost.model.assignors.group import TopicPartition
from fencepost.model.classic.messages import read_offsets, topic_of
from fencepost.model.errors import Error, error_name
from fencepost.traces.classic.client.membership import judge_debt
from fencepost.traces.classic.client.messages import (
    MOVED,
    NO_GENERATION,
    describe_news,
    describe_partitions,
    error_in,
    generation_in,
    name_of_error,
    partitions_in,
)
from fencepost.traces.classic.client.refusals import is_fenced_in_background
from fencepost.traces.classic.client.standings import ELSEWHERE
from fencepost.traces.classic.client.view import (
    MIN_PATIENCE_MS,
    ClientView,
    Debt,
    blame_request,
    check_request,
    is_reset,
)
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.client_judge.monitors import (
    Finding,
    Findings,
    Seen,
    after,
    at_end,
    before,
    build_pass,
    check,
)
from fencepost.traces.events import Event, Operation

MEMBERSHIP_ERRORS = frozenset({Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID})
RETRIABLE_ERRORS = MOVED | {Error.REQUEST_TIMED_OUT, Error.UNKNOWN_TOPIC_OR_PARTITION}
REPEATED_ERRORS = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.UNKNOWN_TOPIC_OR_PARTITION})
"""The errors after which the same node may be asked again at once."""
FAILED_COMMITS = frozenset({"COMMIT_FAILED", "CommitFailedException", "CommitFailedError"})
"""What clients call a commit that is lost since the member is out of the group."""
REQUIREMENTS_OF_ERRORS = {
    Error.ILLEGAL_GENERATION: "MCOMMIT-10",
    Error.UNKNOWN_MEMBER_ID: "MCOMMIT-10",
    Error.FENCED_INSTANCE_ID: "MCOMMIT-15",
}
"""What says that a commit with this error has failed for its caller; for all others it is MCOMMIT-14."""
MIN_UNAWAITED_POLLS = 10
"""The polls after which a commit that has its response should be reported."""
MAX_BACKOFF_MS = 400
"""The first backoff of every client is shorter."""
MIN_POLLS = 2
"""So many polls after that without a commit show that it waits for its interval."""


@dataclass(slots=True)
class UnawaitedCommit:
    """A commit that the application does not wait for: it is sent once, and reported once.

    It is taken for the first OffsetCommit after its command that nothing else has asked for, with those that follow for
    other partitions: some clients send one for each. Where a client commits by the clock as well, that may be another
    one: nothing is said of what came of it then."""

    operations: list[Operation] = field(default_factory=list)
    """Its requests: one, or one for each of some partitions."""
    responses: list[Event] = field(default_factory=list)
    response: Event | None = None
    """The first of them with an error, or else the last one; None until all have come."""
    polls: int = 0
    """How often the application has polled since the response."""
    reports: int = 0

    @property
    def error(self) -> int:
        """The error that it got, 0 for none so far."""
        return error_in(self.response) if self.response is not None else 0


@dataclass(slots=True)
class RefusedCommit:
    """A periodic commit that got an error that may pass. `polls` counts those that began after the longest backoff, and
    have not committed."""

    response: Event
    polls: int = 0


@dataclass(slots=True)
class Commits:
    """What is known of the commits of a driven client. Times in milliseconds."""

    committed: dict[TopicPartition, int] = field(default_factory=dict)
    """The offsets that were committed with success."""
    highest: dict[TopicPartition, int] = field(default_factory=dict)
    """The offsets behind the last records that were ever returned."""
    is_doubtful: bool = False
    """A commit has failed, or its response was lost, since the last JoinGroup."""
    periodic: tuple[int, int] | None = None
    """When the last commit came that nobody asked for, and its generation."""
    gap: tuple[Operation, int] | None = None
    """The last such commit, and how long after the one before it it came; it may still be one before JoinGroup."""
    refused: RefusedCommit | None = None
    """The last such commit, if it got an error that may pass and none came since."""
    preparing: bool = False
    """A commit came since the client was told of a rebalance, and it has not revoked or joined since."""
    returned: frozenset[TopicPartition] = frozenset()
    """The partitions of which records were returned since then."""
    tried: tuple[int, int] | None = None
    """When the first and the last commit came since the client was told of a rebalance, if it has not joined since."""
    has_failed: bool = False
    """The last commit before JoinGroup got an error that may pass."""
    errors: list[int] = field(default_factory=list)
    """The errors of the commits that were sent while the application waits for one, 0 for none."""
    ahead: list[tuple[Operation, TopicPartition, int]] = field(default_factory=list)
    """Commits during the poll under way that are ahead of the position before it."""
    behind: dict[TopicPartition, Finding] = field(default_factory=dict)
    """What is wrong with the commits while the application waits for one, if no better one follows."""
    of_callback: list[Operation] = field(default_factory=list)
    """The requests of the commit that a listener is making."""
    unawaited: dict[int, UnawaitedCommit] = field(default_factory=dict)
    """The commits that the application does not wait for, by the numbers of their commands."""
    answered: Event | None = None
    """The last response to an OffsetCommit that the application waits for."""
    again: Debt | None = None
    """What the application waits for is to be sent again, or its caller is told (MCOMMIT-14)."""
    by_clock: Debt | None = None
    """What the clock of an application without a subscription is to send again (MCOMMIT-17)."""

    # --- Requests.

    @before("OffsetCommit request")
    def judge_request(self, view: ClientView, seen: Seen) -> Findings:
        """An OffsetCommit arrives."""
        if not view.application.is_driven:
            return
        yield from self.judge_offsets(view, seen.request)
        if view.application.manual_since is not None:
            yield from judge_manual_commit(view, seen.request)
        yield from self.judge_asker(view, seen.request)
        yield from self.judge_bounds(view, seen.request)
        for debt in (self.again, self.by_clock):
            yield from (build_pass(debt.requirement, seen.event.sequence),) if debt is not None else ()
        self.again = self.by_clock = None
        if not self.is_unawaited(view, seen.request):
            yield from self.judge_periodic(view, seen.request)
            yield from self.judge_preparation(view, seen)
        yield from self.judge_generation_in_callback(view, seen.request)

    def judge_offsets(self, view: ClientView, operation: Operation) -> Findings:
        """A commit covers returned records alone, and all of them if the application asked for it."""
        application, sequence = view.application, operation.handle - 1
        is_asked = application.does("commit")
        for partition, sent in read_offsets(operation.body, view.topic_names):
            position, offset = application.positions.get(partition), sent.offset
            if position is None:
                continue
            where = f"{partition[0]}/{partition[1]}"
            expected, observed = f"{position} for {where}", f"{offset} for {where}"
            title, last = "A commit covers records that were not returned", view.skip_markers(partition, position)
            if offset > last and application.has_had(partition, offset):
                if is_asked:
                    self.behind[partition] = build_violation("MCOMMIT-01", sequence, title, expected, observed)
                continue
            if offset > last and application.is_polling:
                self.ahead.append((operation, partition, offset))
                continue
            yield check_request(view, offset <= last, "MCOMMIT-01", operation, title, expected, observed)
            if is_asked and offset < position:
                title = "A commit has not the offset of the next record"
                self.behind[partition] = build_violation("MCOMMIT-02", sequence, title, expected, observed)
            elif is_asked:
                yield build_pass("MCOMMIT-02", sequence)
                self.behind.pop(partition, None)  # what came before was a periodic commit that had to wait
            elif application.is_polling:
                yield build_pass("MCOMMIT-04", sequence)

    def judge_asker(self, view: ClientView, operation: Operation) -> Findings:
        """A commit has somebody who asked for it: else one is sent again, or the client commits by itself."""
        application = view.application
        if application.does("commit") or application.in_callback is not None or application.has_asked_in_callback:
            return
        sent = partitions_of(view, operation)
        open_ones = (each for each in self.unawaited.values() if not each.reports)
        for commit in open_ones:
            if all(sent.isdisjoint(partitions_of(view, each)) for each in commit.operations):
                commit.operations.append(operation)
                commit.response = None
                return
        if application.has_auto_commit:
            return
        if any(each.error for each in self.unawaited.values()):
            title, expected = "A commit that nobody waits for is sent again", "a report of its failure"
            yield blame_request("MCOMMIT-14", operation, title, expected, "OffsetCommit again")
        else:
            title, expected = "A commit that nobody has asked for", "no OffsetCommit: there is no auto-commit"
            yield blame_request("MCOMMIT-22", operation, title, expected, "OffsetCommit")

    def is_unawaited(self, view: ClientView, operation: Operation) -> bool:
        """Whether an OffsetCommit is, or may be, one that the application has asked for and does not wait for."""
        commits = self.unawaited.values()
        if any(operation is one for each in commits for one in each.operations):
            return True
        return view.application.has_auto_commit and any(not each.reports for each in commits)

    def judge_bounds(self, view: ClientView, operation: Operation) -> Findings:
        """No commit passes a record that was never returned; where the position is known, MCOMMIT-01 says more."""
        application = view.application
        for partition, sent in read_offsets(operation.body, view.topic_names):
            highest = self.highest.get(partition)
            if highest is None or application.is_polling:
                continue
            most = view.skip_markers(partition, max(highest, application.starts.get(partition, 0)))
            if sent.offset > most and partition in application.positions:
                continue
            where = f"{partition[0]}/{partition[1]}"
            title, expected = "A commit passes what was ever returned", f"at most {most} for {where}"
            observed = f"{sent.offset} for {where}"
            yield check_request(view, sent.offset <= most, "MCOMMIT-21", operation, title, expected, observed)

    def judge_periodic(self, view: ClientView, operation: Operation) -> Findings:
        """A commit comes that nobody asked for: one in each interval at most, but for one that failed, which is made
        again after its backoff, not when the next one would be due."""
        application, time, generation = view.application, operation.sent_at, generation_in(operation)
        refused, self.refused = self.refused, None
        is_asked = application.does("commit", "close", "unsubscribe") or application.in_callback is not None
        if is_asked or not application.auto_commit_ms or view.rebalance_told is not None:
            return
        if refused is not None:
            title, expected = "A periodic commit that failed waits for its interval", "another after the backoff"
            observed = f"another {time - refused.response.time} ms after its response"
            yield check_request(view, refused.polls < MIN_POLLS, "MCOMMIT-17", operation, title, expected, observed)
        if self.periodic is not None and self.periodic[1] == generation and not self.is_doubtful:
            if self.gap is not None:  # no JoinGroup has followed that one: it was a periodic one
                interval, (former, gap) = application.auto_commit_ms, self.gap
                title, expected = "Periodic commits come too often", f"one in {interval} ms"
                is_slow, observed = gap >= interval // 2, f"another after {gap} ms"
                yield check_request(view, is_slow, "MCOMMIT-17", former, title, expected, observed)
            self.gap = operation, time - self.periodic[0]
        self.periodic = time, generation

    def judge_preparation(self, view: ClientView, seen: Seen) -> Findings:
        """A commit before JoinGroup arrives: the one before it was not too late already. The first that is too late may
        be one for which the application has not polled earlier."""
        operation, time, application = seen.request, seen.event.time, view.application
        if self.has_failed:
            self.has_failed = False
            yield build_pass("MCOMMIT-06", seen.event.sequence)
        if view.rebalance_told is None:
            return
        if (
            any(each.api == "JoinGroup" for each in view.debts.values())
            and application.is_polling
            and application.has_auto_commit
        ):
            first, last = self.tried or (time, time)
            title, expected = "The commit before JoinGroup goes on", f"JoinGroup within {view.rebalance_timeout} ms"
            observed = f"OffsetCommit after {time - first} ms"
            is_patient = last - first <= view.rebalance_timeout + view.knowledge.grace
            if self.tried is not None:
                yield check_request(view, is_patient, "MCOMMIT-06", operation, title, expected, observed)
            self.tried = first, time
        if not view.is_cooperative:
            self.preparing, self.returned = True, frozenset()

    # --- Responses.

    @after("OffsetCommit response")
    def take_response(self, view: ClientView, seen: Seen) -> None:
        """The response to OffsetCommit leaves."""
        application, operation, event = view.application, seen.request, seen.event
        if not application.is_driven or is_fenced_in_background(view, operation, event):
            return
        error = error_in(event)
        self.take_results(view, operation, event)
        self.take_response_unawaited(operation, event)
        if self.is_unawaited(view, operation):
            return
        news, is_waited_for = describe_news(operation, event), application.does("commit")
        self.answered = event if is_waited_for else self.answered
        is_manual = application.manual_since is not None and not operation.body["member_id"]
        if is_manual and application.has_auto_commit and error in ELSEWHERE:
            told = f"{news}, and offsets are committed by the clock"
            self.by_clock = Debt("MCOMMIT-17", "OffsetCommit", event.time, event.sequence, told)
        if self.periodic is not None and self.periodic[0] == operation.sent_at and application.auto_commit_ms:
            is_refused = error in REPEATED_ERRORS and view.rebalance_told is None
            self.refused = RefusedCommit(event) if is_refused else None
        if error in MOVED:
            self.owe(view, news, event)
            is_preparing = view.rebalance_told is not None and not view.is_cooperative
            self.has_failed |= is_preparing and application.has_auto_commit and application.is_polling

    def take_results(self, view: ClientView, operation: Operation, event: Event) -> None:
        """What was committed of each partition."""
        sent = {partition: row.offset for partition, row in read_offsets(operation.body, view.topic_names)}
        is_late = operation.handle <= view.application.command_sequence
        if not is_late and not self.is_unawaited(view, operation):  # else the application does not wait for it
            self.errors.append(error_in(event))
        for topic in event.body.get("topics") or ():
            for row in topic["partitions"]:
                partition = topic_of(topic, view.topic_names), int(row["partition_index"])
                if row["error_code"]:
                    self.is_doubtful = True
                elif partition in sent:
                    self.committed[partition] = sent[partition]

    def take_response_unawaited(self, operation: Operation, event: Event) -> None:
        """The response to a commit leaves that nobody waits for."""
        for commit in self.unawaited.values():
            if any(operation is each for each in commit.operations):
                commit.responses.append(event)
                failed = next((each for each in commit.responses if error_in(each)), event)
                commit.response = failed if len(commit.responses) == len(commit.operations) else None

    @after("loss")
    def take_loss(self, view: ClientView, seen: Seen) -> None:
        """A connection ends."""
        if seen.request.api == "OffsetCommit":
            self.is_doubtful = True
            self.take_response_unawaited(seen.request, seen.event)
            if not self.is_unawaited(view, seen.request):
                self.owe(view, "the connection of its OffsetCommit was closed", seen.event)

    def owe(self, view: ClientView, news: str, event: Event) -> None:
        """A commit failed that the application waits for, and may succeed the next time."""
        if view.application.does("commit") and view.application.manual_since is None:
            self.again = Debt("MCOMMIT-14", "OffsetCommit", event.time, event.sequence, news)

    # --- The application.

    @after("command internal")
    def take_command(self, view: ClientView, seen: Seen) -> None:
        """The application does something."""
        self.errors.clear()
        self.behind.clear()
        body = seen.event.body
        if body["do"] == "commit_async":
            self.unawaited[int(body["id"])] = UnawaitedCommit()
        elif body["do"] == "poll":
            for commit in self.unawaited.values():
                commit.polls += commit.response is not None
            if self.refused is not None and seen.event.time - self.refused.response.time > MAX_BACKOFF_MS:
                self.refused.polls += 1

    @before("result internal")
    def end_command(self, view: ClientView, seen: Seen) -> Findings:
        """The application is done with what it did."""
        application, event = view.application, seen.event
        yield from self.end_commit_in_callback(view)
        if application.does("poll"):
            yield from self.judge_ahead(view)
        elif application.does("commit"):
            yield from self.judge_result(view, event)
            yield from self.judge_order(view, event)
            self.again = None
        elif application.does("commit_async") and "error" in event.body:
            self.unawaited.pop(int(event.body["of"]), None)  # it fails at once: the driver cannot do it, or it is told
        elif application.command is not None and application.does("seek") and "error" not in event.body:
            self.highest.pop((str(application.command["topic"]), int(application.command["partition"])), None)

    @before("poll")
    def take_records(self, view: ClientView, seen: Seen) -> None:
        """Records are returned."""
        for topic, number, offset in seen.event.body["records"]:
            partition = str(topic), int(number)
            self.highest[partition] = max(self.highest.get(partition, 0), offset + 1)
            if self.preparing:
                self.returned |= {partition}

    def judge_ahead(self, view: ClientView) -> Findings:
        """A poll is over: the commits during it were ahead of what had been returned before."""
        for operation, partition, offset in self.ahead:
            position = view.application.positions.get(partition)
            if position is not None:  # else it was assigned anew meanwhile
                requirement = "MCOMMIT-04" if offset <= position else "MCOMMIT-01"
                where = f"{partition[0]}/{partition[1]}"
                title, expected = "A commit covers records that were not returned", f"less than {offset} for {where}"
                yield blame_request(requirement, operation, title, expected, f"{offset} for {where}")
        self.ahead.clear()

    def judge_result(self, view: ClientView, event: Event) -> Findings:
        """A commit that the application waited for is over."""
        application, errors, is_done = view.application, self.errors, "error" not in event.body
        yield from self.behind.values() if is_done else ()
        joining = view.exchange_outstanding()
        if not errors and joining is not None and joining.handle <= application.command_sequence:
            title, expected = "A commit while the member joins succeeds without a request", "a failure"
            if not is_done or application.owned & application.positions.keys():
                yield check(not is_done, "MCOMMIT-08", event.sequence, title, expected, "success")
        has_succeeded = is_done and Error.NONE in errors  # what failed beside that was not the application's
        failed = next((error for error in errors if error in MEMBERSHIP_ERRORS), None)
        if failed is not None and not has_succeeded:
            title, expected = f"A commit succeeds that got {error_name(failed)}", "a failure"
            yield check(not is_done, "MCOMMIT-10", event.sequence, title, expected, "success")
        elif Error.FENCED_INSTANCE_ID in errors and view.instance is not None and not has_succeeded:
            title, expected = "A commit succeeds that was fenced", "a failure"
            yield check(not is_done, "MCOMMIT-15", event.sequence, title, expected, "success")
        elif not is_done and application.lookup_refused > application.command_sequence:
            return  # nobody can tell where to send it again
        elif errors and errors[0] in RETRIABLE_ERRORS:
            title, expected = "A commit is not tried again", "OffsetCommit again"
            observed = f"{'success' if is_done else 'a failure'} after {error_name(errors[0])}"
            is_tried_again = is_done and any(error not in RETRIABLE_ERRORS for error in errors)
            yield check(is_tried_again, "MCOMMIT-14", event.sequence, title, expected, observed)
        elif not errors and name_of_error(event) in FAILED_COMMITS:
            yield from judge_refused_commit(view, event)
        elif not errors and not is_done and application.passing.get("FindCoordinator"):
            waited, title = event.time - application.began, "A commit is given up since a lookup failed"
            expected, observed = f"further lookups, for {MIN_PATIENCE_MS} ms or more", f"a failure after {waited} ms"
            if view.knowledge.latest.is_stable and application.owned:
                yield check(waited >= MIN_PATIENCE_MS, "MCOMMIT-14", event, title, expected, observed)
        elif not errors and is_done and joining is None:
            yield from self.judge_unsent(view, event)

    def judge_unsent(self, view: ClientView, event: Event) -> Findings:
        """A commit succeeds though nothing was sent: everything that was returned is committed already."""
        application, is_manual = view.application, view.application.manual_since is not None
        is_open = any(each.api == "OffsetCommit" for each in view.outstanding.values())
        if is_open or self.is_doubtful or not (is_manual or view.knowledge.latest.is_stable):
            return
        known = application.owned & application.positions.keys()
        left = {each for each in known if self.committed.get(each, -1) < application.positions[each]}
        title, expected = "A commit succeeds that is not sent", "an OffsetCommit of what was returned"
        observed = f"records of {describe_partitions(left - application.sought)} are not committed"
        requirement, is_right = "MCOMMIT-12" if is_manual else "MCOMMIT-01", left <= application.sought
        yield check(is_right, requirement, event.sequence, title, expected, observed)

    def judge_order(self, view: ClientView, event: Event) -> Findings:
        """A commit that the application waits for is over: those before it whose responses came first are reported."""
        last, application = self.answered, view.application
        if last is None or application.has_auto_commit or last.sequence < application.command_sequence:
            return
        for commit in self.unawaited.values():
            response = commit.response
            if response is not None and response.sequence < last.sequence and response.connection == last.connection:
                title, expected = "A commit returns before an earlier one is reported", "the report of that first"
                yield check(commit.reports > 0, "MCOMMIT-16", event.sequence, title, expected, "none before the end")

    @before("committed internal")
    def judge_report(self, view: ClientView, seen: Seen) -> Findings:
        """The client reports a commit: once, and a failure if it has failed."""
        event, commit = seen.event, self.unawaited.get(int(seen.event.body["committed"]))
        if commit is None:
            return
        commit.reports += 1
        title, observed = "A commit that nobody waits for is reported again", f"{commit.reports} reports"
        yield check(commit.reports == 1, "MCOMMIT-14", event.sequence, title, "one report", observed)
        if commit.error and not view.application.has_auto_commit:
            requirement = REQUIREMENTS_OF_ERRORS.get(Error(commit.error), "MCOMMIT-14")
            title, is_told = f"A commit succeeds that got {error_name(commit.error)}", "error" in event.body
            yield check(is_told, requirement, event.sequence, title, "a failure", "success")

    # --- Listeners, and JoinGroup after them.

    @before("callback")
    def take_callback(self, view: ClientView, seen: Seen) -> Findings:
        """The listener is called: the commit of the one before it is complete."""
        yield from self.end_commit_in_callback(view)
        if self.preparing and view.application.has_auto_commit and seen.event.api == "revoked":
            title, expected = "Records are returned during the commit before a revocation", "no record"
            observed = describe_partitions(self.returned)
            yield check(not self.returned, "POLL-19", seen.event.sequence, title, expected, observed)
        self.preparing = False

    def judge_generation_in_callback(self, view: ClientView, operation: Operation) -> Findings:
        """A commit of a listener arrives, or a part of one: before JoinGroup under the generation that is about to end,
        after SyncGroup under the new one."""
        called, expected = view.application.in_callback, view.knowledge.latest.assigned_in
        if called is not None:
            self.of_callback.append(operation)
            title, sent = f"A commit in {called.api} is of another generation", generation_in(operation)
            is_right, words = sent == expected, (f"generation {expected}", f"generation {sent}")
            yield check_request(view, is_right, "CALLBACK-16", operation, title, *words)

    def end_commit_in_callback(self, view: ClientView) -> Findings:
        """The commit of a listener is complete, in one request or several: it covers what is revoked."""
        called, parts, self.of_callback = view.application.in_callback, self.of_callback, []
        if called is not None and parts and called.api == "revoked":
            sent, positions = self.sent_offsets(view, parts), view.application.positions
            known = (positions.keys() - view.application.sought) & partitions_in(called)
            left_out = frozenset(each for each in known if sent.get(each, -1) < positions[each])
            title, observed = "A commit in revoked leaves something out", f"nothing of {describe_partitions(left_out)}"
            records = "what was returned of the partitions that are revoked"
            yield check_request(view, not left_out, "CALLBACK-16", parts[0], title, records, observed)

    def sent_offsets(self, view: ClientView, last: Iterable[Operation] = ()) -> dict[TopicPartition, int]:
        """The offsets that are committed, or under way, up to the last ones."""
        sent = dict(view.application.starts) | self.committed
        for commit in (*(each for each in view.outstanding.values() if each.api == "OffsetCommit"), *last):
            sent |= {partition: row.offset for partition, row in read_offsets(commit.body, view.topic_names)}
        return sent

    @before("JoinGroup request")
    def judge_join(self, view: ClientView, seen: Seen) -> Findings:
        """JoinGroup arrives: a commit before it that failed with an error that may pass was tried again, a listener's
        was sent, and what an eager member returned of revoked partitions is committed."""
        application, operation, event = view.application, seen.request, seen.event
        if not application.is_driven or view.is_by_hand(event.time):
            return
        if not application.has_auto_commit and application.positions:
            yield build_pass("MCOMMIT-22", event.sequence)
        if self.has_failed and view.rebalance_told is not None:
            waited = event.time - view.rebalance_told
            title, expected = "The commit before JoinGroup is not tried again", "OffsetCommit again"
            is_over, observed = waited > view.earliest_timeout, f"JoinGroup after {waited} ms"
            yield check_request(view, is_over, "MCOMMIT-06", operation, title, expected, observed)
        called, is_sent = application.in_callback, bool(self.of_callback)
        yield from self.end_commit_in_callback(view)
        if called is not None and not is_sent and called.api == "revoked" and view.installed is not None:
            title, expected = "A commit in a callback is not sent", "OffsetCommit before JoinGroup"
            yield blame_request("CALLBACK-16", operation, title, expected, "JoinGroup")
        if not view.is_cooperative:
            yield from self.judge_last(view, operation, "MCOMMIT-05")
        self.has_failed = self.preparing = self.is_doubtful = False
        self.tried = self.periodic = self.gap = self.refused = None

    @before("LeaveGroup request")
    def judge_leave(self, view: ClientView, seen: Seen) -> Findings:
        """LeaveGroup of a client that closes comes when its last commit is over, or has taken long."""
        application, operation = view.application, seen.request
        if not application.does("close") or view.is_by_hand(seen.event.time):
            return
        yield from self.judge_last(view, operation, "MCOMMIT-07")
        since = max(application.began, seen.event.time - view.knowledge.grace + 1)
        is_hasty = any(each.sent_at >= since for each in view.outstanding.values() if each.api == "OffsetCommit")
        if is_hasty and application.has_auto_commit:
            title, expected = "LeaveGroup before the last commit is over", "LeaveGroup after its response"
            yield blame_request("MCOMMIT-07", operation, title, expected, "OffsetCommit without a response")

    def judge_last(self, view: ClientView, operation: Operation, requirement: str) -> Findings:
        """A client with auto-commit has committed what it returned of the partitions that it has just revoked."""
        application = view.application
        if not application.has_auto_commit or is_reset(view) or self.is_doubtful:
            return
        sent = self.sent_offsets(view)
        for partition in sorted((application.revoked & application.positions.keys()) - application.sought):
            position, offset = application.positions[partition], sent.get(partition)
            title, where = "Returned records are not committed", f"{partition[0]}/{partition[1]}"
            expected, observed = f"{position} for {where}", f"{'nothing' if offset is None else offset} for {where}"
            is_right = offset is not None and position <= offset <= view.skip_markers(partition, position)
            yield check_request(view, is_right, requirement, operation, title, expected, observed)

    # --- The end.

    @at_end
    def judge_end(self, view: ClientView, time: int) -> Findings:
        """The trace ends: what failed was sent again, and every commit that has its response was reported; of a fenced
        one the polls tell (MCOMMIT-15)."""
        end = time if view.asked_to_end is None else view.asked_to_end
        is_held_up = view.lost_since is not None or any(
            end - each.sent_at > MIN_PATIENCE_MS / 2 for each in view.outstanding.values() if each.api != "Fetch"
        )
        again, is_waiting = self.again, view.ended is None and not is_held_up
        if again is not None and is_waiting and end - again.since > view.patience_for("OffsetCommit"):
            title, expected = "A commit is not tried again", "OffsetCommit again, or a failure"
            observed = f"neither for {end - again.since} ms"
            yield build_violation("MCOMMIT-14", again.sequence, title, expected, observed, again.news)
        if self.by_clock is not None and not view.is_ending:
            yield judge_debt(view, self.by_clock, time)
        for commit in self.unawaited.values():
            is_due = commit.response is not None and commit.error != Error.FENCED_INSTANCE_ID and not commit.reports
            if commit.response is not None and is_due and commit.polls >= MIN_UNAWAITED_POLLS:
                title, observed = "A commit that nobody waits for is never reported", f"none in {commit.polls} polls"
                observed += " after its response"
                yield build_violation("MCOMMIT-14", commit.response.sequence, title, "a report", observed)


def partitions_of(view: ClientView, commit: Operation) -> frozenset[TopicPartition]:
    """The partitions of an OffsetCommit."""
    return frozenset(partition for partition, _ in read_offsets(commit.body, view.topic_names))


def judge_manual_commit(view: ClientView, operation: Operation) -> Findings:
    """A commit names no member since the application has assigned partitions; one sent before that may still come."""
    body, generation, since = operation.body, generation_in(operation), view.application.manual_since or 0
    instance = body.get("group_instance_id")
    observed = f"generation {generation}, member_id = '{body['member_id']}', group_instance_id = {instance}"
    title, expected = "A client that is no member commits as one", "generation -1, member_id = '', no instance"
    is_nobody = generation == NO_GENERATION and not body["member_id"] and instance is None
    if is_nobody or operation.sent_at > since + view.knowledge.grace:
        yield check_request(view, is_nobody, "MCOMMIT-12", operation, title, expected, observed)


def judge_refused_commit(view: ClientView, event: Event) -> Findings:
    """A commit that was not sent fails: while the member joins, the failure says that the rebalance has to finish."""
    exchange = view.exchange_outstanding()
    has_joined_throughout = exchange is not None and exchange.sent_at + view.knowledge.grace < view.application.began
    if all(standing.generation != NO_GENERATION for standing in view.knowledge.standings):
        # else a late response may have thrown it out, and then it is right
        title, expected = (
            "A commit while the member joins fails for good",
            "a failure that says that a rebalance goes on",
        )
        observed = name_of_error(event)
        yield check(not has_joined_throughout, "MCOMMIT-08", event.sequence, title, expected, observed)
