"""The leader's synchronization without a rejoin, from the proposal of client-side assignment: the members' half.

The leader watches the topics of its group. When their partitions change, it makes another assignment and sends
SyncGroup to the stable group. The others learn from a Heartbeat that they are to send SyncGroup too.

The generation stays the same, so nothing tells commits of the old assignment from those of the new one, and the
coordinator cannot tell a new assignment from an old one that comes late. So a leader has two duties, which the draft
does not name: it moves no partition that it has given to somebody in this generation, and it sends another assignment
only if each of its SyncGroups in this generation was answered. What has to move takes a rejoin.
"""

from dataclasses import dataclass
from typing import cast

from fencepost.model.classic.core.state import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinResponse,
    MemberView,
    SyncRequest,
)
from fencepost.model.classic.member.member import (
    Member,
    MemberState,
    MemberStep,
    SentRequest,
    assignments,
    claimed_partitions,
    gets_partition,
    is_current,
    on_heartbeat_response,
)
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.logic import and_, not_, or_
from fencepost.model.sorts import Assignment, Handle, MemberId, PartitionFlags

Plan = tuple[MemberId | None, ...]
"""Who gets each partition, None for nobody."""
Assignments = tuple[tuple[MemberId | None, Assignment | None], ...]
"""The assignments as SyncGroup carries them, by member id."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """What the leader of a generation knows: the response that made it the leader, to whom it has given each partition,
    and whether a SyncGroup of it is without a response."""

    response: JoinResponse
    given: Plan
    is_open: bool = True

    @property
    def members(self) -> tuple[MemberView, ...]:
        """The members of the generation."""
        return self.response.members


def lead(response: JoinResponse, plan: Plan) -> Leadership:
    """The leadership that begins when a leader answers this response with its first plan."""
    return Leadership(response, given_partitions(response.members, plan))


def given_partitions(members: tuple[MemberView, ...], plan: Plan) -> Plan:
    """The plan without the partitions that another member still claims (KIP-429)."""
    claimed = claimed_partitions(members, plan)
    return tuple(
        next((view.id for view in members if gets_partition(claimed, view, plan, partition)), None)
        for partition in range(len(plan))
    )


def learn_partitions(leadership: Leadership, count: int) -> Leadership:
    """The leadership of a leader that knows of `count` partitions or more: nobody has or claims the new ones."""
    added = max(count - len(leadership.given), 0)
    all_claims = [cast(PartitionFlags | None, view.metadata) for view in leadership.members]
    members = tuple(
        view if claims is None else evolve(view, metadata=(*claims, *(False,) * added))
        for view, claims in zip(leadership.members, all_claims, strict=True)
    )
    given = (*leadership.given, *(None,) * added)
    return evolve(leadership, response=evolve(leadership.response, members=members), given=given)


def can_resync(member: Member, leadership: Leadership) -> bool:
    """Whether the member may send another assignment for its generation."""
    return (
        member.state is MemberState.STABLE
        and member.waiting == 0
        and member.generation == leadership.response.generation
        and not leadership.is_open
    )


def resync(member: Member, leadership: Leadership, handle: Handle, plan: Plan) -> tuple[MemberStep, Leadership]:
    """The leader sends what it may give of this plan in another SyncGroup; nothing if it may not send one."""
    if not can_resync(member, leadership):
        return MemberStep(member), leadership
    leadership = learn_partitions(leadership, len(plan))
    # Of the plan only partitions that nobody has are new.
    fresh = given_partitions(leadership.members, plan)
    given = tuple(has if has is not None else gets for has, gets in zip(leadership.given, fresh, strict=True))
    response = leadership.response
    request = sync_request(member, handle, response, assignments(leadership.members, given))
    step = MemberStep(synchronizing(member, handle), (SentRequest(request),), "member.resync")
    return step, evolve(leadership, given=given, is_open=True)


def confirm(leadership: Leadership) -> Leadership:
    """The leadership once the leader's SyncGroup is answered without an error."""
    return evolve(leadership, is_open=False)


def on_heartbeat_told(
    member: Member, request: HeartbeatRequest, response: HeartbeatResponse, handle: Handle
) -> MemberStep:
    """Heartbeat is answered. A stable member that is told of a rebalance asks for its assignment: if there is another
    one, it need not rejoin, and otherwise the coordinator says so."""
    told = and_(response.error == Error.REBALANCE_IN_PROGRESS, member.state == MemberState.STABLE)
    if or_(not_(told), not_(is_current(member, request.member, request.generation)), member.waiting != 0):
        return on_heartbeat_response(member, request, response)
    asked = sync_request(member, handle, None, ())
    return MemberStep(synchronizing(member, handle), (SentRequest(asked),), "member.sync-again")


def synchronizing(member: Member, handle: Handle) -> Member:
    """The member as it waits for an assignment of its generation. If it gets none, it rejoins."""
    return evolve(member, state=MemberState.COMPLETING_REBALANCE, waiting=handle, rejoins=True)


def sync_request(
    member: Member,
    handle: Handle,
    response: JoinResponse | None,
    given: Assignments,
) -> SyncRequest:
    """SyncGroup of the member's generation; the draft's names no protocol."""
    return SyncRequest(
        handle=handle,
        member=member.id,
        instance=member.settings.instance,
        generation=member.generation,
        protocol_type=None if response is None else response.protocol_type,
        protocol=None if response is None else response.protocol,
        assignments=given,
    )
