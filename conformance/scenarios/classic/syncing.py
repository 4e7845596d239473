"""SyncGroup: who is refused, who waits for whom, and what ends the wait."""

from typing import Any

from fencepost.conformance.scenario.admin_requests import PREPARING
from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

syncing = ScenarioFamily()

UNKNOWN_MEMBER_FIELDS: dict[str, Any] = {"member_id": "nobody", "generation_id": 1, "protocol_name": "range"}


@syncing.add("SYNC-01")
async def sync_without_a_group(context: ScenarioContext) -> None:
    """S with the empty group id."""
    call = context.sync(context.member("A"), group_id="", **UNKNOWN_MEMBER_FIELDS)
    await call
    context.check("SYNC-01", call)


@syncing.add("SYNC-02")
async def sync_to_nobody(context: ScenarioContext) -> None:
    """A group that never was, and one that everybody has left."""
    call = context.sync(context.member("B"), **UNKNOWN_MEMBER_FIELDS)
    await call
    context.check("SYNC-02", call)
    (a,) = await context.form_stable_group(context.member("A"))
    await context.leave(a)
    call = context.sync(a)
    await call
    context.check("SYNC-02", call)


@syncing.add("SYNC-03")
async def sync_of_a_stranger(context: ScenarioContext) -> None:
    """The id is looked at before the generation."""
    (a,) = await context.form_stable_group(context.member("A"))
    for generation in (a.generation, a.generation + 1):
        call = context.sync(a, member_id="nobody", generation_id=generation)
        await call
        context.check("SYNC-03", call)


@syncing.add("SYNC-04")
async def sync_with_another_generation(context: ScenarioContext) -> None:
    """One generation below and one above, in the sync phase and when Stable."""
    (a,) = await context.form_generation(context.member("A"))
    for settled in (False, True):
        if settled:
            await context.sync_all(a)
        for generation in (a.generation - 1, a.generation + 1):
            call = context.sync(a, generation_id=generation)
            await call
            context.check("SYNC-04", call)


@syncing.add("SYNC-05")
async def sync_with_another_protocol(context: ScenarioContext) -> None:
    """A protocol name or type that is not the group's; the answer names none."""
    version = context.highest_version("SyncGroup", 5)
    (a,) = await context.form_generation(context.member("A"))
    for call in (
        context.sync(a, version=version, protocol_name="other"),
        context.sync(a, version=version, protocol_type="other"),
    ):
        await call
        context.check("SYNC-05", call, "error", "protocol", "protocol_type")


@syncing.add("SYNC-06")
async def sync_without_a_protocol(context: ScenarioContext) -> None:
    """Null in place of the name or the type, from a stranger and from a member."""
    version = context.highest_version("SyncGroup", 5)
    call = context.sync(context.member("B"), version=version, **(UNKNOWN_MEMBER_FIELDS | {"protocol_name": None}))
    await call
    context.check("SYNC-06", call)
    (a,) = await context.form_generation(context.member("A"))
    for call in (
        context.sync(a, version=version, protocol_name=None),
        context.sync(a, version=version, protocol_type=None),
    ):
        await call
        context.check("SYNC-06", call)


@syncing.add("SYNC-07")
async def old_sync_needs_no_protocol(context: ScenarioContext) -> None:
    """Up to version 4 there are no such fields."""
    version = context.highest_version("SyncGroup", 0, 4)
    (a,) = await context.form_generation(context.member("A"))
    call = context.sync(a, {a.id: b"plan"}, version=version)
    await call
    context.check("SYNC-07", call)


@syncing.add("SYNC-08")
async def generation_before_protocol(context: ScenarioContext) -> None:
    """Everything is wrong; the generation is what is told."""
    version = context.highest_version("SyncGroup", 5)
    (a,) = await context.form_generation(context.member("A"))
    call = context.sync(a, version=version, generation_id=a.generation + 1, protocol_name="other")
    await call
    context.check("SYNC-08", call)


@syncing.add("SYNC-09")
async def sync_in_preparing(context: ScenarioContext) -> None:
    """A member that has yet to hear of the rebalance is told at once."""
    (a,) = await context.form_stable_group(context.member("A"))
    newcomer = await context.join_new(context.member("B"))
    begun = await context.wait_for_state(PREPARING)
    call = context.sync(a)
    body = await call
    context.check("SYNC-09", call, reached=begun or body["error_code"] == 27)
    await context.join(a)
    await newcomer


