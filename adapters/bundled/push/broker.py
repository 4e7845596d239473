"""A broker with its coordinator: election, lookup, registration, pings, removal (draft, 3 to 6)."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.bundled.push.channel import ConsumerChannel
from fencepost.adapters.bundled.push.framing import DIALECT, read_frame
from fencepost.adapters.bundled.push.rebalancing import GroupRebalancer
from fencepost.adapters.bundled.push.zookeeper import Zookeeper
from fencepost.model.push.interest import UnusableInterest, parse_interest
from fencepost.model.push.wire import (
    NO_COORDINATOR,
    Body,
    MalformedFrame,
    decode_push_request,
    encode_push_response,
)

DUPLICATE_ID, UNUSABLE_TIMEOUT, NOT_COORDINATOR, UNUSABLE_REQUEST = 2, 3, 4, 5
QUEUES = 4
BACKLOG = 4096
"""How many connections may wait to be accepted: one that is dropped is tried again only after seconds."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The options of the draft's section 2, in milliseconds."""

    minimum_session_timeout_ms: int = 100
    maximum_session_timeout_ms: int = 6000
    """How long a new coordinator waits for consumers of the one before it (PUSH-42)."""
    maximum_retries: int = 2
    backoff_ms: int = 50
    response_timeout_ms: int = 1000
    tick_ms: int = 20
    """How often the schedule of pings is looked at."""
    offset_interval_ms: int = 0
    """How often offsets are written to ZooKeeper, which are in memory alone until then; 0: at once."""


