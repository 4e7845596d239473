"""Static members (KIP-345): how they join, are fenced, are replaced, stay through rebalances, and leave."""

from collections.abc import Callable, Iterator
from typing import Any

from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import RANGE, Call, Member

statics = ScenarioFamily()


def static_member(group: ScenarioContext, label: str, *protocols: str) -> Member:
    """A new static member."""
    group.highest_version("JoinGroup", at_least=5)
    return group.member(label, *protocols, instance=label.lower())


def expiring_static_member(group: ScenarioContext, label: str) -> Member:
    """A new static member with a short session."""
    group.highest_version("JoinGroup", at_least=5)
    return group.expiring_member(label, instance=label.lower())


async def replace_static_member(group: ScenarioContext, member: Member, *, version: int | None = None) -> Member:
    """Replace a static member of a Stable group; returns the replacement."""
    replacement = group.replacement_of(member)
    await group.join(replacement, version=version)
    group.require(replacement.generation >= 0, "the static member was not replaced at once")
    return replacement


@statics.add("STATIC-01", smoke=True)
async def static_member_joins_in_one_step(group: ScenarioContext) -> None:
    """A static member joins without a member id."""
    await group.check("STATIC-01", group.join(static_member(group, "A")))


# --- fencing -------------------------------------------------------------------------------------------------------


def requests_with_instance(group: ScenarioContext, member: Member, instance: str | None) -> Iterator[tuple[Call, int]]:
    """Send each request that can carry an instance id, with the id of the member; harmless ones come first.

    Each comes with the first version that carries what is asked.
    """
    claim: dict[str, Any] = {"group_instance_id": instance}
    asked: dict[str, tuple[int, Callable[[], Call]]] = {
        "Heartbeat": (3, lambda: group.heartbeat(member, **claim)),
        "OffsetCommit": (7, lambda: group.commit(member, {0: 1}, **claim)),
        "SyncGroup": (3, lambda: group.sync(member, **claim)),
        "LeaveGroup": (3, lambda: group.leave({"member_id": member.id, "reason": None, **claim})),
        "JoinGroup": (5, lambda: group.join(member, **claim)),
    }
    for api, (first, ask) in asked.items():
        if instance is None or group.highest_version(api) >= first:
            yield ask(), 0 if instance is None else first


@statics.add("STATIC-03")
async def replaced_id_is_fenced(group: ScenarioContext) -> None:
    """A replaced member gets FENCED_INSTANCE_ID with its instance id, and UNKNOWN_MEMBER_ID without."""
    (old,) = await group.form_stable_group(static_member(group, "A"))
    await replace_static_member(group, old)
    for instance in (old.instance, None):
        for call, since in requests_with_instance(group, old, instance):
            await group.check_versions("STATIC-03", call, since=since)


@statics.add("STATIC-04")
async def shape_of_a_fenced_join(group: ScenarioContext) -> None:
    """A fenced JoinGroup echoes the member id, and carries no generation and no leader."""
    (old,) = await group.form_stable_group(static_member(group, "A"))
    await replace_static_member(group, old)
    await group.check_versions(
        "STATIC-04", group.join(old), fields=("error", "member", "generation", "leader"), since=5
    )


@statics.add("STATIC-06")
async def instance_id_of_another_member(group: ScenarioContext) -> None:
    """A member with the instance id of another is fenced."""
    owner, other = static_member(group, "A"), group.member("B")
    await group.form_stable_group(owner, other)
    for call, since in requests_with_instance(group, other, owner.instance):
        await group.check_versions("STATIC-06", call, since=since)


@statics.add("STATIC-07")
async def unknown_instance_id(group: ScenarioContext) -> None:
    """An unknown instance id is refused, even with a known member id."""
    group.highest_version("JoinGroup", at_least=5)
    (a,) = await group.form_stable_group(group.member("A"))
    for call, since in requests_with_instance(group, a, "nobody"):
        await group.check_versions("STATIC-07", call, since=since)


@statics.add("STATIC-27")
async def instance_id_may_be_omitted(group: ScenarioContext) -> None:
    """The member id of a static member is sufficient without its instance id."""
    (a,) = await group.form_stable_group(static_member(group, "A"))
    for call in (group.heartbeat(a, group_instance_id=None), group.sync(a, group_instance_id=None)):
        await group.check_versions("STATIC-27", call)


