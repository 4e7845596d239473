"""JoinGroup within the group: what begins a join phase, what ends it, and what does neither."""

from fencepost.conformance.scenario.admin_requests import PREPARING
from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

rejoining = ScenarioFamily()


@rejoining.add("JOIN-24", smoke=True)
async def newcomer_in_stable(context: ScenarioContext) -> None:
    """A newcomer has to wait for the members, and they are told."""
    (a,) = await context.form_stable_group(context.member("A"))
    newcomer = await context.join_new(context.member("B"))
    begun = await context.wait_for_state(PREPARING)
    told = context.heartbeat(a)
    body = await told
    context.check("JOIN-24", told, reached=begun or body["error_code"] == 27)
    await context.join(a)
    await newcomer


@rejoining.add("JOIN-25")
async def newcomer_in_completing(context: ScenarioContext) -> None:
    """A newcomer ends the sync phase for a follower that waits for its assignment."""
    leader, follower = await context.form_generation(context.member("A"), context.member("B"))
    waiting = context.sync(follower)
    await context.sleep(context.short_pause)
    newcomer = await context.join_new(context.member("C"))
    await waiting
    context.check("JOIN-25", waiting)
    rejoined = context.join(follower)
    await context.join(leader)
    await rejoined
    await newcomer


@rejoining.add("JOIN-26")
async def rejoin_waits_for_the_others(context: ScenarioContext) -> None:
    """One of two members comes back; it waits for the other."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    newcomer = await context.join_new(context.member("C"))
    await context.wait_for_state(PREPARING)
    call = context.join(b)
    await context.sleep(2 * context.short_pause)
    await context.join(a)
    await call
    context.check("JOIN-26", call, "time")
    await newcomer


@rejoining.add("JOIN-27")
async def last_rejoin_completes_the_phase(context: ScenarioContext) -> None:
    """As soon as the second of two members is back, both are answered."""
    long = context.session_timeout + 2 * context.grace
    a, b = await context.form_stable_group(
        context.member("A", session_timeout=long), context.member("B", session_timeout=long)
    )
    for call in await context.rebalance(a, b):
        context.check("JOIN-27", call)


@rejoining.add("JOIN-29")
async def same_again_in_completing(context: ScenarioContext) -> None:
    """Members that ask again in the sync phase get what they were told before, and the round goes on."""
    leader, follower = await context.form_generation(context.member("A"), context.member("B"))
    for member in (leader, follower):
        call = context.join(member)
        await call
        context.check("JOIN-29", call, "error", "generation", "members")
    call = context.sync_leader(leader, follower)
    await call
    context.check("JOIN-29", call)


@rejoining.add("JOIN-30")
async def change_in_completing(context: ScenarioContext) -> None:
    """Other metadata in the sync phase begins a new round."""
    (a,) = await context.form_generation(context.member("A"))
    call = context.join_with_new_metadata(a)
    await call
    context.check("JOIN-30", call, "generation")


@rejoining.add("JOIN-31", smoke=True)
async def leader_rejoins_in_stable(context: ScenarioContext) -> None:
    """The leader's JoinGroup begins a round though nothing changed."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    call = context.join(a)
    begun = await context.wait_for_state(PREPARING)
    told = context.heartbeat(b)
    body = await told
    context.check("JOIN-31", told, reached=begun or body["error_code"] == 27)
    await context.join(b)
    await call
    context.check("JOIN-31", call, "time")


@rejoining.add("JOIN-32")
async def follower_rejoins_unchanged(context: ScenarioContext) -> None:
    """A follower that asks again is told the current generation at once, and nobody else notices."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    call = context.join(b)
    await call
    context.check("JOIN-32", call, "error", "generation", "leader", "members")
    undisturbed = context.heartbeat(a)
    await undisturbed
    context.check("JOIN-32", undisturbed)


@rejoining.add("JOIN-33")
async def follower_rejoins_changed(context: ScenarioContext) -> None:
    """Other metadata of a follower begins a round."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    call = context.join_with_new_metadata(b)
    begun = await context.wait_for_state(PREPARING)
    told = context.heartbeat(a)
    body = await told
    context.check("JOIN-33", told, reached=begun or body["error_code"] == 27)
    await context.join(a)
    await call
    context.check("JOIN-33", call, "time")