@syncing.add("SYNC-10", smoke=True)
async def follower_waits_for_the_leader(context: ScenarioContext) -> None:
    """A follower that comes first waits until the leader has come."""
    leader, follower = await context.form_generation(context.member("A"), context.member("B"))
    call = context.sync(follower)
    await context.sleep(3 * context.short_pause)
    await context.sync_leader(leader, follower)
    await call
    context.check("SYNC-10", call, "error", "time")


@syncing.add("SYNC-11")
async def leader_does_not_wait(context: ScenarioContext) -> None:
    """The leader comes first and is answered; its follower finds a Stable group."""
    leader, follower = await context.form_generation(context.member("A"), context.member("B"))
    call = context.sync_leader(leader, follower)
    await call
    context.check("SYNC-11", call)
    described = context.describe_groups()
    await described
    context.check("SYNC-11", described, "state")
    late = context.sync(follower)
    await late
    context.check("SYNC-11", late)


@syncing.add("SYNC-18")
async def rebalance_ends_the_wait(context: ScenarioContext) -> None:
    """Both followers that wait are sent away when the leader rejoins with something else to offer."""
    leader, *followers = await context.form_generation(*(context.member(label) for label in "ABC"))
    waiting = [context.sync(follower) for follower in followers]
    await context.sleep(2 * context.short_pause)
    rejoined = context.join_with_new_metadata(leader)
    for call in waiting:
        await call
        context.check("SYNC-18", call, "error", "assignment")
    for follower in followers:
        context.join(follower)
    await rejoined


@syncing.add("SYNC-18")
async def departure_ends_the_wait(context: ScenarioContext) -> None:
    """A follower that waits is sent away when the leader leaves."""
    leader, follower = await context.form_generation(context.member("A"), context.member("B"))
    waiting = context.sync(follower)
    await context.sleep(2 * context.short_pause)
    await context.leave(leader)
    await waiting
    context.check("SYNC-18", waiting, "error", "assignment")


@syncing.add("SYNC-20")
async def previous_generation_after_stable(context: ScenarioContext) -> None:
    """The second generation is Stable; a SyncGroup of the first is late."""
    (a,) = await context.form_stable_group(context.member("A"))
    before = a.generation
    await context.rebalance(a)
    await context.sync_all(a)
    call = context.sync(a, generation_id=before)
    await call
    context.check("SYNC-20", call)


@syncing.add("SYNC-22")
async def errors_carry_no_assignment(context: ScenarioContext) -> None:
    """There is an assignment, and it is not given away with an error."""
    (a,) = await context.form_stable_group(context.member("A"))
    wrong = context.sync(a, generation_id=a.generation + 1)
    await wrong
    context.check("SYNC-22", wrong, "assignment")
    newcomer = await context.join_new(context.member("B"))
    await context.wait_for_state(PREPARING)
    early = context.sync(a)
    await early
    context.check("SYNC-22", early, "assignment")
    await context.join(a)
    await newcomer


@syncing.add("SYNC-23")
async def rebalance_before_the_leader(context: ScenarioContext) -> None:
    """A follower begins another round before the leader has brought its assignment."""
    leader, follower = await context.form_generation(context.member("A"), context.member("B"))
    rejoined = context.join_with_new_metadata(follower)
    begun = await context.wait_for_state(PREPARING)
    call = context.sync(leader)
    body = await call
    context.check("SYNC-23", call, reached=begun or body["error_code"] == 27)
    await context.join(leader)
    await rejoined


@syncing.add("SYNC-23")
async def rebalance_races_the_leader(context: ScenarioContext) -> None:
    """A follower begins another round at the moment the leader brings its assignment: who waits is told the same."""
    leader, waiter, changed = await context.form_generation(*(context.member(label) for label in "ABC"))
    waiting = context.sync(waiter)
    await context.sleep(2 * context.short_pause)
    brought = context.sync(leader, {one.id: b"stale" for one in (leader, waiter, changed)})
    rejoined = context.join_with_new_metadata(changed)
    for call in (brought, waiting):
        await call
        context.check("SYNC-23", call)
    for member in (leader, waiter):
        context.join(member)
    await rejoined


@syncing.add("SYNC-24")
async def second_sync_takes_the_place_of_the_first(context: ScenarioContext) -> None:
    """A follower asks twice while it waits; the newer request is answered."""
    leader, follower = await context.form_generation(context.member("A"), context.member("B"))
    context.sync(follower)
    await context.sleep(context.short_pause)
    again = context.sync(follower)
    await context.sleep(2 * context.short_pause)
    await context.sync(leader, {leader.id: b"kept", follower.id: b"given"})
    await again
    context.check("SYNC-24", again, "error", "assignment", "time")
