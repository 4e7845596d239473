"""Subtle faults for the bundled coordinator, to measure the generator of random schedules by.

Each function replaces named functions of the coordinator; its docstring is the fault. The faults are of the kinds that
real coordinators shipped: open transactions, state shared by groups, leaders and plans before a failover, base times of
retention, static members. The generator may be tuned on these.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fencepost.adapters.classic.administration import Cleanup, Loading
from fencepost.adapters.classic.group import Group, Member, Offset, Partition, State
from fencepost.adapters.classic.membership import StaticMembership, Syncing
from fencepost.adapters.classic.messages import JoinGroup, UnreadableSubscription, read_topics
from fencepost.adapters.classic.offsets import Commit, Commits, Offsets, OffsetStore, Transactions
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.records import (
    GroupRecord,
    GroupTombstone,
    OffsetRecord,
    OffsetTombstone,
    TransactionEnd,
)
from fencepost.adapters.classic.timers import Timers
from fencepost.adapters.serve.coordination import Body, Request
from fencepost.conformance.classic.zoo.bugs.environments import coordinator_family
from fencepost.conformance.zoo.fault import Patch, Shipped, instead_of
from fencepost.model.errors import Error

PLANTED = coordinator_family()


# --- open transactions ------------------------------------------------------------------------------------------


@PLANTED.add()
@instead_of(OffsetStore.end_transaction)
def end_in_one_group(shipped: Shipped[None], store: OffsetStore, record: TransactionEnd) -> None:
    """The end of a transaction reaches only the first group that it commits offsets of."""
    for group in store._runtime.groups.values():
        if record.producer in group.uncommitted:
            for partition, offset in group.uncommitted.pop(record.producer).items():
                if record.committed:
                    store.commit_offset(group, partition, offset)
            return


@PLANTED.add()
def clean_up_despite_transactions(patch: Patch) -> None:
    """An Empty group without offsets is removed although a transaction with offsets of it is open."""
    patch.replace(Cleanup, "is_removable", lambda cleanup, group: group.state is State.EMPTY)


@PLANTED.add()
@instead_of(OffsetStore.add_offset)
def commit_discards_transaction(shipped: Shipped[None], store: OffsetStore, record: OffsetRecord) -> None:
    """A plain commit discards the offsets of open transactions on its partition."""
    shipped(store, record)
    if record.producer is None:
        for offsets in store._runtime.groups[record.group].uncommitted.values():
            offsets.pop((record.topic, record.partition), None)


@PLANTED.add()
@instead_of(OffsetStore.commit_offset)
def transaction_overwrites_later_commit(
    shipped: Shipped[None], store: OffsetStore, group: Group, partition: Partition, offset: Offset
) -> None:
    """The offset of a transaction replaces one that was committed later."""
    group.offsets[partition] = offset


@PLANTED.add()
@instead_of(OffsetStore.end_transaction)
def abort_removes_committed_offset(shipped: Shipped[None], store: OffsetStore, record: TransactionEnd) -> None:
    """An aborted transaction removes the committed offset of its partition if that was committed meanwhile."""
    for group in store._runtime.groups.values():
        for partition, offset in group.uncommitted.get(record.producer, {}).items():
            present = group.offsets.get(partition)
            if not record.committed and present is not None and present.number > offset.number:
                del group.offsets[partition]
    shipped(store, record)


@PLANTED.add()
@instead_of(OffsetStore.remove_offset)
def deletion_spares_transactions(shipped: Shipped[None], store: OffsetStore, record: OffsetTombstone) -> None:
    """OffsetDelete leaves the offset of an open transaction, which is there again when that commits."""
    group = store._runtime.groups.get(record.group)
    if group is not None:
        group.offsets.pop((record.topic, record.partition), None)


@PLANTED.add()
@instead_of(Group.begin_generation)
def generation_drops_transactions(shipped: Shipped[None], group: Group, now: int) -> None:
    """A new generation discards the offsets of open transactions."""
    shipped(group, now)
    group.uncommitted.clear()


@PLANTED.add()
@instead_of(Loading.load)
def loading_forgets_open_transactions(shipped: Shipped[None], loading: Loading) -> None:
    """A restarted coordinator does not know the transactions that are open."""
    shipped(loading)
    for group in loading._runtime.groups.values():
        group.uncommitted.clear()


@PLANTED.add()
def loading_orders_transactions_by_their_end(patch: Patch) -> None:
    """While the log is loaded, the offset of a transaction replaces one that was committed later."""
    commit_offset, load = OffsetStore.commit_offset, Loading.load
    is_loading: list[bool] = []

    def load_and_note(loading: Loading) -> None:
        is_loading.append(True)
        load(loading)
        is_loading.clear()

    def commit(store: OffsetStore, group: Group, partition: Partition, offset: Offset) -> None:
        if is_loading:
            group.offsets[partition] = offset
        else:
            commit_offset(store, group, partition, offset)

    patch.replace(Loading, "load", load_and_note)
    patch.replace(OffsetStore, "commit_offset", commit)


@PLANTED.add()
@instead_of(OffsetStore.add_offset)
def one_transaction_for_each_partition(shipped: Shipped[None], store: OffsetStore, record: OffsetRecord) -> None:
    """A second producer's offset of a partition takes the place of the first one's."""
    group = store._runtime.groups.get(record.group)
    if record.producer is not None and group is not None:
        for offsets in group.uncommitted.values():
            offsets.pop((record.topic, record.partition), None)
    shipped(store, record)


@PLANTED.add()
@instead_of(Group.has_uncommitted)
def stable_after_first_end(shipped: Shipped[bool], group: Group, partition: Partition) -> bool:
    """A fetch of stable offsets waits for the first of two transactions only."""
    return partition in next(iter(group.uncommitted.values()), {})


@PLANTED.add()
@instead_of(Transactions.handle_init)
def restarted_producer_goes_on(shipped: Shipped[None], transactions: Transactions, request: Request) -> None:
    """A producer that starts again keeps its open transaction."""
    held = {name: dict(group.uncommitted) for name, group in transactions._runtime.groups.items()}
    shipped(transactions, request)
    for name, offsets in held.items():
        transactions._runtime.groups[name].uncommitted = offsets


@PLANTED.add()
@instead_of(Transactions.handle_init)
def restarted_producer_ends_all(shipped: Shipped[None], transactions: Transactions, request: Request) -> None:
    """A producer that starts again aborts the transactions of all producers in its groups."""
    before = {name: len(group.uncommitted) for name, group in transactions._runtime.groups.items()}
    shipped(transactions, request)
    for name, group in transactions._runtime.groups.items():
        if len(group.uncommitted) < before[name]:
            group.uncommitted.clear()


@PLANTED.add()
@instead_of(OffsetStore.end_transaction)
def end_of_last_partition(shipped: Shipped[None], store: OffsetStore, record: TransactionEnd) -> None:
    """Of a transaction on several partitions only the last offset is committed."""
    for group in store._runtime.groups.values():
        if record.producer in group.uncommitted:
            group.uncommitted[record.producer] = dict(list(group.uncommitted[record.producer].items())[-1:])
    shipped(store, record)


@PLANTED.add()
@instead_of(Transactions.handle_init)
def restarted_producer_commits(shipped: Shipped[None], transactions: Transactions, request: Request) -> None:
    """The open transaction of a producer that starts again is committed."""
    present = transactions._producers.get(request.body.get("transactional_id") or "")
    if present is not None:
        transactions._ledger.end_transaction(TransactionEnd(present.producer, committed=True))
    shipped(transactions, request)


@PLANTED.add()
@instead_of(OffsetStore.remove_group)
def removed_group_keeps_transactions(shipped: Shipped[None], store: OffsetStore, record: GroupTombstone) -> None:
    """A group that is removed while a transaction is open has its offsets again once that is committed."""
    group = store._runtime.groups.get(record.group)
    shipped(store, record)
    if group is not None and group.uncommitted:
        store.group_for_offsets(record.group).uncommitted = group.uncommitted


# --- several groups ---------------------------------------------------------------------------------------------


def share_timer(patch: Patch, kind: str) -> None:
    """Give all groups one timer of a kind."""
    arm, cancel = Timers.arm, Timers.cancel

    def shared(key: Any) -> Any:
        return (kind, "") if isinstance(key, tuple) and key[0] == kind else key

    patch.replace(Timers, "arm", lambda timers, key, *more: arm(timers, shared(key), *more))
    patch.replace(Timers, "cancel", lambda timers, key: cancel(timers, shared(key)))


@PLANTED.add()
def one_join_timer(patch: Patch) -> None:
    """All groups share the timer of the join phase."""
    share_timer(patch, "join")


@PLANTED.add()
def one_sync_timer(patch: Patch) -> None:
    """All groups share the timer of the sync phase."""
    share_timer(patch, "sync")


@PLANTED.add()
@instead_of(Offsets.fetch_group)
def batch_fetch_of_first_group(
    shipped: Shipped[list[dict[str, Any]]], offsets: Offsets, request: Request, entry: Body, stable: bool
) -> list[dict[str, Any]]:
    """In a fetch for several groups, a partition without an offset gets that of the first group."""
    first = offsets._runtime.groups.get((request.body.get("groups") or [entry])[0].get("group_id", ""))
    group = offsets._runtime.groups.get(entry.get("group_id", ""))
    if first is None or group is None or first is group:
        return shipped(offsets, request, entry, stable)
    own = group.offsets
    group.offsets = {**first.offsets, **own}
    try:
        return shipped(offsets, request, entry, stable)
    finally:
        group.offsets = own


@PLANTED.add()
@instead_of(Cleanup.run_pass)
def expiry_in_all_groups(shipped: Shipped[None], cleanup: Cleanup) -> None:
    """What expires in one group is removed from all groups."""
    before = {name: set(group.offsets) for name, group in cleanup._runtime.groups.items()}
    shipped(cleanup)
    after = cleanup._runtime.groups
    left = {name: set(after[name].offsets) if name in after else set() for name in before}
    gone = {partition for name, found in before.items() for partition in found - left[name]}
    for group in after.values():
        for partition in gone:
            group.offsets.pop(partition, None)


@PLANTED.add()
@instead_of(OffsetStore.remove_group)
def deletion_ends_transactions_of_others(shipped: Shipped[None], store: OffsetStore, record: GroupTombstone) -> None:
    """The removal of a group discards, in the other groups, the transactions that had offsets of it."""
    group = store._runtime.groups.get(record.group)
    producers = set(group.uncommitted) if group is not None else set()
    shipped(store, record)
    for other in store._runtime.groups.values():
        for producer in producers:
            other.uncommitted.pop(producer, None)


@PLANTED.add()
@instead_of(Offsets.fetch_partition)
def unstable_in_all_groups(
    shipped: Shipped[dict[str, Any]], offsets: Offsets, group: Group | None, partition: Partition, stable: bool
) -> dict[str, Any]:
    """A transaction on a partition holds up the fetches of that partition in all groups."""
    if stable and any(each.has_uncommitted(partition) for each in offsets._runtime.groups.values()):
        return offsets.row(partition[1], None, Error.UNSTABLE_OFFSET_COMMIT)
    return shipped(offsets, group, partition, stable)


@PLANTED.add()
@instead_of(OffsetStore.remove_offset)
def deletion_in_all_groups(shipped: Shipped[None], store: OffsetStore, record: OffsetTombstone) -> None:
    """An offset that is deleted or expires in one group is removed from all Empty groups."""
    shipped(store, record)
    for name, group in list(store._runtime.groups.items()):
        if group.state is State.EMPTY:
            shipped(store, replace(record, group=name))


@PLANTED.add()
@instead_of(Offsets.fetch_group)
def batch_fetch_is_stable_for_first(
    shipped: Shipped[list[dict[str, Any]]], offsets: Offsets, request: Request, entry: Body, stable: bool
) -> list[dict[str, Any]]:
    """In a fetch for several groups, open transactions count in the first group only."""
    is_first = entry is (request.body.get("groups") or [entry])[0]
    return shipped(offsets, request, entry, stable and is_first)


# --- leaders, plans, failovers ----------------------------------------------------------------------------------


@PLANTED.add()
@instead_of(Group.record)
def first_leader_is_stored(shipped: Shipped[GroupRecord], group: Group) -> GroupRecord:
    """The log names the first member as the leader, whoever leads."""
    return replace(shipped(group), leader=next(iter(group.members), None))


@PLANTED.add()
@instead_of(Loading.restore_group)
def loading_forgets_instances(shipped: Shipped[None], loading: Loading, record: GroupRecord) -> None:
    """A restarted coordinator does not know which static members its members are until they rejoin."""
    shipped(loading, record)
    loading._runtime.groups[record.group].instances = {}


@PLANTED.add()
@instead_of(Syncing.read_assignments)
def incomplete_plan_keeps_assignments(
    shipped: Shipped[dict[str, bytes]], syncing: Syncing, group: Group, body: Mapping[str, Any]
) -> dict[str, bytes]:
    """A member that the leader's plan leaves out keeps its assignment of the generation before."""
    given = {entry["member_id"]: bytes(entry.get("assignment", b"")) for entry in body.get("assignments", ())}
    return {name: given.get(name, member.assignment) for name, member in group.members.items()}


