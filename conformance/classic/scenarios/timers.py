"""Sessions and join phases: what starts their timers, protects from them, extends and ends them."""

from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Member
from fencepost.model.errors import Error

timers = ScenarioFamily()
EARLY_MS = 400
"""How long before its deadline a session is checked to be alive."""
AMPLE_SESSION_MS = 3_000
"""A session a third of which is longer than slow responses take."""


def outlasting_rebalance_timeout(group: ScenarioContext) -> int:
    """A rebalance timeout, in milliseconds, twice as long as a session that a scenario waits out."""
    return 2 * (group.session_timeout + 2 * group.grace + group.short_pause)


@timers.add("TIMER-01", smoke=True)
async def silence_ends_a_session(group: ScenarioContext) -> None:
    """A silent member is known until shortly before its session timeout, and removed after it."""
    await group.keep_when_empty()
    (a,) = await group.form_stable_group(group.expiring_member("A"))

    await group.sleep(a.session_timeout - EARLY_MS)
    await group.check("TIMER-01", group.heartbeat(a))
    await group.sleep_past(a.session_timeout)
    await group.check("TIMER-01", group.heartbeat(a))


@timers.add("TIMER-01")
async def silence_before_the_first_sync(group: ScenarioContext) -> None:
    """A member that never syncs is removed at its session timeout, not only at the end of the sync phase."""
    await group.keep_when_empty()
    (a,) = await group.form_generation(group.expiring_member("A", rebalance_timeout=group.long_session_timeout))
    await group.sleep_past(a.session_timeout)
    await group.check("TIMER-01", group.heartbeat(a))


@timers.add("TIMER-02")
async def expiry_in_stable(group: ScenarioContext) -> None:
    """In Stable, the other member has to rejoin when a session expires."""
    a, b = group.member("A"), group.expiring_member("B")
    await group.form_stable_group(a, b)

    await group.sleep_past(b.session_timeout)
    await group.check("TIMER-02", group.heartbeat(a))


@timers.add("TIMER-02")
async def expiry_in_completing(group: ScenarioContext) -> None:
    """In CompletingRebalance, a session expires well before the timeout of the sync phase."""
    a, b = group.member("A"), group.expiring_member("B")
    a.rebalance_timeout = b.rebalance_timeout = group.long_session_timeout
    await group.form_generation(a, b)

    await group.sleep_past(b.session_timeout)
    await group.check("TIMER-02", group.heartbeat(a))


@timers.add("TIMER-02")
async def expiry_of_the_last_member(group: ScenarioContext) -> None:
    """The last session that expires leaves the group Empty, and raises the generation."""
    (a,) = await group.form_stable_group(group.expiring_member("A"))

    await group.sleep_past(a.session_timeout)
    await group.check("TIMER-02", group.describe_groups(), fields="state")
    await group.check("TIMER-02", await group.join_new(group.member("B")), fields="generation")


@timers.add("TIMER-03")
async def parked_join_protects_the_session(group: ScenarioContext) -> None:
    """A member whose JoinGroup is parked does not expire."""
    await group.keep_when_empty()
    a = group.member("A")
    b = group.expiring_member("B", rebalance_timeout=outlasting_rebalance_timeout(group))
    await group.form_stable_group(a, b)

    parked = group.join_with_new_metadata(b)
    await group.wait_for_state(PREPARING)
    await group.heartbeat(a)  # REBALANCE_IN_PROGRESS shows that the JoinGroup is parked
    await group.sleep_past(b.session_timeout)
    await group.check("TIMER-03", group.heartbeat(b))
    await group.join(a)

    await group.check("TIMER-03", parked, fields=("error", "members"))


@timers.add("TIMER-04")
async def parked_sync_protects_the_session(group: ScenarioContext) -> None:
    """A follower whose SyncGroup is parked does not expire."""
    leader = group.member("A", rebalance_timeout=outlasting_rebalance_timeout(group))
    follower = group.expiring_member("B", rebalance_timeout=leader.rebalance_timeout)
    await group.form_led_generation(leader, follower)

    parked = group.sync(follower)
    await group.sleep_past(follower.session_timeout)
    await group.check("TIMER-04", group.heartbeat(leader))
    await group.sync_leader(leader, follower)
    await group.check("TIMER-04", parked)


def member_with_ample_session(group: ScenarioContext, label: str) -> Member:
    """A member with a session of which a third may pass unused."""
    session = min(max(group.session_timeout, AMPLE_SESSION_MS), group.settings.max_session_timeout)
    return group.member(label, session_timeout=session, rebalance_timeout=group.long_session_timeout)


