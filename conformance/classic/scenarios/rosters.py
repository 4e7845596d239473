"""Responses of a completed join phase: one generation, one leader, and the members for the leader."""

from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily

rosters = ScenarioFamily()


@rosters.add("JOIN-36")
async def one_round_one_answer(group: ScenarioContext) -> None:
    """Two members get the same generation, protocol and leader."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    for call in await group.rebalance(a, b):
        await group.check("JOIN-36", call, fields=("error", "generation", "protocol", "leader"))


@rosters.add("JOIN-37", smoke=True)
async def members_for_the_leader_alone(group: ScenarioContext) -> None:
    """The leader gets all members with their metadata for the selected protocol; the follower gets none."""
    a, b = await group.form_stable_group(
        group.member("A", ("p", b"p of A"), ("q", b"q of A"), protocol_type="worker"),
        group.member("B", ("p", b"p of B"), ("q", b"q of B"), protocol_type="worker"),
    )
    for call in await group.rebalance(a, b):
        await group.check("JOIN-37", call, fields="members")


@rosters.add("JOIN-38")
async def kept_member_is_listed(group: ScenarioContext) -> None:
    """The list of members has the leader itself, and a static member that did not rejoin."""
    group.highest_version("JoinGroup", 5)
    a = group.member_without_heartbeats("A")
    await group.form_stable_group(a, group.member_without_heartbeats("S", instance="static"))

    await group.check("JOIN-38", group.join_with_new_metadata(a), fields="members")


@rosters.add("JOIN-39")
async def answered_id_is_good(group: ScenarioContext) -> None:
    """A member can use the id that it got with its first success."""
    a = group.member("A")
    call = group.join(a, version=group.highest_version("JoinGroup", 0, 3))
    body = await call

    await group.check("JOIN-39", group.heartbeat(a), reached=body["error_code"] == 0)


@rosters.add("JOIN-54")
async def metadata_is_opaque(group: ScenarioContext) -> None:
    """Metadata of all byte values, and empty ones, are returned unchanged."""
    a = group.member("A", ("p", bytes(range(256))), protocol_type="worker")
    await group.check("JOIN-54", await group.join_new(a), fields="members")
    await group.check("JOIN-54", group.join(a, protocols=[{"name": "p", "metadata": b""}]), fields="members")


@rosters.add("JOIN-55")
async def instances_are_listed(group: ScenarioContext) -> None:
    """The list of members has the instance id of a static member."""
    await group.check(
        "JOIN-55",
        await group.join_new(group.member("A", instance="static"), version=group.highest_version("JoinGroup", 5)),
        fields="instances",
    )


@rosters.add("JOIN-55")
async def old_leader_of_a_static_member(group: ScenarioContext) -> None:
    """A leader that rejoins in a version without instance ids gets the list of members, a static one among them."""
    group.highest_version("JoinGroup", 5)
    old = group.highest_version("JoinGroup", 0, 4)
    (leader,) = await group.form_stable_group(group.member_without_heartbeats("A"))
    joined = await group.join_new(group.member_without_heartbeats("S", instance="static"))
    await group.wait_for_state(PREPARING)
    await group.check("JOIN-55", group.join(leader, version=old), fields=("error", "members"))
    await joined
