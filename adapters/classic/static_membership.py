"""Static membership (KIP-345): a returning instance replaces its predecessor."""

from fencepost.adapters.classic import responses
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Member, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.messages import Error, JoinGroup
from fencepost.adapters.classic.rebalance import Rebalancer

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
