"""The timeouts of a round: the initial delay, the rebalance timeout of the join phase and that of the sync phase."""

from fencepost.conformance.scenario.context import Member, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

timeouts = ScenarioFamily()
SHORT_MS = 1_000
MEDIUM_MS = 3_000


# --- the join phase ------------------------------------------------------------------------------------------------


def member_with_timeout(context: ScenarioContext, label: str, rebalance: int) -> Member:
    """A member that need not heartbeat, with this rebalance timeout."""
    member = context.member_without_heartbeats(label)
    member.rebalance_timeout = rebalance
    return member


@timeouts.add("TIMER-09")
async def longest_rebalance_timeout_counts(context: ScenarioContext) -> None:
    """The round waits as long as its most patient member wants, here one that does not come."""
    a, b = member_with_timeout(context, "A", SHORT_MS), member_with_timeout(context, "B", MEDIUM_MS)
    await context.form_stable_group(a, b)
    parked = context.join_with_new_metadata(a)
    await parked
    context.check("TIMER-09", parked, "time")


@timeouts.add("TIMER-09")
async def rebalance_timeout_of_the_last_join_counts(context: ScenarioContext) -> None:
    """A member that has rejoined with more patience is waited for that much longer."""
    leader, follower = await context.form_stable_group(
        member_with_timeout(context, "A", MEDIUM_MS), member_with_timeout(context, "B", MEDIUM_MS)
    )
    follower.rebalance_timeout = 2 * MEDIUM_MS
    rejoined = context.join_with_new_metadata(follower)
    await context.join(leader)
    await rejoined
    await context.sync_all(leader, follower)
    parked = context.join_with_new_metadata(leader)
    await parked
    context.check("TIMER-09", parked, "time")


@timeouts.add("TIMER-10")
async def later_joiners_do_not_extend_a_round(context: ScenarioContext) -> None:
    """A newcomer with more patience changes nothing for the round under way."""
    a, b = member_with_timeout(context, "A", MEDIUM_MS), member_with_timeout(context, "B", MEDIUM_MS)
    await context.form_stable_group(a, b)
    parked = context.join_with_new_metadata(a)
    await context.sleep(context.short_pause)
    await context.join_new(member_with_timeout(context, "C", 20_000))
    await parked
    context.check("TIMER-10", parked, "time")


# --- the sync phase ------------------------------------------------------------------------------------------------


@timeouts.add("TIMER-11")
async def sync_timeout_despite_heartbeats(context: ScenarioContext) -> None:
    """Who only heartbeats after the join phase is removed when the rebalance timeout is over, and not before."""
    a = member_with_timeout(context, "A", MEDIUM_MS)
    await context.form_generation(a)
    await context.sleep(a.rebalance_timeout - 500)
    before = context.heartbeat(a)
    await before
    context.check("TIMER-11", before)
    await context.sleep_past(500)
    after = context.heartbeat(a)
    await after
    context.check("TIMER-11", after)


@timeouts.add("TIMER-12")
async def sync_timeout_of_a_follower_in_stable(context: ScenarioContext) -> None:
    """A follower that does not fetch its assignment is removed, and the leader has to rejoin."""
    leader, follower = await context.form_generation(
        member_with_timeout(context, "A", MEDIUM_MS), member_with_timeout(context, "B", MEDIUM_MS)
    )
    await context.sync_leader(leader, follower)
    await context.sleep_past(leader.rebalance_timeout)
    for member in (leader, follower):
        call = context.heartbeat(member)
        await call
        context.check("TIMER-12", call)


@timeouts.add("TIMER-13")
async def sync_timeout_of_the_leader(context: ScenarioContext) -> None:
    """Followers that wait for a leader in vain are told to rejoin."""
    _, follower = await context.form_generation(
        member_with_timeout(context, "A", MEDIUM_MS), member_with_timeout(context, "B", MEDIUM_MS)
    )
    parked = context.sync(follower)
    await context.sleep_past(follower.rebalance_timeout)
    told = context.heartbeat(follower)
    await told
    context.check("TIMER-13", told)
    await parked
    context.check("TIMER-13", parked)


@timeouts.add("TIMER-14")
async def nobody_syncs(context: ScenarioContext) -> None:
    """The group is Empty afterwards."""
    a, b = member_with_timeout(context, "A", MEDIUM_MS), member_with_timeout(context, "B", MEDIUM_MS)
    await context.form_generation(a, b)
    await context.sleep_past(a.rebalance_timeout)
    described = context.describe_groups()
    await described
    context.check("TIMER-14", described, "state")