@statics.add("STATIC-30")
async def instance_id_needs_its_version(group: ScenarioContext) -> None:
    """The last version of each request without instance ids works without them."""
    before = {"JoinGroup": 4, "SyncGroup": 2, "Heartbeat": 2, "OffsetCommit": 6, "LeaveGroup": 2}
    for api, version in before.items():
        group.highest_version(api, version, version)
    a = group.member("A")
    joined = await group.join_new(a, version=before["JoinGroup"])
    await joined
    synced = group.sync(a, {a.id: b"plan"}, version=before["SyncGroup"])
    await synced
    beaten = group.heartbeat(a, version=before["Heartbeat"])
    await beaten
    committed = group.commit(a, {0: 1}, version=before["OffsetCommit"])
    await committed
    left = group.leave(a, version=before["LeaveGroup"])
    await left

    for call in (joined, synced, beaten, committed, left):
        await group.check("STATIC-30", call)


# --- rounds --------------------------------------------------------------------------------------------------------


@statics.add("STATIC-17")
async def static_rejoin(group: ScenarioContext) -> None:
    """With its own ids, a static member rejoins as a dynamic one does."""
    leader, follower = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))

    parked = group.join_with_new_metadata(follower)
    await group.sleep(group.short_pause)
    led = group.join(leader)
    for call in (parked, led):
        await group.check("STATIC-17", call)
    await group.check("STATIC-17", group.heartbeat(follower))


@statics.add("STATIC-18")
async def static_member_survives_the_round(group: ScenarioContext) -> None:
    """A static member that does not rejoin stays, and is listed for the leader."""
    a, kept = group.member("A"), static_member(group, "B")
    await group.form_stable_group(a, kept)
    await group.check("STATIC-18", group.join_with_new_metadata(a), fields="members")


@statics.add("STATIC-19")
async def absent_static_leader(group: ScenarioContext) -> None:
    """A static leader that does not rejoin stays a member, but leads no longer."""
    _, follower = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))
    await group.check("STATIC-19", group.join_with_new_metadata(follower), fields="leader")


@statics.add("STATIC-20")
async def nobody_came(group: ScenarioContext) -> None:
    """A join phase whose only rejoined member has left waits for the static member."""
    a, newcomer = static_member(group, "A"), group.member("B")
    await group.form_stable_group(a)

    parked = await group.join_new(newcomer)
    await group.sleep(group.short_pause)
    await group.leave(newcomer)
    await parked
    await group.sleep_past(a.rebalance_timeout)

    await group.check("STATIC-20", group.heartbeat(a))
    await group.check("STATIC-20", group.join(a), fields="generation")


@statics.add("STATIC-21")
async def static_session_expiry(group: ScenarioContext) -> None:
    """The session of a static member expires like any other."""
    await group.keep_when_empty()
    (a,) = await group.form_stable_group(expiring_static_member(group, "A"))
    await group.sleep_past(a.session_timeout)
    await group.check("STATIC-21", group.heartbeat(a))


@statics.add("STATIC-22")
async def kept_member_that_never_syncs(group: ScenarioContext) -> None:
    """A static member that stayed through the join phase is removed at the end of the sync phase."""
    a, kept = group.member("A"), static_member(group, "B")
    a.rebalance_timeout = kept.rebalance_timeout = group.rebalance_timeout // 2
    await group.form_stable_group(a, kept)

    await group.join_with_new_metadata(a)
    await group.sync_leader(a, kept)
    await group.sleep(group.short_pause)
    alive = group.heartbeat(kept, generation_id=a.generation)
    await alive
    await group.sleep_past(kept.rebalance_timeout)

    for member in (kept, a):
        await group.check("STATIC-22", group.heartbeat(member, generation_id=a.generation), reached=alive.error == 0)


# --- leaving -------------------------------------------------------------------------------------------------------


@statics.add("STATIC-23")
async def instance_id_is_free_after_leaving(group: ScenarioContext) -> None:
    """After its owner has left, an instance id belongs to a new member, which begins a join phase."""
    (a,) = await group.form_stable_group(static_member(group, "A"))
    await group.leave({"member_id": "", "group_instance_id": a.instance, "reason": None}, version=leave_version(group))
    await group.check("STATIC-23", await group.join_new(group.replacement_of(a)))


