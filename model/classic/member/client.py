"""The state of the reference client, around that of its proved member, as frozen values.

`member` is the value that the proved functions of `member.py` work on. Its partitions are truth values by index;
`known` says which partition has which index. Times are in milliseconds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from fencepost.model.assignors.group import Assign
from fencepost.model.classic.core.state import HeartbeatRequest
from fencepost.model.classic.member.member import NO_GENERATION, Member, MemberState, new_member
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.model.classic.messages import Response
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import CommitRequest, Offset, Partition
from fencepost.model.logic import Time
from fencepost.model.sorts import HandleNumber, PartitionFlags


class CallbackKind(Enum):
    """The methods of a rebalance listener."""

    REVOKED = "revoked"
    LOST = "lost"
    ASSIGNED = "assigned"


class CallbackPlace(Enum):
    """Where in the course of things a callback runs."""

    PREPARE = "prepare"
    """Before JoinGroup."""
    COMPLETE = "complete"
    """After SyncGroup."""
    LEAVE = "leave"
    """In unsubscribe or close."""


@dataclass(frozen=True, slots=True)
class Callback:
    """A call of the listener, which runs until the application returns from it."""

    kind: CallbackKind
    partitions: tuple[Partition, ...]
    place: CallbackPlace


class Problem(Enum):
    """What reaches the application that is no error code of a response."""

    COMMIT_FAILED = "commit failed"
    """The partitions may belong to another member."""
    REBALANCE_IN_PROGRESS = "rebalance in progress"
    """The application is asked to poll and to commit again."""
    RETRIABLE_COMMIT = "retriable commit failure"
    NO_OFFSET = "no offset for partition"
    LISTENER = "listener raised"
    WRONG_PROTOCOL = "inconsistent group protocol"
    UNREADABLE = "unreadable assignment"
    CLOSED = "closed"


Failure = Error | Problem


@dataclass(frozen=True, slots=True)
class Position:
    """An assigned partition. `offset` is that of the next record to return, None as long as none is known; `asked` is
    the handle of the request that asks for it, 0 for none."""

    partition: Partition
    offset: int | None = None
    is_paused: bool = False
    is_pending: bool = False
    """About to be revoked: neither fetched nor returned (KAFKA-14196)."""
    asked: int = 0


class CommitPurpose(Enum):
    """Who asked for a commit."""

    SYNC = "sync"
    ASYNC = "async"
    PERIODIC = "periodic"
    PREPARE = "prepare"
    CLOSE = "client.close"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class ClientCommit:
    """A commit that is not finished. `handle` is that of the unanswered request, 0 while it waits until `retry_at`."""

    number: int
    purpose: CommitPurpose
    offsets: tuple[tuple[Partition, Offset], ...]
    deadline: Time
    handle: int = 0
    request: CommitRequest | None = None
    retry_at: Time = 0


class SentKind(Enum):
    """The kinds of requests that may be unanswered, but for commits."""

    JOIN = "JoinGroup"
    SYNC = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    FETCH_OFFSETS = "OffsetFetch"
    LIST_OFFSETS = "ListOffsets"
    FIND = "FindCoordinator"


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A request without a response so far, and until when the client waits for one."""

    handle: int
    kind: SentKind
    deadline: Time
    request: HeartbeatRequest | None = None


@dataclass(frozen=True, slots=True)
class JoinedTopics:
    """What the last JoinGroup carried, and the protocol that its response selected."""

    topics: frozenset[str]
    protocol: str | None = None


@dataclass(frozen=True, slots=True)
class SyncedAssignment:
    """A SyncGroup response that the next poll completes the rebalance with."""

    handle: int
    partitions: tuple[Partition, ...]
    protocol: str | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A rebalance whose callbacks run: the member before it read the assignment, and the assignment."""

    before: Member
    synced: SyncedAssignment
    raised: bool = False


class Closing(Enum):
    """How far a client is with closing or unsubscribing."""

    OPEN = "open"
    COMMITTING = "committing"
    """Waits for its last commit."""
    UNSUBSCRIBING = "unsubscribing"
    CLOSING = "closing"
    CLOSED = "closed"


TopicCounts = tuple[tuple[str, int], ...]
"""Number of partitions by topic, sorted."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Moments at which something is due."""

    heartbeat: Time = 0
    session: Time = 0
    poll: Time = 0
    polling_until: Time = 0
    """When the poll that is under way returns; 0 for none."""
    auto_commit: Time = 0
    join_retry: Time = 0
    lookup_retry: Time = 0
    prepare: Time = 0
    """When the client gives the commit before a rebalance up."""
    prepare_retry: Time = 0
    offsets_retry: Time = 0


