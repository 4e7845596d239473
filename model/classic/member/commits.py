"""OffsetCommit, and the commits around a rebalance, before JoinGroup and at its end (member.md 2, 4)."""

from collections.abc import Iterable
from re import fullmatch

from fencepost.model.classic.core.state import CommitResponse, SyncResponse
from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import (
    Callback,
    CallbackKind,
    CallbackPlace,
    Client,
    ClientCommit,
    ClientContext,
    CommitPurpose,
    Completion,
    Failure,
    Position,
    Problem,
    SentKind,
    assigned_partitions,
    counts_of,
    end_poll,
    flags_of,
    has_generation,
    is_rebalancing,
    is_unanswered,
    next_handle,
    partitions_of,
    position_of,
)
from fencepost.model.classic.member.lookup import (
    COORDINATOR_MOVED,
    fail_retriably,
    find_coordinator,
    finish_commit,
    lose_coordinator,
    with_commit,
)
from fencepost.model.classic.member.member import MemberState, MemberStep, PartitionCommit
from fencepost.model.classic.member.step import (
    CallListener,
    ClientStep,
    CommitOffsets,
    RaiseFailure,
    SendRequest,
    join_steps,
    then,
)
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import CommitRequest, Offset, OffsetCommit, Partition, PartitionErrors
from fencepost.model.logic import Time
from fencepost.model.sorts import Handle

COMMIT_VERSION = 9
"""The newest version that names topics by their names."""
COMMIT_RETRIED = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.UNKNOWN_TOPIC_OR_PARTITION})
COMMIT_MOVED = COORDINATOR_MOVED | {Error.REQUEST_TIMED_OUT}
THROWN_OUT = frozenset({Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID})
"""Errors by which a commit learns that the generation, or the membership, is over."""


def offsets_to_commit(client: Client, wanted: Iterable[Partition] | None) -> tuple[tuple[Partition, Offset], ...]:
    """The valid positions of the assigned partitions among those wanted, None for all (MCOMMIT-01, -02, -18)."""
    chosen = None if wanted is None else set(wanted)
    return tuple(
        (one.partition, Offset(one.offset))
        for one in client.positions
        if one.offset is not None and (chosen is None or one.partition in chosen)
    )


def start_commit(
    client: Client,
    purpose: CommitPurpose,
    offsets: tuple[tuple[Partition, Offset], ...],
    context: ClientContext,
) -> ClientStep:
    """A new commit of these offsets; one without offsets is over at once and sends nothing."""
    number = next_handle(client)
    commit = ClientCommit(number, purpose, offsets, commit_deadline(client, purpose, context))
    client = evolve(client, last_handle=number, commits=(*client.commits, commit))
    if purpose is CommitPurpose.PREPARE:
        client = evolve(client, prepare_commit=number)
    if not offsets:
        step = finish_commit(client, commit, None, context)
        return ClientStep(step.client, step.outputs, ("client.commit.empty",))
    return send_commit(client, commit, context)


def commit_deadline(client: Client, purpose: CommitPurpose, context: ClientContext) -> Time:
    """When a commit is given up."""
    if purpose is CommitPurpose.PREPARE:
        return client.clocks.prepare
    return context.now + client.settings.api_timeout


def send_commit(client: Client, commit: ClientCommit, context: ClientContext) -> ClientStep:
    """The commit goes out under the present generation, or waits for the coordinator, or fails here."""
    local = local_failure(client)
    if local is not None:
        step = finish_commit(client, commit, local, context)
        rule = "client.commit.not-joined" if local is Problem.COMMIT_FAILED else "client.commit.rebalancing"
        return ClientStep(step.client, step.outputs, (rule, *step.rules))
    if client.coordinator is None:
        waiting = ClientStep(with_commit(client, evolve(commit, handle=0)), (), ("client.commit.waiting",))
        return then(waiting, context, find_coordinator)
    handle = next_handle(client)
    request, partitions = core_commit(client, handle, [partition for partition, _ in commit.offsets])
    offsets = tuple(row for row in commit.offsets if row[0] in partitions)
    if not offsets:
        step = finish_commit(client, commit, None, context)
        return ClientStep(step.client, step.outputs, ("client.commit.empty",))
    sent = evolve(commit, handle=handle, request=request, offsets=offsets)
    message = OffsetCommit(client.settings.group, request, COMMIT_VERSION, offsets)
    rule = "client.commit.manual" if client.is_manual else "member.commit"
    return ClientStep(evolve(with_commit(client, sent), last_handle=handle), (SendRequest(handle, message),), (rule,))


