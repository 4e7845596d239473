"""The coordinator: how a client finds and loses it, and what it learns there: the ends of commits, and positions
(member.md 1.2, 1.5, 4)."""

from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import (
    Client,
    ClientCommit,
    ClientContext,
    CommitPurpose,
    CommitReport,
    Failure,
    FindCoordinator,
    FindCoordinatorResponse,
    ListOffsets,
    ListOffsetsResponse,
    Position,
    Problem,
    SentKind,
    Unanswered,
    end_poll,
    is_returnable,
    is_unanswered,
    next_handle,
    position_of,
)
from fencepost.model.classic.member.settings import ResetPolicy
from fencepost.model.classic.member.step import (
    ClientOutput,
    ClientStep,
    PausePartition,
    ReportCommit,
    ReturnRecords,
    Seek,
    SendRequest,
    join_steps,
)
from fencepost.model.classic.messages import Request
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import NO_OFFSET, OffsetFetch, OffsetFetchResponse, Partition

# --- The end of a commit: its report to the application, or another attempt (member.md 1.5, 4.3, 4.4).

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


COORDINATOR_MOVED = frozenset({Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE})
"""Errors after which the client looks the coordinator up again."""
LOOKUP_RETRIED = COORDINATOR_MOVED | {Error.COORDINATOR_LOAD_IN_PROGRESS, Error.REQUEST_TIMED_OUT}
"""Errors after which a lookup is repeated; all others reach the application."""


def add_unanswered(client: Client, request: Unanswered) -> Client:
    """The client that waits for the response to one more request, whose handle was the next one."""
    return evolve(client, unanswered=(*client.unanswered, request), last_handle=request.handle)


def without_unanswered(client: Client, handle: int) -> Client:
    """The client that no longer waits for the response to the request of this handle."""
    return evolve(client, unanswered=tuple(request for request in client.unanswered if request.handle != handle))


def send_request(client: Client, request: Request, sent: Unanswered, rule: str, reason: str = "") -> ClientStep:
    """The client sends a request whose handle is the next one."""
    return ClientStep(add_unanswered(client, sent), (SendRequest(sent.handle, request, reason),), (rule,))


def find_coordinator(client: Client, context: ClientContext) -> ClientStep:
    """FindCoordinator, unless the client knows the coordinator, waits for a response, or for its turn."""
    if client.coordinator is not None:
        return ClientStep(client)
    if is_unanswered(client, SentKind.FIND):
        return ClientStep(client, (), ("client.lookup.waiting",))
    if context.now < client.clocks.lookup_retry:
        return ClientStep(client, (), ("client.lookup.backoff",))
    handle = next_handle(client)
    sent = Unanswered(handle, SentKind.FIND, context.now + client.settings.request_timeout)
    request = FindCoordinator(client.settings.group, handle)
    return ClientStep(add_unanswered(client, sent), (SendRequest(handle, request),), ("client.lookup.send",))


def on_find_response(client: Client, response: FindCoordinatorResponse, context: ClientContext) -> ClientStep:
    """FindCoordinator is answered; what a lookup may not fail with reaches the application in a poll."""
    if response.error == Error.NONE:
        session = context.now + client.settings.session_timeout
        clocks = evolve(client.clocks, session=session, lookup_retry=0)
        found = evolve(client, coordinator=response.node, lookup_failures=0, clocks=clocks)
        return ClientStep(found, (), ("client.lookup.found",))
    if response.error in LOOKUP_RETRIED:
        return lookup_failed(client, context)
    return ClientStep(evolve(client, failure=response.error), (), ("client.lookup.fatal",))


def lookup_failed(client: Client, context: ClientContext) -> ClientStep:
    """The lookup is repeated after a backoff that doubles each time."""
    settings = client.settings
    backoff = min(settings.retry_backoff * 2**client.lookup_failures, settings.max_retry_backoff)
    clocks = evolve(client.clocks, lookup_retry=context.now + backoff)
    return ClientStep(
        evolve(client, lookup_failures=client.lookup_failures + 1, clocks=clocks), (), ("client.lookup.failed",)
    )


