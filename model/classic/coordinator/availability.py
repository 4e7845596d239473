"""A coordinator that is not there, that loads, or that cannot write: what it answers, and what stays."""

from enum import Enum

from fencepost.model.classic.coordinator.dispatch import apply_core_step, handle_request
from fencepost.model.classic.coordinator.group_protocol import CLASSIC_GROUP
from fencepost.model.classic.coordinator.state import GroupState, Reply, StepResult, respond
from fencepost.model.classic.core.join_phase import prepare_rebalance
from fencepost.model.classic.core.member_table import find, find_instance, rearm, with_slot
from fencepost.model.classic.core.state import (
    Context,
    HeartbeatResponse,
    Holder,
    JoinResponse,
    LeaveResponse,
    Step,
    SyncResponse,
)
from fencepost.model.classic.dialect import Dialect, dialect_of
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup, Request, Response, SyncGroup, handle_of
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.admin import on_list
from fencepost.model.groups.messages import (
    DeleteGroup,
    DescribeGroup,
    DescribeGroupResponse,
    EndTxn,
    ErrorResponse,
    InitProducerId,
    ListGroups,
    ListGroupsResponse,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetFetchResponse,
    PartitionErrors,
    TxnOffsetCommit,
)
from fencepost.model.groups.offsets import missing_partition_error, partition_exists
from fencepost.model.groups.protocol import Cluster


class Unavailable(Enum):
    """Why a coordinator does not look at a group: what it says, and the rule."""

    NOT_RUNNING = Error.COORDINATOR_NOT_AVAILABLE, "gate.not-running"
    ELSEWHERE = Error.NOT_COORDINATOR, "gate.elsewhere"
    LOADING = Error.COORDINATOR_LOAD_IN_PROGRESS, "gate.loading"

    @property
    def error(self) -> Error:
        """What it says."""
        return self.value[0]

    @property
    def rule(self) -> str:
        """The rule by which it says so."""
        return self.value[1]


REQUEST_LAYER_RULES = frozenset(
    {
        "sync.incomplete",
        "commit.nothing-to-ask",
        "commit.version-0",
        "fetch.version-0",
        "transaction.nothing-to-ask",
    }
)
"""Rules that answer before any coordinator is asked."""
INVALID_GROUP_RULES = frozenset(
    {
        "join.invalid-group",
        "sync.invalid-group",
        "heartbeat.invalid-group",
        "leave.invalid-group",
        "transaction.invalid-group",
        "offset-delete.invalid-group",
    }
)
"""Rules that refuse the empty group id."""


def refuse_unavailable(
    state: GroupState, request: Request, reason: Unavailable, context: Context, cluster: Cluster
) -> StepResult:
    """Answer a request at the gate; the world stays as it is."""
    dialect = dialect_of(context)
    invalid = handle_request(GroupState(), request, context, cluster)
    if is_checked_first(invalid.rule, reason, dialect):
        return StepResult(state, invalid.replies, invalid.rule)
    if reason is Unavailable.LOADING and isinstance(request, Heartbeat):
        return respond(state, request, HeartbeatResponse(Error.NONE), "gate.loading.heartbeat")
    if reason is Unavailable.LOADING and isinstance(request, SyncGroup) and not dialect.loading_refuses_sync:
        return respond(state, request, SyncResponse(Error.REBALANCE_IN_PROGRESS), "gate.loading.sync")
    if reason is Unavailable.ELSEWHERE and isinstance(request, ListGroups):
        return respond(state, request, ListGroupsResponse(False), "gate.elsewhere.list")
    if reason is Unavailable.LOADING and isinstance(request, ListGroups) and not dialect.loading_lists_nothing:
        # The error comes with the groups known so far (DIV-14).
        _, known, _ = on_list(state, request, CLASSIC_GROUP)
        return respond(state, request, evolve(known, error=reason.error), reason.rule)
    return respond(state, request, error_response_to(request, reason.error, dialect, cluster), reason.rule)


