"""Scenarios in which the same thing happens while one request after the other has no response, and of what clients
seldom meet.

What a client does on a command or on a loss depends on what it waits for: each of the former scenarios goes through all
of these.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fencepost.adapters.client.cluster import Cue, Fault, InterceptedRequest, delay, edit, hold, refusal_of
from fencepost.conformance.classic.clients.draining import PROGRESS_S
from fencepost.conformance.classic.clients.driven import (
    consume,
    is_told_of_rebalance,
    poll_interval,
    produce,
    require_instance,
)
from fencepost.conformance.clients.stage import RECORDS, ClientScenarioFamily, ClientStage, NotShown, has_member_id
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body, DecodedRequest

# -- while a request has no response ----------------------------------------------------------------------------------

FAMILY = ClientScenarioFamily()
REACHED_S = 4.0
"""How long a scenario waits for the request that is parked; a client need not send it."""
TAKEN_S = 0.1
"""When a request that has arrived is parked."""
PARKED_S = 0.6
"""How long a request is parked after something has happened."""
SETTLED_S = 1.0
LISTENER_S = 3.0
PARKED_JOIN_S = 2.0
"""So long after the news of its loss, a client has read that when its JoinGroup succeeds."""
FATAL_ERRORS = (
    Error.GROUP_AUTHORIZATION_FAILED,
    Error.INCONSISTENT_GROUP_PROTOCOL,
    Error.INVALID_SESSION_TIMEOUT,
    Error.INVALID_GROUP_ID,
    Error.GROUP_MAX_SIZE_REACHED,
)


@dataclass(frozen=True, slots=True)
class Crossing:
    """A request of the client that has no response until `release` is set."""

    api: str
    release: asyncio.Event


async def park(stage: ClientStage, api: str, provoke: Callable[[], object], **options: Any) -> Crossing:
    """The next request to an API is parked; `provoke` makes the client send it."""
    release, since = asyncio.Event(), stage.mark()
    cue = stage.play(api, hold(release), f"{api} is parked", **options)
    provoked = provoke()
    if isinstance(provoked, Awaitable):
        await provoked
    await stage.watch_request(api, since=since, seconds=REACHED_S)
    await stage.watch(TAKEN_S)
    stage.cluster.script.drop(cue)  # a request that comes later is none of this crossing
    return Crossing(api, release)


def told_to_rejoin(stage: ClientStage) -> Callable[[], Cue]:
    """Has the next heartbeat told of a rebalance."""
    return lambda: stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)


def told_that_it_moved(stage: ClientStage) -> Callable[[], Cue]:
    """Has the next heartbeat told that another node coordinates."""
    return lambda: stage.refuse("Heartbeat", Error.NOT_COORDINATOR)


def refuse_later(release: asyncio.Event, error: Error) -> Fault:
    """Respond with an error, but not before the release."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        await release.wait()
        return refusal_of(intercepted.request, error)

    return respond


async def crossings(stage: ClientStage) -> AsyncIterator[Crossing]:
    """The client starts, and waits for the response to one request after the other."""

    yield await park(stage, "ListOffsets", stage.start_and_become_stable)
    yield await park(stage, "JoinGroup", told_to_rejoin(stage), matches=has_member_id)
    yield await park(stage, "SyncGroup", told_to_rejoin(stage))
    yield await park(stage, "OffsetFetch", lambda: stage.evict("Heartbeat"))
    yield await park(stage, "Heartbeat", lambda: None)
    yield await park(stage, "OffsetCommit", lambda: stage.do("commit_async"))
    yield await park(stage, "FindCoordinator", told_that_it_moved(stage))


async def let_go(stage: ClientStage, crossing: Crossing) -> None:
    """The request is responded to after a while, and the application polls."""
    await stage.watch(PARKED_S)
    crossing.release.set()
    stage.application.go_on_polling()


async def do_across(stage: ClientStage, crossing: Crossing, command: str) -> None:
    """The application begins a command, which may wait for the response, and the request is responded to after a
    while."""
    doing = stage.start_task(stage.do(command))
    await stage.watch(PARKED_S)
    crossing.release.set()
    await doing


async def do_meanwhile(stage: ClientStage, crossing: Crossing, command: str, **fields: Any) -> None:
    """The application does something. Where that waits for the response, as the polls of some clients do, the request
    is responded to after a while."""
    doing = stage.start_task(stage.do(command, **fields))
    await asyncio.wait([doing], timeout=PARKED_S)
    if not doing.done():
        crossing.release.set()
    await doing


@FAMILY.add("MEMBER-27", "CALLBACK-04", "POLL-18", needs=("driver",))
async def other_subscriptions_at_any_time(stage: ClientStage) -> None:
    """The application subscribes to a second topic, or to the first one alone, whatever the client waits for."""
    own, other = stage.place.topic, f"{stage.place.topic}-other"
    await stage.cluster.create_topic(other, 2, RECORDS)
    topics = [own]
    async for crossing in crossings(stage):
        since = stage.mark()
        topics = [own, other] if topics == [own] else [own]
        stage.application.stop_polling()
        await do_meanwhile(stage, crossing, "subscribe", topics=topics)
        await let_go(stage, crossing)
        await stage.watch_rejoin(since)
        await stage.watch(SETTLED_S)


