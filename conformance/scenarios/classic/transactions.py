"""Offsets committed in transactions: what others read while one is open, and what is left of it afterwards."""

from fencepost.conformance.scenario.context import Call, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenario.transactional_producer import TransactionalProducer
from fencepost.conformance.scenarios.classic.commits import is_commit_accepted
from fencepost.model.errors import Error
from fencepost.traces.events import Body

transactions = ScenarioFamily()

MAX_ATTEMPTS = 40


class Producer(TransactionalProducer):
    """A transactional producer and its one transaction in the group under test."""

    def __init__(self, context: ScenarioContext) -> None:
        super().__init__(context, context.group)
        self.context = context

    async def commit(self, partition: int, offset: int) -> bool:
        """Commit an offset in the transaction; was it accepted?"""
        rows: dict[tuple[str, int] | int, Body] = {
            partition: {"committed_offset": offset, "committed_metadata": "", "committed_leader_epoch": -1}
        }
        return await is_commit_accepted(self.send_commit(self.context.partitions_by_topic(rows, {})))


async def begin_transaction(context: ScenarioContext) -> tuple[Producer, bool]:
    """An offset, and an open transaction that would change it; the flag says that both were taken."""
    stored = await is_commit_accepted(context.commit(None, {0: 7, 1: 8}))
    producer = Producer(context)
    await producer.begin()
    return producer, await producer.commit(0, 70) and stored


def partition_error(body: Body, partition: int) -> int:
    """The error of one partition in an OffsetFetch answer of one group."""
    topics = body["groups"][0]["topics"] if "groups" in body else body["topics"]
    rows = [row for topic in topics for row in topic["partitions"] if row["partition_index"] == partition]
    return int(rows[0]["error_code"])


async def fetch_when_stable(context: ScenarioContext) -> Call:
    """A fetch of the offset once no transaction is open any more."""
    call = context.fetch(stable=True)
    for _ in range(MAX_ATTEMPTS):
        if partition_error(await call, 0) != Error.UNSTABLE_OFFSET_COMMIT:
            break
        await context.sleep(context.short_pause)
        call = context.fetch(stable=True)
    return call


@transactions.add("FETCH-10", "FETCH-11", needs=("transactions",))
async def fetch_during_a_transaction(context: ScenarioContext) -> None:
    """Who requires stable offsets is told to wait; others get what was committed before."""
    context.highest_version("OffsetFetch", at_least=7)
    _, pending = await begin_transaction(context)
    stable = context.fetch([0, 1], stable=True)
    await stable
    context.check("FETCH-10", stable, "error", "offset", reached=pending)
    plain = context.fetch([0, 1])
    await plain
    context.check("FETCH-11", plain, "offset", "error", reached=pending)


@transactions.add("FETCH-10", needs=("transactions",))
async def fetch_of_a_first_transactional_offset(context: ScenarioContext) -> None:
    """Unstable also where nothing was ever committed."""
    context.highest_version("OffsetFetch", at_least=7)
    producer = Producer(context)
    await producer.begin()
    pending = await producer.commit(2, 70)
    stable = context.fetch([2], stable=True)
    await stable
    context.check("FETCH-10", stable, "error", "offset", reached=pending)


@transactions.add("FETCH-12", needs=("transactions",))
async def fetch_after_a_committed_transaction(context: ScenarioContext) -> None:
    """The transaction's offset has taken the place of the old one."""
    context.highest_version("OffsetFetch", at_least=7)
    producer, pending = await begin_transaction(context)
    await producer.end(committed=True)
    fetched = await fetch_when_stable(context)
    context.check("FETCH-12", fetched, "offset", "error", reached=pending)


@transactions.add("FETCH-12", needs=("transactions",))
async def fetch_after_an_aborted_transaction(context: ScenarioContext) -> None:
    """The old offset is as if nothing had been."""
    context.highest_version("OffsetFetch", at_least=7)
    producer, pending = await begin_transaction(context)
    await producer.end(committed=False)
    fetched = await fetch_when_stable(context)
    context.check("FETCH-12", fetched, "offset", "error", reached=pending)
