"""Scenarios in which the same thing happens while one request after the other has no response.

What a client does on a command or on a loss depends on what it waits for: each scenario goes through all of these.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fencepost.adapters.client.cluster import Cue, Fault, InterceptedRequest, delay, hold, refusal_of
from fencepost.conformance.clients.classic.driven import consume, poll_interval, produce
from fencepost.conformance.clients.classic.interruptions import PROGRESS_S
from fencepost.conformance.clients.stage import RECORDS, ClientScenarioFamily, ClientStage, has_member_id
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body

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


async def refuse_for_good(stage: ClientStage, api: str) -> None:
    """Start the client, whose first requests to an API are refused, and watch how it goes on."""
    for error in (Error.GROUP_AUTHORIZATION_FAILED, Error.UNKNOWN_SERVER_ERROR):
        stage.refuse(api, error)
    await stage.start_and_become_stable()
    await stage.watch(PROGRESS_S)
