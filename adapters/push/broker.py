"""A broker with its coordinator: election, lookup, registration, pings, rebalances, removal (draft, 3 to 7)."""

import asyncio
import logging
import textwrap
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fencepost.adapters.push.zookeeper import Partition, Zookeeper
from fencepost.model.push.dialect import REPAIRED
from fencepost.model.push.group import Interest, UnusableInterest, parse_interest
from fencepost.model.push.wire import (
    NO_COORDINATOR,
    Body,
    MalformedFrame,
    decode_push_request,
    decode_push_response,
    encode_push_request,
    encode_push_response,
    frame_size,
    response_name,
)

# Frames on a stream.


DIALECT = REPAIRED
"""The broker speaks the repaired messages."""


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The payload of the next frame; None at the end. Raises `MalformedFrame` for a size that cannot be."""
    try:
        size = frame_size(await reader.readexactly(4))
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


# The coordinator's end of a consumer's channel: what it sends, and the responses that come back in order.


@dataclass(eq=False, slots=True)
class ConsumerChannel:
    """A registered consumer. Nothing is sent any more once it is closed."""

    consumer: str
    interest: Interest
    session_timeout: float
    """Seconds."""
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    heard_at: float
    ping_due: float = 0.0
    is_held: bool = False
    """A Stop or Start is awaited: no pings."""
    pings: int = 0
    confirmed: int = 0
    retries: int = 0
    on_offsets: Callable[[Body], None] | None = None
    """Told of the offsets in each response to a ping."""
    _awaited: deque[tuple[str, "asyncio.Future[Body]"]] = field(default_factory=deque)

    @property
    def is_closed(self) -> bool:
        """Whether the channel is gone."""
        return self.writer.is_closing()

    def send(self, name: str, body: Body) -> "asyncio.Future[Body]":
        """Send a request; the future of its response is cancelled if the channel closes first."""
        future: asyncio.Future[Body] = asyncio.get_running_loop().create_future()
        if self.is_closed:
            future.cancel()
            return future
        self._awaited.append((name, future))
        self.writer.write(encode_push_request(name, body, DIALECT))
        return future

    def ping(self) -> None:
        """Send a ping that confirms the last one answered."""
        self.pings += 1
        number = self.pings
        future = self.send("Ping", {"num_retries": min(self.retries, 0x7FFF), "confirmed": self.confirmed})
        self.retries += 1

        def on_response(done: "asyncio.Future[Body]") -> None:
            if not done.cancelled():
                self.confirmed, self.retries = number, 0
                if self.on_offsets is not None and "partitions" in done.result():
                    self.on_offsets(done.result())

        future.add_done_callback(on_response)

    async def read_responses(self) -> None:
        """Take responses until the channel ends, or one is none that is awaited."""
        loop = asyncio.get_running_loop()
        try:
            while (payload := await read_frame(self.reader)) is not None:
                if not self._awaited or response_name(payload) != self._awaited[0][0]:
                    return
                name, future = self._awaited.popleft()
                body = decode_push_response(name, payload, DIALECT)
                self.heard_at = loop.time()
                if not future.done():
                    future.set_result(body)
        except MalformedFrame:
            return
        finally:
            self.close()

    def close(self) -> None:
        """Close the channel; what is awaited will not come, and what a full connection holds back is not sent."""
        if self.writer.transport.get_write_buffer_size():
            self.writer.transport.abort()
        self.writer.close()
        while self._awaited:
            self._awaited.popleft()[1].cancel()


# The rebalances of one group: all stop, then all start, then the owners are recorded (draft, 7).


Shares = dict[str, tuple[Partition, ...]]
"""The partitions of each consumer."""
_log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class GroupRebalancer:
    """A group at its coordinator. Times are seconds of the event loop."""

    name: str
    zookeeper: Zookeeper
    queue: asyncio.Lock
    election: int
    retries: int = 0
    backoff: float = 0.0
    wait: float = 1.0
    quiet_until: float = 0.0
    offset_interval: float = 0.0
    """How long offsets may be in memory alone."""
    offsets: dict[Partition, int] = field(default_factory=dict)
    """Those that are not written yet."""
    offsets_written_at: float = 0.0
    members: dict[str, ConsumerChannel] = field(default_factory=dict)
    shares: Shares = field(default_factory=dict)
    """What each member was told to fetch last."""
    attempts: int = 0
    task: "asyncio.Task[None] | None" = None
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    completed: dict[str, ConsumerChannel] | None = None
    """The channels that started what `shares` says, until the next Stop."""

    def wants(self, topic: str) -> bool:
        """Whether a member is interested in the topic."""
        return any(channel.interest.matches(topic) for channel in self.members.values())

    def add(self, channel: ConsumerChannel) -> None:
        """Take a consumer in."""
        self.members[channel.consumer] = channel
        channel.on_offsets = lambda body: self.record_offsets({channel.consumer: body})
        self.request()

    def remove(self, channel: ConsumerChannel) -> None:
        """Take a consumer out; nothing is rebalanced for nobody (PUSH-33)."""
        if self.members.get(channel.consumer) is channel:
            del self.members[channel.consumer]
            if self.members:
                self.request()

    def request(self) -> None:
        """Ask for a rebalance: while one is under way, the next one follows it (PUSH-15)."""
        self.requested.set()

    def close(self) -> None:
        """Stop acting, and close the channels."""
        for channel in self.members.values():
            channel.close()
        if self.task is not None:
            self.task.cancel()

    async def run(self) -> None:
        """Rebalance as often as it is asked for."""
        loop = asyncio.get_running_loop()
        while True:
            await self.requested.wait()
            await asyncio.sleep(max(0.0, self.quiet_until - loop.time()))
            async with self.queue:
                done = await self.rebalance_with_retries()
            if not done:
                await asyncio.sleep(self.backoff)
                if self.members:
                    self.request()

    async def rebalance_with_retries(self) -> bool:
        """Whether one of the attempts succeeded (PUSH-20, PUSH-21)."""
        for retry in range(self.retries + 1):
            if retry:
                await asyncio.sleep(self.backoff)
            # Whatever changes from here on is not in the snapshot, and asks again.
            self.requested.clear()
            if await self.attempt():
                return True
        return False

    async def attempt(self) -> bool:
        """One attempt, on a snapshot of members and partitions."""
        channels = dict(sorted(self.members.items()))
        shares = self.assign(channels)
        if self.completed == channels and self.shares == shares:
            return True
        self.attempts += 1
        self.completed = None
        for channel in channels.values():
            channel.is_held = True
        try:
            stopped = await self.ask(channels, "Stop", {name: {} for name in channels})
            if stopped is None:
                return False
            self.shares = shares
            started = await self.ask(channels, "Start", {name: self.start_body(shares[name]) for name in channels})
        except MalformedFrame as error:
            # A share that no message can carry: the group stays stopped until it is smaller.
            _log.error("group %s cannot be started: %s", self.name, textwrap.shorten(str(error), 200))
            return False
        finally:
            for channel in channels.values():
                channel.is_held = False
        if started is None or any(body["error_code"] for body in started.values()):
            return False
        if any(self.members.get(name) is not channel for name, channel in channels.items()):
            return False
        owners = {partition: name for name, share in shares.items() for partition in share}
        if not await self.zookeeper.write_owners(self.name, self.election, owners):
            return False
        self.completed = channels
        return True

    def assign(self, channels: dict[str, ConsumerChannel]) -> Shares:
        """The shares of these members."""
        return assign(channels, self.zookeeper.topics)

    async def ask(
        self, channels: dict[str, ConsumerChannel], name: str, bodies: dict[str, Body]
    ) -> dict[str, Body] | None:
        """The responses of all members to a request; None if one does not come or is of another attempt."""
        futures = {
            who: channel.send(name, {"attempt": self.attempts, **bodies[who]}) for who, channel in channels.items()
        }
        if name == "Stop":
            for who, future in futures.items():
                future.add_done_callback(partial(self.on_stopped, who))
        if futures:
            await asyncio.wait(futures.values(), timeout=self.wait)
        if not all(future.done() and not future.cancelled() for future in futures.values()):
            return None
        responses = {who: future.result() for who, future in futures.items()}
        return responses if all(one["attempt"] == self.attempts for one in responses.values()) else None

    def on_stopped(self, consumer: str, response: "asyncio.Future[Body]") -> None:
        """Record the last offsets of a consumer, whatever becomes of the attempt: it will not tell them again."""
        if not response.cancelled():
            self.record_offsets({consumer: response.result()})

    def record_offsets(self, stopped: dict[str, Body]) -> None:
        """Record offsets, each from the consumer that owns the partition (PUSH-46); batched, they are written later."""
        known = self.newest_offsets()
        for consumer, body in stopped.items():
            for entry in body["partitions"]:
                partition = (entry["topic"], entry["partition"])
                if partition in self.shares.get(consumer, ()):
                    self.offsets[partition] = known[partition] = max(known.get(partition, 0), entry["offset"])
        if not self.offset_interval:
            self.write_offsets()

    def newest_offsets(self) -> dict[Partition, int]:
        """The offsets that are recorded, and those in memory."""
        return {**self.zookeeper.offsets.get(self.name, {}), **self.offsets}

    def write_due_offsets(self, now: float) -> None:
        """Write the offsets in memory if it is time."""
        if self.offsets and now >= self.offsets_written_at + self.offset_interval:
            self.offsets_written_at = now
            self.write_offsets()

    def write_offsets(self) -> None:
        """Write the offsets in memory to ZooKeeper, unless another broker was elected since."""
        if self.zookeeper.write_offsets(self.name, self.election, self.offsets):
            self.offsets = {}

    def start_body(self, share: Iterable[Partition]) -> Body:
        """The partitions of a Start, with the newest offsets."""
        known = self.newest_offsets()
        entries = [{"topic": topic, "partition": name, "offset": known.get((topic, name), 0)} for topic, name in share]
        return {"partitions": entries}


def assign(channels: dict[str, ConsumerChannel], topics: Mapping[str, list[str]]) -> Shares:
    """Deal the partitions of each topic in ranges over the streams of those that want it."""
    dealt: dict[str, list[Partition]] = {name: [] for name in channels}
    for topic in sorted(topics):
        streams = [name for name, one in channels.items() for _ in range(one.interest.threads_for(topic))]
        partitions, count = topics[topic], len(streams)
        for place, partition in enumerate(partitions):
            if count:
                # The first rest streams have one partition more.
                size, rest = divmod(len(partitions), count)
                large = rest * (size + 1)
                stream = place // (size + 1) if place < large else rest + (place - large) // size
                dealt[streams[stream]].append((topic, partition))
    return {name: tuple(share) for name, share in dealt.items()}


# A broker with its coordinator: election, lookup, registration, pings, removal (draft, 3 to 6).


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
            while True:
                async with asyncio.timeout(self.settings.maximum_session_timeout_ms / 1000):
                    payload = await read_frame(reader)
                if payload is None:
                    return
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
        channel = ConsumerChannel(body["consumer"], topics, timeout, reader, writer, self._now())
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
