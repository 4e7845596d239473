"""Replacement of a static member: its instance id comes back without a member id (KIP-345, KIP-814)."""

from fencepost.conformance.scenario.context import RANGE, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenarios.classic.statics import replace_static_member, static_member

replacements = ScenarioFamily()
OTHER_PROTOCOL = "roundrobin"


@replacements.add("STATIC-02", smoke=True)
async def replacement_has_a_new_id(context: ScenarioContext) -> None:
    """And the old one is worth nothing from then on."""
    (old,) = await context.form_stable_group(static_member(context, "A"))
    taken = context.join(context.replacement_of(old))
    await taken
    context.check("STATIC-02", taken, "error", "member")
    stranger = context.heartbeat(old, group_instance_id=None)
    await stranger
    context.check("STATIC-02", stranger)


@replacements.add("STATIC-05")
async def parked_join_of_the_old_owner(context: ScenarioContext) -> None:
    """It is answered when another takes over."""
    a, old = context.member_without_heartbeats("A"), static_member(context, "B")
    await context.form_stable_group(a, old)
    parked = context.join_with_new_metadata(old)
    await context.sleep(context.short_pause)
    context.join(context.replacement_of(old))
    await parked
    context.check("STATIC-05", parked)


@replacements.add("STATIC-05")
async def parked_sync_of_the_old_owner(context: ScenarioContext) -> None:
    """The same in the sync phase."""
    _, old = await context.form_generation(static_member(context, "A"), static_member(context, "B"))
    parked = context.sync(old)
    await context.sleep(context.short_pause)
    context.join(context.replacement_of(old))
    await parked
    context.check("STATIC-05", parked)


# --- in Stable -----------------------------------------------------------------------------------------------------


@replacements.add("STATIC-08", smoke=True)
async def replacement_without_a_rebalance(context: ScenarioContext) -> None:
    """The generation stays, and nobody else notices."""
    a, old = context.member("A"), static_member(context, "B", silent=False)
    await context.form_stable_group(a, old)
    taken = context.join(context.replacement_of(old))
    await taken
    context.check("STATIC-08", taken, "error", "generation", "time")
    beaten = context.heartbeat(a)
    await beaten
    context.check("STATIC-08", beaten)


@replacements.add("STATIC-09")
async def assignment_is_inherited(context: ScenarioContext) -> None:
    """The new id is given what the leader planned for the old one."""
    a, old = context.member_without_heartbeats("A"), static_member(context, "B")
    await context.form_stable_group(a, old)
    call = context.sync(await replace_static_member(context, old))
    await call
    context.check("STATIC-09", call, "error", "assignment")


@replacements.add("STATIC-10")
async def leader_replaced_that_can_skip(context: ScenarioContext) -> None:
    """Version 9: it leads under its new id, with all members, and need not assign again."""
    version = context.highest_version("JoinGroup", at_least=9)
    leader, _ = await context.form_stable_group(static_member(context, "A"), static_member(context, "B"))
    taken = context.join(context.replacement_of(leader), version=version)
    await taken
    context.check("STATIC-10", taken, "leader", "members", "skip_assignment")


@replacements.add("STATIC-11")
async def leader_replaced_that_cannot_skip(context: ScenarioContext) -> None:
    """Before, it is told the old id so that it takes itself for a follower."""
    version = context.highest_version("JoinGroup", at_least=5, at_most=8)
    leader, _ = await context.form_stable_group(static_member(context, "A"), static_member(context, "B"))
    taken = context.join(context.replacement_of(leader), version=version)
    await taken
    context.check("STATIC-11", taken, "leader", "members")


@replacements.add("STATIC-12")
async def follower_replaced(context: ScenarioContext) -> None:
    """It is told who leads, and nothing of the others."""
    _, follower = await context.form_stable_group(static_member(context, "A"), static_member(context, "B"))
    taken = context.join(context.replacement_of(follower))
    await taken
    context.check("STATIC-12", taken, "leader", "members", "skip_assignment")


