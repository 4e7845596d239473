"""What happens while a transaction is open: commits, deletions, clean-up, restart, rebalance, a second producer."""

from tests.acceptance.heldout_faults.fault import Edit, FaultFamily
from tests.acceptance.heldout_faults.play import RETENTION_MS, Play

FAMILY = FaultFamily("open transaction")

_FORGET_PENDING = "for pending in group.uncommitted.values():\n            pending.pop(partition, None)"


@FAMILY.add(
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


@FAMILY.add(
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


@FAMILY.add(
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


@FAMILY.add(
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


@FAMILY.add(
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


@FAMILY.add(
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
