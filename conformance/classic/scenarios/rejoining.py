"""JoinGroup of members and newcomers: which join phases begin and end, what a completed one returns, the size limit."""

from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Member, Unsupported
from fencepost.model.errors import Error

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
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
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
    a, b = group.member("A"), group.expiring_member("B")
    await group.form_led_generation(a, b)
    await group.sync_all(a, b)

    generation, longer = b.generation, group.long_session_timeout
    call = group.join(b, session_timeout_ms=longer, rebalance_timeout_ms=2 * longer)
    await group.check("JOIN-35", call, fields=("error", "generation", "time"))
    group.require(b.generation == generation, "the unchanged rejoin began a rebalance")
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
    one, other = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.check("JOIN-44", group.join_with_new_metadata(one), fields=("members", "time"))
    for refused in (group.join(other), group.sync(other), group.heartbeat(other), group.commit(other, {0: 1})):
        await group.check("JOIN-45", refused)


@rejoining.add("JOIN-44")
async def absent_member_is_waited_for(group: ScenarioContext) -> None:
    """A member that heartbeats but does not rejoin is awaited until the rebalance timeout."""
    one, other = await group.form_stable_group(group.member("A"), group.member("B"))

    call = group.join_with_new_metadata(one)
    group.add_check("JOIN-44", call, fields="time")
    await group.keep_alive([other], one.rebalance_timeout + group.short_pause)
    await call


@rejoining.add("JOIN-42")
async def version_0_has_one_timeout(group: ScenarioContext) -> None:
    """In version 0, the session timeout is the rebalance timeout."""
    version = group.highest_version("JoinGroup", 0, 0)
    a, b = group.member("A"), group.member("B")
    a.rebalance_timeout, b.rebalance_timeout = 10 * group.rebalance_timeout, group.session_timeout
    await group.form_stable_group(a, b)

    changed = [{"name": "range", "metadata": group.metadata("changed")}]
    await group.check(
        "JOIN-42",
        group.join(a, session_timeout_ms=group.rebalance_timeout, protocols=changed, version=version),
        fields="time",
    )


# --- Responses of a completed join phase: one generation, one leader, and the members for the leader.


@rejoining.add("JOIN-36")
async def one_round_one_answer(group: ScenarioContext) -> None:
    """Two members get the same generation, protocol and leader."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    for call in await group.rebalance(a, b):
        await group.check("JOIN-36", call, fields=("error", "generation", "protocol", "leader"))


@rejoining.add("JOIN-37", smoke=True)
async def members_for_the_leader_alone(group: ScenarioContext) -> None:
    """The leader gets all members with their metadata for the selected protocol; the follower gets none."""
    a, b = await group.form_stable_group(
        group.member("A", ("p", b"p of A"), ("q", b"q of A"), protocol_type="worker"),
        group.member("B", ("p", b"p of B"), ("q", b"q of B"), protocol_type="worker"),
    )
    for call in await group.rebalance(a, b):
        await group.check("JOIN-37", call, fields="members")


@rejoining.add("JOIN-38")
async def kept_member_is_listed(group: ScenarioContext) -> None:
    """The list of members has the leader itself, and a static member that did not rejoin."""
    group.highest_version("JoinGroup", 5)
    a = group.member("A")
    await group.form_stable_group(a, group.member("S", instance="static"))

    await group.check("JOIN-38", group.join_with_new_metadata(a), fields="members")


@rejoining.add("JOIN-39")
async def answered_id_is_good(group: ScenarioContext) -> None:
    """A member can use the id that it got with its first success."""
    a = group.member("A")
    call = group.join(a, version=group.highest_version("JoinGroup", 0, 3))
    body = await call

    await group.check("JOIN-39", group.heartbeat(a), reached=body["error_code"] == 0)


@rejoining.add("JOIN-54")
async def metadata_is_opaque(group: ScenarioContext) -> None:
    """Metadata of all byte values, and empty ones, are returned unchanged."""
    a = group.member("A", ("p", bytes(range(256))), protocol_type="worker")
    await group.check("JOIN-54", await group.join_new(a), fields="members")
    await group.check("JOIN-54", group.join(a, protocols=[{"name": "p", "metadata": b""}]), fields="members")


@rejoining.add("JOIN-55")
async def instances_are_listed(group: ScenarioContext) -> None:
    """The list of members has the instance id of a static member."""
    await group.check(
        "JOIN-55",
        await group.join_new(group.member("A", instance="static"), version=group.highest_version("JoinGroup", 5)),
        fields="instances",
    )


@rejoining.add("JOIN-55")
async def old_leader_of_a_static_member(group: ScenarioContext) -> None:
    """A leader that rejoins in a version without instance ids gets the list of members, a static one among them."""
    group.highest_version("JoinGroup", 5)
    old = group.highest_version("JoinGroup", 0, 4)
    (leader,) = await group.form_stable_group(group.member("A"))
    joined = await group.join_new(group.member("S", instance="static"))
    await group.wait_for_state(PREPARING)
    await group.check("JOIN-55", group.join(leader, version=old), fields=("error", "members"))
    await joined


# --- The size limit of a group (KIP-389).


def full_group_members(group: ScenarioContext) -> list[Member]:
    """As many new members as the group may have, with timeouts that outlast a rebalance of all of them."""
    return [
        group.member(f"A{number}", rebalance_timeout=2 * group.rebalance_timeout)
        for number in range(group.settings.max_group_size)
    ]


@rejoining.add("JOIN-46")
async def full_group_refuses_newcomers(group: ScenarioContext) -> None:
    """A full group refuses newcomers in CompletingRebalance and in Stable."""
    leader, *followers = await group.form_generation(*full_group_members(group))
    for settled in (False, True):
        if settled:
            await group.sync_all(leader, *followers)
        await group.check("JOIN-46", group.join(group.member("N")), fields=("error", "member"))


@rejoining.add("JOIN-47")
async def members_rejoin_a_full_group(group: ScenarioContext) -> None:
    """All members of a full group can rejoin."""
    leader, *followers = await group.form_stable_group(*full_group_members(group))
    for call in await group.rebalance(leader, *followers):
        await group.check("JOIN-47", call)


@rejoining.add("JOIN-48", "JOIN-49")
async def parked_joins_are_counted(group: ScenarioContext) -> None:
    """A newcomer takes the place of the member that rejoins last, and that member is removed."""
    if group.settings.max_group_size < 2:
        raise Unsupported("groups of 2 members")
    leader, *followers, last = await group.form_stable_group(*full_group_members(group))

    newcomer = group.member("N", rebalance_timeout=2 * group.rebalance_timeout)
    calls = [group.join(leader)]
    await group.wait_for_state(PREPARING)
    calls += [await group.check_join_new("JOIN-48", newcomer), *(group.join(follower) for follower in followers)]
    await group.sleep(group.short_pause)
    refused = group.join(last)
    is_full = (await refused)["error_code"] == Error.GROUP_MAX_SIZE_REACHED

    await group.check("JOIN-48", refused, reached=is_full)
    await group.check("JOIN-49", group.heartbeat(last), reached=is_full)
    for call in calls:
        await call


@rejoining.add("JOIN-50")
async def pending_ids_take_no_place(group: ScenarioContext) -> None:
    """More member ids are issued than the group may have members."""
    version = group.highest_version("JoinGroup", 4)
    for number in range(group.settings.max_group_size + 2):
        call = group.join(group.member(f"P{number}"), version=version)
        await call
        if number >= group.settings.max_group_size:
            await group.check("JOIN-50", call)
