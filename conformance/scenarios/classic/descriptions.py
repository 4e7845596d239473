"""DescribeGroups and ListGroups: what is told about a group."""

from collections.abc import Sequence

from fencepost.conformance.scenario.context import Call, Stage
from fencepost.conformance.scenario.scenario import Collection
from fencepost.conformance.scenarios.classic.commits import accepted, beyond_session, busy
from fencepost.conformance.scenarios.classic.neighbours import home, neighbours

descriptions = Collection()


async def listed(stage: Stage, states: Sequence[str] = (), types: Sequence[str] = (), *, at_least: int = 0) -> Call:
    """Ask the node of the stage's group for its groups, and await the answer."""
    version = stage.version("ListGroups", at_least=at_least)
    body = {"states_filter": list(states), "types_filter": list(types)}
    call = stage.send("ListGroups", body, version=version, broker=await home(stage))
    await call
    return call


@descriptions.add("ADMIN-01")
async def describe_an_unknown_group(stage: Stage) -> None:
    """Dead, and no error."""
    call = stage.describe(version=stage.version("DescribeGroups", at_most=5))
    await call
    stage.shows("ADMIN-01", call)


@descriptions.add("ADMIN-02", "ADMIN-04", "ADMIN-03", "ADMIN-05", smoke=True)
async def describe_a_round(stage: Stage) -> None:
    """A group is followed from its first assignment through a rebalance to its end."""
    a, b = await stage.completing(stage.member("A"), stage.member("B"))
    completing = stage.describe()
    await completing
    await stage.settle(a, b)
    stable = stage.describe()
    await stable
    stage.join(a)
    await stage.sleep(stage.step)
    preparing = stage.describe()
    await preparing
    for member in (a, b):
        await stage.leave(member)
    empty = stage.describe()
    await empty
    for call in (completing, stable, preparing, empty):
        stage.shows("ADMIN-02", call, "state")
    for call in (completing, preparing):
        stage.shows("ADMIN-04", call, "members", "protocol")
    stage.shows("ADMIN-03", stable, "protocol_type", "protocol", "members", "assignment")
    stage.shows("ADMIN-05", empty, "protocol_type")


@descriptions.add("ADMIN-05")
async def describe_a_simple_group(stage: Stage) -> None:
    """It has no type."""
    stored = await accepted(stage.commit(None, {0: 7}))
    call = stage.describe()
    await call
    stage.shows("ADMIN-05", call, "protocol_type", met=stored)


@descriptions.add("ADMIN-06")
async def describe_instance_ids(stage: Stage) -> None:
    """Of a static and of a dynamic member."""
    version = stage.version("DescribeGroups", at_least=4, at_most=5)
    await stage.stable(stage.member("A", instance="a"), stage.member("B"))
    call = stage.describe(version=version)
    await call
    stage.shows("ADMIN-06", call, "instances")


@descriptions.add("ADMIN-07", "ADMIN-08")
async def describe_several_groups(stage: Stage) -> None:
    """A group, a simple group, and one that does not exist; nobody asked for operations."""
    version = stage.version("DescribeGroups", at_least=3, at_most=5)
    simple, unknown = await neighbours(stage, 2)
    await stage.commit(None, {0: 7}, group_id=simple)
    await stage.stable(stage.member("A"))
    call = stage.describe(stage.group, simple, unknown, version=version)
    await call
    stage.shows("ADMIN-07", call, "groups", "state")
    stage.shows("ADMIN-08", call, "operations")


@descriptions.add("ADMIN-09")
async def describe_a_pending_id(stage: Stage) -> None:
    """Who was only given an id is not there yet."""
    a = stage.member("A")
    asked = await stage.join(a, version=stage.version("JoinGroup", at_least=4))
    stage.need(asked["error_code"] == 79, "no id was handed out")
    call = stage.describe()
    await call
    stage.shows("ADMIN-09", call, "members")


