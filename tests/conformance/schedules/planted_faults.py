"""Subtle faults for the bundled coordinator, to measure the generator of random schedules by.

Each function replaces named functions of the coordinator; its docstring is the fault. The faults are of the kinds that
real coordinators shipped: open transactions, state shared by groups, leaders and plans before a failover, base times of
retention, static members. The generator may be tuned on these.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fencepost.adapters.classic.cleanup import Cleanup
from fencepost.adapters.classic.commits import Commit, Commits
from fencepost.adapters.classic.group import Group, Member, Offset, Partition, State
from fencepost.adapters.classic.loading import Loading
from fencepost.adapters.classic.messages import Body, Error, JoinGroup, Request
from fencepost.adapters.classic.offset_store import OffsetStore
from fencepost.adapters.classic.offsets import Offsets
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.records import (
    GroupRecord,
    GroupTombstone,
    OffsetRecord,
    OffsetTombstone,
    TransactionEnd,
)
from fencepost.adapters.classic.static_membership import StaticMembership
from fencepost.adapters.classic.subscription import UnreadableSubscription, read_topics
from fencepost.adapters.classic.syncing import Syncing
from fencepost.adapters.classic.timers import Timers
from fencepost.adapters.classic.transactions import Transactions
from fencepost.conformance.classic.zoo.bugs.environments import coordinator_family
from fencepost.conformance.zoo.fault import Patch

PLANTED = coordinator_family()


# --- open transactions ------------------------------------------------------------------------------------------


@PLANTED.add()
def end_in_one_group(patch: Patch) -> None:
    """The end of a transaction reaches only the first group that it commits offsets of."""

    def end_transaction(store: OffsetStore, record: TransactionEnd) -> None:
        for group in store._runtime.groups.values():
            if record.producer in group.uncommitted:
                for partition, offset in group.uncommitted.pop(record.producer).items():
                    if record.committed:
                        store.commit_offset(group, partition, offset)
                return

    patch.replace(OffsetStore, "end_transaction", end_transaction)


@PLANTED.add()
def clean_up_despite_transactions(patch: Patch) -> None:
    """An Empty group without offsets is removed although a transaction with offsets of it is open."""
    patch.replace(Cleanup, "is_removable", lambda cleanup, group: group.state is State.EMPTY)


@PLANTED.add()
def commit_discards_transaction(patch: Patch) -> None:
    """A plain commit discards the offsets of open transactions on its partition."""
    add_offset = OffsetStore.add_offset

    def add(store: OffsetStore, record: OffsetRecord) -> None:
        add_offset(store, record)
        if record.producer is None:
            for offsets in store._runtime.groups[record.group].uncommitted.values():
                offsets.pop((record.topic, record.partition), None)

    patch.replace(OffsetStore, "add_offset", add)


@PLANTED.add()
def transaction_overwrites_later_commit(patch: Patch) -> None:
    """The offset of a transaction replaces one that was committed later."""

    def commit_offset(store: OffsetStore, group: Group, partition: Partition, offset: Offset) -> None:
        group.offsets[partition] = offset

    patch.replace(OffsetStore, "commit_offset", commit_offset)


@PLANTED.add()
def abort_removes_committed_offset(patch: Patch) -> None:
    """An aborted transaction removes the committed offset of its partition if that was committed meanwhile."""
    end_transaction = OffsetStore.end_transaction

    def end(store: OffsetStore, record: TransactionEnd) -> None:
        for group in store._runtime.groups.values():
            for partition, offset in group.uncommitted.get(record.producer, {}).items():
                present = group.offsets.get(partition)
                if not record.committed and present is not None and present.number > offset.number:
                    del group.offsets[partition]
        end_transaction(store, record)

    patch.replace(OffsetStore, "end_transaction", end)


@PLANTED.add()
def deletion_spares_transactions(patch: Patch) -> None:
    """OffsetDelete leaves the offset of an open transaction, which is there again when that commits."""

    def remove_offset(store: OffsetStore, record: OffsetTombstone) -> None:
        group = store._runtime.groups.get(record.group)
        if group is not None:
            group.offsets.pop((record.topic, record.partition), None)

    patch.replace(OffsetStore, "remove_offset", remove_offset)


@PLANTED.add()
def generation_drops_transactions(patch: Patch) -> None:
    """A new generation discards the offsets of open transactions."""
    begin_generation = Group.begin_generation

    def begin(group: Group, now: int) -> None:
        begin_generation(group, now)
        group.uncommitted.clear()

    patch.replace(Group, "begin_generation", begin)


@PLANTED.add()
def loading_forgets_open_transactions(patch: Patch) -> None:
    """A restarted coordinator does not know the transactions that are open."""
    load = Loading.load

    def load_without(loading: Loading) -> None:
        load(loading)
        for group in loading._runtime.groups.values():
            group.uncommitted.clear()

    patch.replace(Loading, "load", load_without)


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
def one_transaction_for_each_partition(patch: Patch) -> None:
    """A second producer's offset of a partition takes the place of the first one's."""
    add_offset = OffsetStore.add_offset

    def add(store: OffsetStore, record: OffsetRecord) -> None:
        group = store._runtime.groups.get(record.group)
        if record.producer is not None and group is not None:
            for offsets in group.uncommitted.values():
                offsets.pop((record.topic, record.partition), None)
        add_offset(store, record)

    patch.replace(OffsetStore, "add_offset", add)


@PLANTED.add()
def stable_after_first_end(patch: Patch) -> None:
    """A fetch of stable offsets waits for the first of two transactions only."""

    def has_uncommitted(group: Group, partition: Partition) -> bool:
        return partition in next(iter(group.uncommitted.values()), {})

    patch.replace(Group, "has_uncommitted", has_uncommitted)


@PLANTED.add()
def restarted_producer_goes_on(patch: Patch) -> None:
    """A producer that starts again keeps its open transaction."""
    handle_init = Transactions.handle_init

    def init(transactions: Transactions, request: Request) -> None:
        held = {name: dict(group.uncommitted) for name, group in transactions._runtime.groups.items()}
        handle_init(transactions, request)
        for name, offsets in held.items():
            transactions._runtime.groups[name].uncommitted = offsets

    patch.replace(Transactions, "handle_init", init)


@PLANTED.add()
def restarted_producer_ends_all(patch: Patch) -> None:
    """A producer that starts again aborts the transactions of all producers in its groups."""
    handle_init = Transactions.handle_init

    def init(transactions: Transactions, request: Request) -> None:
        before = {name: len(group.uncommitted) for name, group in transactions._runtime.groups.items()}
        handle_init(transactions, request)
        for name, group in transactions._runtime.groups.items():
            if len(group.uncommitted) < before[name]:
                group.uncommitted.clear()

    patch.replace(Transactions, "handle_init", init)


@PLANTED.add()
def end_of_last_partition(patch: Patch) -> None:
    """Of a transaction on several partitions only the last offset is committed."""
    end_transaction = OffsetStore.end_transaction

    def end(store: OffsetStore, record: TransactionEnd) -> None:
        for group in store._runtime.groups.values():
            if record.producer in group.uncommitted:
                group.uncommitted[record.producer] = dict(list(group.uncommitted[record.producer].items())[-1:])
        end_transaction(store, record)

    patch.replace(OffsetStore, "end_transaction", end)


@PLANTED.add()
def restarted_producer_commits(patch: Patch) -> None:
    """The open transaction of a producer that starts again is committed."""
    handle_init = Transactions.handle_init

    def init(transactions: Transactions, request: Request) -> None:
        present = transactions._producers.get(request.body.get("transactional_id") or "")
        if present is not None:
            transactions._ledger.end_transaction(TransactionEnd(present.producer, committed=True))
        handle_init(transactions, request)

    patch.replace(Transactions, "handle_init", init)


@PLANTED.add()
def removed_group_keeps_transactions(patch: Patch) -> None:
    """A group that is removed while a transaction is open has its offsets again once that is committed."""
    remove_group = OffsetStore.remove_group

    def remove(store: OffsetStore, record: GroupTombstone) -> None:
        group = store._runtime.groups.get(record.group)
        remove_group(store, record)
        if group is not None and group.uncommitted:
            store.group_for_offsets(record.group).uncommitted = group.uncommitted

    patch.replace(OffsetStore, "remove_group", remove)


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
def batch_fetch_of_first_group(patch: Patch) -> None:
    """In a fetch for several groups, a partition without an offset gets that of the first group."""
    fetch_group = Offsets.fetch_group

    def fetch(offsets: Offsets, request: Request, entry: Body, stable: bool) -> list[dict[str, Any]]:
        first = offsets._runtime.groups.get((request.body.get("groups") or [entry])[0].get("group_id", ""))
        group = offsets._runtime.groups.get(entry.get("group_id", ""))
        if first is None or group is None or first is group:
            return fetch_group(offsets, request, entry, stable)
        own = group.offsets
        group.offsets = {**first.offsets, **own}
        try:
            return fetch_group(offsets, request, entry, stable)
        finally:
            group.offsets = own

    patch.replace(Offsets, "fetch_group", fetch)


@PLANTED.add()
def expiry_in_all_groups(patch: Patch) -> None:
    """What expires in one group is removed from all groups."""
    run_pass = Cleanup.run_pass

    def run(cleanup: Cleanup) -> None:
        before = {name: set(group.offsets) for name, group in cleanup._runtime.groups.items()}
        run_pass(cleanup)
        after = cleanup._runtime.groups
        left = {name: set(after[name].offsets) if name in after else set() for name in before}
        gone = {partition for name, found in before.items() for partition in found - left[name]}
        for group in after.values():
            for partition in gone:
                group.offsets.pop(partition, None)

    patch.replace(Cleanup, "run_pass", run)


@PLANTED.add()
def deletion_ends_transactions_of_others(patch: Patch) -> None:
    """The removal of a group discards, in the other groups, the transactions that had offsets of it."""
    remove_group = OffsetStore.remove_group

    def remove(store: OffsetStore, record: GroupTombstone) -> None:
        group = store._runtime.groups.get(record.group)
        producers = set(group.uncommitted) if group is not None else set()
        remove_group(store, record)
        for other in store._runtime.groups.values():
            for producer in producers:
                other.uncommitted.pop(producer, None)

    patch.replace(OffsetStore, "remove_group", remove)


@PLANTED.add()
def unstable_in_all_groups(patch: Patch) -> None:
    """A transaction on a partition holds up the fetches of that partition in all groups."""
    fetch_partition = Offsets.fetch_partition

    def fetch(offsets: Offsets, group: Group | None, partition: Partition, stable: bool) -> dict[str, Any]:
        if stable and any(each.has_uncommitted(partition) for each in offsets._runtime.groups.values()):
            return offsets.row(partition[1], None, Error.UNSTABLE_OFFSET_COMMIT)
        return fetch_partition(offsets, group, partition, stable)

    patch.replace(Offsets, "fetch_partition", fetch)


@PLANTED.add()
def deletion_in_all_groups(patch: Patch) -> None:
    """An offset that is deleted or expires in one group is removed from all Empty groups."""
    remove_offset = OffsetStore.remove_offset

    def remove(store: OffsetStore, record: OffsetTombstone) -> None:
        remove_offset(store, record)
        for name, group in list(store._runtime.groups.items()):
            if group.state is State.EMPTY:
                remove_offset(store, replace(record, group=name))

    patch.replace(OffsetStore, "remove_offset", remove)


@PLANTED.add()
def batch_fetch_is_stable_for_first(patch: Patch) -> None:
    """In a fetch for several groups, open transactions count in the first group only."""
    fetch_group = Offsets.fetch_group

    def fetch(offsets: Offsets, request: Request, entry: Body, stable: bool) -> list[dict[str, Any]]:
        is_first = entry is (request.body.get("groups") or [entry])[0]
        return fetch_group(offsets, request, entry, stable and is_first)

    patch.replace(Offsets, "fetch_group", fetch)


# --- leaders, plans, failovers ----------------------------------------------------------------------------------


@PLANTED.add()
def first_leader_is_stored(patch: Patch) -> None:
    """The log names the first member as the leader, whoever leads."""
    record = Group.record

    def record_with_first(group: Group) -> GroupRecord:
        return replace(record(group), leader=next(iter(group.members), None))

    patch.replace(Group, "record", record_with_first)


@PLANTED.add()
def loading_forgets_instances(patch: Patch) -> None:
    """A restarted coordinator does not know which static members its members are until they rejoin."""
    restore_group = Loading.restore_group

    def restore(loading: Loading, record: GroupRecord) -> None:
        restore_group(loading, record)
        loading._runtime.groups[record.group].instances = {}

    patch.replace(Loading, "restore_group", restore)


@PLANTED.add()
def incomplete_plan_keeps_assignments(patch: Patch) -> None:
    """A member that the leader's plan leaves out keeps its assignment of the generation before."""

    def read_assignments(syncing: Syncing, group: Group, body: Mapping[str, Any]) -> dict[str, bytes]:
        given = {entry["member_id"]: bytes(entry.get("assignment", b"")) for entry in body.get("assignments", ())}
        return {name: given.get(name, member.assignment) for name, member in group.members.items()}

    patch.replace(Syncing, "read_assignments", read_assignments)


