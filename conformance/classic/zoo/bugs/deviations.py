"""Deviations of products that were tried when the kit had not met them, and of public bug reports.

They have names instead of numbers, and no recorded hunts: whole runs are measured on them, and strangers are drawn from
them. The requirements of each are decided by their sentences before it was first played. Since the kit was mended on
them, they are training cases.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from fencepost.adapters.classic import responses
from fencepost.adapters.classic.administration import Admin, Cleanup, Loading
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Member, Offset, Partition, State
from fencepost.adapters.classic.membership import Heartbeats, Joining, Leaving, StaticMembership, Syncing
from fencepost.adapters.classic.messages import JoinGroup
from fencepost.adapters.classic.offsets import Commit, Commits, Offsets, OffsetStore, Results
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.records import GroupRecord, OffsetRecord, OffsetTombstone, Record, TransactionEnd
from fencepost.adapters.serve.coordination import Body, Request
from fencepost.conformance.classic.zoo.bugs.environments import Environment, coordinator_family
from fencepost.conformance.zoo.fault import Fault, Patch, Shipped, instead_of
from fencepost.model.errors import Error

KLITE = "klite 2493491, internal/cluster/group.go, https://github.com/klaudworks/klite"
TANSU = "tansu 0.6.0, administrator.rs, https://github.com/tansu-io/tansu"
RIVINE = "rivine 0.2.0, https://crates.io/crates/rivine"

# --- Members and their rounds.

members = coordinator_family()


@members.add("leave-forgets-parked-join", KLITE, "LEAVE-09")
@instead_of(Leaving.remove_entry)
def leave_forgets_parked_join(shipped: Shipped[Error], leaving: Leaving, group: Group | None, entry: Body) -> Error:
    """The parked JoinGroup of a member that leaves is never answered."""
    with Patch() as silent:
        silent.replace(Rebalancer, "refuse_parked_join", drop_parked_join)
        return shipped(leaving, group, entry)


def drop_parked_join(rounds: Rebalancer, member: Member, error: Error, member_id: str) -> None:
    """Forget a parked JoinGroup."""
    member.parked_join = None


@members.add("session-ends-in-parked-sync", KLITE, "TIMER-04")
@instead_of(Rebalancer.on_member_timer)
def session_ends_in_parked_sync(shipped: Shipped[None], rounds: Rebalancer, group_id: str, member_id: str) -> None:
    """A member whose SyncGroup is parked expires, and the SyncGroup is never answered."""
    expel_if_parked(shipped, rounds, group_id, member_id, "parked_sync")


@members.add("session-ends-in-parked-join", KLITE, "TIMER-03")
@instead_of(Rebalancer.on_member_timer)
def session_ends_in_parked_join(shipped: Shipped[None], rounds: Rebalancer, group_id: str, member_id: str) -> None:
    """A member whose JoinGroup is parked expires, and the JoinGroup is never answered."""
    expel_if_parked(shipped, rounds, group_id, member_id, "parked_join")


def expel_if_parked(shipped: Shipped[None], rounds: Rebalancer, group_id: str, member_id: str, parked: str) -> None:
    """Expel a member that awaits the response to this request, which it never gets."""
    group = rounds._runtime.groups.get(group_id)
    member = group.members.get(member_id) if group is not None else None
    if group is not None and member is not None and not member.is_new and getattr(member, parked) is not None:
        setattr(member, parked, None)
        rounds.expel(group, member)
    else:
        shipped(rounds, group_id, member_id)


@members.add("every-rejoin-rebalances", KLITE, "JOIN-29", "JOIN-32", "JOIN-35", "FAILOVER-13")
@instead_of(Joining.needs_rebalance)
def every_rejoin_rebalances(
    shipped: Shipped[bool], joining: Joining, group: Group, member: Member, join: JoinGroup
) -> bool:
    """A member that rejoins starts a rebalance, also if it offers what it offered before."""
    return True


@members.add("static-newcomer-needs-id", KLITE, "STATIC-01", "JOIN-14")
def static_newcomer_needs_id(patch: Patch) -> None:
    """A first JoinGroup with an instance id is told MEMBER_ID_REQUIRED, and comes in with the second one."""
    join_without_id = Joining.join_without_id

    def require_id(joining: Joining, group: Group, join: JoinGroup) -> None:
        if join.is_static and join.instance_id not in group.instances and joining.requires_member_id(join):
            joining.issue_member_id(group, join)
        else:
            join_without_id(joining, group, join)

    def admit(joining: Joining, group: Group, join: JoinGroup) -> None:
        joining._rounds.add_member(group, join.member_id, join)

    patch.replace(Joining, "join_without_id", require_id)
    patch.replace(Joining, "join_with_pending_id", admit)


@members.add(
    "absent-static-members-dropped", KLITE, "STATIC-18", "STATIC-19", "STATIC-20", "JOIN-38", "GEN-18", "GEN-19"
)
@instead_of(Rebalancer.drop_absent_members)
def absent_static_members_dropped(shipped: Shipped[None], rounds: Rebalancer, group: Group) -> None:
    """The end of the join phase drops static members that did not rejoin."""
    for member in list(group.members.values()):
        if not member.has_rejoined:
            rounds.remove_member(group, member)


@members.add("replaced-static-member-counts-twice", KLITE, "STATIC-16", "JOIN-26", "JOIN-44", "JOIN-51")
def replaced_static_member_counts_twice(patch: Patch) -> None:
    """A static member that is replaced while its JoinGroup is parked counts twice, and the join phase ends early."""
    replace_member, begin = StaticMembership.replace_member, Group.begin_generation
    twice: list[Group] = []

    def count_and_replace(
        statics: StaticMembership, group: Group, member: Member, new_id: str, join: JoinGroup
    ) -> None:
        if group.state is State.PREPARING and member.has_rejoined:
            twice.append(group)
        replace_member(statics, group, member, new_id, join)

    def begin_anew(group: Group, now: int) -> None:
        twice[:] = (each for each in twice if each is not group)
        begin(group, now)

    def seem_joined(group: Group) -> bool:
        count = group.rejoined_count + sum(each is group for each in twice)
        return not group.pending and count >= len(group.members)

    patch.replace(StaticMembership, "replace_member", count_and_replace)
    patch.replace(Group, "begin_generation", begin_anew)
    patch.replace(Group, "all_joined", property(seem_joined))


@members.add("instance-id-alone-removes", KLITE, "LEAVE-15", "STATIC-03", "STATIC-06")
@instead_of(Leaving.remove_entry)
def instance_id_alone_removes(shipped: Shipped[Error], leaving: Leaving, group: Group | None, entry: Body) -> Error:
    """LeaveGroup with an instance id removes its member, whatever member id stands beside it."""
    instance_id = entry.get("group_instance_id")
    if group is not None and instance_id in group.instances:
        return leaving.remove_instance(group, instance_id)
    return shipped(leaving, group, entry)


@members.add("pending-ids-hold-up-nothing", KLITE, "JOIN-28")
def pending_ids_hold_up_nothing(patch: Patch) -> None:
    """The join phase ends when the members have rejoined, whether ids are pending or not."""
    patch.replace(
        Group, "all_joined", property(lambda group: all(each.has_rejoined for each in group.members.values()))
    )


@members.add("refusals-echo-no-id", KLITE, "JOIN-01", "JOIN-05", "JOIN-23")
@instead_of(Joining.refuse)
def refusals_echo_no_id(
    shipped: Shipped[None], joining: Joining, join: JoinGroup, error: Error, member_id: str
) -> None:
    """A JoinGroup that is refused with INVALID_GROUP_ID or UNKNOWN_MEMBER_ID does not get its member id back."""
    echoed = error not in (Error.INVALID_GROUP_ID, Error.UNKNOWN_MEMBER_ID)
    shipped(joining, join, error, member_id if echoed else "")


@members.add("stranger-creates-group", KLITE, "JOIN-05", "ADMIN-15", "ADMIN-01")
@instead_of(Joining.handle)
def stranger_creates_group(shipped: Shipped[None], joining: Joining, request: Request) -> None:
    """A JoinGroup with a member id creates the group that it is then refused by."""
    join = JoinGroup.read(request)
    if join.member_id and not joining.check_request(join):
        joining._runtime.groups.setdefault(join.group_id, Group(join.group_id, joining._runtime.now))
    shipped(joining, request)


@members.add("sync-compares-no-protocol", KLITE, "SYNC-05", "SYNC-06")
def sync_compares_no_protocol(patch: Patch) -> None:
    """SyncGroup looks at no protocol, neither its type nor its name."""
    patch.replace(Syncing, "lacks_protocol", lambda syncing, request: False)
    patch.replace(Syncing, "agrees_on_protocol", lambda syncing, group, body: True)


@members.add("first-generation-is-0", TANSU, "GEN-01", "GEN-13")
@instead_of(Joining.join_new_group)
def first_generation_is_0(shipped: Shipped[None], joining: Joining, join: JoinGroup) -> None:
    """A new group begins with generation 0."""
    begin = Group.__init__

    def begin_lower(group: Group, *given: Any, **named: Any) -> None:
        begin(group, *given, **named)
        group.generation = -1

    with Patch() as lower:
        lower.replace(Group, "__init__", begin_lower)
        shipped(joining, join)


STRANGERS = ("JOIN-05", "JOIN-13", "JOIN-23", "JOIN-45", "JOIN-53", "FAILOVER-08", "ADMIN-22", "LEAVE-10")
"""The requirements that have a JoinGroup with an unknown member id refused."""


@members.add("unknown-member-admitted", TANSU, *STRANGERS)
def unknown_member_admitted(patch: Patch) -> None:
    """A JoinGroup with a member id that nobody was given is that of a new member under this id."""
    handle, join_group = Joining.handle, Joining.join_group

    def create(joining: Joining, request: Request) -> None:
        join = JoinGroup.read(request)
        known = join.group_id in joining._runtime.groups
        if known or not join.member_id or joining.check_request(join):
            handle(joining, request)
        else:
            joining.join_new_group(join)

    def admit(joining: Joining, group: Group, join: JoinGroup) -> None:
        if join.member_id and join.member_id not in group.members and not join.is_static:
            group.pending.add(join.member_id)
        join_group(joining, group, join)

    patch.replace(Joining, "handle", create)
    patch.replace(Joining, "join_group", admit)


@members.add("empty-group-id-joined", TANSU, "JOIN-01")
@instead_of(Joining.check_request)
def empty_group_id_joined(shipped: Shipped[Error], joining: Joining, join: JoinGroup) -> Error:
    """The empty group id can be joined like any other."""
    return shipped(joining, replace(join, group_id=join.group_id or "any"))


@members.add("static-member-never-expires", TANSU, "STATIC-21", "STATIC-23", "TIMER-01", "TIMER-02")
@instead_of(Rebalancer.on_member_timer)
def static_member_never_expires(shipped: Shipped[None], rounds: Rebalancer, group_id: str, member_id: str) -> None:
    """A static member stays, however long it is silent."""
    group = rounds._runtime.groups.get(group_id)
    member = group.members.get(member_id) if group is not None else None
    if member is None or not member.is_static:
        shipped(rounds, group_id, member_id)


@members.add("static-newcomer-waits", TANSU, "TIMER-16")
@instead_of(Rebalancer.start_initial_delay)
def static_newcomer_waits(shipped: Shipped[None], rounds: Rebalancer, group: Group) -> None:
    """The first member of a group, if it is static, is answered after half its session timeout."""
    static = next((member for member in group.members.values() if member.is_static), None)
    shipped(rounds, group)
    if static is not None:
        rounds._arm_initial_delay(group, rounds._runtime.settings.initial_rebalance_delay + static.session_timeout // 2)


ALONE = ("JOIN-26", "JOIN-36", "JOIN-44", "TIMER-16", "TIMER-17", "TIMER-18", "TIMER-19", "GEN-02", "GEN-03", "SYNC-10")
"""The requirements by which members wait for each other."""


@members.add("join-waits-for-nobody", RIVINE, *ALONE, "GEN-04", "GEN-05", "HB-06", "HB-11", "JOIN-24", "JOIN-37")
@instead_of(Rebalancer.trigger_rebalance)
def join_waits_for_nobody(shipped: Shipped[None], rounds: Rebalancer, group: Group) -> None:
    """Each JoinGroup is answered at once with a generation of its own; the others stay in the group."""
    joined = [member for member in group.members.values() if member.has_rejoined]
    if not joined:
        shipped(rounds, group)
        return
    group.begin_generation(rounds._runtime.now)
    for member in joined:
        rounds.confirm_join(group, member)
        rounds.touch_session(group, member)
        member.is_new = False
    group.unsynced = {member.member_id for member in joined}


@members.add("no-member-id-required", "a broker whose name is held back", "JOIN-07", "JOIN-10")
@instead_of(Joining.requires_member_id)
def no_member_id_required(shipped: Shipped[bool], joining: Joining, join: JoinGroup) -> bool:
    """A dynamic member joins in one step in every version."""
    return False


@members.add(
    "old-leader-not-answered",
    "KAFKA-14422, https://github.com/apache/kafka/pull/12909",
    "JOIN-55",
    "JOIN-27",
    "JOIN-36",
    "JOIN-37",
)
@instead_of(Rebalancer.confirm_join)
def old_leader_not_answered(shipped: Shipped[None], rounds: Rebalancer, group: Group, member: Member) -> None:
    """The response to a leader of version 4 cannot be written if there are instance ids, and the round is stuck."""
    request = member.parked_join
    lists_instances = member.member_id == group.leader and bool(group.instances)
    if request is None or request.version >= 5 or not lists_instances:
        shipped(rounds, group, member)


@members.add(
    "second-id-is-unknown",
    "tansu issue 625, https://github.com/nisshi-io/nisshi/issues/625",
    "JOIN-11",
    "JOIN-28",
)
@instead_of(Joining.issue_member_id)
def second_id_is_unknown(shipped: Shipped[None], joining: Joining, group: Group, join: JoinGroup) -> None:
    """An id that is handed out in a group with members is unknown when it is used."""
    shipped(joining, group, join)
    if group.members:
        group.pending.clear()


@members.add(
    "heartbeat-of-older-generation",
    "YDB PR 37143, https://github.com/ydb-platform/ydb/pull/37143",
    "HB-04",
    "GEN-15",
    "GEN-18",
)
@instead_of(Heartbeats.check)
def heartbeat_of_older_generation(
    shipped: Shipped[Error], heartbeats: Heartbeats, group: Group | None, body: Body
) -> Error:
    """A Heartbeat of an older generation is as good as one of the current."""
    error = shipped(heartbeats, group, body)
    older = group is not None and body.get("generation_id", 0) < group.generation
    return Error.NONE if error is Error.ILLEGAL_GENERATION and older else error


# --- Offsets, administration, and what a restart finds.

storage = coordinator_family()


@storage.add(
    "anybody-commits", KLITE, "COMMIT-03", "COMMIT-05", "COMMIT-09", "COMMIT-21", "STATIC-03", "STATIC-06", "STATIC-07"
)
@instead_of(Commits.check)
def anybody_commits(shipped: Shipped[Error], commits: Commits, group: Group, commit: Commit) -> Error:
    """A commit is accepted in CompletingRebalance, without a member id, and with another member's instance id."""
    if not commit.member_id:
        return Error.NONE
    error = shipped(commits, group, replace(commit, instance_id=None))
    return Error.NONE if error is Error.REBALANCE_IN_PROGRESS else error


