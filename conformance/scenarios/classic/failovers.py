"""What a group is after its coordinator was killed: all that was stored, and nothing that was not.

The restart is shared with other scenarios and takes a while, so members have sessions that outlast it.
"""

from fencepost.conformance.scenario.context import Stage
from fencepost.conformance.scenario.scenario import Collection

failovers = Collection()
RESTART = ("restart",)


# --- a settled group -----------------------------------------------------------------------------------------------


@failovers.add("FAILOVER-02", needs=RESTART)
async def stable_group_comes_back(stage: Stage) -> None:
    """State, members, protocol, generation and assignments are those of before."""
    leader, follower = await stage.stable(stage.silent("A"), stage.silent("B"))
    await stage.restart()
    described = stage.describe()
    await described
    stage.shows("FAILOVER-02", described)
    for member in (leader, follower):
        for call in (stage.heartbeat(member), stage.sync(member)):
            await call
            stage.shows("FAILOVER-02", call)


@failovers.add("FAILOVER-03", needs=RESTART)
async def failover_starts_no_rebalance(stage: Stage) -> None:
    """Nobody is told to rejoin, then or later."""
    members = await stage.stable(stage.silent("A"), stage.silent("B"))
    await stage.restart()
    for _ in range(2):
        for member in members:
            call = stage.heartbeat(member)
            await call
            stage.shows("FAILOVER-03", call)
        await stage.sleep(stage.rebalance)


@failovers.add("FAILOVER-13", needs=RESTART)
async def unchanged_follower_starts_no_rebalance(stage: Stage) -> None:
    """Its only protocol is remembered, so it is answered from the generation that was stored."""
    leader, follower = await stage.stable(stage.silent("A"), stage.silent("B"))
    await stage.restart()
    rejoined = stage.join(follower)
    await rejoined
    stage.shows("FAILOVER-13", rejoined, "error", "generation", "time")
    beaten = stage.heartbeat(leader)
    await beaten
    stage.shows("FAILOVER-13", beaten)


@failovers.add("FAILOVER-10", needs=RESTART)
async def generation_goes_on(stage: Stage) -> None:
    """The next round counts from the last one that was stored."""
    (a,) = await stage.stable(stage.silent("A"))
    for call in await stage.regroup(a):
        await call
    await stage.settle(a)
    await stage.restart()
    call = stage.join(a)
    await call
    stage.shows("FAILOVER-10", call, "generation")


@failovers.add("FAILOVER-05", needs=RESTART)
async def sync_repeated_after_storing(stage: Stage) -> None:
    """Once the leader's SyncGroup is stored, leader and follower get their assignments at once."""
    leader, follower = await stage.completing(stage.silent("A"), stage.silent("B"))
    await stage.sync(leader, {member.id: member.label.encode() for member in (leader, follower)})
    await stage.restart()
    for member in (follower, leader):
        call = stage.sync(member)
        await call
        stage.shows("FAILOVER-05", call, "error", "assignment", "time")


# --- timers --------------------------------------------------------------------------------------------------------


