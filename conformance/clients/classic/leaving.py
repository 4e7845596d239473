"""Closing: in the middle of joining, and with a LeaveGroup that fails."""

import asyncio
from contextlib import suppress

from fencepost.adapters.client.cluster import hold
from fencepost.conformance.clients.stage import (
    CLOSING_S,
    ClientScenarioFamily,
    ClientStage,
    NotShown,
    StageBlocked,
    has_member_id,
)
from fencepost.model.errors import Error

FAMILY = ClientScenarioFamily()


@FAMILY.add("MEMBER-24")
async def closing_with_a_pending_id(stage: ClientStage) -> None:
    """The client is asked to close when it has nothing but a member id."""
    if stage.facts.is_static:
        raise NotShown("a static member is a member as soon as it has an id")
    release = asyncio.Event()
    stage.play("JoinGroup", hold(release), "JoinGroup with the new id is parked", matches=has_member_id)
    await stage.start()
    await stage.request("JoinGroup", seconds=stage.start_seconds, where=lambda event: bool(event.body["member_id"]))
    await stage.watch(0.5)
    stage.start_task(release_later(stage, release))
    await stage.ask_to_end()


async def release_later(stage: ClientStage, release: asyncio.Event) -> None:
    """Go on with what is parked once the client has left: LeaveGroup waits for its response behind it."""
    with suppress(StageBlocked):
        await stage.request("LeaveGroup", seconds=CLOSING_S)
    release.set()


@FAMILY.add("MEMBER-22", "MEMBER-25")
async def a_leave_that_fails(stage: ClientStage) -> None:
    """The response to LeaveGroup is an error."""
    stage.refuse("LeaveGroup", Error.COORDINATOR_NOT_AVAILABLE, times=1_000)
    await stage.start_and_become_stable()
    await stage.watch(0.5)
    await stage.ask_to_end()
