"""The requests to a coordinator, for one group: those of the core, and those that only the layer around it knows."""

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost.model.classic.core.state import CommitRequest, HeartbeatRequest, JoinRequest, LeaveRequest, SyncRequest
from fencepost.model.errors import Error
from fencepost.model.frozen import fast_frozen
from fencepost.model.logic import Time

Partition = tuple[str, int]
"""A topic and the number of one of its partitions."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Offset:
    """A committed offset. `expires` is the moment an explicit retention ends, None if the broker's applies;
    `committed` is when it was stored; of two for one partition the one with the higher `number` was sent later."""

    offset: int
    epoch: int = -1
    metadata: str = ""
    expires: Time | None = None
    committed: Time = 0
    number: int = 0


@fast_frozen
@dataclass(frozen=True, slots=True)
class JoinGroup:
    """JoinGroup as sent."""

    group: str
    core: JoinRequest


@fast_frozen
@dataclass(frozen=True, slots=True)
class SyncGroup:
    """SyncGroup as sent; `complete` is false from v5 if protocol type or name is null (SYNC-06). `failure` is the
    leader's reason why there is no assignment: only the proposal of client-side assignment has it."""

    group: str
    core: SyncRequest
    complete: bool
    failure: Error = Error.NONE


@fast_frozen
@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Heartbeat as sent."""

    group: str
    core: HeartbeatRequest


@fast_frozen
@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """LeaveGroup as sent."""

    group: str
    core: LeaveRequest


@fast_frozen
@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """OffsetCommit as sent. `retention` is in milliseconds, None for the broker's."""

    group: str
    core: CommitRequest
    version: int
    offsets: tuple[tuple[Partition, Offset], ...]
    retention: int | None = None


@fast_frozen
@dataclass(frozen=True, slots=True)
class TxnOffsetCommit:
    """TxnOffsetCommit as sent. `epoch` is the producer's."""

    group: str
    core: CommitRequest
    producer: int
    offsets: tuple[tuple[Partition, Offset], ...]
    epoch: int = 0


@fast_frozen
@dataclass(frozen=True, slots=True)
class InitProducerId:
    """InitProducerId of a producer that is known to one group, with the epoch that the response gives it."""

    group: str
    handle: int
    producer: int
    epoch: int


@fast_frozen
@dataclass(frozen=True, slots=True)
class EndTxn:
    """EndTxn, as far as one group is concerned."""

    group: str
    handle: int
    producer: int
    committed: bool


@fast_frozen
@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """OffsetFetch for one group; `partitions` is None for all."""

    group: str
    handle: int
    version: int
    partitions: tuple[Partition, ...] | None
    require_stable: bool


@fast_frozen
@dataclass(frozen=True, slots=True)
class DescribeGroup:
    """DescribeGroups for one group."""

    group: str
    handle: int
    version: int


@fast_frozen
@dataclass(frozen=True, slots=True)
class ListGroups:
    """ListGroups, as far as one group is concerned; empty filters let everything through."""

    group: str
    handle: int
    states: frozenset[str]
    types: frozenset[str]


@fast_frozen
@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """DeleteGroups for one group."""

    group: str
    handle: int


@fast_frozen
@dataclass(frozen=True, slots=True)
class OffsetDelete:
    """An OffsetDelete of these partitions of the group."""

    group: str
    handle: int
    partitions: tuple[Partition, ...]


Request = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | OffsetCommit
    | TxnOffsetCommit
    | InitProducerId
    | EndTxn
    | OffsetFetch
    | DescribeGroup
    | ListGroups
    | DeleteGroup
    | OffsetDelete
)


def handle_of(request: Request) -> int:
    """The handle that the answer to this request will carry."""
    if isinstance(request, JoinGroup | SyncGroup | Heartbeat | LeaveGroup | OffsetCommit | TxnOffsetCommit):
        return request.core.handle
    return request.handle


Topics = Mapping[str, int]
"""Number of partitions by topic."""
TopicNames = Mapping[str, str]
"""Name of each topic by its id (KIP-516)."""
MIN_TOPIC_ID_VERSION = 10
"""From this version on OffsetCommit and OffsetFetch name topics by their ids."""
