"""Heartbeat: who is told what, and what keeps a session alive."""

from fencepost.conformance.scenario.admin_requests import PREPARING
from fencepost.conformance.scenario.context import Stage
from fencepost.conformance.scenario.scenario import Collection

heartbeats = Collection()


@heartbeats.add("HB-01")
async def heartbeat_without_a_group(stage: Stage) -> None:
    """H with the empty group id."""
    a = stage.member("A")
    call = stage.heartbeat(a, group_id="", member_id="nobody", generation_id=1)
    await call
    stage.shows("HB-01", call)


@heartbeats.add("HB-02")
async def heartbeat_to_nobody(stage: Stage) -> None:
    """A group that never was, and one that everybody has left."""
    call = stage.heartbeat(stage.member("B"), member_id="nobody", generation_id=1)
    await call
    stage.shows("HB-02", call)
    (a,) = await stage.stable(stage.member("A"))
    await stage.leave(a)
    for generation in (a.generation, a.generation + 1):
        call = stage.heartbeat(a, generation_id=generation)
        await call
        stage.shows("HB-02", call)


@heartbeats.add("HB-05", "HB-04", "HB-03", smoke=True)
async def heartbeat_in_stable(stage: Stage) -> None:
    """The current generation is answered; others and strangers are not."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    for member in (a, b):
        good = stage.heartbeat(member)
        await good
        stage.shows("HB-05", good)
    for generation in (b.generation + 1, b.generation - 1, -1):
        wrong = stage.heartbeat(a, generation_id=generation)
        await wrong
        stage.shows("HB-04", wrong)
    for generation in (a.generation, -1):
        stranger = stage.heartbeat(a, member_id="nobody", generation_id=generation)
        await stranger
        stage.shows("HB-03", stranger)


@heartbeats.add("HB-06", "HB-11")
async def heartbeat_in_preparing(stage: Stage) -> None:
    """During the join phase every heartbeat says so, until the member rejoins."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    parked = stage.join(a)
    begun = await stage.reaches(PREPARING)
    for requirement in ("HB-06", "HB-11", "HB-11"):
        told = stage.heartbeat(b)
        body = await told
        stage.shows(requirement, told, met=begun or body["error_code"] == 27)
    await stage.join(b)
    await parked
    again = stage.heartbeat(b)
    await again
    stage.shows("HB-11", again)


@heartbeats.add("HB-07", smoke=True)
async def heartbeat_in_completing(stage: Stage) -> None:
    """Leader and followers are told that all is well while the assignment is awaited."""
    for member in await stage.completing(stage.member("A"), stage.member("B")):
        call = stage.heartbeat(member)
        await call
        stage.shows("HB-07", call)


@heartbeats.add("HB-08")
async def heartbeat_of_a_pending_id(stage: Stage) -> None:
    """An id that was handed out does not make a member."""
    (a,) = await stage.stable(stage.member("A"))
    stranger = stage.member("P")
    body = await stage.join(stranger, version=stage.version("JoinGroup", 4))
    call = stage.heartbeat(stranger, generation_id=a.generation)
    await call
    stage.shows("HB-08", call, met=body["error_code"] == 79)


@heartbeats.add("HB-09")
async def heartbeat_extends_the_session(stage: Stage) -> None:
    """Heartbeats every half session keep a member well beyond one session."""
    (a,) = await stage.stable(stage.member("A"))
    past = 0
    while past < a.session + 2 * stage.grace + stage.step:
        await stage.sleep(a.session // 2)
        past += a.session // 2
        call = stage.heartbeat(a)
        await call
    stage.shows("HB-09", call)


@heartbeats.add("HB-09")
async def heartbeat_in_preparing_extends_the_session(stage: Stage) -> None:
    """A member that is told of the rebalance again and again stays, as long as the round may take."""
    enough = stage.session + 2 * stage.grace + stage.step
    a, b = await stage.stable(stage.member("A"), stage.member("B", rebalance=2 * enough + stage.rebalance))
    parked = stage.join_changed(a)
    begun = await stage.reaches(PREPARING)
    past = 0
    while past < enough:
        await stage.sleep(b.session // 2)
        past += b.session // 2
        call = stage.heartbeat(b)
        body = await call
    stage.shows("HB-09", call, met=begun or body["error_code"] == 27)
    await stage.join(b)
    await parked


@heartbeats.add("HB-10")
async def refused_heartbeat_does_not_extend(stage: Stage) -> None:
    """Heartbeats of another generation do not keep a member."""
    (a,) = await stage.stable(stage.member("A"))
    past = 0
    while past < a.session + 2 * stage.grace + stage.step:
        await stage.heartbeat(a, generation_id=a.generation + 1)
        await stage.sleep(a.session // 2)
        past += a.session // 2
    call = stage.heartbeat(a)
    await call
    stage.shows("HB-10", call)


@heartbeats.add("HB-13")
async def heartbeats_do_not_replace_a_rejoin(stage: Stage) -> None:
    """A member that only heartbeats is dropped at the rebalance timeout."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    parked = stage.join_changed(a)
    await stage.alive([b], b.rebalance + 2 * stage.grace + stage.step)
    call = stage.heartbeat(b)
    await call
    stage.shows("HB-13", call)
    await parked


@heartbeats.add("HB-13")
async def heartbeats_do_not_replace_a_sync(stage: Stage) -> None:
    """A follower that never fetches its assignment is dropped, though it heartbeats."""
    leader, follower = await stage.completing(stage.member("A"), stage.member("B"))
    await stage.lead(leader, follower)
    await stage.alive([leader, follower], follower.rebalance + 2 * stage.grace + stage.step)
    call = stage.heartbeat(follower)
    await call
    stage.shows("HB-13", call)


@heartbeats.add("HB-14")
async def instance_before_generation(stage: Stage) -> None:
    """The instance id of another member, and one that nobody has, with a wrong generation."""
    version = stage.version("Heartbeat", 3)
    stage.version("JoinGroup", 5)
    a, b = await stage.stable(stage.member("A", instance="one"), stage.member("B", instance="two"))
    for instance in (b.instance, "nobody"):
        call = stage.heartbeat(a, group_instance_id=instance, generation_id=a.generation + 1, version=version)
        await call
        stage.shows("HB-14", call)
