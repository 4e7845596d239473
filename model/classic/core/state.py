"""The state of a group, its member slots, the requests that reach it and its responses."""

from dataclasses import dataclass, field
from enum import IntEnum

from fencepost.model.errors import Error
from fencepost.model.frozen import fast_frozen
from fencepost.model.logic import Time, Truth
from fencepost.model.sorts import (
    Assignment,
    ClientId,
    Handle,
    InstanceId,
    MemberId,
    Metadata,
    Millis,
    ProtocolName,
    ProtocolType,
)


class Phase(IntEnum):
    """State of a group that exists (coordinator.md 1.3)."""

    EMPTY = 0
    PREPARING = 1
    COMPLETING = 2
    STABLE = 3


class Holder(IntEnum):
    """What a slot of the member table holds."""

    NOBODY = 0
    PENDING = 1
    """An id handed out with MEMBER_ID_REQUIRED whose owner has not come back (KIP-394)."""
    MEMBER = 2


@fast_frozen
@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol that a member offers."""

    name: ProtocolName | None
    metadata: Metadata | None


@fast_frozen
@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the member table. Times in milliseconds; `join` and `sync` name parked requests, 0 for none."""

    holder: Holder = Holder.NOBODY
    id: MemberId | None = None
    instance: InstanceId | None = None
    is_new: Truth = False
    """From being added until the first join phase completes."""
    join: Handle = 0
    sync: Handle = 0
    unsynced: Truth = False
    """Has not sent SyncGroup since the join phase completed."""
    session_timeout: Millis = 0
    rebalance_timeout: Millis = 0
    protocols: tuple[Protocol, ...] = ()
    assignment: Assignment | None = None
    armed: Truth = False
    deadline: Time = 0
    client: ClientId | None = None


FREE = Slot()


