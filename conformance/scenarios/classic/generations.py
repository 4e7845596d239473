"""Generations: how they are counted, who leads them, who belongs to them, and whom they fence."""

from fencepost.conformance.scenario.admin_requests import PREPARING
from fencepost.conformance.scenario.context import Stage
from fencepost.conformance.scenario.scenario import Collection

generations = Collection()


@generations.add("GEN-01", smoke=True)
async def first_generation(stage: Stage) -> None:
    """The first member of a new group is told of generation 1."""
    call = await stage.enter(stage.member("A"))
    await call
    stage.shows("GEN-01", call, "generation")


@generations.add("GEN-02", smoke=True)
async def every_round_counts_once(stage: Stage) -> None:
    """Two rounds more, each one generation up."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    for _ in range(2):
        for call in await stage.regroup(a, b):
            stage.shows("GEN-02", call, "generation")
        await stage.settle(a, b)


@generations.add("GEN-02")
async def round_that_ends_empty_counts(stage: Stage) -> None:
    """The only member goes silent; the round that it should have come to counts too."""
    (a,) = await stage.stable(stage.member("A"))
    await stage.commit(a, {0: 1})
    await stage.sleep_past(a.session)
    call = await stage.enter(a)
    await call
    stage.shows("GEN-02", call, "generation")


@generations.add("GEN-14")
async def emptied_group_counts_on(stage: Stage) -> None:
    """A group that everybody left, kept by its offsets, goes on counting."""
    (a,) = await stage.stable(stage.member("A"))
    await stage.commit(a, {0: 1})
    await stage.leave(a)
    call = await stage.enter(a)
    await call
    stage.shows("GEN-14", call, "generation")


@generations.add("GEN-03")
async def nothing_else_counts(stage: Stage) -> None:
    """Everything a member may do short of a join phase, and then the generation is still the same."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    await stage.sync(a)
    await stage.heartbeat(b)
    await stage.commit(a, {0: 1})
    await stage.join(stage.member("C"), protocol_type="other")
    await stage.describe()
    call = stage.join(b)
    await call
    stage.shows("GEN-03", call, "generation")
    undisturbed = stage.heartbeat(a)
    await undisturbed
    stage.shows("GEN-03", undisturbed)


@generations.add("GEN-04")
async def answers_of_a_generation_agree(stage: Stage) -> None:
    """A follower that asks again is told of the same protocol and the same leader."""
    a, b = await stage.stable(stage.member("A", "p", "q"), stage.member("B", "p", "q"))
    rejoins = await stage.regroup(a, b)
    await stage.settle(a, b)
    again = stage.join(b)
    await again
    for call in (*rejoins, again):
        stage.shows("GEN-04", call, "protocol", "leader")


@generations.add("GEN-05")
async def one_leader(stage: Stage) -> None:
    """Three members of a round; two of them are told that they follow."""
    leader, *followers = await stage.stable(*(stage.member(label) for label in "ABC"))
    for call in (await stage.regroup(leader, *followers))[1:]:
        stage.shows("GEN-05", call, "leader", "members")


@generations.add("GEN-06")
async def leader_has_rejoined(stage: Stage) -> None:
    """The leader is a static member that does not come back: it is kept, but somebody else leads."""
    stage.version("JoinGroup", 5)
    first, other = await stage.stable(stage.silent("A", instance="one"), stage.silent("B", instance="two"))
    call = stage.join_changed(other)
    await call
    stage.shows("GEN-06", call, "leader", met=first.id != other.id)


@generations.add("GEN-06")
async def successor_has_rejoined(stage: Stage) -> None:
    """The leader leaves during the join phase; the one member that rejoined leads."""
    leader, follower = await stage.stable(stage.member("A"), stage.member("B"))
    call = stage.join_changed(follower)
    await stage.reaches(PREPARING)
    await stage.leave(leader)
    await call
    stage.shows("GEN-06", call, "leader")