def is_checked_first(rule: str, reason: Unavailable, dialect: Dialect) -> bool:
    """The request is refused by this rule before the gate is reached (DIV-01)."""
    if rule in REQUEST_LAYER_RULES:
        return True
    if rule in INVALID_GROUP_RULES:
        return reason is not Unavailable.NOT_RUNNING or not dialect.validity_comes_before_place
    if rule == "join.invalid-session-timeout":
        return reason is not Unavailable.NOT_RUNNING and dialect.validity_comes_before_place
    return False


def error_response_to(request: Request, error: Error, dialect: Dialect, cluster: Cluster) -> Response:
    """The answer to this request that has nothing but an error."""
    match request:
        case JoinGroup():
            return JoinResponse(error, member=None if dialect.gate_hides_member_id else request.core.member)
        case SyncGroup():
            return SyncResponse(error)
        case Heartbeat():
            return HeartbeatResponse(error)
        case LeaveGroup():
            return LeaveResponse(error)
        case OffsetCommit() | TxnOffsetCommit():
            return error_in_partitions(request, error, dialect, cluster)
        case OffsetDelete():
            return PartitionErrors(error=error)
        case OffsetFetch():
            return OffsetFetchResponse(error=error)
        case DescribeGroup():
            return DescribeGroupResponse(error, "")
        case ListGroups():
            return ListGroupsResponse(False, error=error)
        case DeleteGroup() | EndTxn() | InitProducerId():
            return ErrorResponse(error)


def error_in_partitions(
    request: OffsetCommit | TxnOffsetCommit, error: Error, dialect: Dialect, cluster: Cluster
) -> PartitionErrors:
    """The error in every partition, but for those that do not exist: they never reach the coordinator."""
    version = request.version if isinstance(request, OffsetCommit) else 0
    there = {where for where, _ in request.offsets if partition_exists(cluster, where)}
    if len(there) == len(request.offsets) or not dialect.absent_partitions_come_first:
        return PartitionErrors({where: error for where, _ in request.offsets})
    return PartitionErrors(
        {
            where: error if where in there else missing_partition_error(cluster, where, version)
            for where, _ in request.offsets
        }
    )


# --- Requests whose record the log does not take: their responses and the world after them (coordinator.md 5.4).
#
# The response is an error. What was changed for it is undone; but a write that was given up may have reached the log
# all the same (`taken`), and then counts from the next loading on, or at once where nothing else holds it (LAT-16).


class WriteFailure(Enum):
    """Why a record is not taken."""

    UNAVAILABLE = "topic or partition unknown, or too few replicas"
    DISPLACED = "not the leader any more, or the storage fails"
    TOO_LARGE = "the record is too large"
    TIMED_OUT = "not replicated in time"


def write_failure_error(failure: WriteFailure, request: Request, dialect: Dialect) -> Error:
    """The error that the request is answered with."""
    unsteady = isinstance(request, OffsetFetch)  # it waits for writes of others, and is not to see 15
    match failure:
        case WriteFailure.UNAVAILABLE:
            return Error.NOT_COORDINATOR if unsteady else Error.COORDINATOR_NOT_AVAILABLE
        case WriteFailure.DISPLACED:
            return Error.NOT_COORDINATOR
        case WriteFailure.TOO_LARGE:
            told = isinstance(request, OffsetCommit) and not dialect.oversized_is_unexpected
            return Error.INVALID_COMMIT_OFFSET_SIZE if told else Error.UNKNOWN_SERVER_ERROR
        case WriteFailure.TIMED_OUT:
            if unsteady:
                return Error.NOT_COORDINATOR
            if dialect.late_replication_is_unavailable:
                return Error.COORDINATOR_NOT_AVAILABLE
            return (
                Error.REBALANCE_IN_PROGRESS if isinstance(request, JoinGroup | SyncGroup) else Error.REQUEST_TIMED_OUT
            )


