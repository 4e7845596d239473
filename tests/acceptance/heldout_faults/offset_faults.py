"""Held-out faults of offsets and transactions, kind by kind."""

from tests.acceptance.heldout_faults.fault import Edit, HeldoutFamily
from tests.acceptance.heldout_faults.play import CLEANUP_MS, INITIAL_DELAY_MS, RETENTION_MS, Play

OPEN_TRANSACTIONS = HeldoutFamily("open transaction")

_FORGET_PENDING = "for pending in group.uncommitted.values():\n            pending.pop(partition, None)"


@OPEN_TRANSACTIONS.add(
    "FETCH-10",
    "FETCH-12",
    source="plausible",
    edits=[
        Edit(
            "offset_store.OffsetStore.add_offset",
            "group.offsets[partition] = offset",
            f"group.offsets[partition] = offset\n        {_FORGET_PENDING}",
        )
    ],
)
async def plain_commit_forgets_the_pending_offset(play: Play) -> None:
    """A plain commit discards what open transactions hold for its partition."""
    producer = play.producer()
    producer.commit(9)
    play.commit(6)
    play.fetch(stable=True)


@OPEN_TRANSACTIONS.add(
    "FETCH-13",
    source="plausible",
    edits=[
        Edit(
            "offset_store.OffsetStore.remove_offset",
            "for offsets in group.uncommitted.values():\n        offsets.pop(partition, None)",
            "",
        )
    ],
)
async def deleted_offset_stays_pending(play: Play) -> None:
    """OffsetDelete removes the committed offset and leaves the pending one, which comes back with EndTxn."""
    producer = play.producer()
    play.commit(5)
    producer.commit(9)
    play.delete_offset()
    play.fetch(stable=True)
    producer.end(committed=True)
    play.fetch()


@OPEN_TRANSACTIONS.add(
    "FETCH-10",
    "FETCH-12",
    "COMMIT-25",
    source="KAFKA-14505",
    edits=[
        Edit("cleanup.Cleanup.expired_partitions", "and not group.has_uncommitted(partition)", ""),
        Edit(
            "cleanup.Cleanup.may_change",
            "any(not group.has_uncommitted(partition) for partition in group.offsets)",
            "bool(group.offsets)",
        ),
    ],
)
async def clean_up_expires_under_a_transaction(play: Play) -> None:
    """The clean-up pass expires an offset, and the pending one with it, although a transaction is open on it."""
    producer = play.producer()
    play.commit(5)
    producer.commit(9)
    await play.wait(RETENTION_MS + 1)
    play.fetch(stable=True)


@OPEN_TRANSACTIONS.add(
    "FETCH-10",
    "FAILOVER-12",
    source="plausible; of the family of BUG-43",
    edits=[
        Edit(
            "loading.Loading.replay",
            "self._ledger.add_offset(record)",
            "if record.producer is None:\n                self._ledger.add_offset(record)",
        )
    ],
)
async def restart_forgets_open_transactions(play: Play) -> None:
    """A restarted coordinator loads committed offsets only, and no open transaction."""
    producer = play.producer()
    play.commit(5)
    producer.commit(9)
    await play.restart()
    play.fetch(stable=True)


@OPEN_TRANSACTIONS.add(
    "FETCH-10",
    "FETCH-12",
    source="plausible",
    edits=[
        Edit(
            "group.Group.begin_generation", "self.generation += 1", "self.generation += 1\n    self.uncommitted.clear()"
        )
    ],
)
async def rebalance_forgets_open_transactions(play: Play) -> None:
    """The end of a join phase discards the open transactions of the group."""
    producer, member = play.producer(), play.member("A")
    await play.form(member)
    producer.commit(9)
    play.rejoin(member)
    play.fetch(stable=True)


@OPEN_TRANSACTIONS.add(
    "FETCH-10",
    "FETCH-12",
    source="plausible; pending offsets kept by partition instead of by producer and partition",
    edits=[
        Edit(
            "offset_store.OffsetStore.add_offset",
            "group.uncommitted.setdefault",
            f"{_FORGET_PENDING}\n        group.uncommitted.setdefault",
        )
    ],
)
async def second_producer_takes_the_partition(play: Play) -> None:
    """The transaction of a second producer takes the place of that of the first on the same partition."""
    first, second = play.producer("P"), play.producer("Q")
    first.commit(8)
    second.commit(9)
    second.end(committed=False)
    play.fetch(stable=True)


SHARED_STATE = HeldoutFamily("state shared between groups")


