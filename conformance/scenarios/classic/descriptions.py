"""DescribeGroups and ListGroups: what is told about a group."""

from collections.abc import Sequence

from fencepost.conformance.scenario.context import Call, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenarios.classic.commits import act_regularly, is_commit_accepted, time_past_session
from fencepost.conformance.scenarios.classic.neighbours import find_neighbours, own_node

descriptions = ScenarioFamily()


async def list_groups_nearby(
    context: ScenarioContext, states: Sequence[str] = (), types: Sequence[str] = (), *, at_least: int = 0
) -> Call:
    """Ask the node of the stage's group for its groups, and await the answer."""
    version = context.highest_version("ListGroups", at_least=at_least)
    body = {"states_filter": list(states), "types_filter": list(types)}
    call = context.send("ListGroups", body, version=version, broker=await own_node(context))
    await call
    return call


@descriptions.add("ADMIN-01")
async def describe_an_unknown_group(context: ScenarioContext) -> None:
    """Dead, and no error."""
    call = context.describe_groups(version=context.highest_version("DescribeGroups", at_most=5))
    await call
    context.check("ADMIN-01", call)


@descriptions.add("ADMIN-02", "ADMIN-04", "ADMIN-03", "ADMIN-05", smoke=True)
async def describe_a_round(context: ScenarioContext) -> None:
    """A group is followed from its first assignment through a rebalance to its end."""
    a, b = await context.form_generation(context.member("A"), context.member("B"))
    completing = context.describe_groups()
    await completing
    await context.sync_all(a, b)
    stable = context.describe_groups()
    await stable
    context.join(a)
    await context.sleep(context.short_pause)
    preparing = context.describe_groups()
    await preparing
    for member in (a, b):
        await context.leave(member)
    empty = context.describe_groups()
    await empty
    for call in (completing, stable, preparing, empty):
        context.check("ADMIN-02", call, "state")
    for call in (completing, preparing):
        context.check("ADMIN-04", call, "members", "protocol")
    context.check("ADMIN-03", stable, "protocol_type", "protocol", "members", "assignment")
    context.check("ADMIN-05", empty, "protocol_type")


@descriptions.add("ADMIN-05")
async def describe_a_simple_group(context: ScenarioContext) -> None:
    """It has no type."""
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    call = context.describe_groups()
    await call
    context.check("ADMIN-05", call, "protocol_type", reached=stored)


@descriptions.add("ADMIN-06")
async def describe_instance_ids(context: ScenarioContext) -> None:
    """Of a static and of a dynamic member."""
    version = context.highest_version("DescribeGroups", at_least=4, at_most=5)
    await context.form_stable_group(context.member("A", instance="a"), context.member("B"))
    call = context.describe_groups(version=version)
    await call
    context.check("ADMIN-06", call, "instances")


@descriptions.add("ADMIN-07", "ADMIN-08")
async def describe_several_groups(context: ScenarioContext) -> None:
    """A group, a simple group, and one that does not exist; nobody asked for operations."""
    version = context.highest_version("DescribeGroups", at_least=3, at_most=5)
    simple, unknown = await find_neighbours(context, 2)
    await context.commit(None, {0: 7}, group_id=simple)
    await context.form_stable_group(context.member("A"))
    call = context.describe_groups(context.group, simple, unknown, version=version)
    await call
    context.check("ADMIN-07", call, "groups", "state")
    context.check("ADMIN-08", call, "operations")


@descriptions.add("ADMIN-09")
async def describe_a_pending_id(context: ScenarioContext) -> None:
    """Who was only given an id is not there yet."""
    a = context.member("A")
    asked = await context.join(a, version=context.highest_version("JoinGroup", at_least=4))
    context.require(asked["error_code"] == 79, "no id was handed out")
    call = context.describe_groups()
    await call
    context.check("ADMIN-09", call, "members")


