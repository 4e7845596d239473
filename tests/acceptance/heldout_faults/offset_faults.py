"""Held-out faults of offsets and transactions, kind by kind."""

import asyncio

from fencepost.adapters.classic.administration import Cleanup, Loading
from fencepost.adapters.classic.group import Group
from fencepost.adapters.classic.offsets import Offsets, OffsetStore, Transactions
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.conformance.classic.scenarios.fetches import Producer
from fencepost.conformance.run.context import ScenarioContext
from tests.acceptance.heldout_faults.fault import Edit, HeldoutFamily

TRANSACTION_TIMEOUT_MS = 300_000


async def begin_transaction(group: ScenarioContext, name: str = "P") -> Producer:
    """A producer of this name with a transaction."""
    producer = Producer(group, f"{group.group_id}-{name}")
    await producer.begin(TRANSACTION_TIMEOUT_MS)
    return producer


OPEN_TRANSACTIONS = HeldoutFamily("open transaction")

_FORGET_PENDING = "for pending in group.uncommitted.values():\n            pending.pop(partition, None)"


@OPEN_TRANSACTIONS.add(
    "FETCH-10",
    "FETCH-12",
    source="plausible",
    edits=[
        Edit(
            OffsetStore.add_offset,
            "group.offsets[partition] = offset",
            f"group.offsets[partition] = offset\n        {_FORGET_PENDING}",
        )
    ],
)
async def plain_commit_forgets_the_pending_offset(group: ScenarioContext) -> None:
    """A plain commit discards what open transactions hold for its partition."""
    producer = await begin_transaction(group)
    await producer.commit(0, 9)
    await group.commit(None, {0: 6})
    await group.fetch(stable=True)


@OPEN_TRANSACTIONS.add(
    "FETCH-13",
    source="plausible",
    edits=[
        Edit(
            OffsetStore.remove_offset,
            "for offsets in group.uncommitted.values():\n        offsets.pop(partition, None)",
            "",
        )
    ],
)
async def deleted_offset_stays_pending(group: ScenarioContext) -> None:
    """OffsetDelete removes the committed offset and leaves the pending one, which comes back with EndTxn."""
    producer = await begin_transaction(group)
    await group.commit(None, {0: 5})
    await producer.commit(0, 9)
    await group.delete_offsets([0])
    await group.fetch(stable=True)
    await producer.end(committed=True)
    await group.fetch()


@OPEN_TRANSACTIONS.add(
    "FETCH-10",
    "FETCH-12",
    "COMMIT-25",
    source="KAFKA-14505",
    edits=[
        Edit(Cleanup.expired_partitions, "and not group.has_uncommitted(partition)", ""),
        Edit(
            Cleanup.may_change,
            "any(not group.has_uncommitted(partition) for partition in group.offsets)",
            "bool(group.offsets)",
        ),
    ],
)
async def clean_up_expires_under_a_transaction(group: ScenarioContext) -> None:
    """The clean-up pass expires an offset, and the pending one with it, although a transaction is open on it."""
    producer = await begin_transaction(group)
    await group.commit(None, {0: 5})
    await producer.commit(0, 9)
    await group.sleep(group.settings.offsets_retention + group.settings.retention_check_interval)
    await group.fetch(stable=True)


@OPEN_TRANSACTIONS.add(
    "FETCH-10",
    "FAILOVER-12",
    source="plausible; of the family of BUG-43",
    edits=[
        Edit(
            Loading.replay,
            "self._ledger.add_offset(record)",
            "if record.producer is None:\n                self._ledger.add_offset(record)",
        )
    ],
)
async def restart_forgets_open_transactions(group: ScenarioContext) -> None:
    """A restarted coordinator loads committed offsets only, and no open transaction."""
    producer = await begin_transaction(group)
    await group.commit(None, {0: 5})
    await producer.commit(0, 9)
    await group.restart()
    await group.fetch(stable=True)


@OPEN_TRANSACTIONS.add(
    "FETCH-10",
    "FETCH-12",
    source="plausible",
    edits=[Edit(Group.begin_generation, "self.generation += 1", "self.generation += 1\n    self.uncommitted.clear()")],
)
async def rebalance_forgets_open_transactions(group: ScenarioContext) -> None:
    """The end of a join phase discards the open transactions of the group."""
    producer = await begin_transaction(group)
    (member,) = await group.form_stable_group(group.member("A"))
    await producer.commit(0, 9)
    await group.rebalance(member)
    await group.sync_all(member)
    await group.fetch(stable=True)


@OPEN_TRANSACTIONS.add(
    "FETCH-10",
    "FETCH-12",
    source="plausible; pending offsets kept by partition instead of by producer and partition",
    edits=[
        Edit(
            OffsetStore.add_offset,
            "group.uncommitted.setdefault",
            f"{_FORGET_PENDING}\n        group.uncommitted.setdefault",
        )
    ],
)
async def second_producer_takes_the_partition(group: ScenarioContext) -> None:
    """The transaction of a second producer takes the place of that of the first on the same partition."""
    first, second = await begin_transaction(group, "P"), await begin_transaction(group, "Q")
    await first.commit(0, 8)
    await second.commit(0, 9)
    await second.end(committed=False)
    await group.fetch(stable=True)


