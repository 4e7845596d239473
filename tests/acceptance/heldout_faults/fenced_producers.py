"""A producer epoch that was fenced by a newer one."""

from tests.acceptance.heldout_faults.fault import Edit, FaultFamily
from tests.acceptance.heldout_faults.play import Play

FAMILY = FaultFamily("fenced producer epoch")

_NO_REQUIREMENT = "no requirement says that a fenced producer epoch is refused, and a current one is not"


@FAMILY.add(
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
    not_blamed=_NO_REQUIREMENT,
)
async def fenced_producer_ends_the_transaction(play: Play) -> None:
    """EndTxn does not look at the epoch, so a fenced producer ends the transaction of its successor."""
    fenced = play.producer("P")
    successor = play.producer("P")
    successor.commit(6)
    fenced.end(committed=True)
    play.fetch(stable=True)


@FAMILY.add(
    source="plausible; of the family of BUG-05",
    edits=[
        Edit(
            "loading.Loading.replay",
            "self._transactions.add_producer(record)",
            "if record.transactional_id not in self._transactions._producers:\n"
            "                self._transactions.add_producer(record)",
        )
    ],
    not_blamed=_NO_REQUIREMENT,
)
async def failover_brings_a_fenced_epoch_back(play: Play) -> None:
    """A restarted coordinator goes by the first epoch of each transactional id: the current producer is fenced."""
    play.producer("P")
    successor = play.producer("P")
    successor.commit(6)
    await play.restart()
    successor.end(committed=True)
    play.fetch(stable=True)