@statics.add("STATIC-23")
async def instance_id_is_free_after_expiry(group: ScenarioContext) -> None:
    """After its owner has expired, an instance id belongs to a new member."""
    (a,) = await group.form_stable_group(expiring_static_member(group, "A"))
    await group.sleep_past(a.session_timeout)
    await group.check("STATIC-23", await group.join_new(group.replacement_of(a)))


@statics.add("STATIC-29")
async def static_member_leaves(group: ScenarioContext) -> None:
    """A static member that leaves is removed at once, and the other has to rejoin."""
    a, leaver = group.member("A"), static_member(group, "B")
    await group.form_stable_group(a, leaver)

    await group.check("STATIC-29", group.leave(leaver, version=leave_version(group)))
    await group.check("STATIC-29", group.heartbeat(a))


def leave_version(group: ScenarioContext) -> int:
    """The highest version of LeaveGroup, which has instance ids from version 3 on."""
    return group.highest_version("LeaveGroup", at_least=3)


# --- Replacement of a static member: a JoinGroup with its instance id and without a member id (KIP-345, KIP-814).

OTHER_PROTOCOL = "roundrobin"


@statics.add("STATIC-02", smoke=True)
async def replacement_has_a_new_id(group: ScenarioContext) -> None:
    """A replacement gets a new member id, and the old id is unknown."""
    (old,) = await group.form_stable_group(static_member(group, "A"))
    await group.check("STATIC-02", group.join(group.replacement_of(old)), fields=("error", "member"))
    await group.check("STATIC-02", group.heartbeat(old, group_instance_id=None))


@statics.add("STATIC-05")
async def parked_join_of_the_old_owner(group: ScenarioContext) -> None:
    """The parked JoinGroup of the predecessor gets a response when it is replaced."""
    a, old = group.member("A"), static_member(group, "B")
    await group.form_stable_group(a, old)

    parked = group.join_with_new_metadata(old)
    await group.sleep(group.short_pause)
    group.join(group.replacement_of(old))

    await group.check("STATIC-05", parked)


@statics.add("STATIC-05")
async def parked_sync_of_the_old_owner(group: ScenarioContext) -> None:
    """The parked SyncGroup of the predecessor gets a response when it is replaced."""
    _, old = await group.form_generation(static_member(group, "A"), static_member(group, "B"))

    parked = group.sync(old)
    await group.sleep(group.short_pause)
    group.join(group.replacement_of(old))

    await group.check("STATIC-05", parked)


# --- in Stable -----------------------------------------------------------------------------------------------------


@statics.add("STATIC-08", smoke=True)
async def replacement_without_a_rebalance(group: ScenarioContext) -> None:
    """In Stable, the generation stays, and other members are not affected."""
    a, old = group.member("A"), static_member(group, "B")
    await group.form_stable_group(a, old)

    await group.check("STATIC-08", group.join(group.replacement_of(old)), fields=("error", "generation", "time"))
    await group.check("STATIC-08", group.heartbeat(a))


@statics.add("STATIC-09")
async def assignment_is_inherited(group: ScenarioContext) -> None:
    """The replacement receives the assignment of its predecessor."""
    a, old = group.member("A"), static_member(group, "B")
    await group.form_stable_group(a, old)
    await group.check("STATIC-09", group.sync(await replace_static_member(group, old)), fields=("error", "assignment"))


@statics.add("STATIC-10")
async def leader_replaced_that_can_skip(group: ScenarioContext) -> None:
    """From version 9 on, the replacement of the leader leads, lists all members and need not assign again."""
    version = group.highest_version("JoinGroup", at_least=9)
    leader, _ = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))
    await group.check(
        "STATIC-10",
        group.join(group.replacement_of(leader), version=version),
        fields=("leader", "members", "skip_assignment"),
    )


@statics.add("STATIC-11")
async def leader_replaced_that_cannot_skip(group: ScenarioContext) -> None:
    """Before version 9, the replacement of the leader gets the old id as leader, and so acts as a follower."""
    version = group.highest_version("JoinGroup", at_least=5, at_most=8)
    leader, _ = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))
    await group.check(
        "STATIC-11", group.join(group.replacement_of(leader), version=version), fields=("leader", "members")
    )


@statics.add("STATIC-12")
async def follower_replaced(group: ScenarioContext) -> None:
    """The replacement of a follower gets the leader, and no members."""
    _, follower = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))
    await group.check(
        "STATIC-12", group.join(group.replacement_of(follower)), fields=("leader", "members", "skip_assignment")
    )


