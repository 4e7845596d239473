"""DeleteGroups and OffsetDelete: what may be deleted, and what is left."""

from fencepost.conformance.scenario.context import Call, Member, Stage
from fencepost.conformance.scenario.scenario import Collection
from fencepost.conformance.scenarios.classic.commits import accepted
from fencepost.conformance.scenarios.classic.neighbours import neighbours
from fencepost.conformance.scenarios.classic.partitions import GHOST

deletions = Collection()

ELSEWHERE = "subscribed-elsewhere"
"""A topic to subscribe to that is not the kit's; it need not exist."""


async def deleted(call: Call) -> bool:
    """Every group in a DeleteGroups was deleted."""
    return all(row["error_code"] == 0 for row in (await call)["results"])


@deletions.add("ADMIN-16")
async def delete_an_unknown_group(stage: Stage) -> None:
    """There is nothing to delete."""
    call = stage.delete()
    await call
    stage.shows("ADMIN-16", call)


@deletions.add("ADMIN-17")
async def delete_an_active_group(stage: Stage) -> None:
    """Not in CompletingRebalance, Stable or PreparingRebalance; the members do not notice."""
    a, b = await stage.completing(stage.member("A"), stage.member("B"))
    await refused(stage, b)
    await stage.settle(a, b)
    await refused(stage, b)
    stage.join(a)
    await stage.sleep(stage.step)
    await refused(stage, b)


async def refused(stage: Stage, member: Member) -> None:
    """The deletion is refused, and a member finds everything as it was."""
    call = stage.delete()
    await call
    stage.shows("ADMIN-17", call)
    unharmed = stage.heartbeat(member)
    await unharmed
    stage.shows("ADMIN-17", unharmed)


@deletions.add("ADMIN-18", "ADMIN-20", smoke=True)
async def delete_an_emptied_group(stage: Stage) -> None:
    """It is gone with its offsets, and cannot be deleted again."""
    (a,) = await stage.stable(stage.member("A"))
    stored = await accepted(stage.commit(a, {0: 7}))
    await stage.leave(a)
    call = stage.delete()
    await call
    stage.shows("ADMIN-18", call, met=stored)
    described = stage.describe()
    await described
    stage.shows("ADMIN-18", described, "state", met=stored)
    fetched = stage.fetch()
    await fetched
    stage.shows("ADMIN-18", fetched, "offset", met=stored)
    again = stage.delete()
    await again
    stage.shows("ADMIN-20", again, met=stored)


@deletions.add("ADMIN-19")
async def delete_several_groups(stage: Stage) -> None:
    """One is active, one is not, one does not exist."""
    simple, unknown = await neighbours(stage, 2)
    stored = await accepted(stage.commit(None, {0: 7}, group_id=simple))
    await stage.stable(stage.member("A"))
    call = stage.delete(stage.group, simple, unknown)
    await call
    stage.shows("ADMIN-19", call, met=stored)


@deletions.add("ADMIN-21")
async def delete_a_simple_group(stage: Stage) -> None:
    """A group that never had members."""
    stored = await accepted(stage.commit(None, {0: 7}))
    call = stage.delete()
    await call
    stage.shows("ADMIN-21", call, met=stored)


@deletions.add("ADMIN-22")
async def members_of_a_deleted_group(stage: Stage) -> None:
    """Neither a former member nor an id that was handed out is known any more."""
    (a,) = await stage.stable(stage.member("A"))
    await accepted(stage.commit(a, {0: 7}))
    await stage.leave(a)
    pending = stage.member("P")
    await stage.join(pending)
    gone = await deleted(stage.delete())
    for call in (
        stage.join(a),
        stage.join(pending),
        stage.heartbeat(a),
        stage.sync(a),
        stage.commit(a, {0: 8}),
    ):
        await call
        stage.shows("ADMIN-22", call, "error", met=gone)


@deletions.add("ADMIN-23")
async def delete_offsets_without_a_group(stage: Stage) -> None:
    """The empty id and an unknown group are refused as a whole."""
    for call in (stage.delete_offsets([0], group_id=""), stage.delete_offsets([0])):
        await call
        stage.shows("ADMIN-23", call, "error", "partitions")