@dataclass(frozen=True, slots=True)
class Client:
    """A client: its member, the subscription of its application, its assignment, its requests without a response."""

    settings: ClientSettings
    member: Member
    known: tuple[Partition, ...] = ()
    topics: frozenset[str] = frozenset()
    pattern: str | None = None
    is_manual: bool = False
    """The application assigned the partitions itself."""
    joined: JoinedTopics | None = None
    positions: tuple[Position, ...] = ()
    metadata: TopicCounts = ()
    leads: bool = False
    group_topics: frozenset[str] = frozenset()
    """Of all members, as far as a leader knows."""
    planned: TopicCounts = ()
    """What a leader knew of them when it made its plan."""
    coordinator: int | None = None
    lookup_failures: int = 0
    is_prepared: bool = False
    """The step before JoinGroup is done."""
    callback: Callback | None = None
    synced: SyncedAssignment | None = None
    completion: Completion | None = None
    commits: tuple[ClientCommit, ...] = ()
    prepare_commit: int = 0
    """The number of the commit that the rebalance waits for, 0 for none."""
    is_committed: bool = False
    """The commit before JoinGroup is over."""
    unanswered: tuple[Unanswered, ...] = ()
    reports: tuple["CommitReport", ...] = ()
    """Results of asynchronous commits that the application has not been told."""
    failure: Failure | None = None
    """What the next poll raises."""
    is_fenced: bool = False
    """An asynchronous commit was fenced: every poll and commit says so (MCOMMIT-15)."""
    closing: Closing = Closing.OPEN
    clocks: Clocks = Clocks()
    reason: str = ""
    last_handle: int = 0
    remembered: tuple[Partition, ...] = ()
    """The last assignment, as `sticky` sends it."""


@dataclass(frozen=True, slots=True)
class CommitReport:
    """The result of a commit for the application: its number and purpose, and the failure if there is one."""

    number: int
    purpose: CommitPurpose
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ClientContext:
    """What a step happens in: the moment in milliseconds, and the assignors by name."""

    now: Time
    assignors: Mapping[str, Assign] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """FindCoordinator for a group."""

    group: str
    handle: int


@dataclass(frozen=True, slots=True)
class FindCoordinatorResponse:
    """The response to FindCoordinator: the node, or an error."""

    error: Error
    node: int = -1


@dataclass(frozen=True, slots=True)
class ListOffsets:
    """ListOffsets of partitions that have no committed offset, for the reset policy."""

    handle: int
    partitions: tuple[Partition, ...]
    policy: str


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse:
    """The offset at which each partition starts."""

    offsets: tuple[tuple[Partition, int], ...]


ClientResponse = Response | FindCoordinatorResponse | ListOffsetsResponse


def new_client(settings: ClientSettings) -> Client:
    """A client that has just started."""
    return Client(settings, new_member(settings.member_settings(), 0))


def next_handle(client: Client) -> HandleNumber:
    """The handle of the next request."""
    return HandleNumber(client.last_handle + 1)


def learn_partitions(client: Client, partitions: Iterable[Partition]) -> Client:
    """The client with an index for each of the partitions; what the member owns does not change."""
    fresh = tuple(sorted(set(partitions).difference(client.known)))
    if not fresh:
        return client
    owned = (*client.member.owned, *(False for _ in fresh))
    return evolve(client, known=(*client.known, *fresh), member=evolve(client.member, owned=owned))


def flags_of(client: Client, partitions: Iterable[Partition]) -> PartitionFlags:
    """The partitions as truth values by index; those that the client has not learned are left out."""
    chosen = set(partitions)
    return tuple(partition in chosen for partition in client.known)


def partitions_of(client: Client, flags: PartitionFlags) -> tuple[Partition, ...]:
    """The partitions whose truth value is true, sorted."""
    return tuple(sorted(partition for partition, flag in zip(client.known, flags, strict=True) if flag))


def assigned_partitions(client: Client) -> tuple[Partition, ...]:
    """The partitions that are assigned, sorted."""
    return tuple(position.partition for position in client.positions)


def position_of(client: Client, partition: Partition) -> Position | None:
    """The position of a partition, None if it is not assigned."""
    return next((position for position in client.positions if position.partition == partition), None)


def has_generation(client: Client) -> bool:
    """Whether the client has a generation and a member id that were not reset."""
    return client.member.generation != NO_GENERATION and client.member.id is not None


def is_rebalancing(client: Client) -> bool:
    """Whether a rebalance of this member is in progress."""
    return client.member.state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)


def is_returnable(client: Client, partition: Partition) -> bool:
    """Whether a poll may return records of the partition (POLL-09, -10, -18, -19)."""
    position = position_of(client, partition)
    if position is None or position.offset is None or position.is_paused or position.is_pending:
        return False
    return client.is_manual or partition[0] in client.topics


def end_poll(client: Client, context: ClientContext) -> Client:
    """The client whose poll returns before its time, if one is under way."""
    if not client.clocks.polling_until:
        return client
    poll = context.now + client.settings.max_poll_interval
    return evolve(client, clocks=evolve(client.clocks, poll=poll, polling_until=0))


def counts_of(client: Client, topics: Iterable[str]) -> TopicCounts:
    """The number of partitions of those topics that exist, as far as the client knows."""
    chosen = set(topics)
    return tuple(row for row in client.metadata if row[0] in chosen and row[1] > 0)


def is_unanswered(client: Client, kind: SentKind) -> bool:
    """Whether a request of this kind waits for its response."""
    return any(request.kind is kind for request in client.unanswered)
