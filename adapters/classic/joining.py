"""JoinGroup: admission of members, their ids, and the rebalances that they start."""

from fencepost.adapters.classic import responses
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Member, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.messages import Error, JoinGroup
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.static_membership import StaticMembership
from fencepost.adapters.serve.coordination import Request

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
        """Both bounds are inclusive; the rebalance timeout has none."""
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