@PLANTED.add()
def loading_forgets_empty_assignments(patch: Patch) -> None:
    """After a failover a member that the plan left out has the assignment of the first member."""
    restore_member = Loading.restore_group

    def restore(loading: Loading, record: GroupRecord) -> None:
        restore_member(loading, record)
        members = list(loading._runtime.groups[record.group].members.values())
        for member in members:
            member.assignment = member.assignment or members[0].assignment

    patch.replace(Loading, "restore_group", restore)


@PLANTED.add()
def loading_takes_shortest_session(patch: Patch) -> None:
    """After a failover all members have the session timeout of the one with the shortest."""
    start_group = Loading.start_group

    def start(loading: Loading, group: Group) -> None:
        shortest = min((member.session_timeout for member in group.members.values()), default=0)
        for member in group.members.values():
            member.session_timeout = shortest
        start_group(loading, group)

    patch.replace(Loading, "start_group", start)


@PLANTED.add()
def subscriptions_of_leader(patch: Patch) -> None:
    """Only the leader's subscription counts as the group's."""

    def find_subscriptions(group: Group) -> frozenset[str] | None:
        if group.protocol_type != "consumer" or group.leader not in group.members:
            return None
        try:
            return frozenset(read_topics(group.members[group.leader].metadata(group.protocol)))
        except UnreadableSubscription:
            return None

    patch.replace(Group, "find_subscriptions", find_subscriptions)


