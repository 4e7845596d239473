"""Offsets committed in transactions: what others read while one is open, and what is left of it afterwards."""

from dataclasses import dataclass

from fencepost.conformance.scenario.context import Call, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenarios.classic.commits import is_commit_accepted
from fencepost.model.errors import COORDINATOR_NOT_READY, Error, error_name
from fencepost.traces.events import Body

transactions = ScenarioFamily()

TRANSIENT = COORDINATOR_NOT_READY | {Error.CONCURRENT_TRANSACTIONS}
"""Errors of a transaction coordinator that is not ready yet."""
MAX_ATTEMPTS = 40
LAST_EXPLICIT_VERSION = 4
"""The last version in which a transaction is told of the group first (KIP-890)."""


@dataclass(slots=True)
class Producer:
    """A transactional producer and its one transaction in the stage's group."""

    context: ScenarioContext
    id: int = -1
    epoch: int = -1

    @property
    def name(self) -> str:
        """Its transactional id."""
        return f"{self.context.group}-producer"

    async def begin(self) -> None:
        """Get an id, and tell the transaction of the group."""
        body = await self.send_when_ready(
            "InitProducerId", {"transactional_id": self.name, "transaction_timeout_ms": 30_000}
        )
        self.id, self.epoch = body["producer_id"], body["producer_epoch"]
        await self.send_when_ready("AddOffsetsToTxn", {**self.producer_fields(), "group_id": self.context.group})

    def producer_fields(self) -> Body:
        """Who it is, in every request."""
        return {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch}

    async def send_when_ready(self, api: str, body: Body) -> Body:
        """Ask the transaction coordinator, who may need some time."""
        version = self.context.highest_version(api, at_most=LAST_EXPLICIT_VERSION)
        response: Body = {}
        for _ in range(MAX_ATTEMPTS):
            response = await self.context.send(api, body, version=version)
            if response["error_code"] not in TRANSIENT:
                break
            await self.context.sleep(self.context.short_pause)
        self.context.require(response["error_code"] == 0, f"{api} got {error_name(response['error_code'])}")
        return response

    async def commit(self, partition: int, offset: int) -> bool:
        """Commit an offset in the transaction; was it accepted?"""
        version = self.context.highest_version("TxnOffsetCommit", at_least=3, at_most=LAST_EXPLICIT_VERSION)
        rows: dict[tuple[str, int] | int, Body] = {
            partition: {"committed_offset": offset, "committed_metadata": "", "committed_leader_epoch": -1}
        }
        body = {
            **self.producer_fields(),
            "group_id": self.context.group,
            "topics": self.context.partitions_by_topic(rows, {}),
        }
        body |= {"generation_id": -1, "member_id": "", "group_instance_id": None}
        return await is_commit_accepted(self.context.send("TxnOffsetCommit", body, version=version))

    async def end(self, *, committed: bool) -> None:
        """Commit or abort the transaction."""
        await self.send_when_ready("EndTxn", {**self.producer_fields(), "committed": committed})


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
