"""Replacement of a static member: a JoinGroup with its instance id and without a member id (KIP-345, KIP-814)."""

from fencepost.conformance.classic.scenarios.statics import replace_static_member, static_member
from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import RANGE

replacements = ScenarioFamily()
OTHER_PROTOCOL = "roundrobin"


@replacements.add("STATIC-02", smoke=True)
async def replacement_has_a_new_id(group: ScenarioContext) -> None:
    """A replacement gets a new member id, and the old id is unknown."""
    (old,) = await group.form_stable_group(static_member(group, "A"))
    await group.check("STATIC-02", group.join(group.replacement_of(old)), fields=("error", "member"))
    await group.check("STATIC-02", group.heartbeat(old, group_instance_id=None))


@replacements.add("STATIC-05")
async def parked_join_of_the_old_owner(group: ScenarioContext) -> None:
    """The parked JoinGroup of the predecessor gets a response when it is replaced."""
    a, old = group.member_without_heartbeats("A"), static_member(group, "B")
    await group.form_stable_group(a, old)

    parked = group.join_with_new_metadata(old)
    await group.sleep(group.short_pause)
    group.join(group.replacement_of(old))

    await group.check("STATIC-05", parked)


@replacements.add("STATIC-05")
async def parked_sync_of_the_old_owner(group: ScenarioContext) -> None:
    """The parked SyncGroup of the predecessor gets a response when it is replaced."""
    _, old = await group.form_generation(static_member(group, "A"), static_member(group, "B"))

    parked = group.sync(old)
    await group.sleep(group.short_pause)
    group.join(group.replacement_of(old))

    await group.check("STATIC-05", parked)


# --- in Stable -----------------------------------------------------------------------------------------------------


@replacements.add("STATIC-08", smoke=True)
async def replacement_without_a_rebalance(group: ScenarioContext) -> None:
    """In Stable, the generation stays, and other members are not affected."""
    a, old = group.member("A"), static_member(group, "B", silent=False)
    await group.form_stable_group(a, old)

    await group.check("STATIC-08", group.join(group.replacement_of(old)), fields=("error", "generation", "time"))
    await group.check("STATIC-08", group.heartbeat(a))


@replacements.add("STATIC-09")
async def assignment_is_inherited(group: ScenarioContext) -> None:
    """The replacement receives the assignment of its predecessor."""
    a, old = group.member_without_heartbeats("A"), static_member(group, "B")
    await group.form_stable_group(a, old)
    await group.check("STATIC-09", group.sync(await replace_static_member(group, old)), fields=("error", "assignment"))


@replacements.add("STATIC-10")
async def leader_replaced_that_can_skip(group: ScenarioContext) -> None:
    """From version 9 on, the replacement of the leader leads, lists all members and need not assign again."""
    version = group.highest_version("JoinGroup", at_least=9)
    leader, _ = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))
    await group.check(
        "STATIC-10",
        group.join(group.replacement_of(leader), version=version),
        fields=("leader", "members", "skip_assignment"),
    )


@replacements.add("STATIC-11")
async def leader_replaced_that_cannot_skip(group: ScenarioContext) -> None:
    """Before version 9, the replacement of the leader gets the old id as leader, and so acts as a follower."""
    version = group.highest_version("JoinGroup", at_least=5, at_most=8)
    leader, _ = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))
    await group.check(
        "STATIC-11", group.join(group.replacement_of(leader), version=version), fields=("leader", "members")
    )


@replacements.add("STATIC-12")
async def follower_replaced(group: ScenarioContext) -> None:
    """The replacement of a follower gets the leader, and no members."""
    _, follower = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))
    await group.check(
        "STATIC-12", group.join(group.replacement_of(follower)), fields=("leader", "members", "skip_assignment")
    )


@replacements.add("STATIC-13")
async def new_subscription_on_replacement(group: ScenarioContext) -> None:
    """Other metadata of a replacement begin no join phase, and the next one lists them."""
    leader, follower = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))

    replaced = group.join_with_new_metadata(group.replacement_of(follower))
    await group.check("STATIC-13", replaced, fields=("error", "generation", "time"))
    await group.check("STATIC-13", group.heartbeat(leader))
    await group.check("STATIC-13", group.join(leader), fields="members", reached=replaced.error == 0)


@replacements.add("STATIC-14")
async def replacement_changes_the_protocol(group: ScenarioContext) -> None:
    """A replacement that does not support the selected protocol begins a join phase."""
    a, old = (
        group.member_without_heartbeats("A", RANGE, OTHER_PROTOCOL),
        static_member(group, "B", RANGE, OTHER_PROTOCOL),
    )
    await group.form_stable_group(a, old)

    replacement = group.replacement_of(old)
    replacement.protocols = old.protocols[1:]
    parked = group.join(replacement)
    await group.sleep(group.short_pause)

    await group.check("STATIC-14", group.heartbeat(a))
    await group.join(a)
    await group.check("STATIC-14", parked)


@replacements.add("STATIC-24")
async def replacement_ids_are_fresh(group: ScenarioContext) -> None:
    """None of five replacements gets an id that was in use before."""
    (member,) = await group.form_stable_group(static_member(group, "A"))
    for _ in range(5):
        replacement = group.replacement_of(member)
        await group.check("STATIC-24", group.join(replacement), fields=("error", "member"))
        member = replacement


@replacements.add("STATIC-25")
async def one_owner_per_instance_id(group: ScenarioContext) -> None:
    """A replacement does not change the number of members, nor their instance ids."""
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
    """In a full group, a replacement is refused like a newcomer, or accepted."""
    others = [group.member_without_heartbeats(f"M{number}") for number in range(1, group.settings.max_group_size)]
    old = static_member(group, "A")
    await group.form_stable_group(old, *others)

    await group.check("STATIC-26", group.join(group.replacement_of(old)))


# --- during a round ------------------------------------------------------------------------------------------------


@replacements.add("STATIC-15")
async def replacement_in_completing(group: ScenarioContext) -> None:
    """A replacement in CompletingRebalance begins another join phase, as the leader knows the old id only."""
    leader, follower = await group.form_generation(static_member(group, "A"), static_member(group, "B"))

    parked = group.sync(follower)
    await group.sleep(group.short_pause)
    group.join(group.replacement_of(leader))

    await group.check("STATIC-15", parked)
    await group.check("STATIC-15", group.heartbeat(follower))


@replacements.add("STATIC-16")
async def replacement_in_preparing(group: ScenarioContext) -> None:
    """A replacement of the last absent member completes the join phase at once."""
    a, old = group.member_without_heartbeats("A"), static_member(group, "B")
    a.rebalance_timeout = group.long_session_timeout
    await group.form_stable_group(a, old)

    parked = group.join_with_new_metadata(a)
    await group.sleep(group.short_pause)
    replaced = group.join(group.replacement_of(old))

    for call in (replaced, parked):
        await group.check("STATIC-16", call, fields=("error", "time"))


@replacements.add("STATIC-25")
async def one_owner_during_a_round(group: ScenarioContext) -> None:
    """The replacement of a member whose JoinGroup is parked leaves one owner of the instance id."""
    a, old = group.member_without_heartbeats("A"), static_member(group, "B")
    await group.form_stable_group(a, old)

    group.join_with_new_metadata(old)
    await group.sleep(group.short_pause)
    replaced = group.join(group.replacement_of(old))
    await group.sleep(group.short_pause)

    await group.check(
        "STATIC-25",
        group.describe_groups(version=group.highest_version("DescribeGroups", at_least=4, at_most=5)),
        fields=("members", "instances"),
    )
    group.join(a)
    await replaced
