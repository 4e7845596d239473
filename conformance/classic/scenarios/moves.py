"""Groups that are moved to another node while their old coordinator stays up: the responses of both nodes.

A move takes other groups along, so each of these scenarios is played alone.
"""

from fencepost.conformance.classic.scenarios.commits import is_commit_accepted
from fencepost.conformance.classic.scenarios.lookups import coordinator_node, find_coordinator, is_offsets_topic_known
from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily

moves = ScenarioFamily()
MOVE = ("second-node", "graceful-move")
NOT_PARKED = "the request had its response before the group was moved"


@moves.add("FAILOVER-11", needs=MOVE)
async def parked_join_ends_with_a_move(group: ScenarioContext) -> None:
    """JoinGroup that waits for another member does not succeed when the group is moved."""
    members = await group.form_stable_group(group.member_without_heartbeats("A"), group.member_without_heartbeats("B"))

    for member in members:
        member.rebalance_timeout = group.long_session_timeout
    parked = group.join_with_new_metadata(members[0])
    await group.wait_for_state(PREPARING)
    reached = not parked.done
    await group.move()
    await group.check_refused_or_closed("FAILOVER-11", parked, reached=reached, note=NOT_PARKED)


@moves.add("FAILOVER-11", needs=MOVE)
async def parked_sync_ends_with_a_move(group: ScenarioContext) -> None:
    """SyncGroup that waits for the leader's assignment does not succeed when the group is moved."""
    members = group.member_without_heartbeats("A"), group.member_without_heartbeats("B")
    for member in members:
        member.rebalance_timeout = group.long_session_timeout
    _, follower = await group.form_generation(*members)

    parked = group.sync(follower)
    await group.sleep(group.short_pause)
    reached = not parked.done
    await group.move()
    await group.check_refused_or_closed("FAILOVER-11", parked, reached=reached, note=NOT_PARKED)


@moves.add("FAILOVER-18", needs=MOVE, smoke=True)
async def old_coordinator_rejects_requests(group: ScenarioContext) -> None:
    """The node that coordinated the group refuses the requests of its members; the new one takes them."""
    leader, follower = await group.form_stable_group(
        group.member_without_heartbeats("A"), group.member_without_heartbeats("B")
    )
    old = await coordinator_node(group, group.group_id)

    await group.move()
    await group.heartbeat(leader)
    with group.sending_to(old):
        await group.check("FAILOVER-18", group.heartbeat(leader), fields="error")
        await group.check("FAILOVER-18", group.sync(follower), fields="error")
        await group.check("FAILOVER-18", group.fetch(), fields="error")
        await group.check("FAILOVER-18", group.leave(follower), fields="error")
    await group.heartbeat(follower)


@moves.add("FAILOVER-20", needs=MOVE)
async def old_coordinator_accepts_no_commit(group: ScenarioContext) -> None:
    """Once the new coordinator responds, the old one takes no offsets, neither of a member nor of anybody else."""
    (a,) = await group.form_stable_group(group.member_without_heartbeats("A"))
    old = await coordinator_node(group, group.group_id)
    await group.commit(a, {0: 5})

    await group.move()
    await group.heartbeat(a)
    with group.sending_to(old):
        commits = group.commit(a, {0: 7}), group.commit(None, {0: 9})
    for commit in commits:
        await group.check("FAILOVER-20", commit, fields="accepted")
    if not any([await is_commit_accepted(commit) for commit in commits]):
        await group.fetch()  # what was refused is not stored either


@moves.add("FIND-04", needs=MOVE)
async def lookup_follows_a_move(group: ScenarioContext) -> None:
    """After a move, each node names the new leader of the partition of the offsets topic."""
    await group.commit(None, {0: 5})
    await group.move()
    known = await is_offsets_topic_known(group)
    for broker in group.description.brokers:
        call = find_coordinator(group, group.group_id, broker=broker)
        await group.check("FIND-04", call, fields="home", reached=known)