SHARED_STATE = HeldoutFamily("state shared between groups")


@SHARED_STATE.add(
    "TIMER-11",
    "TIMER-12",
    source="plausible; a timer per offsets partition",
    edits=[
        Edit(Rebalancer.start_sync_timer, '("sync", group_id)', '("sync",)'),
        Edit(Rebalancer.mark_synced, '("sync", group.group_id)', '("sync",)'),
        Edit(Rebalancer.clear_unsynced, '("sync", group.group_id)', '("sync",)'),
    ],
)
async def one_sync_timer_for_all_groups(group: ScenarioContext) -> None:
    """All groups share one sync timer: a group that syncs stops that of another, whose idle member stays."""
    other = group.for_group(1)
    members = (group.member(label) for label in "AB")
    (leader, idler), (stranger,) = await asyncio.gather(
        group.form_generation(*members), other.form_generation(other.member("C"))
    )
    await group.sync(leader, {leader.id: b"all"})
    await other.sync_leader(stranger)
    await group.sleep(idler.rebalance_timeout + 1)
    await group.heartbeat(idler)


@SHARED_STATE.add(
    "FETCH-12",
    source="plausible",
    edits=[
        Edit(
            OffsetStore.end_transaction,
            "for group in self._runtime.groups.values():",
            "committed = record.committed\n    for group in self._runtime.groups.values():",
        ),
        Edit(OffsetStore.end_transaction, "if record.committed:", "if committed:"),
        Edit(
            OffsetStore.end_transaction,
            "self.commit_offset(group, partition, offset)",
            "self.commit_offset(group, partition, offset)\n        committed = committed and not offsets",
        ),
    ],
)
async def transaction_commits_in_one_group_only(group: ScenarioContext) -> None:
    """A transaction over two groups commits its offsets in one of them and discards those of the other."""
    other, producer = group.for_group(1), await begin_transaction(group)
    await producer.add_group(other.group_id)
    await producer.commit(0, 5)
    rows = {"committed_offset": 6, "committed_leader_epoch": -1, "committed_metadata": ""}
    await producer.send_commit(other.partitions_by_topic({0: rows}, {}), group_id=other.group_id)
    await producer.end(committed=True)
    await other.fetch(stable=True)


@SHARED_STATE.add(
    "FETCH-06",
    "FETCH-10",
    source="plausible",
    edits=[
        Edit(
            Offsets.handle_fetch,
            "self.fetch_group(request, entry, stable),",
            'self.fetch_group(request, entry, stable and entry is request.body["groups"][0]),',
        )
    ],
)
async def batch_fetch_is_stable_for_the_first_group(group: ScenarioContext) -> None:
    """A fetch of several groups that requires stable offsets does so for the first group only."""
    other = group.for_group(1)
    producer = await begin_transaction(other)
    await producer.commit(0, 5)
    await group.fetch(groups=[group.group_id, other.group_id], stable=True)


RETENTION = HeldoutFamily("retention in parts")


@RETENTION.add(
    "COMMIT-25",
    "FETCH-01",
    source="plausible",
    edits=[
        Edit(
            OffsetStore.add_offset,
            "group.offsets[partition] = offset",
            "known = group.offsets.get(partition)\n"
            "        same = known is not None and (known.offset, known.leader_epoch, known.metadata) == (\n"
            "            offset.offset, offset.leader_epoch, offset.metadata\n"
            "        )\n"
            "        if not same:\n"
            "            group.offsets[partition] = offset",
        )
    ],
)
async def repeated_commit_does_not_extend_retention(group: ScenarioContext) -> None:
    """A commit that changes nothing is optimised away, and so the retention counts from the first one."""
    half = group.settings.offsets_retention // 2
    for _ in range(2):
        await group.commit(None, {0: 5})
        await group.sleep(half)
    await group.sleep(group.settings.retention_check_interval)
    await group.fetch()


@RETENTION.add(
    "COMMIT-25",
    "FETCH-01",
    source="plausible",
    edits=[
        Edit(
            Cleanup.run_pass,
            "len(expired) == len(group.offsets) and",
            "(bool(expired) or not group.offsets) and",
        )
    ],
)
async def first_expired_offset_takes_the_group_along(group: ScenarioContext) -> None:
    """An Empty group is removed with all its offsets as soon as one of them has expired."""
    half = group.settings.offsets_retention // 2
    for partition in (0, 1):
        await group.commit(None, {partition: 5})
        await group.sleep(half)
    await group.sleep(group.settings.retention_check_interval)
    await group.fetch([1])


@RETENTION.add(
    "COMMIT-25",
    "FAILOVER-12",
    "FAILOVER-14",
    source="plausible; of the family of KAFKA-4682",
    edits=[
        Edit(
            Loading.restore_group,
            "group.since = record.since",
            "group.since = group.since if group.generation else record.since",
        )
    ],
)
async def failover_loses_the_base_time_of_retention(group: ScenarioContext) -> None:
    """After a failover the retention of an Empty group counts from its first generation, not from the end of its
    last member."""
    half = group.settings.offsets_retention // 2
    (member,) = await group.form_stable_group(group.member("A"))
    await group.commit(member, {0: 5})
    await group.keep_alive([member], half)
    await group.leave(member)
    await group.restart()
    await group.sleep(half + group.settings.retention_check_interval)
    await group.fetch()


