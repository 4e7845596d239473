"""JoinGroup of members and newcomers: which begin a join phase, which complete it, and which do neither."""

from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily

rejoining = ScenarioFamily()


@rejoining.add("JOIN-24", smoke=True)
async def newcomer_in_stable(group: ScenarioContext) -> None:
    """A newcomer begins a join phase, which the member learns by Heartbeat."""
    (a,) = await group.form_stable_group(group.member("A"))

    newcomer = await group.join_new(group.member("B"))
    await group.check_rebalance_started("JOIN-24", observer=a)
    await group.join(a)
    await newcomer


@rejoining.add("JOIN-25")
async def newcomer_in_completing(group: ScenarioContext) -> None:
    """A newcomer in CompletingRebalance begins another join phase: the parked follower has to rejoin."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    waiting = group.sync(follower)
    await group.sleep(group.short_pause)
    newcomer = await group.join_new(group.member("C"))

    await group.check("JOIN-25", waiting)
    rejoined = group.join(follower)
    await group.join(leader)
    await rejoined
    await newcomer


@rejoining.add("JOIN-26")
async def rejoin_waits_for_the_others(group: ScenarioContext) -> None:
    """The first of two members that rejoin waits for the second."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))

    newcomer = await group.join_new(group.member("C"))
    await group.wait_for_state(PREPARING)
    call = group.join(b)
    await group.sleep(2 * group.short_pause)
    await group.join(a)

    await group.check("JOIN-26", call, fields="time")
    await newcomer


@rejoining.add("JOIN-27")
async def last_rejoin_completes_the_phase(group: ScenarioContext) -> None:
    """The second of two members that rejoin completes the join phase at once."""
    long = group.session_timeout + 2 * group.grace
    a, b = await group.form_stable_group(
        group.member("A", session_timeout=long), group.member("B", session_timeout=long)
    )
    for call in await group.rebalance(a, b):
        await group.check("JOIN-27", call)


@rejoining.add("JOIN-29")
async def same_again_in_completing(group: ScenarioContext) -> None:
    """In CompletingRebalance, members that rejoin unchanged get the same response, and the sync phase goes on."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))
    for member in (leader, follower):
        await group.check("JOIN-29", group.join(member), fields=("error", "generation", "members"))
    await group.check("JOIN-29", group.sync_leader(leader, follower))


@rejoining.add("JOIN-30")
async def change_in_completing(group: ScenarioContext) -> None:
    """Other metadata in CompletingRebalance begins another join phase."""
    (a,) = await group.form_generation(group.member("A"))
    await group.check("JOIN-30", group.join_with_new_metadata(a), fields="generation")


@rejoining.add("JOIN-31", smoke=True)
async def leader_rejoins_in_stable(group: ScenarioContext) -> None:
    """In Stable, a JoinGroup of the leader begins a join phase, even if it is unchanged."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))

    call = group.join(a)
    await group.check_rebalance_started("JOIN-31", observer=b)
    await group.join(b)
    await group.check("JOIN-31", call, fields="time")


@rejoining.add("JOIN-32")
async def follower_rejoins_unchanged(group: ScenarioContext) -> None:
    """In Stable, a follower that rejoins unchanged gets the current generation at once; the leader is not affected."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.check("JOIN-32", group.join(b), fields=("error", "generation", "leader", "members"))
    await group.check("JOIN-32", group.heartbeat(a))


@rejoining.add("JOIN-33")
async def follower_rejoins_changed(group: ScenarioContext) -> None:
    """In Stable, other metadata of a follower begin a join phase."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))

    call = group.join_with_new_metadata(b)
    await group.check_rebalance_started("JOIN-33", observer=a)
    await group.join(a)
    await group.check("JOIN-33", call, fields="time")


@rejoining.add("JOIN-34")
async def order_of_protocols_counts(group: ScenarioContext) -> None:
    """In Stable, the same protocols in another order begin a join phase."""
    a, b = await group.form_stable_group(group.member("A", "p", "q"), group.member("B", "p", "q"))

    turned = [{"name": name, "metadata": metadata} for name, metadata in reversed(b.protocols)]
    call = group.join(b, protocols=turned)

    await group.check_rebalance_started("JOIN-34", observer=a)
    await group.join(a)
    await group.check("JOIN-34", call, fields="time")


@rejoining.add("JOIN-35")
async def changed_timeout_is_no_change(group: ScenarioContext) -> None:
    """A follower that rejoins with a longer session timeout gets the current generation and keeps the old one."""
    await group.keep_when_empty()
    _, b = await group.form_stable_group(group.member("A"), group.member("B"))

    longer = group.long_session_timeout
    call = group.join(b, session_timeout_ms=longer, rebalance_timeout_ms=2 * longer)
    await call
    await group.sleep_past(b.session_timeout)

    await group.check(
        "JOIN-35", group.heartbeat(b), reached=longer > b.session_timeout + 2 * group.grace + group.short_pause
    )


@rejoining.add("JOIN-51")
async def second_join_takes_the_place_of_the_first(group: ScenarioContext) -> None:
    """A second JoinGroup of a member replaces its parked one; the join phase still waits for the other member."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))

    group.join(a)
    await group.wait_for_state(PREPARING)
    again = group.join(a)
    await group.sleep(2 * group.short_pause)
    await group.join(b)

    await group.check("JOIN-51", again, fields=("error", "time"))


@rejoining.add("JOIN-52")
async def dropped_connection_still_counts(group: ScenarioContext) -> None:
    """A member that rejoined and lost its connection is part of the generation."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))

    gone = group.join_with_new_metadata(b)
    await group.wait_for_state(PREPARING)
    gone.drop_connection()
    await group.sleep(group.short_pause)

    await group.check("JOIN-52", group.join(a))


@rejoining.add("JOIN-44", "JOIN-45")
async def rebalance_timeout_drops_the_absent(group: ScenarioContext) -> None:
    """A member that does not rejoin within the rebalance timeout is removed, and unknown from then on."""
    one, other = await group.form_stable_group(
        group.member_without_heartbeats("A"), group.member_without_heartbeats("B")
    )
    await group.check("JOIN-44", group.join_with_new_metadata(one), fields=("members", "time"))
    for refused in (group.join(other), group.sync(other), group.heartbeat(other), group.commit(other, {0: 1})):
        await group.check("JOIN-45", refused)


@rejoining.add("JOIN-44")
async def absent_member_is_waited_for(group: ScenarioContext) -> None:
    """A member that heartbeats but does not rejoin is awaited until the rebalance timeout."""
    one, other = await group.form_stable_group(
        group.member_without_heartbeats("A"), group.member_without_heartbeats("B")
    )

    call = group.join_with_new_metadata(one)
    group.add_check("JOIN-44", call, fields="time")
    await group.keep_alive([other], one.rebalance_timeout + group.short_pause)
    await call


@rejoining.add("JOIN-42")
async def version_0_has_one_timeout(group: ScenarioContext) -> None:
    """In version 0, the session timeout is the rebalance timeout."""
    version = group.highest_version("JoinGroup", 0, 0)
    a, b = group.member_without_heartbeats("A"), group.member_without_heartbeats("B")
    a.rebalance_timeout, b.rebalance_timeout = 10 * group.rebalance_timeout, group.session_timeout
    await group.form_stable_group(a, b)

    changed = [{"name": "range", "metadata": group.metadata("changed")}]
    await group.check(
        "JOIN-42",
        group.join(a, session_timeout_ms=group.rebalance_timeout, protocols=changed, version=version),
        fields="time",
    )