@storage.add("deleted-group-comes-back", KLITE, "FAILOVER-15")
@instead_of(Admin.delete)
def deleted_group_comes_back(shipped: Shipped[Error], admin: Admin, group: Group | None) -> Error:
    """A deletion of a group is not stored."""
    with Patch() as forgetful:
        forgetful.replace(CoordinatorState, "write", lambda runtime, *batch: None)
        return shipped(admin, group)


LOST = (
    "FAILOVER-02",
    "FAILOVER-05",
    "FAILOVER-07",
    "FAILOVER-10",
    "FAILOVER-14",
    "FAILOVER-16",
    "SYNC-25",
    "STATIC-28",
)
"""The requirements by which a group is there after a failover."""


@storage.add("groups-are-not-stored", KLITE, *LOST, "FAILOVER-12", "COMMIT-18", "COMMIT-25")
@instead_of(Loading.replay)
def groups_are_not_stored(shipped: Shipped[None], loading: Loading, record: Record) -> None:
    """A restart loses groups with their generations, and the leader epochs of offsets."""
    if isinstance(record, OffsetRecord):
        record = replace(record, leader_epoch=-1)
    if not isinstance(record, GroupRecord):
        shipped(loading, record)


@storage.add("deleted-offset-comes-back", KLITE, "FAILOVER-22", "FETCH-13")
@instead_of(Loading.replay)
def deleted_offset_comes_back(shipped: Shipped[None], loading: Loading, record: Record) -> None:
    """A restart brings back offsets that OffsetDelete has deleted."""
    if not isinstance(record, OffsetTombstone):
        shipped(loading, record)