def local_failure(client: Client) -> Failure | None:
    """Why a commit is not even sent (MCOMMIT-08, MCOMMIT-11)."""
    if client.is_manual or client.member.state == MemberState.STABLE:
        return None
    return Problem.REBALANCE_IN_PROGRESS if is_rebalancing(client) else Problem.COMMIT_FAILED


def core_commit(
    client: Client, handle: Handle, partitions: Iterable[Partition]
) -> tuple[CommitRequest, frozenset[Partition]]:
    """The request of the proved member, and the partitions that it lets the client commit (MCOMMIT-03, MCOMMIT-12)."""
    wanted = frozenset(partitions)
    if client.is_manual:
        return CommitRequest(handle, None, None, -1), wanted
    steps = [core.commit(client.member, handle, flags_of(client, wanted))]
    if client.completion is not None and is_revoking(client):
        steps.append(complete_core(client, client.completion, handle))
    allowed: set[Partition] = set()
    for step in steps:
        for sent in step.sent_requests:
            if sent.when and isinstance(sent.request, PartitionCommit):
                allowed.update(partitions_of(client, sent.request.partitions))
    return core.commit_request(client.member, handle), wanted & allowed


def is_revoking(client: Client) -> bool:
    """Whether the callback runs that hears which partitions a completed rebalance takes away."""
    return client.callback is not None and client.callback.kind is CallbackKind.REVOKED


def complete_core(client: Client, completion: Completion, commit_handle: Handle) -> MemberStep:
    """The step of the proved member on the response to its SyncGroup."""
    before, synced = completion.before, completion.synced
    response = SyncResponse(Error.NONE, assignment=flags_of(client, synced.partitions))
    return core.on_sync_response(before, before.waiting, response, commit_handle)


def on_application_commit(client: Client, given: CommitOffsets, context: ClientContext) -> ClientStep:
    """The application commits."""
    if client.is_fenced:
        return ClientStep(client, (RaiseFailure(Error.FENCED_INSTANCE_ID),), ("client.commit.still-fenced",))
    purpose = CommitPurpose.SYNC if given.is_sync else CommitPurpose.ASYNC
    return start_commit(client, purpose, offsets_to_commit(client, given.partitions), context)


def commit_periodically(client: Client, context: ClientContext) -> ClientStep:
    """The auto-commit of a poll, before records are returned (MCOMMIT-04, MCOMMIT-17)."""
    settings = client.settings
    if not settings.auto_commit or context.now < client.clocks.auto_commit or local_failure(client) is not None:
        return ClientStep(client)
    due = context.now + settings.auto_commit_interval
    client = evolve(client, clocks=evolve(client.clocks, auto_commit=due))
    step = start_commit(client, CommitPurpose.PERIODIC, offsets_to_commit(client, None), context)
    return ClientStep(step.client, step.outputs, ("client.auto-commit.due", *step.rules))


def send_waiting_commits(client: Client, context: ClientContext) -> ClientStep:
    """Commits that wait for the coordinator or for their backoff go out, in order; the late ones are given up."""
    step = ClientStep(client)
    for commit in client.commits:
        if not commit.handle:
            step = join_steps(step, send_waiting(step.client, commit, context))
    return step


def send_waiting(client: Client, commit: ClientCommit, context: ClientContext) -> ClientStep:
    """One commit that waits goes out, waits on, or is given up."""
    lookup_failed = client.coordinator is None and client.lookup_failures and not is_unanswered(client, SentKind.FIND)
    if context.now >= commit.deadline or (commit.purpose is CommitPurpose.ASYNC and lookup_failed):
        step = finish_commit(client, commit, Problem.RETRIABLE_COMMIT, context)
        return ClientStep(step.client, step.outputs, ("client.commit.given-up", *step.rules))
    if context.now < commit.retry_at:
        return ClientStep(client)
    if client.coordinator is None:
        return find_coordinator(client, context)
    return send_commit(client, commit, context)


