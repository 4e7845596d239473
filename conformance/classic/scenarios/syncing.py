"""SyncGroup: refused requests, parked ones and their release, and the assignment that each member gets."""

from typing import Any

from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily

syncing = ScenarioFamily()

UNKNOWN_MEMBER_FIELDS: dict[str, Any] = {"member_id": "nobody", "generation_id": 1, "protocol_name": "range"}


@syncing.add("SYNC-01")
async def sync_without_a_group(group: ScenarioContext) -> None:
    """A SyncGroup with the empty group id is refused."""
    await group.check_versions("SYNC-01", group.sync(group.member("A"), group_id="", **UNKNOWN_MEMBER_FIELDS))


@syncing.add("SYNC-02")
async def sync_to_nobody(group: ScenarioContext) -> None:
    """An unknown group and an emptied group refuse every member id."""
    await group.check_versions("SYNC-02", group.sync(group.member("B"), **UNKNOWN_MEMBER_FIELDS))
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    await group.check_versions("SYNC-02", group.sync(a))


@syncing.add("SYNC-03")
async def sync_of_a_stranger(group: ScenarioContext) -> None:
    """The member id is checked before the generation."""
    (a,) = await group.form_stable_group(group.member("A"))
    for generation in (a.generation, a.generation + 1):
        await group.check_versions("SYNC-03", group.sync(a, member_id="nobody", generation_id=generation))


@syncing.add("SYNC-04")
async def sync_with_another_generation(group: ScenarioContext) -> None:
    """One generation below and one above are refused, in CompletingRebalance and in Stable."""
    (a,) = await group.form_generation(group.patient_member("A"))
    for settled in (False, True):
        if settled:
            await group.sync_all(a)
        for generation in (a.generation - 1, a.generation + 1):
            await group.check_versions("SYNC-04", group.sync(a, generation_id=generation))


@syncing.add("SYNC-05")
async def sync_with_another_protocol(group: ScenarioContext) -> None:
    """A wrong protocol name or type is refused, and the response carries neither."""
    version = group.highest_version("SyncGroup", 5)
    (a,) = await group.form_generation(group.patient_member("A"))
    for call in (
        group.sync(a, version=version, protocol_name="other"),
        group.sync(a, version=version, protocol_type="other"),
    ):
        await group.check_versions("SYNC-05", call, fields=("error", "protocol", "protocol_type"), since=5)


@syncing.add("SYNC-06")
async def sync_without_a_protocol(group: ScenarioContext) -> None:
    """A null protocol name or type is refused, from an unknown id and from a member."""
    version = group.highest_version("SyncGroup", 5)
    await group.check_versions(
        "SYNC-06",
        group.sync(group.member("B"), version=version, **(UNKNOWN_MEMBER_FIELDS | {"protocol_name": None})),
        since=5,
    )
    (a,) = await group.form_generation(group.patient_member("A"))
    for call in (
        group.sync(a, version=version, protocol_name=None),
        group.sync(a, version=version, protocol_type=None),
    ):
        await group.check_versions("SYNC-06", call, since=5)


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
    (a,) = await group.form_generation(group.patient_member("A"))
    await group.check_versions(
        "SYNC-08", group.sync(a, version=version, generation_id=a.generation + 1, protocol_name="other"), since=5
    )


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

    await group.check_versions("SYNC-20", group.sync(a, generation_id=before))


@syncing.add("SYNC-22")
async def errors_carry_no_assignment(group: ScenarioContext) -> None:
    """A refused SyncGroup carries no assignment, though there is one."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.check_versions("SYNC-22", group.sync(a, generation_id=a.generation + 1), fields="assignment")
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


# --- SyncGroup: the assignments that members receive.


@syncing.add("SYNC-12", smoke=True)
async def assignments_are_handed_on(group: ScenarioContext) -> None:
    """Each member receives the bytes that the leader assigned to it, unchanged."""
    leader, *followers = await group.form_generation(*(group.member(label) for label in "ABC"))

    plan = {leader.id: bytes(range(256)), followers[0].id: b"\0", followers[1].id: b"two"}
    calls = [group.sync(leader, plan), *(group.sync(follower) for follower in followers)]

    for call in calls:
        await group.check("SYNC-12", call, fields=("error", "assignment"))


@syncing.add("SYNC-13")
async def left_out_member_gets_nothing(group: ScenarioContext) -> None:
    """A parked follower without an assignment by the leader receives an empty one."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    call = group.sync(follower)
    await group.sleep(group.short_pause)

    await group.check("SYNC-13", group.sync(leader, {leader.id: b"all"}), fields="error")
    await group.check("SYNC-13", call, fields=("error", "assignment"))


