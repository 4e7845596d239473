"""SyncGroup: who is refused, who waits for whom, and what ends the wait."""

from typing import Any

from fencepost.conformance.scenario.admin_requests import PREPARING
from fencepost.conformance.scenario.context import Stage
from fencepost.conformance.scenario.scenario import Collection

syncing = Collection()

STRANGER: dict[str, Any] = {"member_id": "nobody", "generation_id": 1, "protocol_name": "range"}


@syncing.add("SYNC-01")
async def sync_without_a_group(stage: Stage) -> None:
    """S with the empty group id."""
    call = stage.sync(stage.member("A"), group_id="", **STRANGER)
    await call
    stage.shows("SYNC-01", call)


@syncing.add("SYNC-02")
async def sync_to_nobody(stage: Stage) -> None:
    """A group that never was, and one that everybody has left."""
    call = stage.sync(stage.member("B"), **STRANGER)
    await call
    stage.shows("SYNC-02", call)
    (a,) = await stage.stable(stage.member("A"))
    await stage.leave(a)
    call = stage.sync(a)
    await call
    stage.shows("SYNC-02", call)


@syncing.add("SYNC-03")
async def sync_of_a_stranger(stage: Stage) -> None:
    """The id is looked at before the generation."""
    (a,) = await stage.stable(stage.member("A"))
    for generation in (a.generation, a.generation + 1):
        call = stage.sync(a, member_id="nobody", generation_id=generation)
        await call
        stage.shows("SYNC-03", call)


@syncing.add("SYNC-04")
async def sync_with_another_generation(stage: Stage) -> None:
    """One generation below and one above, in the sync phase and when Stable."""
    (a,) = await stage.completing(stage.member("A"))
    for settled in (False, True):
        if settled:
            await stage.settle(a)
        for generation in (a.generation - 1, a.generation + 1):
            call = stage.sync(a, generation_id=generation)
            await call
            stage.shows("SYNC-04", call)


@syncing.add("SYNC-05")
async def sync_with_another_protocol(stage: Stage) -> None:
    """A protocol name or type that is not the group's; the answer names none."""
    version = stage.version("SyncGroup", 5)
    (a,) = await stage.completing(stage.member("A"))
    for call in (
        stage.sync(a, version=version, protocol_name="other"),
        stage.sync(a, version=version, protocol_type="other"),
    ):
        await call
        stage.shows("SYNC-05", call, "error", "protocol", "protocol_type")


@syncing.add("SYNC-06")
async def sync_without_a_protocol(stage: Stage) -> None:
    """Null in place of the name or the type, from a stranger and from a member."""
    version = stage.version("SyncGroup", 5)
    call = stage.sync(stage.member("B"), version=version, **(STRANGER | {"protocol_name": None}))
    await call
    stage.shows("SYNC-06", call)
    (a,) = await stage.completing(stage.member("A"))
    for call in (
        stage.sync(a, version=version, protocol_name=None),
        stage.sync(a, version=version, protocol_type=None),
    ):
        await call
        stage.shows("SYNC-06", call)


@syncing.add("SYNC-07")
async def old_sync_needs_no_protocol(stage: Stage) -> None:
    """Up to version 4 there are no such fields."""
    version = stage.version("SyncGroup", 0, 4)
    (a,) = await stage.completing(stage.member("A"))
    call = stage.sync(a, {a.id: b"plan"}, version=version)
    await call
    stage.shows("SYNC-07", call)


@syncing.add("SYNC-08")
async def generation_before_protocol(stage: Stage) -> None:
    """Everything is wrong; the generation is what is told."""
    version = stage.version("SyncGroup", 5)
    (a,) = await stage.completing(stage.member("A"))
    call = stage.sync(a, version=version, generation_id=a.generation + 1, protocol_name="other")
    await call
    stage.shows("SYNC-08", call)


@syncing.add("SYNC-09")
async def sync_in_preparing(stage: Stage) -> None:
    """A member that has yet to hear of the rebalance is told at once."""
    (a,) = await stage.stable(stage.member("A"))
    newcomer = await stage.enter(stage.member("B"))
    begun = await stage.reaches(PREPARING)
    call = stage.sync(a)
    body = await call
    stage.shows("SYNC-09", call, met=begun or body["error_code"] == 27)
    await stage.join(a)
    await newcomer


