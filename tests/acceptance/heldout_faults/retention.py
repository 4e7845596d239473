"""Retention that is not waited out as a whole: part of the offsets, its base time, its edge."""

from tests.acceptance.heldout_faults.fault import Edit, FaultFamily
from tests.acceptance.heldout_faults.play import CLEANUP_MS, RETENTION_MS, Play

FAMILY = FaultFamily("retention in parts")


@FAMILY.add(
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


@FAMILY.add(
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


@FAMILY.add(
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
