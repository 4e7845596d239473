"""Scenarios in which an application empties its buffers, and in which something interrupts a client that joins."""

import asyncio

from fencepost.adapters.client.cluster import Fault, InterceptedRequest, delay, hang_up, hold
from fencepost.conformance.classic.clients.driven import consume, poll_interval, produce
from fencepost.conformance.classic.clients.rebalances import (
    METADATA_S,
    join_as_leader,
    lead,
    plan_round,
    rejoin_when_told,
)
from fencepost.conformance.clients.stage import (
    PARTITIONS,
    RECORDS,
    ClientScenarioFamily,
    ClientStage,
    NotShown,
    StageBlocked,
    has_member_id,
)
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body
from fencepost.traces.classic.client.view import COOPERATIVE_ASSIGNORS

# -- buffers, with a driver -------------------------------------------------------------------------------------------

FAMILY = ClientScenarioFamily()
MANY, FEW = 700, 30
"""Records for a partition: more than most clients return in a poll, and less."""


@FAMILY.add(
    "POLL-02",
    "POLL-04",
    "POLL-05",
    "POLL-06",
    "POLL-08",
    "PREFETCH-03",
    "PREFETCH-04",
    "PREFETCH-09",
    needs=("driver",),
)
async def partitions_with_many_records(stage: ClientStage) -> None:
    """KIP-41's example: A and B have many records and C has a few, all of them buffered before a poll."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    for number, count in enumerate((MANY, MANY, FEW, MANY)):
        await produce_to(stage, number, count)
    await stage.do("poll", ms=100)
    await stage.watch(1.5)
    stage.application.go_on_polling()
    await stage.watch(8)


@FAMILY.add("POLL-05", "POLL-07", "PREFETCH-03", needs=("driver",))
async def a_partition_that_is_refilled(stage: ClientStage) -> None:
    """Two partitions get new records all the time, the others have some that wait."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    for number in range(PARTITIONS):
        await produce_to(stage, number, MANY if number > 1 else FEW)
        await stage.watch(0 if number else 0.4)
    for _ in range(10):
        await stage.do("poll", ms=100)
        await produce_to(stage, 0, FEW)
        await produce_to(stage, 1, FEW)
        await stage.watch(0.2)
    stage.application.go_on_polling()
    await stage.watch(7)


@FAMILY.add("PREFETCH-10", needs=("driver",))
async def records_of_one_partition_at_a_time(stage: ClientStage) -> None:
    """The partitions get records in turn, so that a response has those of one."""
    await consume(stage, RECORDS)
    for turn in range(12):
        await produce_to(stage, turn % PARTITIONS, FEW)
        await stage.watch(0.7)


@FAMILY.add("POLL-12", needs=("driver",))
async def offsets_without_records(stage: ClientStage) -> None:
    """Records are written in transactions, whose ends have offsets of their own."""
    await consume(stage, RECORDS)
    for _ in range(10):
        for number in range(PARTITIONS):
            values = list(map(str, range(3 + number)))
            await stage.cluster.produce(stage.place.topic, number, values, is_transaction=True)
        await stage.watch(0.3)
    await stage.watch(1)


@FAMILY.add("POLL-13", needs=("driver",))
async def positions_of_the_application(stage: ClientStage) -> None:
    """The application asks for its positions while records are buffered."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await produce(stage, MANY)
    everything = [[stage.place.topic, number] for number in range(PARTITIONS)]
    for _ in range(3):
        await stage.do("poll", ms=100)
        await stage.do("position", partitions=everything)
    stage.application.go_on_polling()
    await stage.watch(1)


@FAMILY.add("POLL-14", needs=("driver",))
async def an_error_of_one_partition(stage: ClientStage) -> None:
    """A Fetch response has an error for one partition, and records of others."""
    await consume(stage, RECORDS)
    stage.play("Fetch", fail_partition(0), "the next Fetch with records has an error for partition 0", times=30)
    await produce(stage, FEW)
    await stage.watch(2)
    await produce(stage, FEW)
    await stage.watch(2)


def fail_partition(failing: int) -> Fault:
    """Put an error in the place of the records of a partition, in the first response with those of others."""
    done: list[int] = []

    def change(body: Body) -> Body:
        rows = [row for topic in body["responses"] for row in topic["partitions"]]
        has_records = any(row["partition_index"] != failing and row.get("records") for row in rows)
        if done or not has_records or all(row["partition_index"] != failing for row in rows):
            return body
        done.append(1)
        topics = [
            {
                **topic,
                "partitions": [
                    {**row, "error_code": Error.TOPIC_AUTHORIZATION_FAILED, "records": None}
                    if row["partition_index"] == failing
                    else row
                    for row in topic["partitions"]
                ],
            }
            for topic in body["responses"]
        ]
        return {**body, "responses": topics}

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        body = await intercepted.pass_on()
        return None if body is None else change(body)

    return respond


@FAMILY.add("POLL-15", "PREFETCH-07", needs=("driver",))
async def a_broker_that_falls_silent(stage: ClientStage) -> None:
    """Records are buffered, and then no Fetch is answered any more: polls that may take long return."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await produce(stage, MANY)
    await stage.do("poll", ms=100)
    await stage.watch(1.2)
    stage.play("Fetch", wait_for(stage, 4), "Fetch gets no response for 4 s", times=1_000)
    for _ in range(2):
        await stage.do("poll", ms=2_500)
        await stage.watch(0.5)
    stage.application.go_on_polling()
    await stage.watch(1)


