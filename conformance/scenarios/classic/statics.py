"""Static members (KIP-345): joining, fencing, staying through rounds, leaving."""

from collections.abc import Callable, Iterator
from typing import Any

from fencepost.conformance.scenario.context import Call, Member, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

statics = ScenarioFamily()


def static_member(context: ScenarioContext, label: str, *protocols: str, silent: bool = True) -> Member:
    """A static member; unless told otherwise it need not heartbeat."""
    context.highest_version("JoinGroup", at_least=5)
    instance = label.lower()
    if silent:
        return context.member_without_heartbeats(label, *protocols, instance=instance)
    return context.member(label, *protocols, instance=instance)


async def replace_static_member(context: ScenarioContext, member: Member, *, version: int | None = None) -> Member:
    """The member that took over from a static member of a stable group."""
    heir = context.replacement_of(member)
    await context.join(heir, version=version)
    context.require(heir.generation >= 0, "the static member was not replaced at once")
    return heir


@statics.add("STATIC-01", smoke=True)
async def static_member_joins_in_one_step(context: ScenarioContext) -> None:
    """It is not sent away to come back with an id."""
    call = context.join(static_member(context, "A"))
    await call
    context.check("STATIC-01", call)


# --- fencing -------------------------------------------------------------------------------------------------------


def requests_with_instance(context: ScenarioContext, member: Member, instance: str | None) -> Iterator[Call]:
    """Every group request that can carry an instance id, with the member's id and this one; the harmless first."""
    claim: dict[str, Any] = {"group_instance_id": instance}
    asked: dict[str, tuple[int, Callable[[], Call]]] = {
        "Heartbeat": (3, lambda: context.heartbeat(member, **claim)),
        "OffsetCommit": (7, lambda: context.commit(member, {0: 1}, **claim)),
        "SyncGroup": (3, lambda: context.sync(member, **claim)),
        "LeaveGroup": (3, lambda: context.leave({"member_id": member.id, "reason": None, **claim})),
        "JoinGroup": (5, lambda: context.join(member, **claim)),
    }
    for api, (first, ask) in asked.items():
        if instance is None or context.highest_version(api) >= first:
            yield ask()


@statics.add("STATIC-03")
async def replaced_id_is_fenced(context: ScenarioContext) -> None:
    """With its instance id it hears of the other owner, without it is a stranger."""
    (old,) = await context.form_stable_group(static_member(context, "A"))
    await replace_static_member(context, old)
    for instance in (old.instance, None):
        for call in requests_with_instance(context, old, instance):
            await call
            context.check("STATIC-03", call)


@statics.add("STATIC-04")
async def shape_of_a_fenced_join(context: ScenarioContext) -> None:
    """It names the id that was sent, and no generation or leader."""
    (old,) = await context.form_stable_group(static_member(context, "A"))
    await replace_static_member(context, old)
    call = context.join(old)
    await call
    context.check("STATIC-04", call, "error", "member", "generation", "leader")


@statics.add("STATIC-06")
async def instance_id_of_another_member(context: ScenarioContext) -> None:
    """Its owner has another member id."""
    owner, other = static_member(context, "A"), context.member_without_heartbeats("B")
    await context.form_stable_group(owner, other)
    for call in requests_with_instance(context, other, owner.instance):
        await call
        context.check("STATIC-06", call)


@statics.add("STATIC-07")
async def unknown_instance_id(context: ScenarioContext) -> None:
    """Nobody has it, so the member id does not help."""
    context.highest_version("JoinGroup", at_least=5)
    (a,) = await context.form_stable_group(context.member_without_heartbeats("A"))
    for call in requests_with_instance(context, a, "nobody"):
        await call
        context.check("STATIC-07", call)


@statics.add("STATIC-27")
async def instance_id_may_be_omitted(context: ScenarioContext) -> None:
    """The member id of a static member is good by itself."""
    (a,) = await context.form_stable_group(static_member(context, "A"))
    for call in (context.heartbeat(a, group_instance_id=None), context.sync(a, group_instance_id=None)):
        await call
        context.check("STATIC-27", call)


@statics.add("STATIC-30")
async def instance_id_needs_its_version(context: ScenarioContext) -> None:
    """Requests of the last version without instance ids are complete without them."""
    before = {"JoinGroup": 4, "SyncGroup": 2, "Heartbeat": 2, "OffsetCommit": 6, "LeaveGroup": 2}
    for api, version in before.items():
        context.highest_version(api, version, version)
    a = context.member_without_heartbeats("A")
    joined = await context.join_new(a, version=before["JoinGroup"])
    await joined
    synced = context.sync(a, {a.id: b"plan"}, version=before["SyncGroup"])
    await synced
    beaten = context.heartbeat(a, version=before["Heartbeat"])
    await beaten
    committed = context.commit(a, {0: 1}, version=before["OffsetCommit"])
    await committed
    left = context.leave(a, version=before["LeaveGroup"])
    await left
    for call in (joined, synced, beaten, committed, left):
        context.check("STATIC-30", call)


