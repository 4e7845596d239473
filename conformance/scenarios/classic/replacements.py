"""Replacement of a static member: its instance id comes back without a member id (KIP-345, KIP-814)."""

from fencepost.conformance.scenario.context import RANGE, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenarios.classic.statics import replace_static_member, static_member

replacements = ScenarioFamily()
OTHER_PROTOCOL = "roundrobin"


@replacements.add("STATIC-02", smoke=True)
async def replacement_has_a_new_id(group: ScenarioContext) -> None:
    """And the old one is worth nothing from then on."""
    (old,) = await group.form_stable_group(static_member(group, "A"))
    await group.check("STATIC-02", group.join(group.replacement_of(old)), fields=("error", "member"))
    await group.check("STATIC-02", group.heartbeat(old, group_instance_id=None))


@replacements.add("STATIC-05")
async def parked_join_of_the_old_owner(group: ScenarioContext) -> None:
    """It is answered when another takes over."""
    a, old = group.member_without_heartbeats("A"), static_member(group, "B")
    await group.form_stable_group(a, old)
    parked = group.join_with_new_metadata(old)
    await group.sleep(group.short_pause)
    group.join(group.replacement_of(old))
    await group.check("STATIC-05", parked)


@replacements.add("STATIC-05")
async def parked_sync_of_the_old_owner(group: ScenarioContext) -> None:
    """The same in the sync phase."""
    _, old = await group.form_generation(static_member(group, "A"), static_member(group, "B"))
    parked = group.sync(old)
    await group.sleep(group.short_pause)
    group.join(group.replacement_of(old))
    await group.check("STATIC-05", parked)


# --- in Stable -----------------------------------------------------------------------------------------------------


@replacements.add("STATIC-08", smoke=True)
async def replacement_without_a_rebalance(group: ScenarioContext) -> None:
    """The generation stays, and nobody else notices."""
    a, old = group.member("A"), static_member(group, "B", silent=False)
    await group.form_stable_group(a, old)
    await group.check("STATIC-08", group.join(group.replacement_of(old)), fields=("error", "generation", "time"))
    await group.check("STATIC-08", group.heartbeat(a))


@replacements.add("STATIC-09")
async def assignment_is_inherited(group: ScenarioContext) -> None:
    """The new id is given what the leader planned for the old one."""
    a, old = group.member_without_heartbeats("A"), static_member(group, "B")
    await group.form_stable_group(a, old)
    await group.check("STATIC-09", group.sync(await replace_static_member(group, old)), fields=("error", "assignment"))


@replacements.add("STATIC-10")
async def leader_replaced_that_can_skip(group: ScenarioContext) -> None:
    """Version 9: it leads under its new id, with all members, and need not assign again."""
    version = group.highest_version("JoinGroup", at_least=9)
    leader, _ = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))
    await group.check(
        "STATIC-10",
        group.join(group.replacement_of(leader), version=version),
        fields=("leader", "members", "skip_assignment"),
    )


@replacements.add("STATIC-11")
async def leader_replaced_that_cannot_skip(group: ScenarioContext) -> None:
    """Before, it is told the old id so that it takes itself for a follower."""
    version = group.highest_version("JoinGroup", at_least=5, at_most=8)
    leader, _ = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))
    await group.check(
        "STATIC-11", group.join(group.replacement_of(leader), version=version), fields=("leader", "members")
    )


@replacements.add("STATIC-12")
async def follower_replaced(group: ScenarioContext) -> None:
    """It is told who leads, and nothing of the others."""
    _, follower = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))
    await group.check(
        "STATIC-12", group.join(group.replacement_of(follower)), fields=("leader", "members", "skip_assignment")
    )


@replacements.add("STATIC-13")
async def new_subscription_on_replacement(group: ScenarioContext) -> None:
    """Other metadata is no reason for a round, but the next one lists it."""
    leader, follower = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))
    taken = group.join_with_new_metadata(group.replacement_of(follower))
    await group.check("STATIC-13", taken, fields=("error", "generation", "time"))
    await group.check("STATIC-13", group.heartbeat(leader))
    await group.check("STATIC-13", group.join(leader), fields="members", reached=taken.error == 0)


