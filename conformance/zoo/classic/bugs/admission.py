"""Bugs of admission: which members join, their ids, and responses to JoinGroup."""

from dataclasses import replace

from fencepost.adapters.bundled.classic import responses
from fencepost.adapters.bundled.classic.group import Group, Member, State
from fencepost.adapters.bundled.classic.joining import Joining
from fencepost.adapters.bundled.classic.leaving import Leaving
from fencepost.adapters.bundled.classic.messages import Error, JoinGroup, Request
from fencepost.adapters.bundled.classic.rebalance import Rebalancer
from fencepost.conformance.zoo.classic.bug import BugFamily
from fencepost.conformance.zoo.mutation.patching import Patch

admission = BugFamily()


@admission.add("BUG-07", "KAFKA-6005, https://github.com/apache/kafka/commit/42b356500b7", "JOIN-15")
def empty_group_takes_anything(patch: Patch) -> None:
    """The first member of an empty group may name no protocol type, or no protocols at all."""
    supports, select = Group.supports, Group.select_protocol

    def supports_unless_empty(group: Group, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]) -> bool:
        return group.state is State.EMPTY or supports(group, protocol_type, protocols)

    patch.replace(Group, "supports", supports_unless_empty)
    patch.replace(Group, "select_protocol", lambda group: select(group) if group.candidates() else "")


@admission.add(
    "BUG-10", "KAFKA-7909, https://github.com/apache/kafka/commit/4cb8f56b45f", "JOIN-28", "LEAVE-10", "TIMER-08"
)
def pending_id_blocks_the_join_phase(patch: Patch) -> None:
    """The owner of a handed-out id may not leave, and when the id expires nobody asks whether the round is complete."""

    def expire(rounds: Rebalancer, group_id: str, member_id: str) -> None:
        if (group := rounds._runtime.groups.get(group_id)) is not None:
            group.pending.discard(member_id)

    patch.replace(Leaving, "remove_pending_id", lambda leaving, group, member_id: Error.UNKNOWN_MEMBER_ID)
    patch.replace(Rebalancer, "on_pending_timer", expire)


@admission.add("BUG-16", "KAFKA-9885, https://github.com/apache/kafka/commit/c5d13dcb6ca", "JOIN-46", "JOIN-48")
def limit_is_for_strangers_only(patch: Patch) -> None:
    """The size limit is tested for requests without a member id only, so that whoever got an id in time comes in."""

    def accepts(group: Group, member_id: str, limit: int) -> bool:
        return bool(member_id) or len(group.members) < limit

    patch.replace(Group, "accepts", accepts)


@admission.add("BUG-28", "franz-go kfake, https://github.com/twmb/franz-go/commit/d4d15137", "JOIN-31", "JOIN-33")
def rejoin_needs_the_leader_and_a_change(patch: Patch) -> None:
    """In Stable only a leader that changes what it offers starts a round, neither one alone does."""
    needs_round = Joining.needs_rebalance

    def needs_both(joining: Joining, group: Group, member: Member, join: JoinGroup) -> bool:
        if group.state is State.STABLE:
            return member.member_id == group.leader and not member.matches(join.protocols)
        return needs_round(joining, group, member, join)

    patch.replace(Joining, "needs_rebalance", needs_both)


@admission.add(
    "BUG-29", "franz-go kfake, https://github.com/twmb/franz-go/commit/718aef16", "JOIN-08", "JOIN-37", "JOIN-39"
)
def answer_repeats_the_id_of_the_request(patch: Patch) -> None:
    """The answer carries the member id of the request: who came without one is told none, and not that it leads."""

    def confirm(rounds: Rebalancer, group: Group, member: Member) -> None:
        request, member.parked_join = member.parked_join, None
        if request is not None:
            body = responses.join_accepted(group, member)
            named = request.body.get("member_id", "")
            rounds._runtime.respond(request, body if named else body | {"member_id": "", "members": []})

    patch.replace(Rebalancer, "confirm_join", confirm)


