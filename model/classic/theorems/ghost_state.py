"""The ghost state: the facts of a run that the theorems speak of and no single state shows.

Ids and handles are born once, so that a fact about them never changes; who owns what in a generation is written when
the leader's assignment arrives.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import (
    Group,
    HeartbeatRequest,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    Phase,
    Slot,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.member.member import NO_GENERATION, Member, MemberRequest, PartitionCommit
from fencepost.model.frozen import evolve
from fencepost.model.logic import Truth, absent, all_, and_, any_, holds, ite, not_, or_
from fencepost.model.sorts import Assignment, Handle, InstanceId, MemberId


@dataclass(frozen=True, slots=True)
class Process:
    """A member process and its name, which no other process has."""

    name: int
    member: Member


@dataclass(frozen=True, slots=True)
class JoinResponseSent:
    """An answer to the JoinGroup `handle`, on its way for ever."""

    handle: Handle
    response: JoinResponse


@dataclass(frozen=True, slots=True)
class SyncResponseSent:
    """An answer to the SyncGroup `handle`, on its way for ever."""

    handle: Handle
    response: SyncResponse


@dataclass(frozen=True, slots=True)
class CommitAccepted:
    """The moment at which a commit was accepted: the group that judged it, and the commit."""

    group: Group
    commit: PartitionCommit


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """The group as the log has it: what the next coordinator begins with."""

    group: Group


class GhostState(Protocol):
    """The facts, to be asked; with symbolic arguments they are symbolic."""

    def identity_of(self, member: MemberId | None) -> MemberId | None:
        """Who stands behind a member id: a static member stays the same person under its next id."""

    def holder_of(self, member: MemberId | None) -> int:
        """The process that a member id was handed to, 0 for none."""

    def sender_of(self, handle: Handle) -> int:
        """The process that sent the request with this handle, 0 for none."""

    def member_id_in(self, handle: Handle) -> MemberId | None:
        """The member id that the request with this handle carries."""

    def generation_in(self, handle: Handle) -> int:
        """The generation that the request with this handle carries."""

    def owner_of(self, generation: int, partition: int) -> MemberId | None:
        """The person to whom the assignment of a generation gives a partition, None for nobody."""

    def with_id(self, member: MemberId | None, identity: MemberId | None, holder: int) -> "GhostState":
        """A member id is born."""

    def with_request(self, handle: Handle, sender: int, asked_as: MemberId | None, asked_in: int) -> "GhostState":
        """A request is sent."""

    def with_owners(self, when: Truth, first: int, last: int, owners: tuple[MemberId | None, ...]) -> "GhostState":
        """Where `when` holds, the generations from `first` to `last` are given their owners."""


@dataclass(frozen=True, slots=True)
class ConcreteGhostState:
    """The ghost state of a run."""

    identities: Mapping[MemberId | None, MemberId | None] = field(default_factory=dict)
    holders: Mapping[MemberId | None, int] = field(default_factory=dict)
    requests: Mapping[Handle, tuple[int, MemberId | None, int]] = field(default_factory=dict)
    owners: Mapping[int, tuple[MemberId | None, ...]] = field(default_factory=dict)

    def identity_of(self, member: MemberId | None) -> MemberId | None:
        """See `GhostState`."""
        return self.identities.get(member)

    def holder_of(self, member: MemberId | None) -> int:
        """See `GhostState`."""
        return self.holders.get(member, 0)

    def sender_of(self, handle: Handle) -> int:
        """See `GhostState`."""
        return self.requests.get(handle, (0, None, 0))[0]

    def member_id_in(self, handle: Handle) -> MemberId | None:
        """See `GhostState`."""
        return self.requests.get(handle, (0, None, 0))[1]

    def generation_in(self, handle: Handle) -> int:
        """See `GhostState`."""
        return self.requests.get(handle, (0, None, 0))[2]

    def owner_of(self, generation: int, partition: int) -> MemberId | None:
        """See `GhostState`."""
        owners = self.owners.get(generation)
        return None if owners is None else owners[partition]

    def with_id(self, member: MemberId | None, identity: MemberId | None, holder: int) -> Self:
        """See `GhostState`."""
        return evolve(self, identities={**self.identities, member: identity}, holders={**self.holders, member: holder})

    def with_request(self, handle: Handle, sender: int, asked_as: MemberId | None, asked_in: int) -> Self:
        """See `GhostState`."""
        return evolve(self, requests={**self.requests, handle: (sender, asked_as, asked_in)})

    def with_owners(self, when: Truth, first: int, last: int, owners: tuple[MemberId | None, ...]) -> Self:
        """See `GhostState`."""
        if not when:
            return self
        return evolve(self, owners={**self.owners, **dict.fromkeys(range(first, last + 1), owners)})


def record_new_id(
    ghost: GhostState, group: Group, member: MemberId | None, instance: InstanceId | None, handle: Handle
) -> GhostState:
    """The ghost state with the id that a JoinGroup may have issued; a replacement has its predecessor's identity."""
    person: MemberId | None = member
    for slot in group.slots:
        replaced = and_(is_member(slot), not_(absent(instance)), slot.instance == instance)
        person = ite(replaced, ghost.identity_of(slot.id), person)
    return ghost.with_id(member, person, ghost.sender_of(handle))


