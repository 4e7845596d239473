"""What a group is after its coordinator was killed: all that was stored, and nothing that was not.

The restart is shared with other scenarios and takes a while, so members have sessions that outlast it.
"""

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

failovers = ScenarioFamily()
RESTART = ("restart",)


# --- a settled group -----------------------------------------------------------------------------------------------


@failovers.add("FAILOVER-02", needs=RESTART)
async def stable_group_comes_back(context: ScenarioContext) -> None:
    """State, members, protocol, generation and assignments are those of before."""
    leader, follower = await context.form_stable_group(
        context.member_without_heartbeats("A"), context.member_without_heartbeats("B")
    )
    await context.restart()
    described = context.describe_groups()
    await described
    context.check("FAILOVER-02", described)
    for member in (leader, follower):
        for call in (context.heartbeat(member), context.sync(member)):
            await call
            context.check("FAILOVER-02", call)


@failovers.add("FAILOVER-03", needs=RESTART)
async def failover_starts_no_rebalance(context: ScenarioContext) -> None:
    """Nobody is told to rejoin, then or later."""
    members = await context.form_stable_group(
        context.member_without_heartbeats("A"), context.member_without_heartbeats("B")
    )
    await context.restart()
    for _ in range(2):
        for member in members:
            call = context.heartbeat(member)
            await call
            context.check("FAILOVER-03", call)
        await context.sleep(context.rebalance_timeout)


@failovers.add("FAILOVER-13", needs=RESTART)
async def unchanged_follower_starts_no_rebalance(context: ScenarioContext) -> None:
    """Its only protocol is remembered, so it is answered from the generation that was stored."""
    leader, follower = await context.form_stable_group(
        context.member_without_heartbeats("A"), context.member_without_heartbeats("B")
    )
    await context.restart()
    rejoined = context.join(follower)
    await rejoined
    context.check("FAILOVER-13", rejoined, "error", "generation", "time")
    beaten = context.heartbeat(leader)
    await beaten
    context.check("FAILOVER-13", beaten)


@failovers.add("FAILOVER-10", needs=RESTART)
async def generation_goes_on(context: ScenarioContext) -> None:
    """The next round counts from the last one that was stored."""
    (a,) = await context.form_stable_group(context.member_without_heartbeats("A"))
    for call in await context.rebalance(a):
        await call
    await context.sync_all(a)
    await context.restart()
    call = context.join(a)
    await call
    context.check("FAILOVER-10", call, "generation")


@failovers.add("FAILOVER-05", needs=RESTART)
async def sync_repeated_after_storing(context: ScenarioContext) -> None:
    """Once the leader's SyncGroup is stored, leader and follower get their assignments at once."""
    leader, follower = await context.form_generation(
        context.member_without_heartbeats("A"), context.member_without_heartbeats("B")
    )
    await context.sync(leader, {member.id: member.label.encode() for member in (leader, follower)})
    await context.restart()
    for member in (follower, leader):
        call = context.sync(member)
        await call
        context.check("FAILOVER-05", call, "error", "assignment", "time")


# --- timers --------------------------------------------------------------------------------------------------------