@PLANTED.add()
def loading_forgets_generation_of_empty_group(patch: Patch) -> None:
    """After a failover an Empty group begins with generation 1 again."""
    restore_group = Loading.restore_group

    def restore(loading: Loading, record: GroupRecord) -> None:
        restore_group(loading, record)
        if not record.members:
            loading._runtime.groups[record.group].generation = 0

    patch.replace(Loading, "restore_group", restore)


# --- retention --------------------------------------------------------------------------------------------------


@PLANTED.add()
def retention_from_first_commit(patch: Patch) -> None:
    """The retention of all offsets of a group begins with the oldest of them."""
    base_time = Cleanup.base_time

    def base(cleanup: Cleanup, group: Group, offset: Offset) -> int:
        return min(base_time(cleanup, group, each) for each in group.offsets.values())

    patch.replace(Cleanup, "base_time", base)


@PLANTED.add()
def retention_from_commit(patch: Patch) -> None:
    """The retention begins with the commit, also in a group whose members left later."""
    patch.replace(Cleanup, "base_time", lambda cleanup, group, offset: offset.committed_at)


@PLANTED.add()
def retention_goes_on_after_failover(patch: Patch) -> None:
    """A restarted coordinator counts the retention of an Empty group from the start of its clock."""
    restore_group = Loading.restore_group

    def restore(loading: Loading, record: GroupRecord) -> None:
        restore_group(loading, record)
        loading._runtime.groups[record.group].since = 0

    patch.replace(Loading, "restore_group", restore)


