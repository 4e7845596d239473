"""The size limit of a group (KIP-389)."""

from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Member, Unsupported
from fencepost.model.errors import Error

capacity = ScenarioFamily()


def full_group_members(group: ScenarioContext) -> list[Member]:
    """As many new members as the group may have, with timeouts that outlast a rebalance of all of them."""
    return [
        group.member(
            f"A{number}", session_timeout=group.long_session_timeout, rebalance_timeout=2 * group.rebalance_timeout
        )
        for number in range(group.settings.max_group_size)
    ]


@capacity.add("JOIN-46")
async def full_group_refuses_newcomers(group: ScenarioContext) -> None:
    """A full group refuses newcomers in CompletingRebalance and in Stable."""
    leader, *followers = await group.form_generation(*full_group_members(group))
    for settled in (False, True):
        if settled:
            await group.sync_all(leader, *followers)
        await group.check("JOIN-46", group.join(group.member("N")), fields=("error", "member"))


@capacity.add("JOIN-47")
async def members_rejoin_a_full_group(group: ScenarioContext) -> None:
    """All members of a full group can rejoin."""
    leader, *followers = await group.form_stable_group(*full_group_members(group))
    for call in await group.rebalance(leader, *followers):
        await group.check("JOIN-47", call)


@capacity.add("JOIN-48", "JOIN-49")
async def parked_joins_are_counted(group: ScenarioContext) -> None:
    """A newcomer takes the place of the member that rejoins last, and that member is removed."""
    if group.settings.max_group_size < 2:
        raise Unsupported("groups of 2 members")
    leader, *followers, last = await group.form_stable_group(*full_group_members(group))

    newcomer = group.member(
        "N", session_timeout=group.long_session_timeout, rebalance_timeout=2 * group.rebalance_timeout
    )
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


@capacity.add("JOIN-50")
async def pending_ids_take_no_place(group: ScenarioContext) -> None:
    """More member ids are issued than the group may have members."""
    version = group.highest_version("JoinGroup", 4)
    for number in range(group.settings.max_group_size + 2):
        # None may expire before the last is issued, however slow the target is.
        call = group.join(group.member(f"P{number}", session_timeout=group.long_session_timeout), version=version)
        await call
        if number >= group.settings.max_group_size:
            await group.check("JOIN-50", call)
