"""DescribeGroups and ListGroups: what is told about a group."""

from collections.abc import Sequence

from fencepost.conformance.scenario.context import Call, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenarios.classic.commits import act_regularly, is_commit_accepted, time_past_session
from fencepost.conformance.scenarios.classic.neighbours import find_neighbours, own_node

descriptions = ScenarioFamily()


async def list_groups_nearby(
    group: ScenarioContext, states: Sequence[str] = (), types: Sequence[str] = (), *, at_least: int = 0
) -> Call:
    """Ask the node of the stage's group for its groups, and await the answer."""
    version = group.highest_version("ListGroups", at_least=at_least)
    body = {"states_filter": list(states), "types_filter": list(types)}
    call = group.send("ListGroups", body, version=version, broker=await own_node(group))
    await call
    return call


@descriptions.add("ADMIN-01")
async def describe_an_unknown_group(group: ScenarioContext) -> None:
    """Dead, and no error."""
    await group.check("ADMIN-01", group.describe_groups(version=group.highest_version("DescribeGroups", at_most=5)))


@descriptions.add("ADMIN-02", "ADMIN-04", "ADMIN-03", "ADMIN-05", smoke=True)
async def describe_a_round(group: ScenarioContext) -> None:
    """A group is followed from its first assignment through a rebalance to its end."""
    a, b = await group.form_generation(group.member("A"), group.member("B"))
    completing = group.describe_groups()
    await completing
    await group.sync_all(a, b)
    stable = group.describe_groups()
    await stable
    group.join(a)
    await group.sleep(group.short_pause)
    preparing = group.describe_groups()
    await preparing
    for member in (a, b):
        await group.leave(member)
    empty = group.describe_groups()
    await empty
    for call in (completing, stable, preparing, empty):
        await group.check("ADMIN-02", call, fields="state")
    for call in (completing, preparing):
        await group.check("ADMIN-04", call, fields=("members", "protocol"))
    await group.check("ADMIN-03", stable, fields=("protocol_type", "protocol", "members", "assignment"))
    await group.check("ADMIN-05", empty, fields="protocol_type")


@descriptions.add("ADMIN-05")
async def describe_a_simple_group(group: ScenarioContext) -> None:
    """It has no type."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check("ADMIN-05", group.describe_groups(), fields="protocol_type", reached=stored)


@descriptions.add("ADMIN-06")
async def describe_instance_ids(group: ScenarioContext) -> None:
    """Of a static and of a dynamic member."""
    version = group.highest_version("DescribeGroups", at_least=4, at_most=5)
    await group.form_stable_group(group.member("A", instance="a"), group.member("B"))
    await group.check("ADMIN-06", group.describe_groups(version=version), fields="instances")


@descriptions.add("ADMIN-07", "ADMIN-08")
async def describe_several_groups(group: ScenarioContext) -> None:
    """A group, a simple group, and one that does not exist; nobody asked for operations."""
    version = group.highest_version("DescribeGroups", at_least=3, at_most=5)
    simple, unknown = await find_neighbours(group, 2)
    await group.commit(None, {0: 7}, group_id=simple)
    await group.form_stable_group(group.member("A"))
    call = group.describe_groups(group.group_id, simple, unknown, version=version)
    await group.check("ADMIN-07", call, fields=("groups", "state"))
    await group.check("ADMIN-08", call, fields="operations")


@descriptions.add("ADMIN-09")
async def describe_a_pending_id(group: ScenarioContext) -> None:
    """Who was only given an id is not there yet."""
    a = group.member("A")
    asked = await group.join(a, version=group.highest_version("JoinGroup", at_least=4))
    group.require(asked["error_code"] == 79, "no id was handed out")
    await group.check("ADMIN-09", group.describe_groups(), fields="members")


@descriptions.add("ADMIN-10")
async def looking_does_not_extend_the_session(group: ScenarioContext) -> None:
    """Being described and listed keeps nobody alive."""
    (a,) = await group.form_stable_group(group.member("A"))

    async def look() -> None:
        await group.describe_groups()
        await list_groups_nearby(group)

    await act_regularly(group, time_past_session(group), look)
    await group.check("ADMIN-10", group.heartbeat(a))


@descriptions.add("ADMIN-10")
async def looking_changes_nothing(group: ScenarioContext) -> None:
    """The group goes on in its generation."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.describe_groups()
    await list_groups_nearby(group)
    await group.check("ADMIN-10", group.heartbeat(a))


