"""Heartbeat: who is told what, and what keeps a session alive."""

from fencepost.conformance.scenario.admin_requests import PREPARING
from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

heartbeats = ScenarioFamily()


@heartbeats.add("HB-01")
async def heartbeat_without_a_group(context: ScenarioContext) -> None:
    """H with the empty group id."""
    a = context.member("A")
    call = context.heartbeat(a, group_id="", member_id="nobody", generation_id=1)
    await call
    context.check("HB-01", call)


@heartbeats.add("HB-02")
async def heartbeat_to_nobody(context: ScenarioContext) -> None:
    """A group that never was, and one that everybody has left."""
    call = context.heartbeat(context.member("B"), member_id="nobody", generation_id=1)
    await call
    context.check("HB-02", call)
    (a,) = await context.form_stable_group(context.member("A"))
    await context.leave(a)
    for generation in (a.generation, a.generation + 1):
        call = context.heartbeat(a, generation_id=generation)
        await call
        context.check("HB-02", call)


@heartbeats.add("HB-05", "HB-04", "HB-03", smoke=True)
async def heartbeat_in_stable(context: ScenarioContext) -> None:
    """The current generation is answered; others and strangers are not."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    for member in (a, b):
        good = context.heartbeat(member)
        await good
        context.check("HB-05", good)
    for generation in (b.generation + 1, b.generation - 1, -1):
        wrong = context.heartbeat(a, generation_id=generation)
        await wrong
        context.check("HB-04", wrong)
    for generation in (a.generation, -1):
        stranger = context.heartbeat(a, member_id="nobody", generation_id=generation)
        await stranger
        context.check("HB-03", stranger)


@heartbeats.add("HB-06", "HB-11")
async def heartbeat_in_preparing(context: ScenarioContext) -> None:
    """During the join phase every heartbeat says so, until the member rejoins."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    parked = context.join(a)
    begun = await context.wait_for_state(PREPARING)
    for requirement in ("HB-06", "HB-11", "HB-11"):
        told = context.heartbeat(b)
        body = await told
        context.check(requirement, told, reached=begun or body["error_code"] == 27)
    await context.join(b)
    await parked
    again = context.heartbeat(b)
    await again
    context.check("HB-11", again)


@heartbeats.add("HB-07", smoke=True)
async def heartbeat_in_completing(context: ScenarioContext) -> None:
    """Leader and followers are told that all is well while the assignment is awaited."""
    for member in await context.form_generation(context.member("A"), context.member("B")):
        call = context.heartbeat(member)
        await call
        context.check("HB-07", call)


@heartbeats.add("HB-08")
async def heartbeat_of_a_pending_id(context: ScenarioContext) -> None:
    """An id that was handed out does not make a member."""
    (a,) = await context.form_stable_group(context.member("A"))
    stranger = context.member("P")
    body = await context.join(stranger, version=context.highest_version("JoinGroup", 4))
    call = context.heartbeat(stranger, generation_id=a.generation)
    await call
    context.check("HB-08", call, reached=body["error_code"] == 79)


@heartbeats.add("HB-09")
async def heartbeat_extends_the_session(context: ScenarioContext) -> None:
    """Heartbeats every half session keep a member well beyond one session."""
    (a,) = await context.form_stable_group(context.member("A"))
    past = 0
    while past < a.session_timeout + 2 * context.grace + context.short_pause:
        await context.sleep(a.session_timeout // 2)
        past += a.session_timeout // 2
        call = context.heartbeat(a)
        await call
    context.check("HB-09", call)


@heartbeats.add("HB-09")
async def heartbeat_in_preparing_extends_the_session(context: ScenarioContext) -> None:
    """A member that is told of the rebalance again and again stays, as long as the round may take."""
    enough = context.session_timeout + 2 * context.grace + context.short_pause
    a, b = await context.form_stable_group(
        context.member("A"), context.member("B", rebalance_timeout=2 * enough + context.rebalance_timeout)
    )
    parked = context.join_with_new_metadata(a)
    begun = await context.wait_for_state(PREPARING)
    past = 0
    while past < enough:
        await context.sleep(b.session_timeout // 2)
        past += b.session_timeout // 2
        call = context.heartbeat(b)
        body = await call
    context.check("HB-09", call, reached=begun or body["error_code"] == 27)
    await context.join(b)
    await parked


@heartbeats.add("HB-10")
async def refused_heartbeat_does_not_extend(context: ScenarioContext) -> None:
    """Heartbeats of another generation do not keep a member."""
    (a,) = await context.form_stable_group(context.member("A"))
    past = 0
    while past < a.session_timeout + 2 * context.grace + context.short_pause:
        await context.heartbeat(a, generation_id=a.generation + 1)
        await context.sleep(a.session_timeout // 2)
        past += a.session_timeout // 2
    call = context.heartbeat(a)
    await call
    context.check("HB-10", call)


@heartbeats.add("HB-13")
async def heartbeats_do_not_replace_a_rejoin(context: ScenarioContext) -> None:
    """A member that only heartbeats is dropped at the rebalance timeout."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    parked = context.join_with_new_metadata(a)
    await context.keep_alive([b], b.rebalance_timeout + 2 * context.grace + context.short_pause)
    call = context.heartbeat(b)
    await call
    context.check("HB-13", call)
    await parked


@heartbeats.add("HB-13")
async def heartbeats_do_not_replace_a_sync(context: ScenarioContext) -> None:
    """A follower that never fetches its assignment is dropped, though it heartbeats."""
    leader, follower = await context.form_generation(context.member("A"), context.member("B"))
    await context.sync_leader(leader, follower)
    await context.keep_alive([leader, follower], follower.rebalance_timeout + 2 * context.grace + context.short_pause)
    call = context.heartbeat(follower)
    await call
    context.check("HB-13", call)


@heartbeats.add("HB-14")
async def instance_before_generation(context: ScenarioContext) -> None:
    """The instance id of another member, and one that nobody has, with a wrong generation."""
    version = context.highest_version("Heartbeat", 3)
    context.highest_version("JoinGroup", 5)
    a, b = await context.form_stable_group(context.member("A", instance="one"), context.member("B", instance="two"))
    for instance in (b.instance, "nobody"):
        call = context.heartbeat(a, group_instance_id=instance, generation_id=a.generation + 1, version=version)
        await call
        context.check("HB-14", call)
