"""Heartbeat: its errors in each state, and its effect on sessions."""

from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily
from fencepost.model.errors import Error

heartbeats = ScenarioFamily()


@heartbeats.add("HB-01")
async def heartbeat_without_a_group(group: ScenarioContext) -> None:
    """A Heartbeat with the empty group id is refused."""
    a = group.member("A")
    await group.check("HB-01", group.heartbeat(a, group_id="", member_id="nobody", generation_id=1))


@heartbeats.add("HB-02")
async def heartbeat_to_nobody(group: ScenarioContext) -> None:
    """An unknown group and an emptied group refuse every member id."""
    await group.check("HB-02", group.heartbeat(group.member("B"), member_id="nobody", generation_id=1))
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    for generation in (a.generation, a.generation + 1):
        await group.check("HB-02", group.heartbeat(a, generation_id=generation))


@heartbeats.add("HB-05", "HB-04", "HB-03", smoke=True)
async def heartbeat_in_stable(group: ScenarioContext) -> None:
    """The current generation succeeds; other generations and unknown ids are refused."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))

    for member in (a, b):
        await group.check("HB-05", group.heartbeat(member))
    for generation in (b.generation + 1, b.generation - 1, -1):
        await group.check("HB-04", group.heartbeat(a, generation_id=generation))
    for generation in (a.generation, -1):
        await group.check("HB-03", group.heartbeat(a, member_id="nobody", generation_id=generation))


@heartbeats.add("HB-06", "HB-11")
async def heartbeat_in_preparing(group: ScenarioContext) -> None:
    """During the join phase every Heartbeat gets REBALANCE_IN_PROGRESS, until the member rejoins."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))

    parked = group.join(a)
    is_preparing = await group.wait_for_state(PREPARING)

    for requirement in ("HB-06", "HB-11", "HB-11"):
        call = group.heartbeat(b)
        body = await call
        is_reached = is_preparing or body["error_code"] == Error.REBALANCE_IN_PROGRESS
        await group.check(requirement, call, reached=is_reached)
    await group.join(b)
    await parked
    await group.check("HB-11", group.heartbeat(b))


@heartbeats.add("HB-07", smoke=True)
async def heartbeat_in_completing(group: ScenarioContext) -> None:
    """In CompletingRebalance, the Heartbeats of leader and follower succeed."""
    for member in await group.form_generation(group.member("A"), group.member("B")):
        await group.check("HB-07", group.heartbeat(member))


@heartbeats.add("HB-08")
async def heartbeat_of_a_pending_id(group: ScenarioContext) -> None:
    """A member id that was only issued is unknown."""
    (a,) = await group.form_stable_group(group.member("A"))

    newcomer = group.member("P")
    body = await group.join(newcomer, version=group.highest_version("JoinGroup", 4))

    await group.check(
        "HB-08",
        group.heartbeat(newcomer, generation_id=a.generation),
        reached=body["error_code"] == Error.MEMBER_ID_REQUIRED,
    )


@heartbeats.add("HB-09")
async def heartbeat_extends_the_session(group: ScenarioContext) -> None:
    """Heartbeats at every half session timeout keep a member for longer than one session."""
    (a,) = await group.form_stable_group(group.member("A"))

    past = 0
    while past < a.session_timeout + 2 * group.grace + group.short_pause:
        await group.sleep(a.session_timeout // 2)
        past += a.session_timeout // 2
        call = group.heartbeat(a)
        await call

    await group.check("HB-09", call)


@heartbeats.add("HB-09")
async def heartbeat_in_preparing_extends_the_session(group: ScenarioContext) -> None:
    """Heartbeats that get REBALANCE_IN_PROGRESS keep a member, too."""
    enough = group.session_timeout + 2 * group.grace + group.short_pause
    a = group.member_without_heartbeats("A")
    b = group.member("B", rebalance_timeout=2 * enough + group.rebalance_timeout)
    await group.form_stable_group(a, b)

    parked = group.join_with_new_metadata(a)
    is_preparing = await group.wait_for_state(PREPARING)
    past = 0
    while past < enough:
        await group.sleep(b.session_timeout // 2)
        past += b.session_timeout // 2
        call = group.heartbeat(b)
        await call
    is_reached = is_preparing or call.error == Error.REBALANCE_IN_PROGRESS

    await group.check("HB-09", call, reached=is_reached)
    await group.join(b)
    await parked


@heartbeats.add("HB-10")
async def refused_heartbeat_does_not_extend(group: ScenarioContext) -> None:
    """A member that only sends Heartbeats of another generation expires."""
    await group.keep_when_empty()
    (a,) = await group.form_stable_group(group.member("A"))

    past = 0
    while past < a.session_timeout + 2 * group.grace + group.short_pause:
        await group.heartbeat(a, generation_id=a.generation + 1)
        await group.sleep(a.session_timeout // 2)
        past += a.session_timeout // 2

    await group.check("HB-10", group.heartbeat(a))


@heartbeats.add("HB-13")
async def heartbeats_do_not_replace_a_rejoin(group: ScenarioContext) -> None:
    """A member that heartbeats but does not rejoin is removed at the rebalance timeout."""
    a, b = group.member_without_heartbeats("A"), group.member("B")
    await group.form_stable_group(a, b)

    parked = group.join_with_new_metadata(a)
    await group.keep_alive([b], b.rebalance_timeout + 2 * group.grace + group.short_pause)

    await group.check("HB-13", group.heartbeat(b))
    await parked


@heartbeats.add("HB-13")
async def heartbeats_do_not_replace_a_sync(group: ScenarioContext) -> None:
    """A follower that heartbeats but does not sync is removed at the rebalance timeout."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    await group.sync_leader(leader, follower)
    await group.keep_alive([leader, follower], follower.rebalance_timeout + 2 * group.grace + group.short_pause)

    await group.check("HB-13", group.heartbeat(follower))


@heartbeats.add("HB-14")
async def instance_before_generation(group: ScenarioContext) -> None:
    """A foreign and an unknown instance id are refused before a wrong generation is."""
    version = group.highest_version("Heartbeat", 3)
    group.highest_version("JoinGroup", 5)
    a, b = await group.form_stable_group(group.member("A", instance="one"), group.member("B", instance="two"))

    for instance in (b.instance, "nobody"):
        await group.check(
            "HB-14", group.heartbeat(a, group_instance_id=instance, generation_id=a.generation + 1, version=version)
        )
