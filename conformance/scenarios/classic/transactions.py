"""Offsets committed in transactions: the responses to OffsetFetch during a transaction and after it."""

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
"""The last version with AddOffsetsToTxn before TxnOffsetCommit (KIP-890)."""


@dataclass(slots=True)
class Producer:
    """A transactional producer and its one transaction, in the group under test."""

    group: ScenarioContext
    id: int = -1
    epoch: int = -1

    @property
    def name(self) -> str:
        """Its transactional id."""
        return f"{self.group.group_id}-producer"

    async def begin(self) -> None:
        """Get an id, and tell the transaction of the group."""
        body = await self.send_when_ready(
            "InitProducerId", {"transactional_id": self.name, "transaction_timeout_ms": 30_000}
        )
        self.id, self.epoch = body["producer_id"], body["producer_epoch"]
        await self.send_when_ready("AddOffsetsToTxn", {**self.producer_fields(), "group_id": self.group.group_id})

    def producer_fields(self) -> Body:
        """Who it is, in every request."""
        return {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch}

    async def send_when_ready(self, api: str, body: Body) -> Body:
        """Ask the transaction coordinator, who may need some time."""
        version = self.group.highest_version(api, at_most=LAST_EXPLICIT_VERSION)
        response: Body = {}
        for _ in range(MAX_ATTEMPTS):
            response = await self.group.send(api, body, version=version)
            if response["error_code"] not in TRANSIENT:
                break
            await self.group.sleep(self.group.short_pause)
        self.group.require(response["error_code"] == 0, f"{api} got {error_name(response['error_code'])}")
        return response

    async def commit(self, partition: int, offset: int) -> bool:
        """Commit an offset in the transaction; was it accepted?"""
        version = self.group.highest_version("TxnOffsetCommit", at_least=3, at_most=LAST_EXPLICIT_VERSION)
        rows: dict[tuple[str, int] | int, Body] = {
            partition: {"committed_offset": offset, "committed_metadata": "", "committed_leader_epoch": -1}
        }
        body = {
            **self.producer_fields(),
            "group_id": self.group.group_id,
            "topics": self.group.partitions_by_topic(rows, {}),
        }
        body |= {"generation_id": -1, "member_id": "", "group_instance_id": None}
        return await is_commit_accepted(self.group.send("TxnOffsetCommit", body, version=version))

    async def end(self, *, committed: bool) -> None:
        """Commit or abort the transaction."""
        await self.send_when_ready("EndTxn", {**self.producer_fields(), "committed": committed})


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
