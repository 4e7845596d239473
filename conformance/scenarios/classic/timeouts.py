"""The timeouts of a round: the initial delay, the rebalance timeout of the join phase and that of the sync phase."""

from fencepost.conformance.scenario.context import Member, Stage
from fencepost.conformance.scenario.scenario import Collection

timeouts = Collection()
SHORT_MS = 1_000
MEDIUM_MS = 3_000


# --- the join phase ------------------------------------------------------------------------------------------------


def waiting(stage: Stage, label: str, rebalance: int) -> Member:
    """A member that need not heartbeat, with this rebalance timeout."""
    member = stage.silent(label)
    member.rebalance = rebalance
    return member


@timeouts.add("TIMER-09")
async def longest_rebalance_timeout_counts(stage: Stage) -> None:
    """The round waits as long as its most patient member wants, here one that does not come."""
    a, b = waiting(stage, "A", SHORT_MS), waiting(stage, "B", MEDIUM_MS)
    await stage.stable(a, b)
    parked = stage.join_changed(a)
    await parked
    stage.shows("TIMER-09", parked, "time")


@timeouts.add("TIMER-09")
async def rebalance_timeout_of_the_last_join_counts(stage: Stage) -> None:
    """A member that has rejoined with more patience is waited for that much longer."""
    leader, follower = await stage.stable(waiting(stage, "A", MEDIUM_MS), waiting(stage, "B", MEDIUM_MS))
    follower.rebalance = 2 * MEDIUM_MS
    rejoined = stage.join_changed(follower)
    await stage.join(leader)
    await rejoined
    await stage.settle(leader, follower)
    parked = stage.join_changed(leader)
    await parked
    stage.shows("TIMER-09", parked, "time")


@timeouts.add("TIMER-10")
async def later_joiners_do_not_extend_a_round(stage: Stage) -> None:
    """A newcomer with more patience changes nothing for the round under way."""
    a, b = waiting(stage, "A", MEDIUM_MS), waiting(stage, "B", MEDIUM_MS)
    await stage.stable(a, b)
    parked = stage.join_changed(a)
    await stage.sleep(stage.step)
    await stage.enter(waiting(stage, "C", 20_000))
    await parked
    stage.shows("TIMER-10", parked, "time")


# --- the sync phase ------------------------------------------------------------------------------------------------


@timeouts.add("TIMER-11")
async def sync_timeout_despite_heartbeats(stage: Stage) -> None:
    """Who only heartbeats after the join phase is removed when the rebalance timeout is over, and not before."""
    a = waiting(stage, "A", MEDIUM_MS)
    await stage.completing(a)
    await stage.sleep(a.rebalance - 500)
    before = stage.heartbeat(a)
    await before
    stage.shows("TIMER-11", before)
    await stage.sleep_past(500)
    after = stage.heartbeat(a)
    await after
    stage.shows("TIMER-11", after)


@timeouts.add("TIMER-12")
async def sync_timeout_of_a_follower_in_stable(stage: Stage) -> None:
    """A follower that does not fetch its assignment is removed, and the leader has to rejoin."""
    leader, follower = await stage.completing(waiting(stage, "A", MEDIUM_MS), waiting(stage, "B", MEDIUM_MS))
    await stage.lead(leader, follower)
    await stage.sleep_past(leader.rebalance)
    for member in (leader, follower):
        call = stage.heartbeat(member)
        await call
        stage.shows("TIMER-12", call)


@timeouts.add("TIMER-13")
async def sync_timeout_of_the_leader(stage: Stage) -> None:
    """Followers that wait for a leader in vain are told to rejoin."""
    _, follower = await stage.completing(waiting(stage, "A", MEDIUM_MS), waiting(stage, "B", MEDIUM_MS))
    parked = stage.sync(follower)
    await stage.sleep_past(follower.rebalance)
    told = stage.heartbeat(follower)
    await told
    stage.shows("TIMER-13", told)
    await parked
    stage.shows("TIMER-13", parked)


@timeouts.add("TIMER-14")
async def nobody_syncs(stage: Stage) -> None:
    """The group is Empty afterwards."""
    a, b = waiting(stage, "A", MEDIUM_MS), waiting(stage, "B", MEDIUM_MS)
    await stage.completing(a, b)
    await stage.sleep_past(a.rebalance)
    described = stage.describe()
    await described
    stage.shows("TIMER-14", described, "state")


