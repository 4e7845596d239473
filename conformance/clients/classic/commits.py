"""Scenarios for clients with a driver: commits and fetches that fail or take long, some behind the application."""

from fencepost.adapters.client.cluster import delay, hang_up
from fencepost.conformance.clients.classic.driven import consume, produce
from fencepost.conformance.clients.classic.memberships import require_instance
from fencepost.conformance.clients.stage import RECORDS, ClientScenarioFamily, ClientStage
from fencepost.model.errors import Error

FAMILY = ClientScenarioFamily()


@FAMILY.add("MCOMMIT-14", needs=("driver",))
async def a_commit_that_is_lost(stage: ClientStage) -> None:
    """The connection of the application's commit is closed in the place of its response."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    stage.play("OffsetCommit", hang_up(), "the connection of the next OffsetCommit is closed")
    stage.start_task(stage.do("commit"))
    await stage.watch(8)
    stage.application.go_on_polling()


@FAMILY.add("MCOMMIT-09", needs=("driver",))
async def a_commit_that_tells_of_a_rebalance(stage: ClientStage) -> None:
    """A commit of the application is told of a rebalance, of which no heartbeat tells."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    since = stage.mark()
    stage.refuse("OffsetCommit", Error.REBALANCE_IN_PROGRESS)
    await stage.do("commit")
    stage.application.go_on_polling()
    await stage.watch_rejoin(since)
    await stage.watch(2)


@FAMILY.add("MCOMMIT-15", needs=("driver", "auto-commit", "static-membership"))
async def a_periodic_commit_of_a_fenced_member(stage: ClientStage) -> None:
    """A commit of a static member is fenced that its application does not wait for."""
    require_instance(stage)
    await consume(stage, RECORDS)
    stage.refuse("OffsetCommit", Error.FENCED_INSTANCE_ID)
    await stage.watch(4)


@FAMILY.add("CALLBACK-07", "MCOMMIT-07", needs=("driver", "auto-commit"))
async def a_last_commit_that_takes_long(stage: ClientStage) -> None:
    """The application closes its client, and the response to its last commit takes 1 s."""
    await consume(stage, RECORDS)
    await produce(stage, 3)
    await stage.watch(0.5)
    stage.play("OffsetCommit", delay(1), "the response to OffsetCommit takes 1 s", times=1_000)
    await stage.ask_to_end()


@FAMILY.add("PREFETCH-05", needs=("driver",))
async def fetches_that_take_long(stage: ClientStage) -> None:
    """Each Fetch takes 1.5 s for its response, while records are written."""
    await consume(stage, RECORDS)
    slow = stage.play("Fetch", delay(1.5), "the response to Fetch takes 1.5 s", times=1_000)
    for _ in range(3):
        await produce(stage, 3)
        await stage.watch(1.5)
    stage.cluster.script.drop(slow)
    await stage.watch(1)
