"""The synchronization in the proposal: stored when it begins and ends, begun again or failed by the leader."""

from collections.abc import Mapping

from fencepost.adapters.bundled.classic import responses
from fencepost.adapters.bundled.classic.group import Group, Member
from fencepost.adapters.bundled.classic.log import LogWriteError
from fencepost.adapters.bundled.classic.messages import Error, Request
from fencepost.adapters.bundled.classic.rebalance import Rebalancer
from fencepost.adapters.bundled.classic.records import SynchronizationRecord
from fencepost.adapters.bundled.classic.syncing import Syncing


class ProposedRebalancer(Rebalancer):
    """Runs the rebalances; a generation is stored before anybody is told of it."""

    def open_sync_phase(self, group: Group) -> None:
        """Store the generation, then confirm every member's JoinGroup. Without a record there is no generation."""
        try:
            self._runtime.write(group.record(), SynchronizationRecord(group.group_id, tuple(group.members), False))
        except LogWriteError:
            for member in group.members.values():
                self.refuse_parked_join(member, Error.COORDINATOR_NOT_AVAILABLE, member.member_id)
            self.prepare_rebalance(group)
        else:
            super().open_sync_phase(group)


class ProposedSyncing(Syncing):
    """Handles SyncGroup, which may carry the error of an assignment that failed."""

    def await_assignment(self, group: Group, member: Member, request: Request) -> None:
        """Park the request, and accept what the leader brings: the assignments, or why there are none."""
        failure = request.body.get("sync_error_code", Error.NONE)
        if member.member_id != group.leader or not failure:
            super().await_assignment(group, member, request)
            return
        member.parked_sync = request
        self._rounds.reset_assignments(group)
        self._rounds.abort_sync_phase(group, failure)
        self._rounds.prepare_rebalance(group)

    def accept_assignment(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        """Store the assignments, and who has yet to ask for them, before distributing them."""
        try:
            self.store(group, assignments, group.unsynced)
        except LogWriteError:
            self.abandon_assignment(group)
        else:
            self.distribute_assignments(group, assignments)

    def store(self, group: Group, assignments: Mapping[str, bytes], awaited: set[str]) -> None:
        """Write the group with these assignments. Raises `LogWriteError`."""
        awaiting = tuple(member_id for member_id in group.members if member_id in awaited)
        self._runtime.write(
            self.assigned_record(group, assignments), SynchronizationRecord(group.group_id, awaiting, True)
        )

    def repeat_assignment(self, group: Group, member: Member, request: Request) -> None:
        """Respond with the stored assignment; the leader may bring others first."""
        if member.member_id == group.leader and request.body.get("assignments"):
            self.reassign(group, member, request)
        else:
            super().repeat_assignment(group, member, request)

    def reassign(self, group: Group, leader: Member, request: Request) -> None:
        """Store other assignments of the same generation; who gets another one than before has to ask for it."""
        assignments = self.read_assignments(group, request.body)
        changed = {one for one, member in group.members.items() if member.assignment != assignments[one]}
        awaited = (group.unsynced | changed) - {leader.member_id}
        try:
            self.store(group, assignments, awaited)
        except LogWriteError:
            self._runtime.respond(request, responses.sync_refused(Error.COORDINATOR_NOT_AVAILABLE))
            return
        for member_id, assignment in assignments.items():
            group.members[member_id].assignment = assignment
        self._rounds.clear_unsynced(group)
        group.unsynced |= awaited
        if awaited:
            self._rounds.start_sync_timer(group)
        self._runtime.respond(request, responses.sync_accepted(group, leader))