@replacements.add("STATIC-13")
async def new_subscription_on_replacement(context: ScenarioContext) -> None:
    """Other metadata is no reason for a round, but the next one lists it."""
    leader, follower = await context.form_stable_group(static_member(context, "A"), static_member(context, "B"))
    taken = context.join_with_new_metadata(context.replacement_of(follower))
    await taken
    context.check("STATIC-13", taken, "error", "generation", "time")
    beaten = context.heartbeat(leader)
    await beaten
    context.check("STATIC-13", beaten)
    listed = context.join(leader)
    await listed
    context.check("STATIC-13", listed, "members", reached=taken.error == 0)


@replacements.add("STATIC-14")
async def replacement_changes_the_protocol(context: ScenarioContext) -> None:
    """What the members agreed on is not offered any more, so they have to meet again."""
    a, old = (
        context.member_without_heartbeats("A", RANGE, OTHER_PROTOCOL),
        static_member(context, "B", RANGE, OTHER_PROTOCOL),
    )
    await context.form_stable_group(a, old)
    heir = context.replacement_of(old)
    heir.protocols = old.protocols[1:]
    parked = context.join(heir)
    await context.sleep(context.short_pause)
    told = context.heartbeat(a)
    await told
    context.check("STATIC-14", told)
    await context.join(a)
    await parked
    context.check("STATIC-14", parked)


@replacements.add("STATIC-24")
async def replacement_ids_are_fresh(context: ScenarioContext) -> None:
    """None of five is given an id that was in use before."""
    (member,) = await context.form_stable_group(static_member(context, "A"))
    for _ in range(5):
        heir = context.replacement_of(member)
        taken = context.join(heir)
        await taken
        context.check("STATIC-24", taken, "error", "member")
        member = heir


@replacements.add("STATIC-25")
async def one_owner_per_instance_id(context: ScenarioContext) -> None:
    """The group has as many members as before, each with its instance id."""
    a, old = static_member(context, "A"), static_member(context, "B")
    await context.form_stable_group(a, old)
    await replace_static_member(context, old)
    described = context.describe_groups(version=context.highest_version("DescribeGroups", at_least=4, at_most=5))
    await described
    context.check("STATIC-25", described, "members", "instances")


@replacements.add("STATIC-26", needs=("size-limit",))
async def restart_in_a_full_group(context: ScenarioContext) -> None:
    """It is refused like any member that comes without an id, or let in."""
    others = [context.member_without_heartbeats(f"M{number}") for number in range(1, context.settings.max_group_size)]
    old = static_member(context, "A")
    await context.form_stable_group(old, *others)
    call = context.join(context.replacement_of(old))
    await call
    context.check("STATIC-26", call)


# --- during a round ------------------------------------------------------------------------------------------------


@replacements.add("STATIC-15")
async def replacement_in_completing(context: ScenarioContext) -> None:
    """The round is repeated, for the leader was told of the old id."""
    leader, follower = await context.form_generation(static_member(context, "A"), static_member(context, "B"))
    parked = context.sync(follower)
    await context.sleep(context.short_pause)
    context.join(context.replacement_of(leader))
    await parked
    context.check("STATIC-15", parked)
    told = context.heartbeat(follower)
    await told
    context.check("STATIC-15", told)


@replacements.add("STATIC-16")
async def replacement_in_preparing(context: ScenarioContext) -> None:
    """It is the last one missing, so the join phase is over at once."""
    a, old = context.member_without_heartbeats("A"), static_member(context, "B")
    a.rebalance_timeout = context.long_session_timeout
    await context.form_stable_group(a, old)
    parked = context.join_with_new_metadata(a)
    await context.sleep(context.short_pause)
    taken = context.join(context.replacement_of(old))
    for call in (taken, parked):
        await call
        context.check("STATIC-16", call, "error", "time")


@replacements.add("STATIC-25")
async def one_owner_during_a_round(context: ScenarioContext) -> None:
    """There are no two owners either when the old one waits for the join phase to end."""
    a, old = context.member_without_heartbeats("A"), static_member(context, "B")
    await context.form_stable_group(a, old)
    context.join_with_new_metadata(old)
    await context.sleep(context.short_pause)
    taken = context.join(context.replacement_of(old))
    await context.sleep(context.short_pause)
    described = context.describe_groups(version=context.highest_version("DescribeGroups", at_least=4, at_most=5))
    await described
    context.check("STATIC-25", described, "members", "instances")
    context.join(a)
    await taken
