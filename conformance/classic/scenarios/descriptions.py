"""DescribeGroups and ListGroups: their results in each state of a group."""

from collections.abc import Sequence

from fencepost.conformance.classic.scenarios.commits import act_regularly, is_commit_accepted, time_past_session
from fencepost.conformance.classic.scenarios.neighbours import find_neighbours, own_node
from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Call
from fencepost.model.errors import Error

descriptions = ScenarioFamily()


async def list_groups_nearby(
    group: ScenarioContext, states: Sequence[str] = (), types: Sequence[str] = (), *, at_least: int = 0
) -> Call:
    """Send ListGroups to the coordinator of the group under test; returns the call, with its response."""
    version = group.highest_version("ListGroups", at_least=at_least)
    body = {"states_filter": list(states), "types_filter": list(types)}
    call = group.send("ListGroups", body, version=version, broker=await own_node(group))
    await call
    return call


@descriptions.add("ADMIN-01")
async def describe_an_unknown_group(group: ScenarioContext) -> None:
    """An unknown group is described as Dead, without an error."""
    await group.check("ADMIN-01", group.describe_groups(version=group.highest_version("DescribeGroups", at_most=5)))


@descriptions.add("ADMIN-02", "ADMIN-04", "ADMIN-03", "ADMIN-05", smoke=True)
async def describe_a_round(group: ScenarioContext) -> None:
    """A group is described in each state, from its first assignment through a rebalance to its end."""
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
    """A group that only holds offsets has no protocol type."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check("ADMIN-05", group.describe_groups(), fields="protocol_type", reached=stored)


@descriptions.add("ADMIN-06")
async def describe_instance_ids(group: ScenarioContext) -> None:
    """A static member is described with its instance id, a dynamic one without."""
    version = group.highest_version("DescribeGroups", at_least=4, at_most=5)
    await group.form_stable_group(group.member("A", instance="a"), group.member("B"))
    await group.check("ADMIN-06", group.describe_groups(version=version), fields="instances")


@descriptions.add("ADMIN-07", "ADMIN-08")
async def describe_several_groups(group: ScenarioContext) -> None:
    """One request describes a group, a group of offsets and an unknown one, without authorized operations."""
    version = group.highest_version("DescribeGroups", at_least=3, at_most=5)
    simple, unknown = await find_neighbours(group, 2)
    await group.commit(None, {0: 7}, group_id=simple)
    await group.form_stable_group(group.member("A"))

    call = group.describe_groups(group.group_id, simple, unknown, version=version)
    await group.check("ADMIN-07", call, fields=("groups", "state"))
    await group.check("ADMIN-08", call, fields="operations")


@descriptions.add("ADMIN-09")
async def describe_a_pending_id(group: ScenarioContext) -> None:
    """A member id that was only issued is not among the members."""
    a = group.member("A")
    issued = await group.join(a, version=group.highest_version("JoinGroup", at_least=4))
    group.require(issued["error_code"] == Error.MEMBER_ID_REQUIRED, "no id was handed out")

    await group.check("ADMIN-09", group.describe_groups(), fields="members")


@descriptions.add("ADMIN-10")
async def looking_does_not_extend_the_session(group: ScenarioContext) -> None:
    """DescribeGroups and ListGroups do not extend a session."""
    await group.keep_when_empty()
    (a,) = await group.form_stable_group(group.member("A"))

    async def look() -> None:
        await group.describe_groups()
        await list_groups_nearby(group)

    await act_regularly(group, time_past_session(group), look)

    await group.check("ADMIN-10", group.heartbeat(a))


@descriptions.add("ADMIN-10")
async def looking_changes_nothing(group: ScenarioContext) -> None:
    """After being described and listed, the group goes on in its generation."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.describe_groups()
    await list_groups_nearby(group)

    await group.check("ADMIN-10", group.heartbeat(a))


@descriptions.add("ADMIN-11")
async def list_groups_of_every_kind(group: ScenarioContext) -> None:
    """The list has a group with members and one with offsets."""
    (simple,) = await find_neighbours(group, 1)
    stored = await is_commit_accepted(group.commit(None, {0: 7}, group_id=simple))
    await group.form_stable_group(group.member("A"))

    await group.check(
        "ADMIN-11", await list_groups_nearby(group), fields=("error", "listed", "protocol_type"), reached=stored
    )