@timers.add("TIMER-05")
async def full_session_after_a_parked_join(group: ScenarioContext) -> None:
    """A full session starts when the join phase ends, not when the JoinGroup arrives."""
    a, b = group.member("A"), member_with_ample_session(group, "B")
    await group.form_stable_group(a, b)

    parked = group.join_with_new_metadata(b)
    await group.sleep(b.session_timeout * 2 // 3)
    await group.join(a)
    await parked
    await group.sleep(b.session_timeout * 2 // 3)

    await group.check("TIMER-05", group.heartbeat(b))


@timers.add("TIMER-05")
async def full_session_after_a_parked_sync(group: ScenarioContext) -> None:
    """A full session starts with the response to a parked SyncGroup."""
    leader, follower = group.member("A"), member_with_ample_session(group, "B")
    leader.rebalance_timeout = follower.rebalance_timeout
    await group.form_led_generation(leader, follower)

    parked = group.sync(follower)
    await group.sleep(follower.session_timeout * 2 // 3)
    await group.sync_leader(leader, follower)
    await parked
    await group.sleep(follower.session_timeout * 2 // 3)

    await group.check("TIMER-05", group.heartbeat(follower))


@timers.add("TIMER-06", needs=("slow",))
async def new_member_is_dropped_after_five_minutes(group: ScenarioContext) -> None:
    """The first JoinGroup of a member parks for 300 s at most, however long the join phase takes."""
    limit = group.settings.new_member_timeout
    a, b = group.member("A"), group.expiring_member("B")
    a.rebalance_timeout = b.rebalance_timeout = limit + 60_000
    await group.form_stable_group(a)

    parked = await group.join_new(b)
    waited = 0
    while waited < limit + 2 * group.grace and not parked.done:
        await group.sleep(a.session_timeout // 4)
        waited += a.session_timeout // 4
        await group.heartbeat(a)

    await group.check("TIMER-06", parked)
    await group.check("TIMER-06", group.heartbeat(b, generation_id=a.generation))


@timers.add("TIMER-05", needs=("slow",))
async def live_member_outlasts_five_minutes(group: ScenarioContext) -> None:
    """The limit on the first JoinGroup does not apply to a member once it has joined."""
    (a,) = await group.form_stable_group(group.member("A"))
    left = group.settings.new_member_timeout + 2 * group.grace
    while left > 0:
        await group.sleep(a.session_timeout // 2)
        left -= a.session_timeout // 2
        await group.check("TIMER-05", group.heartbeat(a))


@timers.add("TIMER-07")
async def new_member_needs_no_session(group: ScenarioContext) -> None:
    """The first JoinGroup of a member may park for longer than its session timeout."""
    (a,) = await group.form_stable_group(group.member("A"))

    b = group.expiring_member("B")
    a.rebalance_timeout = b.rebalance_timeout = group.long_session_timeout
    parked = await group.join_new(b)
    await group.sleep(group.short_pause)
    await group.keep_alive([a], b.session_timeout + 2 * group.grace)
    await group.join(a)

    await group.check("TIMER-07", parked)


@timers.add("TIMER-08")
async def pending_id_expires(group: ScenarioContext) -> None:
    """A join phase waits for an issued id for its session timeout, and no longer."""
    a, x = group.member("A"), group.expiring_member("X")
    a.rebalance_timeout = group.long_session_timeout
    await group.form_stable_group(a)

    issued = group.join(x, version=group.highest_version("JoinGroup", at_least=4))
    await issued

    await group.check("TIMER-08", group.join(a), fields="time", reached=issued.error == Error.MEMBER_ID_REQUIRED)
    await group.check("TIMER-08", group.join(x))


@timers.add("TIMER-21")
async def expiry_completes_the_join_phase(group: ScenarioContext) -> None:
    """A join phase waits for a silent member until its session expires, not until the rebalance timeout."""
    a, b = group.member("A"), group.expiring_member("B")
    a.rebalance_timeout = group.long_session_timeout
    await group.form_stable_group(a, b)

    await group.check("TIMER-21", group.join_with_new_metadata(a), fields="time")


@timers.add("TIMER-25")
async def dropped_member_has_no_session(group: ScenarioContext) -> None:
    """The former session timeout of a member that was removed for not rejoining has no effect."""
    a, b = (
        group.member("A"),
        group.member("B", session_timeout=max(group.session_timeout, 5_000)),
    )
    a.rebalance_timeout = b.rebalance_timeout = 2_000
    await group.form_stable_group(a, b)
    await group.join_with_new_metadata(a)
    await group.sync_all(a)

    await group.sleep_past(b.session_timeout)
    await group.check("TIMER-25", group.heartbeat(a))


@timers.add("TIMER-22")
async def sessions_are_independent(group: ScenarioContext) -> None:
    """The heartbeats of one member do not extend the session of another."""
    a, b = group.member("A"), group.expiring_member("B")
    await group.form_stable_group(a, b)
    await group.keep_alive([a], b.session_timeout + 2 * group.grace + group.short_pause)
    await group.check("TIMER-22", group.heartbeat(b))


@timers.add("TIMER-24")
async def every_member_has_its_own_session(group: ScenarioContext) -> None:
    """Of two silent members, the one with the shorter session timeout expires."""
    a, b = group.member("A"), group.expiring_member("B")
    await group.form_stable_group(a, b)

    await group.sleep_past(b.session_timeout)
    for member in (b, a):
        await group.check("TIMER-24", group.heartbeat(member))


# --- Timeouts of a rebalance: the initial delay, and the rebalance timeout of the join phase and of the sync phase.

SHORT_MS = 1_000
MEDIUM_MS = 3_000


# --- the join phase ------------------------------------------------------------------------------------------------


def member_with_timeout(group: ScenarioContext, label: str, rebalance: int) -> Member:
    """A new member that need not heartbeat, with this rebalance timeout in milliseconds."""
    member = group.member(label)
    member.rebalance_timeout = rebalance
    return member


@timers.add("TIMER-09")
async def longest_rebalance_timeout_counts(group: ScenarioContext) -> None:
    """The join phase waits for an absent member by the longest rebalance timeout of all members."""
    a, b = member_with_timeout(group, "A", SHORT_MS), member_with_timeout(group, "B", MEDIUM_MS)
    await group.form_stable_group(a, b)
    await group.check("TIMER-09", group.join_with_new_metadata(a), fields="time")


@timers.add("TIMER-27")
async def rebalance_timeout_of_the_last_join_counts(group: ScenarioContext) -> None:
    """A rebalance timeout that a rejoin lengthens holds for the next join phase."""
    leader, follower = await group.form_stable_group(
        member_with_timeout(group, "A", MEDIUM_MS), member_with_timeout(group, "B", MEDIUM_MS)
    )
    follower.rebalance_timeout = 2 * MEDIUM_MS
    rejoined = group.join_with_new_metadata(follower)
    await group.join(leader)
    await rejoined
    await group.sync_all(leader, follower)

    await group.check("TIMER-27", group.join_with_new_metadata(leader), fields="time")


@timers.add("TIMER-10")
async def later_joiners_do_not_extend_a_round(group: ScenarioContext) -> None:
    """A newcomer with a longer rebalance timeout does not lengthen the current join phase."""
    a, b = member_with_timeout(group, "A", MEDIUM_MS), member_with_timeout(group, "B", MEDIUM_MS)
    await group.form_stable_group(a, b)

    parked = group.join_with_new_metadata(a)
    await group.wait_for_state(PREPARING)
    newcomer = await group.join_new(member_with_timeout(group, "C", 10_000))

    for call in (parked, newcomer):
        await group.check("TIMER-10", call, fields="time")


# --- the sync phase ------------------------------------------------------------------------------------------------


@timers.add("TIMER-11")
async def sync_timeout_despite_heartbeats(group: ScenarioContext) -> None:
    """A member that heartbeats but does not sync is removed at the rebalance timeout, and not before."""
    await group.keep_when_empty()
    a = member_with_timeout(group, "A", MEDIUM_MS)
    await group.form_generation(a)

    await group.sleep(a.rebalance_timeout - 500)
    await group.check("TIMER-11", group.heartbeat(a))
    await group.sleep_past(500)
    await group.check("TIMER-11", group.heartbeat(a))


@timers.add("TIMER-12")
async def sync_timeout_of_a_follower_in_stable(group: ScenarioContext) -> None:
    """A follower that does not sync is removed, and the leader has to rejoin."""
    leader, follower = await group.form_generation(
        member_with_timeout(group, "A", MEDIUM_MS), member_with_timeout(group, "B", MEDIUM_MS)
    )

    await group.sync_leader(leader, follower)
    await group.sleep_past(leader.rebalance_timeout)

    for member in (leader, follower):
        await group.check("TIMER-12", group.heartbeat(member))


@timers.add("TIMER-13")
async def sync_timeout_of_the_leader(group: ScenarioContext) -> None:
    """Parked followers have to rejoin if the leader does not sync in time."""
    _, follower = await group.form_generation(
        member_with_timeout(group, "A", MEDIUM_MS), member_with_timeout(group, "B", MEDIUM_MS)
    )

    parked = group.sync(follower)
    await group.sleep_past(follower.rebalance_timeout)

    await group.check("TIMER-13", group.heartbeat(follower))
    await group.check("TIMER-13", parked)


@timers.add("TIMER-14")
async def nobody_syncs(group: ScenarioContext) -> None:
    """A group in which no member syncs becomes Empty."""
    a, b = member_with_timeout(group, "A", MEDIUM_MS), member_with_timeout(group, "B", MEDIUM_MS)
    await group.form_generation(a, b)

    await group.sleep_past(a.rebalance_timeout)
    await group.check("TIMER-14", group.describe_groups(), fields="state")


@timers.add("TIMER-15")
async def everyone_syncs_in_time(group: ScenarioContext) -> None:
    """The end of the rebalance timeout has no effect if all members have synced."""
    a, b = member_with_timeout(group, "A", SHORT_MS), member_with_timeout(group, "B", SHORT_MS)
    await group.form_stable_group(a, b)

    await group.sleep_past(a.rebalance_timeout)
    for member in (a, b):
        await group.check("TIMER-15", group.heartbeat(member))


@timers.add("TIMER-15", "TIMER-26")
async def everyone_rejoins_in_time(group: ScenarioContext) -> None:
    """The end of the rebalance timeout has no effect if all members have rejoined and synced."""
    a, b = await group.form_stable_group(
        member_with_timeout(group, "A", MEDIUM_MS), member_with_timeout(group, "B", MEDIUM_MS)
    )
    await group.rebalance(a, b)
    await group.sync_all(a, b)

    await group.sleep_past(a.rebalance_timeout)
    for member in (a, b):
        await group.check(("TIMER-15", "TIMER-26"), group.heartbeat(member))


# --- the initial delay ---------------------------------------------------------------------------------------------


@timers.add("TIMER-16", needs=("initial-delay",), smoke=True)
async def first_member_waits_for_the_initial_delay(group: ScenarioContext) -> None:
    """The first join phase of a group lasts for the initial delay."""
    await group.check("TIMER-16", await group.join_new(group.member("A")), fields="time")


async def check_delay_extended(group: ScenarioContext, first: Member, newcomer: Member) -> None:
    """Check that the delay of the first member is extended by a newcomer that comes halfway through it."""
    parked = await group.join_new(first)
    started = group.now_ms
    await group.sleep(group.initial_delay // 2)
    await group.join_new(newcomer)
    await parked
    is_extended = group.now_ms - started > group.initial_delay * 5 // 4
    await group.check(
        "TIMER-17", parked, fields="time", reached=is_extended, note="the initial delay is fixed (LAT-08)"
    )


@timers.add("TIMER-17", needs=("initial-delay",))
async def newcomer_extends_the_initial_delay(group: ScenarioContext) -> None:
    """A newcomer extends the initial delay by a whole step from its end."""
    a, b = (
        member_with_timeout(group, "A", 10 * group.initial_delay),
        member_with_timeout(group, "B", 10 * group.initial_delay),
    )
    await check_delay_extended(group, a, b)


@timers.add("TIMER-17", needs=("initial-delay",))
async def initial_delay_ends_with_the_rebalance_timeout(group: ScenarioContext) -> None:
    """The initial delay does not exceed the rebalance timeout of the first member."""
    a, b = (
        member_with_timeout(group, "A", group.initial_delay * 3 // 2),
        member_with_timeout(group, "B", 100 * group.initial_delay),
    )
    await check_delay_extended(group, a, b)


@timers.add("TIMER-18", needs=("initial-delay",))
async def initial_delay_is_not_cut_short(group: ScenarioContext) -> None:
    """Two members that are there from the beginning wait for the whole initial delay."""
    calls = [await group.join_new(group.member(label)) for label in "AB"]
    for call in calls:
        await group.check("TIMER-18", call, fields="time")


@timers.add("TIMER-19", needs=("initial-delay",))
async def initial_delay_after_emptying(group: ScenarioContext) -> None:
    """A group that all members have left waits for the initial delay again."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    await group.check("TIMER-19", await group.join_new(group.member("B")), fields="time")


@timers.add("TIMER-20", needs=("initial-delay",))
async def pending_id_does_not_lengthen_the_initial_delay(group: ScenarioContext) -> None:
    """An issued id that is not used does not lengthen the initial delay."""
    issued = group.join(group.member("X"), version=group.highest_version("JoinGroup", at_least=4))
    await issued
    await group.check(
        "TIMER-20",
        await group.join_new(member_with_timeout(group, "A", group.long_session_timeout)),
        fields="time",
        reached=issued.error == Error.MEMBER_ID_REQUIRED,
    )


@timers.add("TIMER-23", needs=("no-initial-delay",))
async def lone_member_without_an_initial_delay(group: ScenarioContext) -> None:
    """Without an initial delay, a lone member joins at once."""
    await group.check("TIMER-23", await group.join_new(group.member("A")), fields="time")