@FAMILY.add("MEMBER-22", "MEMBER-29", "CALLBACK-11", needs=("driver",))
async def unsubscribing_at_any_time(stage: ClientStage) -> None:
    """The application unsubscribes, and subscribes again, whatever the client waits for."""
    async for crossing in crossings(stage):
        since = stage.mark()
        stage.application.stop_polling()
        await do_across(stage, crossing, "unsubscribe")
        await stage.do("subscribe", topics=[stage.place.topic])
        stage.application.go_on_polling()
        await stage.watch_rejoin(since)
        await stage.watch(SETTLED_S)


@FAMILY.add("MEMBER-14", "PREFETCH-03", needs=("driver",))
async def connections_that_end_at_any_time(stage: ClientStage) -> None:
    """Every connection ends, whatever the client waits for."""
    async for crossing in crossings(stage):
        stage.cluster.hang_up()
        await let_go(stage, crossing)
        await produce(stage, 5)
        await stage.watch(4 * SETTLED_S)


@FAMILY.add("MEMBER-37", needs=("driver",))
async def rebalances_asked_for_at_any_time(stage: ClientStage) -> None:
    """The application asks for a rebalance, whatever the client waits for."""
    async for crossing in crossings(stage):
        since = stage.mark()
        stage.application.stop_polling()
        await do_meanwhile(stage, crossing, "rejoin")
        await let_go(stage, crossing)
        await stage.watch_rejoin(since)
        await stage.watch(SETTLED_S)


@FAMILY.add("MCOMMIT-03", "MCOMMIT-08", "MCOMMIT-11", needs=("driver",))
async def commits_at_any_time(stage: ClientStage) -> None:
    """The application commits, once without waiting and once waiting, whatever the client waits for."""
    async for crossing in crossings(stage):
        stage.application.stop_polling()
        await do_meanwhile(stage, crossing, "commit_async")
        await do_across(stage, crossing, "commit")
        stage.application.go_on_polling()
        await produce(stage, 5)
        await stage.watch(3 * SETTLED_S)


@FAMILY.add("POLL-09", "POLL-11", "PREFETCH-08", needs=("driver",))
async def seeks_and_pauses_at_any_time(stage: ClientStage) -> None:
    """The application sets one position and pauses another partition, whatever the client waits for."""
    sought, paused = 3, [[stage.place.topic, 1]]
    async for crossing in crossings(stage):
        stage.application.stop_polling()
        await do_meanwhile(stage, crossing, "seek", topic=stage.place.topic, partition=0, offset=sought)
        await do_meanwhile(stage, crossing, "pause", partitions=paused)
        sought += 3
        await let_go(stage, crossing)
        await produce(stage, 5)
        await stage.watch(2 * SETTLED_S)
        await stage.do("resume", partitions=paused)
        await stage.watch(SETTLED_S)


@FAMILY.add("MEMBER-26", "CALLBACK-18", "MCOMMIT-12", needs=("driver", "manual-assignment"))
async def partitions_assigned_at_any_time(stage: ClientStage) -> None:
    """The application assigns partitions itself and subscribes again later, whatever the client waits for."""
    async for crossing in crossings(stage):
        stage.application.stop_polling()
        await do_across(stage, crossing, "unsubscribe")
        await stage.do("assign", partitions=[[stage.place.topic, number] for number in range(2)])
        await produce(stage, 5)
        stage.application.go_on_polling()
        await stage.watch(2 * SETTLED_S)
        since = stage.mark()
        stage.application.stop_polling()
        await stage.do("commit")
        await stage.do("unsubscribe")
        await stage.do("subscribe", topics=[stage.place.topic])
        stage.application.go_on_polling()
        await stage.watch_rejoin(since)


@FAMILY.add("MEMBER-29", "CALLBACK-11", "MCOMMIT-07", needs=("driver",))
async def closing_while_joining(stage: ClientStage) -> None:
    """The application closes its client while JoinGroup has no response."""
    await close_while(stage, "JoinGroup", told_to_rejoin(stage), matches=has_member_id)


@FAMILY.add("MEMBER-22", "CALLBACK-11", "MCOMMIT-07", needs=("driver",))
async def closing_while_syncing(stage: ClientStage) -> None:
    """The application closes its client while SyncGroup has no response."""
    await close_while(stage, "SyncGroup", told_to_rejoin(stage))


@FAMILY.add("MEMBER-22", "CALLBACK-11", needs=("driver",))
async def closing_while_offsets_are_fetched(stage: ClientStage) -> None:
    """The application closes its client while OffsetFetch has no response."""
    await close_while(stage, "OffsetFetch", lambda: stage.evict("Heartbeat"))


