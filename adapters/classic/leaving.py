"""LeaveGroup: members that leave, and members that an admin removes by instance id."""

from collections.abc import Sequence
from typing import Any

from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, State
from fencepost.adapters.classic.messages import Error
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.serve.coordination import Body, Request

_LIST_SINCE = 3


class Leaving:
    """Handles LeaveGroup."""

    def __init__(self, runtime: CoordinatorState, rounds: Rebalancer) -> None:
        self._runtime = runtime
        self._rounds = rounds

    def handle(self, request: Request) -> None:
        """Respond for every entry, then rebalance the remaining members."""
        if not request.body.get("group_id", ""):
            self._runtime.respond(request, {"error_code": Error.INVALID_GROUP_ID, "members": []})
            return
        entries = self.read_entries(request)
        group = self._runtime.groups.get(request.body["group_id"])
        results = [self.remove_entry(group, entry) for entry in entries]
        self.respond(request, entries, results)
        if group is not None and Error.NONE in results:
            self.rebalance_remaining(group)

    def read_entries(self, request: Request) -> Sequence[Body]:
        """The members to remove; before version 3 there is just one, given by id."""
        if request.version >= _LIST_SINCE:
            return list(request.body.get("members", ()))
        return [{"member_id": request.body.get("member_id", "")}]

    def remove_entry(self, group: Group | None, entry: Body) -> Error:
        """Remove the entry's member. The generation is not checked (LEAVE-20)."""
        member_id, instance_id = entry.get("member_id", ""), entry.get("group_instance_id")
        if group is None:
            return Error.UNKNOWN_MEMBER_ID
        if not member_id:
            return self.remove_instance(group, instance_id)
        if member_id in group.pending:
            return self.remove_pending_id(group, member_id)
        if error := group.check_member(member_id, instance_id):
            return error
        self._rounds.remove_member(group, group.members[member_id])
        return Error.NONE

    def remove_instance(self, group: Group, instance_id: str | None) -> Error:
        """Remove the member with the instance id, on behalf of an admin (LEAVE-14)."""
        member_id = group.instances.get(instance_id) if instance_id is not None else None
        if member_id is None:
            return Error.UNKNOWN_MEMBER_ID
        self._rounds.remove_member(group, group.members[member_id])
        return Error.NONE

    def remove_pending_id(self, group: Group, member_id: str) -> Error:
        """Remove a pending id on behalf of its owner (LEAVE-10)."""
        self._rounds.stop_member_timer(group, member_id)
        group.remove(member_id)
        return Error.NONE

    def respond(self, request: Request, entries: Sequence[Body], results: Sequence[Error]) -> None:
        """Return one result for each entry, in order; before version 3 the one result is the response."""
        members: list[dict[str, Any]] = [
            {
                "member_id": entry.get("member_id", ""),
                "group_instance_id": entry.get("group_instance_id"),
                "error_code": error,
            }
            for entry, error in zip(entries, results, strict=True)
        ]
        top = Error.NONE if request.version >= _LIST_SINCE else results[0]
        self._runtime.respond(request, {"error_code": top, "members": members})

    def rebalance_remaining(self, group: Group) -> None:
        """Start one rebalance for the whole batch (DIV-06), also for a batch of pending ids only (DIV-07)."""
        if group.state is not State.EMPTY:
            self._rounds.trigger_rebalance(group)
