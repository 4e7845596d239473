"""Offsets committed in transactions: what others read while one is open, and what is left of it afterwards."""

from dataclasses import dataclass

from fencepost.conformance.scenario.context import Call, Stage
from fencepost.conformance.scenario.scenario import Collection
from fencepost.conformance.scenarios.classic.commits import accepted
from fencepost.model.errors import Error, error_name
from fencepost.traces.events import Body

transactions = Collection()

CONCURRENT_TRANSACTIONS = 51
TRANSIENT = frozenset({14, 15, 16, CONCURRENT_TRANSACTIONS})
"""Errors of a transaction coordinator that is not ready yet."""
TRIES = 40
BEFORE_IMPLICIT = 4
"""The last version in which a transaction is told of the group first (KIP-890)."""


@dataclass(slots=True)
class Producer:
    """A transactional producer and its one transaction in the stage's group."""

    stage: Stage
    id: int = -1
    epoch: int = -1

    @property
    def name(self) -> str:
        """Its transactional id."""
        return f"{self.stage.group}-producer"

    async def begin(self) -> None:
        """Get an id, and tell the transaction of the group."""
        body = await self.ask("InitProducerId", {"transactional_id": self.name, "transaction_timeout_ms": 30_000})
        self.id, self.epoch = body["producer_id"], body["producer_epoch"]
        await self.ask("AddOffsetsToTxn", {**self.signature(), "group_id": self.stage.group})

    def signature(self) -> Body:
        """Who it is, in every request."""
        return {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch}

    async def ask(self, api: str, body: Body) -> Body:
        """Ask the transaction coordinator, who may need some time."""
        version = self.stage.version(api, at_most=BEFORE_IMPLICIT)
        answer: Body = {}
        for _ in range(TRIES):
            answer = await self.stage.send(api, body, version=version)
            if answer["error_code"] not in TRANSIENT:
                break
            await self.stage.sleep(self.stage.step)
        self.stage.need(answer["error_code"] == 0, f"{api} got {error_name(answer['error_code'])}")
        return answer

    async def commit(self, partition: int, offset: int) -> bool:
        """Commit an offset in the transaction; was it accepted?"""
        version = self.stage.version("TxnOffsetCommit", at_least=3, at_most=BEFORE_IMPLICIT)
        rows: dict[tuple[str, int] | int, Body] = {
            partition: {"committed_offset": offset, "committed_metadata": "", "committed_leader_epoch": -1}
        }
        body = {**self.signature(), "group_id": self.stage.group, "topics": self.stage.partitions(rows, {})}
        body |= {"generation_id": -1, "member_id": "", "group_instance_id": None}
        return await accepted(self.stage.send("TxnOffsetCommit", body, version=version))

    async def end(self, *, committed: bool) -> None:
        """Commit or abort the transaction."""
        await self.ask("EndTxn", {**self.signature(), "committed": committed})


async def in_transaction(stage: Stage) -> tuple[Producer, bool]:
    """An offset, and an open transaction that would change it; the flag says that both were taken."""
    stored = await accepted(stage.commit(None, {0: 7, 1: 8}))
    producer = Producer(stage)
    await producer.begin()
    return producer, await producer.commit(0, 70) and stored


def error_of(body: Body, partition: int) -> int:
    """The error of one partition in an OffsetFetch answer of one group."""
    topics = body["groups"][0]["topics"] if "groups" in body else body["topics"]
    rows = [row for topic in topics for row in topic["partitions"] if row["partition_index"] == partition]
    return int(rows[0]["error_code"])


async def settled(stage: Stage) -> Call:
    """A fetch of the offset once no transaction is open any more."""
    call = stage.fetch(stable=True)
    for _ in range(TRIES):
        if error_of(await call, 0) != Error.UNSTABLE_OFFSET_COMMIT:
            break
        await stage.sleep(stage.step)
        call = stage.fetch(stable=True)
    return call


@transactions.add("FETCH-10", "FETCH-11", needs=("transactions",))
async def fetch_during_a_transaction(stage: Stage) -> None:
    """Who requires stable offsets is told to wait; others get what was committed before."""
    stage.version("OffsetFetch", at_least=7)
    _, pending = await in_transaction(stage)
    stable = stage.fetch([0, 1], stable=True)
    await stable
    stage.shows("FETCH-10", stable, "error", "offset", met=pending)
    plain = stage.fetch([0, 1])
    await plain
    stage.shows("FETCH-11", plain, "offset", "error", met=pending)


@transactions.add("FETCH-10", needs=("transactions",))
async def fetch_of_a_first_transactional_offset(stage: Stage) -> None:
    """Unstable also where nothing was ever committed."""
    stage.version("OffsetFetch", at_least=7)
    producer = Producer(stage)
    await producer.begin()
    pending = await producer.commit(2, 70)
    stable = stage.fetch([2], stable=True)
    await stable
    stage.shows("FETCH-10", stable, "error", "offset", met=pending)


@transactions.add("FETCH-12", needs=("transactions",))
async def fetch_after_a_committed_transaction(stage: Stage) -> None:
    """The transaction's offset has taken the place of the old one."""
    stage.version("OffsetFetch", at_least=7)
    producer, pending = await in_transaction(stage)
    await producer.end(committed=True)
    fetched = await settled(stage)
    stage.shows("FETCH-12", fetched, "offset", "error", met=pending)


@transactions.add("FETCH-12", needs=("transactions",))
async def fetch_after_an_aborted_transaction(stage: Stage) -> None:
    """The old offset is as if nothing had been."""
    stage.version("OffsetFetch", at_least=7)
    producer, pending = await in_transaction(stage)
    await producer.end(committed=False)
    fetched = await settled(stage)
    stage.shows("FETCH-12", fetched, "offset", "error", met=pending)