@fast_frozen
@dataclass(frozen=True, slots=True)
class Group:
    """A group that exists. A round is a join phase and the sync phase that follows it."""

    phase: Phase = Phase.EMPTY
    generation: int = 0
    protocol_type: ProtocolType | None = None
    protocol: ProtocolName | None = None
    leader: MemberId | None = None
    leader_open: Truth = False
    """The leader is gone and any member that rejoins may follow it (LAT-02)."""
    slots: tuple[Slot, ...] = ()
    from_empty: Truth = False
    """The present join phase was entered from Empty."""
    newcomer: Truth = False
    """A member was added during the present step of the initial delay (KIP-134)."""
    join_armed: Truth = False
    join_deadline: Time = 0
    initial: Truth = False
    """The join timer is an initial delay, not the rebalance timeout."""
    initial_wait: Millis = 0
    initial_left: Millis = 0
    sync_armed: Truth = False
    sync_deadline: Time = 0
    stale_unsynced: Truth = False
    """A replaced member's old id is still waited for by the sync timer."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class JoinRequest:
    """JoinGroup. `member` is None for the empty id; `requires_id` is true from v4, `can_skip` from v9."""

    handle: Handle
    member: MemberId | None
    instance: InstanceId | None
    protocol_type: ProtocolType | None
    protocols: tuple[Protocol, ...]
    session_timeout: Millis
    rebalance_timeout: Millis
    requires_id: Truth
    can_skip: Truth
    client: ClientId | None = None


@fast_frozen
@dataclass(frozen=True, slots=True)
class SyncRequest:
    """SyncGroup. Protocol type and name are None below v5; `assignments` are (member id, bytes) pairs."""

    handle: Handle
    member: MemberId | None
    instance: InstanceId | None
    generation: int
    protocol_type: ProtocolType | None
    protocol: ProtocolName | None
    assignments: tuple[tuple[MemberId | None, Assignment | None], ...]


@fast_frozen
@dataclass(frozen=True, slots=True)
class HeartbeatRequest:
    """Heartbeat."""

    handle: Handle
    member: MemberId | None
    instance: InstanceId | None
    generation: int


@fast_frozen
@dataclass(frozen=True, slots=True)
class LeaveRequest:
    """LeaveGroup, as (member id, instance id) pairs; one pair below v3."""

    handle: Handle
    entries: tuple[tuple[MemberId | None, InstanceId | None], ...]


@fast_frozen
@dataclass(frozen=True, slots=True)
class MemberView:
    """A member as the leader sees it; `id` is None for a free slot."""

    id: MemberId | None
    instance: InstanceId | None
    metadata: Metadata | None


@fast_frozen
@dataclass(frozen=True, slots=True)
class JoinResponse:
    """Answer to JoinGroup; `members` is empty but for the leader."""

    error: Error
    generation: int = -1
    protocol_type: ProtocolType | None = None
    protocol: ProtocolName | None = None
    leader: MemberId | None = None
    member: MemberId | None = None
    members: tuple[MemberView, ...] = ()
    skip_assignment: Truth = False


@fast_frozen
@dataclass(frozen=True, slots=True)
class SyncResponse:
    """Answer to SyncGroup; no assignment with an error."""

    error: Error
    protocol_type: ProtocolType | None = None
    protocol: ProtocolName | None = None
    assignment: Assignment | None = None


@fast_frozen
@dataclass(frozen=True, slots=True)
class HeartbeatResponse:
    """Answer to Heartbeat."""

    error: Error


@fast_frozen
@dataclass(frozen=True, slots=True)
class LeaveResponse:
    """Answer to LeaveGroup: the top-level error and one error for each entry, in order."""

    error: Error
    entries: tuple[Error, ...] = ()


@fast_frozen
@dataclass(frozen=True, slots=True)
class CommitResponse:
    """What membership says of an OffsetCommit."""

    error: Error


@fast_frozen
@dataclass(frozen=True, slots=True)
class NoResponse:
    """The request has lost its place and need not be answered; an error is tolerated (LAT-09, LAT-10)."""


CoreResponse = JoinResponse | SyncResponse | HeartbeatResponse | LeaveResponse | CommitResponse | NoResponse


@fast_frozen
@dataclass(frozen=True, slots=True)
class Output:
    """An answer for the request `handle`, sent where `when` holds."""

    handle: Handle
    response: CoreResponse
    when: Truth = True


@fast_frozen
@dataclass(frozen=True, slots=True)
class Choices:
    """What the protocol leaves open in one step. A choice that does not fit falls back to the first that does."""

    member_id: MemberId | None = None
    """The id for a member that has none (LAT-01)."""
    leader: MemberId | None = None
    """Who leads if the leader did not rejoin (LAT-02)."""
    protocol: ProtocolName | None = None
    """Which of the protocols with the most votes is selected (LAT-03)."""


@dataclass(frozen=True, slots=True)
class CoreDialect:
    """Where the two reference coordinators differ in the core (DIV-nn); true as the newer one does."""

    sync_in_stable_keeps_session: Truth = True
    """DIV-03: the older one re-arms the session timer."""
    initial_delay_grows_always: Truth = True
    """DIV-04: the older one extends the initial delay only in generation 0."""
    initial_delay_grows: Truth = True
    """LAT-08: not a difference of the reference ones; others may keep the initial delay fixed."""
    batch_leave_settles_once: Truth = True
    """DIV-06: the older one starts the rebalance at the first removal."""
    pending_leave_rebalances: Truth = True
    """DIV-07: the older one does not notice that a pending id leaves a settled group."""
    eviction_waits: Truth = True
    """DIV-08: the older one checks at once whether the join phase is complete."""
    expiry_cuts_initial_delay: Truth = True
    """DIV-09: the older one waits for the initial delay."""
    unselected_protocol_fits_any: Truth = True
    """DIV-21: before a first protocol is selected, the older one says 23 to a SyncGroup that names one."""
    replaced_sync_is_missed: Truth = True
    """Not a DIV: the sync timer waits for an id replaced on the fast path (coordinator.md 9)."""
    replaced_stays_new: Truth = True
    """DIV-20, true as the older one does: a static member that is replaced in its first join phase stays new, so its
    timer may end it while it waits. To the newer one it no longer counts as new."""
    restart_needs_room: Truth = True
    """Not a DIV: a static member that restarts into a full group is refused, but may be let in (STATIC-26)."""
    room_comes_before_protocols: Truth = True
    """Not a DIV: who finds no room is told so, whatever protocols it has; those may be looked at first (LAT-27)."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Context:
    """What a step happens in: the moment, the open choices, the dialect and the limits; times in milliseconds."""

    now: Time
    choices: Choices = Choices()
    dialect: CoreDialect = CoreDialect()
    max_group_size: int = 2_147_483_647
    initial_rebalance_delay: Millis = 3_000
    new_member_timeout: Millis = 300_000


@fast_frozen
@dataclass(frozen=True, slots=True)
class Step:
    """What came of one input: the group after it, the answers, and the rule that applied."""

    group: Group
    outputs: tuple[Output, ...] = field(default=())
    rule: str = ""
