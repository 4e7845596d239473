"""Generations: how they are counted, who leads them, who belongs to them, and whom they fence."""

from fencepost.conformance.scenario.admin_requests import PREPARING
from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

generations = ScenarioFamily()


@generations.add("GEN-01", smoke=True)
async def first_generation(context: ScenarioContext) -> None:
    """The first member of a new group is told of generation 1."""
    call = await context.join_new(context.member("A"))
    await call
    context.check("GEN-01", call, "generation")


@generations.add("GEN-02", smoke=True)
async def every_round_counts_once(context: ScenarioContext) -> None:
    """Two rounds more, each one generation up."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    for _ in range(2):
        for call in await context.rebalance(a, b):
            context.check("GEN-02", call, "generation")
        await context.sync_all(a, b)


@generations.add("GEN-02")
async def round_that_ends_empty_counts(context: ScenarioContext) -> None:
    """The only member goes silent; the round that it should have come to counts too."""
    (a,) = await context.form_stable_group(context.member("A"))
    await context.commit(a, {0: 1})
    await context.sleep_past(a.session_timeout)
    call = await context.join_new(a)
    await call
    context.check("GEN-02", call, "generation")


@generations.add("GEN-14")
async def emptied_group_counts_on(context: ScenarioContext) -> None:
    """A group that everybody left, kept by its offsets, goes on counting."""
    (a,) = await context.form_stable_group(context.member("A"))
    await context.commit(a, {0: 1})
    await context.leave(a)
    call = await context.join_new(a)
    await call
    context.check("GEN-14", call, "generation")


@generations.add("GEN-03")
async def nothing_else_counts(context: ScenarioContext) -> None:
    """Everything a member may do short of a join phase, and then the generation is still the same."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    await context.sync(a)
    await context.heartbeat(b)
    await context.commit(a, {0: 1})
    await context.join(context.member("C"), protocol_type="other")
    await context.describe_groups()
    call = context.join(b)
    await call
    context.check("GEN-03", call, "generation")
    undisturbed = context.heartbeat(a)
    await undisturbed
    context.check("GEN-03", undisturbed)


@generations.add("GEN-04")
async def answers_of_a_generation_agree(context: ScenarioContext) -> None:
    """A follower that asks again is told of the same protocol and the same leader."""
    a, b = await context.form_stable_group(context.member("A", "p", "q"), context.member("B", "p", "q"))
    rejoins = await context.rebalance(a, b)
    await context.sync_all(a, b)
    again = context.join(b)
    await again
    for call in (*rejoins, again):
        context.check("GEN-04", call, "protocol", "leader")


@generations.add("GEN-05")
async def one_leader(context: ScenarioContext) -> None:
    """Three members of a round; two of them are told that they follow."""
    leader, *followers = await context.form_stable_group(*(context.member(label) for label in "ABC"))
    for call in (await context.rebalance(leader, *followers))[1:]:
        context.check("GEN-05", call, "leader", "members")


@generations.add("GEN-06")
async def leader_has_rejoined(context: ScenarioContext) -> None:
    """The leader is a static member that does not come back: it is kept, but somebody else leads."""
    context.highest_version("JoinGroup", 5)
    first, other = await context.form_stable_group(
        context.member_without_heartbeats("A", instance="one"), context.member_without_heartbeats("B", instance="two")
    )
    call = context.join_with_new_metadata(other)
    await call
    context.check("GEN-06", call, "leader", reached=first.id != other.id)


@generations.add("GEN-06")
async def successor_has_rejoined(context: ScenarioContext) -> None:
    """The leader leaves during the join phase; the one member that rejoined leads."""
    leader, follower = await context.form_stable_group(context.member("A"), context.member("B"))
    call = context.join_with_new_metadata(follower)
    await context.wait_for_state(PREPARING)
    await context.leave(leader)
    await call
    context.check("GEN-06", call, "leader")