def error_in(response: PartitionErrors) -> Error:
    """The error that decides: the first of a partition, or that of all (member.md 1.5)."""
    if response.error != Error.NONE:
        return response.error
    errors = [error for error in response.errors.values() if error != Error.NONE]
    decisive = [error for error in errors if error != Error.TOPIC_AUTHORIZATION_FAILED]
    return (decisive or errors or [Error.NONE])[0]


def on_commit_response(
    client: Client, commit: ClientCommit, response: PartitionErrors, context: ClientContext
) -> ClientStep:
    """OffsetCommit is answered (MCOMMIT-09, -10, -13 to -15)."""
    error = error_in(response)
    assert commit.request is not None
    if error in COMMIT_RETRIED:
        step = fail_retriably(client, commit, context)
        return ClientStep(step.client, step.outputs, ("client.commit.retriable", *step.rules))
    if error in COMMIT_MOVED:
        moved = lose_coordinator(client, context)
        return ClientStep(moved.client, moved.outputs, ("client.commit.moved", *moved.rules))
    client, failure, rule = judge_commit(client, commit.request, error)
    if failure is Error.FENCED_INSTANCE_ID and commit.purpose is not CommitPurpose.SYNC:
        client = evolve(client, is_fenced=True)
    step = finish_commit(client, commit, failure, context)
    return ClientStep(step.client, step.outputs, (rule, *step.rules))


def judge_commit(client: Client, request: CommitRequest, error: Error) -> tuple[Client, Failure | None, str]:
    """The client after this error, the failure for its caller, and the rule."""
    if error == Error.NONE:
        return client, None, "client.commit.done"
    if client.is_manual:
        return client, error, "client.commit.refused"
    is_current = core.is_current(client.member, request.member, request.generation)
    step = core.on_commit_response(client.member, request, CommitResponse(error))
    told = evolve(client, member=step.member)
    if error == Error.REBALANCE_IN_PROGRESS:
        return told, Problem.REBALANCE_IN_PROGRESS, step.rule
    if error in THROWN_OUT | {Error.FENCED_INSTANCE_ID} and not is_current:
        preparing = client.member.state == MemberState.PREPARING_REBALANCE
        return told, Problem.REBALANCE_IN_PROGRESS if preparing else Problem.COMMIT_FAILED, "client.commit.late"
    if error in THROWN_OUT:
        return evolve(told, is_prepared=False), Problem.COMMIT_FAILED, step.rule
    return told, error, "client.commit.fenced" if error == Error.FENCED_INSTANCE_ID else "client.commit.refused"


def commit_before_rebalance(client: Client, context: ClientContext) -> ClientStep:
    """The commit of the consumed positions before JoinGroup, of eager members with their partitions held back
    (MCOMMIT-05, MCOMMIT-06, CALLBACK-07). It is over once `is_committed` says so."""
    if not client.settings.auto_commit or not client.positions or local_failure(client) is not None:
        return ClientStep(evolve(client, is_committed=True))
    if client.prepare_commit or context.now < client.clocks.prepare_retry:
        return ClientStep(client, (), ("client.prepare.committing",))
    if not client.clocks.prepare:
        limit = context.now + client.settings.rebalance_timeout
        client = evolve(client, clocks=evolve(client.clocks, prepare=limit))
    rules: tuple[str, ...] = ("client.prepare.commit",)
    if not client.settings.is_cooperative:
        positions = tuple(evolve(one, is_pending=True) for one in client.positions)
        client, rules = evolve(client, positions=positions), ("client.prepare.hold-back", *rules)
    step = start_commit(client, CommitPurpose.PREPARE, offsets_to_commit(client, None), context)
    return ClientStep(step.client, step.outputs, (*rules, *step.rules))


