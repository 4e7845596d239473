"""Bugs of rebalances: completion of the join phase, the leader, generations, the sync phase."""

from collections.abc import Sequence

from fencepost.adapters.classic import responses
from fencepost.adapters.classic.group import Group, Member, State
from fencepost.adapters.classic.heartbeats import Heartbeats
from fencepost.adapters.classic.leaving import Leaving
from fencepost.adapters.classic.messages import Body, Error, Request
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.syncing import Syncing
from fencepost.conformance.classic.zoo.bugs import environments
from fencepost.conformance.classic.zoo.bugs.environments import SLOW_ASSIGNMENTS, coordinator_family
from fencepost.conformance.zoo.fault import Patch, Shipped, instead_of

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
