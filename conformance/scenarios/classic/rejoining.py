"""JoinGroup within the group: what begins a join phase, what ends it, and what does neither."""

from fencepost.conformance.scenario.admin_requests import PREPARING
from fencepost.conformance.scenario.context import Stage
from fencepost.conformance.scenario.scenario import Collection

rejoining = Collection()


@rejoining.add("JOIN-24", smoke=True)
async def newcomer_in_stable(stage: Stage) -> None:
    """A newcomer has to wait for the members, and they are told."""
    (a,) = await stage.stable(stage.member("A"))
    newcomer = await stage.enter(stage.member("B"))
    begun = await stage.reaches(PREPARING)
    told = stage.heartbeat(a)
    body = await told
    stage.shows("JOIN-24", told, met=begun or body["error_code"] == 27)
    await stage.join(a)
    await newcomer


@rejoining.add("JOIN-25")
async def newcomer_in_completing(stage: Stage) -> None:
    """A newcomer ends the sync phase for a follower that waits for its assignment."""
    leader, follower = await stage.completing(stage.member("A"), stage.member("B"))
    waiting = stage.sync(follower)
    await stage.sleep(stage.step)
    newcomer = await stage.enter(stage.member("C"))
    await waiting
    stage.shows("JOIN-25", waiting)
    rejoined = stage.join(follower)
    await stage.join(leader)
    await rejoined
    await newcomer


@rejoining.add("JOIN-26")
async def rejoin_waits_for_the_others(stage: Stage) -> None:
    """One of two members comes back; it waits for the other."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    newcomer = await stage.enter(stage.member("C"))
    await stage.reaches(PREPARING)
    call = stage.join(b)
    await stage.sleep(2 * stage.step)
    await stage.join(a)
    await call
    stage.shows("JOIN-26", call, "time")
    await newcomer


@rejoining.add("JOIN-27")
async def last_rejoin_completes_the_phase(stage: Stage) -> None:
    """As soon as the second of two members is back, both are answered."""
    long = stage.session + 2 * stage.grace
    a, b = await stage.stable(stage.member("A", session=long), stage.member("B", session=long))
    for call in await stage.regroup(a, b):
        stage.shows("JOIN-27", call)


@rejoining.add("JOIN-29")
async def same_again_in_completing(stage: Stage) -> None:
    """Members that ask again in the sync phase get what they were told before, and the round goes on."""
    leader, follower = await stage.completing(stage.member("A"), stage.member("B"))
    for member in (leader, follower):
        call = stage.join(member)
        await call
        stage.shows("JOIN-29", call, "error", "generation", "members")
    call = stage.lead(leader, follower)
    await call
    stage.shows("JOIN-29", call)


@rejoining.add("JOIN-30")
async def change_in_completing(stage: Stage) -> None:
    """Other metadata in the sync phase begins a new round."""
    (a,) = await stage.completing(stage.member("A"))
    call = stage.join_changed(a)
    await call
    stage.shows("JOIN-30", call, "generation")


@rejoining.add("JOIN-31", smoke=True)
async def leader_rejoins_in_stable(stage: Stage) -> None:
    """The leader's JoinGroup begins a round though nothing changed."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    call = stage.join(a)
    begun = await stage.reaches(PREPARING)
    told = stage.heartbeat(b)
    body = await told
    stage.shows("JOIN-31", told, met=begun or body["error_code"] == 27)
    await stage.join(b)
    await call
    stage.shows("JOIN-31", call, "time")


@rejoining.add("JOIN-32")
async def follower_rejoins_unchanged(stage: Stage) -> None:
    """A follower that asks again is told the current generation at once, and nobody else notices."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    call = stage.join(b)
    await call
    stage.shows("JOIN-32", call, "error", "generation", "leader", "members")
    undisturbed = stage.heartbeat(a)
    await undisturbed
    stage.shows("JOIN-32", undisturbed)


@rejoining.add("JOIN-33")
async def follower_rejoins_changed(stage: Stage) -> None:
    """Other metadata of a follower begins a round."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    call = stage.join_changed(b)
    begun = await stage.reaches(PREPARING)
    told = stage.heartbeat(a)
    body = await told
    stage.shows("JOIN-33", told, met=begun or body["error_code"] == 27)
    await stage.join(a)
    await call
    stage.shows("JOIN-33", call, "time")


