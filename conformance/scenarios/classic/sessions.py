"""Sessions: who expires when, what protects from it, and what grants a full one."""

from fencepost.conformance.scenario.context import Stage
from fencepost.conformance.scenario.scenario import Collection

sessions = Collection()
EARLY_MS = 400
"""How long before a deadline a member is looked at that must still be there."""


@sessions.add("TIMER-01", smoke=True)
async def silence_ends_a_session(stage: Stage) -> None:
    """A lone member is known until shortly before its session timeout, and gone after it."""
    (a,) = await stage.stable(stage.member("A"))
    await stage.sleep(a.session - EARLY_MS)
    before = stage.heartbeat(a)
    await before
    stage.shows("TIMER-01", before)
    await stage.sleep_past(a.session)
    after = stage.heartbeat(a)
    await after
    stage.shows("TIMER-01", after)


@sessions.add("TIMER-01")
async def silence_before_the_first_sync(stage: Stage) -> None:
    """A member that dies before it ever synced is gone after its session timeout, not after that of the sync phase."""
    (a,) = await stage.completing(stage.member("A", rebalance=stage.long_session))
    await stage.sleep_past(a.session)
    gone = stage.heartbeat(a)
    await gone
    stage.shows("TIMER-01", gone)


@sessions.add("TIMER-02")
async def expiry_in_stable(stage: Stage) -> None:
    """When one member of a stable group expires, the other is told to rejoin."""
    a, b = stage.silent("A"), stage.member("B")
    await stage.stable(a, b)
    await stage.sleep_past(b.session)
    told = stage.heartbeat(a)
    await told
    stage.shows("TIMER-02", told)


@sessions.add("TIMER-02")
async def expiry_in_completing(stage: Stage) -> None:
    """The same in the sync phase, well before its own timeout."""
    a, b = stage.silent("A"), stage.member("B")
    a.rebalance = b.rebalance = stage.long_session
    await stage.completing(a, b)
    await stage.sleep_past(b.session)
    told = stage.heartbeat(a)
    await told
    stage.shows("TIMER-02", told)


@sessions.add("TIMER-02")
async def expiry_of_the_last_member(stage: Stage) -> None:
    """It leaves the group Empty, and that round counts."""
    (a,) = await stage.stable(stage.member("A"))
    await stage.sleep_past(a.session)
    described = stage.describe()
    await described
    stage.shows("TIMER-02", described, "state")
    joined = await stage.enter(stage.member("B"))
    await joined
    stage.shows("TIMER-02", joined, "generation")


@sessions.add("TIMER-03")
async def parked_join_protects_the_session(stage: Stage) -> None:
    """A member that waits for the others is not expected to heartbeat."""
    a, b = stage.silent("A"), stage.member("B", rebalance=stage.long_session)
    await stage.stable(a, b)
    parked = stage.join_changed(b)
    await stage.sleep_past(b.session)
    await stage.join(a)
    await parked
    stage.shows("TIMER-03", parked, "error", "members")


