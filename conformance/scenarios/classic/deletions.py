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
async def delete_an_unknown_group(group: ScenarioContext) -> None:
    """There is nothing to delete."""
    await group.check("ADMIN-16", group.delete_groups())


@deletions.add("ADMIN-17")
async def delete_an_active_group(group: ScenarioContext) -> None:
    """Not in CompletingRebalance, Stable or PreparingRebalance; the members do not notice."""
    a, b = await group.form_generation(group.member("A"), group.member("B"))
    await check_deletion_refused(group, b)
    await group.sync_all(a, b)
    await check_deletion_refused(group, b)
    group.join(a)
    await group.sleep(group.short_pause)
    await check_deletion_refused(group, b)


async def check_deletion_refused(group: ScenarioContext, member: Member) -> None:
    """The deletion is refused, and a member finds everything as it was."""
    await group.check("ADMIN-17", group.delete_groups())
    await group.check("ADMIN-17", group.heartbeat(member))


@deletions.add("ADMIN-18", "ADMIN-20", smoke=True)
async def delete_an_emptied_group(group: ScenarioContext) -> None:
    """It is gone with its offsets, and cannot be deleted again."""
    (a,) = await group.form_stable_group(group.member("A"))
    stored = await is_commit_accepted(group.commit(a, {0: 7}))
    await group.leave(a)
    await group.check("ADMIN-18", group.delete_groups(), reached=stored)
    await group.check("ADMIN-18", group.describe_groups(), fields="state", reached=stored)
    await group.check("ADMIN-18", group.fetch(), fields="offset", reached=stored)
    await group.check("ADMIN-20", group.delete_groups(), reached=stored)


@deletions.add("ADMIN-19")
async def delete_several_groups(group: ScenarioContext) -> None:
    """One is active, one is not, one does not exist."""
    simple, unknown = await find_neighbours(group, 2)
    stored = await is_commit_accepted(group.commit(None, {0: 7}, group_id=simple))
    await group.form_stable_group(group.member("A"))
    await group.check("ADMIN-19", group.delete_groups(group.group_id, simple, unknown), reached=stored)


@deletions.add("ADMIN-21")
async def delete_a_simple_group(group: ScenarioContext) -> None:
    """A group that never had members."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check("ADMIN-21", group.delete_groups(), reached=stored)


@deletions.add("ADMIN-22")
async def members_of_a_deleted_group(group: ScenarioContext) -> None:
    """Neither a former member nor an id that was handed out is known any more."""
    (a,) = await group.form_stable_group(group.member("A"))
    await is_commit_accepted(group.commit(a, {0: 7}))
    await group.leave(a)
    pending = group.member("P")
    await group.join(pending)
    gone = await is_deletion_accepted(group.delete_groups())
    for call in (
        group.join(a),
        group.join(pending),
        group.heartbeat(a),
        group.sync(a),
        group.commit(a, {0: 8}),
    ):
        await group.check("ADMIN-22", call, fields="error", reached=gone)


@deletions.add("ADMIN-23")
async def delete_offsets_without_a_group(group: ScenarioContext) -> None:
    """The empty id and an unknown group are refused as a whole."""
    for call in (group.delete_offsets([0], group_id=""), group.delete_offsets([0])):
        await group.check("ADMIN-23", call, fields=("error", "partitions"))


@deletions.add("ADMIN-24")
async def delete_offsets_of_another_kind_of_group(group: ScenarioContext) -> None:
    """Nobody knows what the members of such a group subscribe to."""
    (a,) = await group.form_stable_group(group.member("A", ("plan", b"anything"), protocol_type="connect"))
    await is_commit_accepted(group.commit(a, {0: 7}))
    await group.check("ADMIN-24", group.delete_offsets([0]), fields="error")


@deletions.add("ADMIN-25")
async def delete_offsets_of_a_subscribed_topic(group: ScenarioContext) -> None:
    """The topic is in use, so its offset stays."""
    (a,) = await group.form_stable_group(group.member("A"))
    stored = await is_commit_accepted(group.commit(a, {0: 7}))
    await group.check("ADMIN-25", group.delete_offsets([0, 1]))
    await group.check("ADMIN-25", group.fetch(), fields="offset", reached=stored)


@deletions.add("ADMIN-26")
async def delete_offsets_of_another_topic(group: ScenarioContext) -> None:
    """Members that subscribe to something else are no obstacle."""
    (a,) = await group.form_stable_group(group.member("A", ("range", group.metadata("A", OTHER_TOPIC))))
    stored = await is_commit_accepted(group.commit(a, {0: 7, 1: 8}))
    await group.check("ADMIN-26", group.delete_offsets([0]))
    await group.check("ADMIN-26", group.fetch([0, 1]), fields="offset", reached=stored)


@deletions.add("ADMIN-27")
async def delete_offsets_of_an_emptied_group(group: ScenarioContext) -> None:
    """Who has left subscribes to nothing."""
    (a,) = await group.form_stable_group(group.member("A"))
    await is_commit_accepted(group.commit(a, {0: 7, 1: 8}))
    await group.leave(a)
    await group.check("ADMIN-27", group.delete_offsets([0]))


@deletions.add("ADMIN-28", "ADMIN-29")
async def delete_offsets_that_are_not_there(group: ScenarioContext) -> None:
    """Nothing committed is no error; nothing there is one, for its partition."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check("ADMIN-28", group.delete_offsets([1]), reached=stored)
    await group.check("ADMIN-29", group.delete_offsets([(ABSENT_TOPIC, 0), 1, 99]), reached=stored)


@deletions.add("ADMIN-29")
async def delete_unknown_offsets_of_an_unknown_group(group: ScenarioContext) -> None:
    """What is wrong with the group comes first."""
    await group.check("ADMIN-29", group.delete_offsets([(ABSENT_TOPIC, 0)]), fields=("error", "partitions"))


@deletions.add("ADMIN-30")
async def delete_offsets_under_an_unreadable_subscription(group: ScenarioContext) -> None:
    """Who cannot be understood may subscribe to anything."""
    (a,) = await group.form_stable_group(group.member("A", ("range", b"\0")))
    await is_commit_accepted(group.commit(a, {0: 7}))
    await group.check("ADMIN-30", group.delete_offsets([0]))


@deletions.add("ADMIN-31")
async def subscriptions_add_up(group: ScenarioContext) -> None:
    """Whether the leader or a follower subscribes to a topic, it is in use."""
    a, b = await group.form_generation(
        group.member("A"), group.member("B", ("range", group.metadata("B", OTHER_TOPIC)))
    )
    await group.check("ADMIN-31", group.delete_offsets([0]))
    a.protocols, b.protocols = b.protocols, a.protocols
    rejoin = group.join(a)
    await group.sleep(group.short_pause)
    await group.join(b)
    await rejoin
    await group.check("ADMIN-31", group.delete_offsets([0]), reached=a.generation == b.generation)
