"""Bugs of membership and of rebalances.

Which members join, their ids and instances, sessions, leaving and responses to JoinGroup; completion of the join phase,
the leader, generations, the sync phase.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from fencepost.adapters.classic import responses
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Member, State
from fencepost.adapters.classic.membership import Heartbeats, Joining, Leaving, StaticMembership, Syncing
from fencepost.adapters.classic.messages import JoinGroup
from fencepost.adapters.classic.offsets import Commits
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.timers import Timers
from fencepost.adapters.serve.coordination import Body, Request
from fencepost.conformance.classic.zoo.bugs import environments
from fencepost.conformance.classic.zoo.bugs.environments import SLOW_ASSIGNMENTS, coordinator_family
from fencepost.conformance.zoo.fault import Patch, Shipped, instead_of
from fencepost.model.errors import Error

# --- Bugs of membership: which members join, their ids and instances, sessions, leaving and responses to JoinGroup.

admission = coordinator_family()


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
@instead_of(Group.accepts)
def limit_is_for_strangers_only(shipped: Shipped[bool], group: Group, member_id: str, limit: int) -> bool:
    """The size limit is tested for requests without a member id only, so that whoever got an id in time comes in."""
    return bool(member_id) or len(group.members) < limit


@admission.add("BUG-28", "franz-go kfake, https://github.com/twmb/franz-go/commit/d4d15137", "JOIN-31", "JOIN-33")
@instead_of(Joining.needs_rebalance)
def rejoin_needs_the_leader_and_a_change(
    shipped: Shipped[bool], joining: Joining, group: Group, member: Member, join: JoinGroup
) -> bool:
    """In Stable only a leader that changes what it offers starts a round, neither one alone does."""
    if group.state is State.STABLE:
        return member.member_id == group.leader and not member.matches(join.protocols)
    return shipped(joining, group, member, join)


@admission.add(
    "BUG-29", "franz-go kfake, https://github.com/twmb/franz-go/commit/718aef16", "JOIN-08", "JOIN-37", "JOIN-39"
)
@instead_of(Rebalancer.confirm_join)
def answer_repeats_the_id_of_the_request(
    shipped: Shipped[None], rounds: Rebalancer, group: Group, member: Member
) -> None:
    """The answer carries the member id of the request: who came without one is told none, and not that it leads."""
    request, member.parked_join = member.parked_join, None
    if request is not None:
        body = responses.join_accepted(group, member)
        named = request.body.get("member_id", "")
        rounds._runtime.respond(request, body if named else body | {"member_id": "", "members": []})


@admission.add("BUG-31", "franz-go kfake, https://github.com/twmb/franz-go/commit/7825098b", "JOIN-17", "GEN-08")
@instead_of(Group.supports)
def one_common_protocol_is_enough(
    shipped: Shipped[bool], group: Group, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> bool:
    """A newcomer need only share a protocol with some member, and a round of members that share none is a crash."""
    if group.state is State.EMPTY:
        return shipped(group, protocol_type, protocols)
    offered = {name for member in group.members.values() for name, _ in member.protocols}
    return group.protocol_type == protocol_type and any(name in offered for name, _ in protocols)


@admission.add("BUG-40", "Redpanda, https://github.com/redpanda-data/redpanda/commit/ec42da0bc3", "JOIN-29")
@instead_of(Joining.rejoin)
def repeated_join_gets_no_generation(
    shipped: Shipped[None], joining: Joining, group: Group, member: Member, join: JoinGroup
) -> None:
    """A member that joins again and is answered at once gets generation -1."""
    if joining.needs_rebalance(group, member, join):
        joining._rounds.update_member(group, member, join)
    else:
        joining._runtime.respond(join.request, responses.join_accepted(group, member) | {"generation_id": -1})


@admission.add("BUG-46", "brod with Redpanda, https://github.com/kafka4beam/brod/pull/465", "JOIN-42")
def no_rebalance_timeout_is_none_at_all(patch: Patch) -> None:
    """JoinGroup v0 has no rebalance timeout, and gives the others no time to rejoin."""
    read = JoinGroup.read

    def read_as_given(kind: type[JoinGroup], request: Request) -> JoinGroup:
        join = read(request)
        return replace(join, rebalance_timeout=-1) if request.version == 0 else join

    patch.replace(JoinGroup, "read", classmethod(read_as_given))


@admission.add("BUG-49", "SeaweedFS, https://github.com/seaweedfs/seaweedfs/commit/86c5e815d", "JOIN-10")
@instead_of(Joining.join_without_id)
def client_id_is_the_member(shipped: Shipped[None], joining: Joining, group: Group, join: JoinGroup) -> None:
    """Members are told apart by their client ids, so that two consumers with the same one are one member."""
    known = (one for one in group.members.values() if one.client_id == (join.request.client_id or ""))
    member = None if join.is_static else next(known, None)
    if member is None:
        shipped(joining, group, join)
    else:
        joining.rejoin(group, member, join)


@admission.add("BUG-50", "SeaweedFS, https://github.com/seaweedfs/seaweedfs/commit/86c5e815d", "JOIN-32", "SYNC-16")
@instead_of(Joining.rejoin)
def rejoin_wipes_the_assignment(
    shipped: Shipped[None], joining: Joining, group: Group, member: Member, join: JoinGroup
) -> None:
    """A rejoin makes a fresh member, without the assignment that the leader has stored for it."""
    member.assignment = b""
    shipped(joining, group, member, join)


@admission.add("BUG-53", "SeaweedFS, https://github.com/seaweedfs/seaweedfs/commit/0007245c7", "JOIN-25", "SYNC-23")
@instead_of(Rebalancer.add_member)
def newcomer_joins_the_running_generation(
    shipped: Shipped[None], rounds: Rebalancer, group: Group, member_id: str, join: JoinGroup
) -> None:
    """Who joins while the leader's assignment is awaited is let into that very generation."""
    if group.state is not State.COMPLETING:
        shipped(rounds, group, member_id, join)
        return
    with Patch() as quiet:
        quiet.replace(rounds, "trigger_rebalance", lambda group: None)
        shipped(rounds, group, member_id, join)
    member = group.members[member_id]
    member.is_new = False
    rounds.touch_session(group, member)
    rounds.confirm_join(group, member)


