"""Timeouts of a rebalance: the initial delay, and the rebalance timeout of the join phase and of the sync phase."""

from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Member
from fencepost.model.errors import Error

timeouts = ScenarioFamily()
SHORT_MS = 1_000
MEDIUM_MS = 3_000


# --- the join phase ------------------------------------------------------------------------------------------------


def member_with_timeout(group: ScenarioContext, label: str, rebalance: int) -> Member:
    """A new member that need not heartbeat, with this rebalance timeout in milliseconds."""
    member = group.member_without_heartbeats(label)
    member.rebalance_timeout = rebalance
    return member


@timeouts.add("TIMER-09")
async def longest_rebalance_timeout_counts(group: ScenarioContext) -> None:
    """The join phase waits for an absent member by the longest rebalance timeout of all members."""
    a, b = member_with_timeout(group, "A", SHORT_MS), member_with_timeout(group, "B", MEDIUM_MS)
    await group.form_stable_group(a, b)
    await group.check("TIMER-09", group.join_with_new_metadata(a), fields="time")


@timeouts.add("TIMER-27")
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


@timeouts.add("TIMER-10")
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


@timeouts.add("TIMER-11")
async def sync_timeout_despite_heartbeats(group: ScenarioContext) -> None:
    """A member that heartbeats but does not sync is removed at the rebalance timeout, and not before."""
    await group.keep_when_empty()
    a = member_with_timeout(group, "A", MEDIUM_MS)
    await group.form_generation(a)

    await group.sleep(a.rebalance_timeout - 500)
    await group.check("TIMER-11", group.heartbeat(a))
    await group.sleep_past(500)
    await group.check("TIMER-11", group.heartbeat(a))


@timeouts.add("TIMER-12")
async def sync_timeout_of_a_follower_in_stable(group: ScenarioContext) -> None:
    """A follower that does not sync is removed, and the leader has to rejoin."""
    leader, follower = await group.form_generation(
        member_with_timeout(group, "A", MEDIUM_MS), member_with_timeout(group, "B", MEDIUM_MS)
    )

    await group.sync_leader(leader, follower)
    await group.sleep_past(leader.rebalance_timeout)

    for member in (leader, follower):
        await group.check("TIMER-12", group.heartbeat(member))


@timeouts.add("TIMER-13")
async def sync_timeout_of_the_leader(group: ScenarioContext) -> None:
    """Parked followers have to rejoin if the leader does not sync in time."""
    _, follower = await group.form_generation(
        member_with_timeout(group, "A", MEDIUM_MS), member_with_timeout(group, "B", MEDIUM_MS)
    )

    parked = group.sync(follower)
    await group.sleep_past(follower.rebalance_timeout)

    await group.check("TIMER-13", group.heartbeat(follower))
    await group.check("TIMER-13", parked)


@timeouts.add("TIMER-14")
async def nobody_syncs(group: ScenarioContext) -> None:
    """A group in which no member syncs becomes Empty."""
    a, b = member_with_timeout(group, "A", MEDIUM_MS), member_with_timeout(group, "B", MEDIUM_MS)
    await group.form_generation(a, b)

    await group.sleep_past(a.rebalance_timeout)
    await group.check("TIMER-14", group.describe_groups(), fields="state")


@timeouts.add("TIMER-15")
async def everyone_syncs_in_time(group: ScenarioContext) -> None:
    """The end of the rebalance timeout has no effect if all members have synced."""
    a, b = member_with_timeout(group, "A", SHORT_MS), member_with_timeout(group, "B", SHORT_MS)
    await group.form_stable_group(a, b)

    await group.sleep_past(a.rebalance_timeout)
    for member in (a, b):
        await group.check("TIMER-15", group.heartbeat(member))


@timeouts.add("TIMER-15", "TIMER-26")
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


@timeouts.add("TIMER-16", needs=("initial-delay",), smoke=True)
async def first_member_waits_for_the_initial_delay(group: ScenarioContext) -> None:
    """The first join phase of a group lasts for the initial delay."""
    await group.check("TIMER-16", await group.join_new(group.member_without_heartbeats("A")), fields="time")


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


@timeouts.add("TIMER-17", needs=("initial-delay",))
async def newcomer_extends_the_initial_delay(group: ScenarioContext) -> None:
    """A newcomer extends the initial delay by a whole step from its end."""
    a, b = (
        member_with_timeout(group, "A", 10 * group.initial_delay),
        member_with_timeout(group, "B", 10 * group.initial_delay),
    )
    await check_delay_extended(group, a, b)


@timeouts.add("TIMER-17", needs=("initial-delay",))
async def initial_delay_ends_with_the_rebalance_timeout(group: ScenarioContext) -> None:
    """The initial delay does not exceed the rebalance timeout of the first member."""
    a, b = (
        member_with_timeout(group, "A", group.initial_delay * 3 // 2),
        member_with_timeout(group, "B", 100 * group.initial_delay),
    )
    await check_delay_extended(group, a, b)


@timeouts.add("TIMER-18", needs=("initial-delay",))
async def initial_delay_is_not_cut_short(group: ScenarioContext) -> None:
    """Two members that are there from the beginning wait for the whole initial delay."""
    calls = [await group.join_new(group.member_without_heartbeats(label)) for label in "AB"]
    for call in calls:
        await group.check("TIMER-18", call, fields="time")


@timeouts.add("TIMER-19", needs=("initial-delay",))
async def initial_delay_after_emptying(group: ScenarioContext) -> None:
    """A group that all members have left waits for the initial delay again."""
    (a,) = await group.form_stable_group(group.member_without_heartbeats("A"))
    await group.leave(a)
    await group.check("TIMER-19", await group.join_new(group.member_without_heartbeats("B")), fields="time")


@timeouts.add("TIMER-20", needs=("initial-delay",))
async def pending_id_does_not_lengthen_the_initial_delay(group: ScenarioContext) -> None:
    """An issued id that is not used does not lengthen the initial delay."""
    issued = group.join(group.member_without_heartbeats("X"), version=group.highest_version("JoinGroup", at_least=4))
    await issued
    await group.check(
        "TIMER-20",
        await group.join_new(member_with_timeout(group, "A", group.long_session_timeout)),
        fields="time",
        reached=issued.error == Error.MEMBER_ID_REQUIRED,
    )


@timeouts.add("TIMER-23", needs=("no-initial-delay",))
async def lone_member_without_an_initial_delay(group: ScenarioContext) -> None:
    """Without an initial delay, a lone member joins at once."""
    await group.check("TIMER-23", await group.join_new(group.member_without_heartbeats("A")), fields="time")
