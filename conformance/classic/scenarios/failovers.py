"""Groups after a kill of their coordinator: all that was stored is recovered, and nothing else.

Scenarios share the restart, which takes a while, so members have sessions that outlast it.
"""

from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.model.errors import Error

failovers = ScenarioFamily()
RESTART = ("restart",)


# --- a settled group -----------------------------------------------------------------------------------------------


@failovers.add("FAILOVER-02", needs=RESTART)
async def stable_group_comes_back(group: ScenarioContext) -> None:
    """State, members, protocol, generation and assignments are recovered."""
    leader, follower = await group.form_stable_group(
        group.member_without_heartbeats("A"), group.member_without_heartbeats("B")
    )

    await group.restart()
    await group.check("FAILOVER-02", group.describe_groups())
    for member in (leader, follower):
        for call in (group.heartbeat(member), group.sync(member)):
            await group.check("FAILOVER-02", call)


@failovers.add("FAILOVER-03", needs=RESTART)
async def failover_starts_no_rebalance(group: ScenarioContext) -> None:
    """No member has to rejoin, right after the failover or later."""
    members = await group.form_stable_group(group.member_without_heartbeats("A"), group.member_without_heartbeats("B"))
    await group.restart()
    for _ in range(2):
        for member in members:
            await group.check("FAILOVER-03", group.heartbeat(member))
        await group.sleep(group.rebalance_timeout)


@failovers.add("FAILOVER-13", needs=RESTART)
async def unchanged_follower_starts_no_rebalance(group: ScenarioContext) -> None:
    """A follower that rejoins unchanged gets the stored generation at once."""
    leader, follower = await group.form_stable_group(
        group.member_without_heartbeats("A"), group.member_without_heartbeats("B")
    )

    await group.restart()
    await group.check("FAILOVER-13", group.join(follower), fields=("error", "generation", "time"))
    await group.check("FAILOVER-13", group.heartbeat(leader))


@failovers.add("FAILOVER-10", needs=RESTART)
async def generation_goes_on(group: ScenarioContext) -> None:
    """The next generation follows the last stored one."""
    (a,) = await group.form_stable_group(group.member_without_heartbeats("A"))
    for call in await group.rebalance(a):
        await call
    await group.sync_all(a)

    await group.restart()
    await group.check("FAILOVER-10", group.join(a), fields="generation")


@failovers.add("FAILOVER-05", needs=RESTART)
async def sync_repeated_after_storing(group: ScenarioContext) -> None:
    """Once the leader's SyncGroup is stored, leader and follower get their assignments at once."""
    leader, follower = await group.form_generation(
        group.member_without_heartbeats("A"), group.member_without_heartbeats("B")
    )

    await group.sync(leader, {member.id: member.label.encode() for member in (leader, follower)})
    await group.restart()

    for member in (follower, leader):
        await group.check("FAILOVER-05", group.sync(member), fields=("error", "assignment", "time"))


# --- timers --------------------------------------------------------------------------------------------------------


