"""A group and its members: their state, and the queries and updates of it."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from fencepost.adapters.classic.messages import CONSUMER, JoinGroup, UnreadableSubscription, read_topics
from fencepost.adapters.classic.records import GroupRecord, MemberRecord
from fencepost.adapters.serve.coordination import Request
from fencepost.model.errors import Error

Partition = tuple[str, int]
"""A topic's name and a partition's number."""


class State(StrEnum):
    """The states of a group, under their names on the wire. Of `Dead` there are no group objects."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class Offset:
    """A committed offset. `number` counts the commits of this coordinator: the higher was written later."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at: int
    expires_at: int | None
    number: int


@dataclass(slots=True)
class Member:
    """A member. Timeouts in milliseconds; `protocols` in the member's order of preference.

    `is_new` holds from the first JoinGroup to the first completed join phase.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: int
    rebalance_timeout: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes = b""
    is_new: bool = False
    parked_join: Request | None = None
    parked_sync: Request | None = None

    @property
    def is_static(self) -> bool:
        """Whether the member has an instance id."""
        return self.instance_id is not None

    @property
    def has_rejoined(self) -> bool:
        """Whether the coordinator holds a parked JoinGroup of this member."""
        return self.parked_join is not None

    @property
    def is_waiting(self) -> bool:
        """Whether the member awaits a response, and so need not send heartbeats."""
        return self.parked_join is not None or self.parked_sync is not None

    def matches(self, protocols: tuple[tuple[str, bytes], ...]) -> bool:
        """Whether names, order and bytes are the same; timeouts do not count (JOIN-34, JOIN-35)."""
        return self.protocols == protocols

    def offers(self, protocol: str) -> bool:
        """Whether the protocol is on the member's list."""
        return any(name == protocol for name, _ in self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        """The member's metadata for the protocol; empty if it does not offer it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """The candidate that comes first in the member's list."""
        return next(name for name, _ in self.protocols if name in candidates)

    def update(self, join: JoinGroup) -> None:
        """Replace protocols and timeouts by the request's, and park it; an earlier one gets no response."""
        self.protocols = join.protocols
        self.session_timeout = join.session_timeout
        self.rebalance_timeout = join.rebalance_timeout
        self.parked_join = join.request

    def record(self, protocol: str | None) -> MemberRecord:
        """The record of this state for the log."""
        return MemberRecord(
            self.member_id,
            self.instance_id,
            self.client_id,
            self.client_host,
            self.session_timeout,
            self.rebalance_timeout,
            self.metadata(protocol),
            self.assignment,
        )


@dataclass(slots=True)
class Group:
    """A group. `since` is when it entered its state; `remaining_delay` the rest of its initial delay (ms)."""

    group_id: str
    since: int
    state: State = State.EMPTY
    previous: State = State.DEAD
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)
    unsynced: set[str] = field(default_factory=set)
    newcomer: bool = False
    remaining_delay: int = 0
    subscribed: frozenset[str] | None = None
    offsets: dict[Partition, Offset] = field(default_factory=dict)
    uncommitted: dict[int, dict[Partition, Offset]] = field(default_factory=dict)

    # -- questions ----------------------------------------------------------------------------------------------

    @property
    def is_initial_rebalance(self) -> bool:
        """Whether this rebalance began in an empty group, so that the initial delay applies."""
        return self.previous is State.EMPTY

    @property
    def all_joined(self) -> bool:
        """Whether every member has rejoined and no pending id is outstanding."""
        return not self.pending and all(member.has_rejoined for member in self.members.values())

    @property
    def rejoined_count(self) -> int:
        """The number of members with a parked JoinGroup."""
        return sum(member.has_rejoined for member in self.members.values())

    @property
    def rebalance_timeout(self) -> int:
        """The longest rebalance timeout of the members, 0 without members (TIMER-09)."""
        return max((member.rebalance_timeout for member in self.members.values()), default=0)

    def accepts(self, member_id: str, limit: int) -> bool:
        """Whether there is room for this id. Pending ids do not count; while preparing, parked joins do (KIP-389)."""
        member = self.members.get(member_id)
        if self.state is State.EMPTY:
            return True
        if self.state is State.PREPARING:
            return (member is not None and member.has_rejoined) or self.rejoined_count < limit
        return member is not None or len(self.members) < limit

    def supports(self, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]) -> bool:
        """Whether a member with these protocols can be in the group; its own stored list counts as another's."""
        if self.state is State.EMPTY:
            return bool(protocol_type) and bool(protocols)
        candidates = (name for name, _ in protocols)
        return self.protocol_type == protocol_type and any(self.is_offered_by_all(name) for name in candidates)

    def is_offered_by_all(self, protocol: str) -> bool:
        """Whether every member has the protocol on its list."""
        return all(member.offers(protocol) for member in self.members.values())

    def check_member(self, member_id: str, instance_id: str | None) -> Error:
        """NONE for a member; the instance id, if one is given, must be mapped to just this member (KIP-345)."""
        if instance_id is not None:
            owner = self.instances.get(instance_id)
            if owner is None:
                return Error.UNKNOWN_MEMBER_ID
            if owner != member_id:
                return Error.FENCED_INSTANCE_ID
        return Error.NONE if member_id in self.members else Error.UNKNOWN_MEMBER_ID

    def is_subscribed(self, topic: str) -> bool:
        """Whether members consume the topic; a consumer group with unknown subscriptions counts as having all."""
        if self.subscribed is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed

    def has_uncommitted(self, partition: Partition) -> bool:
        """Whether an open transaction holds an offset for the partition."""
        return any(partition in offsets for offsets in self.uncommitted.values())

    # -- the vote and the leader --------------------------------------------------------------------------------

    def candidates(self) -> set[str]:
        """The protocols that every member offers, members that have not rejoined included (GEN-19)."""
        names = {name for member in self.members.values() for name, _ in member.protocols}
        return {name for name in names if self.is_offered_by_all(name)}

    def select_protocol(self) -> str:
        """The candidate with the most votes; of equal ones the first voted for."""
        candidates = self.candidates()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def choose_leader(self) -> bool:
        """Keep a leader that has rejoined, else take a member that has; False if there is none (KAFKA-8220)."""
        if self.leader is not None and self.members[self.leader].has_rejoined:
            return True
        successor = next((member.member_id for member in self.members.values() if member.has_rejoined), None)
        if successor is None:
            return False
        self.leader = successor
        return True

    def find_subscriptions(self) -> frozenset[str] | None:
        """The topics that any member subscribes to; None if they are unknown or do not apply."""
        if self.protocol_type != CONSUMER:
            return None
        try:
            topics = (read_topics(member.metadata(self.protocol)) for member in self.members.values())
            return frozenset().union(*topics)
        except UnreadableSubscription:
            return None

    # -- changes ------------------------------------------------------------------------------------------------

    def enter_state(self, state: State, now: int) -> None:
        """Change the state at the given time."""
        self.previous, self.state, self.since = self.state, state, now

    def add(self, member: Member, protocol_type: str) -> None:
        """Add a member. The first one sets the group's protocol type, and leads it."""
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.pending.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending id. Any other member follows a removed leader."""
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            self.instances.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending.discard(member_id)
        self.unsynced.discard(member_id)

    def rename(self, instance_id: str, old_id: str, new_id: str) -> Member:
        """Give a static member another id; it keeps its assignment, and stays the leader if it is."""
        member = self.members.pop(old_id)
        member.member_id = new_id
        self.members[new_id] = member
        self.instances[instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        return member

    def begin_generation(self, now: int) -> None:
        """Raise the generation, and set its protocol, its subscriptions and the next state."""
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.subscribed = self.find_subscriptions()
        self.enter_state(State.COMPLETING if self.members else State.EMPTY, now)

    def record(self) -> GroupRecord:
        """The record of this state for the log."""
        members = tuple(member.record(self.protocol) for member in self.members.values())
        return GroupRecord(
            self.group_id, self.protocol_type, self.generation, self.protocol, self.leader, self.since, members
        )
