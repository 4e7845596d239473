"""The responses of a coordinator that does not look at the group: it is down, elsewhere, or still loads the group
(coordinator.md 2.0)."""

from enum import Enum

from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.group_protocol import CLASSIC_GROUP
from fencepost.model.classic.coordinator.state import GroupState, StepResult, respond
from fencepost.model.classic.core.state import (
    Context,
    HeartbeatResponse,
    JoinResponse,
    LeaveResponse,
    SyncResponse,
)
from fencepost.model.classic.dialect import Dialect, dialect_of
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup, Request, Response, SyncGroup
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
        return list_while_loading(state, request)
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


def list_while_loading(state: GroupState, request: ListGroups) -> StepResult:
    """Some partition of the node is loading: the error comes with the groups known so far (DIV-14)."""
    _, known, _ = on_list(state, request, CLASSIC_GROUP)
    return respond(state, request, evolve(known, error=Unavailable.LOADING.error), Unavailable.LOADING.rule)


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
