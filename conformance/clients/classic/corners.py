"""Scenarios of what clients seldom meet: commits that cannot succeed, nothing to poll for, an odd response."""

import asyncio

from fencepost.adapters.client.cluster import InterceptedRequest, edit, hold, refusal_of
from fencepost.conformance.clients.classic.driven import consume, poll_interval, produce
from fencepost.conformance.clients.classic.interruptions import PROGRESS_S
from fencepost.conformance.clients.classic.memberships import is_told_of_rebalance, require_instance
from fencepost.conformance.clients.stage import RECORDS, ClientScenarioFamily, ClientStage, NotShown
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body, DecodedRequest

FAMILY = ClientScenarioFamily()
QUIET_S = 2.0
POLL_S = 5.0
"""How long a poll of 100 ms may take where there is nothing to poll for."""
FIRST_SYNC_WITH_PROTOCOL = 5
"""The first version of SyncGroup whose response names the protocol (KIP-559)."""


@FAMILY.add("MCOMMIT-06", needs=("driver", "auto-commit", "poll-interval"))
async def a_commit_before_a_rebalance_that_never_succeeds(stage: ClientStage) -> None:
    """The commit before JoinGroup is told that the coordinator is loading, for longer than the rebalance timeout."""
    await consume(stage, RECORDS)
    since = stage.mark()

    def is_told(request: DecodedRequest) -> bool:
        return any(is_told_of_rebalance(event) for event in stage.cluster.events[since:])

    loading = stage.refuse("OffsetCommit", Error.COORDINATOR_LOAD_IN_PROGRESS, times=1_000, matches=is_told)
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    await stage.watch_request("JoinGroup", since=since, seconds=poll_interval(stage) + 4)
    stage.cluster.script.drop(loading)
    await stage.watch_rejoin(since)
    await stage.watch(QUIET_S)


@FAMILY.add("MCOMMIT-06", needs=("driver", "auto-commit"))
async def a_commit_before_a_rebalance_that_is_refused(stage: ClientStage) -> None:
    """The commit before JoinGroup gets an error that does not pass, and says nothing of the membership."""
    await consume(stage, RECORDS)
    for error in (Error.OFFSET_METADATA_TOO_LARGE, Error.UNKNOWN_SERVER_ERROR):
        since = stage.mark()

        def is_told(request: DecodedRequest, since: int = since) -> bool:
            return any(is_told_of_rebalance(event) for event in stage.cluster.events[since:])

        cue = stage.refuse("OffsetCommit", error, matches=is_told)
        stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
        await stage.watch_rejoin(since)
        stage.cluster.script.drop(cue)
        await stage.watch(QUIET_S)
        await produce(stage, 5)


@FAMILY.add("MCOMMIT-14", "MCOMMIT-16", needs=("driver",))
async def commits_without_a_coordinator(stage: ClientStage) -> None:
    """The application commits, once without waiting and once waiting, when the coordinator cannot be found for a
    while."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    stage.refuse("FindCoordinator", Error.COORDINATOR_NOT_AVAILABLE, times=3)
    stage.cluster.hang_up()
    await stage.watch(0.2)
    await stage.do("commit_async")
    await stage.watch(0.2)
    await stage.do("commit")
    stage.application.go_on_polling()
    await produce(stage, 5)
    await stage.watch(2 * QUIET_S)


@FAMILY.add("MCOMMIT-14", needs=("driver",))
async def a_commit_while_lookups_fail(stage: ClientStage) -> None:
    """The application commits, and waits for it, while one lookup of the coordinator after the other fails."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.watch(0.5)
    stage.refuse("FindCoordinator", Error.COORDINATOR_NOT_AVAILABLE, times=5)
    stage.cluster.hang_up()
    await stage.do("commit")
    stage.application.go_on_polling()
    await produce(stage, 5)
    await stage.watch(2 * QUIET_S)


@FAMILY.add("MCOMMIT-15", needs=("driver", "static-membership"))
async def an_unawaited_commit_of_a_fenced_member(stage: ClientStage) -> None:
    """A commit that the application does not wait for is fenced; it commits once more, and polls."""
    require_instance(stage)
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    stage.refuse("OffsetCommit", Error.FENCED_INSTANCE_ID, times=2)
    since = stage.mark()
    await stage.do("commit_async")
    await stage.watch_request("OffsetCommit", since=since, seconds=1)
    await stage.watch(0.3)
    await stage.do("commit")
    stage.application.go_on_polling()
    await stage.watch(QUIET_S)


