"""Requests about offsets and groups, for one group whatever its protocol, and their responses."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fencepost.model.errors import Error
from fencepost.model.frozen import fast_frozen
from fencepost.model.logic import Time, Token
from fencepost.model.sorts import Handle, InstanceId, MemberId

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
class CommitRequest:
    """The membership part of OffsetCommit and TxnOffsetCommit: who commits, and in which generation or epoch."""

    handle: Handle
    member: MemberId | None
    instance: InstanceId | None
    generation: int


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
    """InitProducerId of a producer that is known to one group, with the epoch that the response gives it.

    `ends_transaction`: the group was added to a transaction of the producer that is open (AddOffsetsToTxn).
    """

    group: str
    handle: int
    producer: int
    epoch: int
    ends_transaction: bool = False


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


GroupRequest = (
    OffsetCommit
    | TxnOffsetCommit
    | InitProducerId
    | EndTxn
    | OffsetFetch
    | DescribeGroup
    | ListGroups
    | DeleteGroup
    | OffsetDelete
)
"""What every coordinator is asked, whatever the protocol of the group."""
Topics = Mapping[str, int]
"""Number of partitions by topic."""
TopicNames = Mapping[str, str]
"""Name of each topic by its id (KIP-516)."""
MIN_TOPIC_ID_VERSION = 10
"""From this version on OffsetCommit and OffsetFetch name topics by their ids."""


def names_topics_by_id(api: str, version: int) -> bool:
    """Messages of this API and version name topics by their ids."""
    return api in ("OffsetCommit", "OffsetFetch") and version >= MIN_TOPIC_ID_VERSION


@fast_frozen
@dataclass(frozen=True, slots=True)
class PartitionErrors:
    """One error for each partition (OffsetCommit, TxnOffsetCommit, OffsetDelete), or one for them all."""

    errors: Mapping[Partition, Error] = field(default_factory=dict, hash=False)
    error: Error = Error.NONE


@fast_frozen
@dataclass(frozen=True, slots=True)
class OffsetFetchResponse:
    """OffsetFetch of one group; None stands for a partition that is unstable (KIP-447). `nameless` are partitions
    of topics named by an id that no topic has."""

    offsets: Mapping[Partition, Offset | None] = field(default_factory=dict, hash=False)
    error: Error = Error.NONE
    nameless: frozenset[Partition] = frozenset()


NO_OFFSET = Offset(-1)
"""What is fetched where nothing was committed."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member in DescribeGroups; metadata or assignment is None where either of two answers is right (LAT-20)."""

    id: Token
    instance: Token
    metadata: Token
    assignment: Token
    any_assignment: bool = False


@fast_frozen
@dataclass(frozen=True, slots=True)
class DescribeGroupResponse:
    """DescribeGroups of one group."""

    error: Error
    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[MemberDescription, ...] = ()
    is_stored: bool = True
    """Whether anything of the group is stored; what is not may be overlooked (LAT-21)."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class ListGroupsResponse:
    """ListGroups, for one group: is it there, and as what."""

    listed: bool
    state: str = ""
    protocol_type: str = ""
    error: Error = Error.NONE
    is_stored: bool = True
    """Whether anything of the group is stored; what is not may be overlooked (LAT-21)."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An answer with nothing but an error (DeleteGroups of one group, EndTxn)."""

    error: Error


GroupResponse = PartitionErrors | OffsetFetchResponse | DescribeGroupResponse | ListGroupsResponse | ErrorResponse
