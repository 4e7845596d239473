"""Static members (KIP-345): joining, fencing, staying through rounds, leaving."""

from collections.abc import Callable, Iterator
from typing import Any

from fencepost.conformance.scenario.context import Call, Member, Stage
from fencepost.conformance.scenario.scenario import Collection

statics = Collection()


def static(stage: Stage, label: str, *protocols: str, silent: bool = True) -> Member:
    """A static member; unless told otherwise it need not heartbeat."""
    stage.version("JoinGroup", at_least=5)
    instance = label.lower()
    if silent:
        return stage.silent(label, *protocols, instance=instance)
    return stage.member(label, *protocols, instance=instance)


async def replaced(stage: Stage, member: Member, *, version: int | None = None) -> Member:
    """The member that took over from a static member of a stable group."""
    heir = stage.heir(member)
    await stage.join(heir, version=version)
    stage.need(heir.generation >= 0, "the static member was not replaced at once")
    return heir


@statics.add("STATIC-01", smoke=True)
async def static_member_joins_in_one_step(stage: Stage) -> None:
    """It is not sent away to come back with an id."""
    call = stage.join(static(stage, "A"))
    await call
    stage.shows("STATIC-01", call)


# --- fencing -------------------------------------------------------------------------------------------------------


def requests(stage: Stage, member: Member, instance: str | None) -> Iterator[Call]:
    """Every group request that can carry an instance id, with the member's id and this one; the harmless first."""
    claim: dict[str, Any] = {"group_instance_id": instance}
    asked: dict[str, tuple[int, Callable[[], Call]]] = {
        "Heartbeat": (3, lambda: stage.heartbeat(member, **claim)),
        "OffsetCommit": (7, lambda: stage.commit(member, {0: 1}, **claim)),
        "SyncGroup": (3, lambda: stage.sync(member, **claim)),
        "LeaveGroup": (3, lambda: stage.leave({"member_id": member.id, "reason": None, **claim})),
        "JoinGroup": (5, lambda: stage.join(member, **claim)),
    }
    for api, (first, ask) in asked.items():
        if instance is None or stage.version(api) >= first:
            yield ask()


@statics.add("STATIC-03")
async def replaced_id_is_fenced(stage: Stage) -> None:
    """With its instance id it hears of the other owner, without it is a stranger."""
    (old,) = await stage.stable(static(stage, "A"))
    await replaced(stage, old)
    for instance in (old.instance, None):
        for call in requests(stage, old, instance):
            await call
            stage.shows("STATIC-03", call)


@statics.add("STATIC-04")
async def shape_of_a_fenced_join(stage: Stage) -> None:
    """It names the id that was sent, and no generation or leader."""
    (old,) = await stage.stable(static(stage, "A"))
    await replaced(stage, old)
    call = stage.join(old)
    await call
    stage.shows("STATIC-04", call, "error", "member", "generation", "leader")


@statics.add("STATIC-06")
async def instance_id_of_another_member(stage: Stage) -> None:
    """Its owner has another member id."""
    owner, other = static(stage, "A"), stage.silent("B")
    await stage.stable(owner, other)
    for call in requests(stage, other, owner.instance):
        await call
        stage.shows("STATIC-06", call)


@statics.add("STATIC-07")
async def unknown_instance_id(stage: Stage) -> None:
    """Nobody has it, so the member id does not help."""
    stage.version("JoinGroup", at_least=5)
    (a,) = await stage.stable(stage.silent("A"))
    for call in requests(stage, a, "nobody"):
        await call
        stage.shows("STATIC-07", call)


@statics.add("STATIC-27")
async def instance_id_may_be_omitted(stage: Stage) -> None:
    """The member id of a static member is good by itself."""
    (a,) = await stage.stable(static(stage, "A"))
    for call in (stage.heartbeat(a, group_instance_id=None), stage.sync(a, group_instance_id=None)):
        await call
        stage.shows("STATIC-27", call)


@statics.add("STATIC-30")
async def instance_id_needs_its_version(stage: Stage) -> None:
    """Requests of the last version without instance ids are complete without them."""
    before = {"JoinGroup": 4, "SyncGroup": 2, "Heartbeat": 2, "OffsetCommit": 6, "LeaveGroup": 2}
    for api, version in before.items():
        stage.version(api, version, version)
    a = stage.silent("A")
    joined = await stage.enter(a, version=before["JoinGroup"])
    await joined
    synced = stage.sync(a, {a.id: b"plan"}, version=before["SyncGroup"])
    await synced
    beaten = stage.heartbeat(a, version=before["Heartbeat"])
    await beaten
    committed = stage.commit(a, {0: 1}, version=before["OffsetCommit"])
    await committed
    left = stage.leave(a, version=before["LeaveGroup"])
    await left
    for call in (joined, synced, beaten, committed, left):
        stage.shows("STATIC-30", call)


