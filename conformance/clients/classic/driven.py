"""Scenarios for clients with a driver: the application stops polling, commits, pauses, seeks, subscribes and ends."""

from fencepost.conformance.clients.stage import PARTITIONS, RECORDS, ClientScenarioFamily, ClientStage, NotShown
from fencepost.model.errors import Error
from fencepost.traces.client_judge.classic.state import COOPERATIVE_ASSIGNORS
from fencepost.traces.events import Kind

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


async def consume(stage: ClientStage, count: int) -> None:
    """Start the client, and wait until it has returned so many records of each partition. Raises `StageBlocked`."""
    await stage.start_and_become_stable()
    left = dict.fromkeys((f"{stage.place.topic}/{number}" for number in range(PARTITIONS)), count)
    since = 0
    while any(each > 0 for each in left.values()):
        event = await stage.wait_for("record", lambda event: event.kind is Kind.POLL, since=since)
        since = event.sequence + 1
        for name, returned in event.body["returned"].items():
            left[name] -= returned
