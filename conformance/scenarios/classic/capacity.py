"""The size limit of a group (KIP-389)."""

from fencepost.conformance.scenario.context import Member, ScenarioContext, Unsupported
from fencepost.conformance.scenario.scenario import ScenarioFamily

capacity = ScenarioFamily()


def full_group_members(context: ScenarioContext) -> list[Member]:
    """As many members as the group may have, patient enough for a round of so many."""
    return [
        context.member(
            f"A{number}", session_timeout=context.long_session_timeout, rebalance_timeout=2 * context.rebalance_timeout
        )
        for number in range(context.settings.max_group_size)
    ]


@capacity.add("JOIN-46")
async def full_group_refuses_newcomers(context: ScenarioContext) -> None:
    """In the sync phase and when Stable, nobody else is let in."""
    leader, *followers = await context.form_generation(*full_group_members(context))
    for settled in (False, True):
        if settled:
            await context.sync_all(leader, *followers)
        call = context.join(context.member("N"))
        await call
        context.check("JOIN-46", call, "error", "member")


@capacity.add("JOIN-47")
async def members_rejoin_a_full_group(context: ScenarioContext) -> None:
    """A round of a full group, with all of its members."""
    leader, *followers = await context.form_stable_group(*full_group_members(context))
    for call in await context.rebalance(leader, *followers):
        context.check("JOIN-47", call)


@capacity.add("JOIN-48", "JOIN-49")
async def parked_joins_are_counted(context: ScenarioContext) -> None:
    """A newcomer takes the place of the member that rejoins last, and that member is out."""
    if context.settings.max_group_size < 2:
        raise Unsupported("groups of 2 members")
    leader, *followers, last = await context.form_stable_group(*full_group_members(context))
    newcomer = context.member(
        "N", session_timeout=context.long_session_timeout, rebalance_timeout=2 * context.rebalance_timeout
    )
    calls = [context.join(leader)]
    await context.sleep(context.short_pause)
    calls += [await context.join_new(newcomer), *(context.join(follower) for follower in followers)]
    await context.sleep(context.short_pause)
    refused = context.join(last)
    body = await refused
    context.check("JOIN-48", refused, reached=body["error_code"] == 81)
    gone = context.heartbeat(last)
    await gone
    context.check("JOIN-49", gone, reached=body["error_code"] == 81)
    for call in calls:
        await call


@capacity.add("JOIN-50")
async def pending_ids_take_no_place(context: ScenarioContext) -> None:
    """More ids are handed out than the group may have members."""
    version = context.highest_version("JoinGroup", 4)
    for number in range(context.settings.max_group_size + 2):
        call = context.join(context.member(f"P{number}"), version=version)
        await call
        if number >= context.settings.max_group_size:
            context.check("JOIN-50", call)