def give_up_commit_before_rebalance(client: Client, context: ClientContext) -> ClientStep:
    """The commit before JoinGroup is not waited for beyond the rebalance timeout (MCOMMIT-06)."""
    if not client.clocks.prepare or context.now < client.clocks.prepare:
        return ClientStep(client)
    late = [commit for commit in client.commits if commit.number == client.prepare_commit]
    for commit in late:
        client = finish_commit(client, commit, Problem.RETRIABLE_COMMIT, context).client
    return ClientStep(evolve(client, is_committed=True), (), ("client.prepare.commit-too-late",))


def commit_given_up(client: Client, revoked: tuple[Partition, ...], context: ClientContext) -> ClientStep:
    """With auto-commit, what a completed rebalance takes away is committed under the new generation."""
    offsets = offsets_to_commit(client, set(revoked).intersection(assigned_partitions(client)))
    if not client.settings.auto_commit or not client.settings.dialect.commits_given_up or not offsets:
        return ClientStep(client)
    step = start_commit(client, CommitPurpose.GIVEN_UP, offsets, context)
    return ClientStep(step.client, step.outputs, ("client.complete.commit-given-up", *step.rules))


# --- A rebalance ends: the assignment is checked and installed, and the listener is called (member.md 2.3).


def call_listener(
    client: Client, kind: CallbackKind, partitions: tuple[Partition, ...], place: CallbackPlace, rule: str
) -> ClientStep:
    """The listener is called; the client goes on when it returns."""
    if kind is CallbackKind.LOST and not client.settings.hears_lost:
        kind = CallbackKind.REVOKED
    callback = Callback(kind, partitions, place)
    return ClientStep(evolve(client, callback=callback), (CallListener(callback),), (rule,))


def complete_rebalance(client: Client, context: ClientContext) -> ClientStep:
    """The poll takes the assignment that SyncGroup brought."""
    synced = client.synced
    assert synced is not None
    client = evolve(client, synced=None)
    named = {topic for topic, _ in synced.partitions}
    if client.pattern is not None:
        client = evolve(client, topics=client.topics | {one for one in named if fullmatch(client.pattern, one)})
    if not named <= client.topics:
        # The exchange is over, so that the step before JoinGroup runs again (MEMBER-20).
        refused = evolve(client, member=core.disconnect(client.member).member, is_prepared=False)
        return ClientStep(refused, (), ("client.complete.foreign-topic",))
    completion = Completion(client.member, synced)
    step = complete_core(client, completion, 0)
    if step.rule != "member.sync.answered":
        return ClientStep(evolve(client, member=step.member), (), (step.rule,))
    completing = evolve(client, member=step.member, completion=completion, remembered=synced.partitions)
    revoked = tuple(sorted(set(assigned_partitions(client)).difference(synced.partitions)))
    if not revoked:
        return then(ClientStep(completing, (), (step.rule,)), context, install_assignment)
    called = call_listener(completing, CallbackKind.REVOKED, revoked, CallbackPlace.COMPLETE, "client.complete.revoke")
    committed = commit_given_up(called.client, revoked, context)
    return ClientStep(
        committed.client, (*committed.outputs, *called.outputs), (step.rule, *committed.rules, *called.rules)
    )


def install_assignment(client: Client, context: ClientContext) -> ClientStep:
    """Install the new assignment: partitions that stay keep their position, new ones have none."""
    assert client.completion is not None
    synced = client.completion.synced
    kept = {one: position_of(client, one) for one in synced.partitions}
    added = tuple(one for one, position in kept.items() if position is None)
    positions = tuple(position or Position(one) for one, position in kept.items())
    clocks = evolve(client.clocks, auto_commit=context.now + client.settings.auto_commit_interval)
    installed = evolve(client, positions=positions, clocks=clocks)
    return call_listener(installed, CallbackKind.ASSIGNED, added, CallbackPlace.COMPLETE, "client.complete.assign")


def on_completion_callback(client: Client, kind: CallbackKind, raised: bool, context: ClientContext) -> ClientStep:
    """The listener returned from a call after SyncGroup; the first failure is raised when all calls were made."""
    assert client.completion is not None
    raised = raised or client.completion.raised
    client = evolve(client, completion=evolve(client.completion, raised=raised))
    if kind is CallbackKind.REVOKED:
        return then(ClientStep(client, (), ("client.complete.revoked",)), context, install_assignment)
    ended = evolve(client, completion=None, is_prepared=False, is_committed=False, reason="")
    if not raised:
        return ClientStep(ended, (), ("client.complete.done",))
    return ClientStep(end_poll(ended, context), (RaiseFailure(Problem.LISTENER),), ("client.complete.raised",))


