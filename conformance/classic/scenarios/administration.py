"""DescribeGroups, ListGroups, DeleteGroups and OffsetDelete: their results in each state of a group."""

from collections.abc import Sequence

from fencepost.conformance.classic.scenarios.commits import (
    ABSENT_TOPIC,
    act_regularly,
    is_commit_accepted,
    time_past_session,
)
from fencepost.conformance.classic.scenarios.neighbours import (
    check_bystander,
    commit_in_bystander,
    find_neighbours,
    own_node,
)
from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Call, Member
from fencepost.model.errors import Error
from fencepost.traces.classic.overdue import MAX_CLEANUP_PASSES

administration = ScenarioFamily()


async def list_groups_nearby(
    group: ScenarioContext, states: Sequence[str] = (), types: Sequence[str] = (), *, at_least: int = 0
) -> Call:
    """Send ListGroups to the coordinator of the group under test; returns the call, with its response."""
    version = group.highest_version("ListGroups", at_least=at_least)
    body = {"states_filter": list(states), "types_filter": list(types)}
    call = group.send("ListGroups", body, version=version, broker=await own_node(group))
    await call
    return call


@administration.add("ADMIN-01")
async def describe_an_unknown_group(group: ScenarioContext) -> None:
    """An unknown group is described as Dead, without an error."""
    await group.check_versions(
        "ADMIN-01", group.describe_groups(version=group.highest_version("DescribeGroups", at_most=5)), until=5
    )


DESCRIBED_IN_STABLE = ("protocol_type", "protocol", "members", "metadata", "client_id", "client_host", "assignment")
"""What a description of a Stable group is checked for."""


@administration.add("ADMIN-02", "ADMIN-04", "ADMIN-03", "ADMIN-05", smoke=True)
async def describe_a_round(group: ScenarioContext) -> None:
    """A group is described in each state, from its first assignment through a rebalance to its end."""
    a, b = await group.form_generation(group.patient_member("A"), group.patient_member("B"))
    await check_description(group, "ADMIN-04", "members", "metadata", "protocol")
    await group.sync_all(a, b)

    await check_description(group, "ADMIN-03", *DESCRIBED_IN_STABLE)
    group.join(a)
    await group.sleep(group.short_pause)
    await check_description(group, "ADMIN-04", "members", "metadata", "protocol")
    for member in (a, b):
        await group.leave(member)
    await check_description(group, "ADMIN-05", "protocol_type")


async def check_description(group: ScenarioContext, requirement: str, *fields: str) -> None:
    """Describe the group in every version, and check its state (ADMIN-02) and some fields of it."""
    for version in group.offered_versions("DescribeGroups"):
        call = group.describe_groups(version=version)
        await group.check("ADMIN-02", call, fields="state")
        await group.check(requirement, call, fields=fields)


@administration.add("ADMIN-05")
async def describe_a_simple_group(group: ScenarioContext) -> None:
    """A group that only holds offsets has no protocol type."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check("ADMIN-05", group.describe_groups(), fields="protocol_type", reached=stored)


@administration.add("ADMIN-06")
async def describe_instance_ids(group: ScenarioContext) -> None:
    """A static member is described with its instance id, a dynamic one without."""
    version = group.highest_version("DescribeGroups", at_least=4, at_most=5)
    await group.form_stable_group(group.member("A", instance="a"), group.member("B"))
    await group.check_versions("ADMIN-06", group.describe_groups(version=version), fields="instances", since=4, until=5)


@administration.add("ADMIN-07", "ADMIN-08")
async def describe_several_groups(group: ScenarioContext) -> None:
    """One request describes a group, a group of offsets and an unknown one, without authorized operations."""
    version = group.highest_version("DescribeGroups", at_least=3, at_most=5)
    simple, unknown = await find_neighbours(group, 2)
    await group.commit(None, {0: 7}, group_id=simple)
    await group.form_stable_group(group.member("A"))

    call = group.describe_groups(group.group_id, simple, unknown, version=version)
    await group.check_versions("ADMIN-07", call, fields=("groups", "state"))
    await group.check_versions("ADMIN-08", call, fields="operations", since=3)


@administration.add("ADMIN-09")
async def describe_a_pending_id(group: ScenarioContext) -> None:
    """A member id that was only issued is not among the members."""
    a = group.member("A")
    issued = await group.join(a, version=group.highest_version("JoinGroup", at_least=4))
    group.require(issued["error_code"] == Error.MEMBER_ID_REQUIRED, "no id was handed out")

    await group.check_versions("ADMIN-09", group.describe_groups(), fields="members")


@administration.add("ADMIN-10")
async def looking_does_not_extend_the_session(group: ScenarioContext) -> None:
    """DescribeGroups and ListGroups do not extend a session."""
    await group.keep_when_empty()
    (a,) = await group.form_stable_group(group.expiring_member("A"))

    async def look() -> None:
        await group.describe_groups()
        await list_groups_nearby(group)

    await act_regularly(group, time_past_session(group), look)

    await group.check("ADMIN-10", group.heartbeat(a))


@administration.add("ADMIN-10")
async def looking_changes_nothing(group: ScenarioContext) -> None:
    """After being described and listed, the group goes on in its generation."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.describe_groups()
    await list_groups_nearby(group)

    await group.check("ADMIN-10", group.heartbeat(a))