@storage.add("client-is-not-described", KLITE, "ADMIN-03")
@instead_of(responses.describe_group)
def client_is_not_described(shipped: Shipped[dict[str, Any]], group: Group) -> dict[str, Any]:
    """DescribeGroups shows neither client id nor host."""
    entry = shipped(group)
    return entry | {"members": [member | {"client_id": "", "client_host": ""} for member in entry["members"]]}


@storage.add("stable-is-not-asked", KLITE, "FETCH-10")
@instead_of(Offsets.fetch_partition)
def stable_is_not_asked(
    shipped: Shipped[dict[str, Any]], offsets: Offsets, group: Group | None, partition: Partition, stable: bool
) -> dict[str, Any]:
    """OffsetFetch does not look at `require_stable`."""
    return shipped(offsets, group, partition, False)


@storage.add("empty-list-fetches-all", KLITE, "FETCH-05")
@instead_of(Offsets.fetch_group)
def empty_list_fetches_all(
    shipped: Shipped[list[dict[str, Any]]], offsets: Offsets, request: Request, entry: Body, stable: bool
) -> list[dict[str, Any]]:
    """An empty list of topics fetches every committed offset."""
    return shipped(offsets, request, entry if entry.get("topics", ()) else {**entry, "topics": None}, stable)


@storage.add("any-partition-exists", KLITE, "COMMIT-13", "COMMIT-14", "ADMIN-29")
@instead_of(CoordinatorState.has_partition)
def any_partition_exists(shipped: Shipped[bool], runtime: CoordinatorState, topic: str, partition: int) -> bool:
    """Offsets of topics and partitions that do not exist are committed and deleted."""
    return True