@timeouts.add("TIMER-15")
async def everyone_syncs_in_time(stage: Stage) -> None:
    """Nothing happens when the rebalance timeout is over."""
    a, b = waiting(stage, "A", SHORT_MS), waiting(stage, "B", SHORT_MS)
    await stage.stable(a, b)
    await stage.sleep_past(a.rebalance)
    for member in (a, b):
        call = stage.heartbeat(member)
        await call
        stage.shows("TIMER-15", call)


@timeouts.add("TIMER-15", "TIMER-26")
async def everyone_rejoins_in_time(stage: Stage) -> None:
    """Nor does anything happen when the join phase would have been over."""
    a, b = await stage.stable(waiting(stage, "A", MEDIUM_MS), waiting(stage, "B", MEDIUM_MS))
    await stage.regroup(a, b)
    await stage.settle(a, b)
    await stage.sleep_past(a.rebalance)
    for member in (a, b):
        call = stage.heartbeat(member)
        await call
        stage.shows("TIMER-15", call)
        stage.shows("TIMER-26", call)


# --- the initial delay ---------------------------------------------------------------------------------------------


@timeouts.add("TIMER-16", needs=("initial-delay",), smoke=True)
async def first_member_waits_for_the_initial_delay(stage: Stage) -> None:
    """A group gives others the time to come before its first round."""
    parked = await stage.enter(stage.silent("A"))
    await parked
    stage.shows("TIMER-16", parked, "time")


async def show_growth(stage: Stage, first: Member, newcomer: Member) -> None:
    """The first member has to wait for the one that comes halfway through the delay."""
    parked = await stage.enter(first)
    begun = stage.clock
    await stage.sleep(stage.delay // 2)
    await stage.enter(newcomer)
    await parked
    grown = stage.clock - begun > stage.delay * 5 // 4
    stage.shows("TIMER-17", parked, "time", met=grown, note="the initial delay is fixed (LAT-08)")


@timeouts.add("TIMER-17", needs=("initial-delay",))
async def newcomer_extends_the_initial_delay(stage: Stage) -> None:
    """By a whole step from its end."""
    a, b = waiting(stage, "A", 10 * stage.delay), waiting(stage, "B", 10 * stage.delay)
    await show_growth(stage, a, b)


@timeouts.add("TIMER-17", needs=("initial-delay",))
async def initial_delay_ends_with_the_rebalance_timeout(stage: Stage) -> None:
    """It is not extended beyond what the first member would wait for."""
    a, b = waiting(stage, "A", stage.delay * 3 // 2), waiting(stage, "B", 100 * stage.delay)
    await show_growth(stage, a, b)


@timeouts.add("TIMER-18", needs=("initial-delay",))
async def initial_delay_is_not_cut_short(stage: Stage) -> None:
    """Two members are there from the beginning, and the group waits all the same."""
    calls = [await stage.enter(stage.silent(label)) for label in "AB"]
    for call in calls:
        await call
        stage.shows("TIMER-18", call, "time")


@timeouts.add("TIMER-19", needs=("initial-delay",))
async def initial_delay_after_emptying(stage: Stage) -> None:
    """A group that everyone left waits again."""
    (a,) = await stage.stable(stage.silent("A"))
    await stage.leave(a)
    parked = await stage.enter(stage.silent("B"))
    await parked
    stage.shows("TIMER-19", parked, "time")


@timeouts.add("TIMER-20", needs=("initial-delay",))
async def pending_id_does_not_lengthen_the_initial_delay(stage: Stage) -> None:
    """An id that was handed out and not used is not waited for."""
    handed_out = stage.join(stage.silent("X"), version=stage.version("JoinGroup", at_least=4))
    await handed_out
    parked = await stage.enter(waiting(stage, "A", stage.long_session))
    await parked
    stage.shows("TIMER-20", parked, "time", met=handed_out.error == 79)


@timeouts.add("TIMER-23", needs=("no-initial-delay",))
async def lone_member_without_an_initial_delay(stage: Stage) -> None:
    """It is answered at once."""
    parked = await stage.enter(stage.silent("A"))
    await parked
    stage.shows("TIMER-23", parked, "time")
