"""Scenarios for clients with a driver: listeners that raise, that commit, or that know nothing of lost partitions."""

from fencepost.conformance.clients.classic.driven import consume
from fencepost.conformance.clients.stage import RECORDS, ClientScenarioFamily, ClientStage
from fencepost.model.errors import Error

FAMILY = ClientScenarioFamily()


@FAMILY.add("CALLBACK-12", "CALLBACK-13", needs=("driver",))
async def a_listener_that_raises(stage: ClientStage) -> None:
    """The listener raises when partitions are revoked, and when some are assigned, in the same rebalance."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("listener", raises=["revoked", "assigned"])
    stage.application.go_on_polling()
    since = stage.mark()
    stage.start_task(stage.add_member().take_part())
    await stage.watch_rejoin(since)
    await stage.watch(1)


@FAMILY.add("CALLBACK-12", needs=("driver",))
async def a_listener_that_raises_first(stage: ClientStage) -> None:
    """The listener raises when partitions are revoked, and never again."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("listener", raises=["revoked"])
    stage.application.go_on_polling()
    since = stage.mark()
    stage.start_task(stage.add_member().take_part())
    await stage.watch_rejoin(since)
    await stage.watch(1)


@FAMILY.add("CALLBACK-16", needs=("driver",))
async def a_listener_that_commits(stage: ClientStage) -> None:
    """The listener commits when partitions are revoked."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("listener", commits=["revoked"])
    stage.application.go_on_polling()
    since = stage.mark()
    stage.start_task(stage.add_member().take_part())
    await stage.watch_rejoin(since)
    await stage.watch(1.5)


@FAMILY.add("CALLBACK-15", needs=("driver",))
async def a_listener_for_revoked_partitions(stage: ClientStage) -> None:
    """The listener knows nothing of lost partitions, and the generation is over."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("listener", lost=False)
    stage.application.go_on_polling()
    await stage.watch(0.3)
    since = stage.mark()
    stage.evict("Heartbeat")
    await stage.response("Heartbeat", Error.UNKNOWN_MEMBER_ID, since=since)
    await stage.watch_rejoin(since)