@storage.add("type-is-not-listed", KLITE, "ADMIN-13", "ADMIN-14")
@instead_of(Admin.handle_list)
def type_is_not_listed(shipped: Shipped[None], admin: Admin, request: Request) -> None:
    """ListGroups shows no types and does not look at their filter."""
    before = len(admin._runtime.responses)
    shipped(admin, replace(request, body={**request.body, "types_filter": []}))
    for response in admin._runtime.responses[before:]:
        response.body["groups"] = [
            row | ({"group_type": ""} if "group_type" in row else {}) for row in response.body["groups"]
        ]


@storage.add("unknown-group-is-deleted", TANSU, "ADMIN-16", "ADMIN-20")
@instead_of(Admin.delete)
def unknown_group_is_deleted(shipped: Shipped[Error], admin: Admin, group: Group | None) -> Error:
    """The deletion of an unknown group succeeds."""
    return Error.NONE if group is None else shipped(admin, group)


@storage.add("offset-alone-is-kept", TANSU, "FETCH-01", "COMMIT-18", "FAILOVER-12", "COMMIT-25")
@instead_of(OffsetStore.add_offset)
def offset_alone_is_kept(shipped: Shipped[None], ledger: OffsetStore, record: OffsetRecord) -> None:
    """Of a commit only the offset is kept, neither metadata nor leader epoch."""
    shipped(ledger, replace(record, leader_epoch=-1, metadata=""))