def wait_for(stage: ClientStage, seconds: float) -> Fault:
    """Keep requests back until so many seconds from now."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        await asyncio.sleep(max(0.0, until - loop.time()))
        return await intercepted.pass_on()

    return respond


@FAMILY.add("HBT-12", "PREFETCH-07", needs=("driver",))
async def an_application_that_is_slow(stage: ClientStage) -> None:
    """The application does nothing for a while, which is shorter than its poll interval."""
    await consume(stage, RECORDS)
    for _ in range(4):
        await stage.request("Heartbeat", since=stage.mark())
    interval = poll_interval(stage)
    stage.application.stop_polling()
    await stage.do("poll", ms=10)
    await produce(stage, FEW)
    await stage.watch(0.3)
    await stage.do("poll", ms=100)
    await stage.watch(min(4.0, interval - 1.5))
    stage.application.go_on_polling()
    await stage.watch(0.5)


async def produce_to(stage: ClientStage, number: int, count: int) -> None:
    """Write so many records to one partition."""
    await stage.cluster.produce(stage.place.topic, number, list(map(str, range(count))))


# -- interruptions of a client that joins -----------------------------------------------------------------------------

LONGER_THAN_A_POLL_S = 0.5
PROGRESS_S = 8.5
"""How long a client is watched for fetches that do not come."""


@FAMILY.add("MEMBER-21")
async def a_topic_that_grows_during_a_rebalance(stage: ClientStage) -> None:
    """The topic gets more partitions, and the leader is told so, while its SyncGroup has no response."""
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    since = stage.mark()
    release = asyncio.Event()
    stage.play("SyncGroup", hold(release), "SyncGroup is parked")
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    await stage.request("SyncGroup", since=since)
    await grow_and_tell(stage)
    since = stage.mark()
    release.set()
    await stage.become_stable(since=since)
    await stage.watch_rejoin(since)


@FAMILY.add("MEMBER-21", "HBT-01")
async def a_topic_that_grows_and_a_sync_that_takes_longer(stage: ClientStage) -> None:
    """The topic gets more partitions, and the response to the SyncGroup of the leader takes longer than a poll."""
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    since = stage.mark()
    stage.play("SyncGroup", delay(LONGER_THAN_A_POLL_S), "the response to SyncGroup takes 500 ms")
    await grow_and_tell(stage)
    await stage.watch_rejoin(since)
    await stage.watch(stage.facts.session_timeout / 1000 + 2)


async def grow_and_tell(stage: ClientStage) -> None:
    """The topic grows, and the client asks for metadata. Raises `NotShown` if it does not."""
    since = stage.mark()
    await stage.cluster.grow_topic(stage.place.topic, PARTITIONS + 2)
    try:
        await stage.request("Metadata", since=since, seconds=METADATA_S)
    except StageBlocked as reason:
        raise NotShown(f"the client asked for no metadata within {METADATA_S:g} s") from reason
    await stage.watch(0.2)


@FAMILY.add("MEMBER-21", needs=("driver",))
async def a_topic_that_comes_later(stage: ClientStage) -> None:
    """The application subscribes to a topic that is not there, which comes when the client leads."""
    later = f"{stage.place.topic}-later"
    await consume(stage, RECORDS)
    since = stage.mark()
    await stage.do("subscribe", topics=[stage.place.topic, later])
    await stage.watch_rejoin(since)
    since = stage.mark()
    await stage.cluster.create_topic(later, 2, RECORDS)
    await stage.watch_request("Metadata", since=since, seconds=METADATA_S)
    await stage.watch_rejoin(since)


@FAMILY.add("MEMBER-27", needs=("driver",))
async def a_subscription_that_changes_while_joining(stage: ClientStage) -> None:
    """The application of a follower subscribes to a topic more while JoinGroup is parked."""
    other = f"{stage.place.topic}-other"
    await stage.cluster.create_topic(other, 2, RECORDS)
    member = await lead(stage)
    await stage.request("JoinGroup", seconds=stage.start_seconds)
    own = [(stage.place.topic, number) for number in range(1, PARTITIONS)]
    client = await plan_round(stage, member, own)
    await stage.become_stable()
    release = asyncio.Event()
    since = stage.mark()
    stage.play("JoinGroup", hold(release), "JoinGroup is parked", matches=has_member_id)
    joining = stage.start_task(join_as_leader(stage, member))
    await stage.request("JoinGroup", since=since)
    await stage.do("subscribe", topics=[stage.place.topic, other])
    release.set()
    await joining
    since = stage.mark()
    await member.sync({client: own, member.id: []})
    await stage.become_stable(since=since)
    stage.start_task(rejoin_when_told(member, {client: own}, []))
    await stage.watch_rejoin(since)


@FAMILY.add("HBT-01", "HBT-03", needs=("driver", "poll-interval"))
async def an_application_that_does_not_wait_for_the_join(stage: ClientStage) -> None:
    """The application does not poll when JoinGroup and SyncGroup succeed, and polls again soon."""
    await consume(stage, RECORDS)
    interval = poll_interval(stage)
    release = asyncio.Event()
    stage.play("JoinGroup", hold(release), "JoinGroup is parked", matches=has_member_id)
    since = stage.mark()
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    await stage.request("JoinGroup", since=since)
    stage.application.stop_polling()
    await stage.watch(0.5)
    release.set()
    await stage.watch_request("SyncGroup", since=since, seconds=2)
    await stage.watch(min(1.5, interval / 3))
    stage.application.go_on_polling()
    await stage.watch(stage.facts.session_timeout / 1000 + 2)


@FAMILY.add("MEMBER-13", "MEMBER-30", needs=("driver", "poll-interval"))
async def a_membership_lost_before_the_assignment_is_read(stage: ClientStage) -> None:
    """SyncGroup succeeds when the application does not poll, and the coordinator forgets the member then."""
    await consume(stage, RECORDS)
    interval = poll_interval(stage)
    release = asyncio.Event()
    stage.play("SyncGroup", hold(release), "SyncGroup is parked")
    since = stage.mark()
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    await stage.request("SyncGroup", since=since)
    stage.application.stop_polling()
    await stage.watch(0.5)
    release.set()
    await stage.become_stable(since=since)
    since = stage.mark()
    stage.evict("Heartbeat")
    await stage.response("Heartbeat", Error.UNKNOWN_MEMBER_ID, since=since, seconds=interval - 2)
    await stage.watch(min(2.5, interval / 2))
    stage.application.go_on_polling()
    await stage.watch_rejoin(since)


@FAMILY.add("MCOMMIT-08", needs=("driver",))
async def an_application_that_commits_while_joining(stage: ClientStage) -> None:
    """The application commits while SyncGroup is parked."""
    await consume(stage, RECORDS)
    release = asyncio.Event()
    stage.play("SyncGroup", hold(release), "SyncGroup is parked")
    since = stage.mark()
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    await stage.request("SyncGroup", since=since)
    stage.application.stop_polling()
    await stage.watch(1.5)
    committing = stage.start_task(stage.do("commit"))
    await stage.watch(1)
    release.set()
    await committing
    stage.application.go_on_polling()
    await stage.watch(1)


@FAMILY.add("PREFETCH-03", needs=("cooperative",))
async def an_offset_fetch_across_a_rebalance(stage: ClientStage) -> None:
    """The topic grows while OffsetFetch has no response, and a cooperative client joins again."""
    if not COOPERATIVE_ASSIGNORS.issuperset(stage.facts.protocols):
        raise NotShown("the client is not cooperative")
    release = asyncio.Event()
    stage.play("OffsetFetch", hold(release), "OffsetFetch is parked")
    await stage.start_and_become_stable()
    await stage.request("OffsetFetch")
    since = stage.mark()
    await grow_and_tell(stage)
    await stage.watch_request("JoinGroup", since=since, seconds=3)
    release.set()
    await stage.watch_rejoin(since)
    await stage.watch(PROGRESS_S)


@FAMILY.add("MCOMMIT-18", needs=("driver", "auto-commit"))
async def offsets_that_come_late(stage: ClientStage) -> None:
    """After a rebalance the response to OffsetFetch takes longer than the interval of the auto-commit."""
    await consume(stage, RECORDS)
    await stage.request("OffsetCommit")
    since = stage.mark()
    stage.play("OffsetFetch", delay(3), "the response to OffsetFetch takes 3 s")
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    await stage.request("JoinGroup", since=since)
    await stage.become_stable(since=since)
    await stage.watch(4.5)


@FAMILY.add("MCOMMIT-12", "MCOMMIT-17", needs=("driver", "manual-assignment", "auto-commit"))
async def a_coordinator_that_moves_from_a_manual_assignment(stage: ClientStage) -> None:
    """The application has assigned its partitions itself, and an auto-commit is told of another coordinator."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("unsubscribe")
    await stage.do("assign", partitions=[[stage.place.topic, number] for number in range(2)])
    await produce(stage, 10)
    stage.application.go_on_polling()
    await stage.watch(1)
    since = stage.mark()
    stage.refuse("OffsetCommit", Error.NOT_COORDINATOR)
    await stage.watch_request("OffsetCommit", since=since, seconds=7)
    await stage.watch(0.5)
    await produce(stage, 10)
    await stage.watch(6.5)


