"""Sessions: who expires when, what protects from it, and what grants a full one."""

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

sessions = ScenarioFamily()
EARLY_MS = 400
"""How long before a deadline a member is looked at that must still be there."""


@sessions.add("TIMER-01", smoke=True)
async def silence_ends_a_session(context: ScenarioContext) -> None:
    """A lone member is known until shortly before its session timeout, and gone after it."""
    (a,) = await context.form_stable_group(context.member("A"))
    await context.sleep(a.session_timeout - EARLY_MS)
    before = context.heartbeat(a)
    await before
    context.check("TIMER-01", before)
    await context.sleep_past(a.session_timeout)
    after = context.heartbeat(a)
    await after
    context.check("TIMER-01", after)


@sessions.add("TIMER-01")
async def silence_before_the_first_sync(context: ScenarioContext) -> None:
    """A member that dies before it ever synced is gone after its session timeout, not after that of the sync phase."""
    (a,) = await context.form_generation(context.member("A", rebalance_timeout=context.long_session_timeout))
    await context.sleep_past(a.session_timeout)
    gone = context.heartbeat(a)
    await gone
    context.check("TIMER-01", gone)


@sessions.add("TIMER-02")
async def expiry_in_stable(context: ScenarioContext) -> None:
    """When one member of a stable group expires, the other is told to rejoin."""
    a, b = context.member_without_heartbeats("A"), context.member("B")
    await context.form_stable_group(a, b)
    await context.sleep_past(b.session_timeout)
    told = context.heartbeat(a)
    await told
    context.check("TIMER-02", told)


@sessions.add("TIMER-02")
async def expiry_in_completing(context: ScenarioContext) -> None:
    """The same in the sync phase, well before its own timeout."""
    a, b = context.member_without_heartbeats("A"), context.member("B")
    a.rebalance_timeout = b.rebalance_timeout = context.long_session_timeout
    await context.form_generation(a, b)
    await context.sleep_past(b.session_timeout)
    told = context.heartbeat(a)
    await told
    context.check("TIMER-02", told)


@sessions.add("TIMER-02")
async def expiry_of_the_last_member(context: ScenarioContext) -> None:
    """It leaves the group Empty, and that round counts."""
    (a,) = await context.form_stable_group(context.member("A"))
    await context.sleep_past(a.session_timeout)
    described = context.describe_groups()
    await described
    context.check("TIMER-02", described, "state")
    joined = await context.join_new(context.member("B"))
    await joined
    context.check("TIMER-02", joined, "generation")


@sessions.add("TIMER-03")
async def parked_join_protects_the_session(context: ScenarioContext) -> None:
    """A member that waits for the others is not expected to heartbeat."""
    a, b = context.member_without_heartbeats("A"), context.member("B", rebalance_timeout=context.long_session_timeout)
    await context.form_stable_group(a, b)
    parked = context.join_with_new_metadata(b)
    await context.sleep_past(b.session_timeout)
    await context.join(a)
    await parked
    context.check("TIMER-03", parked, "error", "members")


