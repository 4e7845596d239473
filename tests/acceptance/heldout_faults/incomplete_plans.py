"""A plan that leaves a member out in a second generation."""

from tests.acceptance.heldout_faults.fault import Edit, FaultFamily
from tests.acceptance.heldout_faults.play import Play

FAMILY = FaultFamily("member left out of a later plan")


@FAMILY.add(
    "SYNC-13",
    "GEN-16",
    source="plausible",
    edits=[
        Edit(
            "syncing.Syncing.distribute_assignments",
            "member.assignment = assignments[member.member_id]",
            "member.assignment = assignments[member.member_id] or member.assignment",
        )
    ],
)
async def left_out_member_keeps_its_share(play: Play) -> None:
    """A member that the leader leaves out keeps the assignment of the generation before."""
    leader, follower = play.member("A"), play.member("B")
    await play.form(leader, follower)
    play.rejoin(leader, follower, plan={"A": b"all"})


@FAMILY.add(
    "SYNC-25",
    "FAILOVER-02",
    "GEN-16",
    source="plausible",
    edits=[
        Edit(
            "syncing.Syncing.assigned_record",
            "assignment=assignments[member.member_id]",
            "assignment=assignments[member.member_id] or member.assignment",
        )
    ],
)
async def log_keeps_the_share_of_a_left_out_member(play: Play) -> None:
    """The log keeps the former assignment of a member that the leader leaves out, which shows after a failover."""
    leader, follower = play.member("A"), play.member("B")
    await play.form(leader, follower)
    play.rejoin(leader, follower, plan={"A": b"all"})
    await play.restart()
    follower.sync()