@PLANTED.add()
def retention_of_aborted_commit(patch: Patch) -> None:
    """An offset that a transaction commits has the time of the group's oldest commit."""
    commit_offset = OffsetStore.commit_offset

    def commit(store: OffsetStore, group: Group, partition: Partition, offset: Offset) -> None:
        oldest = min((each.committed_at for each in group.offsets.values()), default=offset.committed_at)
        commit_offset(store, group, partition, replace(offset, committed_at=oldest))

    patch.replace(OffsetStore, "commit_offset", commit)


@PLANTED.add()
def expiry_one_check_early(patch: Patch) -> None:
    """Offsets expire at the clean-up pass before the end of their retention."""

    def is_expired(cleanup: Cleanup, group: Group, offset: Offset) -> bool:
        if not cleanup.has_base_time(group):
            return False
        settings = cleanup._runtime.settings
        age = cleanup._runtime.now - cleanup.base_time(group, offset)
        return age >= settings.offsets_retention - settings.retention_check_interval // 2

    patch.replace(Cleanup, "is_expired", is_expired)


# --- static members and old clients -----------------------------------------------------------------------------


@PLANTED.add()
def replacement_has_no_session(patch: Patch) -> None:
    """A static member that replaced another one never expires until it heartbeats."""

    def change_id(statics: StaticMembership, group: Group, member: Member, new_id: str) -> None:
        group.rename(member.instance_id or "", member.member_id, new_id)

    patch.replace(StaticMembership, "change_id", change_id)


