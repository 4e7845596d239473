"""The answers that stand around the core's: offsets and admin calls, for one group."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fencepost.model.classic.core.state import CoreResponse
from fencepost.model.classic.messages.requests import Offset, Partition
from fencepost.model.errors import Error
from fencepost.model.frozen import fast_frozen
from fencepost.model.logic import Token


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


Response = (
    CoreResponse | PartitionErrors | OffsetFetchResponse | DescribeGroupResponse | ListGroupsResponse | ErrorResponse
)
