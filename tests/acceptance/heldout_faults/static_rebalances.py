"""A rebalance that a static replacement begins, or would, with a member that is absent."""

from tests.acceptance.heldout_faults.fault import Edit, FaultFamily
from tests.acceptance.heldout_faults.play import INITIAL_DELAY_MS, Play

FAMILY = FaultFamily("rebalance by a static replacement")

P_FIRST = (("p", b"mp"), ("q", b"mq"))
Q_FIRST = (("q", b"mq"), ("p", b"mp"))


@FAMILY.add(
    "TIMER-09",
    "JOIN-44",
    source="plausible; of the family of BUG-21",
    edits=[
        Edit(
            "static_membership.StaticMembership.replace_member",
            "self._rounds.trigger_rebalance(group)",
            "self._rounds.trigger_rebalance(group)\n"
            "        if group.state is State.PREPARING and not group.is_initial_rebalance:\n"
            "            deadline = self._runtime.now + join.rebalance_timeout\n"
            "            action = lambda: self._rounds.on_join_timer(group.group_id)\n"
            '            self._runtime.timers.arm(("join", group.group_id), deadline, action)',
        )
    ],
)
async def replacement_sets_the_rebalance_timeout(play: Play) -> None:
    """A rebalance that a static replacement begins lasts as long as the replacement's own rebalance timeout, so that
    members with a longer one are dropped early."""
    absent = play.member("A", rebalance=10_000)
    predecessor = play.member("S", instance="i", rebalance=2_000)
    absent.join()
    for actor in (absent, predecessor):
        actor.join()
    await play.wait(2 * INITIAL_DELAY_MS)
    play.member("T", instance="i", rebalance=2_000).join()
    await play.wait(3_000)


@FAMILY.add(
    "GEN-09",
    "GEN-19",
    "STATIC-08",
    source="plausible",
    edits=[
        Edit(
            "group.Group.select_protocol",
            "for member in self.members.values())",
            "for member in self.members.values() if member.has_rejoined)",
        )
    ],
)
async def absent_members_have_no_vote(play: Play) -> None:
    """Only members that have rejoined vote on the protocol: a replacement decides alone whether it changes."""
    leader, follower = play.member("A", protocols=P_FIRST), play.member("B", protocols=P_FIRST)
    predecessor = play.member("S", instance="i", protocols=Q_FIRST)
    await play.form(leader, follower, predecessor)
    play.member("T", instance="i", protocols=Q_FIRST).join()
    leader.heartbeat()