@FAMILY.add("MEMBER-22", "MCOMMIT-07", needs=("driver",))
async def closing_while_a_commit_is_out(stage: ClientStage) -> None:
    """The application closes its client while a commit that it does not wait for has no response."""
    await close_while(stage, "OffsetCommit", lambda: stage.do("commit_async"))


@FAMILY.add("MEMBER-22", "MEMBER-25", "CALLBACK-11", needs=("driver",))
async def closing_without_a_coordinator(stage: ClientStage) -> None:
    """The application closes its client while FindCoordinator has no response."""
    await close_while(stage, "FindCoordinator", told_that_it_moved(stage))


async def close_while(stage: ClientStage, api: str, provoke: Callable[[], object], **options: Any) -> None:
    """The client is asked to close while it waits for the response to a request, which comes later."""
    await consume(stage, RECORDS)
    crossing = await park(stage, api, provoke, **options)

    async def release_later() -> None:
        await stage.watch(SETTLED_S)
        crossing.release.set()

    stage.start_task(release_later())
    await stage.ask_to_end()


@FAMILY.add("MEMBER-29", "MEMBER-13", needs=("driver",))
async def a_membership_lost_while_joining(stage: ClientStage) -> None:
    """The client joins again when a heartbeat has no response, which is then that nobody knows the member."""
    await consume(stage, RECORDS)
    for error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
        release, since = asyncio.Event(), stage.mark()
        stage.play("Heartbeat", refuse_later(release, error), f"the next Heartbeat gets {error.name}, later")
        await stage.watch_request("Heartbeat", since=since, seconds=REACHED_S)
        stage.play("JoinGroup", delay(PARKED_JOIN_S), "the response to JoinGroup takes 2 s", matches=has_member_id)
        stage.application.stop_polling()
        await stage.do("rejoin")
        stage.application.go_on_polling()
        await stage.watch(PARKED_S)
        release.set()
        await stage.watch_rejoin(since)
        await stage.watch(2 * SETTLED_S)


@FAMILY.add("MEMBER-13", "CALLBACK-05", needs=("driver", "poll-interval"))
async def a_membership_lost_in_a_listener(stage: ClientStage) -> None:
    """A heartbeat is told that nobody knows the member, or that its generation is over, while the listener runs."""
    await consume(stage, RECORDS)
    takes_s = min(LISTENER_S, poll_interval(stage) / 2)
    stage.application.stop_polling()
    await stage.do("listener", takes_ms=int(1000 * takes_s))
    stage.application.go_on_polling()
    for error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
        since = stage.mark()
        stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
        stage.refuse("Heartbeat", error)
        await stage.watch_rejoin(since)
        await stage.watch(2 * SETTLED_S)


@FAMILY.add("MEMBER-18", needs=("driver",))
async def exchanges_that_are_refused_for_good(stage: ClientStage) -> None:
    """JoinGroup and SyncGroup get one error after the other that the application is told of."""
    await consume(stage, RECORDS)
    for api, errors in (("JoinGroup", FATAL_ERRORS), ("SyncGroup", FATAL_ERRORS[:2])):
        for error in errors:
            since = stage.mark()
            stage.refuse(api, error)
            stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
            await stage.watch_rejoin(since)
            await stage.watch(SETTLED_S)


@FAMILY.add("MEMBER-38", "PREFETCH-03", needs=("driver",))
async def a_lookup_that_is_refused_for_good(stage: ClientStage) -> None:
    """FindCoordinator gets errors that the application is told of."""
    await refuse_for_good(stage, "FindCoordinator")


@FAMILY.add("MEMBER-38", "MCOMMIT-19", "PREFETCH-03", needs=("driver",))
async def offsets_that_are_refused_for_good(stage: ClientStage) -> None:
    """OffsetFetch gets errors that the application is told of."""
    await refuse_for_good(stage, "OffsetFetch")


REFUSED_MS = 4_000
"""How long after the start a client is refused whose application is told nothing. In milliseconds."""


async def refuse_for_good(stage: ClientStage, api: str) -> None:
    """Start the client, whose first requests to an API are refused, and watch how it goes on. A refusal for
    authorization lasts until its application is told, as a real one does: what is refused once may be tried again."""

    def is_hidden(request: DecodedRequest) -> bool:
        is_told = any(each.api == "result" and "error" in each.body for each in stage.cluster.events)
        return not is_told and stage.cluster.now() < REFUSED_MS

    stage.refuse(api, Error.GROUP_AUTHORIZATION_FAILED, times=1_000, matches=is_hidden)
    stage.refuse(api, Error.UNKNOWN_SERVER_ERROR)
    await stage.start_and_become_stable()
    await stage.watch(PROGRESS_S)


# -- what clients seldom meet -----------------------------------------------------------------------------------------

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