@SHARED_STATE.add(
    "TIMER-11",
    "TIMER-12",
    source="plausible; a timer per offsets partition",
    edits=[
        Edit("rebalance.Rebalancer.start_sync_timer", '("sync", group_id)', '("sync",)'),
        Edit("rebalance.Rebalancer.mark_synced", '("sync", group.group_id)', '("sync",)'),
        Edit("rebalance.Rebalancer.clear_unsynced", '("sync", group.group_id)', '("sync",)'),
    ],
)
async def one_sync_timer_for_all_groups(play: Play) -> None:
    """All groups share one sync timer: a group that syncs stops that of another, whose idle member stays."""
    leader, idler, stranger = play.member("A"), play.member("B"), play.member("C", group="h")
    stranger.join()
    for actor in (leader, idler):
        actor.join()
    joins = [actor.join() for actor in (leader, idler, stranger)]
    await play.wait(2 * INITIAL_DELAY_MS)
    for actor, join in zip((leader, idler, stranger), joins, strict=True):
        actor.take(join)
    leader.sync({leader.id: b"all"})
    stranger.sync({stranger.id: b"all"})
    await play.wait(idler.rebalance + 1)
    idler.heartbeat()


@SHARED_STATE.add(
    "FETCH-12",
    source="plausible",
    edits=[
        Edit(
            "offset_store.OffsetStore.end_transaction",
            "for group in self._runtime.groups.values():",
            "committed = record.committed\n    for group in self._runtime.groups.values():",
        ),
        Edit("offset_store.OffsetStore.end_transaction", "if record.committed:", "if committed:"),
        Edit(
            "offset_store.OffsetStore.end_transaction",
            "self.commit_offset(group, partition, offset)",
            "self.commit_offset(group, partition, offset)\n        committed = committed and not offsets",
        ),
    ],
)
async def transaction_commits_in_one_group_only(play: Play) -> None:
    """A transaction over two groups commits its offsets in one of them and discards those of the other."""
    producer = play.producer()
    producer.commit(5, group="g")
    producer.commit(6, group="h")
    producer.end(committed=True)
    play.fetch("h", stable=True)


@SHARED_STATE.add(
    "FETCH-06",
    "FETCH-10",
    source="plausible",
    edits=[
        Edit(
            "offsets.Offsets.handle_fetch",
            "self.fetch_group(request, entry, stable),",
            'self.fetch_group(request, entry, stable and entry is request.body["groups"][0]),',
        )
    ],
)
async def batch_fetch_is_stable_for_the_first_group(play: Play) -> None:
    """A fetch of several groups that requires stable offsets does so for the first group only."""
    producer = play.producer()
    producer.commit(5, group="h")
    play.fetch("g", "h", stable=True)


RETENTION = HeldoutFamily("retention in parts")