@rejoining.add("JOIN-34")
async def order_of_protocols_counts(stage: Stage) -> None:
    """The same protocols the other way round begin a round."""
    a, b = await stage.stable(stage.member("A", "p", "q"), stage.member("B", "p", "q"))
    turned = [{"name": name, "metadata": metadata} for name, metadata in reversed(b.protocols)]
    call = stage.join(b, protocols=turned)
    begun = await stage.reaches(PREPARING)
    told = stage.heartbeat(a)
    body = await told
    stage.shows("JOIN-34", told, met=begun or body["error_code"] == 27)
    await stage.join(a)
    await call
    stage.shows("JOIN-34", call, "time")


@rejoining.add("JOIN-35")
async def changed_timeout_is_no_change(stage: Stage) -> None:
    """A follower that asks again for a longer session gets the current generation and keeps the old session."""
    _, b = await stage.stable(stage.member("A"), stage.member("B"))
    longer = stage.long_session
    call = stage.join(b, session_timeout_ms=longer, rebalance_timeout_ms=2 * longer)
    await call
    await stage.sleep_past(b.session)
    late = stage.heartbeat(b)
    await late
    stage.shows("JOIN-35", late, met=longer > b.session + 2 * stage.grace + stage.step)


@rejoining.add("JOIN-51")
async def second_join_takes_the_place_of_the_first(stage: Stage) -> None:
    """A member that asks twice is one member: the round waits for the other, and the second request is answered."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    stage.join(a)
    await stage.reaches(PREPARING)
    again = stage.join(a)
    await stage.sleep(2 * stage.step)
    await stage.join(b)
    await again
    stage.shows("JOIN-51", again, "error", "time")


@rejoining.add("JOIN-52")
async def dropped_connection_still_counts(stage: Stage) -> None:
    """A member whose connection went after it rejoined is part of the round."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    gone = stage.join_changed(b)
    await stage.reaches(PREPARING)
    gone.drop()
    await stage.sleep(stage.step)
    call = stage.join(a)
    await call
    stage.shows("JOIN-52", call)


@rejoining.add("JOIN-44", "JOIN-45")
async def rebalance_timeout_drops_the_absent(stage: Stage) -> None:
    """The round goes on without a member that did not come back in time, and that member is unknown."""
    one, other = await stage.stable(stage.silent("A"), stage.silent("B"))
    call = stage.join_changed(one)
    await call
    stage.shows("JOIN-44", call, "members", "time")
    for refused in (stage.join(other), stage.sync(other), stage.heartbeat(other), stage.commit(other, {0: 1})):
        await refused
        stage.shows("JOIN-45", refused)


@rejoining.add("JOIN-44")
async def absent_member_is_waited_for(stage: Stage) -> None:
    """A member that heartbeats and does not come back has until the rebalance timeout."""
    one, other = await stage.stable(stage.member("A"), stage.member("B"))
    call = stage.join_changed(one)
    stage.shows("JOIN-44", call, "time")
    await stage.alive([other], one.rebalance + stage.step)
    await call


@rejoining.add("JOIN-42")
async def version_0_has_one_timeout(stage: Stage) -> None:
    """In version 0 the session timeout says how long a round waits for the absent."""
    version = stage.version("JoinGroup", 0, 0)
    a = stage.member("A", rebalance=10 * stage.rebalance)
    await stage.stable(a, stage.member("B", session=stage.long_session, rebalance=stage.session))
    changed = [{"name": "range", "metadata": stage.metadata("changed")}]
    call = stage.join(a, session_timeout_ms=stage.rebalance, protocols=changed, version=version)
    await call
    stage.shows("JOIN-42", call, "time")