@FAMILY.add("MEMBER-15", "MEMBER-13", needs=("driver", "static-membership"))
async def a_late_commit_that_is_fenced(stage: ClientStage) -> None:
    """A heartbeat is told that the member is unknown, and a commit that was sent before that is fenced later."""
    require_instance(stage)
    await consume(stage, RECORDS)
    release = asyncio.Event()

    async def forget(intercepted: InterceptedRequest) -> Body | None:
        await release.wait()
        return refusal_of(intercepted.request, Error.UNKNOWN_MEMBER_ID)

    async def fence(intercepted: InterceptedRequest) -> Body | None:
        await release.wait()
        await asyncio.sleep(QUIET_S)
        return refusal_of(intercepted.request, Error.FENCED_INSTANCE_ID)

    stage.application.stop_polling()
    stage.play("Heartbeat", forget, "the next Heartbeat gets UNKNOWN_MEMBER_ID later")
    since = stage.mark()
    await stage.request("Heartbeat", since=since)
    stage.play("OffsetCommit", fence, "the next OffsetCommit gets FENCED_INSTANCE_ID after that")
    await stage.do("commit_async")
    await stage.watch_request("OffsetCommit", since=since, seconds=1)
    release.set()
    stage.application.go_on_polling()
    await stage.watch_rejoin(since)
    await stage.watch(QUIET_S)


@FAMILY.add("CALLBACK-12", "MEMBER-22", needs=("driver",))
async def a_listener_that_raises_when_it_unsubscribes(stage: ClientStage) -> None:
    """The application unsubscribes, and its listener raises; it subscribes again."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("listener", raises=["revoked", "lost"])
    await stage.do("unsubscribe")
    await stage.watch(QUIET_S)
    since = stage.mark()
    await stage.do("listener", raises=[])
    await stage.do("subscribe", topics=[stage.place.topic])
    stage.application.go_on_polling()
    await stage.watch_rejoin(since)


@FAMILY.add("MEMBER-22", "CALLBACK-11", needs=("driver",))
async def a_listener_that_is_slow_when_it_closes(stage: ClientStage) -> None:
    """The application closes its client, and its listener takes its time."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("listener", takes_ms=int(1000 * QUIET_S))
    await stage.ask_to_end()


@FAMILY.add("MEMBER-22", "HBT-04", needs=("driver",))
async def polls_without_a_subscription(stage: ClientStage) -> None:
    """The application unsubscribes, and goes on polling, which may fail; then it subscribes again."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("unsubscribe")
    stage.application.go_on_polling()
    await stage.watch(QUIET_S)
    since = stage.mark()
    stage.application.stop_polling()
    subscribing = stage.start_task(stage.do("subscribe", topics=[stage.place.topic]))
    await asyncio.wait([subscribing], timeout=POLL_S)
    if not subscribing.done():
        raise NotShown("a poll without a subscription does not return")
    await subscribing
    stage.application.go_on_polling()
    await stage.watch_rejoin(since)


@FAMILY.add("MEMBER-28", needs=("driver", "pattern"))
async def a_pattern_that_matches_nothing(stage: ClientStage) -> None:
    """The application subscribes to a pattern that no topic matches, until one comes that does."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("unsubscribe")
    await stage.do("subscribe", pattern=f"later-{stage.place.topic}.*")
    stage.application.go_on_polling()
    await stage.watch(QUIET_S)
    since = stage.mark()
    await stage.cluster.create_topic(f"later-{stage.place.topic}", 1, 1)
    await stage.watch_rejoin(since)
    await stage.watch(1)


@FAMILY.add("PREFETCH-03", "MEMBER-14", needs=("driver",))
async def a_coordinator_that_moves_while_starts_are_asked(stage: ClientStage) -> None:
    """A heartbeat is told that another node coordinates while ListOffsets has no response."""
    release = asyncio.Event()
    stage.play("ListOffsets", hold(release), "ListOffsets is parked")
    await stage.start_and_become_stable()
    stage.refuse("Heartbeat", Error.NOT_COORDINATOR)
    await stage.watch(2.5)
    release.set()
    await stage.watch(PROGRESS_S)


@FAMILY.add("MEMBER-31", needs=("driver",))
async def an_assignment_of_another_protocol(stage: ClientStage) -> None:
    """The response to SyncGroup has another protocol type than the request, and then another protocol."""
    await consume(stage, RECORDS)
    for field in ("protocol_type", "protocol_name"):

        def change(body: Body, field: str = field) -> Body:
            return {**body, field: "connect"} if not body["error_code"] else body

        since = stage.mark()
        stage.play("SyncGroup", edit(change), f"SyncGroup gets the {field} connect")
        stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
        sync = await stage.request("SyncGroup", since=since)
        if sync.version < FIRST_SYNC_WITH_PROTOCOL:
            raise NotShown(f"the client sends SyncGroup v{sync.version}, whose response has no protocol")
        await stage.watch_rejoin(since)
        await stage.watch(QUIET_S)
