"""One rebalance of a group as responses show it: enough to know the state once it is over."""

from dataclasses import dataclass, field

from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import FREE, Group, Holder, Phase, Slot
from fencepost.model.classic.messages.requests import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from fencepost.model.classic.messages.subscription import subscribed_topics
from fencepost.model.errors import Error
from fencepost.model.sorts import Assignment, AssignmentBytes, MemberId
from fencepost.traces.events import Body
from fencepost.traces.judge.search.configuration import GroupOperation
from fencepost.traces.judge.search.time_interval import TimeInterval


@dataclass(slots=True)
class ReconstructedRebalance:
    """The latest rebalance that was seen."""

    generation: int = -1
    leader_response: Body = field(default_factory=dict)
    """The response to its leader."""
    joins: dict[MemberId, JoinGroup] = field(default_factory=dict)
    """By member id, the request that brought the member into the round."""
    assignments: dict[MemberId | None, Assignment | None] | None = None
    """What the leader sent, once it was accepted."""
    synced: set[MemberId | None] = field(default_factory=set)
    last_heard: dict[MemberId | None, int] = field(default_factory=dict)
    """When members last sent something that extends their sessions."""
    pending: dict[MemberId, tuple[int, int]] = field(default_factory=dict)
    """Ids handed out whose owners have not come back: when, and for how long they hold."""
    is_over: bool = False
    """Something has happened since, or may have."""

    def on_response(self, part: GroupOperation, time: int) -> None:
        """Take in a response."""
        request, body = part.request, part.operation.response or {}
        error, sent = body.get("error_code", 0), part.operation.sent_at
        if isinstance(request, JoinGroup):
            self.on_join_response(request, body, sent)
        elif isinstance(request, SyncGroup) and error == Error.NONE and request.core.generation == self.generation:
            self.synced.add(request.core.member)
            self.last_heard[request.core.member] = sent
            if request.core.member == self.leader_response.get("leader"):
                self.assignments = dict(request.core.assignments)
        elif isinstance(request, Heartbeat):
            self.last_heard[request.core.member] = sent
            self.is_over |= error != Error.NONE and request.core.generation == self.generation
        elif isinstance(request, LeaveGroup):
            self.is_over = True

    def on_join_response(self, request: JoinGroup, body: Body, sent: int) -> None:
        """A response to JoinGroup."""
        error, member = body.get("error_code"), MemberId(body.get("member_id") or "")
        if error == Error.MEMBER_ID_REQUIRED:
            self.pending[member] = (sent, request.core.session_timeout)
        if error != Error.NONE:
            return
        generation = body.get("generation_id", -1)
        if generation != self.generation:
            self.generation, self.leader_response, self.assignments, self.is_over = generation, {}, None, False
            self.joins, self.synced = {}, set()
        # Responded to within a rebalance that goes on: a static member came back, or one that had missed its response.
        self.is_over |= member in self.joins or self.assignments is not None
        self.joins[member] = request
        self.last_heard[member] = sent
        self.pending.pop(member, None)
        if body.get("leader") == member:
            self.leader_response = body

    def reconstruct_state(self, now: int) -> GroupState | None:
        """The group, if this is how it stands: Stable, and every member has its assignment."""
        told = self.leader_response
        members = {row.get("member_id"): row.get("group_instance_id") for row in told.get("members") or ()}
        if self.is_over or self.assignments is None or not members:
            return None
        if not self.joins.keys() == members.keys() == self.synced:
            return None
        waiting = [
            pending_slot(member, since, now, timeout)
            for member, (since, timeout) in self.pending.items()
            if since + 2 * timeout > now
        ]
        kind = next(iter(self.joins.values())).core.protocol_type
        group = Group(
            phase=Phase.STABLE,
            generation=self.generation,
            protocol_type=kind,
            protocol=told.get("protocol_name"),
            leader=told.get("leader"),
            slots=(*(self.member_slot(member, now) for member in members), *waiting, FREE),
        )
        return GroupState(group, subscribed_topics(group), stored=group)

    def member_slot(self, member: MemberId, now: int) -> Slot:
        """The place of one member; its session began when it was last heard of, or up to now."""
        core = self.joins[member].core
        assert self.assignments is not None
        return Slot(
            Holder.MEMBER,
            member,
            core.instance,
            session_timeout=core.session_timeout,
            rebalance_timeout=core.rebalance_timeout,
            protocols=core.protocols,
            assignment=self.assignments.get(member, AssignmentBytes(b"")),
            armed=True,
            deadline=TimeInterval(self.last_heard[member] + core.session_timeout, now + core.session_timeout),
        )


def pending_slot(member: MemberId, since: int, now: int, timeout: int) -> Slot:
    """The place of an id whose owner has not come back."""
    return Slot(
        Holder.PENDING,
        member,
        armed=True,
        session_timeout=timeout,
        deadline=TimeInterval(since + timeout, now + timeout),
    )