IDLE_GROUPS = HeldoutFamily("Empty group without offsets")

_NEVER_GONE = "no requirement says that an Empty group without offsets and transactions goes away in the end"


@IDLE_GROUPS.add(
    source="plausible",
    edits=[
        Edit(
            Cleanup.is_removable,
            "group.state is State.EMPTY",
            "group.state is State.EMPTY and group.protocol_type is None",
        )
    ],
    not_blamed=_NEVER_GONE,
)
async def emptied_group_is_never_removed(group: ScenarioContext) -> None:
    """The clean-up pass removes simple groups only: a group that had members once stays for ever."""
    (member,) = await group.form_stable_group(group.member("A"))
    await group.leave(member)
    await group.sleep(2 * group.settings.retention_check_interval)
    await group.describe_groups()


@IDLE_GROUPS.add(
    source="plausible",
    edits=[
        Edit(
            Cleanup.run_pass,
            "expired = self.expired_partitions(group)",
            "expired = self.expired_partitions(group)\n        if not expired:\n            continue",
        )
    ],
    not_blamed=_NEVER_GONE,
)
async def group_stays_after_its_last_offset_was_deleted(group: ScenarioContext) -> None:
    """The clean-up pass looks only at groups in which an offset expires: one whose offsets were deleted stays."""
    await group.commit(None, {0: 5})
    await group.delete_offsets([0])
    await group.sleep(2 * group.settings.retention_check_interval)
    await group.describe_groups()


STABLE_FETCHES = HeldoutFamily("stable fetch after EndTxn")


@STABLE_FETCHES.add(
    "FETCH-10",
    "FETCH-12",
    source="plausible",
    edits=[
        Edit(
            OffsetStore.add_offset,
            "group.uncommitted.setdefault(record.producer, {})[partition] = offset",
            "pending = group.uncommitted.setdefault(record.producer, {})\n"
            "        if partition in pending:\n"
            "            group.uncommitted.setdefault(-1 - record.producer, {})[partition] = pending[partition]\n"
            "        pending[partition] = offset",
        )
    ],
)
async def offset_written_twice_stays_unstable(group: ScenarioContext) -> None:
    """A partition that a transaction writes twice is counted twice as pending, and EndTxn counts it down once."""
    producer = await begin_transaction(group)
    await producer.commit(0, 5)
    await producer.commit(0, 6)
    await producer.end(committed=True)
    await group.fetch()
    await group.fetch(stable=True)


@STABLE_FETCHES.add(
    "FETCH-10",
    "FETCH-12",
    source="plausible",
    edits=[Edit(Loading.replay, "case TransactionEnd():", "case TransactionEnd() if record.committed:")],
)
async def aborted_transaction_is_open_after_a_failover(group: ScenarioContext) -> None:
    """A restarted coordinator skips the ends of aborted transactions, and so takes them to be open for ever."""
    producer = await begin_transaction(group)
    await producer.commit(0, 5)
    await producer.end(committed=False)
    await group.fetch(stable=True)
    await group.restart()
    await group.fetch(stable=True)


FENCED_PRODUCERS = HeldoutFamily("fenced producer epoch")

_NOT_FENCED = "no requirement says that a fenced producer epoch is refused, and a current one is not"


@FENCED_PRODUCERS.add(
    source="plausible; KIP-360, KIP-447",
    edits=[
        Edit(
            Transactions.handle_end,
            "error = self.check_producer(request) or",
            "error = self.check_producer(request)\n"
            "    if error is Error.INVALID_PRODUCER_EPOCH:\n"
            "        error = Error.NONE\n"
            "    error = error or",
        )
    ],
    not_blamed=_NOT_FENCED,
)
async def fenced_producer_ends_the_transaction(group: ScenarioContext) -> None:
    """EndTxn does not look at the epoch, so a fenced producer ends the transaction of its successor."""
    fenced, successor = await begin_transaction(group), await begin_transaction(group)
    await successor.commit(0, 6)
    await group.send("EndTxn", {**fenced.producer_fields(), "committed": True}, version=3)
    await group.fetch(stable=True)


@FENCED_PRODUCERS.add(
    source="plausible; of the family of BUG-05",
    edits=[
        Edit(
            Loading.replay,
            "self._transactions.add_producer(record)",
            "if record.transactional_id not in self._transactions._producers:\n"
            "                self._transactions.add_producer(record)",
        )
    ],
    not_blamed=_NOT_FENCED,
)
async def failover_brings_a_fenced_epoch_back(group: ScenarioContext) -> None:
    """A restarted coordinator goes by the first epoch of each transactional id: the current producer is fenced."""
    _, successor = await begin_transaction(group), await begin_transaction(group)
    await successor.commit(0, 6)
    await group.restart()
    await group.send("EndTxn", {**successor.producer_fields(), "committed": True}, version=3)
    await group.fetch(stable=True)