@generations.add("GEN-05", "JOIN-37")
async def one_successor(stage: Stage) -> None:
    """The leader leaves during the join phase; of the two that have rejoined just one leads."""
    leader, *followers = await stage.stable(*(stage.member(label) for label in "ABC"))
    calls = [stage.join_changed(follower) for follower in followers]
    await stage.sleep(2 * stage.step)
    await stage.leave(leader)
    for call in calls:
        await call
        stage.shows("GEN-05", call, "leader")
        stage.shows("JOIN-37", call, "members")


@generations.add("GEN-07")
async def leader_keeps_its_role(stage: Stage) -> None:
    """In two rounds begun by the follower, the leader comes second and still leads."""
    leader, follower = await stage.stable(stage.member("A"), stage.member("B"))
    for number in range(2):
        begun = stage.join_changed(follower, f"changed {number}")
        await stage.reaches(PREPARING)
        call = stage.join(leader)
        await begun
        await call
        stage.shows("GEN-07", call, "leader")
        await stage.settle(leader, follower)


@generations.add("GEN-13")
async def recreated_group_starts_over(stage: Stage) -> None:
    """Deleted after two generations; the next member finds generation 1."""
    (a,) = await stage.stable(stage.member("A"))
    await stage.leave(a)
    deleted = await stage.delete()
    gone = all(row["error_code"] in (0, 69) for row in deleted["results"])
    call = await stage.enter(stage.member("B"))
    await call
    stage.shows("GEN-13", call, "generation", met=gone)


@generations.add("GEN-15", smoke=True)
async def previous_generation_is_fenced(stage: Stage) -> None:
    """Nothing of the generation before is accepted once there is another."""
    (a,) = await stage.stable(stage.member("A"))
    before = a.generation
    await stage.regroup(a)
    await stage.settle(a)
    for call in (
        stage.sync(a, generation_id=before),
        stage.heartbeat(a, generation_id=before),
        stage.commit(a, {0: 1}, generation_id_or_member_epoch=before),
    ):
        await call
        stage.shows("GEN-15", call)


@generations.add("GEN-16")
async def assignment_of_the_generation(stage: Stage) -> None:
    """Another round, another plan: the members get what was assigned in theirs."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    await stage.regroup(a, b)
    for call in (stage.sync(a, {a.id: b"second", b.id: b"second too"}), stage.sync(b)):
        await call
        stage.shows("GEN-16", call, "assignment")


@generations.add("GEN-17")
async def no_stable_without_the_leader(stage: Stage) -> None:
    """All but the leader have synced, and the group is not Stable."""
    leader, follower = await stage.completing(stage.member("A"), stage.member("B"))
    waiting = stage.sync(follower, {leader.id: b"wrong", follower.id: b"wrong"})
    await stage.sleep(2 * stage.step)
    described = stage.describe()
    await described
    stage.shows("GEN-17", described, "state")
    await stage.lead(leader, follower)
    await waiting


@generations.add("GEN-18")
async def kept_member_is_fenced(stage: Stage) -> None:
    """A static member that did not come back may not act in the new generation or in the old one."""
    stage.version("JoinGroup", 5)
    a, s = stage.silent("A"), stage.silent("S", instance="static")
    await stage.stable(a, s)
    await stage.join_changed(a)
    await stage.settle(a)
    for call in (stage.heartbeat(s), stage.sync(s), stage.commit(s, {0: 1})):
        await call
        stage.shows("GEN-18", call, met=a.generation > s.generation)


@generations.add("GEN-20")
async def members_of_a_round(stage: Stage) -> None:
    """Of three members one comes back, one is kept for being static, one is dropped."""
    stage.version("JoinGroup", 5)
    a = stage.silent("A")
    await stage.stable(a, stage.silent("B"), stage.silent("S", instance="static"))
    call = stage.join_changed(a)
    await call
    stage.shows("GEN-20", call, "members")