@RETENTION.add(
    "COMMIT-25",
    "FETCH-01",
    source="plausible",
    edits=[
        Edit(
            "offset_store.OffsetStore.add_offset",
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
async def repeated_commit_does_not_extend_retention(play: Play) -> None:
    """A commit that changes nothing is optimised away, and so the retention counts from the first one."""
    play.commit(5)
    await play.wait(RETENTION_MS // 2)
    play.commit(5)
    await play.wait_until(RETENTION_MS + 1)
    play.fetch()


@RETENTION.add(
    "COMMIT-25",
    "FETCH-01",
    source="plausible",
    edits=[
        Edit(
            "cleanup.Cleanup.run_pass",
            "len(expired) == len(group.offsets) and",
            "(bool(expired) or not group.offsets) and",
        )
    ],
)
async def first_expired_offset_takes_the_group_along(play: Play) -> None:
    """An Empty group is removed with all its offsets as soon as one of them has expired."""
    play.commit(5)
    await play.wait(RETENTION_MS // 2)
    play.commit(6, partition=1)
    await play.wait_until(RETENTION_MS + 1)
    play.fetch(partitions=(1,))


@RETENTION.add(
    "COMMIT-25",
    "FAILOVER-12",
    "FAILOVER-14",
    source="plausible; of the family of KAFKA-4682",
    edits=[
        Edit(
            "loading.Loading.restore_group",
            "group.since = record.since",
            "group.since = group.since if group.generation else record.since",
        )
    ],
)
async def failover_loses_the_base_time_of_retention(play: Play) -> None:
    """After a failover the retention of an Empty group counts from its first generation, not from the end of its
    last member."""
    member = play.member("A")
    await play.form(member)
    member.commit(5)
    await play.wait(RETENTION_MS // 2, member)
    member.leave()
    await play.restart()
    await play.wait_until(RETENTION_MS + CLEANUP_MS)
    play.fetch()


IDLE_GROUPS = HeldoutFamily("Empty group without offsets")

_NEVER_GONE = "no requirement says that an Empty group without offsets and transactions goes away in the end"


@IDLE_GROUPS.add(
    source="plausible",
    edits=[
        Edit(
            "cleanup.Cleanup.is_removable",
            "group.state is State.EMPTY",
            "group.state is State.EMPTY and group.protocol_type is None",
        )
    ],
    not_blamed=_NEVER_GONE,
)
async def emptied_group_is_never_removed(play: Play) -> None:
    """The clean-up pass removes simple groups only: a group that had members once stays for ever."""
    member = play.member("A")
    await play.form(member)
    member.leave()
    await play.wait(CLEANUP_MS + INITIAL_DELAY_MS)
    play.describe()


@IDLE_GROUPS.add(
    source="plausible",
    edits=[
        Edit(
            "cleanup.Cleanup.run_pass",
            "expired = self.expired_partitions(group)",
            "expired = self.expired_partitions(group)\n        if not expired:\n            continue",
        )
    ],
    not_blamed=_NEVER_GONE,
)
async def group_stays_after_its_last_offset_was_deleted(play: Play) -> None:
    """The clean-up pass looks only at groups in which an offset expires: one whose offsets were deleted stays."""
    play.commit(5)
    play.delete_offset()
    await play.wait(CLEANUP_MS + 1)
    play.describe()


STABLE_FETCHES = HeldoutFamily("stable fetch after EndTxn")


@STABLE_FETCHES.add(
    "FETCH-10",
    "FETCH-12",
    source="plausible",
    edits=[
        Edit(
            "offset_store.OffsetStore.add_offset",
            "group.uncommitted.setdefault(record.producer, {})[partition] = offset",
            "pending = group.uncommitted.setdefault(record.producer, {})\n"
            "        if partition in pending:\n"
            "            group.uncommitted.setdefault(-1 - record.producer, {})[partition] = pending[partition]\n"
            "        pending[partition] = offset",
        )
    ],
)
async def offset_written_twice_stays_unstable(play: Play) -> None:
    """A partition that a transaction writes twice is counted twice as pending, and EndTxn counts it down once."""
    producer = play.producer()
    producer.commit(5)
    producer.commit(6)
    producer.end(committed=True)
    play.fetch()
    play.fetch(stable=True)


@STABLE_FETCHES.add(
    "FETCH-10",
    "FETCH-12",
    source="plausible",
    edits=[Edit("loading.Loading.replay", "case TransactionEnd():", "case TransactionEnd() if record.committed:")],
)
async def aborted_transaction_is_open_after_a_failover(play: Play) -> None:
    """A restarted coordinator skips the ends of aborted transactions, and so takes them to be open for ever."""
    producer = play.producer()
    producer.commit(5)
    producer.end(committed=False)
    play.fetch(stable=True)
    await play.restart()
    play.fetch(stable=True)


FENCED_PRODUCERS = HeldoutFamily("fenced producer epoch")

_NOT_FENCED = "no requirement says that a fenced producer epoch is refused, and a current one is not"


@FENCED_PRODUCERS.add(
    source="plausible; KIP-360, KIP-447",
    edits=[
        Edit(
            "transactions.Transactions.handle_end",
            "error = self.check_producer(request) or",
            "error = self.check_producer(request)\n"
            "    if error is Error.INVALID_PRODUCER_EPOCH:\n"
            "        error = Error.NONE\n"
            "    error = error or",
        )
    ],
    not_blamed=_NOT_FENCED,
)
async def fenced_producer_ends_the_transaction(play: Play) -> None:
    """EndTxn does not look at the epoch, so a fenced producer ends the transaction of its successor."""
    fenced = play.producer("P")
    successor = play.producer("P")
    successor.commit(6)
    fenced.end(committed=True)
    play.fetch(stable=True)


@FENCED_PRODUCERS.add(
    source="plausible; of the family of BUG-05",
    edits=[
        Edit(
            "loading.Loading.replay",
            "self._transactions.add_producer(record)",
            "if record.transactional_id not in self._transactions._producers:\n"
            "                self._transactions.add_producer(record)",
        )
    ],
    not_blamed=_NOT_FENCED,
)
async def failover_brings_a_fenced_epoch_back(play: Play) -> None:
    """A restarted coordinator goes by the first epoch of each transactional id: the current producer is fenced."""
    play.producer("P")
    successor = play.producer("P")
    successor.commit(6)
    await play.restart()
    successor.end(committed=True)
    play.fetch(stable=True)
