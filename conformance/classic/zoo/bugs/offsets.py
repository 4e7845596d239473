"""Bugs of offsets and of what is stored: commits, fetches, retention, transactions, the log and loading."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from fencepost.adapters.classic.administration import Cleanup, Loading
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Offset, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.membership import Leaving
from fencepost.adapters.classic.messages import CONSUMER
from fencepost.adapters.classic.offsets import Commit, Commits, Offsets, Results
from fencepost.adapters.classic.records import GroupRecord, OffsetRecord, Record
from fencepost.adapters.serve.coordination import Body, Request, Response
from fencepost.conformance.classic.zoo.bugs import environments
from fencepost.conformance.classic.zoo.bugs.environments import (
    OFFSETS_REFUSED,
    SLOW_LOADING,
    SLOW_OFFSETS,
    CrashingTarget,
    coordinator_family,
    error_body,
)
from fencepost.conformance.zoo.fault import Patch, Shipped, instead_of
from fencepost.model.errors import Error
from fencepost.model.wire.primitives import ZERO_UUID

offsets = coordinator_family()
UNKNOWN_PRODUCER = -2
"""A producer that no transaction has."""
REQUEST_TIMED_OUT = 7


@offsets.add("BUG-01", "KAFKA-2596, https://github.com/apache/kafka/commit/6a06e22ef81", "COMMIT-11")
def unknown_group_takes_every_commit(patch: Patch) -> None:
    """A group that there is no state for takes any commit, also one of a member of some generation."""
    patch.replace(Commits, "check_unknown_group", lambda commits, commit: Error.NONE)


@offsets.add("BUG-20", "KAFKA-13636, https://github.com/apache/kafka/commit/78a37894965", "COMMIT-25")
@instead_of(Cleanup.has_base_time)
def offsets_expire_during_a_rebalance(shipped: Shipped[bool], cleanup: Cleanup, group: Group) -> bool:
    """The clean-up trusts the subscriptions of a group that is rebalancing, and removes offsets of topics in use."""
    return group.state is State.EMPTY or (group.protocol_type == CONSUMER and group.subscribed is not None)


@offsets.add("BUG-22", "KAFKA-14201, https://github.com/apache/kafka/commit/706adc39f6a", "COMMIT-08")
def instance_id_makes_a_member(patch: Patch) -> None:
    """A commit without member and generation is checked as a member's if it carries an instance id."""
    check, check_unknown = Commits.check, Commits.check_unknown_group

    def check_instance(commits: Commits, group: Group, commit: Commit) -> Error:
        if commit.instance_id is not None and (error := group.check_member(commit.member_id, commit.instance_id)):
            return error
        return check(commits, group, commit)

    def check_unknown_instance(commits: Commits, commit: Commit) -> Error:
        if commit.instance_id is not None and commit.generation < 0:
            return Error.UNKNOWN_MEMBER_ID
        return check_unknown(commits, commit)

    patch.replace(Commits, "check", check_instance)
    patch.replace(Commits, "check_unknown_group", check_unknown_instance)


@offsets.add("BUG-23", "KAFKA-16371, https://github.com/apache/kafka/commit/da3304ecb6f", "COMMIT-15", "FETCH-10")
@instead_of(Commits.store)
def refused_entry_stays_pending(shipped: Shipped[Results], commits: Commits, commit: Commit) -> Results:
    """An entry that is refused for its long metadata stays noted as under way, and no stable fetch gets past it."""
    results = shipped(commits, commit)
    group = commits._runtime.groups.get(commit.group_id)
    for (topic, index), error in results.items():
        if error is Error.OFFSET_METADATA_TOO_LARGE and group is not None and topic is not None:
            group.uncommitted.setdefault(UNKNOWN_PRODUCER, {})[topic, index] = Offset(-1, -1, "", 0, None, 0)
    return results


@offsets.add(
    "BUG-24",
    "KAFKA-17267, https://github.com/apache/kafka/commit/7a8edffad10",
    "FETCH-10",
    setting=OFFSETS_REFUSED,
)
@instead_of(environments.refuse_stable_fetch)
def stable_fetch_times_out(shipped: Shipped[None], offsets: Offsets, request: Request) -> None:
    """A stable fetch that waits for the log too long is told REQUEST_TIMED_OUT, after which no client tries again."""
    offsets._runtime.respond(request, error_body(request, REQUEST_TIMED_OUT))


