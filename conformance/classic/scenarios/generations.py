"""Generations: their numbers, their leaders, their members, and their fencing."""

from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily
from fencepost.model.errors import Error

generations = ScenarioFamily()


@generations.add("GEN-01", smoke=True)
async def first_generation(group: ScenarioContext) -> None:
    """The first member of a new group joins generation 1."""
    await group.check("GEN-01", await group.join_new(group.member("A")), fields="generation")


@generations.add("GEN-02", smoke=True)
async def every_round_counts_once(group: ScenarioContext) -> None:
    """Each of two further rebalances raises the generation by one."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    for _ in range(2):
        for call in await group.rebalance(a, b):
            await group.check("GEN-02", call, fields="generation")
        await group.sync_all(a, b)


@generations.add("GEN-02")
async def round_that_ends_empty_counts(group: ScenarioContext) -> None:
    """The rebalance after the last member's session has expired raises the generation, too."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.commit(a, {0: 1})
    await group.sleep_past(a.session_timeout)

    await group.check("GEN-02", await group.join_new(a), fields="generation")


@generations.add("GEN-14")
async def emptied_group_counts_on(group: ScenarioContext) -> None:
    """An emptied group that is kept by its offsets does not start over."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.commit(a, {0: 1})
    await group.leave(a)

    await group.check("GEN-14", await group.join_new(a), fields="generation")


@generations.add("GEN-03")
async def nothing_else_counts(group: ScenarioContext) -> None:
    """All requests that begin no join phase leave the generation as it is."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))

    await group.sync(a)
    await group.heartbeat(b)
    await group.commit(a, {0: 1})
    await group.join(group.member("C"), protocol_type="other")
    await group.describe_groups()

    await group.check("GEN-03", group.join(b), fields="generation")
    await group.check("GEN-03", group.heartbeat(a))


@generations.add("GEN-04")
async def answers_of_a_generation_agree(group: ScenarioContext) -> None:
    """A follower that rejoins gets the same protocol and the same leader."""
    a, b = await group.form_stable_group(group.member("A", "p", "q"), group.member("B", "p", "q"))
    rejoins = await group.rebalance(a, b)
    await group.sync_all(a, b)

    again = group.join(b)
    await again

    for call in (*rejoins, again):
        await group.check("GEN-04", call, fields=("protocol", "leader"))


@generations.add("GEN-05")
async def one_leader(group: ScenarioContext) -> None:
    """Of three members, two are named followers."""
    leader, *followers = await group.form_stable_group(*map(group.member_without_heartbeats, "ABC"))
    for call in (await group.rebalance(leader, *followers))[1:]:
        await group.check("GEN-05", call, fields=("leader", "members"))


@generations.add("GEN-06")
async def leader_has_rejoined(group: ScenarioContext) -> None:
    """A static leader that does not rejoin stays a member, and another member becomes leader."""
    group.highest_version("JoinGroup", 5)
    first, other = await group.form_stable_group(
        group.member_without_heartbeats("A", instance="one"), group.member_without_heartbeats("B", instance="two")
    )
    await group.check("GEN-06", group.join_with_new_metadata(other), fields="leader", reached=first.id != other.id)


@generations.add("GEN-06")
async def successor_has_rejoined(group: ScenarioContext) -> None:
    """The leader leaves during the join phase; the one member that has rejoined becomes leader."""
    leader, follower = await group.form_stable_group(group.member("A"), group.member("B"))

    call = group.join_with_new_metadata(follower)
    await group.wait_for_state(PREPARING)
    await group.leave(leader)

    await group.check("GEN-06", call, fields="leader")


@generations.add("GEN-05", "JOIN-37")
async def one_successor(group: ScenarioContext) -> None:
    """The leader leaves during the join phase; one of the two that have rejoined becomes leader."""
    leader, *followers = await group.form_stable_group(*map(group.member_without_heartbeats, "ABC"))

    calls = [group.join_with_new_metadata(follower) for follower in followers]
    await group.sleep(2 * group.short_pause)
    await group.leave(leader)

    for call in calls:
        await group.check("GEN-05", call, fields="leader")
        await group.check("JOIN-37", call, fields="members")


@generations.add("GEN-07")
async def leader_keeps_its_role(group: ScenarioContext) -> None:
    """The leader rejoins second, in rebalances that the follower began, and stays leader."""
    leader, follower = await group.form_stable_group(group.member("A"), group.member("B"))
    for number in range(2):
        rejoined = group.join_with_new_metadata(follower, f"changed {number}")
        await group.wait_for_state(PREPARING)
        call = group.join(leader)
        await rejoined
        await group.check("GEN-07", call, fields="leader")
        await group.sync_all(leader, follower)


@generations.add("GEN-13")
async def recreated_group_starts_over(group: ScenarioContext) -> None:
    """A deleted group starts over with generation 1."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.leave(a)
    deleted = await group.delete_groups()
    is_deleted = all(row["error_code"] in (Error.NONE, Error.GROUP_ID_NOT_FOUND) for row in deleted["results"])

    await group.check("GEN-13", await group.join_new(group.member("B")), fields="generation", reached=is_deleted)


@generations.add("GEN-15", smoke=True)
async def previous_generation_is_fenced(group: ScenarioContext) -> None:
    """After a rebalance, all requests of the generation before are refused."""
    (a,) = await group.form_stable_group(group.member("A"))
    before = a.generation
    await group.rebalance(a)
    await group.sync_all(a)

    for call in (
        group.sync(a, generation_id=before),
        group.heartbeat(a, generation_id=before),
        group.commit(a, {0: 1}, generation_id_or_member_epoch=before),
    ):
        await group.check("GEN-15", call)


@generations.add("GEN-16")
async def assignment_of_the_generation(group: ScenarioContext) -> None:
    """After a rebalance, the members receive the assignments of the new generation."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.rebalance(a, b)
    for call in (group.sync(a, {a.id: b"second", b.id: b"second too"}), group.sync(b)):
        await group.check("GEN-16", call, fields="assignment")


@generations.add("GEN-17")
async def no_stable_without_the_leader(group: ScenarioContext) -> None:
    """The group is not Stable before the leader has synced."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    waiting = group.sync(follower, {leader.id: b"wrong", follower.id: b"wrong"})
    await group.sleep(2 * group.short_pause)

    await group.check("GEN-17", group.describe_groups(), fields="state")
    await group.sync_leader(leader, follower)
    await waiting


@generations.add("GEN-18")
async def kept_member_is_fenced(group: ScenarioContext) -> None:
    """A static member that did not rejoin may not act, neither in the new generation nor in the old one."""
    group.highest_version("JoinGroup", 5)
    a, s = group.member_without_heartbeats("A"), group.member_without_heartbeats("S", instance="static")
    await group.form_stable_group(a, s)
    await group.join_with_new_metadata(a)
    await group.sync_all(a)

    for call in (group.heartbeat(s), group.sync(s), group.commit(s, {0: 1})):
        await group.check("GEN-18", call, reached=a.generation > s.generation)


@generations.add("GEN-20")
async def members_of_a_round(group: ScenarioContext) -> None:
    """Of three members one rejoins, one stays as it is static, and one is removed."""
    group.highest_version("JoinGroup", 5)
    a = group.member_without_heartbeats("A")
    await group.form_stable_group(
        a, group.member_without_heartbeats("B"), group.member_without_heartbeats("S", instance="static")
    )

    await group.check("GEN-20", group.join_with_new_metadata(a), fields="members")
