"""The reference client as the consumer of an operator: a real Kafka, over the network."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fencepost.adapters.classic.client.bodies import ReturnedRecords, by_topic, identity
from fencepost.adapters.classic.client.client import Pace, ReferenceClient
from fencepost.adapters.classic.client.links import AwaitedResponse, TcpNetwork
from fencepost.adapters.region.kafka import (
    CommitFailed,
    Listener,
    Message,
    Offsets,
    Partition,
    PositionLost,
)
from fencepost.model.classic.member.client import Callback, CallbackKind, assigned_partitions
from fencepost.model.classic.member.settings import RANGE, ClientSettings, ResetPolicy
from fencepost.model.classic.member.step import EnforceRebalance, ListenerReturned, Seek
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body

ANSWER_SECONDS = 10.0
"""How long an operator waits for the answer to its commit or heartbeat."""
POLL_SECONDS = 0.02
"""How long a poll lasts that finds nothing."""
PACE = Pace(cycle=POLL_SECONDS, metadata=1.0, fetch=0.1)
OF_GROUP = frozenset({Error.NONE, Error.REBALANCE_IN_PROGRESS})
"""Answers to a heartbeat by which the group still has the member."""


def milliseconds() -> int:
    """The machine's monotonic clock."""
    return round(time.monotonic() * 1000)


@dataclass(frozen=True, slots=True)
class KafkaGroup:
    """A group at a cluster, and the topic that its operators read. Times in milliseconds."""

    bootstrap: tuple[str, int]
    group: str
    topic: str
    session_timeout: int = 6_000
    heartbeat_interval: int = 500
    max_poll_interval: int = 300_000

    def make_consumer(self, listener: Listener) -> "NetworkConsumer":
        """A consumer of the group, which runs from now on."""
        settings = ClientSettings(
            group=self.group,
            strategies=(RANGE,),
            session_timeout=self.session_timeout,
            heartbeat_interval=self.heartbeat_interval,
            max_poll_interval=self.max_poll_interval,
            auto_commit=False,
            reset_policy=ResetPolicy.EARLIEST,
        )
        return NetworkConsumer(settings, TcpNetwork(self.bootstrap), self.topic, listener)


class NetworkConsumer(ReferenceClient):
    """A `KafkaConsumer`: what it needs beside the reference client it asks of the group by requests of its own."""

    def __init__(self, settings: ClientSettings, network: TcpNetwork, topic: str, listener: Listener) -> None:
        super().__init__(settings, network, milliseconds, PACE)
        self._listener = listener
        self._found: list[Message] = []
        self._lost: list[Partition] = []
        """What cannot be fetched: the log does not have the offset."""
        self._answer: asyncio.Future[Body] | None = None
        """The answer to its own request, of which there is one at a time."""
        self.begin()
        self.subscribe([topic])

    # -- polls ----------------------------------------------------------------------------------------------------

    async def take_records(self, limit: int) -> list[Message]:
        """As `KafkaConsumer.poll`."""
        self._found, self.fetcher.limit = [], limit
        self.poll()
        self.fetch()
        await asyncio.sleep(0 if self._found else POLL_SECONDS)
        if self._lost:
            raise PositionLost(", ".join(f"{topic}/{number}: out of range" for topic, number in self._lost))
        return self._found

    def on_records(self, returned: list[ReturnedRecords]) -> None:
        """As `ReferenceClient.on_records`."""
        self._found += [Message(taken.partition, offset) for taken in returned for offset in taken.offsets]

    def on_callback(self, callback: Callback) -> None:
        """As `ReferenceClient.on_callback`, with the operator as the listener."""
        asyncio.get_running_loop().call_soon(self._call_back, callback)

    def _call_back(self, callback: Callback) -> None:
        if callback.kind is CallbackKind.ASSIGNED:
            self._listener.on_assigned(frozenset(assigned_partitions(self.client)))
        else:
            self._listener.on_revoked()
        self.give(ListenerReturned())

    def seek(self, offsets: Offsets) -> None:
        """As `KafkaConsumer.seek`."""
        for partition, offset in offsets.items():
            self.give(Seek(partition, offset))

    # -- the group ------------------------------------------------------------------------------------------------

    async def commit(self, offsets: Offsets) -> None:
        """As `KafkaConsumer.commit`."""
        rows = (
            (partition, {"partition_index": partition[1], "committed_offset": offset})
            for partition, offset in sorted(offsets.items())
        )
        generation = {"generation_id_or_member_epoch": self.client.member.generation}
        answer = await self._ask("OffsetCommit", {**self._identity(), **generation, "topics": by_topic(rows)})
        errors = {Error(row["error_code"]) for topic in answer["topics"] for row in topic["partitions"]}
        if errors - {Error.NONE}:
            raise CommitFailed(", ".join(sorted(error.name for error in errors - {Error.NONE})))

    async def is_member(self) -> bool:
        """As `KafkaConsumer.is_member`; without an answer it is none."""
        body = {**self._identity(), "generation_id": self.client.member.generation}
        try:
            return Error((await self._ask("Heartbeat", body))["error_code"]) in OF_GROUP
        except CommitFailed:
            return False

    def _identity(self) -> dict[str, Any]:
        return identity(self.client.settings.group, self.client.member.id, None)

    async def _ask(self, api: str, body: Body) -> Body:
        self._answer = asyncio.get_running_loop().create_future()
        self.send(api, body, 0, self.coordinator)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._answer
        except TimeoutError:
            raise CommitFailed("no answer") from None

    def take_response(self, sent: AwaitedResponse, body: Body) -> None:
        """As `ReferenceClient.take_response`, but for the answer to its own request."""
        for partition in out_of_range(body) if sent.api == "Fetch" else ():
            self.on_lost(partition)
        if sent.handle or sent.api not in ("OffsetCommit", "Heartbeat"):
            super().take_response(sent, body)
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result(body)

    def on_lost(self, partition: Partition) -> None:
        """The log does not have the offset that was asked for. No reset policy moves the position."""
        self._lost.append(partition)

    def enforce_rebalance(self) -> None:
        """Have the group rebalance (KIP-568)."""
        self.give(EnforceRebalance("an operator asks for it"))

    def abandon(self) -> None:
        """As `KafkaConsumer.abandon`."""
        for task in self.tasks:
            task.cancel()
        for link in self.links.values():
            link.hang_up()


def out_of_range(body: Body) -> Iterator[Partition]:
    """The partitions of a response to Fetch whose log does not have the offset."""
    for topic in body["responses"]:
        for row in topic["partitions"]:
            if row["error_code"] == Error.OFFSET_OUT_OF_RANGE:
                yield topic["topic"], row["partition_index"]