def lose_coordinator(client: Client, context: ClientContext) -> ClientStep:
    """The coordinator is unknown, and whatever it was asked for has failed; the membership stays (MEMBER-14)."""
    exchange = any(request.kind in (SentKind.JOIN, SentKind.SYNC) for request in client.unanswered)
    kept = tuple(one for one in client.unanswered if one.kind in (SentKind.FIND, SentKind.LIST_OFFSETS))
    asked = {request.handle for request in client.unanswered if request.kind is SentKind.FETCH_OFFSETS}
    positions = tuple(
        evolve(position, asked=0) if position.asked in asked else position for position in client.positions
    )
    lost = evolve(client, coordinator=None, unanswered=kept, positions=positions)
    rules: tuple[str, ...] = ("client.coordinator.lost",)
    if exchange:
        lost = back_off_join(evolve(lost, member=core.disconnect(lost.member).member), context)
        rules = (*rules, "member.lost")
    step = ClientStep(lost, (), rules)
    for commit in client.commits:
        if commit.handle:
            step = join_steps(step, fail_retriably(step.client, commit, context))
    return step


def back_off_join(client: Client, context: ClientContext) -> Client:
    """The client that waits before it joins again (MEMBER-17)."""
    retry = context.now + client.settings.retry_backoff
    return evolve(client, clocks=evolve(client.clocks, join_retry=retry))


def on_disconnect(client: Client, context: ClientContext) -> ClientStep:
    """The connection to the coordinator is lost."""
    return lose_coordinator(client, context)


# --- Positions: where a partition starts that was just assigned, and how a position moves (member.md 4.1, 4.5).

OFFSET_FETCH_VERSION = 7
"""The first version that can ask for stable offsets (KIP-447)."""
RETRIED = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.UNSTABLE_OFFSET_COMMIT, Error.REQUEST_TIMED_OUT})
"""Errors of an OffsetFetch that is repeated without looking for the coordinator."""


def with_position(client: Client, changed: Position) -> Client:
    """The client with this position in the place of that of the partition."""
    positions = tuple(changed if one.partition == changed.partition else one for one in client.positions)
    return evolve(client, positions=positions)


def fetch_offsets(client: Client, context: ClientContext) -> ClientStep:
    """OffsetFetch of the partitions that have no position and were not asked for (MCOMMIT-19)."""
    missing = tuple(one for one in client.positions if one.offset is None and not one.asked)
    if not missing:
        return ClientStep(client)
    if client.coordinator is None or context.now < client.clocks.offsets_retry:
        return ClientStep(client, (), ("client.offsets.backoff",))
    handle = next_handle(client)
    for one in missing:
        client = with_position(client, evolve(one, asked=handle))
    partitions = tuple(one.partition for one in missing)
    request = OffsetFetch(client.settings.group, handle, OFFSET_FETCH_VERSION, partitions, True)
    sent = Unanswered(handle, SentKind.FETCH_OFFSETS, context.now + client.settings.request_timeout)
    return send_request(client, request, sent, "client.offsets.fetch")


def forget_asked(client: Client, handle: int) -> Client:
    """The client whose partitions wait no longer for the response to this request."""
    positions = tuple(evolve(one, asked=0) if one.asked == handle else one for one in client.positions)
    return evolve(client, positions=positions)


def retry_offsets(client: Client, handle: int, context: ClientContext) -> Client:
    """The client that asks for offsets once more, after a backoff."""
    retry = context.now + client.settings.retry_backoff
    return evolve(forget_asked(client, handle), clocks=evolve(client.clocks, offsets_retry=retry))