# --- rounds --------------------------------------------------------------------------------------------------------


@statics.add("STATIC-17")
async def static_rejoin(stage: Stage) -> None:
    """With its own ids a static member rejoins as a dynamic one does."""
    leader, follower = await stage.stable(static(stage, "A"), static(stage, "B"))
    unchanged = stage.join(follower)
    await unchanged
    stage.shows("STATIC-17", unchanged)
    stage.join(leader)
    await stage.sleep(stage.step)
    told = stage.heartbeat(follower)
    await told
    stage.shows("STATIC-17", told)


@statics.add("STATIC-18")
async def static_member_survives_the_round(stage: Stage) -> None:
    """It did not come, and the leader is told of it all the same."""
    a, kept = stage.silent("A"), static(stage, "B")
    await stage.stable(a, kept)
    call = stage.join_changed(a)
    await call
    stage.shows("STATIC-18", call, "members")


@statics.add("STATIC-19")
async def absent_static_leader(stage: Stage) -> None:
    """A static leader that did not come is a member still, but the leader no more."""
    _, follower = await stage.stable(static(stage, "A"), static(stage, "B"))
    call = stage.join_changed(follower)
    await call
    stage.shows("STATIC-19", call, "leader")


@statics.add("STATIC-20")
async def nobody_came(stage: Stage) -> None:
    """When the one that began a round has left, the round waits for the static member."""
    a, passing = static(stage, "A"), stage.silent("B")
    await stage.stable(a)
    parked = await stage.enter(passing)
    await stage.sleep(stage.step)
    await stage.leave(passing)
    await parked
    await stage.sleep_past(a.rebalance)
    told = stage.heartbeat(a)
    await told
    stage.shows("STATIC-20", told)
    back = stage.join(a)
    await back
    stage.shows("STATIC-20", back, "generation")


@statics.add("STATIC-21")
async def static_session_expiry(stage: Stage) -> None:
    """Its session ends like any other."""
    (a,) = await stage.stable(static(stage, "A", silent=False))
    await stage.sleep_past(a.session)
    call = stage.heartbeat(a)
    await call
    stage.shows("STATIC-21", call)


@statics.add("STATIC-22")
async def kept_member_that_never_syncs(stage: Stage) -> None:
    """It stayed through the join phase, and is removed when the sync phase has waited for it long enough."""
    a, kept = stage.silent("A"), static(stage, "B")
    a.rebalance = kept.rebalance = stage.rebalance // 2
    await stage.stable(a, kept)
    await stage.join_changed(a)
    await stage.lead(a, kept)
    await stage.sleep(stage.step)
    alive = stage.heartbeat(kept, generation_id=a.generation)
    await alive
    await stage.sleep_past(kept.rebalance)
    for member in (kept, a):
        call = stage.heartbeat(member, generation_id=a.generation)
        await call
        stage.shows("STATIC-22", call, met=alive.error == 0)


# --- leaving -------------------------------------------------------------------------------------------------------


@statics.add("STATIC-23")
async def instance_id_is_free_after_leaving(stage: Stage) -> None:
    """Who comes with it next is a new member, and the next round its first."""
    (a,) = await stage.stable(static(stage, "A"))
    await stage.leave({"member_id": "", "group_instance_id": a.instance, "reason": None}, version=at_least_3(stage))
    call = stage.join(stage.heir(a))
    await call
    stage.shows("STATIC-23", call)


@statics.add("STATIC-23")
async def instance_id_is_free_after_expiry(stage: Stage) -> None:
    """The same when its owner was silent for too long."""
    (a,) = await stage.stable(static(stage, "A", silent=False))
    await stage.sleep_past(a.session)
    call = stage.join(stage.heir(a))
    await call
    stage.shows("STATIC-23", call)


@statics.add("STATIC-29")
async def static_member_leaves(stage: Stage) -> None:
    """It is gone at once, and the other one is told to rejoin."""
    a, leaver = stage.silent("A"), static(stage, "B")
    await stage.stable(a, leaver)
    left = stage.leave(leaver, version=at_least_3(stage))
    await left
    stage.shows("STATIC-29", left)
    told = stage.heartbeat(a)
    await told
    stage.shows("STATIC-29", told)


def at_least_3(stage: Stage) -> int:
    """The version of LeaveGroup: instance ids need the third."""
    return stage.version("LeaveGroup", at_least=3)