@deletions.add("ADMIN-24")
async def delete_offsets_of_another_kind_of_group(stage: Stage) -> None:
    """Nobody knows what the members of such a group subscribe to."""
    (a,) = await stage.stable(stage.member("A", ("plan", b"anything"), protocol_type="connect"))
    await accepted(stage.commit(a, {0: 7}))
    call = stage.delete_offsets([0])
    await call
    stage.shows("ADMIN-24", call, "error")


@deletions.add("ADMIN-25")
async def delete_offsets_of_a_subscribed_topic(stage: Stage) -> None:
    """The topic is in use, so its offset stays."""
    (a,) = await stage.stable(stage.member("A"))
    stored = await accepted(stage.commit(a, {0: 7}))
    call = stage.delete_offsets([0, 1])
    await call
    stage.shows("ADMIN-25", call)
    fetched = stage.fetch()
    await fetched
    stage.shows("ADMIN-25", fetched, "offset", met=stored)


@deletions.add("ADMIN-26")
async def delete_offsets_of_another_topic(stage: Stage) -> None:
    """Members that subscribe to something else are no obstacle."""
    (a,) = await stage.stable(stage.member("A", ("range", stage.metadata("A", ELSEWHERE))))
    stored = await accepted(stage.commit(a, {0: 7, 1: 8}))
    call = stage.delete_offsets([0])
    await call
    stage.shows("ADMIN-26", call)
    fetched = stage.fetch([0, 1])
    await fetched
    stage.shows("ADMIN-26", fetched, "offset", met=stored)


@deletions.add("ADMIN-27")
async def delete_offsets_of_an_emptied_group(stage: Stage) -> None:
    """Who has left subscribes to nothing."""
    (a,) = await stage.stable(stage.member("A"))
    await accepted(stage.commit(a, {0: 7, 1: 8}))
    await stage.leave(a)
    call = stage.delete_offsets([0])
    await call
    stage.shows("ADMIN-27", call)


@deletions.add("ADMIN-28", "ADMIN-29")
async def delete_offsets_that_are_not_there(stage: Stage) -> None:
    """Nothing committed is no error; nothing there is one, for its partition."""
    stored = await accepted(stage.commit(None, {0: 7}))
    nothing = stage.delete_offsets([1])
    await nothing
    stage.shows("ADMIN-28", nothing, met=stored)
    unknown = stage.delete_offsets([(GHOST, 0), 1, 99])
    await unknown
    stage.shows("ADMIN-29", unknown, met=stored)


@deletions.add("ADMIN-29")
async def delete_unknown_offsets_of_an_unknown_group(stage: Stage) -> None:
    """What is wrong with the group comes first."""
    call = stage.delete_offsets([(GHOST, 0)])
    await call
    stage.shows("ADMIN-29", call, "error", "partitions")


@deletions.add("ADMIN-30")
async def delete_offsets_under_an_unreadable_subscription(stage: Stage) -> None:
    """Who cannot be understood may subscribe to anything."""
    (a,) = await stage.stable(stage.member("A", ("range", b"\0")))
    await accepted(stage.commit(a, {0: 7}))
    call = stage.delete_offsets([0])
    await call
    stage.shows("ADMIN-30", call)


@deletions.add("ADMIN-31")
async def subscriptions_add_up(stage: Stage) -> None:
    """Whether the leader or a follower subscribes to a topic, it is in use."""
    a, b = await stage.completing(stage.member("A"), stage.member("B", ("range", stage.metadata("B", ELSEWHERE))))
    first = stage.delete_offsets([0])
    await first
    stage.shows("ADMIN-31", first)
    a.protocols, b.protocols = b.protocols, a.protocols
    rejoin = stage.join(a)
    await stage.sleep(stage.step)
    await stage.join(b)
    await rejoin
    swapped = stage.delete_offsets([0])
    await swapped
    stage.shows("ADMIN-31", swapped, met=a.generation == b.generation)
