"""Scenarios in which a request never gets a response: the client waits for its request timeout, and goes on."""

from fencepost.adapters.client.cluster import lose
from fencepost.conformance.clients.classic.driven import MAX_INTERVAL_MS, consume, poll_interval
from fencepost.conformance.clients.classic.interruptions import PROGRESS_S
from fencepost.conformance.clients.stage import RECORDS, ClientScenarioFamily, ClientStage, NotShown
from fencepost.model.errors import Error
from fencepost.traces.events import Kind

FAMILY = ClientScenarioFamily()
SLACK_S = 4.0
"""How much later than its request timeout a client may give a request up."""


def request_timeout(stage: ClientStage) -> float:
    """The request timeout of the client in seconds. Raises `NotShown` if it is not known, or takes too long."""
    events = stage.cluster.events
    told = next((event for event in events if event.kind is Kind.INTERNAL and event.api == "driver"), None)
    timeout = int(told.body.get("timeouts", {}).get("request", 0)) if told is not None else 0
    if not 0 < timeout <= MAX_INTERVAL_MS:
        raise NotShown(f"the request timeout of the client is {timeout or 'not known'}; {MAX_INTERVAL_MS} ms is waited")
    return timeout / 1000


def lose_next(stage: ClientStage, api: str) -> None:
    """The next request to an API gets no response, nor does anything else on its connection."""
    stage.play(api, lose(), f"nothing more comes on the connection of the next {api}")


@FAMILY.add("MEMBER-01", needs=("driver",))
async def a_lookup_without_a_response(stage: ClientStage) -> None:
    """The first FindCoordinator gets no response."""
    lose_next(stage, "FindCoordinator")
    await stage.start()
    first = await stage.request("FindCoordinator", seconds=stage.start_seconds)
    timeout = request_timeout(stage)
    await stage.request("FindCoordinator", since=first.sequence + 1, seconds=timeout + SLACK_S)
    await stage.become_stable(since=first.sequence)
    await stage.watch(1)


@FAMILY.add("MEMBER-14", "MEMBER-32", needs=("driver", "poll-interval"))
async def a_join_without_a_response(stage: ClientStage) -> None:
    """A JoinGroup gets no response."""
    await consume(stage, RECORDS)
    interval = poll_interval(stage)
    since = stage.mark()
    lose_next(stage, "JoinGroup")
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    first = await stage.request("JoinGroup", since=since)
    timeout = max(interval + 5, request_timeout(stage))
    await stage.request("JoinGroup", since=first.sequence + 1, seconds=timeout + SLACK_S)
    await stage.become_stable(since=first.sequence)
    await stage.watch(1)


@FAMILY.add("MEMBER-14", "MEMBER-16", needs=("driver",))
async def a_sync_without_a_response(stage: ClientStage) -> None:
    """A SyncGroup gets no response."""
    await consume(stage, RECORDS)
    since = stage.mark()
    lose_next(stage, "SyncGroup")
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    first = await stage.request("SyncGroup", since=since)
    await stage.request("JoinGroup", since=first.sequence, seconds=request_timeout(stage) + SLACK_S)
    await stage.become_stable(since=first.sequence)
    await stage.watch(1)


@FAMILY.add("PREFETCH-03", "MCOMMIT-19", needs=("driver",))
async def first_offsets_without_a_response(stage: ClientStage) -> None:
    """The first OffsetFetch gets no response, and later the first ListOffsets."""
    for api in ("OffsetFetch", "ListOffsets"):
        lose_next(stage, api)
    await stage.start_and_become_stable()
    await stage.watch(stage.facts.session_timeout / 1000 + request_timeout(stage) + SLACK_S + PROGRESS_S)


@FAMILY.add("MCOMMIT-14", needs=("driver",))
async def a_commit_without_a_response(stage: ClientStage) -> None:
    """A commit that the application waits for gets no response."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    lose_next(stage, "OffsetCommit")
    stage.start_task(stage.do("commit"))
    await stage.watch(request_timeout(stage) + SLACK_S + 7)
    stage.application.go_on_polling()
    await stage.watch(1)


@FAMILY.add("MCOMMIT-14", needs=("driver",))
async def an_unawaited_commit_without_a_response(stage: ClientStage) -> None:
    """A commit that the application does not wait for gets no response."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    lose_next(stage, "OffsetCommit")
    await stage.do("commit_async")
    stage.application.go_on_polling()
    await stage.watch(request_timeout(stage) + SLACK_S + 3)