@descriptions.add("ADMIN-11")
async def list_groups_of_every_kind(group: ScenarioContext) -> None:
    """A group with members, a simple one, and one that only handed out an id."""
    simple, pending = await find_neighbours(group, 2)
    stored = await is_commit_accepted(group.commit(None, {0: 7}, group_id=simple))
    await group.join(group.member("P"), group_id=pending)
    await group.form_stable_group(group.member("A"))
    await group.check(
        "ADMIN-11", await list_groups_nearby(group), fields=("error", "listed", "protocol_type"), reached=stored
    )


@descriptions.add("ADMIN-11")
async def list_an_emptied_group(group: ScenarioContext) -> None:
    """It is still there, and keeps its type."""
    (a,) = await group.form_stable_group(group.member("A"))
    stored = await is_commit_accepted(group.commit(a, {0: 7}))
    await group.leave(a)
    await group.check(
        "ADMIN-11", await list_groups_nearby(group), fields=("error", "listed", "protocol_type"), reached=stored
    )


@descriptions.add("ADMIN-12")
async def list_by_state(group: ScenarioContext) -> None:
    """In any case of letters, and as one of several states; not under another state."""
    await group.form_stable_group(group.member("A"))
    for states in (("Stable",), ("EMPTY", "sTABLE"), ("Empty", "PreparingRebalance"), ()):
        await group.check(
            "ADMIN-12", await list_groups_nearby(group, states, at_least=4), fields=("error", "listed", "state")
        )


@descriptions.add("ADMIN-12")
async def list_empty_groups(group: ScenarioContext) -> None:
    """The states of a group that has no members."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    for states in (("empty",), ("Stable",)):
        await group.check(
            "ADMIN-12",
            await list_groups_nearby(group, states, at_least=4),
            fields=("error", "listed", "state"),
            reached=stored,
        )


@descriptions.add("ADMIN-13")
async def list_by_type(group: ScenarioContext) -> None:
    """All groups of this protocol are classic ones."""
    await group.form_stable_group(group.member("A"))
    for types in (("Classic",), ("consumer",), ("consumer", "classic"), ()):
        await group.check(
            "ADMIN-13", await list_groups_nearby(group, types=types, at_least=5), fields=("error", "listed", "type")
        )


@descriptions.add("ADMIN-14")
async def list_by_an_unknown_state(group: ScenarioContext) -> None:
    """Nothing is in a state that does not exist."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check(
        "ADMIN-14",
        await list_groups_nearby(group, ("Nonsense",), at_least=4),
        fields=("error", "listed"),
        reached=stored,
    )


@descriptions.add("ADMIN-14")
async def list_by_an_unknown_type(group: ScenarioContext) -> None:
    """Nothing is of a type that does not exist."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check(
        "ADMIN-14",
        await list_groups_nearby(group, types=("Nonsense",), at_least=5),
        fields=("error", "listed"),
        reached=stored,
    )


@descriptions.add("ADMIN-15")
async def list_without_deleted_groups(group: ScenarioContext) -> None:
    """A deleted group is not listed, nor is one that only was asked about."""
    (unknown,) = await find_neighbours(group, 1)
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    deleted = (await group.delete_groups())["results"][0]["error_code"] == 0
    await group.describe_groups(unknown)
    await group.check(
        "ADMIN-15", await list_groups_nearby(group), fields=("error", "listed"), reached=stored and deleted
    )