@administration.add("ADMIN-11")
async def list_groups_of_every_kind(group: ScenarioContext) -> None:
    """The list has a group with members and one with offsets."""
    (simple,) = await find_neighbours(group, 1)
    stored = await is_commit_accepted(group.commit(None, {0: 7}, group_id=simple))
    await group.form_stable_group(group.member("A"))

    await group.check(
        "ADMIN-11", await list_groups_nearby(group), fields=("error", "listed", "protocol_type"), reached=stored
    )


@administration.add("ADMIN-34")
async def look_at_a_pending_id(group: ScenarioContext) -> None:
    """A group that has only issued a member id shows no protocol type, as long as it is there."""
    issued = await group.join(group.member("P"), version=group.highest_version("JoinGroup", at_least=4))
    group.require(issued["error_code"] == Error.MEMBER_ID_REQUIRED, "no id was handed out")

    await group.check_versions("ADMIN-34", group.describe_groups(), fields="protocol_type")
    await group.check_versions("ADMIN-34", await list_groups_nearby(group), fields="protocol_type")


@administration.add("ADMIN-11")
async def list_an_emptied_group(group: ScenarioContext) -> None:
    """A group that its members have left is still listed, with its protocol type."""
    (a,) = await group.form_stable_group(group.member("A"))
    stored = await is_commit_accepted(group.commit(a, {0: 7}))

    await group.leave(a)
    await group.check(
        "ADMIN-11", await list_groups_nearby(group), fields=("error", "listed", "protocol_type"), reached=stored
    )


@administration.add("ADMIN-12")
async def list_by_state(group: ScenarioContext) -> None:
    """Filters on states may name several; a group is not listed under another state."""
    await group.form_stable_group(group.member("A"))
    for states in (("Stable",), ("Empty", "Stable"), ("Empty", "PreparingRebalance"), ()):
        await group.check_versions(
            "ADMIN-12",
            await list_groups_nearby(group, states, at_least=4),
            fields=("error", "listed", "state"),
            since=4,
        )


@administration.add("ADMIN-12")
async def list_empty_groups(group: ScenarioContext) -> None:
    """A group without members is listed as Empty only."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    for states in (("Empty",), ("Stable",)):
        await group.check_versions(
            "ADMIN-12",
            await list_groups_nearby(group, states, at_least=4),
            fields=("error", "listed", "state"),
            reached=stored,
            since=4,
        )


@administration.add("ADMIN-33")
async def list_by_state_in_another_case(group: ScenarioContext) -> None:
    """Filters on states ignore case."""
    await group.form_stable_group(group.member("A"))
    for states in (("stable",), ("EMPTY", "sTABLE")):
        await group.check_versions(
            "ADMIN-33", await list_groups_nearby(group, states, at_least=4), fields="listed", since=4
        )


@administration.add("ADMIN-33")
async def list_by_type_in_another_case(group: ScenarioContext) -> None:
    """Filters on types ignore case."""
    await group.form_stable_group(group.member("A"))
    await group.check("ADMIN-33", await list_groups_nearby(group, types=("Classic",), at_least=5), fields="listed")


@administration.add("ADMIN-13")
async def list_by_type(group: ScenarioContext) -> None:
    """Every group of this protocol has the type `classic`."""
    await group.form_stable_group(group.member("A"))
    for types in (("classic",), ("consumer",), ("consumer", "classic"), ()):
        await group.check_versions(
            "ADMIN-13",
            await list_groups_nearby(group, types=types, at_least=5),
            fields=("error", "listed", "type"),
            since=5,
        )


@administration.add("ADMIN-14")
async def list_by_an_unknown_state(group: ScenarioContext) -> None:
    """A filter on an unknown state lets no group pass."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check(
        "ADMIN-14",
        await list_groups_nearby(group, ("Nonsense",), at_least=4),
        fields=("error", "listed"),
        reached=stored,
    )