@admission.add("BUG-21", "KAFKA-14009, https://github.com/apache/kafka/commit/d139379e50e", "TIMER-27")
@instead_of(Member.update)
def rejoin_keeps_the_old_timeouts(shipped: Shipped[None], member: Member, join: JoinGroup) -> None:
    """A rejoin brings new protocols, but its timeouts are not taken over."""
    member.protocols = join.protocols
    member.parked_join = join.request


statics = coordinator_family()


@statics.add("BUG-12", "KAFKA-8500, https://github.com/apache/kafka/commit/e981b82601e", "STATIC-05", "STATIC-25")
@instead_of(StaticMembership.join)
def instance_is_replaced_in_stable_only(
    shipped: Shipped[None], statics: StaticMembership, group: Group, join: JoinGroup
) -> None:
    """An instance id that comes back while a round is under way makes a second member."""
    if group.state is not State.STABLE:
        group.instances.pop(join.instance_id or "", None)
    shipped(statics, group, join)


@statics.add("BUG-13", "KAFKA-8715, https://github.com/apache/kafka/commit/79341a12f23", "STATIC-02", "STATIC-24")
@instead_of(StaticMembership.join)
def id_comes_from_the_last_change_of_state(
    shipped: Shipped[None], statics: StaticMembership, group: Group, join: JoinGroup
) -> None:
    """The id of a static member is made of its instance id and the time of the group's last change of state, so that
    one that comes back before the next change has the id of its former self."""
    with Patch() as dated:
        dated.replace(CoordinatorState, "new_id", property(lambda runtime: lambda prefix: f"{prefix}-{group.since}"))
        shipped(statics, group, join)


