"""A coordinator that moves, and connections that end, while the client is stable."""

from fencepost.conformance.clients.scenario import ClientScenarioFamily
from fencepost.conformance.clients.stage import ClientStage

FAMILY = ClientScenarioFamily()


@FAMILY.add("MEMBER-14")
async def a_coordinator_that_moves(stage: ClientStage) -> None:
    """Another node coordinates the group, with everything that is known of it."""
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    since = stage.mark()
    stage.cluster.move()
    await stage.request("FindCoordinator", since=since)
    await stage.response("Heartbeat", since=since)
    await stage.watch(0.5)


@FAMILY.add("MEMBER-14")
async def connections_that_end(stage: ClientStage) -> None:
    """Every connection ends, and the client may come back at once."""
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    since = stage.mark()
    stage.cluster.hang_up()
    await stage.response("Heartbeat", since=since)
    await stage.watch(0.5)