@descriptions.add("ADMIN-10")
async def looking_does_not_extend_the_session(context: ScenarioContext) -> None:
    """Being described and listed keeps nobody alive."""
    (a,) = await context.form_stable_group(context.member("A"))

    async def look() -> None:
        await context.describe_groups()
        await list_groups_nearby(context)

    await act_regularly(context, time_past_session(context), look)
    gone = context.heartbeat(a)
    await gone
    context.check("ADMIN-10", gone)


@descriptions.add("ADMIN-10")
async def looking_changes_nothing(context: ScenarioContext) -> None:
    """The group goes on in its generation."""
    (a,) = await context.form_stable_group(context.member("A"))
    await context.describe_groups()
    await list_groups_nearby(context)
    alive = context.heartbeat(a)
    await alive
    context.check("ADMIN-10", alive)


@descriptions.add("ADMIN-11")
async def list_groups_of_every_kind(context: ScenarioContext) -> None:
    """A group with members, a simple one, and one that only handed out an id."""
    simple, pending = await find_neighbours(context, 2)
    stored = await is_commit_accepted(context.commit(None, {0: 7}, group_id=simple))
    await context.join(context.member("P"), group_id=pending)
    await context.form_stable_group(context.member("A"))
    call = await list_groups_nearby(context)
    context.check("ADMIN-11", call, "error", "listed", "protocol_type", reached=stored)


@descriptions.add("ADMIN-11")
async def list_an_emptied_group(context: ScenarioContext) -> None:
    """It is still there, and keeps its type."""
    (a,) = await context.form_stable_group(context.member("A"))
    stored = await is_commit_accepted(context.commit(a, {0: 7}))
    await context.leave(a)
    call = await list_groups_nearby(context)
    context.check("ADMIN-11", call, "error", "listed", "protocol_type", reached=stored)


@descriptions.add("ADMIN-12")
async def list_by_state(context: ScenarioContext) -> None:
    """In any case of letters, and as one of several states; not under another state."""
    await context.form_stable_group(context.member("A"))
    for states in (("Stable",), ("EMPTY", "sTABLE"), ("Empty", "PreparingRebalance"), ()):
        call = await list_groups_nearby(context, states, at_least=4)
        context.check("ADMIN-12", call, "error", "listed", "state")


@descriptions.add("ADMIN-12")
async def list_empty_groups(context: ScenarioContext) -> None:
    """The states of a group that has no members."""
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    for states in (("empty",), ("Stable",)):
        call = await list_groups_nearby(context, states, at_least=4)
        context.check("ADMIN-12", call, "error", "listed", "state", reached=stored)


@descriptions.add("ADMIN-13")
async def list_by_type(context: ScenarioContext) -> None:
    """All groups of this protocol are classic ones."""
    await context.form_stable_group(context.member("A"))
    for types in (("Classic",), ("consumer",), ("consumer", "classic"), ()):
        call = await list_groups_nearby(context, types=types, at_least=5)
        context.check("ADMIN-13", call, "error", "listed", "type")


@descriptions.add("ADMIN-14")
async def list_by_an_unknown_state(context: ScenarioContext) -> None:
    """Nothing is in a state that does not exist."""
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    call = await list_groups_nearby(context, ("Nonsense",), at_least=4)
    context.check("ADMIN-14", call, "error", "listed", reached=stored)


@descriptions.add("ADMIN-14")
async def list_by_an_unknown_type(context: ScenarioContext) -> None:
    """Nothing is of a type that does not exist."""
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    call = await list_groups_nearby(context, types=("Nonsense",), at_least=5)
    context.check("ADMIN-14", call, "error", "listed", reached=stored)


@descriptions.add("ADMIN-15")
async def list_without_deleted_groups(context: ScenarioContext) -> None:
    """A deleted group is not listed, nor is one that only was asked about."""
    (unknown,) = await find_neighbours(context, 1)
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    deleted = (await context.delete_groups())["results"][0]["error_code"] == 0
    await context.describe_groups(unknown)
    call = await list_groups_nearby(context)
    context.check("ADMIN-15", call, "error", "listed", reached=stored and deleted)
