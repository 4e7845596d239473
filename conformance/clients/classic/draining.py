"""Scenarios for clients with a driver: which buffered records polls return, and which are fetched."""

import asyncio

from fencepost.adapters.client.cluster import Fault, InterceptedRequest
from fencepost.conformance.clients.classic.driven import consume, poll_interval, produce
from fencepost.conformance.clients.stage import PARTITIONS, RECORDS, ClientScenarioFamily, ClientStage
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body

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