@storage.add("states-have-other-names", TANSU, "ADMIN-02", "ADMIN-12", "ADMIN-11")
def states_have_other_names(patch: Patch) -> None:
    """DescribeGroups says Assigning for CompletingRebalance, and ListGroups says Unknown for every state."""
    describe, handle_list = responses.describe_group, Admin.handle_list

    def describe_otherwise(group: Group) -> dict[str, Any]:
        entry = describe(group)
        return entry | ({"group_state": "Assigning"} if group.state is State.COMPLETING else {})

    def list_otherwise(admin: Admin, request: Request) -> None:
        before = len(admin._runtime.responses)
        handle_list(admin, request)
        for response in admin._runtime.responses[before:]:
            for row in response.body["groups"]:
                row |= {"group_state": "Unknown"} if "group_state" in row else {}

    patch.replace(responses, "describe_group", describe_otherwise)
    patch.replace(Admin, "handle_list", list_otherwise)


@storage.add("uncommitted-offset-is-0", "a broker whose name is held back", "FETCH-02", "FETCH-03", "FETCH-13")
@instead_of(Offsets.row)
def uncommitted_offset_is_0(
    shipped: Shipped[dict[str, Any]], offsets: Offsets, index: int, offset: Any, error: Error
) -> dict[str, Any]:
    """A partition without a committed offset is fetched as 0."""
    row = shipped(offsets, index, offset, error)
    return row if offset or error else row | {"committed_offset": 0}


