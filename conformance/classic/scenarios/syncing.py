"""SyncGroup: refused requests, parked ones and their release."""

from typing import Any

from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily

syncing = ScenarioFamily()

UNKNOWN_MEMBER_FIELDS: dict[str, Any] = {"member_id": "nobody", "generation_id": 1, "protocol_name": "range"}


@syncing.add("SYNC-01")
async def sync_without_a_group(group: ScenarioContext) -> None:
    """A SyncGroup with the empty group id is refused."""
    await group.check("SYNC-01", group.sync(group.member("A"), group_id="", **UNKNOWN_MEMBER_FIELDS))


@syncing.add("SYNC-02")
async def sync_to_nobody(group: ScenarioContext) -> None:
    """An unknown group and an emptied group refuse every member id."""
    await group.check("SYNC-02", group.sync(group.member("B"), **UNKNOWN_MEMBER_FIELDS))
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    await group.check("SYNC-02", group.sync(a))


@syncing.add("SYNC-03")
async def sync_of_a_stranger(group: ScenarioContext) -> None:
    """The member id is checked before the generation."""
    (a,) = await group.form_stable_group(group.member("A"))
    for generation in (a.generation, a.generation + 1):
        await group.check("SYNC-03", group.sync(a, member_id="nobody", generation_id=generation))


@syncing.add("SYNC-04")
async def sync_with_another_generation(group: ScenarioContext) -> None:
    """One generation below and one above are refused, in CompletingRebalance and in Stable."""
    (a,) = await group.form_generation(group.member("A"))
    for settled in (False, True):
        if settled:
            await group.sync_all(a)
        for generation in (a.generation - 1, a.generation + 1):
            await group.check("SYNC-04", group.sync(a, generation_id=generation))


@syncing.add("SYNC-05")
async def sync_with_another_protocol(group: ScenarioContext) -> None:
    """A wrong protocol name or type is refused, and the response carries neither."""
    version = group.highest_version("SyncGroup", 5)
    (a,) = await group.form_generation(group.member("A"))
    for call in (
        group.sync(a, version=version, protocol_name="other"),
        group.sync(a, version=version, protocol_type="other"),
    ):
        await group.check("SYNC-05", call, fields=("error", "protocol", "protocol_type"))


@syncing.add("SYNC-06")
async def sync_without_a_protocol(group: ScenarioContext) -> None:
    """A null protocol name or type is refused, from an unknown id and from a member."""
    version = group.highest_version("SyncGroup", 5)
    await group.check(
        "SYNC-06", group.sync(group.member("B"), version=version, **(UNKNOWN_MEMBER_FIELDS | {"protocol_name": None}))
    )
    (a,) = await group.form_generation(group.member("A"))
    for call in (
        group.sync(a, version=version, protocol_name=None),
        group.sync(a, version=version, protocol_type=None),
    ):
        await group.check("SYNC-06", call)


@syncing.add("SYNC-07")
async def old_sync_needs_no_protocol(group: ScenarioContext) -> None:
    """Up to version 4, SyncGroup succeeds without protocol name and type."""
    version = group.highest_version("SyncGroup", 0, 4)
    (a,) = await group.form_generation(group.member("A"))
    await group.check("SYNC-07", group.sync(a, {a.id: b"plan"}, version=version))


@syncing.add("SYNC-08")
async def generation_before_protocol(group: ScenarioContext) -> None:
    """The generation is checked before the protocol."""
    version = group.highest_version("SyncGroup", 5)
    (a,) = await group.form_generation(group.member("A"))
    await group.check("SYNC-08", group.sync(a, version=version, generation_id=a.generation + 1, protocol_name="other"))


@syncing.add("SYNC-09")
async def sync_in_preparing(group: ScenarioContext) -> None:
    """In PreparingRebalance, a member gets REBALANCE_IN_PROGRESS at once."""
    (a,) = await group.form_stable_group(group.member("A"))

    newcomer = await group.join_new(group.member("B"))
    await group.check_rebalance_started("SYNC-09", observer=a, request=group.sync)
    await group.join(a)
    await newcomer


