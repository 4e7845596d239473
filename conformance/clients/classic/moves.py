"""A coordinator that moves, and connections that end, while the client is stable."""

from fencepost.adapters.client.cluster import double, lose
from fencepost.conformance.clients.stage import ClientScenarioFamily, ClientStage

FAMILY = ClientScenarioFamily()
MAX_SILENCE_S = 14
"""How long a silent coordinator is waited out."""


@FAMILY.add("MEMBER-14", "MEMBER-39")
async def a_coordinator_that_moves(stage: ClientStage) -> None:
    """Another node coordinates the group, with everything that is known of it."""
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    since = stage.mark()
    await stage.cluster.move()
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


@FAMILY.add("HBT-11", "MEMBER-14")
async def a_coordinator_that_falls_silent(stage: ClientStage) -> None:
    """Nothing more comes on the connection to the coordinator, which is there over another one."""
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    since = stage.mark()
    stage.play("Heartbeat", lose(), "nothing more comes on the connection of the next Heartbeat")
    patience = stage.facts.session_timeout / 1000 + 4
    await stage.watch_request("FindCoordinator", since=since, seconds=min(patience, MAX_SILENCE_S))
    await stage.watch(2)


@FAMILY.add("MEMBER-14")
async def a_response_that_comes_twice(stage: ClientStage) -> None:
    """The response to a heartbeat comes twice: the client may close the connection, and keeps its membership."""
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    since = stage.mark()
    stage.play("Heartbeat", double(), "the response to the next Heartbeat comes twice")
    await stage.response("Heartbeat", since=since)
    await stage.response("Heartbeat", since=stage.mark())
    await stage.watch(1)
