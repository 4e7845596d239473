"""A leader that changes while the members stay, and then a failover."""

from tests.acceptance.heldout_faults.fault import Edit, FaultFamily
from tests.acceptance.heldout_faults.play import Play, subscription

FAMILY = FaultFamily("leader change, then failover")


@FAMILY.add(
    "FAILOVER-02",
    "JOIN-31",
    source="plausible; of the family of BUG-37",
    edits=[Edit("group.Group.record", "self.leader", "next(iter(self.members), None)")],
)
async def log_names_the_oldest_member_as_leader(play: Play) -> None:
    """The log names the member that has been there longest as the leader, not the one that leads."""
    absent, successor = play.member("S", instance="i"), play.member("B")
    await play.form(absent, successor)
    successor.protocols = subscription("fencepost")
    join = successor.join()
    await play.wait(successor.rebalance)
    play.complete([successor], [join], None)
    await play.restart()
    successor.join()


@FAMILY.add(
    "FAILOVER-02",
    "STATIC-28",
    "JOIN-31",
    source="plausible; of the family of KAFKA-10284",
    edits=[
        Edit(
            "static_membership.StaticMembership.replace_member",
            "self._runtime.write(group.record())",
            'self._runtime.write(__import__("dataclasses").replace(group.record(), leader=former_leader))',
        ),
        Edit(
            "group.Group.choose_leader",
            "self.leader is not None and self.members[self.leader].has_rejoined",
            "self.leader in self.members and self.members[self.leader].has_rejoined",
        ),
    ],
)
async def log_names_the_predecessor_as_leader(play: Play) -> None:
    """A static leader that is replaced without a rebalance stays the leader in the log under its former id."""
    leader, follower = play.member("S", instance="i"), play.member("B")
    await play.form(leader, follower)
    replacement = play.member("T", instance="i")
    replacement.join()
    await play.restart()
    replacement.join()