@replacements.add("STATIC-14")
async def replacement_changes_the_protocol(group: ScenarioContext) -> None:
    """What the members agreed on is not offered any more, so they have to meet again."""
    a, old = (
        group.member_without_heartbeats("A", RANGE, OTHER_PROTOCOL),
        static_member(group, "B", RANGE, OTHER_PROTOCOL),
    )
    await group.form_stable_group(a, old)
    heir = group.replacement_of(old)
    heir.protocols = old.protocols[1:]
    parked = group.join(heir)
    await group.sleep(group.short_pause)
    await group.check("STATIC-14", group.heartbeat(a))
    await group.join(a)
    await group.check("STATIC-14", parked)


@replacements.add("STATIC-24")
async def replacement_ids_are_fresh(group: ScenarioContext) -> None:
    """None of five is given an id that was in use before."""
    (member,) = await group.form_stable_group(static_member(group, "A"))
    for _ in range(5):
        heir = group.replacement_of(member)
        await group.check("STATIC-24", group.join(heir), fields=("error", "member"))
        member = heir


@replacements.add("STATIC-25")
async def one_owner_per_instance_id(group: ScenarioContext) -> None:
    """The group has as many members as before, each with its instance id."""
    a, old = static_member(group, "A"), static_member(group, "B")
    await group.form_stable_group(a, old)
    await replace_static_member(group, old)
    await group.check(
        "STATIC-25",
        group.describe_groups(version=group.highest_version("DescribeGroups", at_least=4, at_most=5)),
        fields=("members", "instances"),
    )


@replacements.add("STATIC-26", needs=("size-limit",))
async def restart_in_a_full_group(group: ScenarioContext) -> None:
    """It is refused like any member that comes without an id, or let in."""
    others = [group.member_without_heartbeats(f"M{number}") for number in range(1, group.settings.max_group_size)]
    old = static_member(group, "A")
    await group.form_stable_group(old, *others)
    await group.check("STATIC-26", group.join(group.replacement_of(old)))


# --- during a round ------------------------------------------------------------------------------------------------


@replacements.add("STATIC-15")
async def replacement_in_completing(group: ScenarioContext) -> None:
    """The round is repeated, for the leader was told of the old id."""
    leader, follower = await group.form_generation(static_member(group, "A"), static_member(group, "B"))
    parked = group.sync(follower)
    await group.sleep(group.short_pause)
    group.join(group.replacement_of(leader))
    await group.check("STATIC-15", parked)
    await group.check("STATIC-15", group.heartbeat(follower))


@replacements.add("STATIC-16")
async def replacement_in_preparing(group: ScenarioContext) -> None:
    """It is the last one missing, so the join phase is over at once."""
    a, old = group.member_without_heartbeats("A"), static_member(group, "B")
    a.rebalance_timeout = group.long_session_timeout
    await group.form_stable_group(a, old)
    parked = group.join_with_new_metadata(a)
    await group.sleep(group.short_pause)
    taken = group.join(group.replacement_of(old))
    for call in (taken, parked):
        await group.check("STATIC-16", call, fields=("error", "time"))


@replacements.add("STATIC-25")
async def one_owner_during_a_round(group: ScenarioContext) -> None:
    """There are no two owners either when the old one waits for the join phase to end."""
    a, old = group.member_without_heartbeats("A"), static_member(group, "B")
    await group.form_stable_group(a, old)
    group.join_with_new_metadata(old)
    await group.sleep(group.short_pause)
    taken = group.join(group.replacement_of(old))
    await group.sleep(group.short_pause)
    await group.check(
        "STATIC-25",
        group.describe_groups(version=group.highest_version("DescribeGroups", at_least=4, at_most=5)),
        fields=("members", "instances"),
    )
    group.join(a)
    await taken
