"""The member of a group: the requests it sends and its steps on their responses (member.md 1).

Only what safety needs: who it is, what it owns, what it waits for. Its metadata are its claims: one truth value for
each partition, true where it owns the partition when it joins. An assignment has the same form. Callbacks,
positions and backoff stand around this module. A request gets a handle that no request had before.
"""

from dataclasses import dataclass
from enum import IntEnum

from fencepost.model.classic.core.state import (
    CommitResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    MemberView,
    Protocol,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.logic import Truth, holds
from fencepost.model.sorts import (
    Assignment,
    Handle,
    InstanceId,
    MemberId,
    Millis,
    PartitionFlags,
    ProtocolName,
    ProtocolType,
)

NO_GENERATION = -1


class MemberState(IntEnum):
    """Where a member stands in the protocol (member.md 1.1)."""

    UNJOINED = 0
    PREPARING_REBALANCE = 1
    """JoinGroup has been sent."""
    COMPLETING_REBALANCE = 2
    """JoinGroup was answered, SyncGroup has been sent."""
    STABLE = 3


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """What a member is configured with; `names` are its assignors, the most preferred first. Times in milliseconds."""

    names: tuple[ProtocolName, ...]
    cooperative: Truth = False
    """Keeps what it owns while it rejoins (KIP-429)."""
    instance: InstanceId | None = None
    protocol_type: ProtocolType = "consumer"
    session_timeout: Millis = 45_000
    rebalance_timeout: Millis = 300_000
    requires_id: Truth = True
    """Speaks JoinGroup v4 or newer (KIP-394)."""
    can_skip: Truth = True
    """Speaks JoinGroup v9 or newer (KIP-814)."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member process. `waiting` is the handle of its unanswered JoinGroup or SyncGroup, 0 for none."""

    settings: MemberSettings
    owned: PartitionFlags
    """What it believes it owns."""
    owned_in: int = NO_GENERATION
    """The generation whose assignment it owns."""
    state: MemberState = MemberState.UNJOINED
    id: MemberId | None = None
    generation: int = NO_GENERATION
    waiting: Handle = 0
    rejoins: Truth = True
    """The next poll joins."""


@dataclass(frozen=True, slots=True)
class PartitionCommit:
    """OffsetCommit with the partitions that it covers."""

    request: CommitRequest
    partitions: PartitionFlags


MemberRequest = JoinRequest | SyncRequest | HeartbeatRequest | LeaveRequest | PartitionCommit


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request, sent where `when` holds."""

    request: MemberRequest
    when: Truth = True


@dataclass(frozen=True, slots=True)
class MemberStep:
    """The result of one event: the member after it, the requests it sends, and the rule that applied."""

    member: Member
    sent_requests: tuple[SentRequest, ...] = ()
    rule: str = "member.nothing"


def new_member(settings: MemberSettings, partitions: int) -> Member:
    """A process that has just started, in a group that consumes this many partitions."""
    return Member(settings, owned=tuple(False for _ in range(partitions)))


def restart(member: Member) -> MemberStep:
    """The process ends without a word and starts again (MEMBER-36)."""
    return MemberStep(new_member(member.settings, len(member.owned)), (), "member.restart")


def ask_rejoin(member: Member) -> MemberStep:
    """The subscription or its metadata changed, or the application asked for it (MEMBER-27, KIP-568)."""
    return MemberStep(evolve(member, rejoins=True), (), "member.rejoin")


def disconnect(member: Member) -> MemberStep:
    """The unanswered request is given up; generation and id are kept (MEMBER-14)."""
    return MemberStep(evolve(member, waiting=0, rejoins=member.rejoins or member.waiting != 0), (), "member.lost")


def no_partitions(parts: PartitionFlags) -> PartitionFlags:
    """No partition."""
    return tuple(False for _ in parts)


def join(member: Member, handle: Handle) -> MemberStep:
    """Poll: give up what has to be given up, and send JoinGroup (MEMBER-04, MEMBER-06, CALLBACK-02, -04, -05)."""
    if not member.rejoins or member.waiting != 0:
        return MemberStep(member)
    settings = member.settings
    keeps = settings.cooperative and member.generation != NO_GENERATION
    owned = tuple(keeps and mine for mine in member.owned)
    request = JoinRequest(
        handle=handle,
        member=member.id,
        instance=settings.instance,
        protocol_type=settings.protocol_type,
        protocols=tuple(Protocol(name, owned) for name in settings.names),
        session_timeout=settings.session_timeout,
        rebalance_timeout=settings.rebalance_timeout,
        requires_id=settings.requires_id,
        can_skip=settings.can_skip,
    )
    joining = evolve(member, state=MemberState.PREPARING_REBALANCE, owned=owned, waiting=handle)
    return MemberStep(joining, (SentRequest(request),), "member.join")


def on_join_response(
    member: Member, handle: Handle, response: JoinResponse, next_handle: Handle, plan: tuple[MemberId | None, ...]
) -> MemberStep:
    """JoinGroup is answered. Should the member lead, `plan` says who gets each partition, None for nobody."""
    if handle == 0 or handle != member.waiting:
        return MemberStep(member, (), "member.late-answer")
    member = evolve(member, waiting=0)
    if member.state != MemberState.PREPARING_REBALANCE:
        return MemberStep(member, (), "member.late-answer")
    if response.error == Error.MEMBER_ID_REQUIRED:
        named = evolve(member, id=response.member, generation=NO_GENERATION)
        return MemberStep(named, (), "member.join.id-required")
    if response.error == Error.UNKNOWN_MEMBER_ID:
        return MemberStep(lose_membership(member), (), "member.join.unknown-member")
    if response.error != Error.NONE:
        return MemberStep(member, (), "member.join.refused")
    leads = response.leader == response.member and not response.skip_assignment
    request = SyncRequest(
        handle=next_handle,
        member=response.member,
        instance=member.settings.instance,
        generation=response.generation,
        protocol_type=response.protocol_type,
        protocol=response.protocol,
        assignments=assignments(response.members, plan) if leads else (),
    )
    syncing = evolve(
        member,
        state=MemberState.COMPLETING_REBALANCE,
        id=response.member,
        generation=response.generation,
        waiting=next_handle,
    )
    return MemberStep(syncing, (SentRequest(request),), "member.join.answered")


def assignments(
    members: tuple[MemberView, ...], plan: tuple[MemberId | None, ...]
) -> tuple[tuple[MemberId | None, Assignment | None], ...]:
    """The plan as SyncGroup carries it; a partition that another member still claims is withheld (KIP-429)."""
    claimed = claimed_partitions(members, plan)
    return tuple(
        (view.id, tuple(gets_partition(claimed, view, plan, part) for part in range(len(plan)))) for view in members
    )


def claimed_partitions(members: tuple[MemberView, ...], plan: tuple[MemberId | None, ...]) -> PartitionFlags:
    """Whether a member claims the partition that the plan gives to another, or to nobody."""
    # Asked once for each partition, not for each member too: a leader of hundreds plans in time.
    return tuple(
        any(holds(other.metadata, partition) and other.id != owner for other in members)
        for partition, owner in enumerate(plan)
    )


def gets_partition(
    claimed: PartitionFlags, view: MemberView, plan: tuple[MemberId | None, ...], partition: int
) -> Truth:
    """The member gets the partition; `claimed` says which another one claims."""
    return view.id is not None and plan[partition] == view.id and not claimed[partition]


def on_sync_response(member: Member, handle: Handle, response: SyncResponse, commit_handle: Handle = 0) -> MemberStep:
    """SyncGroup is answered. With a `commit_handle` a cooperative member commits what it gives up (CALLBACK-16)."""
    if handle == 0 or handle != member.waiting:
        return MemberStep(member, (), "member.late-answer")
    member = evolve(member, waiting=0)
    if member.state != MemberState.COMPLETING_REBALANCE:
        return MemberStep(member, (), "member.late-answer")
    if response.error == Error.ILLEGAL_GENERATION:
        return MemberStep(lose_generation(member), (), "member.sync.illegal-generation")
    if response.error == Error.UNKNOWN_MEMBER_ID:
        return MemberStep(lose_membership(member), (), "member.sync.unknown-member")
    if response.error != Error.NONE:
        return MemberStep(member, (), "member.sync.refused")
    owned = tuple(holds(response.assignment, part) for part in range(len(member.owned)))
    revoked = tuple(had and not has for had, has in zip(member.owned, owned, strict=True))
    stable = evolve(member, state=MemberState.STABLE, owned=owned, owned_in=member.generation, rejoins=any(revoked))
    last = SentRequest(PartitionCommit(commit_request(member, commit_handle), revoked), any(revoked))
    if commit_handle == 0:
        return MemberStep(stable, (), "member.sync.answered")
    return MemberStep(stable, (last,), "member.sync.answered")


def commit_request(member: Member, handle: Handle) -> CommitRequest:
    """OffsetCommit under the member's generation (MCOMMIT-03)."""
    return CommitRequest(handle, member.id, member.settings.instance, member.generation)


def commit(member: Member, handle: Handle, wanted: PartitionFlags) -> MemberStep:
    """Commit the wanted partitions that it owns; only a stable member sends it (MCOMMIT-08, MCOMMIT-11)."""
    if member.state != MemberState.STABLE:
        return MemberStep(member)
    partitions = tuple(mine and want for mine, want in zip(member.owned, wanted, strict=True))
    sent = SentRequest(PartitionCommit(commit_request(member, handle), partitions), any(partitions))
    return MemberStep(member, (sent,), "member.commit")


def on_commit_response(member: Member, request: CommitRequest, response: CommitResponse) -> MemberStep:
    """OffsetCommit is answered (MCOMMIT-09, MCOMMIT-10, MCOMMIT-13)."""
    if response.error == Error.REBALANCE_IN_PROGRESS:
        return MemberStep(evolve(member, rejoins=True), (), "member.commit.rebalance")
    return handle_error(member, request.member, request.generation, response.error, "member.commit.answered")


def heartbeat(member: Member, handle: Handle) -> MemberStep:
    """Heartbeat under the present generation (HBT-02, HBT-03, HBT-04)."""
    if member.state == MemberState.UNJOINED or member.state == MemberState.PREPARING_REBALANCE:
        return MemberStep(member)
    request = HeartbeatRequest(handle, member.id, member.settings.instance, member.generation)
    return MemberStep(member, (SentRequest(request),), "member.heartbeat")


def on_heartbeat_response(member: Member, request: HeartbeatRequest, response: HeartbeatResponse) -> MemberStep:
    """Heartbeat is answered (MEMBER-10, -12, -13, -15)."""
    if response.error == Error.REBALANCE_IN_PROGRESS and member.state == MemberState.STABLE:
        return MemberStep(evolve(member, rejoins=True), (), "member.heartbeat.rebalance")
    if response.error == Error.FENCED_INSTANCE_ID and is_current(member, request.member, request.generation):
        return MemberStep(lose_membership(member), (), "member.heartbeat.fenced")
    return handle_error(member, request.member, request.generation, response.error, "member.heartbeat.answered")


def is_current(member: Member, sender: MemberId | None, generation: int) -> Truth:
    """The generation has not changed since the request was sent (MEMBER-15)."""
    return member.id == sender and member.generation == generation


def handle_error(member: Member, sender: MemberId | None, generation: int, error: Error, rule: str) -> MemberStep:
    """The member after an answer to a request of this sender and generation."""
    if not is_current(member, sender, generation):
        return MemberStep(member, (), "member.late-answer")
    if error == Error.ILLEGAL_GENERATION:
        return MemberStep(lose_generation(member), (), "member.illegal-generation")
    if error == Error.UNKNOWN_MEMBER_ID:
        return MemberStep(lose_membership(member), (), "member.unknown-member")
    return MemberStep(member, (), rule)


def lose_generation(member: Member) -> Member:
    """The generation is lost, the id is kept; what it owns is lost when it joins (MEMBER-12)."""
    return evolve(member, state=MemberState.UNJOINED, generation=NO_GENERATION, rejoins=True)


def lose_membership(member: Member) -> Member:
    """Generation and id are lost (MEMBER-13)."""
    return evolve(lose_generation(member), id=None)


def leave(member: Member, handle: Handle) -> MemberStep:
    """Unsubscribe, or too long without a poll; a static member sends nothing (HBT-06, MEMBER-22 to -24)."""
    if member.state == MemberState.UNJOINED or member.id is None:
        return MemberStep(lose_membership(member), (), "member.leave.unjoined")
    sent = SentRequest(LeaveRequest(handle, ((member.id, None),)), member.settings.instance is None)
    return MemberStep(lose_membership(member), (sent,), "member.leave")
