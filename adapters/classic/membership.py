"""Members of a group: how they join, sync, heartbeat, leave, and are replaced by their instance id (KIP-345)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fencepost.adapters.classic import responses
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Member, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.messages import JoinGroup
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.records import GroupRecord
from fencepost.adapters.serve.coordination import Body, Request
from fencepost.model.errors import Error

_SKIP_ASSIGNMENT_SINCE = 9


class StaticMembership:
    """Handles JoinGroup with an instance id and no member id."""

    def __init__(self, runtime: CoordinatorState, rounds: Rebalancer) -> None:
        self._runtime = runtime
        self._rounds = rounds

    def join(self, group: Group, join: JoinGroup) -> None:
        """Add an unknown instance as a new member, without MEMBER_ID_REQUIRED (STATIC-01), or replace a known one."""
        new_id = self._runtime.new_id(join.instance_id or "")
        old_id = group.instances.get(join.instance_id or "")
        if old_id is None:
            self._rounds.add_member(group, new_id, join)
        else:
            self.replace_member(group, group.members[old_id], new_id, join)

    def replace_member(self, group: Group, member: Member, new_id: str, join: JoinGroup) -> None:
        """Give the member a new id; the state decides whether that starts a rebalance."""
        former_id, former_leader = member.member_id, group.leader or ""
        former_data = (member.protocols, member.session_timeout, member.rebalance_timeout)
        self.fence_predecessor(member)
        self.change_id(group, member, new_id)
        member.update(join)
        if self.can_replace_in_place(group):
            try:
                self._runtime.write(group.record())
            except LogWriteError:
                member.protocols, member.session_timeout, member.rebalance_timeout = former_data
                self.roll_back(group, member, former_id, join, former_leader)
            else:
                self.confirm_in_place(group, member, join, former_leader)
        else:
            self._rounds.trigger_rebalance(group)

    def fence_predecessor(self, member: Member) -> None:
        """Refuse the parked requests of the predecessor (STATIC-05)."""
        self._rounds.refuse_parked_join(member, Error.FENCED_INSTANCE_ID, member.member_id)
        self._rounds.refuse_parked_sync(member, Error.FENCED_INSTANCE_ID)

    def change_id(self, group: Group, member: Member, new_id: str) -> None:
        """Change the id and start a session for it. The timer of the former id finds no member."""
        group.rename(member.instance_id or "", member.member_id, new_id)
        self._rounds.touch_session(group, member)

    def can_replace_in_place(self, group: Group) -> bool:
        """Whether the group is Stable and a vote would select the same protocol again (STATIC-08, STATIC-14)."""
        return group.state is State.STABLE and group.select_protocol() == group.protocol

    def confirm_in_place(self, group: Group, member: Member, join: JoinGroup, former_leader: str) -> None:
        """Respond with the current generation. Before version 9 no field keeps a leader from assigning again, so
        the response names its predecessor as the leader (STATIC-10, STATIC-11)."""
        member.parked_join = None
        if join.request.version >= _SKIP_ASSIGNMENT_SINCE:
            leader, skip_assignment = group.leader or "", group.leader == member.member_id
        else:
            leader, skip_assignment = former_leader, False
        self._runtime.respond(join.request, responses.join_accepted_in_place(group, member, leader, skip_assignment))

    def roll_back(self, group: Group, member: Member, former_id: str, join: JoinGroup, former_leader: str) -> None:
        """Undo a replacement that could not be stored: restore the former id, with a fresh session."""
        member.parked_join = None
        self._rounds.stop_member_timer(group, member.member_id)
        self.change_id(group, member, former_id)
        self._runtime.respond(join.request, responses.join_not_stored(group, former_leader))


# --- Heartbeat: extends a member's session, and signals a rebalance.


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


# --- JoinGroup: admission of members, their ids, and the rebalances that they start.

_MEMBER_ID_REQUIRED_SINCE = 4


class Joining:
    """Handles JoinGroup."""

    def __init__(self, runtime: CoordinatorState, rounds: Rebalancer, statics: StaticMembership) -> None:
        self._runtime = runtime
        self._rounds = rounds
        self._statics = statics

    def handle(self, request: Request) -> None:
        """Respond to the request, or park it."""
        join = JoinGroup.read(request)
        if error := self.check_request(join):
            self.refuse(join, error, join.member_id)
            return
        group = self._runtime.groups.get(join.group_id)
        if group is not None:
            self.join_group(group, join)
        elif join.member_id:
            self.refuse(join, Error.UNKNOWN_MEMBER_ID, join.member_id)
        else:
            self.join_new_group(join)

    def check_request(self, join: JoinGroup) -> Error:
        """The checks that do not need the group (JOIN-01, JOIN-02, JOIN-03)."""
        if not join.group_id:
            return Error.INVALID_GROUP_ID
        if not self.is_session_timeout_allowed(join.session_timeout):
            return Error.INVALID_SESSION_TIMEOUT
        return Error.NONE

    def is_session_timeout_allowed(self, timeout: int) -> bool:
        """Whether the session timeout is within its bounds, each included; the rebalance timeout has none."""
        settings = self._runtime.settings
        return settings.min_session_timeout <= timeout <= settings.max_session_timeout

    def join_new_group(self, join: JoinGroup) -> None:
        """Create the group, which stays even if the request is then refused (JOIN-06, DIV-15)."""
        group = Group(join.group_id, self._runtime.now)
        try:
            self._runtime.write(group.record())
        except LogWriteError:
            self.refuse(join, Error.COORDINATOR_NOT_AVAILABLE, "")
            return
        self._runtime.groups[join.group_id] = group
        self.join_group(group, join)

    def join_group(self, group: Group, join: JoinGroup) -> None:
        """Check capacity, protocols and the member id, in this order (JOIN-19)."""
        if not group.accepts(join.member_id, self._runtime.settings.max_group_size):
            self.refuse_full_group(group, join)
        elif not group.supports(join.protocol_type, join.protocols):
            self.refuse(join, Error.INCONSISTENT_GROUP_PROTOCOL, join.member_id)
        elif not join.member_id:
            self.join_without_id(group, join)
        elif join.member_id in group.pending:
            self.join_with_pending_id(group, join)
        elif error := group.check_member(join.member_id, join.instance_id):
            self.refuse(join, error, join.member_id)
        else:
            self.rejoin(group, group.members[join.member_id], join)

    def refuse_full_group(self, group: Group, join: JoinGroup) -> None:
        """Refuse a request to a full group; an existing member or pending id is removed with it (JOIN-49, DIV-08)."""
        self._rounds.stop_member_timer(group, join.member_id)
        group.remove(join.member_id)
        self.refuse(join, Error.GROUP_MAX_SIZE_REACHED, "")

    def join_without_id(self, group: Group, join: JoinGroup) -> None:
        """Add a static member or let it replace its predecessor; a dynamic one may need an id first."""
        if join.is_static:
            self._statics.join(group, join)
        elif self.requires_member_id(join):
            self.issue_member_id(group, join)
        else:
            self._rounds.add_member(group, self._runtime.new_id(join.request.client_id or ""), join)

    def requires_member_id(self, join: JoinGroup) -> bool:
        """Whether the request's version gets its member id before it may join (KIP-394)."""
        return join.request.version >= _MEMBER_ID_REQUIRED_SINCE

    def issue_member_id(self, group: Group, join: JoinGroup) -> None:
        """Reserve a pending id and return it; other members do not notice (JOIN-09)."""
        member_id = self._runtime.new_id(join.request.client_id or "")
        group.pending.add(member_id)
        self._rounds.start_pending_timer(group, member_id, join.session_timeout)
        self.refuse(join, Error.MEMBER_ID_REQUIRED, member_id)

    def join_with_pending_id(self, group: Group, join: JoinGroup) -> None:
        """Add the owner of a pending id; such an id never belongs to a static member (JOIN-14)."""
        if join.is_static:
            self.refuse(join, Error.UNKNOWN_SERVER_ERROR, "")
        else:
            self._rounds.add_member(group, join.member_id, join)

    def rejoin(self, group: Group, member: Member, join: JoinGroup) -> None:
        """Let a member rejoin; if nothing changes, it gets the current generation."""
        if self.needs_rebalance(group, member, join):
            self._rounds.update_member(group, member, join)
        else:
            self._runtime.respond(join.request, responses.join_accepted(group, member))

    def needs_rebalance(self, group: Group, member: Member, join: JoinGroup) -> bool:
        """In Stable the leader always starts a rebalance (JOIN-31), others when their protocols change."""
        if group.state is State.PREPARING:
            return True
        if group.state is State.STABLE and member.member_id == group.leader:
            return True
        return not member.matches(join.protocols)

    def refuse(self, join: JoinGroup, error: Error, member_id: str) -> None:
        """Respond with JOIN-ERR."""
        self._runtime.respond(join.request, responses.join_refused(error, member_id, join.request.version))


# --- SyncGroup: the leader's assignments, received, stored and distributed.

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


# --- LeaveGroup: members that leave, and members that an admin removes by instance id.

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