@statics.add("BUG-17", "KAFKA-10284, https://github.com/apache/kafka/commit/7ca299b8c0f", "STATIC-28")
@instead_of(StaticMembership.replace_member)
def new_id_is_not_stored(
    shipped: Shipped[None], statics: StaticMembership, group: Group, member: Member, new_id: str, join: JoinGroup
) -> None:
    """A static member that comes back without a rebalance gets an id that the log never hears of."""
    with Patch() as forgetful:
        forgetful.replace(CoordinatorState, "write", lambda runtime, *batch: None)
        shipped(statics, group, member, new_id, join)


sessions = coordinator_family()
COARSE_TICK_MS = 30_000


@sessions.add("BUG-04", "Apache Kafka PR 451, https://github.com/apache/kafka/commit/83fb7346033", "TIMER-05")
@instead_of(Syncing.confirm_sync)
def parked_sync_ends_the_timing(shipped: Shipped[None], syncing: Syncing, group: Group, member: Member) -> None:
    """The answer to a parked SyncGroup starts no session, so one that ran out meanwhile never runs again."""
    with Patch() as quiet:
        quiet.replace(Rebalancer, "touch_session", lambda rounds, group, member: None)
        shipped(syncing, group, member)


@sessions.add("BUG-06", "KAFKA-3470, https://github.com/apache/kafka/commit/f4d3d286589", "COMMIT-19")
def commit_is_no_sign_of_life(patch: Patch) -> None:
    """A member that commits and sends no heartbeats is expelled."""
    patch.replace(Commits, "extend_session", lambda commits, group, commit: None)


@sessions.add("BUG-08", "KAFKA-7196, https://github.com/apache/kafka/commit/260b07a6da0", "TIMER-25")
@instead_of(Rebalancer.drop_absent_members)
def dropped_member_keeps_its_timer(shipped: Shipped[None], rounds: Rebalancer, group: Group) -> None:
    """The session timer of a member that did not rejoin runs on, and starts a rebalance for nobody."""

    def rebalance() -> None:
        if group.members:
            rounds.trigger_rebalance(group)

    runtime = rounds._runtime
    for member in list(group.members.values()):
        if not member.has_rejoined and not member.is_static:
            rounds.remove_member(group, member)
            key = ("dropped", group.group_id, member.member_id)
            runtime.timers.arm(key, runtime.now + member.session_timeout, rebalance)


@sessions.add("BUG-09", "KAFKA-7610, https://github.com/apache/kafka/commit/20069b39063", "TIMER-06")
def first_join_waits_for_ever(patch: Patch) -> None:
    """A member whose first JoinGroup is parked is not timed, so that every request sent again leaves a ghost."""
    patch.replace(Rebalancer, "start_new_member_timer", lambda rounds, group, member: None)


@sessions.add("BUG-14", "KAFKA-9232, https://github.com/apache/kafka/pull/7753", "TIMER-05")
@instead_of(Rebalancer.start_new_member_timer)
def new_member_timer_runs_on(shipped: Shipped[None], rounds: Rebalancer, group: Group, member: Member) -> None:
    """The five minutes that a first JoinGroup may take go on afterwards, and end a member that is alive."""

    def end() -> None:
        if member.member_id in group.members:
            rounds.expel(group, member)

    runtime = rounds._runtime
    shipped(rounds, group, member)
    key = ("new member", group.group_id, member.member_id)
    runtime.timers.arm(key, runtime.now + runtime.settings.new_member_timeout, end)


@sessions.add("BUG-15", "KAFKA-9752, https://github.com/apache/kafka/commit/ef1cd3490a5", "TIMER-01", "TIMER-05")
@instead_of(Rebalancer.touch_session)
def new_member_gets_no_session(shipped: Shipped[None], rounds: Rebalancer, group: Group, member: Member) -> None:
    """When a member's first join phase completes it still counts as alive, so that no timer is armed for it."""
    if member.is_new:
        rounds.stop_member_timer(group, member.member_id)
    else:
        shipped(rounds, group, member)


