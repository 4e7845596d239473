"""Scenarios about memberships: static members, leaders that are told to skip, clients that leave while they join."""

import asyncio

from fencepost.adapters.client.cluster import Fault, delay, edit, hold
from fencepost.conformance.clients.classic.assignments import METADATA_S
from fencepost.conformance.clients.classic.driven import consume, poll_interval
from fencepost.conformance.clients.classic.rebalances import join_as_leader, keep_alive, lead, plan_round
from fencepost.conformance.clients.stage import (
    PARTITIONS,
    RECORDS,
    ClientScenarioFamily,
    ClientStage,
    NotShown,
    StageBlocked,
    has_member_id,
)
from fencepost.model.assignors.consumer_protocol import decode_assignment, encode_assignment
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body, DecodedRequest
from fencepost.traces.client_judge.classic.state import COOPERATIVE_ASSIGNORS
from fencepost.traces.events import Event, Kind

FAMILY = ClientScenarioFamily()
FIRST_SKIPPING_JOIN = 9
"""The first version of JoinGroup that may tell a leader to skip the assignment (KIP-814)."""


@FAMILY.add("MEMBER-09")
async def a_leader_that_is_told_to_skip(stage: ClientStage) -> None:
    """The leader is told to skip the assignment, and the topic grows later."""
    everything = encode_assignment([(stage.place.topic, number) for number in range(PARTITIONS)], version=1)
    skip = edit(lambda body: {**body, "skip_assignment": True})
    stage.play("JoinGroup", skip, "JoinGroup says to skip the assignment", times=2)
    stage.play("SyncGroup", edit(lambda body: {**body, "assignment": everything}), "SyncGroup has all partitions")
    await stage.start()
    join = await stage.request("JoinGroup", seconds=stage.start_seconds)
    if join.version < FIRST_SKIPPING_JOIN:
        raise NotShown(f"the client sends JoinGroup v{join.version}, and only v{FIRST_SKIPPING_JOIN} can say so")
    await stage.become_stable(since=join.sequence)
    await stage.watch(0.5)
    since = stage.mark()
    await stage.cluster.grow_topic(stage.place.topic, PARTITIONS + 2)
    try:
        await stage.request("Metadata", since=since, seconds=METADATA_S)
    except StageBlocked as reason:
        raise NotShown(f"the client asked for no metadata within {METADATA_S:g} s") from reason
    await stage.watch_rejoin(since)


@FAMILY.add("WIRE-02")
async def an_assignment_of_a_version_to_come(stage: ClientStage) -> None:
    """The assignment is of a version that nobody knows, with bytes at its end."""

    def change(body: Body) -> Body:
        newer = encode_assignment(decode_assignment(body["assignment"]))
        return {**body, "assignment": (4).to_bytes(2) + newer[2:] + bytes(3)}

    stage.play("SyncGroup", edit(change), "the response to SyncGroup has an assignment of version 4")
    await stage.start_and_become_stable()
    await stage.watch_request("Fetch", since=0, seconds=6)
    await stage.watch(1)


@FAMILY.add("MEMBER-19", needs=("driver", "static-membership"))
async def a_join_that_is_fenced(stage: ClientStage) -> None:
    """JoinGroup of a static member is fenced."""
    require_instance(stage)
    stage.refuse("JoinGroup", Error.FENCED_INSTANCE_ID, times=1_000)
    await stage.start()
    await stage.request("JoinGroup", seconds=stage.start_seconds)
    await stage.watch(2)


@FAMILY.add("MEMBER-19", needs=("driver", "static-membership"))
async def a_sync_that_is_fenced(stage: ClientStage) -> None:
    """SyncGroup of a static member is fenced."""
    require_instance(stage)
    stage.refuse("SyncGroup", Error.FENCED_INSTANCE_ID)
    await stage.start()
    await stage.request("SyncGroup", seconds=stage.start_seconds)
    await stage.watch(2)


@FAMILY.add("HBT-10", needs=("driver", "static-membership"))
async def a_heartbeat_that_is_fenced(stage: ClientStage) -> None:
    """A heartbeat of a static member is fenced."""
    require_instance(stage)
    await stage.start_and_become_stable()
    since = stage.mark()
    stage.refuse("Heartbeat", Error.FENCED_INSTANCE_ID)
    await stage.response("Heartbeat", Error.FENCED_INSTANCE_ID, since=since)
    await stage.watch(2)