@sessions.add("TIMER-04")
async def parked_sync_protects_the_session(context: ScenarioContext) -> None:
    """A follower that waits for the assignment is not expected to heartbeat."""
    a, b = (context.member(label, rebalance_timeout=context.long_session_timeout) for label in "AB")
    leader, follower = await context.form_generation(a, b)
    parked = context.sync(follower)
    left = follower.session_timeout + 2 * context.grace + context.short_pause
    while left > 0:
        await context.sleep(leader.session_timeout // 4)
        left -= leader.session_timeout // 4
        undisturbed = context.heartbeat(leader)
        await undisturbed
        context.check("TIMER-04", undisturbed)
    await context.sync_leader(leader, follower)
    await parked
    context.check("TIMER-04", parked)


@sessions.add("TIMER-05")
async def full_session_after_a_parked_join(context: ScenarioContext) -> None:
    """A session begins when the join phase ends, not when the request came."""
    a, b = context.member_without_heartbeats("A"), context.member("B", rebalance_timeout=context.long_session_timeout)
    await context.form_stable_group(a, b)
    parked = context.join_with_new_metadata(b)
    await context.sleep(b.session_timeout - EARLY_MS)
    await context.join(a)
    await parked
    await context.sleep(b.session_timeout - EARLY_MS)
    call = context.heartbeat(b)
    await call
    context.check("TIMER-05", call)


@sessions.add("TIMER-05")
async def full_session_after_a_parked_sync(context: ScenarioContext) -> None:
    """A session begins when a parked SyncGroup is answered."""
    a, b = (context.member(label, rebalance_timeout=context.long_session_timeout) for label in "AB")
    leader, follower = await context.form_generation(a, b)
    parked = context.sync(follower)
    await context.keep_alive([leader], follower.session_timeout - EARLY_MS)
    await context.sync_leader(leader, follower)
    await parked
    await context.sleep(follower.session_timeout - EARLY_MS)
    call = context.heartbeat(follower)
    await call
    context.check("TIMER-05", call)


@sessions.add("TIMER-06", needs=("slow",))
async def new_member_is_dropped_after_five_minutes(context: ScenarioContext) -> None:
    """A first JoinGroup may be parked for 300 s, however long the round takes."""
    limit = context.settings.new_member_timeout
    a, b = context.member_without_heartbeats("A"), context.member("B")
    a.rebalance_timeout = b.rebalance_timeout = limit + 60_000
    await context.form_stable_group(a)
    parked = await context.join_new(b)
    begun = 0
    while begun < limit + 2 * context.grace and not parked.done:
        await context.sleep(a.session_timeout // 4)
        begun += a.session_timeout // 4
        await context.heartbeat(a)
    await parked
    context.check("TIMER-06", parked)
    gone = context.heartbeat(b, generation_id=a.generation)
    await gone
    context.check("TIMER-06", gone)


@sessions.add("TIMER-05", needs=("slow",))
async def live_member_outlasts_five_minutes(context: ScenarioContext) -> None:
    """What was granted to its first JoinGroup does not end a member that has sessions since."""
    (a,) = await context.form_stable_group(context.member_without_heartbeats("A"))
    left = context.settings.new_member_timeout + 2 * context.grace
    while left > 0:
        await context.sleep(a.session_timeout // 2)
        left -= a.session_timeout // 2
        alive = context.heartbeat(a)
        await alive
        context.check("TIMER-05", alive)


@sessions.add("TIMER-07")
async def new_member_needs_no_session(context: ScenarioContext) -> None:
    """A first JoinGroup may be parked for longer than the session timeout that it names."""
    (a,) = await context.form_stable_group(context.member_without_heartbeats("A"))
    b = context.member("B")
    a.rebalance_timeout = b.rebalance_timeout = context.long_session_timeout
    parked = await context.join_new(b)
    await context.sleep(context.short_pause)
    await context.keep_alive([a], b.session_timeout + 2 * context.grace)
    await context.join(a)
    await parked
    context.check("TIMER-07", parked)


@sessions.add("TIMER-08")
async def pending_id_expires(context: ScenarioContext) -> None:
    """An id that is handed out holds up the round for its session timeout and no longer."""
    a, x = context.member_without_heartbeats("A"), context.member("X")
    a.rebalance_timeout = context.long_session_timeout
    await context.form_stable_group(a)
    handed_out = context.join(x, version=context.highest_version("JoinGroup", at_least=4))
    await handed_out
    parked = context.join(a)
    await parked
    context.check("TIMER-08", parked, "time", reached=handed_out.error == 79)
    used = context.join(x)
    await used
    context.check("TIMER-08", used)


@sessions.add("TIMER-21")
async def expiry_completes_the_join_phase(context: ScenarioContext) -> None:
    """The round waits for a silent member until its session is over, not for the whole rebalance timeout."""
    a, b = context.member_without_heartbeats("A"), context.member("B")
    a.rebalance_timeout = context.long_session_timeout
    await context.form_stable_group(a, b)
    parked = context.join_with_new_metadata(a)
    await parked
    context.check("TIMER-21", parked, "time")


@sessions.add("HB-05", "TIMER-25")
async def dropped_member_has_no_session(context: ScenarioContext) -> None:
    """Nothing happens when the session would end of a member that was dropped for not coming back."""
    a, b = (
        context.member_without_heartbeats("A"),
        context.member("B", session_timeout=max(context.session_timeout, 5_000)),
    )
    a.rebalance_timeout = b.rebalance_timeout = 2_000
    await context.form_stable_group(a, b)
    await context.join_with_new_metadata(a)
    await context.sync_all(a)
    await context.sleep_past(b.session_timeout)
    call = context.heartbeat(a)
    await call
    context.check("HB-05", call)
    context.check("TIMER-25", call)


@sessions.add("TIMER-22")
async def sessions_are_independent(context: ScenarioContext) -> None:
    """The heartbeats of one member do nothing for another."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    await context.keep_alive([a], b.session_timeout + 2 * context.grace + context.short_pause)
    call = context.heartbeat(b)
    await call
    context.check("TIMER-22", call)


@sessions.add("TIMER-24")
async def every_member_has_its_own_session(context: ScenarioContext) -> None:
    """Of two silent members the one with the short session expires."""
    a, b = context.member_without_heartbeats("A"), context.member("B")
    await context.form_stable_group(a, b)
    await context.sleep_past(b.session_timeout)
    for member in (b, a):
        call = context.heartbeat(member)
        await call
        context.check("TIMER-24", call)
