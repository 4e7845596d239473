"""DeleteGroups and OffsetDelete: their results, and the groups and offsets that remain."""

from fencepost.conformance.classic.scenarios.commits import is_commit_accepted
from fencepost.conformance.classic.scenarios.neighbours import check_bystander, commit_in_bystander, find_neighbours
from fencepost.conformance.classic.scenarios.partitions import ABSENT_TOPIC
from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Call, Member
from fencepost.traces.classic.overdue import MAX_CLEANUP_PASSES

deletions = ScenarioFamily()

OTHER_TOPIC = "subscribed-elsewhere"
"""A topic other than the kit's, to subscribe to; it need not exist."""


async def is_deletion_accepted(call: Call) -> bool:
    """Await a DeleteGroups; returns whether every group was deleted."""
    return all(row["error_code"] == 0 for row in (await call)["results"])


@deletions.add("ADMIN-16")
async def delete_an_unknown_group(group: ScenarioContext) -> None:
    """The deletion of an unknown group gets GROUP_ID_NOT_FOUND."""
    await group.check("ADMIN-16", group.delete_groups())


@deletions.add("ADMIN-17")
async def delete_an_active_group(group: ScenarioContext) -> None:
    """A group is not deleted in CompletingRebalance, Stable or PreparingRebalance."""
    a, b = await group.form_generation(group.member("A"), group.member("B"))
    await check_deletion_refused(group, b)
    await group.sync_all(a, b)
    await check_deletion_refused(group, b)
    group.join(a)
    await group.sleep(group.short_pause)
    await check_deletion_refused(group, b)


async def check_deletion_refused(group: ScenarioContext, member: Member) -> None:
    """Check that the deletion is refused and that the member is not affected."""
    await group.check("ADMIN-17", group.delete_groups())
    await group.check("ADMIN-17", group.heartbeat(member))


@deletions.add("ADMIN-18", "ADMIN-20", smoke=True)
async def delete_an_emptied_group(group: ScenarioContext) -> None:
    """An emptied group is deleted with its offsets, and cannot be deleted again."""
    (a,) = await group.form_stable_group(group.member("A"))
    stored = await is_commit_accepted(group.commit(a, {0: 7}))

    await group.leave(a)
    await group.check("ADMIN-18", group.delete_groups(), reached=stored)
    await group.check("ADMIN-18", group.describe_groups(), fields="state", reached=stored)
    await group.check("ADMIN-18", group.fetch(), fields="offset", reached=stored)
    await group.check("ADMIN-20", group.delete_groups(), reached=stored)


async def describe_until_gone(group: ScenarioContext) -> Call:
    """Describe the group after each clean-up pass until it is gone; returns the last call."""
    call = group.describe_groups()
    for _ in range(MAX_CLEANUP_PASSES + 1):
        if (await call)["groups"][0]["group_state"] == "Dead":
            break
        await group.sleep_past(group.settings.retention_check_interval)
        call = group.describe_groups()
    return call


@deletions.add("ADMIN-35", needs=("retention",))
async def emptied_group_goes_away(group: ScenarioContext) -> None:
    """A group that its members have left, and that has no offsets, is gone after some clean-up passes."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    await group.check("ADMIN-35", await describe_until_gone(group), fields="state")


@deletions.add("ADMIN-35", needs=("retention",))
async def simple_group_without_offsets_goes_away(group: ScenarioContext) -> None:
    """A simple group whose last offset was deleted is gone after some clean-up passes."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.delete_offsets([0])
    await group.check("ADMIN-35", await describe_until_gone(group), fields="state", reached=stored)


@deletions.add("ADMIN-19")
async def delete_several_groups(group: ScenarioContext) -> None:
    """One request names an active, an inactive and an unknown group, and gets a result for each."""
    simple, unknown = await find_neighbours(group, 2)
    stored = await is_commit_accepted(group.commit(None, {0: 7}, group_id=simple))
    await group.form_stable_group(group.member("A"))

    await group.check("ADMIN-19", group.delete_groups(group.group_id, simple, unknown), reached=stored)