@timeouts.add("TIMER-15")
async def everyone_syncs_in_time(context: ScenarioContext) -> None:
    """Nothing happens when the rebalance timeout is over."""
    a, b = member_with_timeout(context, "A", SHORT_MS), member_with_timeout(context, "B", SHORT_MS)
    await context.form_stable_group(a, b)
    await context.sleep_past(a.rebalance_timeout)
    for member in (a, b):
        call = context.heartbeat(member)
        await call
        context.check("TIMER-15", call)


@timeouts.add("TIMER-15", "TIMER-26")
async def everyone_rejoins_in_time(context: ScenarioContext) -> None:
    """Nor does anything happen when the join phase would have been over."""
    a, b = await context.form_stable_group(
        member_with_timeout(context, "A", MEDIUM_MS), member_with_timeout(context, "B", MEDIUM_MS)
    )
    await context.rebalance(a, b)
    await context.sync_all(a, b)
    await context.sleep_past(a.rebalance_timeout)
    for member in (a, b):
        call = context.heartbeat(member)
        await call
        context.check("TIMER-15", call)
        context.check("TIMER-26", call)


# --- the initial delay ---------------------------------------------------------------------------------------------


@timeouts.add("TIMER-16", needs=("initial-delay",), smoke=True)
async def first_member_waits_for_the_initial_delay(context: ScenarioContext) -> None:
    """A group gives others the time to come before its first round."""
    parked = await context.join_new(context.member_without_heartbeats("A"))
    await parked
    context.check("TIMER-16", parked, "time")


async def check_delay_extended(context: ScenarioContext, first: Member, newcomer: Member) -> None:
    """The first member has to wait for the one that comes halfway through the delay."""
    parked = await context.join_new(first)
    begun = context.now_ms
    await context.sleep(context.initial_delay // 2)
    await context.join_new(newcomer)
    await parked
    grown = context.now_ms - begun > context.initial_delay * 5 // 4
    context.check("TIMER-17", parked, "time", reached=grown, note="the initial delay is fixed (LAT-08)")


@timeouts.add("TIMER-17", needs=("initial-delay",))
async def newcomer_extends_the_initial_delay(context: ScenarioContext) -> None:
    """By a whole step from its end."""
    a, b = (
        member_with_timeout(context, "A", 10 * context.initial_delay),
        member_with_timeout(context, "B", 10 * context.initial_delay),
    )
    await check_delay_extended(context, a, b)


@timeouts.add("TIMER-17", needs=("initial-delay",))
async def initial_delay_ends_with_the_rebalance_timeout(context: ScenarioContext) -> None:
    """It is not extended beyond what the first member would wait for."""
    a, b = (
        member_with_timeout(context, "A", context.initial_delay * 3 // 2),
        member_with_timeout(context, "B", 100 * context.initial_delay),
    )
    await check_delay_extended(context, a, b)


@timeouts.add("TIMER-18", needs=("initial-delay",))
async def initial_delay_is_not_cut_short(context: ScenarioContext) -> None:
    """Two members are there from the beginning, and the group waits all the same."""
    calls = [await context.join_new(context.member_without_heartbeats(label)) for label in "AB"]
    for call in calls:
        await call
        context.check("TIMER-18", call, "time")


@timeouts.add("TIMER-19", needs=("initial-delay",))
async def initial_delay_after_emptying(context: ScenarioContext) -> None:
    """A group that everyone left waits again."""
    (a,) = await context.form_stable_group(context.member_without_heartbeats("A"))
    await context.leave(a)
    parked = await context.join_new(context.member_without_heartbeats("B"))
    await parked
    context.check("TIMER-19", parked, "time")


@timeouts.add("TIMER-20", needs=("initial-delay",))
async def pending_id_does_not_lengthen_the_initial_delay(context: ScenarioContext) -> None:
    """An id that was handed out and not used is not waited for."""
    handed_out = context.join(
        context.member_without_heartbeats("X"), version=context.highest_version("JoinGroup", at_least=4)
    )
    await handed_out
    parked = await context.join_new(member_with_timeout(context, "A", context.long_session_timeout))
    await parked
    context.check("TIMER-20", parked, "time", reached=handed_out.error == 79)


@timeouts.add("TIMER-23", needs=("no-initial-delay",))
async def lone_member_without_an_initial_delay(context: ScenarioContext) -> None:
    """It is answered at once."""
    parked = await context.join_new(context.member_without_heartbeats("A"))
    await parked
    context.check("TIMER-23", parked, "time")