@FAMILY.add("MCOMMIT-15", needs=("driver", "static-membership"))
async def a_commit_of_a_fenced_member(stage: ClientStage) -> None:
    """A commit of a static member is fenced."""
    require_instance(stage)
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    stage.refuse("OffsetCommit", Error.FENCED_INSTANCE_ID)
    await stage.do("commit")


def require_instance(stage: ClientStage) -> None:
    """Raises `NotShown` if the client is no static member."""
    if not stage.facts.is_static:
        raise NotShown("the client has no group.instance.id")


@FAMILY.add("HBT-07", "HBT-08", needs=("driver", "static-membership", "poll-interval"))
async def a_static_member_that_stops_polling(stage: ClientStage) -> None:
    """The application of a static member does not poll for longer than its poll interval."""
    require_instance(stage)
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    interval = poll_interval(stage)
    stage.application.stop_polling()
    await stage.watch(interval + 5)
    since = stage.mark()
    stage.application.go_on_polling()
    await stage.watch_rejoin(since)


@FAMILY.add("MEMBER-31", needs=("driver",))
async def a_join_with_another_protocol_type(stage: ClientStage) -> None:
    """The response to JoinGroup has another protocol type than the request."""

    def change(body: Body) -> Body:
        return {**body, "protocol_type": "connect"} if not body["error_code"] else body

    stage.play("JoinGroup", edit(change), "JoinGroup gets the protocol type connect", times=1_000)
    await stage.start()
    join = await stage.request("JoinGroup", seconds=stage.start_seconds)
    if join.version < 7:
        raise NotShown(f"the client sends JoinGroup v{join.version}, whose response has no protocol type")
    await stage.watch(3)


@FAMILY.add("MEMBER-29", needs=("driver",))
async def an_application_that_unsubscribes_while_joining(stage: ClientStage) -> None:
    """The application unsubscribes while JoinGroup is parked, which succeeds then."""
    await consume(stage, RECORDS)
    release = asyncio.Event()
    stage.play("JoinGroup", hold(release), "JoinGroup is parked", matches=has_member_id)
    since = stage.mark()
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    await stage.request("JoinGroup", since=since)
    stage.application.stop_polling()
    unsubscribing = stage.start_task(stage.do("unsubscribe"))
    await stage.watch_request("LeaveGroup", since=since, seconds=2)
    release.set()
    await unsubscribing
    await stage.watch(2)


@FAMILY.add("MEMBER-30", needs=("driver", "poll-interval"))
async def an_assignment_that_comes_too_late(stage: ClientStage) -> None:
    """The application does not poll while SyncGroup has no response, for longer than its poll interval."""
    await consume(stage, RECORDS)
    interval = poll_interval(stage)
    since = stage.mark()
    stage.play("SyncGroup", delay(interval + 3), f"the response to SyncGroup takes {interval + 3:g} s")
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    await stage.request("SyncGroup", since=since)
    stage.application.stop_polling()
    await stage.watch_request("LeaveGroup", since=since, seconds=interval + 3)
    await stage.watch_request("SyncGroup", since=stage.mark(), seconds=4)
    stage.application.go_on_polling()
    await stage.watch_rejoin(since)
    await stage.watch(1)


@FAMILY.add("HBT-15", needs=("driver", "poll-interval"))
async def polls_without_a_coordinator(stage: ClientStage) -> None:
    """The coordinator cannot be found for longer than the poll interval, and has kept the member alive."""
    await stage.start_and_become_stable()
    heartbeat = await stage.request("Heartbeat")
    interval = poll_interval(stage)
    lost = stage.refuse("FindCoordinator", Error.COORDINATOR_NOT_AVAILABLE, times=1_000)
    moved = [
        stage.refuse(api, Error.NOT_COORDINATOR, times=1_000) for api in ("Heartbeat", "OffsetCommit", "JoinGroup")
    ]
    for _ in range(int(interval) + 3):
        await stage.cluster.brokers.ask("Heartbeat", heartbeat.version, heartbeat.body)
        await stage.watch(1)
    for cue in (lost, *moved):
        stage.cluster.script.drop(cue)
    since = stage.mark()
    await stage.watch_request("Heartbeat", since=since, seconds=5)
    await stage.watch(1)


