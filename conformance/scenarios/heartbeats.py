"""Heartbeat: who is told what, and what keeps a session alive."""

from fencepost.conformance.scenario import Collection
from fencepost.conformance.stage import Stage

heartbeats = Collection()


@heartbeats.add("HB-01")
async def heartbeat_without_a_group(stage: Stage) -> None:
    """H with the empty group id."""
    a = stage.member("A")
    call = stage.heartbeat(a, group_id="", member_id="nobody", generation_id=1)
    await call
    stage.shows("HB-01", call)


@heartbeats.add("HB-05", "HB-04", "HB-03", smoke=True)
async def heartbeat_in_stable(stage: Stage) -> None:
    """The current generation is answered; others and strangers are not."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    good = stage.heartbeat(b)
    await good
    stage.shows("HB-05", good)
    for generation in (b.generation + 1, b.generation - 1, -1):
        wrong = stage.heartbeat(a, generation_id=generation)
        await wrong
        stage.shows("HB-04", wrong)
    stranger = stage.heartbeat(a, member_id="nobody", generation_id=-1)
    await stranger
    stage.shows("HB-03", stranger)


@heartbeats.add("HB-06", "HB-11", "JOIN-24")
async def heartbeat_in_preparing(stage: Stage) -> None:
    """During the join phase every heartbeat says so, until the member rejoins."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    newcomer = stage.member("C")
    parked = await stage.enter(newcomer)
    await stage.sleep(stage.step)
    for requirement in ("HB-06", "HB-11", "HB-11"):
        told = stage.heartbeat(a)
        await told
        stage.shows(requirement, told)
    rejoins = [stage.join(a), stage.join(b)]
    for call in rejoins:
        await call
    await parked
    stage.shows("JOIN-24", parked)


@heartbeats.add("HB-07")
async def heartbeat_in_completing(stage: Stage) -> None:
    """Leader and followers are told that all is well while the assignment is awaited."""
    for member in await stage.completing(stage.member("A"), stage.member("B")):
        call = stage.heartbeat(member)
        await call
        stage.shows("HB-07", call)


@heartbeats.add("HB-09")
async def heartbeat_extends_the_session(stage: Stage) -> None:
    """Heartbeats every half session keep a member."""
    (a,) = await stage.stable(stage.member("A"))
    for _ in range(8):
        await stage.sleep(a.session // 2)
        call = stage.heartbeat(a)
        await call
    stage.shows("HB-09", call)
