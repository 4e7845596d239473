"""Held-out faults of members and their rebalances, kind by kind."""

from tests.acceptance.heldout_faults.fault import Edit, HeldoutFamily
from tests.acceptance.heldout_faults.play import INITIAL_DELAY_MS, MAX_SIZE, Play, subscription

LEADER_FAILOVERS = HeldoutFamily("leader change, then failover")


@LEADER_FAILOVERS.add(
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


@LEADER_FAILOVERS.add(
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


INCOMPLETE_PLANS = HeldoutFamily("member left out of a later plan")


@INCOMPLETE_PLANS.add(
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


@INCOMPLETE_PLANS.add(
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


SUBSCRIPTIONS = HeldoutFamily("different subscriptions")


@SUBSCRIPTIONS.add(
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


@SUBSCRIPTIONS.add(
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


STATIC_REBALANCES = HeldoutFamily("rebalance by a static replacement")

P_FIRST = (("p", b"mp"), ("q", b"mq"))
Q_FIRST = (("q", b"mq"), ("p", b"mp"))


@STATIC_REBALANCES.add(
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


@STATIC_REBALANCES.add(
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


FULL_GROUPS = HeldoutFamily("group at its maximum size")


@FULL_GROUPS.add(
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


@FULL_GROUPS.add(
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


CLIENT_UPGRADES = HeldoutFamily("rolling upgrade of clients")


@CLIENT_UPGRADES.add(
    "GEN-09",
    "GEN-11",
    source="plausible",
    edits=[
        Edit(
            "group.Group.select_protocol",
            "candidates = self.candidates()",
            "candidates = self.candidates()\n    if self.protocol in candidates:\n        return self.protocol",
        )
    ],
)
async def old_protocol_outlasts_the_upgrade(play: Play) -> None:
    """The selected protocol is kept for as long as all members still offer it, whatever they prefer by now."""
    upgraded, old = play.member("A", protocols=(("q", b""), ("p", b""))), play.member("B", protocols=(("p", b""),))
    await play.form(upgraded, old)
    old.protocols = upgraded.protocols
    play.rejoin(upgraded, old)


@CLIENT_UPGRADES.add(
    "LEAVE-20",
    "STATIC-29",
    source="plausible; KIP-345 read wrongly",
    edits=[
        Edit(
            "leaving.Leaving.remove_entry",
            "self._rounds.remove_member(group, group.members[member_id])",
            "if instance_id is None and group.members[member_id].is_static:\n"
            "        return Error.NONE\n"
            "    self._rounds.remove_member(group, group.members[member_id])",
        )
    ],
)
async def old_leave_of_a_static_member_is_ignored(play: Play) -> None:
    """A LeaveGroup of a version without instance ids is confirmed for a static member, which stays."""
    member = play.member("S", instance="i")
    await play.form(member)
    member.leave(version=2)
    member.heartbeat()