@PLANTED.add()
@instead_of(Loading.restore_group)
def loading_forgets_empty_assignments(shipped: Shipped[None], loading: Loading, record: GroupRecord) -> None:
    """After a failover a member that the plan left out has the assignment of the first member."""
    shipped(loading, record)
    members = list(loading._runtime.groups[record.group].members.values())
    for member in members:
        member.assignment = member.assignment or members[0].assignment


@PLANTED.add()
@instead_of(Loading.start_group)
def loading_takes_shortest_session(shipped: Shipped[None], loading: Loading, group: Group) -> None:
    """After a failover all members have the session timeout of the one with the shortest."""
    shortest = min((member.session_timeout for member in group.members.values()), default=0)
    for member in group.members.values():
        member.session_timeout = shortest
    shipped(loading, group)


@PLANTED.add()
@instead_of(Group.find_subscriptions)
def subscriptions_of_leader(shipped: Shipped[frozenset[str] | None], group: Group) -> frozenset[str] | None:
    """Only the leader's subscription counts as the group's."""
    if group.protocol_type != "consumer" or group.leader not in group.members:
        return None
    try:
        return frozenset(read_topics(group.members[group.leader].metadata(group.protocol)))
    except UnreadableSubscription:
        return None


@PLANTED.add()
@instead_of(Loading.restore_group)
def loading_forgets_generation_of_empty_group(shipped: Shipped[None], loading: Loading, record: GroupRecord) -> None:
    """After a failover an Empty group begins with generation 1 again."""
    shipped(loading, record)
    if not record.members:
        loading._runtime.groups[record.group].generation = 0


