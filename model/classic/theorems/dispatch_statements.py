"""The theorems about the dispatcher: what stands between a request and the core, and what it may not change.

A request is refused before the group is looked at, or handled by the core, whose theorems are proved. So they hold of
`handle_request` too, which serves and judges. That commits are stored as they are acknowledged is said here as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.model.classic.coordinator.dispatch import handle_request, takes_slot, with_free_slot
from fencepost.model.classic.coordinator.group_log import group_record, writes_record
from fencepost.model.classic.coordinator.state import GroupState, Reply
from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import commit, heartbeat, leave
from fencepost.model.classic.core.state import (
    CommitResponse,
    Context,
    Group,
    Holder,
    JoinResponse,
    NoResponse,
    Output,
    Phase,
    Step,
    SyncResponse,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.dialect import dialect_of
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import OffsetCommit, Partition, PartitionErrors
from fencepost.model.groups.offsets import partition_exists
from fencepost.model.groups.protocol import Cluster
from fencepost.model.logic import Truth, absent, and_, any_, not_, or_
from fencepost.model.statement import are_equal, implies, statement

MemberRequest = JoinGroup | SyncGroup | Heartbeat | LeaveGroup | OffsetCommit
"""The requests of members, which the core is about."""

REFUSALS = frozenset(
    {
        "join.invalid-group",
        "join.invalid-session-timeout",
        "join.unknown-group",
        "sync.incomplete",
        "sync.invalid-group",
        "sync.unknown-group",
        "sync.empty",
        "heartbeat.invalid-group",
        "heartbeat.unknown-group",
        "heartbeat.empty",
        "leave.invalid-group",
        "leave.unknown-group",
        "commit.nothing-to-ask",
        "commit.version-0",
        "commit.unknown-group",
    }
)
"""The rules by which a request is refused before the core sees it."""


@dataclass(frozen=True, slots=True)
class DispatchedStep:
    """A request of a member at the dispatcher, and what came of it.

    `given` is the group that the core got, `core` what the core makes of the request in it; both are None where the
    request was refused before. `record` is the group's record in the log after it.
    """

    before: GroupState
    request: MemberRequest
    context: Context
    cluster: Cluster
    after: GroupState
    replies: tuple[Reply, ...]
    rule: str
    given: Group | None = None
    core: Step | None = None
    record: Group | None = None


def dispatch_request(state: GroupState, request: MemberRequest, context: Context, cluster: Cluster) -> DispatchedStep:
    """Handle the request as the coordinator does, and let the core handle it alone."""
    result = handle_request(state, request, context, cluster)
    plain = DispatchedStep(state, request, context, cluster, result.state, result.replies, result.rule)
    if result.rule in REFUSALS:
        return plain
    known = state.group or Group()
    given = with_free_slot(known) if takes_slot(request.core) else known
    step = handle_in_core(given, request, context)
    if step.group is given:
        return evolve(plain, given=given, core=evolve(step, group=known), record=state.stored or Group())
    earlier = state.group or Group(generation=step.group.generation)
    writes = not isinstance(request, OffsetCommit) and writes_record(earlier, step, context)
    record = group_record(step.group, context) if writes else state.stored or Group()
    return evolve(plain, given=given, core=step, record=record)


def handle_in_core(group: Group, request: MemberRequest, context: Context) -> Step:
    """What the core makes of a request."""
    match request:
        case JoinGroup():
            return join(group, request.core, context)
        case SyncGroup():
            return sync(group, request.core, context)
        case Heartbeat():
            return heartbeat(group, request.core, context)
        case LeaveGroup():
            return leave(group, request.core, context)
        case OffsetCommit():
            return commit(group, request.core, context)


@statement("refusal", "A request that is refused before the core changes nothing, and its sender alone gets an error.")
def refusal_changes_nothing(step: DispatchedStep) -> Truth:
    """See the sentence."""
    if step.core is not None:
        return True
    answered = len(step.replies) == 1 and and_(
        step.replies[0].handle == step.request.core.handle, is_error(step.replies[0].response)
    )
    return and_(are_equal(step.before, step.after), answered)


def is_error(response: Any) -> Truth:
    """The response tells of an error: its own, or one for each entry or partition."""
    if isinstance(response, PartitionErrors):
        return and_(*(error != Error.NONE for error in response.errors.values()))
    entries = getattr(response, "entries", ())
    return or_(response.error != Error.NONE, and_(len(entries) > 0, *(error != Error.NONE for error in entries)))


@statement(
    "gate",
    "A request is refused before the core if, and only if, its group id, session timeout or version is not allowed, it"
    " is incomplete or names nothing that exists, or its group is not there; it gets the error for that.",
)
def gate_is_exact(step: DispatchedStep) -> Truth:
    """Nobody is turned away who may come in."""
    reasons = refusal_reasons(step)
    if step.core is not None:
        return and_(*(not_(applies) for applies, _ in reasons))
    terms: list[Truth] = []
    earlier: Truth = False
    for applies, error in reasons:
        terms.append(
            implies(and_(applies, not_(earlier)), error is None or tells_error(step.replies[0].response, error))
        )
        earlier = or_(earlier, applies)
    return and_(earlier, *terms)


def refusal_reasons(step: DispatchedStep) -> tuple[tuple[Truth, Error | None], ...]:
    """Why a request may be refused, in order, each with its error; None where each partition has its own."""
    request, group = step.request, step.before.group
    unnamed = (request.group == "", Error.INVALID_GROUP_ID)
    nobody = (group is None or group.phase == Phase.EMPTY, Error.UNKNOWN_MEMBER_ID)
    match request:
        case JoinGroup(core=core):
            limits = step.cluster.settings
            short = core.session_timeout < limits.min_session_timeout
            length = (or_(short, core.session_timeout > limits.max_session_timeout), Error.INVALID_SESSION_TIMEOUT)
            return unnamed, length, (and_(group is None, not_(absent(core.member))), Error.UNKNOWN_MEMBER_ID)
        case SyncGroup(complete=complete):
            return (not_(complete), Error.INCONSISTENT_GROUP_PROTOCOL), unnamed, nobody
        case Heartbeat():
            return unnamed, nobody
        case LeaveGroup():
            return unnamed, (group is None, Error.UNKNOWN_MEMBER_ID)
        case OffsetCommit():
            dialect, claims = dialect_of(step.context), and_(group is None, request.core.generation >= 0)
            late = and_(request.version >= 9, dialect.unknown_group_named)
            return (
                (not any(partition_exists(step.cluster, where) for where, _ in request.offsets), None),
                (and_(request.version == 0, not_(dialect.keeps_version_0)), Error.UNSUPPORTED_VERSION),
                (and_(claims, late), Error.GROUP_ID_NOT_FOUND),
                (claims, Error.ILLEGAL_GENERATION),
            )


def tells_error(response: Any, error: Error) -> Truth:
    """The response has this error: its own, or some entry or partition has it."""
    if isinstance(response, PartitionErrors):
        return any_(one == error for one in response.errors.values())
    return or_(response.error == error, any_(one == error for one in getattr(response, "entries", ())))


@statement(
    "core",
    "Any other request of a member changes the group and is answered as the proved core has it; one that the member's"
    " next one supersedes may get NOT_COORDINATOR.",
)
def core_decides(step: DispatchedStep) -> Truth:
    """See the sentence. What a commit answers is said by the next theorems."""
    if step.core is None:
        return True
    if isinstance(step.request, OffsetCommit):
        return implies(membership_error(step.core) == Error.NONE, are_equal(step.after.group, step.core.group))
    if len(step.replies) != len(step.core.outputs):
        return False
    told = (is_answered_so(reply, output) for reply, output in zip(step.replies, step.core.outputs, strict=True))
    return and_(are_equal(step.after.group or Group(), step.core.group), *told)


def is_answered_so(reply: Reply, output: Output) -> Truth:
    """The reply is what the core says, or NOT_COORDINATOR where that is nothing (DIV-23)."""
    if isinstance(output.response, NoResponse) and isinstance(reply.response, JoinResponse | SyncResponse):
        return and_(reply.handle == output.handle, reply.response.error == Error.NOT_COORDINATOR)
    return are_equal((reply.handle, reply.response), (output.handle, output.response))


@statement("room", "A JoinGroup without an id finds a free slot, and no other request gets one more.")
def join_finds_room(step: DispatchedStep) -> Truth:
    """See the sentence. The proofs about the core assume it."""
    if step.given is None:
        return True
    known = step.before.group or Group()
    if not isinstance(step.request, JoinGroup):
        return are_equal(step.given, known)
    free = any_(slot.holder == Holder.NOBODY for slot in step.given.slots)
    return or_(and_(not_(absent(step.request.core.member)), are_equal(step.given, known)), free)


@statement("record", "The record of a group is written as the theorems across fail-overs have it.")
def record_is_written(step: DispatchedStep) -> Truth:
    """See the sentence."""
    if step.core is None or isinstance(step.request, OffsetCommit):
        return True
    return are_equal(step.after.stored or Group(), step.record)


@statement("emptied", "A group counts as empty since the request that emptied it.")
def empty_since_request(step: DispatchedStep) -> Truth:
    """The end of a join phase with nobody; commits leave it as it is."""
    before, after = step.before.group, step.after.group
    same: Truth = step.after.emptied_at == step.before.emptied_at
    if before is None or after is None:
        return same
    ended = and_(after.phase == Phase.EMPTY, after.generation != before.generation)
    return or_(and_(not_(ended), same), and_(ended, step.after.emptied_at == step.context.now))


@statement("acknowledged", "A partition of a commit is acknowledged only if the core accepts the commit.")
def core_accepts_commit(step: DispatchedStep) -> Truth:
    """See the sentence. Every partition is answered, and one that does not exist gets an error."""
    if not isinstance(step.request, OffsetCommit):
        return True
    errors = partition_errors(step)
    if errors.keys() != {where for where, _ in step.request.offsets}:
        return False
    missing = [where for where, _ in step.request.offsets if not partition_exists(step.cluster, where)]
    refused = and_(*(errors[where] != Error.NONE for where in missing))
    if step.core is None:
        return refused
    accepted = membership_error(step.core) == Error.NONE
    return and_(refused, or_(accepted, and_(*(error != Error.NONE for error in errors.values()))))


@statement("stored", "A commit is stored where it is acknowledged, as it was sent, and changes no other offset.")
def commit_is_stored(step: DispatchedStep) -> Truth:
    """See the sentence."""
    if not isinstance(step.request, OffsetCommit):
        return are_equal(step.before.offsets, step.after.offsets)
    errors, sent = partition_errors(step), dict(step.request.offsets)
    terms: list[Truth] = [are_equal(step.before.pending, step.after.pending)]
    for where in {*step.before.offsets, *step.after.offsets, *sent}:
        kept = are_equal(step.before.offsets.get(where), step.after.offsets.get(where))
        if where not in sent:
            terms.append(kept)
            continue
        acknowledged = errors.get(where, Error.UNKNOWN_TOPIC_OR_PARTITION) == Error.NONE
        terms.append(or_(and_(acknowledged, is_stored(step, where)), and_(not_(acknowledged), kept)))
    return and_(*terms)


def is_stored(step: DispatchedStep, where: Partition) -> Truth:
    """The offset that was sent for the partition is there, committed now, to expire when it was asked to."""
    assert isinstance(step.request, OffsetCommit)
    stored, sent = step.after.offsets.get(where), dict(step.request.offsets)[where]
    if stored is None:
        return False
    retention = step.request.retention
    expires = None if retention is None else step.context.now + retention
    same = (are_equal(getattr(stored, name), getattr(sent, name)) for name in ("offset", "epoch", "metadata"))
    return and_(*same, stored.committed == step.context.now, are_equal(stored.expires, expires))


def membership_error(step: Step) -> Error:
    """What the core says of a commit."""
    response = step.outputs[0].response
    assert isinstance(response, CommitResponse)
    return response.error


def partition_errors(step: DispatchedStep) -> Mapping[Partition, Error]:
    """The error of each partition of a commit."""
    (reply,) = step.replies
    assert isinstance(reply.response, PartitionErrors)
    return reply.response.errors


DISPATCH_THEOREMS = (
    refusal_changes_nothing,
    gate_is_exact,
    core_decides,
    join_finds_room,
    record_is_written,
    empty_since_request,
    core_accepts_commit,
    commit_is_stored,
)