@dataclass(eq=False, slots=True)
class PushBroker:
    """A broker. It coordinates all groups while it holds the coordinator path."""

    id: int
    zookeeper: Zookeeper
    settings: BrokerSettings = BrokerSettings()
    election: int | None = None
    groups: dict[str, GroupRebalancer] = field(default_factory=dict)
    _server: asyncio.Server | None = None
    _address: tuple[str, int] = ("", 0)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _queues: tuple[asyncio.Lock, ...] = field(default_factory=lambda: tuple(asyncio.Lock() for _ in range(QUEUES)))
    _quiet_until: float = 0.0

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> tuple[str, int]:
        """Listen, try to be elected, and return the address."""
        self._server = await asyncio.start_server(self.serve, host, port, backlog=BACKLOG)
        address: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        self.begin(address)
        return address

    def begin(self, address: tuple[str, int]) -> None:
        """Try to be elected, as the broker that is reached at this address."""
        self._address = address
        self._begin_session()
        self._spawn(self.ping_consumers())

    async def close(self) -> None:
        """Die: channels and memory are gone, and ZooKeeper misses the broker."""
        self.step_down()
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.zookeeper.end_session(self.id)

    def lose_session(self) -> None:
        """The session with ZooKeeper is over: step down, and begin a new one as a candidate (PUSH-06)."""
        self.step_down()
        self.zookeeper.end_session(self.id)
        self._begin_session()

    def step_down(self) -> None:
        """Stop acting and close every channel: PUSH-02, PUSH-44."""
        self.election = None
        for group in self.groups.values():
            group.close()
        self.groups = {}

    def queue_of(self, group: str) -> asyncio.Lock:
        """The queue of a group: one rebalance at a time (PUSH-17)."""
        return self._queues[sum(group.encode()) % len(self._queues)]

    def _begin_session(self) -> None:
        self.zookeeper.begin_session(self.id, self._address, self.lose_session)
        # PUSH-06: the listener comes first, so that no change after the election is missed.
        self.zookeeper.watch_topics(self.id, self.on_topic)
        self.zookeeper.elect(self.id, self.on_elected)

    def on_elected(self, election: int) -> None:
        """This broker is the coordinator from now on; consumers of the one before it may still fetch (PUSH-42)."""
        self.election = election
        if election > 1:
            self._quiet_until = self._now() + self.settings.maximum_session_timeout_ms / 1000

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def on_topic(self, topic: str) -> None:
        """A topic is new or has a new partition (PUSH-13, PUSH-14)."""
        for group in self.groups.values():
            if group.wants(topic):
                group.request()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection: lookups, then at most one registration. What is no request ends it, and so does silence
        before a registration: nobody else would notice."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while (payload := await self._next_request(reader)) is not None:
                name, body = decode_push_request(payload, DIALECT)
                if name == "ClusterMetadata":
                    writer.write(encode_push_response(name, self.describe(), DIALECT))
                    continue
                if name == "RegisterConsumer":
                    await self._register(body, reader, writer)
                return
        except (MalformedFrame, TimeoutError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _next_request(self, reader: asyncio.StreamReader) -> bytes | None:
        """The next request of a connection without a registration. Raises `TimeoutError` if it does not come."""
        async with asyncio.timeout(self.settings.maximum_session_timeout_ms / 1000):
            return await read_frame(reader)

    def describe(self) -> Body:
        """The metadata response: the live brokers and the coordinator (PUSH-23)."""
        brokers = [
            {"id": broker, "host": host, "port": port}
            for broker, (host, port) in sorted(self.zookeeper.addresses.items())
        ]
        coordinator = self.zookeeper.coordinator
        known = NO_COORDINATOR if coordinator is None else coordinator
        error = NOT_COORDINATOR if coordinator is None else 0
        return {"error_code": error, "coordinator_id": known, "brokers": brokers}

    async def _register(self, body: Body, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Accept or refuse a registration, and then take the consumer's responses."""
        error = self.registration_error(body)
        writer.write(encode_push_response("RegisterConsumer", {"error_code": error}, DIALECT))
        if error:
            await writer.drain()
            return
        group = self.groups.get(body["group"])
        if group is None:
            group = self.groups[body["group"]] = self.new_group(body["group"])
            group.task = self._spawn(group.run())
        timeout = body["session_timeout_ms"] / 1000
        topics = parse_interest(body["topic_count"])
        channel = ConsumerChannel(body["group"], body["consumer"], topics, timeout, reader, writer, self._now())
        group.add(channel)
        await channel.read_responses()

    def new_group(self, name: str) -> GroupRebalancer:
        """A group without members."""
        settings = self.settings
        group = GroupRebalancer(name, self.zookeeper, self.queue_of(name), self.election or 0)
        group.retries, group.backoff = settings.maximum_retries, settings.backoff_ms / 1000
        group.wait, group.quiet_until = settings.response_timeout_ms / 1000, self._quiet_until
        group.offset_interval = settings.offset_interval_ms / 1000
        return group

    def registration_error(self, body: Body) -> int:
        """The error of a registration, 0 if it is accepted (PUSH-26, PUSH-27)."""
        if self.election is None:
            return NOT_COORDINATOR
        allowed = range(self.settings.minimum_session_timeout_ms + 1, self.settings.maximum_session_timeout_ms + 1)
        if body["session_timeout_ms"] not in allowed:
            return UNUSABLE_TIMEOUT
        try:
            parse_interest(body["topic_count"])
        except UnusableInterest:
            return UNUSABLE_REQUEST
        group = self.groups.get(body["group"])
        return DUPLICATE_ID if group is not None and body["consumer"] in group.members else 0

    async def ping_consumers(self) -> None:
        """Ping every consumer at a third of its session timeout, and remove those that were not heard for the whole
        of it: by then each has stopped by itself (PUSH-07, PUSH-09, PUSH-11)."""
        while True:
            now = self._now()
            for group in list(self.groups.values()):
                group.write_due_offsets(now)
                for channel in list(group.members.values()):
                    if now > channel.heard_at + channel.session_timeout:
                        channel.close()
                        group.remove(channel)
                    elif now >= channel.ping_due and not channel.is_held:
                        channel.ping_due = now + channel.session_timeout / 3
                        channel.ping()
            await asyncio.sleep(self.settings.tick_ms / 1000)
