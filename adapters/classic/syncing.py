"""SyncGroup: the leader's assignments, received, stored and distributed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fencepost.adapters.classic import responses
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Member, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.messages import Error
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.records import GroupRecord
from fencepost.adapters.serve.coordination import Request

_PROTOCOL_SINCE = 5


class Syncing:
    """Handles SyncGroup."""

    def __init__(self, runtime: CoordinatorState, rounds: Rebalancer) -> None:
        self._runtime = runtime
        self._rounds = rounds

    def handle(self, request: Request) -> None:
        """Respond to the request, or park it."""
        group = self._runtime.groups.get(request.body.get("group_id", ""))
        error = self.check_request(request) or self.check_group(group, request)
        if error or group is None:
            self._runtime.respond(request, responses.sync_refused(error))
            return
        member = group.members[request.body.get("member_id", "")]
        if group.state is State.PREPARING:
            self._runtime.respond(request, responses.sync_refused(Error.REBALANCE_IN_PROGRESS))
        elif group.state is State.COMPLETING:
            self.await_assignment(group, member, request)
        else:
            self.repeat_assignment(group, member, request)

    def check_request(self, request: Request) -> Error:
        """Check that protocol type and name are there from version 5 on, for any group (SYNC-06)."""
        if request.version >= _PROTOCOL_SINCE and self.lacks_protocol(request):
            return Error.INCONSISTENT_GROUP_PROTOCOL
        return Error.NONE if request.body.get("group_id", "") else Error.INVALID_GROUP_ID

    def lacks_protocol(self, request: Request) -> bool:
        """Whether protocol type or name is null."""
        return request.body.get("protocol_type") is None or request.body.get("protocol_name") is None

    def check_group(self, group: Group | None, request: Request) -> Error:
        """Check member, generation and protocol, in this order (SYNC-03, SYNC-08)."""
        body = request.body
        if group is None or group.state is State.EMPTY:
            return Error.UNKNOWN_MEMBER_ID
        if error := group.check_member(body.get("member_id", ""), body.get("group_instance_id")):
            return error
        if body.get("generation_id", 0) != group.generation:
            return Error.ILLEGAL_GENERATION
        if not self.agrees_on_protocol(group, body):
            return Error.INCONSISTENT_GROUP_PROTOCOL
        return Error.NONE

    def agrees_on_protocol(self, group: Group, body: Mapping[str, Any]) -> bool:
        """Whether type and name equal the group's, where the request and the group have them (KIP-559, DIV-21)."""
        if body.get("protocol_type") not in (None, group.protocol_type):
            return False
        return group.protocol is None or body.get("protocol_name") in (None, group.protocol)

    def await_assignment(self, group: Group, member: Member, request: Request) -> None:
        """Park the request, and accept the leader's assignments. An earlier one of the member gets no response."""
        member.parked_sync = request
        self._rounds.mark_synced(group, member)
        if member.member_id == group.leader:
            self.accept_assignment(group, self.read_assignments(group, request.body))

    def read_assignments(self, group: Group, body: Mapping[str, Any]) -> dict[str, bytes]:
        """Each member's bytes, empty if left out; other ids are ignored, and of a repeated id the last counts."""
        given = {entry["member_id"]: bytes(entry.get("assignment", b"")) for entry in body.get("assignments", ())}
        return {member_id: given.get(member_id, b"") for member_id in group.members}

    def accept_assignment(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        """Store the assignments before distributing them: a confirmed SyncGroup survives a failover (SYNC-25)."""
        try:
            self._runtime.write(self.assigned_record(group, assignments))
        except LogWriteError:
            self.abandon_assignment(group)
        else:
            self.distribute_assignments(group, assignments)

    def assigned_record(self, group: Group, assignments: Mapping[str, bytes]) -> GroupRecord:
        """The record of the group with these assignments."""
        record = group.record()
        members = tuple(replace(member, assignment=assignments[member.member_id]) for member in record.members)
        return replace(record, since=self._runtime.now, members=members)

    def distribute_assignments(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        """Enter Stable and confirm every parked SyncGroup."""
        for member in group.members.values():
            member.assignment = assignments[member.member_id]
        group.enter_state(State.STABLE, self._runtime.now)
        for member in group.members.values():
            self.confirm_sync(group, member)

    def confirm_sync(self, group: Group, member: Member) -> None:
        """Respond to the member's parked SyncGroup, if any, and restart its session (TIMER-05)."""
        request, member.parked_sync = member.parked_sync, None
        if request is not None:
            self._runtime.respond(request, responses.sync_accepted(group, member))
            self._rounds.touch_session(group, member)

    def abandon_assignment(self, group: Group) -> None:
        """Refuse every parked SyncGroup after a failed write, and start a new rebalance."""
        self._rounds.reset_assignments(group)
        self._rounds.abort_sync_phase(group, Error.COORDINATOR_NOT_AVAILABLE)
        self._rounds.prepare_rebalance(group)

    def repeat_assignment(self, group: Group, member: Member, request: Request) -> None:
        """Respond with the stored assignment, to leader and followers, whatever they sent (SYNC-16, SYNC-17)."""
        self._rounds.mark_synced(group, member)
        self._runtime.respond(request, responses.sync_accepted(group, member))