@FAMILY.add("MCOMMIT-06", "POLL-19", needs=("driver", "auto-commit"))
async def a_commit_before_a_rebalance_that_fails(stage: ClientStage) -> None:
    """The commit before JoinGroup is told that the coordinator is loading, and takes its time."""
    await consume(stage, RECORDS)
    since = stage.mark()

    def is_told(request: DecodedRequest) -> bool:
        return any(is_told_of_rebalance(event) for event in stage.cluster.events[since:])

    stage.refuse("OffsetCommit", Error.COORDINATOR_LOAD_IN_PROGRESS, matches=is_told)
    stage.play("OffsetCommit", delay(1), "the response to OffsetCommit takes 1 s", matches=is_told)
    stage.start_task(stage.add_member().take_part())
    await stage.watch_rejoin(since)
    await stage.watch(1)


def is_told_of_rebalance(event: Event) -> bool:
    """Whether an event is the response to a heartbeat that tells of a rebalance."""
    is_response = event.kind is Kind.RESPONSE and event.api == "Heartbeat"
    return is_response and event.body.get("error_code") == Error.REBALANCE_IN_PROGRESS


@FAMILY.add("COOP-05", "COOP-13", "CALLBACK-14", "CALLBACK-19", needs=("cooperative",))
async def a_rebalance_that_changes_nothing(stage: ClientStage) -> None:
    """A cooperative follower gets the same partitions in three rounds, and is left alone then."""
    if not COOPERATIVE_ASSIGNORS.issuperset(stage.facts.protocols):
        raise NotShown("the client is not cooperative")
    member = await lead(stage)
    await stage.request("JoinGroup", seconds=stage.start_seconds)
    own = [(stage.place.topic, number) for number in range(1, PARTITIONS)]
    client = await plan_round(stage, member, own)
    await stage.become_stable()
    for _ in range(2):
        since = stage.mark()
        await join_as_leader(stage, member)
        await member.sync({client: own, member.id: [(stage.place.topic, 0)]})
        await stage.become_stable(since=since)
    stage.start_task(keep_alive(member))
    await stage.watch(3)


@FAMILY.add("MEMBER-37", needs=("driver",))
async def a_rebalance_that_the_application_asks_for(stage: ClientStage) -> None:
    """The application asks for a rebalance."""
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    since = stage.mark()
    stage.application.stop_polling()
    await stage.do("rejoin")
    stage.application.go_on_polling()
    await stage.watch_rejoin(since)


@FAMILY.add("MEMBER-28", needs=("driver", "pattern"))
async def a_topic_that_matches_a_pattern(stage: ClientStage) -> None:
    """The application subscribes to a pattern, and another topic that matches comes."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("unsubscribe")
    await stage.do("subscribe", pattern=f"{stage.place.topic}.*")
    stage.application.go_on_polling()
    await stage.watch(2)
    since = stage.mark()
    await stage.cluster.create_topic(f"{stage.place.topic}-fresh", 1, 1)
    await stage.watch_rejoin(since)
    await stage.watch(1)


def assign(partitions: list[tuple[str, int]]) -> Fault:
    """Put these partitions into the assignment of a member."""
    given = encode_assignment(partitions, version=1)
    return edit(lambda body: {**body, "assignment": given})


@FAMILY.add("MEMBER-20", "CALLBACK-09", needs=("driver", "pattern"))
async def topics_that_the_leader_sees_first(stage: ClientStage) -> None:
    """A subscriber to a pattern is assigned a topic that matches and that it has not seen, and then another one."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("unsubscribe")
    await stage.do("subscribe", pattern=f"{stage.place.topic}.*")
    stage.application.go_on_polling()
    await stage.watch(2)
    for topic in (f"{stage.place.topic}-fresh", f"other-than-{stage.place.topic}"):
        since = stage.mark()
        stage.play("SyncGroup", assign([(topic, 0)]), f"SyncGroup has partition 0 of {topic}")
        await stage.cluster.create_topic(topic, 1, 1)
        stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
        await stage.watch_rejoin(since)
        await stage.watch(3)
