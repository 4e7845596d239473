"""An Empty group without offsets, which goes away in the end."""

from tests.acceptance.heldout_faults.fault import Edit, FaultFamily
from tests.acceptance.heldout_faults.play import CLEANUP_MS, INITIAL_DELAY_MS, Play

FAMILY = FaultFamily("Empty group without offsets")

_NO_REQUIREMENT = "no requirement says that an Empty group without offsets and transactions goes away in the end"


@FAMILY.add(
    source="plausible",
    edits=[
        Edit(
            "cleanup.Cleanup.is_removable",
            "group.state is State.EMPTY",
            "group.state is State.EMPTY and group.protocol_type is None",
        )
    ],
    not_blamed=_NO_REQUIREMENT,
)
async def emptied_group_is_never_removed(play: Play) -> None:
    """The clean-up pass removes simple groups only: a group that had members once stays for ever."""
    member = play.member("A")
    await play.form(member)
    member.leave()
    await play.wait(CLEANUP_MS + INITIAL_DELAY_MS)
    play.describe()


@FAMILY.add(
    source="plausible",
    edits=[
        Edit(
            "cleanup.Cleanup.run_pass",
            "expired = self.expired_partitions(group)",
            "expired = self.expired_partitions(group)\n        if not expired:\n            continue",
        )
    ],
    not_blamed=_NO_REQUIREMENT,
)
async def group_stays_after_its_last_offset_was_deleted(play: Play) -> None:
    """The clean-up pass looks only at groups in which an offset expires: one whose offsets were deleted stays."""
    play.commit(5)
    play.delete_offset()
    await play.wait(CLEANUP_MS + 1)
    play.describe()