@administration.add("ADMIN-14")
async def list_by_an_unknown_type(group: ScenarioContext) -> None:
    """A filter on an unknown type lets no group pass."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check(
        "ADMIN-14",
        await list_groups_nearby(group, types=("Nonsense",), at_least=5),
        fields=("error", "listed"),
        reached=stored,
    )


@administration.add("ADMIN-15")
async def list_without_deleted_groups(group: ScenarioContext) -> None:
    """A deleted group is not listed, nor is one that was only described."""
    (unknown,) = await find_neighbours(group, 1)
    stored = await is_commit_accepted(group.commit(None, {0: 7}))

    deleted = (await group.delete_groups())["results"][0]["error_code"] == 0
    await group.describe_groups(unknown)

    await group.check(
        "ADMIN-15", await list_groups_nearby(group), fields=("error", "listed"), reached=stored and deleted
    )


# --- DeleteGroups and OffsetDelete: their results, and the groups and offsets that remain.

OTHER_TOPIC = "subscribed-elsewhere"
"""A topic other than the kit's, to subscribe to; it need not exist."""


async def is_deletion_accepted(call: Call) -> bool:
    """Await a DeleteGroups; returns whether every group was deleted."""
    return all(row["error_code"] == 0 for row in (await call)["results"])


@administration.add("ADMIN-16")
async def delete_an_unknown_group(group: ScenarioContext) -> None:
    """The deletion of an unknown group gets GROUP_ID_NOT_FOUND."""
    await group.check_versions("ADMIN-16", group.delete_groups())


@administration.add("ADMIN-17")
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
    await group.check_versions("ADMIN-17", group.delete_groups())
    await group.check("ADMIN-17", group.heartbeat(member))


@administration.add("ADMIN-18", "ADMIN-20", smoke=True)
async def delete_an_emptied_group(group: ScenarioContext) -> None:
    """An emptied group is deleted with its offsets, and cannot be deleted again."""
    (a,) = await group.form_stable_group(group.member("A"))
    stored = await is_commit_accepted(group.commit(a, {0: 7}))

    await group.leave(a)
    await group.check("ADMIN-18", group.delete_groups(), reached=stored)
    await group.check("ADMIN-18", group.describe_groups(), fields="state", reached=stored)
    await group.check("ADMIN-18", group.fetch(), fields="offset", reached=stored)
    await group.check_versions("ADMIN-20", group.delete_groups(), reached=stored)


async def describe_until_gone(group: ScenarioContext) -> Call:
    """Describe the group after each clean-up pass until it is gone; returns the last call."""
    call = group.describe_groups()
    for _ in range(MAX_CLEANUP_PASSES + 1):
        if (await call)["groups"][0]["group_state"] == "Dead":
            break
        await group.sleep_past(group.settings.retention_check_interval)
        call = group.describe_groups()
    return call


@administration.add("ADMIN-35", needs=("retention",))
async def emptied_group_goes_away(group: ScenarioContext) -> None:
    """A group that its members have left, and that has no offsets, is gone after some clean-up passes."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    await group.check("ADMIN-35", await describe_until_gone(group), fields="state")


@administration.add("ADMIN-35", needs=("retention",))
async def simple_group_without_offsets_goes_away(group: ScenarioContext) -> None:
    """A simple group whose last offset was deleted is gone after some clean-up passes."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.delete_offsets([0])
    await group.check("ADMIN-35", await describe_until_gone(group), fields="state", reached=stored)


@administration.add("ADMIN-19")
async def delete_several_groups(group: ScenarioContext) -> None:
    """One request names an active, an inactive and an unknown group, and gets a result for each."""
    simple, unknown = await find_neighbours(group, 2)
    stored = await is_commit_accepted(group.commit(None, {0: 7}, group_id=simple))
    await group.form_stable_group(group.member("A"))

    await group.check("ADMIN-19", group.delete_groups(group.group_id, simple, unknown), reached=stored)


