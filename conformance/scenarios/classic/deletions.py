"""DeleteGroups and OffsetDelete: what may be deleted, and what is left."""

from fencepost.conformance.scenario.context import Call, Member, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenarios.classic.commits import is_commit_accepted
from fencepost.conformance.scenarios.classic.neighbours import find_neighbours
from fencepost.conformance.scenarios.classic.partitions import ABSENT_TOPIC

deletions = ScenarioFamily()

OTHER_TOPIC = "subscribed-elsewhere"
"""A topic to subscribe to that is not the kit's; it need not exist."""


async def is_deletion_accepted(call: Call) -> bool:
    """Every group in a DeleteGroups was deleted."""
    return all(row["error_code"] == 0 for row in (await call)["results"])


@deletions.add("ADMIN-16")
async def delete_an_unknown_group(context: ScenarioContext) -> None:
    """There is nothing to delete."""
    call = context.delete_groups()
    await call
    context.check("ADMIN-16", call)


@deletions.add("ADMIN-17")
async def delete_an_active_group(context: ScenarioContext) -> None:
    """Not in CompletingRebalance, Stable or PreparingRebalance; the members do not notice."""
    a, b = await context.form_generation(context.member("A"), context.member("B"))
    await check_deletion_refused(context, b)
    await context.sync_all(a, b)
    await check_deletion_refused(context, b)
    context.join(a)
    await context.sleep(context.short_pause)
    await check_deletion_refused(context, b)


async def check_deletion_refused(context: ScenarioContext, member: Member) -> None:
    """The deletion is refused, and a member finds everything as it was."""
    call = context.delete_groups()
    await call
    context.check("ADMIN-17", call)
    unharmed = context.heartbeat(member)
    await unharmed
    context.check("ADMIN-17", unharmed)


@deletions.add("ADMIN-18", "ADMIN-20", smoke=True)
async def delete_an_emptied_group(context: ScenarioContext) -> None:
    """It is gone with its offsets, and cannot be deleted again."""
    (a,) = await context.form_stable_group(context.member("A"))
    stored = await is_commit_accepted(context.commit(a, {0: 7}))
    await context.leave(a)
    call = context.delete_groups()
    await call
    context.check("ADMIN-18", call, reached=stored)
    described = context.describe_groups()
    await described
    context.check("ADMIN-18", described, "state", reached=stored)
    fetched = context.fetch()
    await fetched
    context.check("ADMIN-18", fetched, "offset", reached=stored)
    again = context.delete_groups()
    await again
    context.check("ADMIN-20", again, reached=stored)


@deletions.add("ADMIN-19")
async def delete_several_groups(context: ScenarioContext) -> None:
    """One is active, one is not, one does not exist."""
    simple, unknown = await find_neighbours(context, 2)
    stored = await is_commit_accepted(context.commit(None, {0: 7}, group_id=simple))
    await context.form_stable_group(context.member("A"))
    call = context.delete_groups(context.group, simple, unknown)
    await call
    context.check("ADMIN-19", call, reached=stored)


@deletions.add("ADMIN-21")
async def delete_a_simple_group(context: ScenarioContext) -> None:
    """A group that never had members."""
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    call = context.delete_groups()
    await call
    context.check("ADMIN-21", call, reached=stored)


@deletions.add("ADMIN-22")
async def members_of_a_deleted_group(context: ScenarioContext) -> None:
    """Neither a former member nor an id that was handed out is known any more."""
    (a,) = await context.form_stable_group(context.member("A"))
    await is_commit_accepted(context.commit(a, {0: 7}))
    await context.leave(a)
    pending = context.member("P")
    await context.join(pending)
    gone = await is_deletion_accepted(context.delete_groups())
    for call in (
        context.join(a),
        context.join(pending),
        context.heartbeat(a),
        context.sync(a),
        context.commit(a, {0: 8}),
    ):
        await call
        context.check("ADMIN-22", call, "error", reached=gone)


@deletions.add("ADMIN-23")
async def delete_offsets_without_a_group(context: ScenarioContext) -> None:
    """The empty id and an unknown group are refused as a whole."""
    for call in (context.delete_offsets([0], group_id=""), context.delete_offsets([0])):
        await call
        context.check("ADMIN-23", call, "error", "partitions")


