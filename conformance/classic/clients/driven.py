"""Scenarios for clients with a driver, and about memberships: the application stops polling, commits, pauses, seeks,
subscribes and ends; members are static, leaders skip, listeners raise."""

import asyncio

from fencepost.adapters.client.cluster import Fault, delay, edit, hold
from fencepost.conformance.classic.clients.rebalances import METADATA_S, join_as_leader, keep_alive, lead, plan_round
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
from fencepost.traces.classic.client.view import COOPERATIVE_ASSIGNORS
from fencepost.traces.events import Event, Kind

# -- the application --------------------------------------------------------------------------------------------------

FAMILY = ClientScenarioFamily()
MAX_INTERVAL_MS = 12_000
"""The longest poll interval that is waited out."""
MANY_RECORDS = 400
"""In each partition: together they are more than most clients return in a poll."""


@FAMILY.add("HBT-06", "HBT-08", "CALLBACK-05", needs=("driver",))
async def an_application_that_stops_polling(stage: ClientStage) -> None:
    """The application does not poll for longer than its poll interval, and then it polls again."""
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    interval = poll_interval(stage)
    since = stage.mark()
    stage.application.stop_polling()
    await stage.watch_request("LeaveGroup", since=since, seconds=interval + 4)
    await stage.watch(0.5)
    stage.application.go_on_polling()
    await stage.watch_rejoin(since)


@FAMILY.add("HBT-09", needs=("driver",))
async def a_poll_that_takes_long(stage: ClientStage) -> None:
    """One poll waits for records for longer than the poll interval."""
    await stage.start_and_become_stable()
    await stage.watch(1.5)
    interval = poll_interval(stage)
    stage.application.stop_polling()
    await stage.do("poll", ms=int(interval * 1000) + 1_500)
    stage.application.go_on_polling()
    await stage.watch(0.5)


@FAMILY.add("MEMBER-18", needs=("driver",))
async def a_refused_join(stage: ClientStage) -> None:
    """JoinGroup is refused: the group is not for this client."""
    stage.refuse("JoinGroup", Error.GROUP_AUTHORIZATION_FAILED, times=1_000)
    await stage.start()
    await stage.request("JoinGroup", seconds=stage.start_seconds)
    await stage.watch(4)


@FAMILY.add("HBT-14", "HBT-17", needs=("driver",))
async def a_heartbeat_that_is_refused(stage: ClientStage) -> None:
    """Heartbeats get an error that says nothing of the membership."""
    await stage.start_and_become_stable()
    for _ in range(5):
        await stage.request("Heartbeat", since=stage.mark())
    since = stage.mark()
    stage.refuse("Heartbeat", Error.UNKNOWN_SERVER_ERROR, times=3)
    await stage.response("Heartbeat", Error.UNKNOWN_SERVER_ERROR, since=since)
    await stage.watch(3)


@FAMILY.add("POLL-09", "POLL-03", needs=("driver",))
async def partitions_that_are_paused(stage: ClientStage) -> None:
    """Two partitions are paused while records are written to all, and resumed later."""
    await consume(stage, RECORDS)
    paused = [[stage.place.topic, number] for number in range(2)]
    await stage.do("pause", partitions=paused)
    await produce(stage, 10)
    await stage.watch(2.5)
    await stage.do("resume", partitions=paused)
    await stage.watch(2)


@FAMILY.add("POLL-11", needs=("driver",))
async def a_seek_backwards(stage: ClientStage) -> None:
    """The application sets a position back, and to the end of what is buffered."""
    await consume(stage, RECORDS)
    await produce(stage, 30)
    await stage.watch(0.2)
    await stage.do("seek", topic=stage.place.topic, partition=0, offset=5)
    await stage.do("seek", topic=stage.place.topic, partition=1, offset=RECORDS + 25)
    await stage.watch(2)


@FAMILY.add("POLL-01", "POLL-03", needs=("driver",))
async def many_records(stage: ClientStage) -> None:
    """There are more records than a poll returns."""
    await stage.start_and_become_stable()
    await produce(stage, MANY_RECORDS)
    await stage.watch(4)


@FAMILY.add("MEMBER-27", "POLL-18", "CALLBACK-04", needs=("driver",))
async def another_subscription(stage: ClientStage) -> None:
    """The application subscribes to another topic."""
    other = f"{stage.place.topic}-other"
    await stage.cluster.create_topic(other, PARTITIONS, RECORDS)
    await consume(stage, RECORDS)
    since = stage.mark()
    await produce(stage, 10)
    await stage.do("subscribe", topics=[other])
    await stage.watch_rejoin(since)
    await stage.watch(1)


