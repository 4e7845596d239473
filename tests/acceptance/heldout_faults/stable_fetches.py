"""A fetch of stable offsets, which is answered some time after EndTxn."""

from tests.acceptance.heldout_faults.fault import Edit, FaultFamily
from tests.acceptance.heldout_faults.play import Play

FAMILY = FaultFamily("stable fetch after EndTxn")


@FAMILY.add(
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


@FAMILY.add(
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