@failovers.add("FAILOVER-04", needs=RESTART)
async def full_session_after_loading(stage: Stage) -> None:
    """When the session of before would be over, the one that began with the loading is not."""
    a = stage.silent("A")
    a.session //= 2
    await stage.stable(a)
    last = stage.heartbeat(a)
    await last
    begun = stage.clock
    await stage.sleep(a.session // 4)
    await stage.restart()
    await stage.sleep(max(0, begun + a.session + stage.step - stage.clock))
    in_time = stage.clock < begun + a.session * 5 // 4
    call = stage.heartbeat(a)
    await call
    stage.shows("FAILOVER-04", call, met=in_time, note="the restart took longer than a session")


@failovers.add("FAILOVER-19", needs=RESTART)
async def rebalance_timeout_survives(stage: Stage) -> None:
    """A round waits for an absent member as long as that one had said before the failover."""
    a, b = stage.silent("A"), stage.silent("B")
    a.rebalance, b.rebalance = 1_000, 3_000
    await stage.stable(a, b)
    await stage.restart()
    call = stage.join_changed(a)
    await call
    stage.shows("FAILOVER-19", call, "time")


# --- a round that was under way ------------------------------------------------------------------------------------


@failovers.add("FAILOVER-06", needs=RESTART)
async def unsynced_round_is_lost(stage: Stage) -> None:
    """Its generation is not known any more."""
    (a,) = await stage.stable(stage.silent("A"))
    await stage.join(a)
    await stage.restart()
    call = stage.sync(a, {a.id: b"late"})
    await call
    stage.shows("FAILOVER-06", call)


@failovers.add("FAILOVER-06", needs=RESTART)
async def first_round_is_lost(stage: Stage) -> None:
    """A group that never had an assignment has no members."""
    (a,) = await stage.completing(stage.silent("A"))
    await stage.restart()
    call = stage.sync(a, {a.id: b"late"})
    await call
    stage.shows("FAILOVER-06", call)


@failovers.add("FAILOVER-07", needs=RESTART)
async def members_of_a_lost_round(stage: Stage) -> None:
    """Those of the generation before are known under it, the newcomer is not."""
    (a,) = await stage.stable(stage.silent("A"))
    stored, newcomer = a.generation, stage.silent("B")
    parked = await stage.enter(newcomer)
    await stage.sleep(stage.step)
    await stage.join(a)
    await parked
    await stage.restart()
    known = stage.heartbeat(a, generation_id=stored)
    await known
    stage.shows("FAILOVER-07", known)
    unknown = stage.heartbeat(newcomer)
    await unknown
    stage.shows("FAILOVER-07", unknown, met=newcomer.generation > stored)


@failovers.add("FAILOVER-07", needs=RESTART)
async def join_phase_is_lost(stage: Stage) -> None:
    """The same when the coordinator dies while requests are parked."""
    members = await stage.stable(stage.silent("A"), stage.silent("B"))
    for member in members:
        member.rebalance = stage.long_session
    parked = stage.join_changed(members[0])
    await stage.sleep(stage.step)
    stage.need(not parked.done, "the round did not wait")
    await stage.restart()
    for member in members:
        call = stage.heartbeat(member)
        await call
        stage.shows("FAILOVER-07", call)


@failovers.add("FAILOVER-07", needs=RESTART)
async def departure_is_lost(stage: Stage) -> None:
    """Who left without a round being stored is a member again, and its share is given away once its session ends."""
    a, leaver = stage.silent("A"), stage.member("B", session=max(stage.session, 5_000))
    a.rebalance = leaver.rebalance = stage.long_session
    await stage.stable(a, leaver)
    await stage.leave(leaver)
    await stage.restart()
    described = stage.describe()
    await described
    stage.shows("FAILOVER-07", described, "members")
    await stage.sleep_past(leaver.session)
    told = stage.heartbeat(a)
    await told
    stage.shows("FAILOVER-07", told)


@failovers.add("FAILOVER-21", needs=RESTART)
async def share_of_a_leaver_is_given_away(stage: Stage) -> None:
    """Whatever the restart makes of a departure, once the leaver's session would be over the others have to rejoin."""
    a, leaver = stage.silent("A"), stage.member("B", session=max(stage.session, 5_000))
    a.rebalance = leaver.rebalance = stage.long_session
    await stage.stable(a, leaver)
    await stage.leave(leaver)
    await stage.restart()
    await stage.sleep_past(leaver.session)
    told = stage.heartbeat(a)
    await told
    stage.shows("FAILOVER-21", told)


@failovers.add("FAILOVER-08", needs=RESTART)
async def pending_ids_are_lost(stage: Stage) -> None:
    """An id that was handed out and not used is a stranger's."""
    await stage.stable(stage.silent("A"))
    x = stage.silent("X")
    handed_out = stage.join(x, version=stage.version("JoinGroup", at_least=4))
    await handed_out
    await stage.restart()
    call = stage.join(x)
    await call
    stage.shows("FAILOVER-08", call, met=handed_out.error == 79)


# --- groups without members ----------------------------------------------------------------------------------------


@failovers.add("FAILOVER-12", needs=RESTART)
async def offsets_survive(stage: Stage) -> None:
    """All that was committed is there, with its metadata."""
    (a,) = await stage.stable(stage.silent("A"))
    await stage.commit(a, {0: 5, 1: {"committed_offset": 7, "committed_metadata": "kept"}})
    await stage.restart()
    call = stage.fetch((0, 1, 2))
    await call
    stage.shows("FAILOVER-12", call)


@failovers.add("FAILOVER-12", needs=RESTART)
async def lost_commit_stays_lost(stage: Stage) -> None:
    """A commit that was under way when the coordinator was killed is there afterwards or is not, and that is that."""
    await stage.commit(None, {0: 5})
    stage.commit(None, {0: 7})
    await stage.restart()
    for _ in range(2):
        call = stage.fetch()
        await call
        stage.shows("FAILOVER-12", call, "offset")
        await stage.sleep(4 * stage.step)


@failovers.add("FAILOVER-14", "FAILOVER-10", needs=RESTART)
async def emptied_group_comes_back(stage: Stage) -> None:
    """It is Empty, and counts on."""
    (a,) = await stage.stable(stage.silent("A"))
    await stage.commit(a, {0: 5})
    await stage.leave(a)
    await stage.restart()
    described = stage.describe()
    await described
    stage.shows("FAILOVER-14", described, "state")
    joined = await stage.enter(stage.silent("B"))
    await joined
    stage.shows("FAILOVER-14", joined, "generation")
    stage.shows("FAILOVER-10", joined, "generation")


@failovers.add("FAILOVER-14", needs=RESTART)
async def simple_group_comes_back(stage: Stage) -> None:
    """So does a group that only ever had offsets."""
    await stage.commit(None, {0: 5})
    await stage.restart()
    call = stage.describe()
    await call
    stage.shows("FAILOVER-14", call, "state")


@failovers.add("FAILOVER-15", needs=RESTART)
async def deleted_group_stays_deleted(stage: Stage) -> None:
    """Neither the group nor its offsets come back."""
    (a,) = await stage.stable(stage.silent("A"))
    await stage.commit(a, {0: 5})
    await stage.leave(a)
    await stage.delete()
    await stage.restart()
    for call in (stage.describe(), stage.fetch()):
        await call
        stage.shows("FAILOVER-15", call)