# --- retention --------------------------------------------------------------------------------------------------


@PLANTED.add()
@instead_of(Cleanup.base_time)
def retention_from_first_commit(shipped: Shipped[int], cleanup: Cleanup, group: Group, offset: Offset) -> int:
    """The retention of all offsets of a group begins with the oldest of them."""
    return min(shipped(cleanup, group, each) for each in group.offsets.values())


@PLANTED.add()
def retention_from_commit(patch: Patch) -> None:
    """The retention begins with the commit, also in a group whose members left later."""
    patch.replace(Cleanup, "base_time", lambda cleanup, group, offset: offset.committed_at)


@PLANTED.add()
@instead_of(Loading.restore_group)
def retention_goes_on_after_failover(shipped: Shipped[None], loading: Loading, record: GroupRecord) -> None:
    """A restarted coordinator counts the retention of an Empty group from the start of its clock."""
    shipped(loading, record)
    loading._runtime.groups[record.group].since = 0


@PLANTED.add()
@instead_of(OffsetStore.commit_offset)
def retention_of_aborted_commit(
    shipped: Shipped[None], store: OffsetStore, group: Group, partition: Partition, offset: Offset
) -> None:
    """An offset that a transaction commits has the time of the group's oldest commit."""
    oldest = min((each.committed_at for each in group.offsets.values()), default=offset.committed_at)
    shipped(store, group, partition, replace(offset, committed_at=oldest))


