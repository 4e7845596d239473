"""What the answers of a completed join phase say: one generation, one leader, and the members for it."""

from fencepost.conformance.scenario.context import Stage
from fencepost.conformance.scenario.scenario import Collection

rosters = Collection()


@rosters.add("JOIN-36")
async def one_round_one_answer(stage: Stage) -> None:
    """Two members of a round are told the same."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    for call in await stage.regroup(a, b):
        stage.shows("JOIN-36", call, "error", "generation", "protocol", "leader")


@rosters.add("JOIN-37", smoke=True)
async def members_for_the_leader_alone(stage: Stage) -> None:
    """The leader sees everyone's metadata for the selected protocol, the follower sees nobody's."""
    a, b = await stage.stable(
        stage.member("A", ("p", b"p of A"), ("q", b"q of A"), protocol_type="worker"),
        stage.member("B", ("p", b"p of B"), ("q", b"q of B"), protocol_type="worker"),
    )
    for call in await stage.regroup(a, b):
        stage.shows("JOIN-37", call, "members")


@rosters.add("JOIN-38")
async def kept_member_is_listed(stage: Stage) -> None:
    """A static member that did not come back is among the members, and so is the leader itself."""
    stage.version("JoinGroup", 5)
    a = stage.silent("A")
    await stage.stable(a, stage.silent("S", instance="static"))
    call = stage.join_changed(a)
    await call
    stage.shows("JOIN-38", call, "members")


@rosters.add("JOIN-39")
async def answered_id_is_good(stage: Stage) -> None:
    """A member that learns its id with its first success uses it."""
    a = stage.member("A")
    call = stage.join(a, version=stage.version("JoinGroup", 0, 3))
    body = await call
    used = stage.heartbeat(a)
    await used
    stage.shows("JOIN-39", used, met=body["error_code"] == 0)


@rosters.add("JOIN-54")
async def metadata_is_opaque(stage: Stage) -> None:
    """All bytes there are, and none, come back as they were sent."""
    a = stage.member("A", ("p", bytes(range(256))), protocol_type="worker")
    call = await stage.enter(a)
    await call
    stage.shows("JOIN-54", call, "members")
    call = stage.join(a, protocols=[{"name": "p", "metadata": b""}])
    await call
    stage.shows("JOIN-54", call, "members")


@rosters.add("JOIN-55")
async def instances_are_listed(stage: Stage) -> None:
    """A static member sees its instance id in the list."""
    call = await stage.enter(stage.member("A", instance="static"), version=stage.version("JoinGroup", 5))
    await call
    stage.shows("JOIN-55", call, "instances")