# --- rounds --------------------------------------------------------------------------------------------------------


@statics.add("STATIC-17")
async def static_rejoin(context: ScenarioContext) -> None:
    """With its own ids a static member rejoins as a dynamic one does."""
    leader, follower = await context.form_stable_group(static_member(context, "A"), static_member(context, "B"))
    unchanged = context.join(follower)
    await unchanged
    context.check("STATIC-17", unchanged)
    context.join(leader)
    await context.sleep(context.short_pause)
    told = context.heartbeat(follower)
    await told
    context.check("STATIC-17", told)


@statics.add("STATIC-18")
async def static_member_survives_the_round(context: ScenarioContext) -> None:
    """It did not come, and the leader is told of it all the same."""
    a, kept = context.member_without_heartbeats("A"), static_member(context, "B")
    await context.form_stable_group(a, kept)
    call = context.join_with_new_metadata(a)
    await call
    context.check("STATIC-18", call, "members")


@statics.add("STATIC-19")
async def absent_static_leader(context: ScenarioContext) -> None:
    """A static leader that did not come is a member still, but the leader no more."""
    _, follower = await context.form_stable_group(static_member(context, "A"), static_member(context, "B"))
    call = context.join_with_new_metadata(follower)
    await call
    context.check("STATIC-19", call, "leader")


@statics.add("STATIC-20")
async def nobody_came(context: ScenarioContext) -> None:
    """When the one that began a round has left, the round waits for the static member."""
    a, passing = static_member(context, "A"), context.member_without_heartbeats("B")
    await context.form_stable_group(a)
    parked = await context.join_new(passing)
    await context.sleep(context.short_pause)
    await context.leave(passing)
    await parked
    await context.sleep_past(a.rebalance_timeout)
    told = context.heartbeat(a)
    await told
    context.check("STATIC-20", told)
    back = context.join(a)
    await back
    context.check("STATIC-20", back, "generation")


@statics.add("STATIC-21")
async def static_session_expiry(context: ScenarioContext) -> None:
    """Its session ends like any other."""
    (a,) = await context.form_stable_group(static_member(context, "A", silent=False))
    await context.sleep_past(a.session_timeout)
    call = context.heartbeat(a)
    await call
    context.check("STATIC-21", call)


@statics.add("STATIC-22")
async def kept_member_that_never_syncs(context: ScenarioContext) -> None:
    """It stayed through the join phase, and is removed when the sync phase has waited for it long enough."""
    a, kept = context.member_without_heartbeats("A"), static_member(context, "B")
    a.rebalance_timeout = kept.rebalance_timeout = context.rebalance_timeout // 2
    await context.form_stable_group(a, kept)
    await context.join_with_new_metadata(a)
    await context.sync_leader(a, kept)
    await context.sleep(context.short_pause)
    alive = context.heartbeat(kept, generation_id=a.generation)
    await alive
    await context.sleep_past(kept.rebalance_timeout)
    for member in (kept, a):
        call = context.heartbeat(member, generation_id=a.generation)
        await call
        context.check("STATIC-22", call, reached=alive.error == 0)


# --- leaving -------------------------------------------------------------------------------------------------------


@statics.add("STATIC-23")
async def instance_id_is_free_after_leaving(context: ScenarioContext) -> None:
    """Who comes with it next is a new member, and the next round its first."""
    (a,) = await context.form_stable_group(static_member(context, "A"))
    await context.leave(
        {"member_id": "", "group_instance_id": a.instance, "reason": None}, version=leave_version(context)
    )
    call = context.join(context.replacement_of(a))
    await call
    context.check("STATIC-23", call)


@statics.add("STATIC-23")
async def instance_id_is_free_after_expiry(context: ScenarioContext) -> None:
    """The same when its owner was silent for too long."""
    (a,) = await context.form_stable_group(static_member(context, "A", silent=False))
    await context.sleep_past(a.session_timeout)
    call = context.join(context.replacement_of(a))
    await call
    context.check("STATIC-23", call)


@statics.add("STATIC-29")
async def static_member_leaves(context: ScenarioContext) -> None:
    """It is gone at once, and the other one is told to rejoin."""
    a, leaver = context.member_without_heartbeats("A"), static_member(context, "B")
    await context.form_stable_group(a, leaver)
    left = context.leave(leaver, version=leave_version(context))
    await left
    context.check("STATIC-29", left)
    told = context.heartbeat(a)
    await told
    context.check("STATIC-29", told)


def leave_version(context: ScenarioContext) -> int:
    """The version of LeaveGroup: instance ids need the third."""
    return context.highest_version("LeaveGroup", at_least=3)