def record_coordinator_step(ghost: GhostState, before: Group, after: Group, partitions: int) -> GhostState:
    """The ghost state after a step of the coordinator: a new generation has no owners until its assignment arrives.

    One step may begin several generations: a LeaveGroup ends a join phase with each of its entries.
    """
    risen = after.generation != before.generation
    ghost = ghost.with_owners(risen, before.generation + 1, after.generation, (None,) * partitions)
    arrived = and_(before.phase == Phase.COMPLETING, after.phase == Phase.STABLE)
    owners = partition_owners(ghost, after, partitions)
    return ghost.with_owners(arrived, after.generation, after.generation, owners)


def partition_owners(ghost: GhostState, group: Group, partitions: int) -> tuple[MemberId | None, ...]:
    """Who has each partition by the assignments of the group's members; the first of several."""
    found: list[MemberId | None] = []
    for partition in range(partitions):
        owner: MemberId | None = None
        for slot in reversed(group.slots):
            owner = ite(is_assigned(slot, partition), ghost.identity_of(slot.id), owner)
        found.append(owner)
    return tuple(found)


def is_assigned(slot: Slot, partition: int) -> Truth:
    """The slot holds a member whose assignment names the partition."""
    return and_(is_member(slot), holds(slot.assignment, partition))


def is_generation_settled(group: Group) -> Truth:
    """The generation has its assignment, or will never have one."""
    return or_(group.phase == Phase.STABLE, group.phase == Phase.PREPARING)


def has_member(group: Group, member: MemberId | None) -> Truth:
    """The id is a member's."""
    return any_(and_(is_member(slot), slot.id == member) for slot in group.slots)


def are_disjoint(a: Assignment | None, b: Assignment | None) -> Truth:
    """No partition is in both."""
    if a is None or b is None:
        return True
    return all_(not_(and_(holds(a, part), holds(b, part))) for part in range(len(a)))


def record_request(ghost: GhostState, process: int, request: MemberRequest) -> GhostState:
    """The ghost state after a member process sent a request."""
    match request:
        case PartitionCommit():
            core = request.request
            return ghost.with_request(core.handle, process, core.member, core.generation)
        case SyncRequest() | HeartbeatRequest():
            return ghost.with_request(request.handle, process, request.member, request.generation)
        case JoinRequest():
            return ghost.with_request(request.handle, process, request.member, NO_GENERATION)
        case LeaveRequest():
            return ghost.with_request(request.handle, process, request.entries[0][0], NO_GENERATION)
