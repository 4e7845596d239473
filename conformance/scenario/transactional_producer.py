"""A transactional producer that commits offsets of the group under test."""

from dataclasses import dataclass

from fencepost.conformance.scenario.actors import Call
from fencepost.conformance.scenario.requests import RequestSender
from fencepost.model.errors import TRANSIENT_ERRORS, error_name
from fencepost.traces.events import Body

MAX_ATTEMPTS = 40
TRANSACTION_TIMEOUT_MS = 30_000
LAST_EXPLICIT_VERSION = 4
"""The last version in which a producer adds the group to the transaction by a request of its own (KIP-890)."""


@dataclass(slots=True)
class TransactionalProducer:
    """A transactional producer and its one transaction, which commits offsets of a group."""

    sender: RequestSender
    group_id: str
    name: str = ""
    """The transactional id; one by the group if none is given."""
    id: int = -1
    epoch: int = -1

    def __post_init__(self) -> None:
        self.name = self.name or f"{self.group_id}-producer"

    async def begin(self, timeout: int = TRANSACTION_TIMEOUT_MS) -> None:
        """Get a producer id, and add the group to the transaction, which may stay open for `timeout` milliseconds."""
        await self.begin_epoch(timeout)
        await self.add_group(self.group_id)

    async def begin_epoch(self, timeout: int = TRANSACTION_TIMEOUT_MS) -> None:
        """Get a producer id and an epoch. That ends a transaction of an older epoch."""
        body = await self.send_when_ready(
            "InitProducerId", {"transactional_id": self.name, "transaction_timeout_ms": timeout}
        )
        self.id, self.epoch = body["producer_id"], body["producer_epoch"]

    async def add_group(self, group_id: str) -> None:
        """Add a group to the transaction, which begins if none is open."""
        await self.send_when_ready("AddOffsetsToTxn", {**self.producer_fields(), "group_id": group_id})

    def producer_fields(self) -> Body:
        """The fields by which a request names the producer."""
        return {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch}

    def commit_version(self) -> int:
        """The version of TxnOffsetCommit. Raises `Unsupported` if the target has none of those with members."""
        return self.sender.highest_version("TxnOffsetCommit", at_least=3, at_most=LAST_EXPLICIT_VERSION)

    async def send_when_ready(self, api: str, body: Body) -> Body:
        """Send a request to the transaction coordinator until it is ready. Raises `Blocked` if it refuses."""
        version = self.sender.highest_version(api, at_most=LAST_EXPLICIT_VERSION)
        response: Body = {}
        for _ in range(MAX_ATTEMPTS):
            response = await self.sender.send(api, body, version=version)
            if response["error_code"] not in TRANSIENT_ERRORS:
                break
            await self.sender.sleep(self.sender.short_pause)
        self.sender.require(response["error_code"] == 0, f"{api} got {error_name(response['error_code'])}")
        return response

    def send_commit(self, topics: list[Body], **changes: object) -> Call:
        """Send TxnOffsetCommit, for no member unless `changes` have the fields of one."""
        body = {"group_id": self.group_id, "generation_id": -1, "member_id": "", "group_instance_id": None, **changes}
        return self.sender.send(
            "TxnOffsetCommit", {**self.producer_fields(), "topics": topics, **body}, version=self.commit_version()
        )

    async def end(self, *, committed: bool) -> None:
        """Commit or abort the transaction."""
        await self.send_when_ready("EndTxn", {**self.producer_fields(), "committed": committed})