@failovers.add("FAILOVER-04", needs=RESTART)
async def full_session_after_loading(group: ScenarioContext) -> None:
    """Loading starts a full session: it outlasts the end of the session before."""
    a = group.member_without_heartbeats("A")
    a.session_timeout //= 2
    await group.form_stable_group(a)

    last = group.heartbeat(a)
    await last
    started = group.now_ms
    await group.sleep(a.session_timeout // 4)
    await group.restart()
    await group.sleep(max(0, started + a.session_timeout + group.short_pause - group.now_ms))
    in_time = group.now_ms < started + a.session_timeout * 5 // 4

    await group.check("FAILOVER-04", group.heartbeat(a), reached=in_time, note="the restart took longer than a session")


@failovers.add("FAILOVER-19", needs=RESTART)
async def rebalance_timeout_survives(group: ScenarioContext) -> None:
    """A join phase waits for an absent member by the rebalance timeout from before the failover."""
    a, b = group.member_without_heartbeats("A"), group.member_without_heartbeats("B")
    a.rebalance_timeout, b.rebalance_timeout = 1_000, 3_000
    await group.form_stable_group(a, b)

    await group.restart()
    await group.check("FAILOVER-19", group.join_with_new_metadata(a), fields="time")


# --- a round that was under way ------------------------------------------------------------------------------------


@failovers.add("FAILOVER-06", needs=RESTART)
async def unsynced_round_is_lost(group: ScenarioContext) -> None:
    """The generation of a rebalance without SyncGroup is unknown."""
    (a,) = await group.form_stable_group(group.member_without_heartbeats("A"))

    await group.join(a)
    await group.restart()

    await group.check("FAILOVER-06", group.sync(a, {a.id: b"late"}))


@failovers.add("FAILOVER-06", needs=RESTART)
async def first_round_is_lost(group: ScenarioContext) -> None:
    """A group without a stored assignment has no members."""
    (a,) = await group.form_generation(group.member_without_heartbeats("A"))
    await group.restart()
    await group.check("FAILOVER-06", group.sync(a, {a.id: b"late"}))


@failovers.add("FAILOVER-07", needs=RESTART)
async def members_of_a_lost_round(group: ScenarioContext) -> None:
    """Members of the generation before are known under it; the newcomer is not."""
    (a,) = await group.form_stable_group(group.member_without_heartbeats("A"))

    stored, newcomer = a.generation, group.member_without_heartbeats("B")
    parked = await group.join_new(newcomer)
    await group.sleep(group.short_pause)
    await group.join(a)
    await parked
    await group.restart()

    await group.check("FAILOVER-07", group.heartbeat(a, generation_id=stored))
    await group.check("FAILOVER-07", group.heartbeat(newcomer), reached=newcomer.generation > stored)


@failovers.add("FAILOVER-07", needs=RESTART)
async def join_phase_is_lost(group: ScenarioContext) -> None:
    """If the coordinator dies while requests are parked, the members of the generation before are known."""
    members = await group.form_stable_group(group.member_without_heartbeats("A"), group.member_without_heartbeats("B"))

    for member in members:
        member.rebalance_timeout = group.long_session_timeout
    parked = group.join_with_new_metadata(members[0])
    await group.sleep(group.short_pause)
    group.require(not parked.done, "the round did not wait")
    await group.restart()

    for member in members:
        await group.check("FAILOVER-07", group.heartbeat(member))


@failovers.add("FAILOVER-07", needs=RESTART)
async def departure_is_lost(group: ScenarioContext) -> None:
    """A departure that was not stored is undone, and the member's session expires again."""
    a, leaver = (
        group.member_without_heartbeats("A"),
        group.member("B", session_timeout=max(group.session_timeout, 5_000)),
    )
    a.rebalance_timeout = leaver.rebalance_timeout = group.long_session_timeout
    await group.form_stable_group(a, leaver)

    await group.leave(leaver)
    await group.restart()

    await group.check("FAILOVER-07", group.describe_groups(), fields="members")
    await group.sleep_past(leaver.session_timeout)
    await group.check("FAILOVER-07", group.heartbeat(a))


@failovers.add("FAILOVER-21", needs=RESTART)
async def share_of_a_leaver_is_given_away(group: ScenarioContext) -> None:
    """After a failover, the others have to rejoin once the session of a departed member would have expired."""
    a, leaver = (
        group.member_without_heartbeats("A"),
        group.member("B", session_timeout=max(group.session_timeout, 5_000)),
    )
    a.rebalance_timeout = leaver.rebalance_timeout = group.long_session_timeout
    await group.form_stable_group(a, leaver)

    await group.leave(leaver)
    await group.restart()
    await group.sleep_past(leaver.session_timeout)

    await group.check("FAILOVER-21", group.heartbeat(a))


@failovers.add("FAILOVER-08", needs=RESTART)
async def pending_ids_are_lost(group: ScenarioContext) -> None:
    """A member id that was issued but not used is unknown."""
    await group.form_stable_group(group.member_without_heartbeats("A"))

    x = group.member_without_heartbeats("X")
    issued = group.join(x, version=group.highest_version("JoinGroup", at_least=4))
    await issued
    await group.restart()

    await group.check("FAILOVER-08", group.join(x), reached=issued.error == Error.MEMBER_ID_REQUIRED)


# --- groups without members ----------------------------------------------------------------------------------------


@failovers.add("FAILOVER-12", needs=RESTART)
async def offsets_survive(group: ScenarioContext) -> None:
    """Committed offsets are recovered with their metadata."""
    (a,) = await group.form_stable_group(group.member_without_heartbeats("A"))

    await group.commit(a, {0: 5, 1: {"committed_offset": 7, "committed_metadata": "kept"}})
    await group.restart()

    await group.check("FAILOVER-12", group.fetch((0, 1, 2)))


@failovers.add("FAILOVER-12", needs=RESTART)
async def lost_commit_stays_lost(group: ScenarioContext) -> None:
    """A commit in flight at the kill is stored or lost, once and for all."""
    await group.commit(None, {0: 5})
    group.commit(None, {0: 7})
    await group.restart()

    for _ in range(2):
        await group.check("FAILOVER-12", group.fetch(), fields="offset")
        await group.sleep(4 * group.short_pause)


@failovers.add("FAILOVER-14", "FAILOVER-10", needs=RESTART)
async def emptied_group_comes_back(group: ScenarioContext) -> None:
    """A group that its members have left is Empty, and its generations go on."""
    (a,) = await group.form_stable_group(group.member_without_heartbeats("A"))

    await group.commit(a, {0: 5})
    await group.leave(a)
    await group.restart()

    await group.check("FAILOVER-14", group.describe_groups(), fields="state")
    await group.check(
        ("FAILOVER-14", "FAILOVER-10"), await group.join_new(group.member_without_heartbeats("B")), fields="generation"
    )


@failovers.add("FAILOVER-14", needs=RESTART)
async def simple_group_comes_back(group: ScenarioContext) -> None:
    """A group that only held offsets is recovered."""
    await group.commit(None, {0: 5})
    await group.restart()
    await group.check("FAILOVER-14", group.describe_groups(), fields="state")


@failovers.add("FAILOVER-15", needs=RESTART)
async def deleted_group_stays_deleted(group: ScenarioContext) -> None:
    """A deleted group is not recovered, nor are its offsets."""
    (a,) = await group.form_stable_group(group.member_without_heartbeats("A"))

    await group.commit(a, {0: 5})
    await group.leave(a)
    await group.delete_groups()
    await group.restart()

    for call in (group.describe_groups(), group.fetch()):
        await group.check("FAILOVER-15", call)
