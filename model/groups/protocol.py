"""The questions that offsets and administration ask of the protocol of a group, and what they know of its world."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

from fencepost.model.errors import Error
from fencepost.model.frozen import fast_frozen
from fencepost.model.groups.messages import (
    DescribeGroupResponse,
    ListGroupsResponse,
    Offset,
    OffsetCommit,
    Partition,
    TopicNames,
    Topics,
    TxnOffsetCommit,
)
from fencepost.model.logic import Time, Truth
from fencepost.model.settings import Settings

PendingOffsets = Mapping[int, Mapping[Partition, Offset]]
"""Offsets that are not visible until their transaction is committed, by producer id."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class DeletedOffsets:
    """What was deleted while it was pending: in transactions that are open, and in those committed since."""

    pending: PendingOffsets = field(default_factory=dict)
    committed: Mapping[Partition, Offset] = field(default_factory=dict)


NOTHING_DELETED = DeletedOffsets()


class GroupWorld(Protocol):
    """What a coordinator holds about one group id beside its members: a frozen dataclass that has at least this."""

    @property
    def offsets(self) -> Mapping[Partition, Offset]:
        """The committed offsets."""

    @property
    def pending(self) -> PendingOffsets:
        """The offsets of open transactions."""

    @property
    def ended_transactions(self) -> tuple[tuple[int, bool, int], ...]:
        """Transactions whose end was accepted but not yet applied: producer, committed, since when."""

    @property
    def epochs(self) -> Mapping[int, int]:
        """By producer id, the latest epoch by which the group knows the producer."""

    @property
    def deleted(self) -> DeletedOffsets:
        """Offsets that were deleted in open transactions; the log of the older coordinator still has them (DIV-22)."""


class GroupDialect(Protocol):
    """Where coordinators differ about offsets and groups (DIV-nn); true as the newer of Apache Kafka's does."""

    @property
    def unknown_group_named(self) -> Truth: ...
    @property
    def unknown_group_fences_transaction(self) -> Truth: ...
    @property
    def keeps_version_0(self) -> Truth: ...
    @property
    def emptied_group_stays(self) -> Truth: ...
    @property
    def deleted_offsets_stay_deleted(self) -> Truth: ...


class StepMoment(Protocol):
    """What a step happens in, as far as it is known here: the time."""

    @property
    def now(self) -> Time: ...


World = TypeVar("World", bound=GroupWorld)
Moment = TypeVar("Moment", bound=StepMoment)
Response = TypeVar("Response")
Answer: TypeAlias = tuple[World, Response, str]
"""What came of a request: the world after it, the response, the rule that applied."""


@dataclass(frozen=True, slots=True)
class GroupProtocol(Generic[World, Moment]):
    """What a protocol says of a group of its own. Every function is pure, and runs on symbolic worlds too."""

    dialect: Callable[[Moment], GroupDialect]
    exists: Callable[[World], bool]
    """Whether there is a group of this id."""
    create: Callable[[World], World]
    """The world with a group that has nothing yet, for a first commit from outside."""
    forget: Callable[[DeletedOffsets], World]
    """The world without the group, with what its log still has."""
    is_empty: Callable[[World], Truth]
    """Whether a group that exists has no members."""
    may_commit: Callable[[World, OffsetCommit, Moment], tuple[Error, str, World]]
    """The error of a commit to a group that exists, the rule, and the world in which its member was heard."""
    may_commit_in_transaction: Callable[[World, TxnOffsetCommit, Moment], Error]
    """The error of a transactional commit that names a member, an instance or a generation."""
    may_lose_offsets: Callable[[World], Truth]
    """Whether offsets of the group may be deleted one by one."""
    protects: Callable[[World, str], Truth]
    """Whether members use a topic, so that its offsets may not be deleted."""
    unused_since: Callable[[World, str, Offset], Time | None]
    """Since when an offset of a topic has been of no use; None while it may not expire."""
    describe: Callable[[World, int], tuple[DescribeGroupResponse, str]]
    """The response to DescribeGroups of a version for a group that exists, and the rule."""
    summarize: Callable[[World], ListGroupsResponse]
    """A group that exists as it is listed."""
    type_of: Callable[[World], str]
    """The type of a group that exists, by which a list is filtered (KIP-848)."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Cluster:
    """The target around the group: its settings, the topics that exist (None: not known), and their names by id.

    `missing` are partitions that do not exist, where the topics are not known. `client` is the client id of every
    request, None where it is not known.
    """

    settings: Settings
    topics: Topics | None = None
    names: TopicNames = field(default_factory=dict, hash=False)
    missing: frozenset[Partition] = frozenset()
    client: str | None = None
