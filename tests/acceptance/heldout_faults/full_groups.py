"""A group at its maximum size."""

from tests.acceptance.heldout_faults.fault import Edit, FaultFamily
from tests.acceptance.heldout_faults.play import MAX_SIZE, Play

FAMILY = FaultFamily("group at its maximum size")


@FAMILY.add(
    "JOIN-50",
    source="plausible",
    edits=[
        Edit(
            "group.Group.accepts",
            "len(self.members) < limit",
            "len(self.members) + len(self.pending - {member_id}) < limit",
        )
    ],
)
async def pending_ids_of_others_take_up_room(play: Play) -> None:
    """In a group that is not rebalancing, the pending ids of others count towards the maximum size."""
    await play.form(*(play.member(f"M{number}") for number in range(MAX_SIZE - 1)))
    first, second = play.member("X"), play.member("Y")
    first.join()
    second.join()


@FAMILY.add(
    "JOIN-48",
    source="plausible; of the family of KAFKA-9885",
    edits=[
        Edit(
            "group.Group.accepts",
            "return (member is not None and member.has_rejoined) or self.rejoined_count < limit",
            "return member is not None or len(self.members) < limit",
        )
    ],
)
async def absent_members_take_up_room(play: Play) -> None:
    """In PreparingRebalance the maximum size counts members that have not rejoined."""
    members = [play.member(f"M{number}") for number in range(MAX_SIZE)]
    await play.form(*members)
    members[0].join()
    play.member("X").join()
