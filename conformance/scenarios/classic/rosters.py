"""What the answers of a completed join phase say: one generation, one leader, and the members for it."""

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

rosters = ScenarioFamily()


@rosters.add("JOIN-36")
async def one_round_one_answer(context: ScenarioContext) -> None:
    """Two members of a round are told the same."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    for call in await context.rebalance(a, b):
        context.check("JOIN-36", call, "error", "generation", "protocol", "leader")


@rosters.add("JOIN-37", smoke=True)
async def members_for_the_leader_alone(context: ScenarioContext) -> None:
    """The leader sees everyone's metadata for the selected protocol, the follower sees nobody's."""
    a, b = await context.form_stable_group(
        context.member("A", ("p", b"p of A"), ("q", b"q of A"), protocol_type="worker"),
        context.member("B", ("p", b"p of B"), ("q", b"q of B"), protocol_type="worker"),
    )
    for call in await context.rebalance(a, b):
        context.check("JOIN-37", call, "members")


@rosters.add("JOIN-38")
async def kept_member_is_listed(context: ScenarioContext) -> None:
    """A static member that did not come back is among the members, and so is the leader itself."""
    context.highest_version("JoinGroup", 5)
    a = context.member_without_heartbeats("A")
    await context.form_stable_group(a, context.member_without_heartbeats("S", instance="static"))
    call = context.join_with_new_metadata(a)
    await call
    context.check("JOIN-38", call, "members")


@rosters.add("JOIN-39")
async def answered_id_is_good(context: ScenarioContext) -> None:
    """A member that learns its id with its first success uses it."""
    a = context.member("A")
    call = context.join(a, version=context.highest_version("JoinGroup", 0, 3))
    body = await call
    used = context.heartbeat(a)
    await used
    context.check("JOIN-39", used, reached=body["error_code"] == 0)


@rosters.add("JOIN-54")
async def metadata_is_opaque(context: ScenarioContext) -> None:
    """All bytes there are, and none, come back as they were sent."""
    a = context.member("A", ("p", bytes(range(256))), protocol_type="worker")
    call = await context.join_new(a)
    await call
    context.check("JOIN-54", call, "members")
    call = context.join(a, protocols=[{"name": "p", "metadata": b""}])
    await call
    context.check("JOIN-54", call, "members")


@rosters.add("JOIN-55")
async def instances_are_listed(context: ScenarioContext) -> None:
    """A static member sees its instance id in the list."""
    call = await context.join_new(
        context.member("A", instance="static"), version=context.highest_version("JoinGroup", 5)
    )
    await call
    context.check("JOIN-55", call, "instances")
