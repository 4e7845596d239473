"""Held-out faults of members and their rebalances, kind by kind."""

from fencepost.adapters.classic.group import Group
from fencepost.adapters.classic.membership import Leaving, StaticMembership, Syncing
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.requests import RANGE
from tests.acceptance.heldout_faults.fault import Edit, HeldoutFamily

LEADER_FAILOVERS = HeldoutFamily("leader change, then failover")


@LEADER_FAILOVERS.add(
    "FAILOVER-02",
    "JOIN-31",
    source="plausible; of the family of BUG-37",
    edits=[Edit(Group.record, "self.leader", "next(iter(self.members), None)")],
)
async def log_names_the_oldest_member_as_leader(group: ScenarioContext) -> None:
    """The log names the member that has been there longest as the leader, not the one that leads."""
    absent, successor = group.member("S", instance="i"), group.member("B")
    await group.form_stable_group(absent, successor)
    join = group.join_with_new_metadata(successor)
    await group.sleep(successor.rebalance_timeout)
    await join
    await group.sync_leader(successor)
    await group.restart()
    group.join(successor)
    await group.sleep(group.short_pause)


@LEADER_FAILOVERS.add(
    "FAILOVER-02",
    "STATIC-28",
    "JOIN-31",
    source="plausible; of the family of KAFKA-10284",
    edits=[
        Edit(
            StaticMembership.replace_member,
            "self._runtime.write(group.record())",
            'self._runtime.write(__import__("dataclasses").replace(group.record(), leader=former_leader))',
        ),
        Edit(
            Group.choose_leader,
            "self.leader is not None and self.members[self.leader].has_rejoined",
            "self.leader in self.members and self.members[self.leader].has_rejoined",
        ),
    ],
)
async def log_names_the_predecessor_as_leader(group: ScenarioContext) -> None:
    """A static leader that is replaced without a rebalance stays the leader in the log under its former id."""
    leader, _ = await group.form_stable_group(group.member("S", instance="i"), group.member("B", instance="j"))
    replacement = group.replacement_of(leader)
    await group.join(replacement)
    await group.restart()
    group.join(replacement)
    await group.sleep(group.short_pause)


INCOMPLETE_PLANS = HeldoutFamily("member left out of a later plan")


@INCOMPLETE_PLANS.add(
    "SYNC-13",
    "GEN-16",
    source="plausible",
    edits=[
        Edit(
            Syncing.distribute_assignments,
            "member.assignment = assignments[member.member_id]",
            "member.assignment = assignments[member.member_id] or member.assignment",
        )
    ],
)
async def left_out_member_keeps_its_share(group: ScenarioContext) -> None:
    """A member that the leader leaves out keeps the assignment of the generation before."""
    members = await group.form_stable_group(*(group.member(label) for label in "AB"))
    await group.rebalance(*members)
    await group.sync_all(*members, plan={members[0].id: b"all"})


@INCOMPLETE_PLANS.add(
    "SYNC-25",
    "FAILOVER-02",
    "GEN-16",
    source="plausible",
    edits=[
        Edit(
            Syncing.assigned_record,
            "assignment=assignments[member.member_id]",
            "assignment=assignments[member.member_id] or member.assignment",
        )
    ],
)
async def log_keeps_the_share_of_a_left_out_member(group: ScenarioContext) -> None:
    """The log keeps the former assignment of a member that the leader leaves out, which shows after a failover."""
    members = await group.form_stable_group(*(group.member(label) for label in "AB"))
    await group.rebalance(*members)
    await group.sync_all(*members, plan={members[0].id: b"all"})
    await group.restart()
    await group.sync(members[1])


SUBSCRIPTIONS = HeldoutFamily("different subscriptions")


@SUBSCRIPTIONS.add(
    "ADMIN-25",
    "ADMIN-31",
    source="plausible",
    edits=[
        Edit(
            Group.find_subscriptions,
            "for member in self.members.values()",
            "for member in self.members.values() if member.member_id == self.leader",
        )
    ],
)
async def only_the_leader_subscribes(group: ScenarioContext) -> None:
    """The subscribed topics of a group are taken to be those of its leader."""
    leader = group.member("A", (RANGE, group.metadata("A", "other")))
    await group.form_stable_group(leader, group.member("B"))
    await group.delete_offsets([0])


@SUBSCRIPTIONS.add(
    "ADMIN-26",
    "ADMIN-31",
    source="plausible",
    edits=[
        Edit(
            Group.begin_generation,
            "self.subscribed = self.find_subscriptions()",
            "found = self.find_subscriptions()\n"
            "    self.subscribed = found | (self.subscribed or frozenset()) if found else found",
        )
    ],
)
async def subscriptions_only_grow(group: ScenarioContext) -> None:
    """A topic stays subscribed after the only member that subscribed to it has left a group that goes on."""
    leader = group.member("A", (RANGE, group.metadata("A", "other")))
    follower = group.member("B")
    await group.form_stable_group(leader, follower)
    await group.leave(follower)
    await group.rebalance(leader)
    await group.sync_all(leader)
    await group.delete_offsets([0])