@failovers.add("FAILOVER-04", needs=RESTART)
async def full_session_after_loading(context: ScenarioContext) -> None:
    """When the session of before would be over, the one that began with the loading is not."""
    a = context.member_without_heartbeats("A")
    a.session_timeout //= 2
    await context.form_stable_group(a)
    last = context.heartbeat(a)
    await last
    begun = context.now_ms
    await context.sleep(a.session_timeout // 4)
    await context.restart()
    await context.sleep(max(0, begun + a.session_timeout + context.short_pause - context.now_ms))
    in_time = context.now_ms < begun + a.session_timeout * 5 // 4
    call = context.heartbeat(a)
    await call
    context.check("FAILOVER-04", call, reached=in_time, note="the restart took longer than a session")


@failovers.add("FAILOVER-19", needs=RESTART)
async def rebalance_timeout_survives(context: ScenarioContext) -> None:
    """A round waits for an absent member as long as that one had said before the failover."""
    a, b = context.member_without_heartbeats("A"), context.member_without_heartbeats("B")
    a.rebalance_timeout, b.rebalance_timeout = 1_000, 3_000
    await context.form_stable_group(a, b)
    await context.restart()
    call = context.join_with_new_metadata(a)
    await call
    context.check("FAILOVER-19", call, "time")


# --- a round that was under way ------------------------------------------------------------------------------------


@failovers.add("FAILOVER-06", needs=RESTART)
async def unsynced_round_is_lost(context: ScenarioContext) -> None:
    """Its generation is not known any more."""
    (a,) = await context.form_stable_group(context.member_without_heartbeats("A"))
    await context.join(a)
    await context.restart()
    call = context.sync(a, {a.id: b"late"})
    await call
    context.check("FAILOVER-06", call)


@failovers.add("FAILOVER-06", needs=RESTART)
async def first_round_is_lost(context: ScenarioContext) -> None:
    """A group that never had an assignment has no members."""
    (a,) = await context.form_generation(context.member_without_heartbeats("A"))
    await context.restart()
    call = context.sync(a, {a.id: b"late"})
    await call
    context.check("FAILOVER-06", call)


@failovers.add("FAILOVER-07", needs=RESTART)
async def members_of_a_lost_round(context: ScenarioContext) -> None:
    """Those of the generation before are known under it, the newcomer is not."""
    (a,) = await context.form_stable_group(context.member_without_heartbeats("A"))
    stored, newcomer = a.generation, context.member_without_heartbeats("B")
    parked = await context.join_new(newcomer)
    await context.sleep(context.short_pause)
    await context.join(a)
    await parked
    await context.restart()
    known = context.heartbeat(a, generation_id=stored)
    await known
    context.check("FAILOVER-07", known)
    unknown = context.heartbeat(newcomer)
    await unknown
    context.check("FAILOVER-07", unknown, reached=newcomer.generation > stored)


@failovers.add("FAILOVER-07", needs=RESTART)
async def join_phase_is_lost(context: ScenarioContext) -> None:
    """The same when the coordinator dies while requests are parked."""
    members = await context.form_stable_group(
        context.member_without_heartbeats("A"), context.member_without_heartbeats("B")
    )
    for member in members:
        member.rebalance_timeout = context.long_session_timeout
    parked = context.join_with_new_metadata(members[0])
    await context.sleep(context.short_pause)
    context.require(not parked.done, "the round did not wait")
    await context.restart()
    for member in members:
        call = context.heartbeat(member)
        await call
        context.check("FAILOVER-07", call)


@failovers.add("FAILOVER-07", needs=RESTART)
async def departure_is_lost(context: ScenarioContext) -> None:
    """Who left without a round being stored is a member again, and its share is given away once its session ends."""
    a, leaver = (
        context.member_without_heartbeats("A"),
        context.member("B", session_timeout=max(context.session_timeout, 5_000)),
    )
    a.rebalance_timeout = leaver.rebalance_timeout = context.long_session_timeout
    await context.form_stable_group(a, leaver)
    await context.leave(leaver)
    await context.restart()
    described = context.describe_groups()
    await described
    context.check("FAILOVER-07", described, "members")
    await context.sleep_past(leaver.session_timeout)
    told = context.heartbeat(a)
    await told
    context.check("FAILOVER-07", told)


@failovers.add("FAILOVER-21", needs=RESTART)
async def share_of_a_leaver_is_given_away(context: ScenarioContext) -> None:
    """Whatever the restart makes of a departure, once the leaver's session would be over the others have to rejoin."""
    a, leaver = (
        context.member_without_heartbeats("A"),
        context.member("B", session_timeout=max(context.session_timeout, 5_000)),
    )
    a.rebalance_timeout = leaver.rebalance_timeout = context.long_session_timeout
    await context.form_stable_group(a, leaver)
    await context.leave(leaver)
    await context.restart()
    await context.sleep_past(leaver.session_timeout)
    told = context.heartbeat(a)
    await told
    context.check("FAILOVER-21", told)


@failovers.add("FAILOVER-08", needs=RESTART)
async def pending_ids_are_lost(context: ScenarioContext) -> None:
    """An id that was handed out and not used is a stranger's."""
    await context.form_stable_group(context.member_without_heartbeats("A"))
    x = context.member_without_heartbeats("X")
    handed_out = context.join(x, version=context.highest_version("JoinGroup", at_least=4))
    await handed_out
    await context.restart()
    call = context.join(x)
    await call
    context.check("FAILOVER-08", call, reached=handed_out.error == 79)


# --- groups without members ----------------------------------------------------------------------------------------


@failovers.add("FAILOVER-12", needs=RESTART)
async def offsets_survive(context: ScenarioContext) -> None:
    """All that was committed is there, with its metadata."""
    (a,) = await context.form_stable_group(context.member_without_heartbeats("A"))
    await context.commit(a, {0: 5, 1: {"committed_offset": 7, "committed_metadata": "kept"}})
    await context.restart()
    call = context.fetch((0, 1, 2))
    await call
    context.check("FAILOVER-12", call)


@failovers.add("FAILOVER-12", needs=RESTART)
async def lost_commit_stays_lost(context: ScenarioContext) -> None:
    """A commit that was under way when the coordinator was killed is there afterwards or is not, and that is that."""
    await context.commit(None, {0: 5})
    context.commit(None, {0: 7})
    await context.restart()
    for _ in range(2):
        call = context.fetch()
        await call
        context.check("FAILOVER-12", call, "offset")
        await context.sleep(4 * context.short_pause)


@failovers.add("FAILOVER-14", "FAILOVER-10", needs=RESTART)
async def emptied_group_comes_back(context: ScenarioContext) -> None:
    """It is Empty, and counts on."""
    (a,) = await context.form_stable_group(context.member_without_heartbeats("A"))
    await context.commit(a, {0: 5})
    await context.leave(a)
    await context.restart()
    described = context.describe_groups()
    await described
    context.check("FAILOVER-14", described, "state")
    joined = await context.join_new(context.member_without_heartbeats("B"))
    await joined
    context.check("FAILOVER-14", joined, "generation")
    context.check("FAILOVER-10", joined, "generation")


@failovers.add("FAILOVER-14", needs=RESTART)
async def simple_group_comes_back(context: ScenarioContext) -> None:
    """So does a group that only ever had offsets."""
    await context.commit(None, {0: 5})
    await context.restart()
    call = context.describe_groups()
    await call
    context.check("FAILOVER-14", call, "state")


@failovers.add("FAILOVER-15", needs=RESTART)
async def deleted_group_stays_deleted(context: ScenarioContext) -> None:
    """Neither the group nor its offsets come back."""
    (a,) = await context.form_stable_group(context.member_without_heartbeats("A"))
    await context.commit(a, {0: 5})
    await context.leave(a)
    await context.delete_groups()
    await context.restart()
    for call in (context.describe_groups(), context.fetch()):
        await call
        context.check("FAILOVER-15", call)