@FAMILY.add("PREFETCH-03")
async def a_fetch_that_is_lost(stage: ClientStage) -> None:
    """The connection of a Fetch is closed in the place of its response."""
    await stage.start_and_become_stable()
    await stage.request("Fetch")
    since = stage.mark()
    stage.play("Fetch", hang_up(), "the connection of the next Fetch is closed")
    await stage.watch_request("Fetch", since=since, seconds=5)
    await stage.watch(PROGRESS_S)


@FAMILY.add("PREFETCH-03")
async def first_offsets_that_are_lost(stage: ClientStage) -> None:
    """The connections of the first OffsetFetch and ListOffsets are closed in the place of their responses."""
    for api in ("OffsetFetch", "ListOffsets"):
        stage.play(api, hang_up(), f"the connection of the next {api} is closed")
    await stage.start_and_become_stable()
    await stage.watch(PROGRESS_S)


@FAMILY.add("PREFETCH-03", needs=("driver", "manual-assignment"))
async def partitions_assigned_without_a_coordinator(stage: ClientStage) -> None:
    """The application assigns its partitions itself when the connection to the coordinator is lost."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    await stage.do("unsubscribe")
    await stage.watch(0.5)
    stage.cluster.hang_up()
    await stage.watch(0.5)
    await stage.do("assign", partitions=[[stage.place.topic, number] for number in range(2)])
    await produce(stage, 10)
    stage.application.go_on_polling()
    await stage.watch(PROGRESS_S)


@FAMILY.add("HBT-12", needs=("driver", "poll-interval"))
async def a_listener_that_is_slow(stage: ClientStage) -> None:
    """The listener takes its time when partitions are revoked, which is shorter than the poll interval."""
    await consume(stage, RECORDS)
    for _ in range(4):
        await stage.request("Heartbeat", since=stage.mark())
    interval = poll_interval(stage)
    stage.application.stop_polling()
    await stage.do("listener", takes_ms=int(1000 * min(4.0, interval - 1.5)))
    stage.application.go_on_polling()
    since = stage.mark()
    stage.start_task(stage.add_member().take_part())
    await stage.watch_rejoin(since)
    await stage.watch(PROGRESS_S)


@FAMILY.add("MEMBER-22", needs=("driver", "poll-interval"))
async def a_listener_that_is_slow_in_the_end(stage: ClientStage) -> None:
    """The application unsubscribes, and its listener takes its time."""
    await consume(stage, RECORDS)
    interval = poll_interval(stage)
    stage.application.stop_polling()
    await stage.do("listener", takes_ms=int(1000 * min(4.0, interval - 1.5)))
    await stage.do("unsubscribe")
    await stage.watch(1)