@syncing.add("SYNC-10", smoke=True)
async def follower_waits_for_the_leader(stage: Stage) -> None:
    """A follower that comes first waits until the leader has come."""
    leader, follower = await stage.completing(stage.member("A"), stage.member("B"))
    call = stage.sync(follower)
    await stage.sleep(3 * stage.step)
    await stage.lead(leader, follower)
    await call
    stage.shows("SYNC-10", call, "error", "time")


@syncing.add("SYNC-11")
async def leader_does_not_wait(stage: Stage) -> None:
    """The leader comes first and is answered; its follower finds a Stable group."""
    leader, follower = await stage.completing(stage.member("A"), stage.member("B"))
    call = stage.lead(leader, follower)
    await call
    stage.shows("SYNC-11", call)
    described = stage.describe()
    await described
    stage.shows("SYNC-11", described, "state")
    late = stage.sync(follower)
    await late
    stage.shows("SYNC-11", late)


@syncing.add("SYNC-18")
async def rebalance_ends_the_wait(stage: Stage) -> None:
    """Both followers that wait are sent away when the leader rejoins with something else to offer."""
    leader, *followers = await stage.completing(*(stage.member(label) for label in "ABC"))
    waiting = [stage.sync(follower) for follower in followers]
    await stage.sleep(2 * stage.step)
    rejoined = stage.join_changed(leader)
    for call in waiting:
        await call
        stage.shows("SYNC-18", call, "error", "assignment")
    for follower in followers:
        stage.join(follower)
    await rejoined


@syncing.add("SYNC-18")
async def departure_ends_the_wait(stage: Stage) -> None:
    """A follower that waits is sent away when the leader leaves."""
    leader, follower = await stage.completing(stage.member("A"), stage.member("B"))
    waiting = stage.sync(follower)
    await stage.sleep(2 * stage.step)
    await stage.leave(leader)
    await waiting
    stage.shows("SYNC-18", waiting, "error", "assignment")


@syncing.add("SYNC-20")
async def previous_generation_after_stable(stage: Stage) -> None:
    """The second generation is Stable; a SyncGroup of the first is late."""
    (a,) = await stage.stable(stage.member("A"))
    before = a.generation
    await stage.regroup(a)
    await stage.settle(a)
    call = stage.sync(a, generation_id=before)
    await call
    stage.shows("SYNC-20", call)


@syncing.add("SYNC-22")
async def errors_carry_no_assignment(stage: Stage) -> None:
    """There is an assignment, and it is not given away with an error."""
    (a,) = await stage.stable(stage.member("A"))
    wrong = stage.sync(a, generation_id=a.generation + 1)
    await wrong
    stage.shows("SYNC-22", wrong, "assignment")
    newcomer = await stage.enter(stage.member("B"))
    await stage.reaches(PREPARING)
    early = stage.sync(a)
    await early
    stage.shows("SYNC-22", early, "assignment")
    await stage.join(a)
    await newcomer


@syncing.add("SYNC-23")
async def rebalance_before_the_leader(stage: Stage) -> None:
    """A follower begins another round before the leader has brought its assignment."""
    leader, follower = await stage.completing(stage.member("A"), stage.member("B"))
    rejoined = stage.join_changed(follower)
    begun = await stage.reaches(PREPARING)
    call = stage.sync(leader)
    body = await call
    stage.shows("SYNC-23", call, met=begun or body["error_code"] == 27)
    await stage.join(leader)
    await rejoined


@syncing.add("SYNC-23")
async def rebalance_races_the_leader(stage: Stage) -> None:
    """A follower begins another round at the moment the leader brings its assignment: who waits is told the same."""
    leader, waiter, changed = await stage.completing(*(stage.member(label) for label in "ABC"))
    waiting = stage.sync(waiter)
    await stage.sleep(2 * stage.step)
    brought = stage.sync(leader, {one.id: b"stale" for one in (leader, waiter, changed)})
    rejoined = stage.join_changed(changed)
    for call in (brought, waiting):
        await call
        stage.shows("SYNC-23", call)
    for member in (leader, waiter):
        stage.join(member)
    await rejoined


@syncing.add("SYNC-24")
async def second_sync_takes_the_place_of_the_first(stage: Stage) -> None:
    """A follower asks twice while it waits; the newer request is answered."""
    leader, follower = await stage.completing(stage.member("A"), stage.member("B"))
    stage.sync(follower)
    await stage.sleep(stage.step)
    again = stage.sync(follower)
    await stage.sleep(2 * stage.step)
    await stage.sync(leader, {leader.id: b"kept", follower.id: b"given"})
    await again
    stage.shows("SYNC-24", again, "error", "assignment", "time")