@syncing.add("SYNC-10", smoke=True)
async def follower_waits_for_the_leader(group: ScenarioContext) -> None:
    """A follower that syncs first waits for the leader."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    call = group.sync(follower)
    await group.sleep(3 * group.short_pause)
    await group.sync_leader(leader, follower)

    await group.check("SYNC-10", call, fields=("error", "time"))


@syncing.add("SYNC-11")
async def leader_does_not_wait(group: ScenarioContext) -> None:
    """A leader that syncs first gets its assignment at once, and the follower then finds a Stable group."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    await group.check("SYNC-11", group.sync_leader(leader, follower))
    await group.check("SYNC-11", group.describe_groups(), fields="state")
    await group.check("SYNC-11", group.sync(follower))


@syncing.add("SYNC-18")
async def rebalance_ends_the_wait(group: ScenarioContext) -> None:
    """Both parked followers have to rejoin when the leader rejoins with other metadata."""
    leader, *followers = await group.form_generation(*(group.member(label) for label in "ABC"))

    waiting = [group.sync(follower) for follower in followers]
    await group.sleep(2 * group.short_pause)
    rejoined = group.join_with_new_metadata(leader)

    for call in waiting:
        await group.check("SYNC-18", call, fields=("error", "assignment"))
    for follower in followers:
        group.join(follower)
    await rejoined


@syncing.add("SYNC-18")
async def departure_ends_the_wait(group: ScenarioContext) -> None:
    """A parked follower has to rejoin when the leader leaves."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    waiting = group.sync(follower)
    await group.sleep(2 * group.short_pause)
    await group.leave(leader)

    await group.check("SYNC-18", waiting, fields=("error", "assignment"))


@syncing.add("SYNC-20")
async def previous_generation_after_stable(group: ScenarioContext) -> None:
    """In Stable, a SyncGroup of the generation before is refused."""
    (a,) = await group.form_stable_group(group.member("A"))
    before = a.generation
    await group.rebalance(a)
    await group.sync_all(a)

    await group.check("SYNC-20", group.sync(a, generation_id=before))


@syncing.add("SYNC-22")
async def errors_carry_no_assignment(group: ScenarioContext) -> None:
    """A refused SyncGroup carries no assignment, though there is one."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.check("SYNC-22", group.sync(a, generation_id=a.generation + 1), fields="assignment")
    newcomer = await group.join_new(group.member("B"))
    await group.wait_for_state(PREPARING)
    await group.check("SYNC-22", group.sync(a), fields="assignment")
    await group.join(a)
    await newcomer


@syncing.add("SYNC-23")
async def rebalance_before_the_leader(group: ScenarioContext) -> None:
    """A follower begins a join phase before the leader has synced: the leader has to rejoin."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    rejoined = group.join_with_new_metadata(follower)
    await group.check_rebalance_started("SYNC-23", observer=leader, request=group.sync)
    await group.join(leader)
    await rejoined


@syncing.add("SYNC-23")
async def rebalance_races_the_leader(group: ScenarioContext) -> None:
    """A follower begins a join phase while the leader syncs: the leader and a parked follower get the same error."""
    leader, waiter, changed = await group.form_generation(*(group.member(label) for label in "ABC"))

    waiting = group.sync(waiter)
    await group.sleep(2 * group.short_pause)
    brought = group.sync(leader, {one.id: b"stale" for one in (leader, waiter, changed)})
    rejoined = group.join_with_new_metadata(changed)

    for call in (brought, waiting):
        await group.check("SYNC-23", call)
    for member in (leader, waiter):
        group.join(member)
    await rejoined


@syncing.add("SYNC-24")
async def second_sync_takes_the_place_of_the_first(group: ScenarioContext) -> None:
    """A second SyncGroup of a follower replaces its parked one."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    group.sync(follower)
    await group.sleep(group.short_pause)
    again = group.sync(follower)
    await group.sleep(2 * group.short_pause)
    await group.sync(leader, {leader.id: b"kept", follower.id: b"given"})

    await group.check("SYNC-24", again, fields=("error", "assignment", "time"))