@offsets.add("BUG-30", "franz-go kfake, https://github.com/twmb/franz-go/commit/718aef16", "FETCH-01")
@instead_of(Offsets.fetch_group)
def answer_begins_with_nameless_topics(
    shipped: Shipped[list[dict[str, Any]]], offsets: Offsets, request: Request, entry: Body, stable: bool
) -> list[dict[str, Any]]:
    """OffsetFetch answers with as many nameless topics as were asked for, and only then with these."""
    topics = shipped(offsets, request, entry, stable)
    return [offsets._runtime.topic_reference(request, "", ZERO_UUID) | {"partitions": []} for _ in topics] + topics


@offsets.add("BUG-34", "franz-go kfake, https://github.com/twmb/franz-go/commit/05542e81", "COMMIT-13")
def absent_partitions_are_committed(patch: Patch) -> None:
    """Nobody asks whether the partitions of a commit exist."""

    def refuse_nameless(commits: Commits, request: Request) -> Results:
        entries = commits.entries(request)
        return {(None, row["partition_index"]): Error.UNKNOWN_TOPIC_ID for topic, row in entries if topic is None}

    def all_partitions(commits: Commits, request: Request) -> list[tuple[str, Body]]:
        return [(topic, row) for topic, row in commits.entries(request) if topic is not None]

    patch.replace(Commits, "refuse_absent", refuse_nameless)
    patch.replace(Commits, "partitions", all_partitions)


@offsets.add("BUG-44", "Redpanda, https://github.com/redpanda-data/redpanda/commit/ee8d507d40", "COMMIT-06")
@instead_of(Commits.check)
def commit_looks_at_the_state_first(shipped: Shipped[Error], commits: Commits, group: Group, commit: Commit) -> Error:
    """While the assignment is awaited, strangers and stale members are told of a rebalance, not that they are wrong."""
    if group.state is State.COMPLETING and not commit.is_transactional:
        return Error.REBALANCE_IN_PROGRESS
    return shipped(commits, group, commit)


@offsets.add(
    "BUG-55",
    "SeaweedFS, handleOffsetCommit at cc8364a03 (offset_management.go)",
    "COMMIT-05",
    "COMMIT-09",
    "COMMIT-29",
)
@instead_of(Commits.check)
def strangers_commit(shipped: Shipped[Error], commits: Commits, group: Group, commit: Commit) -> Error:
    """A commit is held against the generation only, and in a group without members against nothing."""
    if not group.members:
        return Error.NONE
    if commit.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    return Error.REBALANCE_IN_PROGRESS if group.state is State.COMPLETING else Error.NONE


storage = coordinator_family()
UNLOADING_MS = 300
"""How late the end of a former term is noticed."""
NO_EPOCH = -(2**31)
MEMBER_APIS = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit")


@storage.add(
    "BUG-05", "Apache Kafka PR 462, https://github.com/apache/kafka/commit/2b04004de87", "FAILOVER-02", "FAILOVER-12"
)
def oldest_record_wins(patch: Patch) -> None:
    """Loading keeps the first record of a group and of an offset, not the last."""
    load, replay = Loading.load, Loading.replay

    def load_the_oldest(loading: Loading) -> None:
        seen: set[tuple[str, ...] | tuple[str, str, int]] = set()

        def replay_once(loading: Loading, record: Record) -> None:
            key: tuple[str, ...] | tuple[str, str, int] | None = None
            if isinstance(record, GroupRecord):
                key = (record.group,)
            elif isinstance(record, OffsetRecord):
                key = (record.group, record.topic, record.partition)
            if key is None or key not in seen:
                replay(loading, record)
            if key is not None:
                seen.add(key)

        with Patch() as first:
            first.replace(Loading, "replay", replay_once)
            load(loading)

    patch.replace(Loading, "load", load_the_oldest)


@storage.add(
    "BUG-11",
    "KAFKA-8386, https://github.com/apache/kafka/commit/fb1f74958d1",
    "FAILOVER-01",
    setting=SLOW_LOADING,
)
@instead_of(environments.refuse_while_loading)
def members_are_unknown_while_loading(shipped: Shipped[int], request: Request) -> int:
    """A group that is not loaded is taken for dead: its members are told that nobody knows them."""
    return Error.UNKNOWN_MEMBER_ID if request.api in MEMBER_APIS else shipped(request)