@rejoining.add("JOIN-34")
async def order_of_protocols_counts(context: ScenarioContext) -> None:
    """The same protocols the other way round begin a round."""
    a, b = await context.form_stable_group(context.member("A", "p", "q"), context.member("B", "p", "q"))
    turned = [{"name": name, "metadata": metadata} for name, metadata in reversed(b.protocols)]
    call = context.join(b, protocols=turned)
    begun = await context.wait_for_state(PREPARING)
    told = context.heartbeat(a)
    body = await told
    context.check("JOIN-34", told, reached=begun or body["error_code"] == 27)
    await context.join(a)
    await call
    context.check("JOIN-34", call, "time")


@rejoining.add("JOIN-35")
async def changed_timeout_is_no_change(context: ScenarioContext) -> None:
    """A follower that asks again for a longer session gets the current generation and keeps the old session."""
    _, b = await context.form_stable_group(context.member("A"), context.member("B"))
    longer = context.long_session_timeout
    call = context.join(b, session_timeout_ms=longer, rebalance_timeout_ms=2 * longer)
    await call
    await context.sleep_past(b.session_timeout)
    late = context.heartbeat(b)
    await late
    context.check("JOIN-35", late, reached=longer > b.session_timeout + 2 * context.grace + context.short_pause)


@rejoining.add("JOIN-51")
async def second_join_takes_the_place_of_the_first(context: ScenarioContext) -> None:
    """A member that asks twice is one member: the round waits for the other, and the second request is answered."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    context.join(a)
    await context.wait_for_state(PREPARING)
    again = context.join(a)
    await context.sleep(2 * context.short_pause)
    await context.join(b)
    await again
    context.check("JOIN-51", again, "error", "time")


@rejoining.add("JOIN-52")
async def dropped_connection_still_counts(context: ScenarioContext) -> None:
    """A member whose connection went after it rejoined is part of the round."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    gone = context.join_with_new_metadata(b)
    await context.wait_for_state(PREPARING)
    gone.drop_connection()
    await context.sleep(context.short_pause)
    call = context.join(a)
    await call
    context.check("JOIN-52", call)


@rejoining.add("JOIN-44", "JOIN-45")
async def rebalance_timeout_drops_the_absent(context: ScenarioContext) -> None:
    """The round goes on without a member that did not come back in time, and that member is unknown."""
    one, other = await context.form_stable_group(
        context.member_without_heartbeats("A"), context.member_without_heartbeats("B")
    )
    call = context.join_with_new_metadata(one)
    await call
    context.check("JOIN-44", call, "members", "time")
    for refused in (context.join(other), context.sync(other), context.heartbeat(other), context.commit(other, {0: 1})):
        await refused
        context.check("JOIN-45", refused)


@rejoining.add("JOIN-44")
async def absent_member_is_waited_for(context: ScenarioContext) -> None:
    """A member that heartbeats and does not come back has until the rebalance timeout."""
    one, other = await context.form_stable_group(context.member("A"), context.member("B"))
    call = context.join_with_new_metadata(one)
    context.check("JOIN-44", call, "time")
    await context.keep_alive([other], one.rebalance_timeout + context.short_pause)
    await call


@rejoining.add("JOIN-42")
async def version_0_has_one_timeout(context: ScenarioContext) -> None:
    """In version 0 the session timeout says how long a round waits for the absent."""
    version = context.highest_version("JoinGroup", 0, 0)
    a = context.member("A", rebalance_timeout=10 * context.rebalance_timeout)
    await context.form_stable_group(
        a, context.member("B", session_timeout=context.long_session_timeout, rebalance_timeout=context.session_timeout)
    )
    changed = [{"name": "range", "metadata": context.metadata("changed")}]
    call = context.join(a, session_timeout_ms=context.rebalance_timeout, protocols=changed, version=version)
    await call
    context.check("JOIN-42", call, "time")