@admission.add("BUG-31", "franz-go kfake, https://github.com/twmb/franz-go/commit/7825098b", "JOIN-17", "GEN-08")
def one_common_protocol_is_enough(patch: Patch) -> None:
    """A newcomer need only share a protocol with some member, and a round of members that share none is a crash."""
    supports = Group.supports

    def supports_any(group: Group, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]) -> bool:
        if group.state is State.EMPTY:
            return supports(group, protocol_type, protocols)
        offered = {name for member in group.members.values() for name, _ in member.protocols}
        return group.protocol_type == protocol_type and any(name in offered for name, _ in protocols)

    patch.replace(Group, "supports", supports_any)


@admission.add("BUG-40", "Redpanda, https://github.com/redpanda-data/redpanda/commit/ec42da0bc3", "JOIN-29")
def repeated_join_gets_no_generation(patch: Patch) -> None:
    """A member that joins again and is answered at once gets generation -1."""

    def rejoin(joining: Joining, group: Group, member: Member, join: JoinGroup) -> None:
        if joining.needs_rebalance(group, member, join):
            joining._rounds.update_member(group, member, join)
        else:
            joining._runtime.respond(join.request, responses.join_accepted(group, member) | {"generation_id": -1})

    patch.replace(Joining, "rejoin", rejoin)


@admission.add("BUG-46", "brod with Redpanda, https://github.com/kafka4beam/brod/pull/465", "JOIN-42")
def no_rebalance_timeout_is_none_at_all(patch: Patch) -> None:
    """JoinGroup v0 has no rebalance timeout, and gives the others no time to rejoin."""
    read = JoinGroup.read

    def read_as_given(kind: type[JoinGroup], request: Request) -> JoinGroup:
        join = read(request)
        return replace(join, rebalance_timeout=-1) if request.version == 0 else join

    patch.replace(JoinGroup, "read", classmethod(read_as_given))


@admission.add("BUG-49", "SeaweedFS, https://github.com/seaweedfs/seaweedfs/commit/86c5e815d", "JOIN-10")
def client_id_is_the_member(patch: Patch) -> None:
    """Members are told apart by their client ids, so that two consumers with the same one are one member."""
    join_without_id = Joining.join_without_id

    def join_as_client(joining: Joining, group: Group, join: JoinGroup) -> None:
        known = (one for one in group.members.values() if one.client_id == (join.request.client_id or ""))
        member = None if join.is_static else next(known, None)
        if member is None:
            join_without_id(joining, group, join)
        else:
            joining.rejoin(group, member, join)

    patch.replace(Joining, "join_without_id", join_as_client)


@admission.add("BUG-50", "SeaweedFS, https://github.com/seaweedfs/seaweedfs/commit/86c5e815d", "JOIN-32", "SYNC-16")
def rejoin_wipes_the_assignment(patch: Patch) -> None:
    """A rejoin makes a fresh member, without the assignment that the leader has stored for it."""
    rejoin = Joining.rejoin

    def rejoin_afresh(joining: Joining, group: Group, member: Member, join: JoinGroup) -> None:
        member.assignment = b""
        rejoin(joining, group, member, join)

    patch.replace(Joining, "rejoin", rejoin_afresh)


@admission.add("BUG-53", "SeaweedFS, https://github.com/seaweedfs/seaweedfs/commit/0007245c7", "JOIN-25", "SYNC-23")
def newcomer_joins_the_running_generation(patch: Patch) -> None:
    """Who joins while the leader's assignment is awaited is let into that very generation."""
    add = Rebalancer.add_member

    def add_without_a_round(rounds: Rebalancer, group: Group, member_id: str, join: JoinGroup) -> None:
        if group.state is not State.COMPLETING:
            add(rounds, group, member_id, join)
            return
        with Patch() as quiet:
            quiet.replace(rounds, "trigger_rebalance", lambda group: None)
            add(rounds, group, member_id, join)
        member = group.members[member_id]
        member.is_new = False
        rounds.touch_session(group, member)
        rounds.confirm_join(group, member)

    patch.replace(Rebalancer, "add_member", add_without_a_round)


@admission.add("BUG-21", "KAFKA-14009, https://github.com/apache/kafka/commit/d139379e50e", "TIMER-27")
def rejoin_keeps_the_old_timeouts(patch: Patch) -> None:
    """A rejoin brings new protocols, but its timeouts are not taken over."""

    def renew_protocols(member: Member, join: JoinGroup) -> None:
        member.protocols = join.protocols
        member.parked_join = join.request

    patch.replace(Member, "update", renew_protocols)
