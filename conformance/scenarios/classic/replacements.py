"""Replacement of a static member: its instance id comes back without a member id (KIP-345, KIP-814)."""

from fencepost.conformance.scenario.context import RANGE, Stage
from fencepost.conformance.scenario.scenario import Collection
from fencepost.conformance.scenarios.classic.statics import replaced, static

replacements = Collection()
OTHER = "roundrobin"


@replacements.add("STATIC-02", smoke=True)
async def replacement_has_a_new_id(stage: Stage) -> None:
    """And the old one is worth nothing from then on."""
    (old,) = await stage.stable(static(stage, "A"))
    taken = stage.join(stage.heir(old))
    await taken
    stage.shows("STATIC-02", taken, "error", "member")
    stranger = stage.heartbeat(old, group_instance_id=None)
    await stranger
    stage.shows("STATIC-02", stranger)


@replacements.add("STATIC-05")
async def parked_join_of_the_old_owner(stage: Stage) -> None:
    """It is answered when another takes over."""
    a, old = stage.silent("A"), static(stage, "B")
    await stage.stable(a, old)
    parked = stage.join_changed(old)
    await stage.sleep(stage.step)
    stage.join(stage.heir(old))
    await parked
    stage.shows("STATIC-05", parked)


@replacements.add("STATIC-05")
async def parked_sync_of_the_old_owner(stage: Stage) -> None:
    """The same in the sync phase."""
    _, old = await stage.completing(static(stage, "A"), static(stage, "B"))
    parked = stage.sync(old)
    await stage.sleep(stage.step)
    stage.join(stage.heir(old))
    await parked
    stage.shows("STATIC-05", parked)


# --- in Stable -----------------------------------------------------------------------------------------------------


@replacements.add("STATIC-08", smoke=True)
async def replacement_without_a_rebalance(stage: Stage) -> None:
    """The generation stays, and nobody else notices."""
    a, old = stage.member("A"), static(stage, "B", silent=False)
    await stage.stable(a, old)
    taken = stage.join(stage.heir(old))
    await taken
    stage.shows("STATIC-08", taken, "error", "generation", "time")
    beaten = stage.heartbeat(a)
    await beaten
    stage.shows("STATIC-08", beaten)


@replacements.add("STATIC-09")
async def assignment_is_inherited(stage: Stage) -> None:
    """The new id is given what the leader planned for the old one."""
    a, old = stage.silent("A"), static(stage, "B")
    await stage.stable(a, old)
    call = stage.sync(await replaced(stage, old))
    await call
    stage.shows("STATIC-09", call, "error", "assignment")


@replacements.add("STATIC-10")
async def leader_replaced_that_can_skip(stage: Stage) -> None:
    """Version 9: it leads under its new id, with all members, and need not assign again."""
    version = stage.version("JoinGroup", at_least=9)
    leader, _ = await stage.stable(static(stage, "A"), static(stage, "B"))
    taken = stage.join(stage.heir(leader), version=version)
    await taken
    stage.shows("STATIC-10", taken, "leader", "members", "skip_assignment")


@replacements.add("STATIC-11")
async def leader_replaced_that_cannot_skip(stage: Stage) -> None:
    """Before, it is told the old id so that it takes itself for a follower."""
    version = stage.version("JoinGroup", at_least=5, at_most=8)
    leader, _ = await stage.stable(static(stage, "A"), static(stage, "B"))
    taken = stage.join(stage.heir(leader), version=version)
    await taken
    stage.shows("STATIC-11", taken, "leader", "members")


@replacements.add("STATIC-12")
async def follower_replaced(stage: Stage) -> None:
    """It is told who leads, and nothing of the others."""
    _, follower = await stage.stable(static(stage, "A"), static(stage, "B"))
    taken = stage.join(stage.heir(follower))
    await taken
    stage.shows("STATIC-12", taken, "leader", "members", "skip_assignment")