CORE_16998 = "Redpanda CORE-16998, https://github.com/redpanda-data/redpanda/pull/31483"
CORE_17000 = "Redpanda CORE-17000, https://github.com/redpanda-data/redpanda/pull/31483"


@storage.add("open-transaction-protects-nothing", CORE_16998, "COMMIT-30", "COMMIT-34")
@instead_of(Cleanup.expired_partitions)
def open_transaction_protects_nothing(
    shipped: Shipped[list[Partition]], cleanup: Cleanup, group: Group
) -> list[Partition]:
    """A committed offset expires although an open transaction holds another one for its partition."""
    with Patch() as bare:
        bare.replace(Group, "has_uncommitted", lambda group, partition: False)
        return shipped(cleanup, group)


@storage.add("transaction-wins-when-loaded", CORE_17000, "FAILOVER-12", "COMMIT-25")
@instead_of(Loading.replay)
def transaction_wins_when_loaded(shipped: Shipped[None], loading: Loading, record: Record) -> None:
    """After a restart the offset of an ended transaction stands in the place of one that was committed after it."""

    def overwrite(ledger: OffsetStore, group: Group, partition: Partition, offset: Any) -> None:
        group.offsets[partition] = offset

    with Patch() as blunt:
        if isinstance(record, TransactionEnd):
            blunt.replace(OffsetStore, "commit_offset", overwrite)
        shipped(loading, record)


@storage.add(
    "transaction-needs-member",
    "KAFKA-18060, https://github.com/apache/kafka/pull/17914",
    "COMMIT-33",
)
@instead_of(Commits.check)
def transaction_needs_member(shipped: Shipped[Error], commits: Commits, group: Group, commit: Commit) -> Error:
    """A TxnOffsetCommit without member and generation is refused while the group has members."""
    if commit.is_transactional and not commit.names_member and group.state is not State.EMPTY:
        return Error.UNKNOWN_MEMBER_ID
    return shipped(commits, group, commit)