def handle_write_failure(
    state: GroupState,
    request: Request,
    failure: WriteFailure,
    context: Context,
    cluster: Cluster,
    *,
    reached_log: bool = False,
) -> StepResult | None:
    """Handle a request whose write fails; None if it writes nothing in this world."""
    done = handle_request(state, request, context, cluster)
    error = write_failure_error(failure, request, dialect_of(context))
    match request:
        case SyncGroup() if done.rule == "sync.leader":
            return undo_assignment(state, done, request, error, context, reached_log=reached_log)
        case JoinGroup() if done.rule == "join.replace.stable":
            return undo_replacement(state, done, request, error, context, reached_log=reached_log)
        case JoinGroup() if (
            state.group is None and done.state.group is not None and dialect_of(context).new_group_is_stored
        ):
            after = evolve(state, stored=done.state.stored) if reached_log else state
            return respond(after, request, JoinResponse(error), "failure.creation")
        case OffsetCommit() | TxnOffsetCommit():
            return undo_offsets(state, done, request, error, reached_log=reached_log)
        case DeleteGroup() if done.rule == "delete.empty":
            return respond(done.state if reached_log else state, request, ErrorResponse(error), "failure.deletion")
        case OffsetDelete() if (done.state.offsets, done.state.pending) != (state.offsets, state.pending):
            after = done.state if reached_log else state
            return respond(after, request, PartitionErrors(error=error), "failure.offset-deletion")
        case OffsetFetch() if request.require_stable and not reached_log:
            return respond(state, request, OffsetFetchResponse(error=error), "failure.stable-fetch")
        case _:
            return None


def undo_assignment(
    state: GroupState, done: StepResult, request: SyncGroup, error: Error, context: Context, *, reached_log: bool
) -> StepResult:
    """The assignment is lost: all who wait for it get the error, and the next round begins (coordinator.md 2.3)."""
    group = state.group
    assert group is not None
    index = find(group, request.core.member, Holder.MEMBER)
    slot = group.slots[index]
    waiting = with_slot(group, index, evolve(slot, sync=request.core.handle, unsynced=False))
    begun, outputs = prepare_rebalance(waiting, context)
    told = tuple(
        evolve(each, response=SyncResponse(error)) if isinstance(each.response, SyncResponse) else each
        for each in outputs
    )
    after = apply_core_step(state, Step(begun, told, "failure.assignment"), context)
    return evolve(after, state=evolve(after.state, stored=done.state.stored)) if reached_log else after


def undo_replacement(
    state: GroupState, done: StepResult, request: JoinGroup, error: Error, context: Context, *, reached_log: bool
) -> StepResult:
    """The instance goes on under its old id, whose parked requests were refused for good (coordinator.md 2.2)."""
    group = state.group
    assert group is not None
    index = find_instance(group, request.core.instance)
    restored = with_slot(group, index, rearm(evolve(group.slots[index], join=0, sync=0), context.now))
    told = JoinResponse(error, group.generation, group.protocol_type, group.protocol, group.leader)
    fenced = tuple(reply for reply in done.replies if reply.handle != request.core.handle)
    stored = done.state.stored if reached_log else state.stored
    after = evolve(state, group=restored, stored=stored)
    return StepResult(after, (*fenced, Reply(request.core.handle, told)), "failure.replacement")


ERRORS_FROM_COORDINATOR = frozenset({Error.NONE, Error.OFFSET_METADATA_TOO_LARGE})
"""What the partitions of an accepted commit get that the coordinator was asked about."""


def undo_offsets(
    state: GroupState, done: StepResult, request: OffsetCommit | TxnOffsetCommit, error: Error, *, reached_log: bool
) -> StepResult | None:
    """No offset is stored; the member was heard all the same."""
    (reply,) = done.replies
    assert isinstance(reply.response, PartitionErrors)
    errors = reply.response.errors
    if Error.NONE not in errors.values():
        return None
    told = PartitionErrors(
        {where: error if each in ERRORS_FROM_COORDINATOR else each for where, each in errors.items()}
    )
    after = evolve(state, group=done.state.group) if state.group is not None else state
    return StepResult(done.state if reached_log else after, (Reply(handle_of(request), told),), "failure.commit")
