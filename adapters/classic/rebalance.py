"""The rebalance: members are added and removed, rejoin in the join phase, and sync in a new generation.

The operations, under the names that the requirements use: ADD, UPDATE, TRIGGER, PREPARE, TRY-COMPLETE, COMPLETE-JOIN.
"""

from fencepost.adapters.classic import responses
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Member, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.messages import JoinGroup
from fencepost.model.errors import Error


class Rebalancer:
    """Runs the rebalances of all groups, and the timers of members and rebalances."""

    def __init__(self, runtime: CoordinatorState) -> None:
        self._runtime = runtime

    # -- members ------------------------------------------------------------------------------------------------

    def add_member(self, group: Group, member_id: str, join: JoinGroup) -> None:
        """ADD: add a new member and park its first JoinGroup."""
        if group.state is State.PREPARING and group.is_initial_rebalance:
            group.newcomer = True
        member = Member(
            member_id,
            join.instance_id,
            join.request.client_id or "",
            join.request.client_host,
            join.session_timeout,
            join.rebalance_timeout,
            join.protocols,
            is_new=True,
            parked_join=join.request,
        )
        group.add(member, join.protocol_type)
        self.start_new_member_timer(group, member)
        self.trigger_rebalance(group)

    def update_member(self, group: Group, member: Member, join: JoinGroup) -> None:
        """UPDATE: update a rejoining member by its request. Its timers stay as they are."""
        member.update(join)
        self.trigger_rebalance(group)

    def remove_member(self, group: Group, member: Member) -> None:
        """REMOVE: remove a member, refuse its parked requests and stop its timer."""
        self.refuse_parked_join(member, Error.UNKNOWN_MEMBER_ID, "")
        self.stop_member_timer(group, member.member_id)
        group.remove(member.member_id)

    def expel(self, group: Group, member: Member) -> None:
        """EXPEL: remove the member; the others rebalance without it."""
        self.remove_member(group, member)
        if group.state is State.PREPARING:
            self.complete_join_if_all_joined(group)
        else:
            self.trigger_rebalance(group)

    def refuse_parked_join(self, member: Member, error: Error, member_id: str) -> None:
        """Refuse the member's parked JoinGroup, if there is one, with the error."""
        request, member.parked_join = member.parked_join, None
        if request is not None:
            self._runtime.respond(request, responses.join_refused(error, member_id, request.version))

    def refuse_parked_sync(self, member: Member, error: Error) -> bool:
        """Refuse the member's parked SyncGroup with the error; True if there was one."""
        request, member.parked_sync = member.parked_sync, None
        if request is None:
            return False
        self._runtime.respond(request, responses.sync_refused(error))
        return True

    # -- member timers ------------------------------------------------------------------------------------------

    def touch_session(self, group: Group, member: Member) -> None:
        """Give the member a full session timeout from now (HB-09, TIMER-05)."""
        self._arm_member_timer(group, member, member.session_timeout)

    def start_new_member_timer(self, group: Group, member: Member) -> None:
        """Limit how long a first JoinGroup is parked; the session timeout does not matter (KAFKA-7610)."""
        self._arm_member_timer(group, member, self._runtime.settings.new_member_timeout)

    def start_pending_timer(self, group: Group, member_id: str, session_timeout: int) -> None:
        """Let a pending id expire after the session timeout of its request (KIP-394)."""
        group_id, deadline = group.group_id, self._runtime.now + session_timeout
        self._runtime.timers.arm(
            ("member", group_id, member_id), deadline, lambda: self.on_pending_timer(group_id, member_id)
        )

    def stop_member_timer(self, group: Group, member_id: str) -> None:
        """Stop the timer of the member or pending id."""
        self._runtime.timers.cancel(("member", group.group_id, member_id))

    def _arm_member_timer(self, group: Group, member: Member, timeout: int) -> None:
        group_id, member_id = group.group_id, member.member_id
        self._runtime.timers.arm(
            ("member", group_id, member_id),
            self._runtime.now + timeout,
            lambda: self.on_member_timer(group_id, member_id),
        )

    def on_member_timer(self, group_id: str, member_id: str) -> None:
        """Expel the member, unless it is not new and awaits a response: its session starts again with that."""
        group = self._runtime.groups.get(group_id)
        member = group.members.get(member_id) if group is not None else None
        if group is None or member is None:
            return  # the id of a static member that was replaced
        if member.is_new or not member.is_waiting:
            self.expel(group, member)

    def on_pending_timer(self, group_id: str, member_id: str) -> None:
        """Remove a pending id whose owner did not rejoin (TIMER-08)."""
        group = self._runtime.groups.get(group_id)
        if group is None or member_id not in group.pending:
            return
        group.remove(member_id)
        if group.state is State.PREPARING:
            self.complete_join_if_all_joined(group)

    # -- a round begins -----------------------------------------------------------------------------------------

    def trigger_rebalance(self, group: Group) -> None:
        """TRIGGER: start a rebalance, or complete the running one if all have joined."""
        if group.state is State.PREPARING:
            self.try_complete_join(group)
        else:
            self.prepare_rebalance(group)

    def prepare_rebalance(self, group: Group) -> None:
        """PREPARE: enter PreparingRebalance, in which every member has to rejoin."""
        if group.state is State.COMPLETING:
            self.reset_assignments(group)
            self.abort_sync_phase(group, Error.REBALANCE_IN_PROGRESS)
        self.clear_unsynced(group)
        was_empty = group.state is State.EMPTY
        group.enter_state(State.PREPARING, self._runtime.now)
        if was_empty:
            self.start_initial_delay(group)
        elif group.all_joined:
            self.complete_join(group)
        else:
            self.start_join_timer(group)

    def reset_assignments(self, group: Group) -> None:
        """Discard the assignments of an interrupted rebalance (SYNC-19)."""
        for member in group.members.values():
            member.assignment = b""

    def abort_sync_phase(self, group: Group, error: Error) -> None:
        """Refuse all parked SyncGroups with the error, and restart the sessions of those members."""
        for member in list(group.members.values()):
            if self.refuse_parked_sync(member, error):
                self.touch_session(group, member)

    def start_initial_delay(self, group: Group) -> None:
        """Start the initial delay of an empty group, in which more members may join (KIP-134)."""
        delay = self._runtime.settings.initial_rebalance_delay
        group.remaining_delay = max(group.rebalance_timeout - delay, 0)
        self._arm_initial_delay(group, delay)

    def on_initial_delay(self, group_id: str) -> None:
        """Extend the delay by a step if a member joined during the last one, else complete the join phase."""
        group = self._runtime.groups[group_id]
        if group.newcomer and group.remaining_delay:
            self.extend_initial_delay(group)
        else:
            self.complete_join(group)

    def extend_initial_delay(self, group: Group) -> None:
        """Add a step to the delay, within the first joiner's rebalance timeout (TIMER-17)."""
        group.newcomer = False
        step = min(self._runtime.settings.initial_rebalance_delay, group.remaining_delay)
        group.remaining_delay -= step
        self._arm_initial_delay(group, step)

    def _arm_initial_delay(self, group: Group, delay: int) -> None:
        group_id = group.group_id
        self._runtime.timers.arm(("join", group_id), self._runtime.now + delay, lambda: self.on_initial_delay(group_id))

    def start_join_timer(self, group: Group) -> None:
        """Start the join timer with the longest rebalance timeout of the members; later joiners do not extend it."""
        group_id, deadline = group.group_id, self._runtime.now + group.rebalance_timeout
        self._runtime.timers.arm(("join", group_id), deadline, lambda: self.on_join_timer(group_id))

    def on_join_timer(self, group_id: str) -> None:
        """Complete the join phase with the members that have rejoined (JOIN-44)."""
        self.complete_join(self._runtime.groups[group_id])

    # -- a round ends -------------------------------------------------------------------------------------------

    def try_complete_join(self, group: Group) -> None:
        """TRY-COMPLETE: complete the join phase once all have joined, but not during an initial delay (TIMER-18)."""
        if not group.is_initial_rebalance:
            self.complete_join_if_all_joined(group)

    def complete_join_if_all_joined(self, group: Group) -> None:
        """Complete the join phase if all have joined. Expiries do so even during the initial delay (DIV-09)."""
        if group.all_joined:
            self.complete_join(group)

    def complete_join(self, group: Group) -> None:
        """COMPLETE-JOIN: drop the dynamic members that did not rejoin, and begin a generation with the rest."""
        self._runtime.timers.cancel(("join", group.group_id))
        self.drop_absent_members(group)
        if group.members and not group.choose_leader():
            self.wait_for_any_member(group)
            return
        group.begin_generation(self._runtime.now)
        if group.state is State.EMPTY:
            self.store_empty_group(group)
        else:
            self.open_sync_phase(group)

    def drop_absent_members(self, group: Group) -> None:
        """Remove the dynamic members that did not rejoin; static ones stay until their session ends (KIP-345)."""
        for member in list(group.members.values()):
            if not member.has_rejoined and not member.is_static:
                self.remove_member(group, member)

    def wait_for_any_member(self, group: Group) -> None:
        """Wait while only absent static members are left: a generation needs a leader that has rejoined (STATIC-20)."""
        group_id = group.group_id
        # At least 1 ms, or a rebalance timeout of 0 would have no time pass between one try and the next.
        deadline = self._runtime.now + max(group.rebalance_timeout, 1)
        self._runtime.timers.arm(("join", group_id), deadline, lambda: self.on_join_timer(group_id))

    def store_empty_group(self, group: Group) -> None:
        """Write the generation of an emptied group to the log; a failure changes nothing."""
        try:
            self._runtime.write(group.record())
        except LogWriteError:
            return

    def open_sync_phase(self, group: Group) -> None:
        """Confirm every member's JoinGroup; each now has to send a SyncGroup."""
        for member in group.members.values():
            self.confirm_join(group, member)
            self.touch_session(group, member)
            member.is_new = False
            group.unsynced.add(member.member_id)
        self.start_sync_timer(group)

    def confirm_join(self, group: Group, member: Member) -> None:
        """Respond to the parked JoinGroup, if any, with the group's generation."""
        request, member.parked_join = member.parked_join, None
        if request is not None:
            self._runtime.respond(request, responses.join_accepted(group, member))

    # -- the sync timer -----------------------------------------------------------------------------------------

    def start_sync_timer(self, group: Group) -> None:
        """Start the sync timer with the longest rebalance timeout of the members (KAFKA-12890)."""
        group_id, generation = group.group_id, group.generation
        deadline = self._runtime.now + group.rebalance_timeout
        self._runtime.timers.arm(("sync", group_id), deadline, lambda: self.on_sync_timer(group_id, generation))

    def on_sync_timer(self, group_id: str, generation: int) -> None:
        """Remove every member that has not synced, static or not, with heartbeats or not (TIMER-11, STATIC-22)."""
        group = self._runtime.groups.get(group_id)
        if group is None or group.generation != generation:
            return
        if group.state in (State.COMPLETING, State.STABLE) and group.unsynced:
            self.drop_unsynced_members(group)
            self.prepare_rebalance(group)

    def drop_unsynced_members(self, group: Group) -> None:
        """Remove the members of these ids; ids that were replaced meanwhile are skipped."""
        for member_id in list(group.unsynced):
            self.stop_member_timer(group, member_id)
            group.remove(member_id)

    def mark_synced(self, group: Group, member: Member) -> None:
        """Note that the member has synced; the last one stops the sync timer."""
        group.unsynced.discard(member.member_id)
        if not group.unsynced:
            self._runtime.timers.cancel(("sync", group.group_id))

    def clear_unsynced(self, group: Group) -> None:
        """End the sync phase: stop its timer and forget the members that have not synced."""
        group.unsynced.clear()
        self._runtime.timers.cancel(("sync", group.group_id))