@storage.add(
    "epoch-only-if-asked-for-all",
    "Redpanda 9850, https://github.com/redpanda-data/redpanda/pull/9851",
    "COMMIT-18",
    "FETCH-01",
)
@instead_of(Offsets.fetch_group)
def epoch_only_if_asked_for_all(
    shipped: Shipped[list[dict[str, Any]]], offsets: Offsets, request: Request, entry: Body, stable: bool
) -> list[dict[str, Any]]:
    """OffsetFetch tells leader epochs only where no topics are named."""
    topics = shipped(offsets, request, entry, stable)
    if entry.get("topics", ()) is not None:
        for topic in topics:
            for row in topic["partitions"]:
                row["committed_leader_epoch"] = -1
    return topics


@storage.add(
    "older-commit-after-rebalance", "KoP 1289, https://github.com/streamnative/kop/issues/1289", "FETCH-01", "COMMIT-25"
)
def older_commit_after_rebalance(patch: Patch) -> None:
    """The first OffsetFetch after a rebalance returns the commit before the last one."""
    add_offset, begin, fetch = OffsetStore.add_offset, Group.begin_generation, Offsets.fetch_partition
    former: list[tuple[Group, Partition, Offset]] = []
    rebalanced: list[Group] = []

    def remember(ledger: OffsetStore, record: OffsetRecord) -> None:
        group, partition = ledger.group_for_offsets(record.group), (record.topic, record.partition)
        if record.producer is None and partition in group.offsets:
            former.append((group, partition, group.offsets[partition]))
        add_offset(ledger, record)

    def begin_stale(group: Group, now: int) -> None:
        begin(group, now)
        rebalanced.append(group)

    def fetch_stale(offsets: Offsets, group: Group | None, partition: Partition, stable: bool) -> dict[str, Any]:
        row = fetch(offsets, group, partition, stable)
        if row["committed_offset"] < 0 or not any(each is group for each in rebalanced):
            return row
        rebalanced[:] = (each for each in rebalanced if each is not group)
        older = [offset for owner, place, offset in former if owner is group and place == partition]
        return offsets.row(partition[1], older[-1], Error.NONE) if older else row

    patch.replace(OffsetStore, "add_offset", remember)
    patch.replace(Group, "begin_generation", begin_stale)
    patch.replace(Offsets, "fetch_partition", fetch_stale)


@storage.add(
    "deletion-is-not-stored", "Redpanda 4900, https://github.com/redpanda-data/redpanda/issues/4900", "FAILOVER-15"
)
@instead_of(Admin.tombstones)
def deletion_is_not_stored(shipped: Shipped[list[Record]], admin: Admin, group: Group) -> list[Record]:
    """The deletion of a group is stored for its offsets, and not for the group."""
    return shipped(admin, group)[:-1]


@storage.add(
    "commit-expires-at-once", "KoP 303, https://github.com/streamnative/kop/issues/303", "COMMIT-25", "COMMIT-26"
)
@instead_of(Commits.record)
def commit_expires_at_once(
    shipped: Shipped[OffsetRecord], commits: Commits, commit: Commit, topic: str, entry: Body
) -> OffsetRecord:
    """A commit without a timestamp expires with the next clean-up."""
    return replace(shipped(commits, commit, topic, entry), expires_at=entry.get("commit_timestamp", -1))


DEFAULT_RETENTION = ("COMMIT-01", "COMMIT-02", "COMMIT-07", "COMMIT-08", "COMMIT-26")
"""The requirements by which a commit with a retention time of -1 succeeds."""


@storage.add(
    "default-retention-refused",
    "tansu 8e60860, https://github.com/tansu-io/tansu/commit/8e60860",
    *DEFAULT_RETENTION,
)
@instead_of(Commits.store)
def default_retention_refused(shipped: Shipped[Results], commits: Commits, commit: Commit) -> Results:
    """An OffsetCommit of the versions 2 to 4 with a retention time of -1 is refused."""
    version, retention = commit.request.version, commit.request.body.get("retention_time_ms", -1)
    if not commit.is_transactional and 2 <= version <= 4 and retention == -1:
        return commits.refuse(commit, Error.UNKNOWN_SERVER_ERROR)
    return shipped(commits, commit)


DEVIATIONS: Mapping[str, Fault[Environment]] = MappingProxyType(
    {fault.id: fault for family in (members, storage) for fault in family.faults}
)
"""Every deviation by its name."""