def on_offsets(client: Client, handle: int, response: OffsetFetchResponse, context: ClientContext) -> ClientStep:
    """OffsetFetch is answered."""
    if response.error in COORDINATOR_MOVED:
        step = lose_coordinator(retry_offsets(client, handle, context), context)
        return ClientStep(step.client, step.outputs, ("client.offsets.moved", *step.rules))
    if response.error in RETRIED:
        return ClientStep(retry_offsets(client, handle, context), (), ("client.offsets.retry",))
    if response.error != Error.NONE:
        raised = evolve(forget_asked(client, handle), failure=response.error)
        return ClientStep(raised, (), ("client.offsets.fatal",))
    asked = tuple(one for one in client.positions if one.asked == handle)
    if not asked:
        return ClientStep(client, (), ("client.offsets.late",))
    if any(response.offsets.get(one.partition, NO_OFFSET) is None for one in asked):
        return ClientStep(retry_offsets(client, handle, context), (), ("client.offsets.unstable",))
    uncommitted: list[Partition] = []
    for one in asked:
        offset = response.offsets.get(one.partition) or NO_OFFSET
        if offset.offset < 0:
            uncommitted.append(one.partition)
        else:
            client = with_position(client, evolve(one, offset=offset.offset, asked=0))
    step = ClientStep(client, (), ("client.offsets.committed",))
    return reset_positions(step, tuple(uncommitted), context) if uncommitted else step


def reset_positions(step: ClientStep, partitions: tuple[Partition, ...], context: ClientContext) -> ClientStep:
    """ListOffsets of partitions without a committed offset; the policy NONE has the next poll raise."""
    client = step.client
    settings = client.settings
    handle = 0 if settings.reset_policy is ResetPolicy.NONE else next_handle(client)
    for one in client.positions:
        if one.partition in partitions:
            client = with_position(client, evolve(one, asked=handle))
    if not handle:
        return ClientStep(
            evolve(client, failure=Problem.NO_OFFSET), step.outputs, (*step.rules, "client.offsets.no-policy")
        )
    sent = Unanswered(handle, SentKind.LIST_OFFSETS, context.now + settings.request_timeout)
    request = ListOffsets(handle, partitions, settings.reset_policy.value)
    outputs = (*step.outputs, SendRequest(handle, request))
    return ClientStep(add_unanswered(client, sent), outputs, (*step.rules, "client.offsets.reset"))


def on_starts(client: Client, handle: int, response: ListOffsetsResponse) -> ClientStep:
    """ListOffsets is answered; positions that have changed since are left as they are."""
    for partition, offset in response.offsets:
        position = position_of(client, partition)
        if position is not None and position.asked == handle:
            client = with_position(client, evolve(position, offset=offset, asked=0))
    return ClientStep(forget_asked(client, handle), (), ("client.offsets.start",))


def seek(client: Client, given: Seek) -> ClientStep:
    """The application sets a position; what was asked about the partition is of no use any more."""
    position = position_of(client, given.partition)
    if position is None:
        return ClientStep(client, (), ("client.position.not-assigned",))
    return ClientStep(
        with_position(client, evolve(position, offset=given.offset, asked=0)), (), ("client.position.seek",)
    )


def pause(client: Client, given: PausePartition) -> ClientStep:
    """The application pauses or resumes a partition."""
    position = position_of(client, given.partition)
    if position is None:
        return ClientStep(client, (), ("client.position.not-assigned",))
    return ClientStep(
        with_position(client, evolve(position, is_paused=given.is_paused)), (), ("client.position.pause",)
    )


def return_records(client: Client, given: ReturnRecords, context: ClientContext) -> ClientStep:
    """A poll returns records, and the position moves (POLL-10, -11, -13, -19); others are dropped."""
    position = position_of(client, given.partition)
    if position is None or not is_returnable(client, given.partition) or position.offset != given.first:
        return ClientStep(client, (), ("client.records.dropped",))
    moved = with_position(client, evolve(position, offset=given.following))
    return ClientStep(end_poll(moved, context), (), ("client.records.returned",))