@statics.add("STATIC-13")
async def new_subscription_on_replacement(group: ScenarioContext) -> None:
    """Other metadata of a replacement begin no join phase, and the next one lists them."""
    leader, follower = await group.form_stable_group(static_member(group, "A"), static_member(group, "B"))

    replacement = group.replacement_of(follower)
    replaced = group.join_with_new_metadata(replacement)
    await group.check("STATIC-13", replaced, fields=("error", "generation", "time"))
    await group.check("STATIC-13", group.heartbeat(leader))
    led = group.join(leader)
    await group.sleep(group.short_pause)
    await group.join(replacement)
    await group.check("STATIC-13", led, fields="members", reached=replaced.error == 0)


@statics.add("STATIC-14")
async def replacement_changes_the_protocol(group: ScenarioContext) -> None:
    """A replacement that does not support the selected protocol begins a join phase."""
    a, old = (
        group.member("A", RANGE, OTHER_PROTOCOL),
        static_member(group, "B", RANGE, OTHER_PROTOCOL),
    )
    await group.form_stable_group(a, old)

    replacement = group.replacement_of(old)
    replacement.protocols = old.protocols[1:]
    parked = group.join(replacement)
    await group.sleep(group.short_pause)

    await group.check("STATIC-14", group.heartbeat(a))
    await group.join(a)
    await group.check("STATIC-14", parked)


@statics.add("STATIC-24")
async def replacement_ids_are_fresh(group: ScenarioContext) -> None:
    """None of five replacements gets an id that was in use before."""
    (member,) = await group.form_stable_group(static_member(group, "A"))
    for _ in range(5):
        replacement = group.replacement_of(member)
        await group.check("STATIC-24", group.join(replacement), fields=("error", "member"))
        member = replacement


@statics.add("STATIC-25")
async def one_owner_per_instance_id(group: ScenarioContext) -> None:
    """A replacement does not change the number of members, nor their instance ids."""
    a, old = static_member(group, "A"), static_member(group, "B")
    await group.form_stable_group(a, old)

    await replace_static_member(group, old)
    await group.check(
        "STATIC-25",
        group.describe_groups(version=group.highest_version("DescribeGroups", at_least=4, at_most=5)),
        fields=("members", "instances"),
    )


@statics.add("STATIC-26", needs=("size-limit",))
async def restart_in_a_full_group(group: ScenarioContext) -> None:
    """In a full group, a replacement is refused like a newcomer, or accepted."""
    others = [group.member(f"M{number}") for number in range(1, group.settings.max_group_size)]
    old = static_member(group, "A")
    await group.form_stable_group(old, *others)

    await group.check("STATIC-26", group.join(group.replacement_of(old)))


# --- during a round ------------------------------------------------------------------------------------------------


@statics.add("STATIC-15")
async def replacement_in_completing(group: ScenarioContext) -> None:
    """A replacement in CompletingRebalance begins another join phase, as the leader knows the old id only."""
    leader, follower = await group.form_generation(static_member(group, "A"), static_member(group, "B"))

    parked = group.sync(follower)
    await group.sleep(group.short_pause)
    group.join(group.replacement_of(leader))

    await group.check("STATIC-15", parked)
    await group.check("STATIC-15", group.heartbeat(follower))


@statics.add("STATIC-16")
async def replacement_in_preparing(group: ScenarioContext) -> None:
    """A replacement of the last absent member completes the join phase at once."""
    a, old = group.member("A"), static_member(group, "B")
    a.rebalance_timeout = group.long_session_timeout
    await group.form_stable_group(a, old)

    parked = group.join_with_new_metadata(a)
    await group.sleep(group.short_pause)
    replaced = group.join(group.replacement_of(old))

    for call in (replaced, parked):
        await group.check("STATIC-16", call, fields=("error", "time"))


@statics.add("STATIC-25")
async def one_owner_during_a_round(group: ScenarioContext) -> None:
    """The replacement of a member whose JoinGroup is parked leaves one owner of the instance id."""
    a, old = group.member("A"), static_member(group, "B")
    await group.form_stable_group(a, old)

    group.join_with_new_metadata(old)
    await group.sleep(group.short_pause)
    replaced = group.join(group.replacement_of(old))
    await group.sleep(group.short_pause)

    await group.check(
        "STATIC-25",
        group.describe_groups(version=group.highest_version("DescribeGroups", at_least=4, at_most=5)),
        fields=("members", "instances"),
    )
    group.join(a)
    await replaced