@PLANTED.add()
@instead_of(Cleanup.is_expired)
def expiry_one_check_early(shipped: Shipped[bool], cleanup: Cleanup, group: Group, offset: Offset) -> bool:
    """Offsets expire at the clean-up pass before the end of their retention."""
    if not cleanup.has_base_time(group):
        return False
    settings = cleanup._runtime.settings
    age = cleanup._runtime.now - cleanup.base_time(group, offset)
    return age >= settings.offsets_retention - settings.retention_check_interval // 2


# --- static members and old clients -----------------------------------------------------------------------------


@PLANTED.add()
@instead_of(StaticMembership.change_id)
def replacement_has_no_session(
    shipped: Shipped[None], statics: StaticMembership, group: Group, member: Member, new_id: str
) -> None:
    """A static member that replaced another one never expires until it heartbeats."""
    group.rename(member.instance_id or "", member.member_id, new_id)


@PLANTED.add()
@instead_of(Group.rename)
def replaced_leader_steps_down(
    shipped: Shipped[Member], group: Group, instance_id: str, old_id: str, new_id: str
) -> Member:
    """When the leader is replaced, another member leads if there is one."""
    was_leader = group.leader == old_id
    member = shipped(group, instance_id, old_id, new_id)
    if was_leader and len(group.members) > 1:
        group.leader = next(iter(group.members))
    return member