@syncing.add("SYNC-13")
async def leader_that_assigns_nothing(group: ScenarioContext) -> None:
    """A leader that assigns nothing, not even to itself, receives an empty assignment."""
    (a,) = await group.form_generation(group.member("A"))
    await group.check("SYNC-13", group.sync(a), fields=("error", "assignment"))


@syncing.add("SYNC-14")
async def assignment_for_a_stranger(group: ScenarioContext) -> None:
    """An assignment for an unknown id is accepted, and does not make that id a member."""
    (a,) = await group.form_generation(group.member("A"))
    await group.check("SYNC-14", group.sync(a, {a.id: b"mine", "nobody": b"theirs"}), fields=("error", "assignment"))
    await group.check("SYNC-14", group.sync(a, member_id="nobody"))


@syncing.add("SYNC-15")
async def assignments_of_a_follower(group: ScenarioContext) -> None:
    """A follower sends assignments too; only those of the leader count."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    call = group.sync(follower, {leader.id: b"wrong", follower.id: b"wrong"})
    await group.sleep(2 * group.short_pause)
    led = group.sync(leader, {leader.id: b"right", follower.id: b"right"})
    await led

    await group.check("SYNC-15", call, fields=("assignment", "time"))
    await group.check("SYNC-15", led, fields="assignment")


@syncing.add("SYNC-16")
async def sync_in_stable(group: ScenarioContext) -> None:
    """In Stable, each SyncGroup of leader or follower returns the stored assignment."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    for member in (b, b, b, a):
        await group.check_versions("SYNC-16", group.sync(member), fields=("error", "assignment"))


@syncing.add("SYNC-16")
async def sync_after_an_unchanged_rejoin(group: ScenarioContext) -> None:
    """A follower that rejoins unchanged receives its stored assignment."""
    _, follower = await group.form_stable_group(group.member("A"), group.member("B"))
    generation = follower.generation
    await group.join(follower)
    group.require(follower.generation == generation, "the unchanged rejoin began a rebalance")
    await group.check("SYNC-16", group.sync(follower), fields=("error", "assignment"))


@syncing.add("SYNC-17")
async def leader_assigns_again(group: ScenarioContext) -> None:
    """In Stable, other assignments by the leader change nothing, for itself or for others."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    for call in (group.sync(a, {a.id: b"other", b.id: b"other"}), group.sync(b)):
        await group.check_versions("SYNC-17", call, fields=("error", "assignment"))


@syncing.add("SYNC-19")
async def interrupted_assignment_is_forgotten(group: ScenarioContext) -> None:
    """After a rebalance without assignments, no member receives an assignment of the one before."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.rebalance(a, b)

    waiting = group.sync(b, {a.id: b"stale", b.id: b"stale"})
    await group.sleep(group.short_pause)
    rejoined = group.join_with_new_metadata(a)
    await waiting
    await group.join(b)
    await rejoined

    for member in (a, b):
        await group.check("SYNC-19", group.sync(member), fields="assignment")


@syncing.add("SYNC-19", "GEN-16")
async def overtaken_assignment_is_forgotten(group: ScenarioContext) -> None:
    """A rebalance starts while an assignment is being stored; its members do not receive that assignment."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    overtaken = group.sync(leader, {leader.id: b"stale", follower.id: b"stale"})
    rejoined = group.join_with_new_metadata(follower)
    await overtaken
    await group.join(leader)
    await rejoined
    waiting = group.sync(follower)
    await group.sleep(3 * group.short_pause)
    settled = group.sync(leader, {leader.id: b"fresh", follower.id: b"fresh"})

    await group.check("SYNC-19", waiting, fields=("error", "assignment", "time"))
    await group.check("GEN-16", waiting, fields=("assignment", "time"))
    await settled


@syncing.add("SYNC-21")
async def protocol_in_the_answer(group: ScenarioContext) -> None:
    """From version 5 on, a success names protocol and protocol type."""
    version = group.highest_version("SyncGroup", 5)
    (a,) = await group.form_generation(group.member("A", "p", protocol_type="worker"))
    await group.check("SYNC-21", group.sync(a, {a.id: b"plan"}, version=version), fields=("protocol", "protocol_type"))


@syncing.add("SYNC-25", needs=("restart",))
async def assignment_survives_a_restart(group: ScenarioContext) -> None:
    """A restart does not lose an assignment that was acknowledged."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.restart()
    await group.check("SYNC-25", group.sync(a), fields=("error", "assignment"))