@replacements.add("STATIC-13")
async def new_subscription_on_replacement(stage: Stage) -> None:
    """Other metadata is no reason for a round, but the next one lists it."""
    leader, follower = await stage.stable(static(stage, "A"), static(stage, "B"))
    taken = stage.join_changed(stage.heir(follower))
    await taken
    stage.shows("STATIC-13", taken, "error", "generation", "time")
    beaten = stage.heartbeat(leader)
    await beaten
    stage.shows("STATIC-13", beaten)
    listed = stage.join(leader)
    await listed
    stage.shows("STATIC-13", listed, "members", met=taken.error == 0)


@replacements.add("STATIC-14")
async def replacement_changes_the_protocol(stage: Stage) -> None:
    """What the members agreed on is not offered any more, so they have to meet again."""
    a, old = stage.silent("A", RANGE, OTHER), static(stage, "B", RANGE, OTHER)
    await stage.stable(a, old)
    heir = stage.heir(old)
    heir.protocols = old.protocols[1:]
    parked = stage.join(heir)
    await stage.sleep(stage.step)
    told = stage.heartbeat(a)
    await told
    stage.shows("STATIC-14", told)
    await stage.join(a)
    await parked
    stage.shows("STATIC-14", parked)


@replacements.add("STATIC-24")
async def replacement_ids_are_fresh(stage: Stage) -> None:
    """None of five is given an id that was in use before."""
    (member,) = await stage.stable(static(stage, "A"))
    for _ in range(5):
        heir = stage.heir(member)
        taken = stage.join(heir)
        await taken
        stage.shows("STATIC-24", taken, "error", "member")
        member = heir


@replacements.add("STATIC-25")
async def one_owner_per_instance_id(stage: Stage) -> None:
    """The group has as many members as before, each with its instance id."""
    a, old = static(stage, "A"), static(stage, "B")
    await stage.stable(a, old)
    await replaced(stage, old)
    described = stage.describe(version=stage.version("DescribeGroups", at_least=4, at_most=5))
    await described
    stage.shows("STATIC-25", described, "members", "instances")


@replacements.add("STATIC-26", needs=("size-limit",))
async def restart_in_a_full_group(stage: Stage) -> None:
    """It is refused like any member that comes without an id, or let in."""
    others = [stage.silent(f"M{number}") for number in range(1, stage.settings.max_group_size)]
    old = static(stage, "A")
    await stage.stable(old, *others)
    call = stage.join(stage.heir(old))
    await call
    stage.shows("STATIC-26", call)


# --- during a round ------------------------------------------------------------------------------------------------


@replacements.add("STATIC-15")
async def replacement_in_completing(stage: Stage) -> None:
    """The round is repeated, for the leader was told of the old id."""
    leader, follower = await stage.completing(static(stage, "A"), static(stage, "B"))
    parked = stage.sync(follower)
    await stage.sleep(stage.step)
    stage.join(stage.heir(leader))
    await parked
    stage.shows("STATIC-15", parked)
    told = stage.heartbeat(follower)
    await told
    stage.shows("STATIC-15", told)


@replacements.add("STATIC-16")
async def replacement_in_preparing(stage: Stage) -> None:
    """It is the last one missing, so the join phase is over at once."""
    a, old = stage.silent("A"), static(stage, "B")
    a.rebalance = stage.long_session
    await stage.stable(a, old)
    parked = stage.join_changed(a)
    await stage.sleep(stage.step)
    taken = stage.join(stage.heir(old))
    for call in (taken, parked):
        await call
        stage.shows("STATIC-16", call, "error", "time")


@replacements.add("STATIC-25")
async def one_owner_during_a_round(stage: Stage) -> None:
    """There are no two owners either when the old one waits for the join phase to end."""
    a, old = stage.silent("A"), static(stage, "B")
    await stage.stable(a, old)
    stage.join_changed(old)
    await stage.sleep(stage.step)
    taken = stage.join(stage.heir(old))
    await stage.sleep(stage.step)
    described = stage.describe(version=stage.version("DescribeGroups", at_least=4, at_most=5))
    await described
    stage.shows("STATIC-25", described, "members", "instances")
    stage.join(a)
    await taken