@descriptions.add("ADMIN-10")
async def looking_does_not_extend_the_session(stage: Stage) -> None:
    """Being described and listed keeps nobody alive."""
    (a,) = await stage.stable(stage.member("A"))

    async def look() -> None:
        await stage.describe()
        await listed(stage)

    await busy(stage, beyond_session(stage), look)
    gone = stage.heartbeat(a)
    await gone
    stage.shows("ADMIN-10", gone)


@descriptions.add("ADMIN-10")
async def looking_changes_nothing(stage: Stage) -> None:
    """The group goes on in its generation."""
    (a,) = await stage.stable(stage.member("A"))
    await stage.describe()
    await listed(stage)
    alive = stage.heartbeat(a)
    await alive
    stage.shows("ADMIN-10", alive)


@descriptions.add("ADMIN-11")
async def list_groups_of_every_kind(stage: Stage) -> None:
    """A group with members, a simple one, and one that only handed out an id."""
    simple, pending = await neighbours(stage, 2)
    stored = await accepted(stage.commit(None, {0: 7}, group_id=simple))
    await stage.join(stage.member("P"), group_id=pending)
    await stage.stable(stage.member("A"))
    call = await listed(stage)
    stage.shows("ADMIN-11", call, "error", "listed", "protocol_type", met=stored)


@descriptions.add("ADMIN-11")
async def list_an_emptied_group(stage: Stage) -> None:
    """It is still there, and keeps its type."""
    (a,) = await stage.stable(stage.member("A"))
    stored = await accepted(stage.commit(a, {0: 7}))
    await stage.leave(a)
    call = await listed(stage)
    stage.shows("ADMIN-11", call, "error", "listed", "protocol_type", met=stored)


@descriptions.add("ADMIN-12")
async def list_by_state(stage: Stage) -> None:
    """In any case of letters, and as one of several states; not under another state."""
    await stage.stable(stage.member("A"))
    for states in (("Stable",), ("EMPTY", "sTABLE"), ("Empty", "PreparingRebalance"), ()):
        call = await listed(stage, states, at_least=4)
        stage.shows("ADMIN-12", call, "error", "listed", "state")


@descriptions.add("ADMIN-12")
async def list_empty_groups(stage: Stage) -> None:
    """The states of a group that has no members."""
    stored = await accepted(stage.commit(None, {0: 7}))
    for states in (("empty",), ("Stable",)):
        call = await listed(stage, states, at_least=4)
        stage.shows("ADMIN-12", call, "error", "listed", "state", met=stored)


@descriptions.add("ADMIN-13")
async def list_by_type(stage: Stage) -> None:
    """All groups of this protocol are classic ones."""
    await stage.stable(stage.member("A"))
    for types in (("Classic",), ("consumer",), ("consumer", "classic"), ()):
        call = await listed(stage, types=types, at_least=5)
        stage.shows("ADMIN-13", call, "error", "listed", "type")


@descriptions.add("ADMIN-14")
async def list_by_an_unknown_state(stage: Stage) -> None:
    """Nothing is in a state that does not exist."""
    stored = await accepted(stage.commit(None, {0: 7}))
    call = await listed(stage, ("Nonsense",), at_least=4)
    stage.shows("ADMIN-14", call, "error", "listed", met=stored)


@descriptions.add("ADMIN-14")
async def list_by_an_unknown_type(stage: Stage) -> None:
    """Nothing is of a type that does not exist."""
    stored = await accepted(stage.commit(None, {0: 7}))
    call = await listed(stage, types=("Nonsense",), at_least=5)
    stage.shows("ADMIN-14", call, "error", "listed", met=stored)


@descriptions.add("ADMIN-15")
async def list_without_deleted_groups(stage: Stage) -> None:
    """A deleted group is not listed, nor is one that only was asked about."""
    (unknown,) = await neighbours(stage, 1)
    stored = await accepted(stage.commit(None, {0: 7}))
    deleted = (await stage.delete())["results"][0]["error_code"] == 0
    await stage.describe(unknown)
    call = await listed(stage)
    stage.shows("ADMIN-15", call, "error", "listed", met=stored and deleted)