@PLANTED.add()
def replaced_leader_steps_down(patch: Patch) -> None:
    """When the leader is replaced, another member leads if there is one."""
    rename = Group.rename

    def rename_leader(group: Group, instance_id: str, old_id: str, new_id: str) -> Member:
        was_leader = group.leader == old_id
        member = rename(group, instance_id, old_id, new_id)
        if was_leader and len(group.members) > 1:
            group.leader = next(iter(group.members))
        return member

    patch.replace(Group, "rename", rename_leader)


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
def absent_static_members_are_dropped(patch: Patch) -> None:
    """Absent static members are dropped if the leader is among them."""

    def drop(rounds: Rebalancer, group: Group) -> None:
        for member in list(group.members.values()):
            if not member.has_rejoined and (not member.is_static or member.member_id == group.leader):
                rounds.remove_member(group, member)

    patch.replace(Rebalancer, "drop_absent_members", drop)


@PLANTED.add()
def rebalance_timeout_never_falls(patch: Patch) -> None:
    """A member that rejoins with a shorter rebalance timeout keeps the longer one."""
    update = Member.update

    def update_member(member: Member, join: JoinGroup) -> None:
        longest = max(member.rebalance_timeout, join.rebalance_timeout)
        update(member, join)
        member.rebalance_timeout = longest

    patch.replace(Member, "update", update_member)


@PLANTED.add()
def transactions_wait_for_sync(patch: Patch) -> None:
    """A transactional commit is refused while the group awaits assignments."""
    check = Commits.check

    def check_state(commits: Commits, group: Group, commit: Commit) -> Error:
        error = check(commits, group, commit)
        if not error and commit.is_transactional and commit.names_member and group.state is State.COMPLETING:
            return Error.REBALANCE_IN_PROGRESS
        return error

    patch.replace(Commits, "check", check_state)


@PLANTED.add()
def old_client_shortens_rebalance(patch: Patch) -> None:
    """The rebalance timeout of a JoinGroup of version 0 becomes that of all members."""
    update_member = Rebalancer.update_member

    def update(rounds: Rebalancer, group: Group, member: Member, join: JoinGroup) -> None:
        if join.request.version == 0:
            for other in group.members.values():
                other.rebalance_timeout = join.rebalance_timeout
        update_member(rounds, group, member, join)

    patch.replace(Rebalancer, "update_member", update)


@PLANTED.add()
def replacement_loses_assignment(patch: Patch) -> None:
    """A static member that is replaced in a Stable group loses its assignment if it does not lead."""
    rename = Group.rename

    def rename_without(group: Group, instance_id: str, old_id: str, new_id: str) -> Member:
        member = rename(group, instance_id, old_id, new_id)
        if group.leader != new_id:
            member.assignment = b""
        return member

    patch.replace(Group, "rename", rename_without)


FAULTS = {fault.id: fault for fault in PLANTED.faults}
"""The faults by name."""