@FAMILY.add("MEMBER-27", "CALLBACK-04", "COOP-01", needs=("driver",))
async def one_topic_less(stage: ClientStage) -> None:
    """The application subscribes to a second topic, and then to the second one no more."""
    other = f"{stage.place.topic}-other"
    await stage.cluster.create_topic(other, PARTITIONS, RECORDS)
    await consume(stage, RECORDS)
    for topics in ([stage.place.topic, other], [stage.place.topic]):
        since = stage.mark()
        await stage.do("subscribe", topics=topics)
        await stage.watch_rejoin(since)
        await produce(stage, 10)
        await stage.watch(1.5)


@FAMILY.add("MCOMMIT-01", "MCOMMIT-02", "MCOMMIT-14", "MCOMMIT-17", "MCOMMIT-21", needs=("driver",))
async def a_commit_of_the_application(stage: ClientStage) -> None:
    """The application commits, and once more when the coordinator is loading."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("commit")
    stage.refuse("OffsetCommit", Error.COORDINATOR_LOAD_IN_PROGRESS)
    await stage.do("commit")
    stage.application.go_on_polling()
    await stage.watch(0.5)


@FAMILY.add("MCOMMIT-10", "MCOMMIT-05", needs=("driver",))
async def a_commit_that_is_fenced(stage: ClientStage) -> None:
    """The application commits when its generation is over."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    since = stage.mark()
    stage.refuse("OffsetCommit", Error.ILLEGAL_GENERATION)
    await stage.do("commit")
    stage.application.go_on_polling()
    await stage.watch_rejoin(since)


@FAMILY.add("CALLBACK-11", needs=("driver",))
async def an_application_that_unsubscribes(stage: ClientStage) -> None:
    """The application unsubscribes, and closes its client later."""
    await consume(stage, RECORDS)
    await stage.watch(1.5)
    stage.application.stop_polling()
    await stage.do("unsubscribe")
    await stage.watch(2)
    await stage.ask_to_end()


@FAMILY.add("MEMBER-26", "CALLBACK-18", "MCOMMIT-12", needs=("driver", "manual-assignment"))
async def partitions_that_the_application_assigns(stage: ClientStage) -> None:
    """The application unsubscribes, assigns partitions itself, and commits."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("unsubscribe")
    await stage.do("assign", partitions=[[stage.place.topic, number] for number in range(2)])
    await produce(stage, 10)
    stage.application.go_on_polling()
    await stage.watch(3)
    stage.application.stop_polling()
    await stage.do("commit")
    stage.application.go_on_polling()
    await stage.watch(0.5)


@FAMILY.add("COOP-06", "COOP-07", needs=("driver", "cooperative"))
async def records_during_a_rebalance(stage: ClientStage) -> None:
    """Records are written while the JoinGroup of a cooperative client is parked."""
    if not COOPERATIVE_ASSIGNORS.issuperset(stage.facts.protocols):
        raise NotShown("the client is not cooperative")
    await consume(stage, RECORDS)
    since = stage.mark()
    member = stage.add_member()
    taking_part = stage.start_task(member.take_part())
    await stage.become_stable(since=since)
    taking_part.cancel()
    await stage.request("JoinGroup", since=stage.mark())
    await produce(stage, 10)
    await stage.watch(2.5)
    stage.start_task(member.take_part())
    await stage.become_stable(since=since)
    await stage.watch(1.5)


def poll_interval(stage: ClientStage) -> float:
    """The poll interval of the client in seconds. Raises `NotShown` if it takes too long."""
    interval = stage.facts.rebalance_timeout
    if interval > MAX_INTERVAL_MS:
        raise NotShown(f"the poll interval of the client is {interval} ms; at most {MAX_INTERVAL_MS} are waited out")
    return interval / 1000


async def produce(stage: ClientStage, count: int) -> None:
    """Write so many records to each partition of the client's topic."""
    for number in range(PARTITIONS):
        await stage.cluster.produce(stage.place.topic, number, list(map(str, range(count))))


FIRST_RECORD_S = 3.0
"""How long a client may take to its first record, if it begins where there are some."""


def is_return_of_records(event: Event) -> bool:
    """Whether a poll has returned records."""
    return event.kind is Kind.POLL


async def consume(stage: ClientStage, count: int) -> None:
    """Start the client, and wait until it has returned so many records of each partition. One that begins at the end
    of a log gets them once it is there. Raises `StageBlocked`."""
    await stage.start_and_become_stable()
    if await stage.cluster.wait_for(is_return_of_records, FIRST_RECORD_S) is None:
        await produce(stage, count)
    left = dict.fromkeys((f"{stage.place.topic}/{number}" for number in range(PARTITIONS)), count)
    since = 0
    while any(each > 0 for each in left.values()):
        event = await stage.wait_for("record", is_return_of_records, since=since)
        since = event.sequence + 1
        for name, returned in event.body["returned"].items():
            left[name] -= returned


# -- memberships ------------------------------------------------------------------------------------------------------

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


# -- listeners --------------------------------------------------------------------------------------------------------


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
