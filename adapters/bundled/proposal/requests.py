"""JoinGroup and Heartbeat in the proposal."""

from fencepost.adapters.bundled.classic.group import Group, Member, State
from fencepost.adapters.bundled.classic.heartbeats import Heartbeats
from fencepost.adapters.bundled.classic.joining import Joining
from fencepost.adapters.bundled.classic.messages import Error, JoinGroup, Request


class ProposedJoining(Joining):
    """Handles JoinGroup."""

    def needs_rebalance(self, group: Group, member: Member, join: JoinGroup) -> bool:
        """A member that joins again while the assignment is awaited aborts the synchronization."""
        return group.state is State.COMPLETING or super().needs_rebalance(group, member, join)


class ProposedHeartbeats(Heartbeats):
    """Handles Heartbeat."""

    def handle(self, request: Request) -> None:
        """Respond; a member of a stable group that has to ask for its assignment is told so."""
        group = self._runtime.groups.get(request.body.get("group_id", ""))
        if group is None or self.check(group, request.body) or not self.has_to_sync(group, request):
            super().handle(request)
            return
        self._rounds.touch_session(group, group.members[request.body["member_id"]])
        self._runtime.respond(request, {"error_code": Error.REBALANCE_IN_PROGRESS})

    def has_to_sync(self, group: Group, request: Request) -> bool:
        """Whether the sender's assignment is another one than it knows."""
        return group.state is State.STABLE and request.body.get("member_id", "") in group.unsynced