@PLANTED.add()
def replacement_shortens_join_phase(patch: Patch) -> None:
    """A join phase that a replacement begins lasts as long as the replacement's own rebalance timeout."""
    replace_member, start_join_timer = StaticMembership.replace_member, Rebalancer.start_join_timer
    replacing: list[Member] = []

    def replace_and_note(statics: StaticMembership, group: Group, member: Member, new_id: str, join: JoinGroup) -> None:
        replacing.append(member)
        try:
            replace_member(statics, group, member, new_id, join)
        finally:
            replacing.clear()

    def start(rounds: Rebalancer, group: Group) -> None:
        if not replacing:
            start_join_timer(rounds, group)
            return
        group_id, deadline = group.group_id, rounds._runtime.now + replacing[0].rebalance_timeout
        rounds._runtime.timers.arm(("join", group_id), deadline, lambda: rounds.on_join_timer(group_id))

    patch.replace(StaticMembership, "replace_member", replace_and_note)
    patch.replace(Rebalancer, "start_join_timer", start)


@PLANTED.add()
@instead_of(Rebalancer.drop_absent_members)
def absent_static_members_are_dropped(shipped: Shipped[None], rounds: Rebalancer, group: Group) -> None:
    """Absent static members are dropped if the leader is among them."""
    for member in list(group.members.values()):
        if not member.has_rejoined and (not member.is_static or member.member_id == group.leader):
            rounds.remove_member(group, member)


@PLANTED.add()
@instead_of(Member.update)
def rebalance_timeout_never_falls(shipped: Shipped[None], member: Member, join: JoinGroup) -> None:
    """A member that rejoins with a shorter rebalance timeout keeps the longer one."""
    longest = max(member.rebalance_timeout, join.rebalance_timeout)
    shipped(member, join)
    member.rebalance_timeout = longest


@PLANTED.add()
@instead_of(Commits.check)
def transactions_wait_for_sync(shipped: Shipped[Error], commits: Commits, group: Group, commit: Commit) -> Error:
    """A transactional commit is refused while the group awaits assignments."""
    error = shipped(commits, group, commit)
    if not error and commit.is_transactional and commit.names_member and group.state is State.COMPLETING:
        return Error.REBALANCE_IN_PROGRESS
    return error


@PLANTED.add()
@instead_of(Rebalancer.update_member)
def old_client_shortens_rebalance(
    shipped: Shipped[None], rounds: Rebalancer, group: Group, member: Member, join: JoinGroup
) -> None:
    """The rebalance timeout of a JoinGroup of version 0 becomes that of all members."""
    if join.request.version == 0:
        for other in group.members.values():
            other.rebalance_timeout = join.rebalance_timeout
    shipped(rounds, group, member, join)


@PLANTED.add()
@instead_of(Group.rename)
def replacement_loses_assignment(
    shipped: Shipped[Member], group: Group, instance_id: str, old_id: str, new_id: str
) -> Member:
    """A static member that is replaced in a Stable group loses its assignment if it does not lead."""
    member = shipped(group, instance_id, old_id, new_id)
    if group.leader != new_id:
        member.assignment = b""
    return member


FAULTS = {fault.id: fault for fault in PLANTED.faults}
"""The faults by name."""