@sessions.add(
    "BUG-19", "KAFKA-12890, https://github.com/apache/kafka/commit/d294b946ca7", "TIMER-11", "TIMER-13", "HB-13"
)
def nobody_has_to_sync(patch: Patch) -> None:
    """There is no timer for the sync phase, so a member that only heartbeats holds up the group for ever."""
    patch.replace(Rebalancer, "start_sync_timer", lambda rounds, group: None)


@sessions.add(
    "BUG-27",
    "librdkafka mock cluster, https://github.com/confluentinc/librdkafka/commit/6a026086f",
    "TIMER-03",
    "TIMER-04",
)
@instead_of(Rebalancer.on_member_timer)
def session_runs_while_parked(shipped: Shipped[None], rounds: Rebalancer, group_id: str, member_id: str) -> None:
    """Members that wait for an answer are expelled for not sending heartbeats."""
    group = rounds._runtime.groups.get(group_id)
    if group is not None and member_id in group.members:
        rounds.expel(group, group.members[member_id])


@sessions.add("BUG-36", "Redpanda, https://github.com/redpanda-data/redpanda/commit/6a11f7c4a2", "TIMER-08")
def pending_ids_never_expire(patch: Patch) -> None:
    """An id that was handed out and not used holds up every round for as long as the round may take."""
    patch.replace(Rebalancer, "start_pending_timer", lambda rounds, group, member_id, session_timeout: None)


@sessions.add("BUG-38", "Redpanda, https://github.com/redpanda-data/redpanda/commit/263eef619e", "TIMER-26")
def join_timer_outlives_its_phase(patch: Patch) -> None:
    """When all have joined early the join timer runs on, and throws out members in the middle of normal operation."""
    cancel = Timers.cancel

    def complete(rounds: Rebalancer, group_id: str) -> None:
        if (group := rounds._runtime.groups.get(group_id)) is not None:
            rounds.complete_join(group)

    patch.replace(Timers, "cancel", lambda timers, key: None if key[0] == "join" else cancel(timers, key))
    patch.replace(Rebalancer, "on_join_timer", complete)


@sessions.add("BUG-41", "Redpanda, https://github.com/redpanda-data/redpanda/commit/a90cd758c7", "TIMER-17", "TIMER-18")
def initial_delay_is_cut_short(patch: Patch) -> None:
    """The first round of a group ends as soon as all members known so far have joined, that is with the first one."""
    patch.replace(Rebalancer, "try_complete_join", Rebalancer.complete_join_if_all_joined)


@sessions.add("BUG-48", "HStream, https://github.com/hstreamdb/hstream/commit/3309ba71", "JOIN-27", "JOIN-44")
def every_join_phase_lasts_the_same(patch: Patch) -> None:
    """Every round lasts as long as the initial delay, whether all have joined or some need longer."""

    def start_fixed_timer(rounds: Rebalancer, group: Group) -> None:
        runtime, group_id = rounds._runtime, group.group_id
        deadline = runtime.now + runtime.settings.initial_rebalance_delay
        runtime.timers.arm(("join", group_id), deadline, lambda: rounds.on_join_timer(group_id))

    patch.replace(Group, "all_joined", False)
    patch.replace(Rebalancer, "start_join_timer", start_fixed_timer)


