"""The size limit of a group (KIP-389)."""

from fencepost.conformance.scenario.context import Member, Stage, Unsupported
from fencepost.conformance.scenario.scenario import Collection

capacity = Collection()


def crowd(stage: Stage) -> list[Member]:
    """As many members as the group may have, patient enough for a round of so many."""
    return [
        stage.member(f"A{number}", session=stage.long_session, rebalance=2 * stage.rebalance)
        for number in range(stage.settings.max_group_size)
    ]


@capacity.add("JOIN-46")
async def full_group_refuses_newcomers(stage: Stage) -> None:
    """In the sync phase and when Stable, nobody else is let in."""
    leader, *followers = await stage.completing(*crowd(stage))
    for settled in (False, True):
        if settled:
            await stage.settle(leader, *followers)
        call = stage.join(stage.member("N"))
        await call
        stage.shows("JOIN-46", call, "error", "member")


@capacity.add("JOIN-47")
async def members_rejoin_a_full_group(stage: Stage) -> None:
    """A round of a full group, with all of its members."""
    leader, *followers = await stage.stable(*crowd(stage))
    for call in await stage.regroup(leader, *followers):
        stage.shows("JOIN-47", call)


@capacity.add("JOIN-48", "JOIN-49")
async def parked_joins_are_counted(stage: Stage) -> None:
    """A newcomer takes the place of the member that rejoins last, and that member is out."""
    if stage.settings.max_group_size < 2:
        raise Unsupported("groups of 2 members")
    leader, *followers, last = await stage.stable(*crowd(stage))
    newcomer = stage.member("N", session=stage.long_session, rebalance=2 * stage.rebalance)
    calls = [stage.join(leader)]
    await stage.sleep(stage.step)
    calls += [await stage.enter(newcomer), *(stage.join(follower) for follower in followers)]
    await stage.sleep(stage.step)
    refused = stage.join(last)
    body = await refused
    stage.shows("JOIN-48", refused, met=body["error_code"] == 81)
    gone = stage.heartbeat(last)
    await gone
    stage.shows("JOIN-49", gone, met=body["error_code"] == 81)
    for call in calls:
        await call


@capacity.add("JOIN-50")
async def pending_ids_take_no_place(stage: Stage) -> None:
    """More ids are handed out than the group may have members."""
    version = stage.version("JoinGroup", 4)
    for number in range(stage.settings.max_group_size + 2):
        call = stage.join(stage.member(f"P{number}"), version=version)
        await call
        if number >= stage.settings.max_group_size:
            stage.shows("JOIN-50", call)