@deletions.add("ADMIN-21")
async def delete_a_simple_group(group: ScenarioContext) -> None:
    """A group that never had members can be deleted."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check("ADMIN-21", group.delete_groups(), reached=stored)


@deletions.add("ADMIN-22")
async def members_of_a_deleted_group(group: ScenarioContext) -> None:
    """After the deletion, neither a former member nor an id that was only issued is known."""
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
    """An unknown group is refused as a whole."""
    await group.check("ADMIN-23", group.delete_offsets([0]), fields=("error", "partitions"))


@deletions.add("ADMIN-23", "ADMIN-32", needs=("intrusive",))
async def delete_offsets_of_the_empty_group_id(group: ScenarioContext) -> None:
    """The empty group id is refused as a whole, and another group is not affected."""
    bystander, stored = await commit_in_bystander(group)
    await group.check("ADMIN-23", group.delete_offsets([0], group_id=""), fields=("error", "partitions"))
    await check_bystander(group, bystander, stored)


@deletions.add("ADMIN-24")
async def delete_offsets_of_another_kind_of_group(group: ScenarioContext) -> None:
    """Offsets of an active group of another protocol type are not deleted, as its topics are unknown."""
    (a,) = await group.form_stable_group(group.member("A", ("plan", b"anything"), protocol_type="connect"))
    await is_commit_accepted(group.commit(a, {0: 7}))
    await group.check("ADMIN-24", group.delete_offsets([0]), fields="error")


@deletions.add("ADMIN-25")
async def delete_offsets_of_a_subscribed_topic(group: ScenarioContext) -> None:
    """The offset of a topic to which a member subscribes is not deleted."""
    (a,) = await group.form_stable_group(group.member("A"))
    stored = await is_commit_accepted(group.commit(a, {0: 7}))

    await group.check("ADMIN-25", group.delete_offsets([0, 1]))
    await group.check("ADMIN-25", group.fetch(), fields="offset", reached=stored)


@deletions.add("ADMIN-26")
async def delete_offsets_of_another_topic(group: ScenarioContext) -> None:
    """Members that subscribe to other topics do not prevent the deletion."""
    (a,) = await group.form_stable_group(group.member("A", ("range", group.metadata("A", OTHER_TOPIC))))
    stored = await is_commit_accepted(group.commit(a, {0: 7, 1: 8}))

    await group.check("ADMIN-26", group.delete_offsets([0]))
    await group.check("ADMIN-26", group.fetch([0, 1]), fields="offset", reached=stored)


@deletions.add("ADMIN-27")
async def delete_offsets_of_an_emptied_group(group: ScenarioContext) -> None:
    """Members that have left do not prevent the deletion."""
    (a,) = await group.form_stable_group(group.member("A"))
    await is_commit_accepted(group.commit(a, {0: 7, 1: 8}))

    await group.leave(a)
    await group.check("ADMIN-27", group.delete_offsets([0]))


@deletions.add("ADMIN-28", "ADMIN-29")
async def delete_offsets_that_are_not_there(group: ScenarioContext) -> None:
    """A partition without an offset is no error; a partition that does not exist is one, for itself."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check("ADMIN-28", group.delete_offsets([1]), reached=stored)
    await group.check("ADMIN-29", group.delete_offsets([(ABSENT_TOPIC, 0), 1, 99]), reached=stored)


@deletions.add("ADMIN-29")
async def delete_unknown_offsets_of_an_unknown_group(group: ScenarioContext) -> None:
    """The error of the group comes before those of partitions."""
    await group.check("ADMIN-29", group.delete_offsets([(ABSENT_TOPIC, 0)]), fields=("error", "partitions"))


@deletions.add("ADMIN-30")
async def delete_offsets_under_an_unreadable_subscription(group: ScenarioContext) -> None:
    """A member whose subscription cannot be read counts as subscribed to every topic."""
    (a,) = await group.form_stable_group(group.member("A", ("range", b"\0")))
    await is_commit_accepted(group.commit(a, {0: 7}))
    await group.check("ADMIN-30", group.delete_offsets([0]))


@deletions.add("ADMIN-31")
async def subscriptions_add_up(group: ScenarioContext) -> None:
    """A topic is in use if the leader subscribes to it, and if a follower does."""
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