@descriptions.add("ADMIN-34")
async def look_at_a_pending_id(group: ScenarioContext) -> None:
    """A group that has only issued a member id shows no protocol type, as long as it is there."""
    issued = await group.join(group.member("P"), version=group.highest_version("JoinGroup", at_least=4))
    group.require(issued["error_code"] == Error.MEMBER_ID_REQUIRED, "no id was handed out")

    await group.check("ADMIN-34", group.describe_groups(), fields="protocol_type")
    await group.check("ADMIN-34", await list_groups_nearby(group), fields="protocol_type")


@descriptions.add("ADMIN-11")
async def list_an_emptied_group(group: ScenarioContext) -> None:
    """A group that its members have left is still listed, with its protocol type."""
    (a,) = await group.form_stable_group(group.member("A"))
    stored = await is_commit_accepted(group.commit(a, {0: 7}))

    await group.leave(a)
    await group.check(
        "ADMIN-11", await list_groups_nearby(group), fields=("error", "listed", "protocol_type"), reached=stored
    )


@descriptions.add("ADMIN-12")
async def list_by_state(group: ScenarioContext) -> None:
    """Filters on states may name several; a group is not listed under another state."""
    await group.form_stable_group(group.member("A"))
    for states in (("Stable",), ("Empty", "Stable"), ("Empty", "PreparingRebalance"), ()):
        await group.check(
            "ADMIN-12", await list_groups_nearby(group, states, at_least=4), fields=("error", "listed", "state")
        )


@descriptions.add("ADMIN-12")
async def list_empty_groups(group: ScenarioContext) -> None:
    """A group without members is listed as Empty only."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    for states in (("Empty",), ("Stable",)):
        await group.check(
            "ADMIN-12",
            await list_groups_nearby(group, states, at_least=4),
            fields=("error", "listed", "state"),
            reached=stored,
        )


@descriptions.add("ADMIN-33")
async def list_by_state_in_another_case(group: ScenarioContext) -> None:
    """Filters on states ignore case."""
    await group.form_stable_group(group.member("A"))
    for states in (("stable",), ("EMPTY", "sTABLE")):
        await group.check("ADMIN-33", await list_groups_nearby(group, states, at_least=4), fields="listed")


@descriptions.add("ADMIN-33")
async def list_by_type_in_another_case(group: ScenarioContext) -> None:
    """Filters on types ignore case."""
    await group.form_stable_group(group.member("A"))
    await group.check("ADMIN-33", await list_groups_nearby(group, types=("Classic",), at_least=5), fields="listed")


@descriptions.add("ADMIN-13")
async def list_by_type(group: ScenarioContext) -> None:
    """Every group of this protocol has the type `classic`."""
    await group.form_stable_group(group.member("A"))
    for types in (("classic",), ("consumer",), ("consumer", "classic"), ()):
        await group.check(
            "ADMIN-13", await list_groups_nearby(group, types=types, at_least=5), fields=("error", "listed", "type")
        )


@descriptions.add("ADMIN-14")
async def list_by_an_unknown_state(group: ScenarioContext) -> None:
    """A filter on an unknown state lets no group pass."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check(
        "ADMIN-14",
        await list_groups_nearby(group, ("Nonsense",), at_least=4),
        fields=("error", "listed"),
        reached=stored,
    )


@descriptions.add("ADMIN-14")
async def list_by_an_unknown_type(group: ScenarioContext) -> None:
    """A filter on an unknown type lets no group pass."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check(
        "ADMIN-14",
        await list_groups_nearby(group, types=("Nonsense",), at_least=5),
        fields=("error", "listed"),
        reached=stored,
    )


@descriptions.add("ADMIN-15")
async def list_without_deleted_groups(group: ScenarioContext) -> None:
    """A deleted group is not listed, nor is one that was only described."""
    (unknown,) = await find_neighbours(group, 1)
    stored = await is_commit_accepted(group.commit(None, {0: 7}))

    deleted = (await group.delete_groups())["results"][0]["error_code"] == 0
    await group.describe_groups(unknown)

    await group.check(
        "ADMIN-15", await list_groups_nearby(group), fields=("error", "listed"), reached=stored and deleted
    )
