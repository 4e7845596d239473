"""The bundled coordinator in the dialect of the proposal of client-side assignment."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from fencepost.adapters.classic import responses
from fencepost.adapters.classic.administration import Loading
from fencepost.adapters.classic.coordinator import KAFKA, Coordinator, Parts
from fencepost.adapters.classic.group import Group, Member, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.membership import Heartbeats, Joining, Syncing
from fencepost.adapters.classic.messages import JoinGroup
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.records import GroupRecord, Record, SynchronizationRecord
from fencepost.adapters.serve.coordination import Request
from fencepost.model.errors import Error
from fencepost.model.wire import codec
from fencepost.model.wire.codec import API_KEYS, Body, DecodedRequest, decode_body

# --- The draft's messages on the wire: in the proposal's dialect, version 0 of SyncGroup has the draft's layout.
#
# The draft's JoinGroup is Kafka's version 0, and so is its response to SyncGroup. From version 1 on, SyncGroup is
# Kafka's: so today's clients can talk to the same server.

_CLIENT_ID = 8
"""Where the client id begins in a frame: behind key, version and correlation id."""


def decode_request(frame: bytes, max_items: int) -> DecodedRequest:
    """As `codec.decode_request`; a SyncGroup of the draft has Kafka's names of fields, and `sync_error_code`."""
    decoded = codec.decode_request(frame, max_items)
    if (decoded.key, decoded.version) != (API_KEYS["SyncGroup"], 0):
        return decoded
    length = int.from_bytes(frame[_CLIENT_ID : _CLIENT_ID + 2], signed=True)
    sent = decode_body("ProposedSyncGroupRequest", 0, frame[_CLIENT_ID + 2 + max(length, 0) :])
    body = kafka_names(sent.body) if not sent.findings else {}
    return replace(decoded, body=body, findings=sent.findings)


def kafka_names(sent: Body) -> Body:
    """The body of a SyncGroup of the draft under Kafka's names."""
    return {
        "group_id": sent["group_id"],
        "generation_id": sent["group_generation"],
        "member_id": sent["member_id"],
        "sync_error_code": sent["sync_error_code"],
        "assignments": [
            {"member_id": entry["member_id"], "assignment": entry["state"]} for entry in sent["group_state"]
        ],
    }


# Loading in the proposal: a synchronization that was under way goes on.


class ProposedLoading(Loading):
    """Reads the log, with the records of synchronizations."""

    def replay(self, record: Record) -> None:
        """Apply one record to the state."""
        if isinstance(record, SynchronizationRecord):
            self.resume(record)
        else:
            super().replay(record)

    def restore_group(self, record: GroupRecord) -> None:
        """Restore the record's group. One of another generation leaves nobody to be waited for."""
        known = self._runtime.groups.get(record.group)
        awaited = known.unsynced if known is not None and known.generation == record.generation else set()
        super().restore_group(record)
        group = self._runtime.groups[record.group]
        group.unsynced = awaited & group.members.keys()

    def resume(self, record: SynchronizationRecord) -> None:
        """Wait again for those who have not asked for their assignment."""
        group = self._runtime.groups[record.group]
        group.unsynced = set(record.awaited)
        group.state = State.STABLE if record.is_assigned else State.COMPLETING

    def start_group(self, group: Group) -> None:
        """Give every member a full session, and those who are waited for a full rebalance timeout."""
        if group.unsynced:
            self._rounds.start_sync_timer(group)
        super().start_group(group)


# JoinGroup and Heartbeat in the proposal.


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


# The synchronization in the proposal: stored when it begins and ends, begun again or failed by the leader.


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


# The coordinators by their dialect: Kafka's, and that of the proposal of client-side assignment.


class ProposedCoordinator(Coordinator):
    """A coordinator as the proposal has it."""

    parts: ClassVar[Parts] = Parts(
        ProposedRebalancer, ProposedJoining, ProposedHeartbeats, ProposedSyncing, ProposedLoading
    )


PROPOSAL = replace(KAFKA, make_coordinator=ProposedCoordinator, decode_request=decode_request)
"""What the server needs to speak it."""