@sessions.add("BUG-54", "SeaweedFS, https://github.com/seaweedfs/seaweedfs/commit/3f5b4814b", "TIMER-01")
@instead_of(Timers.arm)
def sessions_end_on_a_coarse_tick(
    shipped: Shipped[None], timers: Timers, key: tuple[str, ...], deadline: int, action: Callable[[], None]
) -> None:
    """Sessions are looked at every 30 s only, however short they are."""
    tick = -(-deadline // COARSE_TICK_MS) * COARSE_TICK_MS
    shipped(timers, key, tick if key[0] == "member" else deadline, action)


# --- Bugs of rebalances: completion of the join phase, the leader, generations, the sync phase.

rounds = coordinator_family()


@rounds.add("BUG-35", "franz-go kfake, https://github.com/twmb/franz-go/commit/adb3a18a", "GEN-05", "JOIN-37")
def every_member_leads(patch: Patch) -> None:
    """Where the old leader is gone, the leader is chosen anew for each answer, so that everybody is told to lead."""
    confirm = Rebalancer.confirm_join

    def remove_but_keep_the_lead(group: Group, member_id: str) -> None:
        group.members.pop(member_id, None)
        group.instances = {instance: each for instance, each in group.instances.items() if each != member_id}
        group.pending.discard(member_id)
        group.unsynced.discard(member_id)

    def choose_nobody(group: Group) -> bool:
        if group.leader not in group.members or not group.members[group.leader].has_rejoined:
            group.leader = None
        return group.rejoined_count > 0

    def confirm_as_leader(rounds: Rebalancer, group: Group, member: Member) -> None:
        gone = group.leader is None
        group.leader = member.member_id if gone else group.leader
        confirm(rounds, group, member)
        if gone and member is not list(group.members.values())[-1]:
            group.leader = None

    patch.replace(Group, "remove", remove_but_keep_the_lead)
    patch.replace(Group, "choose_leader", choose_nobody)
    patch.replace(Rebalancer, "confirm_join", confirm_as_leader)


@rounds.add("BUG-37", "Redpanda, https://github.com/redpanda-data/redpanda/commit/8ea65ee63b", "GEN-06")
def absent_leader_stays_leader(patch: Patch) -> None:
    """Members that did not rejoin are erased from the map and from nothing else, so a leader may lead from outside."""

    def erase(rounds: Rebalancer, group: Group) -> None:
        for member in list(group.members.values()):
            if not member.has_rejoined and not member.is_static:
                del group.members[member.member_id]

    patch.replace(Rebalancer, "drop_absent_members", erase)
    patch.replace(Group, "choose_leader", lambda group: group.rejoined_count > 0)


@rounds.add(
    "BUG-56",
    "SeaweedFS, handleJoinGroup at cc8364a03 (joingroup.go)",
    "GEN-02",
    "GEN-03",
    "COMMIT-02",
    "HB-06",
    "SYNC-09",
)
def generation_is_raised_too_early(patch: Patch) -> None:
    """The generation goes up when a rebalance begins, not when its join phase completes."""
    prepare, begin = Rebalancer.prepare_rebalance, Group.begin_generation

    def raise_and_prepare(rounds: Rebalancer, group: Group) -> None:
        group.generation += 1
        prepare(rounds, group)

    def begin_without_raising(group: Group, now: int) -> None:
        group.generation -= 1
        begin(group, now)

    patch.replace(Rebalancer, "prepare_rebalance", raise_and_prepare)
    patch.replace(Group, "begin_generation", begin_without_raising)


@rounds.add("BUG-32", "franz-go kfake, https://github.com/twmb/franz-go/commit/7825098b", "GEN-09", "GEN-10")
def protocol_is_the_first_of_a_map(patch: Patch) -> None:
    """The first common protocol of a sorted map is chosen, whatever the members prefer."""
    patch.replace(Group, "select_protocol", lambda group: min(group.candidates()))


@rounds.add("BUG-39", "Redpanda, https://github.com/redpanda-data/redpanda/commit/f59879f103", "LEAVE-07", "JOIN-27")
def nobody_asks_whether_the_round_is_complete(patch: Patch) -> None:
    """When the last member that was waited for leaves or expires, the round goes on waiting for its timeout."""
    expel, go_on = Rebalancer.expel, Leaving.rebalance_remaining

    def expel_and_wait(rounds: Rebalancer, group: Group, member: Member) -> None:
        if group.state is State.PREPARING:
            rounds.remove_member(group, member)
        else:
            expel(rounds, group, member)

    def leave_and_wait(leaving: Leaving, group: Group) -> None:
        if group.state is not State.PREPARING:
            go_on(leaving, group)

    patch.replace(Rebalancer, "expel", expel_and_wait)
    patch.replace(Leaving, "rebalance_remaining", leave_and_wait)


@rounds.add("BUG-47", "HStream, https://github.com/hstreamdb/hstream/commit/3309ba71", "LEAVE-04", "LEAVE-07")
@instead_of(Leaving.remove_entry)
def nobody_may_leave_during_the_join_phase(
    shipped: Shipped[Error], leaving: Leaving, group: Group | None, entry: Body
) -> Error:
    """A LeaveGroup during the join phase is refused, and the leaver is waited for."""
    if group is not None and group.state is State.PREPARING:
        return Error.UNKNOWN_MEMBER_ID
    return shipped(leaving, group, entry)


@rounds.add("BUG-52", "SeaweedFS, https://github.com/seaweedfs/seaweedfs/commit/86c5e815d", "LEAVE-04", "LEAVE-11")
def list_of_leavers_is_not_read(patch: Patch) -> None:
    """LeaveGroup v3 is read as if it were an older one: it names nobody, is refused, and its members stay."""

    def read_one(leaving: Leaving, request: Request) -> Sequence[Body]:
        return [{"member_id": request.body.get("member_id", "")}]

    def answer_one(leaving: Leaving, request: Request, entries: Sequence[Body], results: Sequence[Error]) -> None:
        leaving._runtime.respond(request, {"error_code": results[0], "members": []})

    patch.replace(Leaving, "read_entries", read_one)
    patch.replace(Leaving, "respond", answer_one)


@rounds.add("BUG-02", "KAFKA-1740, https://github.com/apache/kafka/commit/9ca61d17915", "HB-06")
def heartbeat_does_not_tell_of_a_round(patch: Patch) -> None:
    """Heartbeat ignores the group's state, and members never hear that they have to rejoin."""
    patch.replace(Heartbeats, "rebalance_error", lambda heartbeats, group: Error.NONE)


@rounds.add(
    "BUG-25",
    "librdkafka mock cluster, https://github.com/confluentinc/librdkafka/commit/9d522ad67",
    "JOIN-25",
    "SYNC-18",
)
def parked_syncs_are_forgotten(patch: Patch) -> None:
    """When a new round interrupts the sync phase, nobody answers the SyncGroup requests that are parked."""
    patch.replace(Rebalancer, "abort_sync_phase", lambda rounds, group, error: None)


@rounds.add("BUG-51", "SeaweedFS, https://github.com/seaweedfs/seaweedfs/commit/86c5e815d", "SYNC-10")
@instead_of(Syncing.await_assignment)
def follower_does_not_wait_for_the_leader(
    shipped: Shipped[None], syncing: Syncing, group: Group, member: Member, request: Request
) -> None:
    """A follower that syncs before the leader is answered at once, with an empty assignment and no error."""
    if member.member_id == group.leader:
        shipped(syncing, group, member, request)
    else:
        syncing._rounds.mark_synced(group, member)
        syncing._runtime.respond(request, responses.sync_accepted(group, member))


@rounds.add(
    "BUG-03",
    "Apache Kafka PR 451, https://github.com/apache/kafka/commit/83fb7346033",
    "SYNC-19",
    "GEN-16",
    setting=SLOW_ASSIGNMENTS,
)
def old_plan_reaches_a_new_generation(patch: Patch) -> None:
    """An assignment that is stored late is handed out in whatever generation is waiting for one by then."""
    patch.replace(environments, "is_current", lambda group, generation: group.state is State.COMPLETING)