# --- Before JoinGroup: whether the client has to join, and the partitions that it gives up first (member.md 1.2,
# 2.2).


def notice_changes(client: Client, context: ClientContext) -> ClientStep:
    """The member has to join where the subscription is not the one it joined with, or where a leader sees other
    partition counts than it planned with (MEMBER-21, MEMBER-27, MEMBER-28)."""
    if client.member.rejoins or is_exchanging(client):
        return ClientStep(client)
    if client.joined is None or client.joined.topics != client.topics:
        rule, reason = "client.rejoin.subscription", "the subscription has changed"
    elif client.leads and counts_of(client, client.group_topics) != client.planned:
        rule, reason = "client.rejoin.metadata", "cached metadata has changed"
    else:
        return ClientStep(client)
    return ClientStep(evolve(client, member=core.ask_rejoin(client.member).member, reason=reason), (), (rule,))


def is_exchanging(client: Client) -> bool:
    """Whether a JoinGroup or SyncGroup is unanswered, or its answer has not been read."""
    return bool(client.member.waiting) or client.synced is not None


def lost_partitions(client: Client) -> tuple[Partition, ...]:
    """The partitions that are lost since the generation or the member id was reset (CALLBACK-05)."""
    return () if has_generation(client) else assigned_partitions(client)


def prepare(client: Client, context: ClientContext) -> ClientStep:
    """The commit and the callback before JoinGroup; the client is prepared when no callback is left to run."""
    lost = lost_partitions(client)
    if lost:
        return call_listener(client, CallbackKind.LOST, lost, CallbackPlace.PREPARE, "client.prepare.lost")
    if client.is_prepared:
        return ClientStep(client)
    if not client.is_committed:
        step = then(ClientStep(client), context, give_up_commit_before_rebalance)
        step = step if step.client.is_committed else then(step, context, commit_before_rebalance)
        if not step.client.is_committed:
            return step
        return then(step, context, prepare)
    # A listener that raises is not called again for the same rebalance (CALLBACK-13).
    client = end_preparation(client)
    if not has_generation(client):
        return ClientStep(client, (), ("client.prepare.nothing",))
    if not client.settings.is_cooperative:
        everything = assigned_partitions(client)
        return call_listener(
            client, CallbackKind.REVOKED, everything, CallbackPlace.PREPARE, "client.prepare.revoke-all"
        )
    dropped = unsubscribed_partitions(client)
    if not dropped:
        return ClientStep(client, (), ("client.prepare.keep",))
    return call_listener(
        client, CallbackKind.REVOKED, dropped, CallbackPlace.PREPARE, "client.prepare.revoke-unsubscribed"
    )


def end_preparation(client: Client) -> Client:
    """The client that may send JoinGroup; a commit that is still unanswered holds no rebalance up."""
    return evolve(client, is_prepared=True, prepare_commit=0, clocks=evolve(client.clocks, prepare=0))


def unsubscribed_partitions(client: Client) -> tuple[Partition, ...]:
    """The assigned partitions whose topic has left the subscription (CALLBACK-04)."""
    return tuple(one for one in assigned_partitions(client) if one[0] not in client.topics)


def on_prepare_callback(
    client: Client, given_up: tuple[Partition, ...], raised: bool, context: ClientContext
) -> ClientStep:
    """The listener returned from a call before JoinGroup, and the partitions are given up, also if it raised."""
    positions = tuple(one for one in client.positions if one.partition not in given_up)
    client = evolve(client, positions=positions, leads=False, group_topics=frozenset())
    owned = flags_of(client, assigned_partitions(client))
    client = end_preparation(evolve(client, member=evolve(client.member, owned=owned)))
    if not raised:
        return ClientStep(client, (), ("client.prepare.given-up",))
    return ClientStep(end_poll(client, context), (RaiseFailure(Problem.LISTENER),), ("client.prepare.raised",))
