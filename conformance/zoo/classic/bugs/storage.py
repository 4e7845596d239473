"""Bugs of storage: state after a restart or a failed write, and requests whose connection has ended."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from fencepost.adapters.bundled.classic.commits import Commit, Commits, Results
from fencepost.adapters.bundled.classic.coordinator_state import CoordinatorState
from fencepost.adapters.bundled.classic.group import Group
from fencepost.adapters.bundled.classic.leaving import Leaving
from fencepost.adapters.bundled.classic.loading import Loading
from fencepost.adapters.bundled.classic.log import LogWriteError
from fencepost.adapters.bundled.classic.messages import Error, Request, Response
from fencepost.adapters.bundled.classic.records import GroupRecord, OffsetRecord, Record
from fencepost.conformance.zoo.classic import environments
from fencepost.conformance.zoo.classic.bug import BugFamily
from fencepost.conformance.zoo.classic.crashing_target import CrashingTarget
from fencepost.conformance.zoo.classic.environments import OFFSETS_REFUSED, SLOW_LOADING, SLOW_OFFSETS
from fencepost.conformance.zoo.mutation.patching import Patch

storage = BugFamily()
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
    environment=SLOW_LOADING,
)
def members_are_unknown_while_loading(patch: Patch) -> None:
    """A group that is not loaded is taken for dead: its members are told that nobody knows them."""
    refuse = environments.refuse_while_loading

    def refuse_as_dead(request: Request) -> int:
        return Error.UNKNOWN_MEMBER_ID if request.api in MEMBER_APIS else refuse(request)

    patch.replace(environments, "refuse_while_loading", refuse_as_dead)


@storage.add("BUG-18", "KAFKA-10614, https://github.com/apache/kafka/commit/c72ce005e70", "FAILOVER-12")
def late_unloading_wipes_the_next_term(patch: Patch) -> None:
    """The end of a former term is noticed late, and takes away what the next term has just loaded."""
    load = Loading.load

    def load_and_unload(loading: Loading) -> None:
        def unload() -> None:
            runtime.groups.clear()

        load(loading)
        runtime = loading._runtime
        if runtime.groups:
            runtime.timers.arm("unload", runtime.now + UNLOADING_MS, unload)

    patch.replace(Loading, "load", load_and_unload)


@storage.add(
    "BUG-26", "librdkafka mock cluster, https://github.com/confluentinc/librdkafka/commit/e9129fa2a", "JOIN-52"
)
def closed_connection_is_a_crash(patch: Patch) -> None:
    """The answer to a parked request whose connection is gone brings the coordinator down."""
    deliver = CrashingTarget._deliver

    def deliver_or_crash(target: CrashingTarget, responses: Iterable[Response]) -> None:
        given = list(responses)
        for response in given:
            flight = target._pending.get(response.handle)
            if flight is not None and flight.response.done():
                raise ConnectionError("nobody is there to be answered")
        deliver(target, given)

    patch.replace(CrashingTarget, "_deliver", deliver_or_crash)


@storage.add("BUG-33", "franz-go kfake, https://github.com/twmb/franz-go/commit/12889e13", "FAILOVER-21")
def restarted_group_is_stable(patch: Patch) -> None:
    """Every departure is stored, and a restarted group is Stable with whoever is left, though it was rebalancing."""
    go_on = Leaving.rebalance_remaining

    def store_and_go_on(leaving: Leaving, group: Group) -> None:
        leaving._runtime.write(group.record())
        go_on(leaving, group)

    patch.replace(Leaving, "rebalance_remaining", store_and_go_on)


@storage.add(
    "BUG-42",
    "Redpanda, https://github.com/redpanda-data/redpanda/commit/b54ff1dea7",
    "FAILOVER-01",
    environment=SLOW_LOADING,
)
def ready_before_it_is_loaded(patch: Patch) -> None:
    """The coordinator answers before the log is replayed, as if there were no groups and no offsets."""
    patch.replace(environments, "is_loaded", lambda runtime: True)


@storage.add(
    "BUG-43", "Redpanda, https://github.com/redpanda-data/redpanda/commit/501b9d3588", "COMMIT-18", "FAILOVER-12"
)
def leader_epoch_is_not_restored(patch: Patch) -> None:
    """The leader epoch of a committed offset is not loaded, and a meaningless one stands in its place."""
    replay = Loading.replay

    def replay_without_epoch(loading: Loading, record: Record) -> None:
        replay(loading, replace(record, leader_epoch=NO_EPOCH) if isinstance(record, OffsetRecord) else record)

    patch.replace(Loading, "replay", replay_without_epoch)


@storage.add(
    "BUG-45",
    "Redpanda, https://github.com/redpanda-data/redpanda/commit/e693bead59",
    "FAILOVER-20",
    environment=SLOW_OFFSETS,
)
def old_write_lands_in_a_new_term(patch: Patch) -> None:
    """A commit that was checked in one term is written in the next, whatever has happened in between."""

    def write_all_the_same(loading: Loading, under_way: list[tuple[int, list[OffsetRecord]]]) -> None:
        def landing(batch: list[OffsetRecord]) -> None:
            loading._runtime.write(*batch)
            for record in batch:
                loading._ledger.add_offset(record)

        for number, (due, batch) in enumerate(under_way):
            loading._runtime.timers.arm(("landing", due, number), due, partial(landing, batch))
        under_way.clear()

    patch.replace(environments, "after_a_restart", write_all_the_same)


@storage.add(
    "BUG-57",
    "SeaweedFS, handleOffsetCommit at cc8364a03 (offset_management.go)",
    "COMMIT-25",
    environment=OFFSETS_REFUSED,
)
def failed_write_is_only_logged(patch: Patch) -> None:
    """A commit that the log does not take is answered as if it had."""
    store = Commits.store

    def store_or_pretend(commits: Commits, commit: Commit) -> Results:
        write = CoordinatorState.write

        def write_if_possible(runtime: CoordinatorState, *batch: Record) -> None:
            try:
                write(runtime, *batch)
            except LogWriteError:
                return

        with Patch() as careless:
            careless.replace(CoordinatorState, "write", write_if_possible)
            return store(commits, commit)

    patch.replace(Commits, "store", store_or_pretend)
