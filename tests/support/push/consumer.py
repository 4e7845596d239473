"""A consumer on TCP: it looks the coordinator up, registers, and does what it is told (draft, 5 and 9)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle

from fencepost.adapters.push.broker import DIALECT, read_frame
from fencepost.adapters.push.zookeeper import Partition
from fencepost.model.push.wire import (
    Body,
    MalformedFrame,
    decode_push_request,
    decode_push_response,
    encode_push_request,
    encode_push_response,
)

Address = tuple[str, int]
RETRY_SECONDS = 0.02


@dataclass(eq=False, slots=True)
class PushConsumerProgram:
    """A consumer with its fetchers, which fetch nothing: `positions` has the consumed offset of each partition."""

    group: str
    consumer: str
    topic_count: str
    bootstrap: Sequence[Address]
    session_timeout: float = 0.6
    auto_commit: bool = False
    positions: dict[Partition, int] = field(default_factory=dict)
    """Of the partitions that are fetched now."""
    registrations: int = 0
    ignores_requests: bool = False
    """The process is stuck: it reads nothing, and its fetchers go on until the lease is over."""
    _lease_end: float = 0.0

    async def run(self) -> None:
        """Look for the coordinator and serve it, again and again, until cancelled."""
        try:
            for address in cycle(self.bootstrap):
                while self.ignores_requests:
                    await asyncio.sleep(RETRY_SECONDS)
                coordinator = await self._look_up(address)
                if coordinator is not None:
                    await self._serve(coordinator)
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            self.positions = {}

    @property
    def fetched(self) -> frozenset[Partition]:
        """The partitions from which records are handed to the application: none once the lease is over."""
        alive = asyncio.get_running_loop().time() < self._lease_end
        return frozenset(self.positions) if alive else frozenset()

    async def _look_up(self, address: Address) -> Address | None:
        """Where the coordinator is, as the broker at this address says; None if it does not know, or is gone."""
        try:
            reader, writer = await asyncio.open_connection(*address)
        except OSError:
            return None
        try:
            writer.write(encode_push_request("ClusterMetadata", {}, DIALECT))
            async with asyncio.timeout(self.session_timeout):
                payload = await read_frame(reader)
            if payload is None:
                return None
            body = decode_push_response("ClusterMetadata", payload, DIALECT)
            places = {one["id"]: (one["host"], one["port"]) for one in body["brokers"]}
            return places.get(body["coordinator_id"])
        except (MalformedFrame, TimeoutError, ConnectionError):
            return None
        finally:
            writer.close()

    async def _serve(self, address: Address) -> None:
        """Register at the coordinator, and handle its requests until the lease is over."""
        loop = asyncio.get_running_loop()
        try:
            reader, writer = await asyncio.open_connection(*address)
        except OSError:
            return
        try:
            sent = loop.time()
            writer.write(encode_push_request("RegisterConsumer", self._registration(), DIALECT))
            async with asyncio.timeout(self.session_timeout):
                payload = await read_frame(reader)
            if payload is None:
                return
            if decode_push_response("RegisterConsumer", payload, DIALECT)["error_code"]:
                return
            self.registrations += 1
            self._lease_end = sent + self.session_timeout
            await self._handle_requests(reader, writer)
        except (MalformedFrame, TimeoutError, ConnectionError):
            return
        finally:
            # PUSH-32: the fetchers stop before anything else is done.
            self.positions = {}
            writer.close()

    def _registration(self) -> Body:
        return {
            "group": self.group,
            "consumer": self.consumer,
            "topic_count": self.topic_count,
            "auto_commit": self.auto_commit,
            "auto_offset_reset": "smallest",
            "session_timeout_ms": round(self.session_timeout * 1000),
        }

    async def _handle_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle requests in order. The lease is renewed from the moment when a request was seen, once the coordinator
        shows that the response to it has arrived: a ping confirms an earlier one, Start confirms Stop (PUSH-42)."""
        loop = asyncio.get_running_loop()
        seen: dict[int, float] = {}
        stopped_at, pings = 0.0, 0
        while (left := self._lease_end - loop.time()) > 0:
            if self.ignores_requests:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            async with asyncio.timeout(left):
                payload = await read_frame(reader)
            if payload is None:
                return
            name, body = decode_push_request(payload, DIALECT)
            if name == "Ping":
                pings += 1
                seen[pings] = loop.time()
                self._renew(seen.get(body["confirmed"], 0.0))
                seen = {number: moment for number, moment in seen.items() if number >= body["confirmed"]}
                response: Body = {"partitions": self._offsets()} if self.auto_commit else {}
            elif name == "Stop":
                stopped_at = loop.time()
                response = {"attempt": body["attempt"], "partitions": self._offsets()}
                self.positions = {}
            else:
                self._renew(stopped_at)
                entries = body["partitions"]
                self.positions = {(one["topic"], one["partition"]): one["offset"] for one in entries}
                response = {"attempt": body["attempt"], "error_code": 0}
            writer.write(encode_push_response(name, response, DIALECT))

    def _renew(self, seen_at: float) -> None:
        self._lease_end = max(self._lease_end, seen_at + self.session_timeout)

    def _offsets(self) -> list[Body]:
        return [
            {"topic": topic, "partition": name, "offset": offset} for (topic, name), offset in self.positions.items()
        ]
