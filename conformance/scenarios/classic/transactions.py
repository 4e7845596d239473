"""Offsets committed in transactions: the responses to OffsetFetch during a transaction and after it."""

from fencepost.conformance.scenario.context import Call, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenario.transactional_producer import MAX_ATTEMPTS, TransactionalProducer
from fencepost.conformance.scenarios.classic.commits import is_commit_accepted
from fencepost.model.errors import Error
from fencepost.traces.events import Body

transactions = ScenarioFamily()


class Producer(TransactionalProducer):
    """A transactional producer and its one transaction in the group under test."""

    def __init__(self, context: ScenarioContext) -> None:
        super().__init__(context, context.group_id)
        self.context = context

    async def commit(self, partition: int, offset: int) -> bool:
        """Commit an offset in the transaction; was it accepted?"""
        rows: dict[tuple[str, int] | int, Body] = {
            partition: {"committed_offset": offset, "committed_metadata": "", "committed_leader_epoch": -1}
        }
        return await is_commit_accepted(self.send_commit(self.context.partitions_by_topic(rows, {})))


async def begin_transaction(group: ScenarioContext) -> tuple[Producer, bool]:
    """Commit offsets, and another in an open transaction; returns the producer, and whether all were accepted."""
    stored = await is_commit_accepted(group.commit(None, {0: 7, 1: 8}))
    producer = Producer(group)
    await producer.begin()
    return producer, await producer.commit(0, 70) and stored


def partition_error(body: Body, partition: int) -> int:
    """The error of one partition in an OffsetFetch response for one group."""
    topics = body["groups"][0]["topics"] if "groups" in body else body["topics"]
    rows = [row for topic in topics for row in topic["partitions"] if row["partition_index"] == partition]
    return int(rows[0]["error_code"])


async def fetch_when_stable(group: ScenarioContext) -> Call:
    """Fetch stable offsets until no transaction is open; returns the last call, with its response."""
    call = group.fetch(stable=True)
    for _ in range(MAX_ATTEMPTS):
        if partition_error(await call, 0) != Error.UNSTABLE_OFFSET_COMMIT:
            break
        await group.sleep(group.short_pause)
        call = group.fetch(stable=True)
    return call


@transactions.add("FETCH-10", "FETCH-11", needs=("transactions",))
async def fetch_during_a_transaction(group: ScenarioContext) -> None:
    """During a transaction, stable offsets are not available; other fetches return the committed offset."""
    group.highest_version("OffsetFetch", at_least=7)
    _, pending = await begin_transaction(group)

    await group.check("FETCH-10", group.fetch([0, 1], stable=True), fields=("error", "offset"), reached=pending)
    await group.check("FETCH-11", group.fetch([0, 1]), fields=("offset", "error"), reached=pending)


@transactions.add("FETCH-10", needs=("transactions",))
async def fetch_of_a_first_transactional_offset(group: ScenarioContext) -> None:
    """During a transaction, stable offsets are not available for a partition without a committed offset either."""
    group.highest_version("OffsetFetch", at_least=7)
    producer = Producer(group)
    await producer.begin()
    pending = await producer.commit(2, 70)

    await group.check("FETCH-10", group.fetch([2], stable=True), fields=("error", "offset"), reached=pending)


@transactions.add("FETCH-12", needs=("transactions",))
async def fetch_after_a_committed_transaction(group: ScenarioContext) -> None:
    """After a committed transaction, its offset has replaced the old one."""
    group.highest_version("OffsetFetch", at_least=7)
    producer, pending = await begin_transaction(group)

    await producer.end(committed=True)
    await group.check("FETCH-12", await fetch_when_stable(group), fields=("offset", "error"), reached=pending)


@transactions.add("FETCH-12", needs=("transactions",))
async def fetch_after_an_aborted_transaction(group: ScenarioContext) -> None:
    """After an aborted transaction, the old offset is unchanged."""
    group.highest_version("OffsetFetch", at_least=7)
    producer, pending = await begin_transaction(group)

    await producer.end(committed=False)
    await group.check("FETCH-12", await fetch_when_stable(group), fields=("offset", "error"), reached=pending)
