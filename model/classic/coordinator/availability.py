"""What a coordinator answers without looking at the group: it is down, the group is elsewhere, or it still loads
(coordinator.md 2.0)."""

from enum import Enum

from fencepost.model.classic.coordinator.admin import on_list
from fencepost.model.classic.coordinator.dispatch import handle
from fencepost.model.classic.coordinator.offsets import absence, exists
from fencepost.model.classic.coordinator.state import Cluster, Outcome, World, answer
from fencepost.model.classic.core.state import Context, Dialect, HeartbeatAnswer, JoinAnswer, LeaveAnswer, SyncAnswer
from fencepost.model.classic.messages.requests import (
    Commit,
    Delete,
    DeleteOffsets,
    Describe,
    EndTransaction,
    Fetch,
    Heartbeat,
    Join,
    Leave,
    List,
    Request,
    Sync,
    TransactionalCommit,
)
from fencepost.model.classic.messages.responses import Answer, Described, Fetched, Listed, PartitionErrors, Single
from fencepost.model.errors import Error


class Gate(Enum):
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


REQUEST_LAYER = frozenset(
    {
        "sync.incomplete",
        "commit.nothing-to-ask",
        "commit.version-0",
        "fetch.version-0",
        "transaction.nothing-to-ask",
    }
)
"""Rules that answer before any coordinator is asked."""
INVALID_GROUP = frozenset(
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


def turn_away(world: World, request: Request, gate: Gate, context: Context, cluster: Cluster) -> Outcome:
    """Answer a request at the gate; the world stays as it is."""
    invalid = handle(World(), request, context, cluster)
    if comes_first(invalid.rule, gate, context.dialect):
        return Outcome(world, invalid.replies, invalid.rule)
    if gate is Gate.LOADING and isinstance(request, Heartbeat):
        return answer(world, request, HeartbeatAnswer(Error.NONE), "gate.loading.heartbeat")
    if gate is Gate.LOADING and isinstance(request, Sync) and not context.dialect.loading_refuses_sync:
        return answer(world, request, SyncAnswer(Error.REBALANCE_IN_PROGRESS), "gate.loading.sync")
    if gate is Gate.ELSEWHERE and isinstance(request, List):
        return answer(world, request, Listed(False), "gate.elsewhere.list")
    if gate is Gate.LOADING and isinstance(request, List) and not context.dialect.loading_lists_nothing:
        return on_partial_list(world, request)
    return answer(world, request, refusal(request, gate.error, context.dialect, cluster), gate.rule)


def comes_first(rule: str, gate: Gate, dialect: Dialect) -> bool:
    """The request is refused by this rule before the gate is reached (DIV-01)."""
    if rule in REQUEST_LAYER:
        return True
    if rule in INVALID_GROUP:
        return gate is not Gate.NOT_RUNNING or not dialect.validity_comes_before_place
    if rule == "join.invalid-session-timeout":
        return gate is not Gate.NOT_RUNNING and dialect.validity_comes_before_place
    return False


def on_partial_list(world: World, request: List) -> Outcome:
    """Some partition of the node is loading: the error comes with the groups known so far (DIV-14)."""
    (known,) = on_list(world, request).replies
    assert isinstance(known.answer, Listed)
    partial = Listed(known.answer.listed, known.answer.state, known.answer.protocol_type, Gate.LOADING.error)
    return answer(world, request, partial, Gate.LOADING.rule)


def refusal(request: Request, error: Error, dialect: Dialect, cluster: Cluster) -> Answer:
    """The answer to this request that has nothing but an error."""
    match request:
        case Join():
            return JoinAnswer(error, member=None if dialect.gate_hides_member_id else request.core.member)
        case Sync():
            return SyncAnswer(error)
        case Heartbeat():
            return HeartbeatAnswer(error)
        case Leave():
            return LeaveAnswer(error)
        case Commit() | TransactionalCommit():
            return refused_partitions(request, error, dialect, cluster)
        case DeleteOffsets():
            return PartitionErrors(error=error)
        case Fetch():
            return Fetched(error=error)
        case Describe():
            return Described(error, "")
        case List():
            return Listed(False, error=error)
        case Delete() | EndTransaction():
            return Single(error)


def refused_partitions(
    request: Commit | TransactionalCommit, error: Error, dialect: Dialect, cluster: Cluster
) -> PartitionErrors:
    """The error in every partition, but for those that do not exist: they never reach the coordinator."""
    version = request.version if isinstance(request, Commit) else 0
    there = {where for where, _ in request.offsets if exists(cluster, where)}
    if len(there) == len(request.offsets) or not dialect.absent_partitions_come_first:
        return PartitionErrors({where: error for where, _ in request.offsets})
    return PartitionErrors(
        {where: error if where in there else absence(cluster, where, version) for where, _ in request.offsets}
    )
