"""Heartbeat: extends a member's session, and signals a rebalance."""

from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, State
from fencepost.adapters.classic.messages import Error
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.serve.coordination import Body, Request


class Heartbeats:
    """Handles Heartbeat."""

    def __init__(self, runtime: CoordinatorState, rounds: Rebalancer) -> None:
        self._runtime = runtime
        self._rounds = rounds

    def handle(self, request: Request) -> None:
        """Respond; only a heartbeat of a member in the current generation extends its session."""
        group = self._runtime.groups.get(request.body.get("group_id", ""))
        error = self.check(group, request.body)
        if group is not None and not error:
            self._rounds.touch_session(group, group.members[request.body.get("member_id", "")])
            error = self.rebalance_error(group)
        self._runtime.respond(request, {"error_code": error})

    def check(self, group: Group | None, body: Body) -> Error:
        """Check the member, then the generation (HB-03, HB-14)."""
        if not body.get("group_id", ""):
            return Error.INVALID_GROUP_ID
        if group is None or group.state is State.EMPTY:
            return Error.UNKNOWN_MEMBER_ID
        if error := group.check_member(body.get("member_id", ""), body.get("group_instance_id")):
            return error
        return Error.NONE if body.get("generation_id", 0) == group.generation else Error.ILLEGAL_GENERATION

    def rebalance_error(self, group: Group) -> Error:
        """REBALANCE_IN_PROGRESS in PreparingRebalance; none in CompletingRebalance (KAFKA-10134)."""
        return Error.REBALANCE_IN_PROGRESS if group.state is State.PREPARING else Error.NONE