@administration.add("ADMIN-21")
async def delete_a_simple_group(group: ScenarioContext) -> None:
    """A group that never had members can be deleted."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check("ADMIN-21", group.delete_groups(), reached=stored)


@administration.add("ADMIN-22")
async def members_of_a_deleted_group(group: ScenarioContext) -> None:
    """After the deletion, neither a former member nor an id that was only issued is known."""
    (a,) = await group.form_stable_group(group.member("A"))
    await is_commit_accepted(group.commit(a, {0: 7}))

    await group.leave(a)
    pending = group.member("P")
    await group.join(pending)
    gone = await is_deletion_accepted(group.delete_groups())

    for call in (group.heartbeat(a), group.sync(a), group.commit(a, {0: 8})):
        await group.check_versions("ADMIN-22", call, fields="error", reached=gone)
    for member in (a, pending):
        await group.check_versions("ADMIN-22", group.join(member), fields="error", reached=gone)


@administration.add("ADMIN-23")
async def delete_offsets_without_a_group(group: ScenarioContext) -> None:
    """An unknown group is refused as a whole."""
    await group.check("ADMIN-23", group.delete_offsets([0]), fields=("error", "partitions"))


@administration.add("ADMIN-23", "ADMIN-32", needs=("intrusive",))
async def delete_offsets_of_the_empty_group_id(group: ScenarioContext) -> None:
    """The empty group id is refused as a whole, and another group is not affected."""
    bystander, stored = await commit_in_bystander(group)
    await group.check("ADMIN-23", group.delete_offsets([0], group_id=""), fields=("error", "partitions"))
    await check_bystander(group, bystander, stored)


@administration.add("ADMIN-24")
async def delete_offsets_of_another_kind_of_group(group: ScenarioContext) -> None:
    """Offsets of an active group of another protocol type are not deleted, as its topics are unknown."""
    (a,) = await group.form_stable_group(group.member("A", ("plan", b"anything"), protocol_type="connect"))
    await is_commit_accepted(group.commit(a, {0: 7}))
    await group.check("ADMIN-24", group.delete_offsets([0]), fields="error")


@administration.add("ADMIN-25")
async def delete_offsets_of_a_subscribed_topic(group: ScenarioContext) -> None:
    """The offset of a topic to which a member subscribes is not deleted."""
    (a,) = await group.form_stable_group(group.member("A"))
    stored = await is_commit_accepted(group.commit(a, {0: 7}))

    await group.check("ADMIN-25", group.delete_offsets([0, 1]))
    await group.check("ADMIN-25", group.fetch(), fields="offset", reached=stored)


@administration.add("ADMIN-26")
async def delete_offsets_of_another_topic(group: ScenarioContext) -> None:
    """Members that subscribe to other topics do not prevent the deletion."""
    (a,) = await group.form_stable_group(group.member("A", ("range", group.metadata("A", OTHER_TOPIC))))
    stored = await is_commit_accepted(group.commit(a, {0: 7, 1: 8}))

    await group.check("ADMIN-26", group.delete_offsets([0]))
    await group.check("ADMIN-26", group.fetch([0, 1]), fields="offset", reached=stored)


@administration.add("ADMIN-27")
async def delete_offsets_of_an_emptied_group(group: ScenarioContext) -> None:
    """Members that have left do not prevent the deletion."""
    (a,) = await group.form_stable_group(group.member("A"))
    await is_commit_accepted(group.commit(a, {0: 7, 1: 8}))

    await group.leave(a)
    await group.check("ADMIN-27", group.delete_offsets([0]))


@administration.add("ADMIN-28", "ADMIN-29")
async def delete_offsets_that_are_not_there(group: ScenarioContext) -> None:
    """A partition without an offset is no error; a partition that does not exist is one, for itself."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check("ADMIN-28", group.delete_offsets([1]), reached=stored)
    await group.check("ADMIN-29", group.delete_offsets([(ABSENT_TOPIC, 0), 1, 99]), reached=stored)


@administration.add("ADMIN-29")
async def delete_unknown_offsets_of_an_unknown_group(group: ScenarioContext) -> None:
    """The error of the group comes before those of partitions."""
    await group.check("ADMIN-29", group.delete_offsets([(ABSENT_TOPIC, 0)]), fields=("error", "partitions"))


@administration.add("ADMIN-30")
async def delete_offsets_under_an_unreadable_subscription(group: ScenarioContext) -> None:
    """A member whose subscription cannot be read counts as subscribed to every topic."""
    (a,) = await group.form_stable_group(group.member("A", ("range", b"\0")))
    await is_commit_accepted(group.commit(a, {0: 7}))
    await group.check("ADMIN-30", group.delete_offsets([0]))


@administration.add("ADMIN-31")
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