@storage.add("BUG-18", "KAFKA-10614, https://github.com/apache/kafka/commit/c72ce005e70", "FAILOVER-12")
@instead_of(Loading.load)
def late_unloading_wipes_the_next_term(shipped: Shipped[None], loading: Loading) -> None:
    """The end of a former term is noticed late, and takes away what the next term has just loaded."""

    def unload() -> None:
        runtime.groups.clear()

    shipped(loading)
    runtime = loading._runtime
    if runtime.groups:
        runtime.timers.arm("unload", runtime.now + UNLOADING_MS, unload)


@storage.add(
    "BUG-26", "librdkafka mock cluster, https://github.com/confluentinc/librdkafka/commit/e9129fa2a", "JOIN-52"
)
@instead_of(CrashingTarget._deliver)
def closed_connection_is_a_crash(shipped: Shipped[None], target: CrashingTarget, responses: Iterable[Response]) -> None:
    """The answer to a parked request whose connection is gone brings the coordinator down."""
    given = list(responses)
    for response in given:
        flight = target._pending.get(response.handle)
        if flight is not None and flight.response.done():
            raise ConnectionError("nobody is there to be answered")
    shipped(target, given)


@storage.add("BUG-33", "franz-go kfake, https://github.com/twmb/franz-go/commit/12889e13", "FAILOVER-21")
@instead_of(Leaving.rebalance_remaining)
def restarted_group_is_stable(shipped: Shipped[None], leaving: Leaving, group: Group) -> None:
    """Every departure is stored, and a restarted group is Stable with whoever is left, though it was rebalancing."""
    leaving._runtime.write(group.record())
    shipped(leaving, group)


@storage.add(
    "BUG-42",
    "Redpanda, https://github.com/redpanda-data/redpanda/commit/b54ff1dea7",
    "FAILOVER-01",
    setting=SLOW_LOADING,
)
def ready_before_it_is_loaded(patch: Patch) -> None:
    """The coordinator answers before the log is replayed, as if there were no groups and no offsets."""
    patch.replace(environments, "is_loaded", lambda runtime: True)


@storage.add(
    "BUG-43", "Redpanda, https://github.com/redpanda-data/redpanda/commit/501b9d3588", "COMMIT-18", "FAILOVER-12"
)
@instead_of(Loading.replay)
def leader_epoch_is_not_restored(shipped: Shipped[None], loading: Loading, record: Record) -> None:
    """The leader epoch of a committed offset is not loaded, and a meaningless one stands in its place."""
    shipped(loading, replace(record, leader_epoch=NO_EPOCH) if isinstance(record, OffsetRecord) else record)


@storage.add(
    "BUG-45",
    "Redpanda, https://github.com/redpanda-data/redpanda/commit/e693bead59",
    "FAILOVER-20",
    setting=SLOW_OFFSETS,
)
@instead_of(environments.after_a_restart)
def old_write_lands_in_a_new_term(
    shipped: Shipped[None], loading: Loading, under_way: list[environments.SlowWrite]
) -> None:
    """A commit that was checked in one term is written in the next, whatever has happened in between."""

    def landing(batch: list[OffsetRecord]) -> None:
        loading._runtime.write(*batch)
        for record in batch:
            loading._ledger.add_offset(record)

    for number, write in enumerate(under_way):
        loading._runtime.timers.arm(("landing", write.due, number), write.due, partial(landing, write.batch))
    under_way.clear()


@storage.add(
    "BUG-57",
    "SeaweedFS, handleOffsetCommit at cc8364a03 (offset_management.go)",
    "COMMIT-25",
    setting=OFFSETS_REFUSED,
)
@instead_of(Commits.store)
def failed_write_is_only_logged(shipped: Shipped[Results], commits: Commits, commit: Commit) -> Results:
    """A commit that the log does not take is answered as if it had."""
    write = CoordinatorState.write

    def write_if_possible(runtime: CoordinatorState, *batch: Record) -> None:
        try:
            write(runtime, *batch)
        except LogWriteError:
            return

    with Patch() as careless:
        careless.replace(CoordinatorState, "write", write_if_possible)
        return shipped(commits, commit)