@deletions.add("ADMIN-24")
async def delete_offsets_of_another_kind_of_group(context: ScenarioContext) -> None:
    """Nobody knows what the members of such a group subscribe to."""
    (a,) = await context.form_stable_group(context.member("A", ("plan", b"anything"), protocol_type="connect"))
    await is_commit_accepted(context.commit(a, {0: 7}))
    call = context.delete_offsets([0])
    await call
    context.check("ADMIN-24", call, "error")


@deletions.add("ADMIN-25")
async def delete_offsets_of_a_subscribed_topic(context: ScenarioContext) -> None:
    """The topic is in use, so its offset stays."""
    (a,) = await context.form_stable_group(context.member("A"))
    stored = await is_commit_accepted(context.commit(a, {0: 7}))
    call = context.delete_offsets([0, 1])
    await call
    context.check("ADMIN-25", call)
    fetched = context.fetch()
    await fetched
    context.check("ADMIN-25", fetched, "offset", reached=stored)


@deletions.add("ADMIN-26")
async def delete_offsets_of_another_topic(context: ScenarioContext) -> None:
    """Members that subscribe to something else are no obstacle."""
    (a,) = await context.form_stable_group(context.member("A", ("range", context.metadata("A", OTHER_TOPIC))))
    stored = await is_commit_accepted(context.commit(a, {0: 7, 1: 8}))
    call = context.delete_offsets([0])
    await call
    context.check("ADMIN-26", call)
    fetched = context.fetch([0, 1])
    await fetched
    context.check("ADMIN-26", fetched, "offset", reached=stored)


@deletions.add("ADMIN-27")
async def delete_offsets_of_an_emptied_group(context: ScenarioContext) -> None:
    """Who has left subscribes to nothing."""
    (a,) = await context.form_stable_group(context.member("A"))
    await is_commit_accepted(context.commit(a, {0: 7, 1: 8}))
    await context.leave(a)
    call = context.delete_offsets([0])
    await call
    context.check("ADMIN-27", call)


@deletions.add("ADMIN-28", "ADMIN-29")
async def delete_offsets_that_are_not_there(context: ScenarioContext) -> None:
    """Nothing committed is no error; nothing there is one, for its partition."""
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    nothing = context.delete_offsets([1])
    await nothing
    context.check("ADMIN-28", nothing, reached=stored)
    unknown = context.delete_offsets([(ABSENT_TOPIC, 0), 1, 99])
    await unknown
    context.check("ADMIN-29", unknown, reached=stored)


@deletions.add("ADMIN-29")
async def delete_unknown_offsets_of_an_unknown_group(context: ScenarioContext) -> None:
    """What is wrong with the group comes first."""
    call = context.delete_offsets([(ABSENT_TOPIC, 0)])
    await call
    context.check("ADMIN-29", call, "error", "partitions")


@deletions.add("ADMIN-30")
async def delete_offsets_under_an_unreadable_subscription(context: ScenarioContext) -> None:
    """Who cannot be understood may subscribe to anything."""
    (a,) = await context.form_stable_group(context.member("A", ("range", b"\0")))
    await is_commit_accepted(context.commit(a, {0: 7}))
    call = context.delete_offsets([0])
    await call
    context.check("ADMIN-30", call)


@deletions.add("ADMIN-31")
async def subscriptions_add_up(context: ScenarioContext) -> None:
    """Whether the leader or a follower subscribes to a topic, it is in use."""
    a, b = await context.form_generation(
        context.member("A"), context.member("B", ("range", context.metadata("B", OTHER_TOPIC)))
    )
    first = context.delete_offsets([0])
    await first
    context.check("ADMIN-31", first)
    a.protocols, b.protocols = b.protocols, a.protocols
    rejoin = context.join(a)
    await context.sleep(context.short_pause)
    await context.join(b)
    await rejoin
    swapped = context.delete_offsets([0])
    await swapped
    context.check("ADMIN-31", swapped, reached=a.generation == b.generation)
