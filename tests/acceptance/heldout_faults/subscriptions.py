"""Members with different subscriptions."""

from tests.acceptance.heldout_faults.fault import Edit, FaultFamily
from tests.acceptance.heldout_faults.play import Play, subscription

FAMILY = FaultFamily("different subscriptions")


@FAMILY.add(
    "ADMIN-25",
    "ADMIN-31",
    source="plausible",
    edits=[
        Edit(
            "group.Group.find_subscriptions",
            "for member in self.members.values()",
            "for member in self.members.values() if member.member_id == self.leader",
        )
    ],
)
async def only_the_leader_subscribes(play: Play) -> None:
    """The subscribed topics of a group are taken to be those of its leader."""
    leader = play.member("A", protocols=subscription("other"))
    follower = play.member("B", protocols=subscription("fencepost"))
    await play.form(leader, follower)
    play.delete_offset()


@FAMILY.add(
    "ADMIN-26",
    "ADMIN-31",
    source="plausible",
    edits=[
        Edit(
            "group.Group.begin_generation",
            "self.subscribed = self.find_subscriptions()",
            "found = self.find_subscriptions()\n"
            "    self.subscribed = found | (self.subscribed or frozenset()) if found else found",
        )
    ],
)
async def subscriptions_only_grow(play: Play) -> None:
    """A topic stays subscribed after the only member that subscribed to it has left a group that goes on."""
    leader = play.member("A", protocols=subscription("other"))
    follower = play.member("B", protocols=subscription("fencepost"))
    await play.form(leader, follower)
    follower.leave()
    play.rejoin(leader)
    play.delete_offset()
