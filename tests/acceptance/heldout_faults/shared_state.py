"""State that groups share: timers, transactions over two groups, fetches of several groups."""

from tests.acceptance.heldout_faults.fault import Edit, FaultFamily
from tests.acceptance.heldout_faults.play import INITIAL_DELAY_MS, Play

FAMILY = FaultFamily("state shared between groups")


@FAMILY.add(
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


@FAMILY.add(
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


@FAMILY.add(
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