STATIC_REBALANCES = HeldoutFamily("rebalance by a static replacement")

P_FIRST = (("p", b"mp"), ("q", b"mq"))
Q_FIRST = (("q", b"mq"), ("p", b"mp"))


@STATIC_REBALANCES.add(
    "TIMER-09",
    "JOIN-44",
    source="plausible; of the family of BUG-21",
    edits=[
        Edit(
            StaticMembership.replace_member,
            "self._rounds.trigger_rebalance(group)",
            "self._rounds.trigger_rebalance(group)\n"
            "        if group.state is State.PREPARING and not group.is_initial_rebalance:\n"
            "            deadline = self._runtime.now + join.rebalance_timeout\n"
            "            action = lambda: self._rounds.on_join_timer(group.group_id)\n"
            '            self._runtime.timers.arm(("join", group.group_id), deadline, action)',
        )
    ],
)
async def replacement_sets_the_rebalance_timeout(group: ScenarioContext) -> None:
    """A rebalance that a static replacement begins lasts as long as the replacement's own rebalance timeout, so that
    members with a longer one are dropped early."""
    absent, predecessor = group.member("A"), group.member("S", instance="i")
    absent.rebalance_timeout, predecessor.rebalance_timeout = 10_000, 2_000
    await group.form_generation(absent, predecessor)
    group.join(group.replacement_of(predecessor))
    await group.sleep(3_000)


@STATIC_REBALANCES.add(
    "GEN-09",
    "GEN-19",
    "STATIC-08",
    source="plausible",
    edits=[
        Edit(
            Group.select_protocol,
            "for member in self.members.values())",
            "for member in self.members.values() if member.has_rejoined)",
        )
    ],
)
async def absent_members_have_no_vote(group: ScenarioContext) -> None:
    """Only members that have rejoined vote on the protocol: a replacement decides alone whether it changes."""
    predecessor = group.member("S", *Q_FIRST, instance="i")
    voters = (group.member(label, *P_FIRST, instance=label) for label in "AB")
    leader, *_ = await group.form_stable_group(*voters, predecessor)
    group.join(group.replacement_of(predecessor))
    await group.heartbeat(leader)


FULL_GROUPS = HeldoutFamily("group at its maximum size")


@FULL_GROUPS.add(
    "JOIN-50",
    source="plausible",
    edits=[
        Edit(
            Group.accepts,
            "len(self.members) < limit",
            "len(self.members) + len(self.pending - {member_id}) < limit",
        )
    ],
)
async def pending_ids_of_others_take_up_room(group: ScenarioContext) -> None:
    """In a group that is not rebalancing, the pending ids of others count towards the maximum size."""
    labels = [f"M{number}" for number in range(group.settings.max_group_size - 1)]
    await group.form_stable_group(*map(group.member, labels))
    for label in "XY":
        await group.join(group.member(label))


@FULL_GROUPS.add(
    "JOIN-48",
    source="plausible; of the family of KAFKA-9885",
    edits=[
        Edit(
            Group.accepts,
            "return (member is not None and member.has_rejoined) or self.rejoined_count < limit",
            "return member is not None or len(self.members) < limit",
        )
    ],
)
async def absent_members_take_up_room(group: ScenarioContext) -> None:
    """In PreparingRebalance the maximum size counts members that have not rejoined."""
    labels = [f"M{number}" for number in range(group.settings.max_group_size)]
    leader, *_ = await group.form_stable_group(*map(group.member, labels))
    group.join(leader)
    await group.join(group.member("X"))


CLIENT_UPGRADES = HeldoutFamily("rolling upgrade of clients")


@CLIENT_UPGRADES.add(
    "GEN-09",
    "GEN-11",
    source="plausible",
    edits=[
        Edit(
            Group.select_protocol,
            "candidates = self.candidates()",
            "candidates = self.candidates()\n    if self.protocol in candidates:\n        return self.protocol",
        )
    ],
)
async def old_protocol_outlasts_the_upgrade(group: ScenarioContext) -> None:
    """The selected protocol is kept for as long as all members still offer it, whatever they prefer by now."""
    upgraded, old = group.member("A", "q", "p"), group.member("B", "p")
    members = await group.form_stable_group(upgraded, old)
    old.protocols = upgraded.protocols
    await group.rebalance(*members)


@CLIENT_UPGRADES.add(
    "LEAVE-20",
    "STATIC-29",
    source="plausible; KIP-345 read wrongly",
    edits=[
        Edit(
            Leaving.remove_entry,
            "self._rounds.remove_member(group, group.members[member_id])",
            "if instance_id is None and group.members[member_id].is_static:\n"
            "        return Error.NONE\n"
            "    self._rounds.remove_member(group, group.members[member_id])",
        )
    ],
)
async def old_leave_of_a_static_member_is_ignored(group: ScenarioContext) -> None:
    """A LeaveGroup of a version without instance ids is confirmed for a static member, which stays."""
    (member,) = await group.form_stable_group(group.member("S", instance="i"))
    await group.leave(member, version=2)
    await group.heartbeat(member)