@sessions.add("TIMER-04")
async def parked_sync_protects_the_session(stage: Stage) -> None:
    """A follower that waits for the assignment is not expected to heartbeat."""
    a, b = (stage.member(label, rebalance=stage.long_session) for label in "AB")
    leader, follower = await stage.completing(a, b)
    parked = stage.sync(follower)
    left = follower.session + 2 * stage.grace + stage.step
    while left > 0:
        await stage.sleep(leader.session // 4)
        left -= leader.session // 4
        undisturbed = stage.heartbeat(leader)
        await undisturbed
        stage.shows("TIMER-04", undisturbed)
    await stage.lead(leader, follower)
    await parked
    stage.shows("TIMER-04", parked)


@sessions.add("TIMER-05")
async def full_session_after_a_parked_join(stage: Stage) -> None:
    """A session begins when the join phase ends, not when the request came."""
    a, b = stage.silent("A"), stage.member("B", rebalance=stage.long_session)
    await stage.stable(a, b)
    parked = stage.join_changed(b)
    await stage.sleep(b.session - EARLY_MS)
    await stage.join(a)
    await parked
    await stage.sleep(b.session - EARLY_MS)
    call = stage.heartbeat(b)
    await call
    stage.shows("TIMER-05", call)


@sessions.add("TIMER-05")
async def full_session_after_a_parked_sync(stage: Stage) -> None:
    """A session begins when a parked SyncGroup is answered."""
    a, b = (stage.member(label, rebalance=stage.long_session) for label in "AB")
    leader, follower = await stage.completing(a, b)
    parked = stage.sync(follower)
    await stage.alive([leader], follower.session - EARLY_MS)
    await stage.lead(leader, follower)
    await parked
    await stage.sleep(follower.session - EARLY_MS)
    call = stage.heartbeat(follower)
    await call
    stage.shows("TIMER-05", call)


@sessions.add("TIMER-06", needs=("slow",))
async def new_member_is_dropped_after_five_minutes(stage: Stage) -> None:
    """A first JoinGroup may be parked for 300 s, however long the round takes."""
    limit = stage.settings.new_member_timeout
    a, b = stage.silent("A"), stage.member("B")
    a.rebalance = b.rebalance = limit + 60_000
    await stage.stable(a)
    parked = await stage.enter(b)
    begun = 0
    while begun < limit + 2 * stage.grace and not parked.done:
        await stage.sleep(a.session // 4)
        begun += a.session // 4
        await stage.heartbeat(a)
    await parked
    stage.shows("TIMER-06", parked)
    gone = stage.heartbeat(b, generation_id=a.generation)
    await gone
    stage.shows("TIMER-06", gone)


@sessions.add("TIMER-05", needs=("slow",))
async def live_member_outlasts_five_minutes(stage: Stage) -> None:
    """What was granted to its first JoinGroup does not end a member that has sessions since."""
    (a,) = await stage.stable(stage.silent("A"))
    left = stage.settings.new_member_timeout + 2 * stage.grace
    while left > 0:
        await stage.sleep(a.session // 2)
        left -= a.session // 2
        alive = stage.heartbeat(a)
        await alive
        stage.shows("TIMER-05", alive)


@sessions.add("TIMER-07")
async def new_member_needs_no_session(stage: Stage) -> None:
    """A first JoinGroup may be parked for longer than the session timeout that it names."""
    (a,) = await stage.stable(stage.silent("A"))
    b = stage.member("B")
    a.rebalance = b.rebalance = stage.long_session
    parked = await stage.enter(b)
    await stage.sleep(stage.step)
    await stage.alive([a], b.session + 2 * stage.grace)
    await stage.join(a)
    await parked
    stage.shows("TIMER-07", parked)


@sessions.add("TIMER-08")
async def pending_id_expires(stage: Stage) -> None:
    """An id that is handed out holds up the round for its session timeout and no longer."""
    a, x = stage.silent("A"), stage.member("X")
    a.rebalance = stage.long_session
    await stage.stable(a)
    handed_out = stage.join(x, version=stage.version("JoinGroup", at_least=4))
    await handed_out
    parked = stage.join(a)
    await parked
    stage.shows("TIMER-08", parked, "time", met=handed_out.error == 79)
    used = stage.join(x)
    await used
    stage.shows("TIMER-08", used)


@sessions.add("TIMER-21")
async def expiry_completes_the_join_phase(stage: Stage) -> None:
    """The round waits for a silent member until its session is over, not for the whole rebalance timeout."""
    a, b = stage.silent("A"), stage.member("B")
    a.rebalance = stage.long_session
    await stage.stable(a, b)
    parked = stage.join_changed(a)
    await parked
    stage.shows("TIMER-21", parked, "time")


@sessions.add("HB-05", "TIMER-25")
async def dropped_member_has_no_session(stage: Stage) -> None:
    """Nothing happens when the session would end of a member that was dropped for not coming back."""
    a, b = stage.silent("A"), stage.member("B", session=max(stage.session, 5_000))
    a.rebalance = b.rebalance = 2_000
    await stage.stable(a, b)
    await stage.join_changed(a)
    await stage.settle(a)
    await stage.sleep_past(b.session)
    call = stage.heartbeat(a)
    await call
    stage.shows("HB-05", call)
    stage.shows("TIMER-25", call)


@sessions.add("TIMER-22")
async def sessions_are_independent(stage: Stage) -> None:
    """The heartbeats of one member do nothing for another."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    await stage.alive([a], b.session + 2 * stage.grace + stage.step)
    call = stage.heartbeat(b)
    await call
    stage.shows("TIMER-22", call)


@sessions.add("TIMER-24")
async def every_member_has_its_own_session(stage: Stage) -> None:
    """Of two silent members the one with the short session expires."""
    a, b = stage.silent("A"), stage.member("B")
    await stage.stable(a, b)
    await stage.sleep_past(b.session)
    for member in (b, a):
        call = stage.heartbeat(member)
        await call
        stage.shows("TIMER-24", call)