@generations.add("GEN-05", "JOIN-37")
async def one_successor(context: ScenarioContext) -> None:
    """The leader leaves during the join phase; of the two that have rejoined just one leads."""
    leader, *followers = await context.form_stable_group(*(context.member(label) for label in "ABC"))
    calls = [context.join_with_new_metadata(follower) for follower in followers]
    await context.sleep(2 * context.short_pause)
    await context.leave(leader)
    for call in calls:
        await call
        context.check("GEN-05", call, "leader")
        context.check("JOIN-37", call, "members")


@generations.add("GEN-07")
async def leader_keeps_its_role(context: ScenarioContext) -> None:
    """In two rounds begun by the follower, the leader comes second and still leads."""
    leader, follower = await context.form_stable_group(context.member("A"), context.member("B"))
    for number in range(2):
        begun = context.join_with_new_metadata(follower, f"changed {number}")
        await context.wait_for_state(PREPARING)
        call = context.join(leader)
        await begun
        await call
        context.check("GEN-07", call, "leader")
        await context.sync_all(leader, follower)


@generations.add("GEN-13")
async def recreated_group_starts_over(context: ScenarioContext) -> None:
    """Deleted after two generations; the next member finds generation 1."""
    (a,) = await context.form_stable_group(context.member("A"))
    await context.leave(a)
    deleted = await context.delete_groups()
    gone = all(row["error_code"] in (0, 69) for row in deleted["results"])
    call = await context.join_new(context.member("B"))
    await call
    context.check("GEN-13", call, "generation", reached=gone)


@generations.add("GEN-15", smoke=True)
async def previous_generation_is_fenced(context: ScenarioContext) -> None:
    """Nothing of the generation before is accepted once there is another."""
    (a,) = await context.form_stable_group(context.member("A"))
    before = a.generation
    await context.rebalance(a)
    await context.sync_all(a)
    for call in (
        context.sync(a, generation_id=before),
        context.heartbeat(a, generation_id=before),
        context.commit(a, {0: 1}, generation_id_or_member_epoch=before),
    ):
        await call
        context.check("GEN-15", call)


@generations.add("GEN-16")
async def assignment_of_the_generation(context: ScenarioContext) -> None:
    """Another round, another plan: the members get what was assigned in theirs."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    await context.rebalance(a, b)
    for call in (context.sync(a, {a.id: b"second", b.id: b"second too"}), context.sync(b)):
        await call
        context.check("GEN-16", call, "assignment")


@generations.add("GEN-17")
async def no_stable_without_the_leader(context: ScenarioContext) -> None:
    """All but the leader have synced, and the group is not Stable."""
    leader, follower = await context.form_generation(context.member("A"), context.member("B"))
    waiting = context.sync(follower, {leader.id: b"wrong", follower.id: b"wrong"})
    await context.sleep(2 * context.short_pause)
    described = context.describe_groups()
    await described
    context.check("GEN-17", described, "state")
    await context.sync_leader(leader, follower)
    await waiting


@generations.add("GEN-18")
async def kept_member_is_fenced(context: ScenarioContext) -> None:
    """A static member that did not come back may not act in the new generation or in the old one."""
    context.highest_version("JoinGroup", 5)
    a, s = context.member_without_heartbeats("A"), context.member_without_heartbeats("S", instance="static")
    await context.form_stable_group(a, s)
    await context.join_with_new_metadata(a)
    await context.sync_all(a)
    for call in (context.heartbeat(s), context.sync(s), context.commit(s, {0: 1})):
        await call
        context.check("GEN-18", call, reached=a.generation > s.generation)


@generations.add("GEN-20")
async def members_of_a_round(context: ScenarioContext) -> None:
    """Of three members one comes back, one is kept for being static, one is dropped."""
    context.highest_version("JoinGroup", 5)
    a = context.member_without_heartbeats("A")
    await context.form_stable_group(
        a, context.member_without_heartbeats("B"), context.member_without_heartbeats("S", instance="static")
    )
    call = context.join_with_new_metadata(a)
    await call
    context.check("GEN-20", call, "members")
